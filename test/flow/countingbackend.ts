/** A backend of one test: takes uploads over real HTTP, reads them strictly, and answers as told. */
import { once, EventEmitter } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync, zstdDecompressSync } from 'node:zlib';

export interface ArrivedRun {
  readonly apiKey: string;
  readonly id: string;
  readonly run: Record<string, unknown>;
  /** Bodies of its other parts by field name. */
  readonly fields: Record<string, string>;
}

/** Status and headers of the answer; null never answers. */
export type Reply = { status: number; headers?: Record<string, string> } | null;
type Replier = (runs: readonly ArrivedRun[]) => Reply | Promise<Reply>;

export interface CountingBackend {
  readonly url: string;
  /** Runs of uploads that were answered 2xx. */
  readonly runs: ArrivedRun[];
  readonly uploads: { readonly apiKey: string; readonly runCount: number; readonly bytes: number }[];
  reply: Replier;
  /** Resolves once the condition holds; looked at after every upload. */
  until(condition: () => boolean): Promise<void>;
  close(): Promise<void>;
}

export async function startCountingBackend(): Promise<CountingBackend> {
  const events = new EventEmitter();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (request.url === '/info') {
        response.writeHead(200).end(JSON.stringify({ instance_flags: { zstd_compression_enabled: true } }));
        return;
      }
      const apiKey = String(request.headers['x-api-key']);
      const runs = readRuns(apiKey, Buffer.concat(chunks), request.headers);
      backend.uploads.push({ apiKey, runCount: runs.length, bytes: Buffer.concat(chunks).length });
      const answer = (reply: Reply): void => {
        if (reply !== null) {
          if (reply.status < 300) backend.runs.push(...runs);
          response.writeHead(reply.status, reply.headers).end('{}');
        }
        events.emit('upload');
      };
      const reply = backend.reply(runs);
      events.emit('upload');
      if (reply instanceof Promise) void reply.then(answer);
      else answer(reply);
    });
    request.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const backend: CountingBackend = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    runs: [],
    uploads: [],
    reply: () => ({ status: 202 }),
    async until(condition) {
      while (!condition()) await once(events, 'upload');
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return backend;
}

export function readRuns(apiKey: string, body: Buffer, headers: NodeJS.Dict<string | string[]>): ArrivedRun[] {
  const boundary = /boundary=(.+)$/.exec(String(headers['content-type']))?.[1] ?? '';
  const coding = headers['content-encoding'];
  const plain = coding === 'zstd' ? zstdDecompressSync(body) : coding === 'gzip' ? gunzipSync(body) : body;
  const runs = new Map<string, { run: Record<string, unknown>; fields: Record<string, string> }>();
  let at = 0;
  while (plain.toString('latin1', at, at + boundary.length + 6) !== `--${boundary}--\r\n`) {
    const headEnd = plain.indexOf('\r\n\r\n', at);
    const head = plain.toString('latin1', at, headEnd);
    const [, name = ''] = /name="([^"]+)"/.exec(head) ?? [];
    const lengthBytes = Number(/Content-Length: (\d+)$/.exec(head)?.[1]);
    const text = plain.toString('utf8', headEnd + 4, headEnd + 4 + lengthBytes);
    if (plain.toString('latin1', headEnd + 4 + lengthBytes, headEnd + 6 + lengthBytes) !== '\r\n')
      throw new Error(head);
    const [, id = '', field] = name.split('.');
    if (field === undefined) runs.set(id, { run: JSON.parse(text), fields: {} });
    else (runs.get(id)?.fields ?? {})[field] = text;
    at = headEnd + 6 + lengthBytes;
  }
  return [...runs].map(([id, { run, fields }]) => ({ apiKey, id, run, fields }));
}
