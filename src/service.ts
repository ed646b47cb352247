/**
 * Wires the stages by the configuration, starts sinks before sources and stops sources before sinks. In: the Config.
 * Out: a running service, and at its end an account of every span. `main.ts` decides when.
 */
import { join, resolve } from 'node:path';
import { createAcceptor, type Acceptor } from './accept/acceptor.ts';
import { createForward, type ForwardApp } from './backend/forward.ts';
import { BACKEND_OPERATIONS } from './backend/operations.ts';
import { processEnvironment, type Config } from './config.ts';
import { CONSOLE_OPERATIONS } from './console/operations.ts';
import { deploymentRule, ownConsole } from './consolepage.ts';
import { createCounterTable, DROP_COUNTER_NAMES, type CounterTable } from './core/counters.ts';
import type { HttpApp } from './core/http.ts';
import type { Intake, IntakeBody } from './core/intake.ts';
import { systemClock, type Clock } from './core/lifecycle.ts';
import type { Log } from './core/log.ts';
import type { EffectiveConfig } from './core/pipeline.ts';
import { GiB, MiB, SECOND_MS } from './core/units.ts';
import { createDecodePool, type DecodePool } from './decode/pool.ts';
import { counterRow } from './decode/task.ts';
import { ownDeployment, type OwnedDeployment } from './deployment.ts';
import { createDurability } from './durability.ts';
import { createEmbedded, type Embedded } from './embedded.ts';
import { openDeadBodies } from './journal/deadbody.ts';
import { guarded, localOnly } from './local.ts';
import { createObservation } from './observation.ts';
import { createConfigApp } from './observe/config.ts';
import { PIPELINE_OPERATIONS } from './observe/operations.ts';
import { limitRepeats } from './observe/repeats.ts';
import { createRingSet } from './ring/layout.ts';
import { createShippers, type Shippers } from './shippers.ts';
import { ownSpool, spoolFolder, spoolWishes, type OwnedSpool } from './spool.ts';
import { SPOOL_INDEX_RATIO } from './upload/spool/file.ts';
import { SHIP_DEFAULTS, type ShipSettings } from './upload/settings.ts';

export interface Service {
  /** Resolves when spans are taken. Rejects with one readable line; then `stop` still has to be called. */
  start(): Promise<void>;
  /** Takes no more, delivers what is held, at most `deadlineMs`. Idempotent. */
  stop(deadlineMs: number): Promise<Account>;
  /** Cuts a running `stop` short. */
  endNow(): void;
  /** The port listened on; 0 before the start. */
  readonly port: number;
  /** Where uploads go; empty before the start when the backend is embedded. */
  readonly endpoint: string;
  /** Where the deployment API is served and what; null where it is not. */
  readonly deployment: { readonly port: number; readonly graphIds: readonly string[] } | null;
  /** Of `/metrics`, where it has one of its own. */
  readonly metricsPort: number | null;
  readonly counters: CounterTable;
  account(): Account;
}

/** accepted + inherited = delivered + dropped + held + spooled. */
export interface Account {
  readonly acceptedCount: number;
  readonly deliveredCount: number;
  readonly droppedCount: number;
  /** In rings, waiting for ancestors, in batches, in flight. */
  readonly heldCount: number;
  /** On disk, to be sent, also by the next process. */
  readonly spooledCount: number;
  /** Taken over on disk from an earlier process: they come on top of the accepted ones. */
  readonly inheritedCount: number;
  /** Of the dropped: not delivered because the process ended or a thread died. */
  readonly lostCount: number;
}

/** Of SPOOL_MAX_BYTES, and on top of it, for bodies that threads die of. */
const DEAD_BODY_RATIO = 1 / 16;
/** How long a decode thread waits for a shipper that stands still, and altogether for one body: clients wait 10 s. */
const RING_WAIT_MS = 500;
const BODY_WAIT_MS = 3 * SECOND_MS;
/** Of bodies that travel to a decode thread together. */
const MAX_TASK_BYTES = MiB;
/** Of one decode thread; only a converter's objects take as much. */
const DECODE_HEAP_BYTES = GiB;
/** Spans whose place is remembered, over all shards; about 60 bytes each. */
const REMEMBERED_SPAN_COUNT = 524_288;
const SHIP_HEAP_BYTES = 256 * MiB;
/** Of a stop's time, what graph runs under way may use; they are traced, so they end first. */
const RUN_SHARE_RATIO = 0.5;
/** Of a stop's time, what waiting for uploads under way and what the decode pool may use; the rest is the shippers'. */
const ACCEPT_SHARE_RATIO = 0.25;
const DECODE_SHARE_RATIO = 0.15;
const BACKEND_STOP_MS = 2 * SECOND_MS;
const BUSY_RETRY_MS = SECOND_MS;

