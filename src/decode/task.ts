/**
 * What travels between the owner of the decode pool (main thread) and a decode thread. One task holds many request
 * bodies in one *slab*: an ArrayBuffer that is transferred there and, with the outcomes written into it, back for reuse.
 *
 * At the slab's head lies one descriptor a body, 32 bytes; then the small bodies, one after the other. Larger bodies
 * come in buffers of their own. Binary descriptors instead of an array of objects because cloning costs 0.9 µs a body
 * there and back (100 bodies: 86 µs against less than 2), a good part of what a small request may cost at all.
 *
 * | Word | In a task                                    | In a reply                                       |
 * | ---- | -------------------------------------------- | ------------------------------------------------ |
 * | 0    | offset in the slab, or index of its buffer   | {@link OutcomeCode}                              |
 * | 1    | length in bytes                              | accepted spans                                   |
 * | 2    | encoding, coding, whether it has a buffer    | rejected spans                                   |
 * | 3    | API key: index into `texts`                  |                                                  |
 * | 4    | project: index into `texts`, or -1           |                                                  |
 * | 5    | number of the body in durable mode, else 0   |                                                  |
 * | 6, 7 | when it arrived (f64 microseconds)           |                                                  |
 */
import type { BodyCoding, BodyEncoding } from '../core/intake.ts';
import type { Admission } from '../core/outcome.ts';
import { KiB } from '../core/units.ts';
import type { RingSet } from '../ring/layout.ts';
import type { DecoderSettings } from './decoder.ts';

/** Everything a decode thread is told; cloned into its `workerData`. */
export interface DecodeThreadSettings {
  readonly rings: RingSet;
  /** See hands.ts; a slot has the number that it has in the rings. */
  readonly hands: SharedArrayBuffer;
  /** The counter table's memory; for rows see {@link counterRow}. */
  readonly counters: SharedArrayBuffer;
  readonly decoder: DecoderSettings;
  /** After decompression. */
  readonly maxBodyBytes: number;
  /** How long a full ring may stand still before its record is refused. */
  readonly ringWaitMs: number;
  /** How long one body may wait for rings altogether: a slow reader is worth waiting for, but not for ever. */
  readonly bodyWaitMs: number;
  /** Records too large for a ring that one reply carries. */
  readonly maxOversizeBytes: number;
}

export interface DecodeTask {
  /** Not 0; different from that of every task still out. */
  serial: number;
  slab: ArrayBuffer;
  bodyCount: number;
  /** API keys and projects, each once. */
  texts: string[];
  /** Of bodies that are not in the slab. They do not come back. */
  buffers: ArrayBuffer[];
}

export interface DecodeReply {
  slab: ArrayBuffer;
  /** Where `accepted` and two numbers do not say it all. */
  notes: OutcomeNote[];
  /** To be forwarded to their shards' shippers before anybody is told `accepted`. */
  oversize: OversizeRecord[];
  /** Stacks of exceptions that cost one body each; for the log. */
  defects: string[];
  /** Why CONVERTER_MODULE failed, of the first span of the task that it did for; null when there is none. For the log. */
  converterFailure: string | null;
}

export interface OutcomeNote {
  index: number;
  admission: Admission;
}

export interface OversizeRecord {
  shard: number;
  record: ArrayBuffer;
}

/** Asks a thread to get ready, and tells when it is. */
export const HELLO = 'hello';

export const OutcomeCode = {
  /** Never left in a reply. */
  Pending: 0,
  Accepted: 1,
  /** See the note with this body's index. */
  Noted: 2,
} as const;

export const MAX_TASK_BODIES = 256;
const DESCRIPTOR_WORDS = 8;
export const SLAB_HEADER_BYTES = MAX_TASK_BODIES * DESCRIPTOR_WORDS * Int32Array.BYTES_PER_ELEMENT;
/** Bodies in a slab start at multiples of this. */
export const BODY_ALIGN_BYTES = 8;
export const MIN_SLAB_BYTES = SLAB_HEADER_BYTES + 64 * KiB;

/** Row 0 is the main thread's, one row a shipper follows, then one row a decode slot (its thread while it lives). */
export function counterRow(shardCount: number, slot: number): number {
  return 1 + shardCount + slot;
}

const ENCODINGS: readonly BodyEncoding[] = ['protobuf', 'json'];
const CODINGS: readonly BodyCoding[] = ['identity', 'gzip', 'deflate', 'zstd'];
const OWN_BUFFER_BIT = 1 << 8;

/** The descriptors of a slab. */
export class Descriptors {
  readonly #words: Int32Array;
  readonly #floats: Float64Array;

  constructor(slab: ArrayBuffer) {
    this.#words = new Int32Array(slab, 0, MAX_TASK_BODIES * DESCRIPTOR_WORDS);
    this.#floats = new Float64Array(slab, 0, (MAX_TASK_BODIES * DESCRIPTOR_WORDS) / 2);
  }

  write(
    index: number,
    place: number,
    hasBuffer: boolean,
    lengthBytes: number,
    encoding: BodyEncoding,
    coding: BodyCoding,
    keyText: number,
    projectText: number,
    receivedUs: number,
    sourceNumber: number,
  ): void {
    const words = this.#words;
    const at = index * DESCRIPTOR_WORDS;
    words[at] = place;
    words[at + 1] = lengthBytes;
    words[at + 2] = ENCODINGS.indexOf(encoding) | (CODINGS.indexOf(coding) << 4) | (hasBuffer ? OWN_BUFFER_BIT : 0);
    words[at + 3] = keyText;
    words[at + 4] = projectText;
    words[at + 5] = sourceNumber;
    this.#floats[at / 2 + 3] = receivedUs;
  }

  /** Offset in the slab, or index of the buffer. */
  place(index: number): number {
    return this.#word(index, 0);
  }

  hasBuffer(index: number): boolean {
    return (this.#word(index, 2) & OWN_BUFFER_BIT) !== 0;
  }

  lengthBytes(index: number): number {
    return this.#word(index, 1);
  }

  encoding(index: number): BodyEncoding {
    return ENCODINGS[this.#word(index, 2) & 15] ?? 'protobuf';
  }

  coding(index: number): BodyCoding {
    return CODINGS[(this.#word(index, 2) >> 4) & 15] ?? 'identity';
  }

  keyText(index: number): number {
    return this.#word(index, 3);
  }

  /** -1: none. */
  projectText(index: number): number {
    return this.#word(index, 4);
  }

  sourceNumber(index: number): number {
    return this.#word(index, 5) >>> 0;
  }

  receivedUs(index: number): number {
    return this.#floats[(index * DESCRIPTOR_WORDS) / 2 + 3] ?? 0;
  }

  answer(index: number, code: number, acceptedCount: number, rejectedCount: number): void {
    const at = index * DESCRIPTOR_WORDS;
    this.#words[at] = code;
    this.#words[at + 1] = acceptedCount;
    this.#words[at + 2] = rejectedCount;
  }

  outcomeCode(index: number): number {
    return this.#word(index, 0);
  }

  acceptedCount(index: number): number {
    return this.#word(index, 1);
  }

  rejectedCount(index: number): number {
    return this.#word(index, 2);
  }

  /** In bounds by construction: an index is below {@link MAX_TASK_BODIES}. */
  #word(index: number, word: number): number {
    return this.#words[index * DESCRIPTOR_WORDS + word] ?? 0;
  }
}
