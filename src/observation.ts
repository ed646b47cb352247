/**
 * What the process shows of itself: gathers the figures of all stages into one registry, samples it, and makes the apps
 * that show it. A new gauge of the main thread is a line in `ownGauges`; counters and the shippers' gauges need none here.
 */
import { randomUUID } from 'node:crypto';
import { createAppServer, type AppServer } from './accept/appserver.ts';
import { version } from './cli.ts';
import type { Config } from './config.ts';
import type { CounterTable } from './core/counters.ts';
import type { HttpApp } from './core/http.ts';
import type { Clock } from './core/lifecycle.ts';
import type { Log } from './core/log.ts';
import type { PipelineSample } from './core/pipeline.ts';
import type { Journal } from './journal/journal.ts';
import { guarded } from './local.ts';
import { createPipelineApp } from './observe/app.ts';
import { createFigurebook, type GaugeReader } from './observe/figures.ts';
import { createMetricsApp } from './observe/metrics.ts';
import { createPipeline } from './observe/pipeline.ts';
import { createProcessGauges } from './observe/process.ts';
import { GAUGE_NAMES, GAUGES, type Gauges } from './upload/gauges.ts';

export interface Observation {
  /** To be asked before apps that claim all of `/api/`. */
  readonly apps: readonly HttpApp[];
  /** Rejects when METRICS_PORT cannot be had. */
  start(): Promise<void>;
  /** Ends the streams; `close` comes when everybody else has stopped. */
  stop(): void;
  close(): void;
  /** Of `/metrics`, where it has one of its own. */
  readonly metricsPort: number | null;
}

/** Read at the moment of asking, also before the start and after the end. */
export interface ObservationLinks {
  readonly counters: CounterTable;
  readonly clock: Clock;
  readonly log: Log;
  readonly phase: () => PipelineSample['phase'];
  readonly reasons: () => readonly string[];
  readonly admittedBytes: () => number;
  readonly decodingBodies: () => number;
  readonly decodingBytes: () => number;
  readonly decodeThreads: () => number;
  /** Null where an acknowledgement does not wait for the disk. */
  readonly journal: Pick<Journal, 'bytes' | 'liveBodyCount' | 'replayBytes'> | null;
  /** One a shard. */
  readonly shards: () => readonly Gauges[];
}

export function createObservation(config: Config, links: ObservationLinks): Observation {
  const { clock } = links;
  const ofProcess = createProcessGauges(() => clock.nowMs());
  const figures = createFigurebook(links.counters, [...ownGauges(config, links), ...ofProcess.gauges], {
    names: GAUGE_NAMES,
    meanings: GAUGES,
    limits: {
      backlogBytes: config.decodeThreads * config.shipShards * config.ringBytes,
      parkedBytes: config.parkMaxBytes,
      heldBytes: config.heldMaxBytes,
      inFlightUploads: config.uploadConcurrency,
      reading: config.shipShards,
      spoolBytes: config.spoolMaxBytes,
    },
    shards: links.shards,
  });
  const pipeline = createPipeline(
    { version: version(), startedMs: clock.nowMs() },
    {
      figures,
      nowMs: () => clock.nowMs(),
      phase: links.phase,
      reasons: links.reasons,
      onSample: () => ofProcess.turn(),
    },
  );
  const metrics = createMetricsApp({ version: version(), instanceId: randomUUID() }, figures);
  const server = config.metricsPort === null ? null : createMetricsServer(config, config.metricsPort, links);
  server?.mount(metrics);
  const rule = { apiKeys: config.deploymentApiKeys, auth: config.deploymentAuth };
  return {
    // On a port of its own whoever reaches it may read: that is what it is for.
    apps: [createPipelineApp(pipeline), ...(server === null ? [metrics] : [])].map((app) => guarded(app, rule)),
    start: async () => {
      pipeline.start();
      await server?.start();
    },
    stop: () => {
      pipeline.stop();
      ofProcess.stop();
    },
    close: () => server?.close(),
    get metricsPort() {
      return server?.port ?? null;
    },
  };
}

function createMetricsServer(config: Config, port: number, { log, clock }: ObservationLinks): AppServer {
  return createAppServer(
    {
      host: config.host ?? '',
      port,
      portVariable: 'METRICS_PORT',
      entryPath: '/metrics',
      tlsCertFile: config.tlsCertFile,
      tlsKeyFile: config.tlsKeyFile,
      maxInflightBytes: config.maxInflightBytes,
    },
    { log, clock },
  );
}

/** What the main thread holds. */
function ownGauges(config: Config, links: ObservationLinks): GaugeReader[] {
  return [
    {
      name: 'admittedBytes',
      meaning: 'Request bodies between sockets and rings.',
      read: links.admittedBytes,
      limit: config.maxInflightBytes,
    },
    {
      name: 'decodingBodies',
      meaning: 'Bodies that wait for a decode thread or are in one.',
      read: links.decodingBodies,
    },
    { name: 'decodingBytes', meaning: 'Bytes of these bodies.', read: links.decodingBytes },
    {
      name: 'decodeThreads',
      meaning: 'Decode threads that are alive.',
      read: links.decodeThreads,
      limit: config.decodeThreads,
    },
    {
      name: 'journalDiskBytes',
      meaning: 'Bytes of the journal of durable acknowledgement on disk.',
      read: () => links.journal?.bytes ?? 0,
      limit: config.journalMaxBytes,
    },
    {
      name: 'journalLiveBodies',
      meaning: 'Bodies in the journal that are not settled.',
      read: () => links.journal?.liveBodyCount ?? 0,
    },
    {
      name: 'journalReplayBytes',
      meaning: 'Bytes of the journal that are still to be decoded again.',
      read: () => links.journal?.replayBytes ?? 0,
    },
  ];
}
