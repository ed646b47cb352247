/**
 * The record: one span, translated, on its way from a decode thread through a ring to a shipper thread. A fixed binary
 * header (little-endian), then the parts, one after the other without padding, in the order of {@link Part}; the whole
 * padded to a multiple of eight bytes. The shipper reads the header and copies parts; it never parses JSON.
 *
 * The shipper itself renders what depends on the tree: `id`, `trace_id`, `parent_run_id`, `dotted_order`, `start_time`
 * and `end_time` (a child that starts before its parent is moved). Everything else of the run is in the parts:
 *
 * | Part          | Bytes                                                                                     |
 * | ------------- | ----------------------------------------------------------------------------------------- |
 * | `Key`         | API key to upload with (UTF-8), never empty                                               |
 * | `Overrides`   | binary, see {@link RecordFlag}                                                            |
 * | `Head`        | members of the run object without braces: `"name":"chat","run_type":"llm",…`; not empty  |
 * | `Inputs`      | a JSON object, or empty when absent                                                       |
 * | `Outputs`     | a JSON object, or empty                                                                   |
 * | `Events`      | a JSON array, or empty                                                                    |
 * | `Extra`       | a JSON object, or empty                                                                   |
 * | `Error`       | a JSON string, or empty                                                                   |
 * | `Serialized`  | a JSON object, or empty                                                                   |
 * | `Attachments` | repeated: u16 name length, u16 MIME type length, u32 data length, name, MIME type, data   |
 */

/** Byte offsets inside the header. */
export const RecordOffset = {
  /** u32: header + parts + padding. */
  TotalBytes: 0,
  /** u32: bits of {@link RecordFlag}. */
  Flags: 4,
  /** 16 bytes. */
  TraceId: 8,
  /** 8 bytes. */
  SpanId: 24,
  /** 8 bytes, zero unless `HasParent`. */
  ParentSpanId: 32,
  /** f64: microseconds since the Unix epoch, an integer (exact below 2^53, that is until the year 2255). */
  StartUs: 40,
  /** f64: as `StartUs`, not before it; meaningless with `NotEnded`. */
  EndUs: 48,
  /** u32: FNV-1a of the Key part, to find its batch without making a string. */
  KeyHash: 56,
  /** u32: number of the request's source body in durable mode, else 0. */
  Source: 60,
  /** u32 for each {@link Part}. */
  PartLengths: 64,
} as const;

/** Index into the part lengths; also the order of the parts in the record. */
export const Part = {
  Key: 0,
  Overrides: 1,
  Head: 2,
  Inputs: 3,
  Outputs: 4,
  Events: 5,
  Extra: 6,
  Error: 7,
  Serialized: 8,
  Attachments: 9,
} as const;

export const PART_COUNT = 10;
export const RECORD_HEADER_BYTES = 64 + 4 * PART_COUNT;
export const RECORD_ALIGN_BYTES = 8;

export const RecordFlag = {
  /** The span names a parent span (not zero, not itself). */
  HasParent: 1 << 0,
  /** `langsmith.is_root`: a root whatever its parent span. */
  ForcedRoot: 1 << 1,
  /** No end time: the run is pending. */
  NotEnded: 1 << 2,
  /** Something about the span is GenAI (FILTER_NON_GENAI keeps it). */
  GenAi: 1 << 3,
  /**
   * The Overrides part holds, in this order and each only when its flag is set: 16 bytes run id, 16 bytes parent run id,
   * 16 bytes trace id (UUIDs, binary), then up to the part's end the dotted order as text.
   */
  HasRunId: 1 << 4,
  HasParentRunId: 1 << 5,
  HasTraceId: 1 << 6,
  HasDottedOrder: 1 << 7,
  /**
   * CONVERTER_MODULE made no run of the span, on purpose or because it failed. The record only tells the span's place:
   * all parts but the first two are empty, the head too.
   */
  ConverterDropped: 1 << 8,
  ConverterFailed: 1 << 9,
} as const;

export function alignRecord(lengthBytes: number): number {
  return (lengthBytes + RECORD_ALIGN_BYTES - 1) & -RECORD_ALIGN_BYTES;
}

/** FNV-1a over `length` bytes, as an unsigned 32-bit integer. */
export function hashBytes(bytes: Uint8Array, offset: number, length: number): number {
  let hash = 0x811c9dc5;
  for (let i = offset, end = offset + length; i < end; i++) {
    hash = Math.imul(hash ^ (bytes[i] ?? 0), 0x01000193);
  }
  return hash >>> 0;
}

/** The shard that a trace belongs to: the last four bytes of its id, which SDKs draw at random, modulo the shards. */
export function shardOf(bytes: Uint8Array, traceIdOffset: number, shardCount: number): number {
  const i = traceIdOffset + 12;
  const low =
    ((bytes[i] ?? 0) | ((bytes[i + 1] ?? 0) << 8) | ((bytes[i + 2] ?? 0) << 16)) + (bytes[i + 3] ?? 0) * 0x1000000;
  return low % shardCount;
}

/** Takes finished records. `bytes` is valid only during the call. False: the pipeline is full, stop decoding. */
export interface RecordSink {
  put(bytes: Uint8Array, offset: number, lengthBytes: number): boolean;
}
