/**
 * Everything behind the routes that needs a database or graphs, put together: store, graph workers, runs, crons, webhooks. Loaded and
 * opened at the first use. On stop no run is claimed any more, running ones get until the deadline and then return to the
 * queue; threads and databases close last.
 */
import { randomUUID } from 'node:crypto';
import { uncounted } from '../core/counters.ts';
import type { HttpApp } from '../core/http.ts';
import { systemClock } from '../core/lifecycle.ts';
import { MINUTE_MS } from '../core/units.ts';
import { createAccess } from './access.ts';
import { createApi } from './api.ts';
import type { RouteGroup } from './config.ts';
import { createCors } from './cors.ts';
import { createCronScheduler } from './crons.ts';
import { createPool } from './graph/pool.ts';
import type { GraphSpec } from './graph/protocol.ts';
import { createIdSource, DEFAULT_ASSISTANT_METADATA, defaultAssistantId } from './ids.ts';
import { createPulse } from './pulse.ts';
import type { Route } from './router.ts';
import { assistantRoutes } from './routes/assistants.ts';
import { cronRoutes } from './routes/crons.ts';
import { graphRoutes } from './routes/graphs.ts';
import { runRoutes } from './routes/runs.ts';
import { stateRoutes } from './routes/state.ts';
import { statelessRoutes } from './routes/stateless.ts';
import { storeRoutes } from './routes/store.ts';
import { createDeleteThread, pruneToLatest, threadRoutes } from './routes/threads.ts';
import { webhookRoutes } from './routes/webhooks.ts';
import { createRunRequests, DEFAULT_HEADER_RULES } from './runrequests.ts';
import { createRuns } from './runs.ts';
import { DEFAULT_LIMITS, DEFAULT_WEBHOOKS, type DeploymentSettings } from './settings.ts';
import { stateLocation } from './store/location.ts';
import { openDeploymentStore } from './store/open.ts';
import { openRemoteStore } from './store/remote.ts';
import type { NewAssistant } from './store/repositories.ts';
import { createSweeper } from './sweep.ts';
import { openWebhooks } from './webhooks/open.ts';

export interface Machinery {
  readonly app: HttpApp;
  ping(): Promise<void>;
  stop(deadlineMs: number): Promise<void>;
}

