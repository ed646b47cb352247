/**
 * The producer's end of all rings of one slot. In: finished records. Out: the same bytes in shared memory, visible to
 * the shards' readers after `publish`. One thread owns it. Full: `offer` says no and the record stays the caller's.
 * Stop: nothing to do; what was not published never existed.
 */
import { RECORD_ALIGN_BYTES, RecordOffset } from '../core/record.ts';
import { Fault } from '../core/outcome.ts';
import {
  advance,
  distanceBytes,
  doorbellWord,
  headWord,
  maxRecordBytes,
  ringBuffer,
  SKIP_MARK,
  stateWord,
  tailWord,
  waitingWord,
  type Position,
  type RingSet,
  type Word,
} from './layout.ts';
import { ShardState } from './state.ts';

export interface RingWriter {
  /** Largest record that a ring takes; larger ones go the oversize path. */
  readonly maxRecordBytes: number;
  /** What is free now; a record may need up to its own length more, where it would cross the ring's end. */
  freeBytes(shard: number): number;
  /** Changes whenever the shard's reader gives room back: the same value later means that nothing has moved since. */
  progress(shard: number): number;
  /**
   * Copies one record in, of which the first word is `lengthBytes`, a multiple of eight. False when there is no room
   * (never waits). Not visible to the reader before `publish`.
   */
  offer(shard: number, bytes: Uint8Array, offset: number, lengthBytes: number): boolean;
  /** Makes everything offered visible and wakes the shards' readers. */
  publish(): void;
  /** Forgets what was offered since the last publish. */
  discard(): void;
  /**
   * Blocks this thread until the shard has room for a record of this length (true), or `timeoutMs` passed, or nobody
   * reads the shard (false). Publish before: a reader frees only what it can see.
   */
  waitForSpace(shard: number, lengthBytes: number, timeoutMs: number): boolean;
}

/** One ring as its producer sees it. */
interface Lane {
  readonly ring: Buffer;
  readonly tailWord: Word;
  readonly headWord: Word;
  readonly waitingWord: Word;
  readonly doorbellWord: Word;
  readonly stateWord: Word;
  /** Published up to here. */
  tail: Position;
  /** Offered up to here. */
  next: Position;
  /** The reader's head as last loaded: the real one is never behind it. */
  head: Position;
}

/** Opens the slot, which this thread has claimed, where its last owner had published to. */
export function openRingWriter(set: RingSet, slot: number): RingWriter {
  return new SlotWriter(set, slot);
}

class SlotWriter implements RingWriter {
  readonly maxRecordBytes: number;
  readonly #words: Int32Array;
  readonly #lanes: readonly Lane[];
  readonly #ringBytes: number;
  /** The `bytes` of the last offer, and a Buffer over it: a translator passes the same array again and again. */
  #bytes: Uint8Array = new Uint8Array();
  #source: Buffer = Buffer.alloc(0);