export interface ServiceOptions {
  readonly clock?: Clock;
  /** Of the console: see consolepage.ts. */
  readonly watchSources?: boolean;
  /** For `GET /api/config`, which is not there without. */
  readonly effective?: EffectiveConfig;
}

export function createService(config: Config, log: Log, options: ServiceOptions = {}): Service {
  const { clock = systemClock, watchSources = false, effective = null } = options;
  const rings = createRingSet({
    producerCount: config.decodeThreads,
    shardCount: config.shipShards,
    ringBytes: config.ringBytes,
  });
  const counters = createCounterTable(counterRow(config.shipShards, config.decodeThreads));
  /** Row 0 is this thread's. */
  const own = counters.row(0);
  const apps: HttpApp[] = [];
  const limitedLog = limitRepeats(log);

  const embedded: Embedded | null =
    config.endpoint === 'embedded'
      ? createEmbedded(
          { file: embeddedFile(config), port: config.embeddedPort },
          { log: log.child({ stage: 'backend' }), clock },
        )
      : null;
  /** Puts the embedded backend's queries on our own port. */
  let forward: ForwardApp | null = null;
  const spool: OwnedSpool | null =
    config.spoolMaxBytes === 0
      ? null
      : ownSpool(spoolFolder(config), config.shipShards, {
          counters: own,
          log: limitedLog.child({ stage: 'spool' }),
          clock,
        });
  /** Made when the endpoint is known. */
  let shippers: Shippers | null = null;
  const deadBodies = openDeadBodies(deadFolder(config), DEAD_BODY_RATIO * config.spoolMaxBytes);
  const pool: DecodePool = createDecodePool(
    {
      threadCount: config.decodeThreads,
      workerUrl: new URL('../workers/decode.ts', import.meta.url),
      thread: {
        rings,
        counters: counters.shared,
        decoder: {
          genericAttributes: config.genericOtel,
          rootRunId: config.rootRunId,
          converterModule: config.converterModule === null ? null : resolve(config.converterModule),
        },
        maxBodyBytes: config.maxBodyBytes,
        ringWaitMs: RING_WAIT_MS,
        bodyWaitMs: BODY_WAIT_MS,
        maxOversizeBytes: config.maxBodyBytes,
      },
      maxTaskBytes: MAX_TASK_BYTES,
      // The acceptor's budget is the bound; this one only has to be no smaller.
      maxHeldBytes: config.maxInflightBytes + config.maxBodyBytes,
      threadHeapBytes: DECODE_HEAP_BYTES,
    },
    {
      forwardOversize: (shard, record) => shippers?.forwardOversize(shard, record),
      setAside: async (body) => {
        if (!(await deadBodies.keep(body))) throw new Error('larger than SPOOL_MAX_BYTES allows');
      },
      counters: own,
      log: limitedLog.child({ stage: 'decode' }),
    },
  );
  const decoding = heedCongestion(pool, () => shippers?.congested ?? false);
  const journal = createDurability(config, {
    intake: decoding,
    counters: own,
    clock,
    log: limitedLog.child({ stage: 'journal' }),
    deadBodies,
  });
  const acceptor: Acceptor = createAcceptor(
    {
      host: config.host ?? '',
      port: config.httpPort,
      tlsCertFile: config.tlsCertFile,
      tlsKeyFile: config.tlsKeyFile,
      maxBodyBytes: config.maxBodyBytes,
      maxInflightBytes: config.maxInflightBytes,
      apiKey: config.apiKey,
      project: config.project,
      corsAllowOrigins: config.corsAllowOrigins,
    },
    {
      intake: journal ?? decoding,
      counters: own,
      log: limitedLog.child({ stage: 'accept' }),
      clock,
      apps,
      stageReasons: () => [
        ...pool.reasons(),
        ...(journal?.reasons() ?? []),
        ...(shippers?.reasons() ?? []),
        ...(spool?.reasons() ?? []),
        ...(embedded?.reasons() ?? []),
      ],
    },
  );

  const observation = createObservation(config, {
    counters,
    clock,
    log: limitedLog.child({ stage: 'observe' }),
    phase: () => acceptor.phase,
    reasons: () => acceptor.reasons(),
    admittedBytes: () => acceptor.inflightBytes,
    decodingBodies: () => pool.heldBodyCount,
    decodingBytes: () => pool.heldBytes,
    decodeThreads: () => pool.aliveThreadCount,
    journal,
    shards: () => shippers?.gauges ?? [],
  });
  apps.push(...observation.apps);
  if (effective !== null) apps.push(guarded(createConfigApp(effective), deploymentRule(config)));

  const deployment: OwnedDeployment | null =
    config.deploymentApi === 'off'
      ? null
      : ownDeployment(config, {
          environment: processEnvironment(),
          mount: (app) => apps.push(app),
          otherOperations: [
            ...PIPELINE_OPERATIONS,
            ...(config.console ? CONSOLE_OPERATIONS : []),
            ...(config.endpoint === 'embedded' ? BACKEND_OPERATIONS : []),
          ],
          proxyPort: () => acceptor.port,
          counters: own,
          log: limitedLog.child({ stage: 'deploy' }),
          clock,
        });

  if (config.console) {
    apps.push(ownConsole(config, { deployment, log: limitedLog.child({ stage: 'console' }), watchSources }));
  }

  const account = (): Account => {
    const totals = counters.totals();
    const droppedCount = DROP_COUNTER_NAMES.reduce((sum, name) => sum + totals[name], 0);
    // A body that comes from the journal once more was accepted by an earlier process, or died with a shipper.
    const acceptedCount = totals.spans_accepted + totals.spans_replayed - totals.spans_reclaimed;
    const deliveredCount = totals.runs_delivered;
    const inheritedCount = totals.runs_inherited;
    const spooledCount = shippers?.spooledCount ?? 0;
    return {
      acceptedCount,
      deliveredCount,
      droppedCount,
      // Spans of a body that was answered busy half-way are delivered without having been accepted.
      heldCount: Math.max(0, acceptedCount + inheritedCount - deliveredCount - droppedCount - spooledCount),
      spooledCount,
      inheritedCount,
      // What the deadline cuts off is still in the journal.
      lostCount: (journal === null ? totals['dropped_shutdown-deadline'] : 0) + totals['dropped_worker-lost'],
    };
  };

  const atMost = async (ms: number, work: Promise<void>): Promise<void> => {
    const done = new AbortController();
    await Promise.race([work.then(() => done.abort()), clock.sleep(ms, done.signal)]);
  };
  const stop = async (deadlineMs: number): Promise<Account> => {
    const endMs = clock.nowMs() + deadlineMs;
    const leftMs = (): number => Math.max(0, endMs - clock.nowMs());
    // A source of spans, and its own requests are among those that the acceptor waits for. A graph that does not let go may
    // take longer than its share, but not the others' time.
    const runsEnded = (deployment?.stop(RUN_SHARE_RATIO * deadlineMs) ?? Promise.resolve()).catch((error: unknown) =>
      log.error({ err: error }, 'deployment API did not stop cleanly'),
    );
    await atMost(RUN_SHARE_RATIO * deadlineMs, runsEnded);
    // Requests taken before get their answers, which the pool owes them; then the pool has nothing left to do.
    await acceptor.stop(ACCEPT_SHARE_RATIO * deadlineMs);
    journal?.quiesce();
    await pool.stop(DECODE_SHARE_RATIO * deadlineMs);
    await shippers?.stop(leftMs());
    spool?.stop();
    await journal?.stop();
    await atMost(leftMs(), runsEnded);
    forward?.stop();
    await embedded?.stop(Math.min(BACKEND_STOP_MS, Math.max(leftMs(), SECOND_MS)));
    deployment?.close();
    observation.stop();
    acceptor.close();
    observation.close();
    return account();
  };
  let stopping: Promise<Account> | null = null;

  return {
    start: async () => {
      // The port first: whether it can be had is known at once, and until all runs, spans are told to come back.
      await acceptor.start();
      await journal?.start();
      await observation.start();
      await deployment?.listen();
      if (embedded !== null) {
        await embedded.start();
        forward = createForward(embedded.url);
        apps.push(config.console ? guarded(forward, deploymentRule(config)) : localOnly(forward));
      }
      const spoolReady = (await spool?.start(() => shippers?.spoolReady())) ?? false;
      shippers = createShippers(
        {
          rings,
          counters,
          firstRow: 1,
          ship: shipSettings(config, embedded?.url ?? config.endpoint),
          spoolReady,
          heapBytes: shipHeapBytes(config),
        },
        {
          counters: own,
          log: limitedLog.child({ stage: 'ship' }),
          clock,
          onSettled: (_shard, pairs) => journal?.settled(pairs),
          onLost: (_shard, lostCount, suspectSource) => {
            if (journal === null) return false;
            own.add('spans_reclaimed', lostCount);
            journal.startOver(suspectSource);
            return true;
          },
        },
      );
      await shippers.start();
      await pool.start();
      journal?.replay();
      await deployment?.open();
      acceptor.ready();
    },
    stop: (deadlineMs) => (stopping ??= stop(deadlineMs)),
    endNow: () => shippers?.endNow(),
    get port() {
      return acceptor.port;
    },
    get endpoint() {
      return embedded?.url ?? config.endpoint;
    },
    get metricsPort() {
      return observation.metricsPort;
    },
    deployment,
    counters,
    account,
  };
}

