/**
 * The baseline of part 2: a plain single-threaded Node server that does the same job the obvious way. `node:http` in,
 * protobufjs or `JSON.parse`, run objects, trees in maps, `JSON.stringify`, batches of multipart text, `node:zlib`,
 * `undici` out. Written with ordinary care, and simpler than the service where that favours it: one API key, no retries,
 * no spool, a trace forgotten as soon as its root went out. Bounded like the service: what it cannot take is refused.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs, promisify } from 'node:util';
import { constants, gunzipSync, zstdCompress, zstdDecompressSync } from 'node:zlib';
import { Pool } from 'undici';

import { runsFromJson, runsFromProtobuf, type ObviousRun } from './obvious.ts';
import { loadSchema } from './schema.ts';

const { values } = parseArgs({
  options: {
    endpoint: { type: 'string' },
    'batch-size': { type: 'string', default: '100' },
    'flush-interval-ms': { type: 'string', default: '1000' },
    'zstd-level': { type: 'string', default: '1' },
  },
});
const endpoint = new URL(values.endpoint ?? 'http://127.0.0.1:1984');
const batchSize = Number(values['batch-size']);
const flushIntervalMs = Number(values['flush-interval-ms']);
const zstdLevel = Number(values['zstd-level']);
const MAX_PENDING_UPLOADS = 64;
const BOUNDARY = '----BenchFormBoundary7MA4YWxkTrZu0gW';

const schema = loadSchema();
const compress = promisify(zstdCompress);
const pool = new Pool(endpoint.origin, { connections: 8 });

// --- trees ----------------------------------------------------------------------------------------------------------

interface Ancestor {
  readonly runId: string;
  readonly dottedOrder: string;
  readonly startUs: number;
}

interface Trace {
  readonly known: Map<string, Ancestor>;
  readonly waiting: Map<string, ObviousRun[]>;
}

const traces = new Map<string, Trace>();

function assemble(run: ObviousRun): void {
  let trace = traces.get(run.traceId);
  if (trace === undefined) traces.set(run.traceId, (trace = { known: new Map(), waiting: new Map() }));
  if (run.parentSpanId === null) {
    place(trace, run, null);
    if (trace.waiting.size === 0) traces.delete(run.traceId);
    return;
  }
  const parent = trace.known.get(run.parentSpanId);
  if (parent !== undefined) return place(trace, run, parent);
  const siblings = trace.waiting.get(run.parentSpanId);
  if (siblings === undefined) trace.waiting.set(run.parentSpanId, [run]);
  else siblings.push(run);
}

function place(trace: Trace, run: ObviousRun, parent: Ancestor | null): void {
  const traceUuid = toUuid(run.traceId);
  const runId = parent === null ? traceUuid : toUuid(run.spanId.padStart(32, '0'));
  const startUs = parent === null ? run.startUs : Math.max(run.startUs, parent.startUs);
  const startTime = toTime(startUs);
  const segment = startTime.replace(/[-:.]/g, '') + runId;
  const dottedOrder = parent === null ? segment : `${parent.dottedOrder}.${segment}`;
  trace.known.set(run.spanId, { runId, dottedOrder, startUs });
  addToBatch(run, {
    id: runId,
    trace_id: traceUuid,
    ...(parent === null ? {} : { parent_run_id: parent.runId }),
    dotted_order: dottedOrder,
    start_time: startTime,
    end_time: toTime(Math.max(run.endUs, startUs)),
  });
  const children = trace.waiting.get(run.spanId);
  if (children === undefined) return;
  trace.waiting.delete(run.spanId);
  const self = { runId, dottedOrder, startUs };
  for (const child of children) place(trace, child, self);
}

function toUuid(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

function toTime(us: number): string {
  return new Date(us / 1000).toISOString().slice(0, -1) + String(us % 1000).padStart(3, '0') + 'Z';
}

// --- batches --------------------------------------------------------------------------------------------------------

let batch: string[] = [];
let batchRunCount = 0;
let flushTimer: NodeJS.Timeout | undefined;
const uploads = new Set<Promise<void>>();

interface Placement {
  readonly id: string;
  readonly trace_id: string;
  readonly parent_run_id?: string;
  readonly dotted_order: string;
  readonly start_time: string;
  readonly end_time: string;
}

function addToBatch(run: ObviousRun, placement: Placement): void {
  const { name, run_type, status, session_name, tags } = run;
  addPart(`post.${placement.id}`, { ...placement, name, run_type, status, session_name, tags });
  if (run.inputs !== undefined) addPart(`post.${placement.id}.inputs`, run.inputs);
  if (run.outputs !== undefined) addPart(`post.${placement.id}.outputs`, run.outputs);
  if (run.events !== undefined) addPart(`post.${placement.id}.events`, run.events);
  addPart(`post.${placement.id}.extra`, run.extra);
  if (run.error !== undefined) addPart(`post.${placement.id}.error`, run.error);
  if (++batchRunCount >= batchSize) flush();
  else flushTimer ??= setTimeout(flush, flushIntervalMs);
}

function addPart(name: string, value: unknown): void {
  const payload = JSON.stringify(value);
  batch.push(
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: application/json\r\n` +
      `Content-Length: ${Buffer.byteLength(payload)}\r\n\r\n${payload}\r\n`,
  );
}

function flush(): void {
  clearTimeout(flushTimer);
  flushTimer = undefined;
  const body = Buffer.from(batch.join('') + `--${BOUNDARY}--\r\n`);
  batch = [];
  batchRunCount = 0;
  const uploading = upload(body)
    .catch((error: unknown) => console.error('baseline: upload failed:', error))
    .finally(() => uploads.delete(uploading));
  uploads.add(uploading);
}

async function upload(body: Buffer): Promise<void> {
  const compressed = await compress(body, { params: { [constants.ZSTD_c_compressionLevel]: zstdLevel } });
  const response = await pool.request({
    method: 'POST',
    path: '/runs/multipart',
    headers: {
      'content-type': `multipart/form-data; boundary=${BOUNDARY}`,
      'content-encoding': 'zstd',
      'x-api-key': 'bench-key',
    },
    body: compressed,
  });
  await response.body.dump();
  if (response.statusCode !== 202 && response.statusCode !== 200) throw new Error(`status ${response.statusCode}`);
}

// --- intake ---------------------------------------------------------------------------------------------------------

function accept(request: IncomingMessage, response: ServerResponse): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    if (uploads.size >= MAX_PENDING_UPLOADS) {
      response.writeHead(503, { 'retry-after': '1' }).end();
      return;
    }
    const isJson = request.headers['content-type'] === 'application/json';
    try {
      const body = decompress(Buffer.concat(chunks), request.headers['content-encoding']);
      const runs = isJson ? runsFromJson(body, 'default') : runsFromProtobuf(schema.request, body, 'default');
      for (const run of runs) assemble(run);
    } catch (error) {
      response.writeHead(400).end(String(error));
      return;
    }
    response.writeHead(200, { 'content-type': request.headers['content-type'] ?? '' }).end(isJson ? '{}' : '');
  });
}

function decompress(body: Buffer, coding: string | undefined): Buffer {
  if (coding === 'gzip') return gunzipSync(body);
  if (coding === 'zstd') return zstdDecompressSync(body);
  return body;
}

const server = createServer((request, response) => {
  if (request.method === 'POST' && request.url === '/v1/traces') accept(request, response);
  else response.writeHead(request.url === '/ready' ? 200 : 404).end();
});
server.keepAliveTimeout = 75_000;
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.on('SIGTERM', () => {
  if (batchRunCount > 0) flush();
  server.close();
  server.closeAllConnections();
  void Promise.all(uploads).then(() => pool.close());
});