  constructor(set: RingSet, slot: number) {
    this.maxRecordBytes = maxRecordBytes(set);
    this.#ringBytes = set.ringBytes;
    const words = new Int32Array(set.control);
    this.#words = words;
    this.#lanes = Array.from({ length: set.shardCount }, (_, shard) => {
      const tail = Atomics.load(words, tailWord(set, slot, shard)) as Position;
      // A thread that died while waiting left its flag behind.
      Atomics.store(words, waitingWord(set, slot, shard), 0);
      return {
        ring: ringBuffer(set, slot, shard),
        tailWord: tailWord(set, slot, shard),
        headWord: headWord(set, slot, shard),
        waitingWord: waitingWord(set, slot, shard),
        doorbellWord: doorbellWord(set, shard),
        stateWord: stateWord(set, shard),
        tail,
        next: tail,
        head: Atomics.load(words, headWord(set, slot, shard)) as Position,
      };
    });
  }

  freeBytes(shard: number): number {
    const lane = this.#lane(shard);
    lane.head = Atomics.load(this.#words, lane.headWord) as Position;
    return this.#ringBytes - distanceBytes(lane.head, lane.next);
  }

  progress(shard: number): number {
    return Atomics.load(this.#words, this.#lane(shard).headWord);
  }

  offer(shard: number, bytes: Uint8Array, offset: number, lengthBytes: number): boolean {
    const lane = this.#lane(shard);
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#source = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    }
    if (
      (lengthBytes & (RECORD_ALIGN_BYTES - 1)) !== 0 ||
      lengthBytes > this.maxRecordBytes ||
      lengthBytes < RECORD_ALIGN_BYTES ||
      this.#source.readUInt32LE(offset + RecordOffset.TotalBytes) !== lengthBytes
    ) {
      throw new Fault(`a record of ${lengthBytes} bytes does not state its length, or does not fit a ring`);
    }
    const neededBytes = this.#skipBytes(lane, lengthBytes) + lengthBytes;
    if (distanceBytes(lane.head, lane.next) + neededBytes > this.#ringBytes) {
      // Pairs with the reader's `store` on release: after this load it will not touch what lies behind the head.
      lane.head = Atomics.load(this.#words, lane.headWord) as Position;
      if (distanceBytes(lane.head, lane.next) + neededBytes > this.#ringBytes) return false;
    }
    let at = lane.next & (this.#ringBytes - 1);
    if (neededBytes > lengthBytes) {
      lane.ring.writeUInt32LE(SKIP_MARK, at);
      at = 0;
    }
    this.#source.copy(lane.ring, at, offset, offset + lengthBytes);
    lane.next = advance(lane.next, neededBytes);
    return true;
  }

  publish(): void {
    for (const lane of this.#lanes) {
      if (lane.next === lane.tail) continue;
      lane.tail = lane.next;
      // Pairs with the reader's `load`: it sees all bytes in front of this tail.
      Atomics.store(this.#words, lane.tailWord, lane.tail);
      // After the tail, never before: pairs with the reader, which loads the bell first and the tails then.
      Atomics.add(this.#words, lane.doorbellWord, 1);
      // 23 ns when nobody waits: not worth a flag that says so.
      Atomics.notify(this.#words, lane.doorbellWord);
    }
  }

  discard(): void {
    for (const lane of this.#lanes) lane.next = lane.tail;
  }

  waitForSpace(shard: number, lengthBytes: number, timeoutMs: number): boolean {
    const lane = this.#lane(shard);
    const neededBytes = this.#skipBytes(lane, lengthBytes) + lengthBytes;
    const deadlineMs = performance.now() + timeoutMs;
    // Before the `wait` compares the head: pairs with the reader, which stores the head first and looks here then.
    Atomics.store(this.#words, lane.waitingWord, 1);
    try {
      for (;;) {
        lane.head = Atomics.load(this.#words, lane.headWord) as Position;
        if (distanceBytes(lane.head, lane.next) + neededBytes <= this.#ringBytes) return true;
        if (Atomics.load(this.#words, lane.stateWord) === ShardState.Dead) return false;
        const leftMs = deadlineMs - performance.now();
        if (leftMs <= 0) return false;
        // Pairs with the reader's `notify` after a release; a head that has moved meanwhile ends it at once.
        Atomics.wait(this.#words, lane.headWord, lane.head, leftMs);
      }
    } finally {
      Atomics.store(this.#words, lane.waitingWord, 0);
    }
  }

  /** What is left until the ring's end, if the record must start over at the beginning. */
  #skipBytes(lane: Lane, lengthBytes: number): number {
    const untilEndBytes = this.#ringBytes - (lane.next & (this.#ringBytes - 1));
    return untilEndBytes < lengthBytes ? untilEndBytes : 0;
  }

  #lane(shard: number): Lane {
    const lane = this.#lanes[shard];
    if (lane === undefined) throw new Fault(`shard ${shard} of ${this.#lanes.length}`);
    return lane;
  }
}