/** Puts bodies off while records too large for a ring pile up in a shipper: their way has no bound of its own. */
function heedCongestion(intake: Intake, congested: () => boolean): Intake {
  const putOff = (body: IntakeBody): void =>
    queueMicrotask(() =>
      body.settle({
        kind: 'busy',
        code: 'rings-full',
        message: 'large spans are waiting to be uploaded',
        retryAfterMs: BUSY_RETRY_MS,
      }),
    );
  return {
    submit: (body, bytes) => (congested() ? putOff(body) : intake.submit(body, bytes)),
    submitOwned: (body, buffer, lengthBytes) =>
      congested() ? putOff(body) : intake.submitOwned(body, buffer, lengthBytes),
  };
}

/** Of one shipper's objects; what the spool remembers of each batch on disk is among them. */
function shipHeapBytes(config: Config): number {
  return SHIP_HEAP_BYTES + Math.ceil(config.spoolMaxBytes / SPOOL_INDEX_RATIO / config.shipShards);
}

/** What the operator set for all shippers together is divided among them. */
function shipSettings(config: Config, endpoint: string): ShipSettings {
  const share = (amount: number): number => Math.ceil(amount / config.shipShards);
  return {
    ...SHIP_DEFAULTS,
    endpoint,
    rootRunId: config.rootRunId,
    followSources: config.durableAck,
    filterNonGenAi: config.filterNonGenAi,
    spanTtlMs: config.spanTtlMs,
    parkBytes: share(config.parkMaxBytes),
    rememberedSpanCount: share(REMEMBERED_SPAN_COUNT),
    batchSize: config.batchSize,
    maxBufferBytes: config.maxBufferBytes,
    flushIntervalMs: config.flushIntervalMs,
    zstdLevel: config.zstdLevel,
    maxRetries: config.maxRetries,
    retryBackoffMs: config.retryBackoffMs,
    uploadConcurrency: share(config.uploadConcurrency),
    heldBytes: share(config.heldMaxBytes),
    spool: spoolWishes(config),
    headersTimeoutMs: config.uploadTimeoutMs,
    attemptTimeoutMs: config.uploadTimeoutMs,
  };
}

function deadFolder(config: Config): string {
  return join(spoolFolder(config), 'dead');
}

function embeddedFile(config: Config): string {
  return join(resolve(config.dataDir ?? '.'), 'runs.sqlite');
}
