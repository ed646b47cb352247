/**
 * What a shipper thread has in its hand, in shared memory: when it dies, this is what tells which span or batch it died
 * of. The thread writes before it begins with one and after it has come to its end; the main thread reads after a death,
 * and tells the successors ({@link Poison}) what more than one thread died of, so that the shard goes on without it.
 */
import { crc32 } from 'node:zlib';
import { RecordOffset } from '../core/record.ts';
import type { Batch } from './batch.ts';

/** What the hand reads of a record: a RecordView is one. */
interface HeldRecord {
  word(fieldOffset: number): number;
  readonly source: number;
}

/** What threads before this one died of. */
export interface Poison {
  /** By the names of {@link InHand}: not to be touched any more. */
  readonly records: readonly string[];
  readonly batches: readonly string[];
  /** The last one died of a batch: new ones hold one run each for a while, so that the one at fault is found. */
  readonly oneRunEach: boolean;
}

export const NO_POISON: Poison = { records: [], batches: [], oneRunEach: false };

export interface InHand {
  readonly kind: 'record' | 'batch';
  /** Of a record: its trace and span ids in hex. Of a batch: length and checksum of its bytes. */
  readonly name: string;
  /** Number of the request that it came with; 0 where that is not known, as of a batch of several runs. */
  readonly source: number;
}

const Kind = { Nothing: 0, Record: 1, Batch: 2 } as const;
const KIND = 0;
const SOURCE = 1;
/** Six words of ids, or two of a batch. */
const NAME = 2;
const ID_WORDS = 6;
const WORDS = NAME + ID_WORDS;
/** Trace id and span id lie one behind the other in the header. */
const IDS_OFFSET = RecordOffset.TraceId;

export function createHand(): SharedArrayBuffer {
  return new SharedArrayBuffer(WORDS * Uint32Array.BYTES_PER_ELEMENT);
}

/** The thread's side. */
export class Hand {
  readonly #words: Uint32Array;

  constructor(shared: SharedArrayBuffer) {
    this.#words = new Uint32Array(shared);
  }

  /** A few nanoseconds, nothing allocated: called for every span. */
  holdRecord(record: HeldRecord): void {
    const words = this.#words;
    words[KIND] = Kind.Record;
    words[SOURCE] = record.source;
    for (let i = 0; i < ID_WORDS; i++) words[NAME + i] = record.word(IDS_OFFSET + 4 * i);
  }

  /** A checksum over the whole: for what is rare, such as splitting. */
  holdBatch({ body, runCount, runSources }: Batch): void {
    const words = this.#words;
    words[KIND] = Kind.Batch;
    words[SOURCE] = runCount === 1 ? (runSources?.[0] ?? 0) : 0;
    words[NAME] = body.length;
    words[NAME + 1] = crc32(body);
  }

  drop(): void {
    this.#words[KIND] = Kind.Nothing;
  }
}

/** The main thread's side, when the thread is no more. */
export function inHand(shared: SharedArrayBuffer): InHand | null {
  const words = new Uint32Array(shared);
  const source = words[SOURCE] ?? 0;
  switch (words[KIND]) {
    case Kind.Record:
      return { kind: 'record', name: recordName((i) => words[NAME + i] ?? 0), source };
    case Kind.Batch:
      return { kind: 'batch', name: batchNameOf(words[NAME] ?? 0, words[NAME + 1] ?? 0), source };
    default:
      return null;
  }
}

export function nameOfRecord(record: HeldRecord): string {
  return recordName((i) => record.word(IDS_OFFSET + 4 * i));
}

export function nameOfBatch({ body }: Batch): string {
  return batchNameOf(body.length, crc32(body));
}

function recordName(word: (index: number) => number): string {
  const ids = Buffer.alloc(4 * ID_WORDS);
  for (let i = 0; i < ID_WORDS; i++) ids.writeUInt32LE(word(i) >>> 0, 4 * i);
  return `${ids.toString('hex', 0, 16)}:${ids.toString('hex', 16)}`;
}

function batchNameOf(lengthBytes: number, checksum: number): string {
  return `${lengthBytes}:${checksum}`;
}
