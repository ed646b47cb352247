/**
 * The run: a record whose place in its trace is known. What the assembler hands on and the batcher takes.
 */
import type { RecordView } from './recordview.ts';

/** Whose data it is: the API key that it is uploaded with. One object a key and thread, so identity is equality. */
export interface Tenant {
  /** For logs and metrics; the key itself never goes there. */
  readonly number: number;
  readonly apiKey: string;
}

/** Where assembled runs go. */
export interface RunSink {
  /**
   * Takes one run by copying it; `record` and `order` are valid during the call. The sink cannot refuse: whoever reads
   * records asks it for room before it reads more.
   *
   * `order` holds the run's `dotted_order` as text, of which every id and the start time are parts: the last 36
   * characters are the run id, the first segment ends with the trace id, the segment before the last with the parent's
   * run id, and the last segment begins with the start time. `endUs` is NaN for a run that has not ended.
   */
  put(tenant: Tenant, record: RecordView, order: Buffer, orderBytes: number, endUs: number): void;
}

/** `YYYYMMDDTHHMMSSffffffZ` and a UUID. */
export const ORDER_TIME_BYTES = 22;
export const UUID_TEXT_BYTES = 36;
export const ORDER_SEGMENT_BYTES = ORDER_TIME_BYTES + UUID_TEXT_BYTES;
