/**
 * Shared memory between decode threads (producers) and shipper threads (readers): for every producer slot and every
 * shard one byte ring with a single producer and a single reader, so no word below is ever fought over in a loop.
 *
 * A ring is a power of two of bytes. Positions run freely over 32 bits and wrap; `position & (ringBytes - 1)` is the
 * place in the ring, `tail - head` (modulo 2^32) what is in use, so that exactly full and empty differ. A record lies
 * in one piece: where it would cross the end, the producer leaves {@link SKIP_MARK} and starts over at the beginning.
 * A record may take at most half a ring: then an empty ring takes it whatever the skip costs.
 *
 * Everything is visible by publishing: the producer copies bytes with plain stores beyond the tail and then moves the
 * tail with one `Atomics.store`. A thread that dies in between leaves nothing behind: its successor starts at the tail.
 * Bytes in front of the tail are the reader's until it moves the head. JavaScript's Atomics are sequentially
 * consistent, so plain stores before an `Atomics.store` are seen after the `Atomics.load` that sees its value.
 *
 * The control words, each in a cache line of its own with the words of the same writer only:
 *
 * | Word       | One per      | Written by                                   | Read by                                     |
 * | ---------- | ------------ | -------------------------------------------- | ------------------------------------------- |
 * | `Doorbell` | shard        | producers, main thread: `add` + `notify`     | reader: `load` before it looks at tails,    |
 * |            |              | (the one word of many writers: a counter     | then `waitAsync` for a change               |
 * |            |              | that nobody ever stores to)                  |                                             |
 * | `State`    | shard        | main thread: `store`, then rings the bell    | producer: `load` before it waits and on     |
 * |            |              | and wakes waiting producers                  | every wake; reader: `load` before it waits  |
 * | `Owner`    | slot         | claiming thread: `compareExchange` 0 → id;   | claiming threads: `compareExchange`         |
 * |            |              | main thread: `compareExchange` id → 0 once   |                                             |
 * |            |              | that thread has exited                       |                                             |
 * | `Releases` | set          | main thread: `add` after it freed slots,     | claiming thread: `load` before it looks for |
 * |            |              | then `notify`                                | a free slot, then `wait` for a change       |
 * | `Tail`     | ring         | producer: `store` on publish                 | reader: `load`                              |
 * | `Waiting`  | ring         | producer: `store` 1, then `wait` on `Head`;  | reader: `load` after its `store` of `Head`, |
 * |            |              | `store` 0 when done                          | `notify` on `Head` only if it is 1          |
 * | `Head`     | ring         | reader: `store` on release                   | producer: `load`, `wait`                    |
 *
 * Neither wake-up can be lost. Space: the producer stores `Waiting` and then `wait` compares `Head` with what was too
 * little, the reader stores `Head` and then loads `Waiting`; in any order of these four one of them sees the other's
 * store. Records: the reader loads `Doorbell` and then the tails, the producer stores its tail and then adds to
 * `Doorbell`; a reader that missed the tail therefore waits for a value that has gone or will go. (All orders are played
 * through in test/unit/ring-interleavings.test.ts.) A producer killed between the two leaves the bell silent: the
 * reader's wait is bounded, and releasing the dead slot rings every bell.
 */
import { Fault } from '../core/outcome.ts';
import { GiB, KiB } from '../core/units.ts';

/** Index into the control words (32 bits each). */
export type Word = number & { readonly brand: 'word' };
/** Free-running byte position of a ring, an int32 that wraps. */
export type Position = number & { readonly brand: 'position' };

/** Structured-cloneable; the memory itself is shared. */
export interface RingSet {
  readonly producerCount: number;
  readonly shardCount: number;
  /** Of one ring; a power of two. */
  readonly ringBytes: number;
  readonly control: SharedArrayBuffer;
  /** Ring of slot `p` and shard `s` at `p * shardCount + s`. One buffer a ring: no 4 GiB limit for them together. */
  readonly rings: readonly SharedArrayBuffer[];
}

