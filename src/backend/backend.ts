/**
 * The embedded backend: takes the uploads that the hosted one takes, keeps the runs in SQLite, answers queries. In: HTTP
 * on loopback. Out: answers, live events. It owns its thread (workers/backend.ts) and the database file. When full: see
 * receive.ts (bytes being received) and store.ts (bytes kept). On stop: no new connections; requests in progress finish,
 * by the deadline; the file is closed whole.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Clock, systemClock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import { createEventHub } from './events.ts';
import { createFaults } from './faults.ts';
import { createKeyring } from './keys.ts';
import { matchTraces } from './query.ts';
import { createReceiver } from './receive.ts';
import { sendJson, sendProblem } from './reply.ts';
import { createRoutes } from './routes.ts';
import { readNumber } from './schema.ts';
import type { BackendSettings } from './settings.ts';
import { openStore } from './store.ts';

export interface Backend {
  /** Listens; the URL has no path and no slash at its end. */
  start(): Promise<{ url: string }>;
  stop(deadlineMs: number): Promise<void>;
}

/** How long text waits for company before it is indexed, and how many runs one turn takes: about 5 ms. */
const INDEX_DELAY_MS = 100;
const INDEX_TURN_COUNT = 500;
const KEEP_ALIVE_MS = 75_000;
const LOOPBACK_NAMES: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]', '::1']);

/** Opens the store at once; throws when the file cannot be used. */
export function createBackend(settings: BackendSettings, log: Log, clock: Clock = systemClock): Backend {
  const store = openStore(settings);
  const stopping = new AbortController();
  const faults = createFaults();
  const events = createEventHub((filter, traceNos) => {
    if (filter.text !== undefined) store.text.flush(Infinity);
    const { matched, unmatchedIds } = matchTraces(store.database, filter, traceNos);
    return { traces: matched, unmatched_trace_ids: unmatchedIds };
  });

  let indexing: NodeJS.Timeout | null = null;
  const indexSoon = (delayMs: number): void => {
    indexing ??= setTimeout(() => {
      indexing = null;
      if (store.text.flush(INDEX_TURN_COUNT) > 0) indexSoon(0);
    }, delayMs);
  };

  const receiver = createReceiver({
    settings,
    store,
    keyOf: createKeyring(settings),
    faults,
    onChange: (traceNos) => {
      events.changed(traceNos);
      if (store.text.waitingCount > 0) indexSoon(INDEX_DELAY_MS);
    },
    clock,
    log,
    stopping: stopping.signal,
  });
  const pages = (name: string): number => readNumber(store.database, `PRAGMA ${name}`);
  const routes = createRoutes({
    store,
    events,
    faults: settings.faults ? faults : null,
    notes: receiver.notes,
    usedBytes: () => (pages('page_count') - pages('freelist_count')) * pages('page_size'),
  });
  const info = JSON.stringify(describe(settings));

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = URL.parse(request.url ?? '', 'http://backend.invalid');
    if (url === null) return sendProblem(response, 'not-found', '');
    if (url.pathname === '/runs/multipart') {
      if (request.method !== 'POST') return sendProblem(response, 'method-not-allowed', '', { Allow: 'POST' });
      return receiver.receive(request, response);
    }
    if (!isOwnName(request.headers.host ?? '')) return sendProblem(response, 'misdirected', '');
    if (url.pathname.startsWith('/api/')) return routes(request, response, url);
    if (url.pathname !== '/info') return sendProblem(response, 'not-found', '');
    return sendJson(response, 200, info);
  };

  // A page elsewhere that gave its own name our address must not read what is here.
  const isOwnName = (host: string): boolean =>
    !LOOPBACK_NAMES.has(settings.host) || host === '' || LOOPBACK_NAMES.has(host.replace(/:\d+$/, ''));

  /** Requests in progress. Connections without one, kept alive or never used, would hold a stop up. */
  let openCount = 0;
  const cutWhenDone = (): void => {
    if (openCount === 0) setImmediate(() => server.closeAllConnections());
  };
  const server = createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, (request, response) => {
    openCount++;
    response.once('close', () => {
      openCount--;
      if (stopping.signal.aborted) cutWhenDone();
    });
    answer(request, response).catch((error: unknown) => {
      log.error({ error: error instanceof Error ? error.stack : String(error) }, 'request failed');
      if (!response.headersSent) sendProblem(response, 'internal', '');
      else response.destroy();
    });
  });

  let stopped: Promise<void> | null = null;
  const stop = async (deadlineMs: number): Promise<void> => {
    stopping.abort();
    events.stop();
    const closed = new Promise<void>((resolve) => {
      server.close(() => resolve());
    });
    cutWhenDone();
    const cut = setTimeout(() => server.closeAllConnections(), deadlineMs);
    await closed;
    clearTimeout(cut);
    if (indexing !== null) clearTimeout(indexing);
    store.close();
  };

  return {
    start: () =>
      new Promise((resolve, reject) => {
        const refuse = (error: NodeJS.ErrnoException): void => reject(cannotListen(settings, error));
        server.once('error', refuse);
        server.listen(settings.port, settings.host, () => {
          server.removeListener('error', refuse);
          server.on('error', (error) => log.error({ error: error.message }, 'server error'));
          const { address, family, port } = server.address() as AddressInfo;
          resolve({ url: `http://${family === 'IPv6' ? `[${address}]` : address}:${port}` });
        });
      }),
    stop: (deadlineMs) => (stopped ??= stop(deadlineMs)),
  };
}

function cannotListen({ host, port }: BackendSettings, error: NodeJS.ErrnoException): Error {
  const reason = error.code === 'EADDRINUSE' ? 'another process listens there (EADDRINUSE)' : error.message;
  return new Error(`cannot listen on ${host} port ${port}: ${reason}; set EMBEDDED_PORT`, { cause: error });
}

/** What `GET /info` says. */
function describe({ batch }: BackendSettings): unknown {
  return {
    version: 'embedded',
    license_expiration_time: null,
    batch_ingest_config: {
      use_multipart_endpoint: true,
      scale_up_qsize_trigger: 1000,
      scale_up_nthreads_limit: 16,
      scale_down_nempty_trigger: 4,
      size_limit: batch.sizeLimitRunCount,
      size_limit_bytes: batch.sizeLimitBytes,
    },
    instance_flags: {
      zstd_compression_enabled: batch.zstd,
      gzip_body_enabled: batch.gzip,
    },
  };
}
