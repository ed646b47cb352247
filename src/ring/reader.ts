/**
 * A shard's end of the rings of all producers. In: published records. Out: a window onto them, in place, until
 * `release`. One thread owns it. Empty: `wait`, which sleeps on the shard's doorbell. Stop: the main thread changes the
 * shard's state, which ends the wait. A reader that dies loses nothing: its successor reads again what was not released.
 */
import { RECORD_ALIGN_BYTES } from '../core/record.ts';
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
import type { ShardState } from './state.ts';

/** Where the records lie that a `read` found: record `i` starts at `offset[i]` of `bytes[i]`; its first word is its length. */
export interface RecordWindow {
  count: number;
  /** Shared memory as Buffers: copy parts out with `Buffer.copy`, three times as fast there as `Uint8Array.set`. */
  readonly bytes: Buffer[];
  readonly offset: Int32Array;
}

export function createRecordWindow(maxCount: number): RecordWindow {
  return {
    count: 0,
    bytes: Array.from({ length: maxCount }, () => Buffer.alloc(0)),
    offset: new Int32Array(maxCount),
  };
}

export interface ShardReader {
  /**
   * Fills the window with published records, at most `maxBytes` of them but at least one if there is any, and returns
   * their number. They stay valid and in place until `release`; reading on before that is fine. Producers take turns in
   * being served first.
   */
  read(window: RecordWindow, maxBytes: number): number;
  /** Gives back the room of everything read. */
  release(): void;
  /**
   * Resolves when there may be something to read, when the shard's state has changed, or after `timeoutMs`. Like every
   * `Atomics.waitAsync` it does not keep the event loop alive by itself.
   */
  wait(timeoutMs: number): Promise<void>;
  /** Published and not yet released. */
  readonly backlogBytes: number;
  readonly state: ShardState;
}

/** One ring as the shard's reader sees it. */
interface Lane {
  readonly ring: Buffer;
  readonly ringWords: Int32Array;
  readonly tailWord: Word;
  readonly headWord: Word;
  readonly waitingWord: Word;
  /** Released up to here. */
  head: Position;
  /** Read up to here. */
  cursor: Position;
}

/** Goes on where the shard's last reader had released to. */
export function openShardReader(set: RingSet, shard: number): ShardReader {
  return new LaneReader(set, shard);
}

/** `lib.es2024` has it, the library that this project compiles against does not. */
interface WaitAsync {
  waitAsync(
    words: Int32Array,
    word: number,
    value: number,
    timeoutMs: number,
  ): { async: false } | { async: true; value: Promise<string> };
}

class LaneReader implements ShardReader {
  readonly #words: Int32Array;
  readonly #lanes: readonly Lane[];
  readonly #ringBytes: number;
  readonly #maxRecordBytes: number;
  readonly #doorbell: Word;
  readonly #stateWord: Word;
  /** State as of the last `wait`: a change ends one wait at once, so that a caller cannot spin in later ones. */
  #stateSeen: number;
  #firstLane = 0;

  constructor(set: RingSet, shard: number) {
    const words = new Int32Array(set.control);
    this.#words = words;
    this.#ringBytes = set.ringBytes;
    this.#maxRecordBytes = maxRecordBytes(set);
    this.#doorbell = doorbellWord(set, shard);
    this.#stateWord = stateWord(set, shard);
    this.#stateSeen = Atomics.load(words, this.#stateWord);
    this.#lanes = Array.from({ length: set.producerCount }, (_, slot) => {
      const ring = ringBuffer(set, slot, shard);
      const head = Atomics.load(words, headWord(set, slot, shard)) as Position;
      return {
        ring,
        ringWords: new Int32Array(ring.buffer),
        tailWord: tailWord(set, slot, shard),
        headWord: headWord(set, slot, shard),
        waitingWord: waitingWord(set, slot, shard),
        head,
        cursor: head,
      };
    });
  }

  get backlogBytes(): number {
    let sum = 0;
    for (const lane of this.#lanes) sum += distanceBytes(lane.head, this.#tail(lane));
    return sum;
  }

  get state(): ShardState {
    return Atomics.load(this.#words, this.#stateWord) as ShardState;
  }

  read(window: RecordWindow, maxBytes: number): number {
    window.count = 0;
    let leftBytes = maxBytes;
    for (let i = 0; i < this.#lanes.length && leftBytes > 0; i++) {
      leftBytes = this.#readLane(this.#lane(this.#firstLane + i), window, leftBytes);
    }
    this.#firstLane = (this.#firstLane + 1) % this.#lanes.length;
    return window.count;
  }

  /** Returns what is left of the byte budget; 0 also when the window is full. */
  #readLane(lane: Lane, window: RecordWindow, maxBytes: number): number {
    let leftBytes = maxBytes;
    const tail = this.#tail(lane);
    while (lane.cursor !== tail) {
      const at = lane.cursor & (this.#ringBytes - 1);
      const lengthBytes = lane.ringWords[at >> 2] ?? 0;
      if (lengthBytes === SKIP_MARK) {
        lane.cursor = advance(lane.cursor, this.#ringBytes - at);
        continue;
      }
      if (
        lengthBytes < RECORD_ALIGN_BYTES ||
        lengthBytes > this.#maxRecordBytes ||
        (lengthBytes & (RECORD_ALIGN_BYTES - 1)) !== 0 ||
        at + lengthBytes > this.#ringBytes
      ) {
        throw new Fault(`a record of ${lengthBytes} bytes at ${at} of a ring of ${this.#ringBytes}`);
      }
      if (window.count > 0 && lengthBytes > leftBytes) return 0;
      window.bytes[window.count] = lane.ring;
      window.offset[window.count] = at;
      window.count++;
      lane.cursor = advance(lane.cursor, lengthBytes);
      leftBytes -= lengthBytes;
      if (leftBytes <= 0 || window.count === window.offset.length) return 0;
    }
    return leftBytes;
  }

  release(): void {
    for (const lane of this.#lanes) {
      if (lane.head === lane.cursor) continue;
      lane.head = lane.cursor;
      // Pairs with the producer's `load`: nothing behind this head is read any more.
      Atomics.store(this.#words, lane.headWord, lane.head);
      // After the head, never before: pairs with the producer, which raises its flag first and looks at the head then.
      if (Atomics.load(this.#words, lane.waitingWord) === 1) Atomics.notify(this.#words, lane.headWord);
    }
  }

  wait(timeoutMs: number): Promise<void> {
    // The bell before the tails, never after: pairs with `publish`, which moves the tail first and rings then.
    const bell = Atomics.load(this.#words, this.#doorbell);
    const state = Atomics.load(this.#words, this.#stateWord);
    if (state !== this.#stateSeen) {
      this.#stateSeen = state;
      return Promise.resolve();
    }
    for (const lane of this.#lanes) {
      if (this.#tail(lane) !== lane.cursor) return Promise.resolve();
    }
    const waited = (Atomics as unknown as WaitAsync).waitAsync(this.#words, this.#doorbell, bell, timeoutMs);
    return waited.async ? waited.value.then(nothing) : Promise.resolve();
  }

  /** Pairs with the producer's `store` on publish: every byte in front of it is there. */
  #tail(lane: Lane): Position {
    return Atomics.load(this.#words, lane.tailWord) as Position;
  }

  #lane(index: number): Lane {
    const lane = this.#lanes[index % this.#lanes.length];
    if (lane === undefined) throw new Fault(`lane ${index} of ${this.#lanes.length}`);
    return lane;
  }
}

function nothing(): void {
  // The outcome of a wait ('ok' or 'timed-out') is not told: the caller looks at the rings anyway.
}
