/** What the embedded backend can be told. A plain cloneable object: it crosses to the backend's thread. */
import { GiB, KiB, MiB } from '../core/units.ts';

/** One API key that the backend knows; the runs uploaded with it belong to its tenant. */
export interface BackendKey {
  readonly key: string;
  /** Name of the workspace; derived from the key when absent. */
  readonly tenant?: string;
  /** Answer every upload with this key so: revoked, or not entitled. */
  readonly refuse?: 'unauthenticated' | 'forbidden';
}

/** What `GET /info` tells uploaders about batches. */
export interface BatchAdvice {
  readonly sizeLimitRunCount: number;
  readonly sizeLimitBytes: number;
  readonly zstd: boolean;
  readonly gzip: boolean;
}

export interface BackendSettings {
  /** Path of the SQLite file; `:memory:` keeps nothing after the stop. */
  readonly file: string;
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** The keys that may upload; null: any key that is not empty, each with a tenant of its own. */
  readonly keys: readonly BackendKey[] | null;
  /** How a key that is not listed is refused. */
  readonly unknownKey: 'unauthenticated' | 'forbidden';
  /** Whether scripted faults can be set over HTTP. For tests: whoever reaches the port could otherwise stop the intake. */
  readonly faults: boolean;
  /** Retention: over either bound the traces that arrived first are deleted. */
  readonly maxTraceCount: number;
  readonly maxStoreBytes: number;
  /** Of one upload, as it comes; beyond it the answer is 413. */
  readonly maxWireBytes: number;
  /** Of one upload, decompressed; beyond it the answer is 413. */
  readonly maxBodyBytes: number;
  /** Of all uploads being received; beyond it the answer is 503. */
  readonly maxInFlightBytes: number;
  readonly maxAttachmentBytes: number;
  /** How much of a run's text the full-text index takes in; 0 switches text search off. */
  readonly textIndexBytes: number;
  /** How far `start_time` may be from the time in `dotted_order`. */
  readonly startTimeToleranceUs: number;
  readonly batch: BatchAdvice;
}

export function backendSettings(chosen: Partial<BackendSettings> = {}): BackendSettings {
  return {
    file: ':memory:',
    host: '127.0.0.1',
    port: 0,
    keys: null,
    unknownKey: 'unauthenticated',
    faults: false,
    maxTraceCount: 200_000,
    maxStoreBytes: 4 * GiB,
    maxWireBytes: 64 * MiB,
    maxBodyBytes: 64 * MiB,
    maxInFlightBytes: 256 * MiB,
    maxAttachmentBytes: 20 * MiB,
    textIndexBytes: 4 * KiB,
    startTimeToleranceUs: 0,
    batch: { sizeLimitRunCount: 100, sizeLimitBytes: 20 * MiB, zstd: true, gzip: true },
    ...chosen,
  };
}
