/**
 * How large a batch may be and how it may be encoded: the operator's settings, narrowed by what the backend says of
 * itself (`GET /info`) and by what it has refused. Belongs to one shipper; everything reads it at the moment of use.
 */
import { KiB } from '../core/units.ts';
import type { Coding } from './compress.ts';

/** What is used of the backend's `/info`; null where it does not say. */
export interface BackendInfo {
  readonly maxBatchRuns: number | null;
  readonly maxBatchBytes: number | null;
  readonly zstd: boolean | null;
  readonly gzip: boolean | null;
}

/** A refused size is remembered down to here: smaller batches would cost more than they save. */
const MIN_LEARNT_BYTES = 256 * KiB;

export class UploadLimits {
  /** Runs of a batch. */
  maxBatchRuns: number;
  /** Plain bytes of a batch; a larger single run travels alone. */
  maxBatchBytes: number;
  /** What the next batch is encoded with. */
  coding: Coding = 'zstd';
  /** New batches hold one run each: a thread died of a batch. */
  oneRunEach = false;
  readonly #refused = new Set<Coding>();

  constructor(settings: { batchSize: number; maxBufferBytes: number }) {
    this.maxBatchRuns = settings.batchSize;
    this.maxBatchBytes = settings.maxBufferBytes;
  }

  /** Of a batch that is being filled. */
  get maxNewBatchRuns(): number {
    return this.oneRunEach ? 1 : this.maxBatchRuns;
  }

  learn(info: BackendInfo): void {
    if (info.maxBatchRuns !== null) this.maxBatchRuns = Math.min(this.maxBatchRuns, info.maxBatchRuns);
    if (info.maxBatchBytes !== null) this.maxBatchBytes = Math.min(this.maxBatchBytes, info.maxBatchBytes);
    if (info.zstd === false) this.refuseCoding('zstd');
    // Where gzip is not promised, a backend without zstd gets plain bodies.
    if (info.zstd === false && info.gzip !== true) this.refuseCoding('gzip');
  }

  /** 413 for a batch of several runs: later ones stay below half of it. */
  refuseSize(plainBytes: number): void {
    const learntBytes = Math.max(MIN_LEARNT_BYTES, Math.floor(plainBytes / 2));
    this.maxBatchBytes = Math.min(this.maxBatchBytes, learntBytes);
  }

  refuseCoding(coding: Coding): void {
    this.#refused.add(coding);
    this.coding = this.#refused.has('zstd') ? (this.#refused.has('gzip') ? 'identity' : 'gzip') : 'zstd';
  }

  /** Whether a batch with this coding may still be sent as it is. */
  allows(coding: Coding): boolean {
    return !this.#refused.has(coding);
  }
}

/** Reads what `/info` answered; nothing in it is relied on to be there or to be of the right kind. */
export function readInfo(document: unknown): BackendInfo {
  const config = member(document, 'batch_ingest_config');
  const flags = member(document, 'instance_flags');
  return {
    maxBatchRuns: positive(member(config, 'size_limit')),
    maxBatchBytes: positive(member(config, 'size_limit_bytes')),
    zstd: flag(member(flags, 'zstd_compression_enabled')),
    gzip: flag(member(flags, 'gzip_body_enabled')),
  };
}

function member(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}

function positive(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) && value >= 1 ? Math.floor(value) : null;
}

function flag(value: unknown): boolean | null {
  return typeof value === 'boolean' ? value : null;
}
