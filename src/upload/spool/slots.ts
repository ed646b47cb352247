/** One key's batches in the spool, in the order in which they came to it. */
import type { Tenant } from '../../core/run.ts';
import type { Parcel } from '../parcel.ts';
import type { SegmentFile } from './file.ts';

export interface Slot {
  /** Order of coming; those of an earlier process come before all others. */
  readonly seq: number;
  readonly queue: SlotQueue;
  readonly runCount: number;
  /** Unix time of the first spooling. */
  readonly createdMs: number;
  phase: 'memory' | 'writing' | 'disk' | 'loading';
  /** While it is in memory. */
  parcel: Parcel | null;
  /** Once it is on disk. */
  place: Place | null;
  attemptCount: number;
  repeated: boolean;
  /** Requests that are kept on disk elsewhere until this batch is on the medium, or needs to be nowhere. */
  sources: Uint32Array | null;
  /** Times that the disk would not give it. */
  unreadCount: number;
}

export interface Place {
  readonly file: SegmentFile;
  readonly offset: number;
  readonly lengthBytes: number;
}

/** Slots given out before the room in front of them is taken back. */
const MAX_GAP = 1024;

export class SlotQueue {
  readonly tenant: Tenant;
  /** Memory of the parcels in it. */
  memoryBytes = 0;
  #slots: Slot[] = [];
  #first = 0;

  constructor(tenant: Tenant) {
    this.tenant = tenant;
  }

  get count(): number {
    return this.#slots.length - this.#first;
  }

  at(index: number): Slot | undefined {
    return this.#slots[this.#first + index];
  }

  shift(): Slot | undefined {
    const slot = this.#slots[this.#first];
    if (slot === undefined) return undefined;
    this.#first++;
    if (this.#first >= MAX_GAP && this.#first * 2 >= this.#slots.length) {
      this.#slots = this.#slots.slice(this.#first);
      this.#first = 0;
    }
    return slot;
  }

  /** At its place in the order. */
  insert(slot: Slot): void {
    const slots = this.#slots;
    if ((slots.at(-1)?.seq ?? Number.NEGATIVE_INFINITY) < slot.seq || this.count === 0) {
      slots.push(slot);
      return;
    }
    let low = this.#first;
    let high = slots.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((slots[middle]?.seq ?? 0) < slot.seq) low = middle + 1;
      else high = middle;
    }
    if (low === this.#first && low > 0) slots[--this.#first] = slot;
    else slots.splice(low, 0, slot);
  }

  /** Takes out and returns all for which the condition holds, in order. */
  extract(condition: (slot: Slot) => boolean): Slot[] {
    const taken: Slot[] = [];
    const kept: Slot[] = [];
    for (let i = this.#first; i < this.#slots.length; i++) {
      const slot = this.#slots[i];
      if (slot !== undefined) (condition(slot) ? taken : kept).push(slot);
    }
    if (taken.length === 0) return taken;
    this.#slots = kept;
    this.#first = 0;
    return taken;
  }

  *[Symbol.iterator](): Generator<Slot> {
    for (let i = this.#first; i < this.#slots.length; i++) {
      const slot = this.#slots[i];
      if (slot !== undefined) yield slot;
    }
  }
}
