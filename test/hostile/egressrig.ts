/** A backend that says on its sockets whatever a test wants, and a real service in front of it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import type { CounterName } from '../../src/core/counters.ts';
import type { Service } from '../../src/service.ts';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { startService, tracesUrl } from '../flow/pipelinehost.ts';

/** What one upload gets: bytes written to its connection as they are. `end` closes, `reset` resets, else it stays open. */
export interface Answer {
  readonly bytes: string | Buffer;
  readonly then?: 'end' | 'reset';
}
/** Null: read on and say nothing. */
export type Script = (upload: number, socket: Socket, apiKey: string) => Answer | null;

export interface RawBackend {
  readonly url: string;
  readonly uploadCount: number;
  script: Script;
  close(): Promise<void>;
}

export const OK = 'HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}';
export const status = (code: number, headers = '', body = '{"detail":"no"}'): string =>
  `HTTP/1.1 ${code} X\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;

/** What tests have started, to be ended in turn by {@link cleanUp}. */
export const cleanups: (() => Promise<unknown>)[] = [];

export async function cleanUp(): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}

/** Knows so much HTTP as to tell one whole request from the next, and /info from an upload. */
export async function startRawBackend(script: Script): Promise<RawBackend> {
  const sockets = new Set<Socket>();
  let uploadCount = 0;
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
    let received = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      for (;;) {
        const headEnd = received.indexOf('\r\n\r\n');
        if (headEnd < 0) return;
        const head = received.toString('latin1', 0, headEnd);
        const lengthBytes = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
        if (received.length < headEnd + 4 + lengthBytes) return;
        received = received.subarray(headEnd + 4 + lengthBytes);
        if (head.startsWith('GET ')) {
          socket.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}');
          continue;
        }
        const apiKey = /x-api-key: (\S+)/i.exec(head)?.[1] ?? '';
        const answer = backend.script(++uploadCount, socket, apiKey);
        if (answer === null) continue;
        if (answer.bytes.length > 0) socket.write(answer.bytes);
        if (answer.then === 'end') socket.end();
        if (answer.then === 'reset') socket.resetAndDestroy();
      }
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const backend: RawBackend = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get uploadCount() {
      return uploadCount;
    },
    script,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
  cleanups.push(() => backend.close());
  return backend;
}

export async function start(endpoint: string, environment: Record<string, string> = {}): Promise<Service> {
  const service = await startService({
    SERVICE_ENDPOINT: endpoint,
    DEPLOYMENT_API: 'off',
    SHIP_SHARDS: '1',
    DECODE_THREADS: '1',
    ...environment,
  });
  cleanups.push(() => service.stop(1000));
  return service;
}

/** Sends one trace of one span; the service must take it whatever the backend does. */
export async function send(service: Service, apiKey = 'configured-key'): Promise<void> {
  const headers = { 'X-API-Key': apiKey };
  assert.equal((await postJson(tracesUrl(service), jsonRequest(makeTrace(1, 1).spans), headers)).status, 200);
}

/** Taken, and neither delivered nor dropped: in memory or on disk. */
export function keptCount(service: Service): number {
  const { heldCount, spooledCount } = service.account();
  return heldCount + spooledCount;
}

/** Resolves when the counter has come so far. */
export async function reached(service: Service, name: CounterName, count: number): Promise<void> {
  while (service.counters.total(name) < count) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** For counters that must not go further. */
export async function counted(service: Service, name: CounterName, count: number): Promise<void> {
  await reached(service, name, count);
  assert.equal(service.counters.total(name), count, name);
}

/** The sum law, when nothing is left on the way. */
export function assertAllAccounted(service: Service): void {
  const { acceptedCount, deliveredCount, droppedCount } = service.account();
  assert.equal(keptCount(service), 0);
  assert.equal(acceptedCount, deliveredCount + droppedCount);
}

/** Its URL. `serve` is given each connection and one to the backend, and carries bytes between them as it likes. */
export async function startRelay(backendUrl: string, serve: (socket: Socket, behind: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const relay = createServer((socket) => {
    const behind = connect(Number(new URL(backendUrl).port), '127.0.0.1');
    for (const one of [socket, behind]) {
      sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        socket.destroy();
        behind.destroy();
      });
    }
    serve(socket, behind);
  });
  relay.listen(0, '127.0.0.1');
  await once(relay, 'listening');
  cleanups.push(async () => {
    for (const socket of sockets) socket.destroy();
    relay.close();
    await once(relay, 'close');
  });
  return `http://127.0.0.1:${(relay.address() as AddressInfo).port}`;
}
