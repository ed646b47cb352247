import type { SpoolWishes } from './spool/settings.ts';
import { MINUTE_MS, MiB, SECOND_MS } from '../core/units.ts';

/** What a shipper thread is told: one plain object that travels in `workerData`. `main.ts` fills it from the Config. */
export interface ShipSettings {
  /** Base URL of the backend, path included; `/runs/multipart` and `/info` are joined to it. */
  readonly endpoint: string;

  // assemble
  /** `trace`: a root run's id is the trace id; `span`: its padded span id. */
  readonly rootRunId: 'trace' | 'span';
  /** Leave out spans that carry nothing of GenAI; their children move up. */
  readonly filterNonGenAi: boolean;
  /** How long a span waits for its ancestors; as long a quiet trace is remembered. */
  readonly spanTtlMs: number;
  /** Memory for spans that wait; beyond it the oldest trace goes out under its root. */
  readonly parkBytes: number;
  /** Spans whose place is remembered for those that come later (about 60 bytes each); the quietest traces go first. */
  readonly rememberedSpanCount: number;

  // batch
  readonly batchSize: number;
  /** Uncompressed. */
  readonly maxBufferBytes: number;
  readonly flushIntervalMs: number;
  readonly zstdLevel: number;
  /** API keys with an open batch or undelivered batches at a time. */
  readonly tenantCount: number;
  /** Durable mode: tell the main thread which requests' spans are settled. */
  readonly followSources: boolean;

  /** Where undeliverable batches wait on disk; null: in memory, as long as there is room. */
  readonly spool: SpoolWishes | null;

  // deliver
  /** After the first attempt. */
  readonly maxRetries: number;
  /** Doubled each time, jittered, at most 30 s; 0 is legal. */
  readonly retryBackoffMs: number;
  /** Uploads in flight at a time. */
  readonly uploadConcurrency: number;
  /** Encoded bytes in flight at a time; a larger single batch travels alone. */
  readonly uploadMaxBytes: number;
  /** Encoded bytes of sealed batches that are not delivered yet; beyond it the rings are not read. */
  readonly heldBytes: number;
  readonly connectTimeoutMs: number;
  /** From the end of the request to the head of the answer. */
  readonly headersTimeoutMs: number;
  /** Between two pieces of the answer's body. */
  readonly bodyTimeoutMs: number;
  /** Of one attempt as a whole. */
  readonly attemptTimeoutMs: number;
  /** How long a connection is used; the next one asks anew where the backend's name leads. */
  readonly connectionLifeMs: number;
}

/** Of one shipper; `main.ts` divides what is meant for all of them. */
export const SHIP_DEFAULTS: Omit<ShipSettings, 'endpoint'> = {
  rootRunId: 'trace',
  filterNonGenAi: false,
  spanTtlMs: 5 * MINUTE_MS,
  parkBytes: 32 * MiB,
  rememberedSpanCount: 262_144,
  batchSize: 100,
  maxBufferBytes: 10 * MiB,
  flushIntervalMs: SECOND_MS,
  zstdLevel: 1,
  tenantCount: 1024,
  followSources: false,
  spool: null,
  maxRetries: 3,
  retryBackoffMs: 100,
  uploadConcurrency: 8,
  uploadMaxBytes: 32 * MiB,
  heldBytes: 32 * MiB,
  connectTimeoutMs: 5 * SECOND_MS,
  headersTimeoutMs: 30 * SECOND_MS,
  bodyTimeoutMs: 10 * SECOND_MS,
  attemptTimeoutMs: MINUTE_MS,
  connectionLifeMs: MINUTE_MS,
};
