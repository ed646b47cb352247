/**
 * The counting sink, a process of its own: an upload backend that does nothing but decompress, read the run ids and tick
 * them off. Takes `POST …/runs/multipart`, and `POST …/v1/traces` (OTLP protobuf) so that any other collector can be
 * measured too. `GET /bench/arrivals?phase=N` says what has arrived. Prints its port on standard output.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { gunzipSync, inflateSync, zstdDecompressSync } from 'node:zlib';

import { createArrivals, type ArrivalCounts, type Arrivals } from './arrivals.ts';
import { scanProtobuf } from './spanids.ts';

/** Totals since the sink started. */
export interface SinkTotals {
  requestCount: number;
  /** Bodies as they came over the wire. */
  bodyBytes: number;
  /** Bodies decompressed. */
  plainBytes: number;
  /** Runs or spans, repeated ones included. */
  runCount: number;
  /** Runs whose id carries no number of ours. */
  foreignCount: number;
}

export interface SinkReport {
  readonly totals: SinkTotals;
  readonly arrivals: ArrivalCounts;
}

const INFO = JSON.stringify({
  version: 'bench',
  instance_flags: { zstd_compression_enabled: true, gzip_body_enabled: true },
  batch_ingest_config: {
    use_multipart_endpoint: true,
    size_limit: 100,
    size_limit_bytes: 20_971_520,
    scale_up_qsize_trigger: 1000,
    scale_up_nthreads_limit: 16,
    scale_down_nempty_trigger: 4,
  },
});

const totals: SinkTotals = { requestCount: 0, bodyBytes: 0, plainBytes: 0, runCount: 0, foreignCount: 0 };
const arrivalsByPhase = new Map<number, Arrivals>();

function arrivalsOf(phase: number): Arrivals {
  let arrivals = arrivalsByPhase.get(phase);
  if (arrivals === undefined) arrivalsByPhase.set(phase, (arrivals = createArrivals()));
  return arrivals;
}

function decompress(body: Buffer, coding: string | undefined): Buffer {
  switch (coding) {
    case 'zstd':
      // A chunk that holds most bodies whole spares the sink a third of the time.
      return zstdDecompressSync(body, { chunkSize: 512 * 1024 });
    case 'gzip':
      return gunzipSync(body);
    case 'deflate':
      return inflateSync(body);
    default:
      return body;
  }
}

const CR = 13;
const LF = 10;
const QUOTE = 0x22;
const DASH = 0x2d;
const UUID_CHARS = 36;

/** Walks the parts by their declared lengths; a wrong length loses the next delimiter and fails the request. */
function countMultipart(body: Buffer): void {
  const boundaryChars = body.indexOf('\r\n');
  let position = 0;
  for (;;) {
    for (let i = 0; i < boundaryChars; i++) {
      if (body[position + i] !== body[i]) throw new Error(`no delimiter at byte ${position}`);
    }
    position += boundaryChars;
    if (body[position] === DASH && body[position + 1] === DASH) return;
    position += 2;
    let lengthBytes = -1;
    while (body[position] !== CR) {
      let quote = -1;
      let end = position;
      for (; body[end] !== LF; end++) if (quote < 0 && body[end] === QUOTE) quote = end;
      // Content-Disposition: form-data; name="post.<uuid>" or …<uuid>.inputs", and Content-Length: <digits>
      const letter = (body[position + 8] ?? 0) | 0x20;
      if (letter === 0x64 && quote >= 0) countPartName(body, quote + 1);
      else if (letter === 0x6c) lengthBytes = digitsBefore(body, end - 1);
      position = end + 1;
    }
    if (lengthBytes < 0) throw new Error(`part without a length at byte ${position}`);
    position += 2 + lengthBytes + 2;
  }
}

function digitsBefore(body: Buffer, end: number): number {
  let value = 0;
  for (let i = end - 1, factor = 1; ; i--, factor *= 10) {
    const digit = (body[i] ?? 0) - 0x30;
    if (digit < 0 || digit > 9) return value;
    value += digit * factor;
  }
}

/** Only `post.<uuid>` itself is a run; `post.<uuid>.inputs` and its kin belong to one. */
function countPartName(body: Buffer, name: number): void {
  const uuid = name + 'post.'.length;
  const isPost = body[name] === 0x70 && body[name + 1] === 0x6f && body[uuid - 1] === 0x2e;
  if (isPost && body[uuid + UUID_CHARS] === QUOTE) countUuid(body, uuid);
}

/** A root's UUID is its trace id, any other's eight zero bytes and the span id: see spanids.ts. */
function countUuid(body: Buffer, at: number): void {
  totals.runCount++;
  const head = hexNumber(body, at, 8);
  if (head !== 0) tick(head, hexNumber(body, at + 9, 4) * 0x10000 + hexNumber(body, at + 14, 4));
  else tick(hexNumber(body, at + 19, 4) * 0x10000 + hexNumber(body, at + 24, 4), hexNumber(body, at + 28, 8));
}

function tick(phase: number, number: number): void {
  // Phases are small numbers; whatever else is there was not sent by our generator.
  if (phase === 0 || phase > 0xffff) totals.foreignCount++;
  else arrivalsOf(phase).add(number);
}

function hexNumber(body: Buffer, at: number, digits: number): number {
  let value = 0;
  for (let i = at; i < at + digits; i++) {
    const char = body[i] ?? 0;
    value = value * 16 + (char <= 0x39 ? char - 0x30 : (char | 0x20) - 0x57);
  }
  return value;
}

function countOtlp(body: Buffer): void {
  for (const { spanId } of scanProtobuf(body)) {
    totals.runCount++;
    tick(body.readUInt32BE(spanId), body.readUInt32BE(spanId + 4));
  }
}

function receive(request: IncomingMessage, response: ServerResponse, count: (body: Buffer) => void): void {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    const body = chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks);
    totals.requestCount++;
    totals.bodyBytes += body.length;
    try {
      const plain = decompress(body, request.headers['content-encoding']);
      totals.plainBytes += plain.length;
      count(plain);
      response.writeHead(202, { 'content-type': 'application/json' }).end('{}');
    } catch (error) {
      console.error('sink:', error);
      response.writeHead(422).end();
    }
  });
}

const { values } = parseArgs({ options: { port: { type: 'string', default: '0' } } });
const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://sink');
  if (request.method === 'POST' && url.pathname.endsWith('/runs/multipart')) receive(request, response, countMultipart);
  else if (request.method === 'POST' && url.pathname.endsWith('/v1/traces')) receive(request, response, countOtlp);
  else if (url.pathname.endsWith('/info')) response.writeHead(200, { 'content-type': 'application/json' }).end(INFO);
  else if (url.pathname === '/bench/arrivals') {
    const report: SinkReport = { totals, arrivals: arrivalsOf(Number(url.searchParams.get('phase'))).counts() };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(report));
  } else response.writeHead(404).end();
});
server.keepAliveTimeout = 75_000;
server.listen(Number(values.port), '127.0.0.1', () => console.log((server.address() as AddressInfo).port));
process.on('SIGTERM', () => {
  server.close();
  server.closeAllConnections();
});