/** In place of a record's TotalBytes, which is never zero: go on at the beginning of the ring. */
export const SKIP_MARK = 0;

/** 128 bytes: processors fetch cache lines in pairs. */
const LINE_WORDS = 32;
const MIN_RING_BYTES = KiB;
const MAX_RING_BYTES = GiB;

export function createRingSet(settings: { producerCount: number; shardCount: number; ringBytes: number }): RingSet {
  const { producerCount, shardCount, ringBytes } = settings;
  if (!(Number.isInteger(producerCount) && producerCount > 0)) throw new Fault(`${producerCount} producers`);
  if (!(Number.isInteger(shardCount) && shardCount > 0)) throw new Fault(`${shardCount} shards`);
  if (!(ringBytes >= MIN_RING_BYTES && ringBytes <= MAX_RING_BYTES) || (ringBytes & (ringBytes - 1)) !== 0) {
    throw new Fault(`a ring of ${ringBytes} bytes is not a power of two from 1 KiB to 1 GiB`);
  }
  const lineCount = 1 + 2 * shardCount + producerCount + 2 * producerCount * shardCount;
  return {
    producerCount,
    shardCount,
    ringBytes,
    control: new SharedArrayBuffer(lineCount * LINE_WORDS * Int32Array.BYTES_PER_ELEMENT),
    rings: Array.from({ length: producerCount * shardCount }, () => new SharedArrayBuffer(ringBytes)),
  };
}

export function releasesWord(): Word {
  return lineWord(0);
}

export function doorbellWord(set: RingSet, shard: number): Word {
  return lineWord(1 + 2 * checkShard(set, shard));
}

export function stateWord(set: RingSet, shard: number): Word {
  return lineWord(2 + 2 * checkShard(set, shard));
}

export function ownerWord(set: RingSet, slot: number): Word {
  return lineWord(1 + 2 * set.shardCount + checkSlot(set, slot));
}

/** The producer's line: `Tail`, then `Waiting`. */
export function tailWord(set: RingSet, slot: number, shard: number): Word {
  return lineWord(1 + 2 * set.shardCount + set.producerCount + 2 * ringIndex(set, slot, shard));
}

export function waitingWord(set: RingSet, slot: number, shard: number): Word {
  return (tailWord(set, slot, shard) + 1) as Word;
}

/** The reader's line. */
export function headWord(set: RingSet, slot: number, shard: number): Word {
  return (tailWord(set, slot, shard) + LINE_WORDS) as Word;
}

/** As a `Buffer`, whose `copy` moves 8 KiB in 125 ns where `Uint8Array.set` on shared memory takes 318 ns. */
export function ringBuffer(set: RingSet, slot: number, shard: number): Buffer {
  const memory = set.rings[ringIndex(set, slot, shard)];
  if (memory === undefined) throw new Fault(`no ring of slot ${slot}, shard ${shard}`);
  return Buffer.from(memory);
}

export function maxRecordBytes(set: RingSet): number {
  return set.ringBytes / 2;
}

/** Bytes from `from` to `to`, modulo 2^32. */
export function distanceBytes(from: Position, to: Position): number {
  return (to - from) >>> 0;
}

export function advance(position: Position, bytes: number): Position {
  return ((position + bytes) | 0) as Position;
}

function ringIndex(set: RingSet, slot: number, shard: number): number {
  return checkSlot(set, slot) * set.shardCount + checkShard(set, shard);
}

function lineWord(line: number): Word {
  return (line * LINE_WORDS) as Word;
}

function checkSlot(set: RingSet, slot: number): number {
  if (!(slot >= 0 && slot < set.producerCount)) throw new Fault(`producer slot ${slot} of ${set.producerCount}`);
  return slot;
}

function checkShard(set: RingSet, shard: number): number {
  if (!(shard >= 0 && shard < set.shardCount)) throw new Fault(`shard ${shard} of ${set.shardCount}`);
  return shard;
}
