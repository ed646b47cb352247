/** What is remembered of every span: where it hangs, when it started, whether its place is known. One row of 48 bytes each. */
import { SlotIndex } from './slots.ts';

/** What is known of a span. */
export const SpanState = {
  /** A child names it; it has not arrived. */
  Awaited: 1,
  /** Arrived; some ancestor has not. */
  Waiting: 2,
  /** Its ancestors are known up to the root: its dotted order is certain and will not change. */
  Placed: 3,
  /** Awaited in vain: its children hang on what stands in for it. */
  Abandoned: 4,
} as const;

export const SpanFlag = {
  /** Its run id is the trace id. */
  TraceId: 1 << 0,
  /** Its run id is given (see {@link SpanTable.givenIds}). */
  GivenId: 1 << 1,
  /** Its whole dotted order is given (see {@link SpanTable.givenOrders}). */
  GivenOrder: 1 << 2,
  /** It makes no run; its children hang on its parent. */
  Filtered: 1 << 3,
  /** Its start was moved to its parent's. */
  Clamped: 1 << 4,
} as const;

/** No slot. */
export const NONE = -1;

/** Words of a row. The key: the trace's slot, then the eight bytes of the span id as they lie. */
const TRACE = 0;
const ID = 1;
const KEY_WORDS = 3;
const PARENT = 3;
/** Two words: the third double. */
const START_DOUBLE = 2;
const FIRST_CHILD = 6;
const NEXT_SIBLING = 7;
const NEXT_IN_TRACE = 8;
const ENTRY = 9;
/** From the lowest bit: a byte of state, a byte of flags, two bytes of depth. */
const STATUS = 10;
const ROW_WORDS = 12;
const ROW_DOUBLES = ROW_WORDS / 2;

const BYTE = 0xff;
const FLAGS_SHIFT = 8;
const DEPTH_SHIFT = 16;

export class SpanTable {
  /** Rare, hence not in the rows. */
  readonly givenIds = new Map<number, Buffer>();
  readonly givenOrders = new Map<number, Buffer>();
  readonly #index: SlotIndex;

  constructor(capacity: number) {
    this.#index = new SlotIndex(KEY_WORDS, ROW_WORDS, capacity);
  }

  get count(): number {
    return this.#index.count;
  }

  /** Whether the last {@link intern} made the row; it is then as good as empty, and its state is Awaited. */
  get added(): boolean {
    return this.#index.added;
  }

  intern(trace: number, idLow: number, idHigh: number): number {
    const index = this.#index;
    index.probe[0] = trace;
    index.probe[1] = idLow;
    index.probe[2] = idHigh;
    const slot = index.intern();
    if (index.added) {
      const { words } = index;
      const row = slot * ROW_WORDS;
      words[row + STATUS] = SpanState.Awaited;
      words[row + PARENT] = NONE;
      words[row + FIRST_CHILD] = NONE;
      words[row + ENTRY] = NONE;
    }
    return slot;
  }

  /** NONE if there is no such span. */
  find(trace: number, idLow: number, idHigh: number): number {
    const index = this.#index;
    index.probe[0] = trace;
    index.probe[1] = idLow;
    index.probe[2] = idHigh;
    return index.find();
  }

  remove(slot: number): void {
    const flags = this.flags(slot);
    if ((flags & SpanFlag.GivenId) !== 0) this.givenIds.delete(slot);
    if ((flags & SpanFlag.GivenOrder) !== 0) this.givenOrders.delete(slot);
    this.#index.remove(slot);
  }

  traceOf(slot: number): number {
    return this.#get(slot, TRACE);
  }

  /** The first (0) or last (1) four bytes of the span id. */
  idWord(slot: number, half: 0 | 1): number {
    return this.#get(slot, ID + half);
  }

  /** {@link SpanState}; 0 of {@link NONE}, as are its flags and its depth. */
  state(slot: number): number {
    return this.#get(slot, STATUS) & BYTE;
  }

  setState(slot: number, state: number): void {
    this.#set(slot, STATUS, (this.#get(slot, STATUS) & ~BYTE) | state);
  }

  /** {@link SpanFlag} */
  flags(slot: number): number {
    return (this.#get(slot, STATUS) >>> FLAGS_SHIFT) & BYTE;
  }

  setFlags(slot: number, flags: number): void {
    this.#set(slot, STATUS, (this.#get(slot, STATUS) & ~(BYTE << FLAGS_SHIFT)) | (flags << FLAGS_SHIFT));
  }

  addFlag(slot: number, flag: number): void {
    this.#set(slot, STATUS, this.#get(slot, STATUS) | (flag << FLAGS_SHIFT));
  }

  /** Number of segments of its dotted order, once placed. */
  depth(slot: number): number {
    return this.#get(slot, STATUS) >>> DEPTH_SHIFT;
  }

  setDepth(slot: number, depth: number): void {
    this.#set(slot, STATUS, (this.#get(slot, STATUS) & ((1 << DEPTH_SHIFT) - 1)) | (depth << DEPTH_SHIFT));
  }

  /** Slot of the parent span: as named until the span is placed, then the nearest one that makes a run; NONE for roots. */
  parent(slot: number): number {
    return this.#index.words[slot * ROW_WORDS + PARENT] ?? NONE;
  }

  setParent(slot: number, parent: number): void {
    this.#set(slot, PARENT, parent);
  }

  startUs(slot: number): number {
    return this.#index.doubles[slot * ROW_DOUBLES + START_DOUBLE] ?? 0;
  }

  setStartUs(slot: number, startUs: number): void {
    this.#index.doubles[slot * ROW_DOUBLES + START_DOUBLE] = startUs;
  }

  /** Spans that wait for this one, linked by `nextSibling`. */
  firstChild(slot: number): number {
    return this.#get(slot, FIRST_CHILD);
  }

  setFirstChild(slot: number, child: number): void {
    this.#set(slot, FIRST_CHILD, child);
  }

  nextSibling(slot: number): number {
    return this.#get(slot, NEXT_SIBLING);
  }

  setNextSibling(slot: number, sibling: number): void {
    this.#set(slot, NEXT_SIBLING, sibling);
  }

  /** All spans of a trace. */
  nextInTrace(slot: number): number {
    return this.#get(slot, NEXT_IN_TRACE);
  }

  setNextInTrace(slot: number, next: number): void {
    this.#set(slot, NEXT_IN_TRACE, next);
  }

  /** Where its record is parked, else NONE. */
  entry(slot: number): number {
    return this.#get(slot, ENTRY);
  }

  setEntry(slot: number, entry: number): void {
    this.#set(slot, ENTRY, entry);
  }

  #get(slot: number, word: number): number {
    return this.#index.words[slot * ROW_WORDS + word] ?? 0;
  }

  #set(slot: number, word: number, value: number): void {
    this.#index.words[slot * ROW_WORDS + word] = value;
  }
}