export async function openMachinery(settings: DeploymentSettings): Promise<Machinery> {
  const limits = { ...DEFAULT_LIMITS, ...settings.limits };
  const clock = settings.clock ?? systemClock;
  const { log, counters = uncounted } = settings;
  const webhookSettings = { ...DEFAULT_WEBHOOKS, ...settings.webhooks };
  const ids = createIdSource(clock);
  const ownerId = randomUUID();
  const place = { instanceId: ownerId, webhooksDisabled: webhookSettings.disabled };
  // SQLite answers synchronously: in a thread of its own, neither a long search nor a commit holds up this one.
  const store =
    settings.location.engine === 'sqlite'
      ? await openRemoteStore({
          workerUrl: new URL('../../workers/store.ts', import.meta.url),
          data: { ...place, location: settings.location },
          log,
        })
      : await openDeploymentStore({ ...place, location: settings.location, ids, clock, log });
  const pool = createPool({
    workerUrl: new URL('../../workers/graph.ts', import.meta.url),
    data: {
      graphs: settings.graphs,
      folder: settings.folder,
      location: stateLocation(settings.location),
      trace: settings.traceTarget?.() ?? null,
      beatIntervalMs: 250,
    },
    environment: settings.environment,
    threadCount: settings.graphs.length === 0 ? 0 : limits.graphThreadCount,
    spareCount: 2,
    log,
    counters,
    ...limits,
  });
  const webhooks = openWebhooks({ ...webhookSettings, webhooks: store.webhooks, counters, clock, log });
  const runs = createRuns({
    store,
    pool,
    clock,
    log,
    counters,
    ownerId,
    ...limits,
    onDelivery: () => webhooks.sender.wake(),
  });
  const crons = createCronScheduler({
    crons: store.crons,
    onFired: (firings) => {
      // Without a creation the cron had expired.
      const creations = firings.flatMap(({ creation }) => (creation === null ? [] : [creation]));
      counters.add('crons_fired', creations.length);
      counters.add('crons_fired_without_run', creations.filter(({ kind }) => kind !== 'created').length);
      runs.adopt(creations.filter((creation) => creation.kind !== 'unfit'));
    },
    clock,
    log,
  });
  const deleteThread = createDeleteThread({ store, runs });
  const sweeper = createSweeper({
    store,
    deleteThread,
    pruneThread: (threadId) => pruneToLatest({ store, runs }, threadId),
    ...(settings.sweep ?? DEFAULT_SWEEP),
    clock,
    log,
  });
  const stop = async (deadlineMs: number): Promise<void> => {
    await Promise.all([crons.stop(), sweeper.stop()]);
    const untilMs = performance.now() + deadlineMs;
    await runs.stop(deadlineMs * RUNS_SHARE);
    await pool.stop(Math.max(MIN_POOL_STOP_MS, untilMs - performance.now()));
    await webhooks.sender.stop(WEBHOOK_STOP_MS);
    await store.stop();
  };
  try {
    await store.assistants.ensureDefaults(settings.graphs.map((graph) => defaultAssistant(graph, clock.nowMs())));
    await pool.start();
    await runs.start();
    webhooks.sender.start();
    crons.start();
    sweeper.start();
  } catch (error) {
    await stop(0);
    throw error;
  }

  const connection = {
    pulse: createPulse(limits.heartbeatMs),
    opening: createPulse(OPENING_MS),
    maxBufferedBytes: limits.readerBufferBytes,
    counters,
    log,
  };
  const graphIds = new Set(settings.graphs.map((graph) => graph.graphId));
  const requests = createRunRequests({
    ids,
    clock,
    webhook: webhooks.admit,
    headers: settings.headers ?? DEFAULT_HEADER_RULES,
    graphIds,
  });
  const runSettings = { ...connection, store, runs, requests };
  const routes: Route[] = [
    ...runRoutes(runSettings),
    ...statelessRoutes(runSettings),
    ...stateRoutes({ store, runs, pool, clock }),
    ...graphRoutes({ assistants: store.assistants, pool }),
    ...assistantRoutes({
      store,
      graphIds,
      deleteThread,
      ids,
      clock,
    }),
    ...threadRoutes({ store, runs, pool, ids, clock, defaultTtl: settings.threadTtl ?? null }),
    ...cronRoutes({ crons: store.crons, graphIds, ids, clock, webhook: webhooks.admit, onChange: () => crons.wake() }),
    ...storeRoutes({ items: store.state.items, clock, ttl: settings.storeTtl ?? DEFAULT_STORE_TTL }),
    ...webhookRoutes(store),
  ];
  const app = createApi({
    routes: routes.filter((route) => !isDisabled(route, settings.disabled ?? [])),
    access: createAccess(settings.access),
    cors: createCors(settings.cors),
    mountPrefix: settings.mountPrefix,
    log,
  });
  return { app, ping: () => store.ping(), stop };
}

/** How long an answer that waits for a run may wait for its head. */
const OPENING_MS = 50;
/** Of the time for stopping, what runs may take; the rest is for their threads to close. */
const RUNS_SHARE = 0.8;
const MIN_POOL_STOP_MS = 500;
const DEFAULT_SWEEP = { intervalMs: 5 * MINUTE_MS, threadCount: 1000 };
const DEFAULT_STORE_TTL = { defaultMs: null, refreshOnRead: true };
/** Attempts under way may end; what does not comes due again at the next start. */
const WEBHOOK_STOP_MS = 1000;

/** Runs and crons hang off two stems. */
function isDisabled(route: Route, disabled: readonly RouteGroup[]): boolean {
  const [, first, , third] = route.pattern.split('/');
  const group = first === 'threads' && third === 'runs' ? 'runs' : first;
  return disabled.some((name) => name === group);
}

function defaultAssistant(graph: GraphSpec, nowMs: number): NewAssistant {
  return {
    assistantId: defaultAssistantId(graph.graphId),
    graphId: graph.graphId,
    name: graph.graphId,
    description: graph.description ?? null,
    config: {},
    context: {},
    metadata: DEFAULT_ASSISTANT_METADATA,
    ifExists: 'do_nothing',
    nowMs,
  };
}
