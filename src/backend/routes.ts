/** The query API (api.ts): paths and parameters to reads, and back to JSON. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Stats } from './api.ts';
import type { EventHub } from './events.ts';
import type { Faults } from './faults.ts';
import { BadQuery, checkNames, readFilter, readNumberParam, readText } from './filter.ts';
import { isUuid } from './order.ts';
import { listProjects, listRuns, listTraces, type PageRequest, readAttachment, readRun, readTrace } from './query.ts';
import { sendJson, sendProblem } from './reply.ts';
import { readStats } from './stats.ts';
import type { Store } from './store.ts';
import type { UploadNote } from './api.ts';

export interface RouteParts {
  readonly store: Store;
  readonly events: EventHub;
  /** Null: scripted faults are not allowed. */
  readonly faults: Faults | null;
  readonly notes: () => UploadNote[];
  readonly usedBytes: () => number;
}

const DEFAULT_LIMIT = 50;
const MAX_LIMIT = 1000;
const DEFAULT_BUCKET_COUNT = 60;
const MAX_BUCKET_COUNT = 500;
const MAX_RULE_BYTES = 65_536;

/** Answers a request below `/api/`. */
export type Routes = (request: IncomingMessage, response: ServerResponse, url: URL) => Promise<void>;

export function createRoutes(parts: RouteParts): Routes {
  const { store } = parts;
  const { database } = store;

  /** Text search must see every run, also those that the index has not taken in yet. */
  const upToDate = (params: URLSearchParams): void => {
    if (params.has('text')) store.text.flush(Infinity);
  };

  const read = (path: readonly string[], params: URLSearchParams, response: ServerResponse): void => {
    const [kind = '', id, sub, name] = path;
    if (kind === 'runs' && id === undefined) {
      upToDate(params);
      const filter = readFilter(params, ['parent', 'limit', 'cursor']);
      sendJson(response, 200, JSON.stringify(listRuns(database, filter, readPage(params))));
    } else if (kind === 'runs' && id !== undefined && sub === undefined) {
      checkNames(params, ['tenant']);
      const text = readRun(database, id.toLowerCase(), readText(params, 'tenant'));
      if (text === null) sendProblem(response, 'not-found', `no run ${id.slice(0, 100)}`);
      else sendJson(response, 200, text);
    } else if (kind === 'runs' && id !== undefined && sub === 'attachments' && name !== undefined) {
      checkNames(params, ['tenant']);
      const found = readAttachment(database, id.toLowerCase(), name, readText(params, 'tenant'));
      if (found === null) sendProblem(response, 'not-found', 'no such attachment');
      else sendBytes(response, found.mediaType, found.bytes);
    } else if (kind === 'traces' && id === undefined) {
      upToDate(params);
      const filter = readFilter(params, ['limit', 'cursor']);
      sendJson(response, 200, JSON.stringify(listTraces(database, filter, readPage(params))));
    } else if (kind === 'traces' && id !== undefined && sub === undefined) {
      checkNames(params, ['tenant', 'format']);
      const format = readText(params, 'format') ?? 'flat';
      if (format !== 'flat' && format !== 'tree') throw new BadQuery('format: neither flat nor tree');
      const found = isUuid(id) ? readTrace(database, id.toLowerCase(), readText(params, 'tenant'), format) : null;
      if (found === null) sendProblem(response, 'not-found', `no trace ${id.slice(0, 100)}`);
      else sendJson(response, 200, JSON.stringify(found));
    } else if (kind === 'projects' && id === undefined) {
      checkNames(params, ['tenant']);
      sendJson(response, 200, JSON.stringify({ items: listProjects(database, readText(params, 'tenant')) }));
    } else if (kind === 'stats' && id === undefined) {
      upToDate(params);
      const filter = readFilter(params, ['buckets']);
      const bucketCount = Math.floor(readNumberParam(params, 'buckets') ?? DEFAULT_BUCKET_COUNT);
      if (bucketCount < 1 || bucketCount > MAX_BUCKET_COUNT)
        throw new BadQuery(`buckets: from 1 to ${MAX_BUCKET_COUNT}`);
      const stats: Stats = {
        ...readStats(database, filter, bucketCount),
        store: {
          trace_count: store.traceCount,
          run_count: store.runCount,
          used_bytes: parts.usedBytes(),
          pruned_trace_count: store.prunedTraceCount,
        },
      };
      sendJson(response, 200, JSON.stringify(stats));
    } else if (kind === 'uploads' && id === undefined) {
      sendJson(response, 200, JSON.stringify({ items: parts.notes() }));
    } else if (kind === 'events' && id === undefined) {
      const filter = readFilter(params, []);
      if (!parts.events.subscribe(response, filter)) {
        sendProblem(response, 'busy', 'too many subscribers', { 'Retry-After': '5' });
      }
    } else {
      sendProblem(response, 'not-found', '');
    }
  };

  return async (request, response, url) => {
    const path = readPath(url.pathname);
    try {
      if (path === null) sendProblem(response, 'not-found', '');
      else if (path[0] === 'faults' && path.length === 1 && parts.faults !== null) {
        await changeFaults(parts.faults, request, response);
      } else if (request.method !== 'GET' && request.method !== 'HEAD') {
        sendProblem(response, 'method-not-allowed', '', { Allow: 'GET, HEAD' });
      } else read(path, url.searchParams, response);
    } catch (error) {
      if (!(error instanceof BadQuery)) throw error;
      sendProblem(response, 'invalid', error.message);
    }
  };
}

/** The segments after `/api/`, unescaped; null when an escape is broken. */
function readPath(pathname: string): string[] | null {
  try {
    return pathname.split('/').slice(2).map(decodeURIComponent);
  } catch {
    return null;
  }
}

function readPage(params: URLSearchParams): PageRequest {
  const limit = Math.floor(readNumberParam(params, 'limit') ?? DEFAULT_LIMIT);
  if (limit < 1 || limit > MAX_LIMIT) throw new BadQuery(`limit: from 1 to ${MAX_LIMIT}`);
  const cursor = readText(params, 'cursor');
  return cursor === undefined ? { limit } : { limit, cursor };
}

/** Attachments are whatever a sender made them: never anything a browser would run. */
function sendBytes(response: ServerResponse, mediaType: string, bytes: Uint8Array): void {
  const plain = /^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+$/.test(mediaType) ? mediaType : 'application/octet-stream';
  response.writeHead(200, {
    'Content-Type': plain,
    'Content-Length': String(bytes.byteLength),
    'Content-Disposition': 'attachment',
    'Content-Security-Policy': "default-src 'none'; sandbox",
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-store',
  });
  response.end(bytes);
}

async function changeFaults(faults: Faults, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'DELETE') faults.clear();
  else if (request.method === 'POST') {
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
      length += chunk.byteLength;
      if (length > MAX_RULE_BYTES) throw new BadQuery('the rule is too long');
      chunks.push(chunk);
    }
    const problem = faults.add(parseJson(Buffer.concat(chunks)));
    if (problem !== null) throw new BadQuery(problem);
  } else if (request.method !== 'GET' && request.method !== 'HEAD') {
    sendProblem(response, 'method-not-allowed', '', { Allow: 'GET, HEAD, POST, DELETE' });
    return;
  }
  sendJson(response, 200, JSON.stringify({ items: faults.list() }));
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'));
  } catch {
    throw new BadQuery('the body is not JSON');
  }
}
