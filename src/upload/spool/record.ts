/**
 * A batch on disk. All numbers are little-endian:
 *
 * | Offset | Bytes | What                                                                                        |
 * | ------ | ----- | ------------------------------------------------------------------------------------------- |
 * | 0      | 4     | {@link MAGIC}                                                                               |
 * | 4      | 4     | length of the meta data                                                                     |
 * | 8      | 4     | length of the content                                                                       |
 * | 12     | 4     | CRC-32 of the twelve bytes above and the meta data                                          |
 * | 16     | 4     | CRC-32 of the content                                                                       |
 * | 20     | 1     | {@link RecordState}: written again by whoever has the folder, and in no checksum            |
 * | 21     | 1     | {@link RecordState.Purged} once the operator has given it up, else zero; in no checksum     |
 * | 22     | 10    | zero                                                                                        |
 * | 32     |       | meta data: {@link RecordMeta} as JSON, with the API key: hence files that only their owner reads |
 * |        |       | content: u32 for each run and one more, where it begins in the plain body; then the encoded body |
 *
 * Two checksums, so that a folder can be looked through without reading its contents.
 */
import { crc32 } from 'node:zlib';
import { GiB, MiB } from '../../core/units.ts';
import type { Batch } from '../batch.ts';
import type { Coding } from '../compress.ts';

/** `CPR1`. */
export const MAGIC = 0x31525043;
export const RECORD_HEAD_BYTES = 32;
export const STATE_OFFSET = 20;
/** The operator's own: what the process that has the folder writes at the same moment does not undo it. */
const PURGED_OFFSET = STATE_OFFSET + 1;
/** Of the meta data. */
export const RECORD_VERSION = 1;
/** Beyond these a length is not believed. */
const MAX_META_BYTES = MiB;
const MAX_CONTENT_BYTES = 2 * GiB;

export const RecordState = {
  /** Never attempted from here. */
  Waiting: 0,
  /** An attempt has begun: the backend may have it. */
  Attempted: 1,
  /** Delivered, or kept elsewhere. */
  Done: 2,
  /** Given up by the operator. */
  Purged: 3,
} as const;

export interface RecordMeta {
  readonly version: number;
  readonly key: string;
  readonly boundary: string;
  readonly coding: Coding;
  readonly plainBytes: number;
  readonly runs: number;
  /** Unix time of the first spooling. */
  readonly createdMs: number;
  /** Attempts before that. */
  readonly attempts: number;
  /** One of them may have arrived: a 409 then means delivered. */
  readonly repeated: boolean;
  /** Its single run has been cut short once. */
  readonly truncated: boolean;
  /** Of a dead letter: why, as counted, and what the backend said. */
  readonly code?: string;
  readonly reason?: string;
}

/** What the head of a record says. */
export interface RecordHead {
  readonly metaBytes: number;
  readonly contentBytes: number;
  readonly headCrc: number;
  readonly contentCrc: number;
  readonly state: number;
}

/** In pieces, to be written one after the other; the last is the batch's own body. */
export function encodeRecord(batch: Batch, meta: RecordMeta): readonly Buffer[] {
  const text = Buffer.from(JSON.stringify(meta));
  const starts = Buffer.alloc(4 * batch.runStarts.length);
  batch.runStarts.forEach((start, run) => starts.writeUInt32LE(start, 4 * run));
  const head = Buffer.alloc(RECORD_HEAD_BYTES);
  head.writeUInt32LE(MAGIC, 0);
  head.writeUInt32LE(text.length, 4);
  head.writeUInt32LE(starts.length + batch.body.length, 8);
  head.writeUInt32LE(crc32(text, crc32(head.subarray(0, 12))), 12);
  head.writeUInt32LE(crc32(batch.body, crc32(starts)), 16);
  return [head, text, starts, batch.body];
}

export function metaOf(batch: Batch, more: Omit<RecordMeta, 'version' | 'key' | keyof BatchMeta>): RecordMeta {
  const { tenant, boundary, coding, plainBytes, runCount } = batch;
  return { version: RECORD_VERSION, key: tenant.apiKey, boundary, coding, plainBytes, runs: runCount, ...more };
}

interface BatchMeta {
  boundary: unknown;
  coding: unknown;
  plainBytes: unknown;
  runs: unknown;
}

/** Null where no record can begin. */
export function readHead(bytes: Buffer, at: number): RecordHead | null {
  if (at + RECORD_HEAD_BYTES > bytes.length || bytes.readUInt32LE(at) !== MAGIC) return null;
  const head = {
    metaBytes: bytes.readUInt32LE(at + 4),
    contentBytes: bytes.readUInt32LE(at + 8),
    headCrc: bytes.readUInt32LE(at + 12),
    contentCrc: bytes.readUInt32LE(at + 16),
    state: bytes[at + PURGED_OFFSET] === RecordState.Purged ? RecordState.Purged : (bytes[at + STATE_OFFSET] ?? 0),
  };
  return head.metaBytes <= MAX_META_BYTES && head.contentBytes <= MAX_CONTENT_BYTES ? head : null;
}

/**
 * `bytes` holds the head at `at` and the whole meta data behind it. Null when they are damaged. Of another version only
 * `version` is what it seems.
 */
export function readMeta(bytes: Buffer, at: number, head: RecordHead): RecordMeta | null {
  const text = bytes.subarray(at + RECORD_HEAD_BYTES, at + RECORD_HEAD_BYTES + head.metaBytes);
  if (text.length !== head.metaBytes) return null;
  if (crc32(text, crc32(bytes.subarray(at, at + 12))) !== head.headCrc) return null;
  // The checksum says that we wrote it: whatever its version, it is JSON.
  return JSON.parse(text.toString('utf8')) as RecordMeta;
}

/** A byte that is none of its values is damaged: sent once too often does no harm. */
export function isLive(state: number): boolean {
  return state !== RecordState.Done && state !== RecordState.Purged;
}

export interface StoredBatch {
  /** Without its tenant's number, which is a matter of the thread that reads it. */
  readonly batch: Batch;
  readonly meta: RecordMeta;
  readonly state: number;
}

/** The whole record, as it lies in the file. Null when a checksum does not fit. */
export function decodeRecord(bytes: Buffer): StoredBatch | null {
  const head = readHead(bytes, 0);
  const meta = head === null ? null : readMeta(bytes, 0, head);
  if (head === null || meta?.version !== RECORD_VERSION) return null;
  const content = bytes.subarray(RECORD_HEAD_BYTES + head.metaBytes);
  if (content.length !== head.contentBytes || crc32(content) !== head.contentCrc) return null;
  const startsBytes = 4 * (meta.runs + 1);
  if (content.length < startsBytes) return null;
  const runStarts = Uint32Array.from({ length: meta.runs + 1 }, (_, run) => content.readUInt32LE(4 * run));
  const batch: Batch = {
    tenant: { number: 0, apiKey: meta.key },
    boundary: meta.boundary,
    coding: meta.coding,
    body: content.subarray(startsBytes),
    plainBytes: meta.plainBytes,
    runCount: meta.runs,
    runStarts,
    runSources: null,
  };
  return { batch, meta, state: head.state };
}
