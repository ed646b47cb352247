/** A sealed batch: runs of one tenant as one request body, encoded. Its composition never changes but by splitting. */
import { createHash } from 'node:crypto';
import type { Tenant } from '../core/run.ts';
import type { Codec, Coding } from './compress.ts';

export interface Batch {
  readonly tenant: Tenant;
  readonly boundary: string;
  readonly coding: Coding;
  /** Encoded. */
  readonly body: Buffer;
  /** Before encoding. */
  readonly plainBytes: number;
  readonly runCount: number;
  /** Where each run begins in the plain body; one more entry than runs: where the closing delimiter begins. */
  readonly runStarts: Uint32Array;
  /** Number of the request that each run came with, 0 for none; null where requests are not followed. */
  readonly runSources: Uint32Array | null;
}

/** What the batch is called in the log: of its bytes, so the same through retries, restarts and the spool. */
export function batchName(batch: Batch): string {
  return createHash('sha256').update(batch.body).digest('hex').slice(0, 8);
}

/** The plain body again. Costs a decompression: for splitting, truncating and dead letters only. */
export function plainBody(batch: Batch, codec: Codec): Buffer {
  return codec.decode(batch.body, batch.coding, batch.plainBytes);
}

/** The runs `from` up to `to` as a batch of their own. `plain` is the whole plain body. */
export function sliceBatch(batch: Batch, plain: Buffer, from: number, to: number, codec: Codec, coding: Coding): Batch {
  const begin = batch.runStarts[from] ?? 0;
  const end = batch.runStarts[to] ?? 0;
  const closing = plain.subarray(batch.runStarts[batch.runCount] ?? 0);
  const body = Buffer.concat([plain.subarray(begin, end), closing]);
  return {
    tenant: batch.tenant,
    boundary: batch.boundary,
    coding,
    body: codec.encode(body, coding),
    plainBytes: body.length,
    runCount: to - from,
    runStarts: batch.runStarts.slice(from, to + 1).map((start) => start - begin),
    runSources: batch.runSources?.slice(from, to) ?? null,
  };
}

/**
 * Two batches of one of at least two runs: cut in the middle of the bytes when size is the trouble, else in the middle
 * of the runs, so that a bad run among n is found in log n steps.
 */
export function halve(batch: Batch, codec: Codec, coding: Coding, by: 'bytes' | 'runs'): readonly [Batch, Batch] {
  const plain = plainBody(batch, codec);
  let middle = batch.runCount >> 1;
  if (by === 'bytes') {
    const half = (batch.runStarts[batch.runCount] ?? 0) / 2;
    middle = batch.runStarts.findIndex((start) => start >= half);
    middle = Math.min(Math.max(middle, 1), batch.runCount - 1);
  }
  return [
    sliceBatch(batch, plain, 0, middle, codec, coding),
    sliceBatch(batch, plain, middle, batch.runCount, codec, coding),
  ];
}
