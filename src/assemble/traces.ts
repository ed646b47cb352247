/**
 * The traces that are remembered, each belonging to one tenant, in two lists by how recently a span arrived: those in
 * which spans wait, and the quiet rest, which is forgotten first. One row of 56 bytes each.
 */
import type { Tenant } from '../core/run.ts';
import { SlotIndex } from './slots.ts';
import { NONE } from './spans.ts';

/** Words of a row. The key: the tenant's number, then the sixteen bytes of the trace id as they lie. */
const ID = 1;
const KEY_WORDS = 5;
const ROOT = 5;
const FIRST_SPAN = 6;
const PARKED_COUNT = 7;
const NEWER = 8;
const OLDER = 9;
/** Two words each: the sixth and the seventh double. */
const EARLIEST_DOUBLE = 5;
const TOUCHED_DOUBLE = 6;
const ROW_WORDS = 14;
const ROW_DOUBLES = ROW_WORDS / 2;

const QUIET = 0;
const WAITING = 1;

export class TraceTable {
  readonly #tenants: (Tenant | undefined)[] = [];
  readonly #index: SlotIndex;
  readonly #newest = [NONE, NONE];
  readonly #oldest = [NONE, NONE];

  constructor(capacity: number) {
    this.#index = new SlotIndex(KEY_WORDS, ROW_WORDS, capacity);
  }

  get count(): number {
    return this.#index.count;
  }

  /** The words are the trace id's; the trace counts as touched now. */
  intern(tenant: Tenant, a: number, b: number, c: number, d: number, nowMs: number): number {
    const probe = this.#index.probe;
    probe[0] = tenant.number;
    probe[1] = a;
    probe[2] = b;
    probe[3] = c;
    probe[4] = d;
    const trace = this.#index.intern();
    this.touch(trace, nowMs);
    if (this.#index.added) {
      this.setRoot(trace, NONE);
      this.setFirstSpan(trace, NONE);
      this.#set(trace, PARKED_COUNT, 0);
      this.setEarliestUs(trace, Number.POSITIVE_INFINITY);
      this.#tenants[trace] = tenant;
      this.#link(QUIET, trace);
    } else {
      const list = this.#listOf(trace);
      if (this.#newest[list] !== trace) {
        this.#unlink(list, trace);
        this.#link(list, trace);
      }
    }
    return trace;
  }

  /** Its spans must have been removed. */
  remove(trace: number): void {
    this.#unlink(this.#listOf(trace), trace);
    this.#tenants[trace] = undefined;
    this.#index.remove(trace);
  }

  tenantOf(trace: number): Tenant | undefined {
    return this.#tenants[trace];
  }

  /** A word of the trace id. */
  idWord(trace: number, word: 0 | 1 | 2 | 3): number {
    return this.#get(trace, ID + word);
  }

  /** The root that orphans hang on, once there is one. */
  root(trace: number): number {
    return this.#get(trace, ROOT);
  }

  setRoot(trace: number, span: number): void {
    this.#set(trace, ROOT, span);
  }

  /** All its spans, linked by the span table's `nextInTrace`. */
  firstSpan(trace: number): number {
    return this.#get(trace, FIRST_SPAN);
  }

  setFirstSpan(trace: number, span: number): void {
    this.#set(trace, FIRST_SPAN, span);
  }

  /** Earliest start of any of its spans. */
  earliestUs(trace: number): number {
    return this.#index.doubles[trace * ROW_DOUBLES + EARLIEST_DOUBLE] ?? 0;
  }

  setEarliestUs(trace: number, startUs: number): void {
    this.#index.doubles[trace * ROW_DOUBLES + EARLIEST_DOUBLE] = startUs;
  }

  touchedMs(trace: number): number {
    return this.#index.doubles[trace * ROW_DOUBLES + TOUCHED_DOUBLE] ?? 0;
  }

  touch(trace: number, nowMs: number): void {
    this.#index.doubles[trace * ROW_DOUBLES + TOUCHED_DOUBLE] = nowMs;
  }

  /** Records of it that are parked. */
  parkedCount(trace: number): number {
    return this.#get(trace, PARKED_COUNT);
  }

  addParked(trace: number, count: 1 | -1): void {
    const before = this.#listOf(trace);
    this.#set(trace, PARKED_COUNT, this.parkedCount(trace) + count);
    const after = this.#listOf(trace);
    if (before === after) return;
    this.#unlink(before, trace);
    this.#link(after, trace);
  }

  /** The trace without a span for the longest time; those in which spans wait only when there is no other. */
  get quietest(): number {
    const quiet = this.#oldest[QUIET] ?? NONE;
    return quiet === NONE ? (this.#oldest[WAITING] ?? NONE) : quiet;
  }

  /** The trace without waiting spans that was untouched for the longest time. */
  get quietestComplete(): number {
    return this.#oldest[QUIET] ?? NONE;
  }

  #listOf(trace: number): typeof QUIET | typeof WAITING {
    return this.parkedCount(trace) > 0 ? WAITING : QUIET;
  }

  #link(list: number, trace: number): void {
    const second = this.#newest[list] ?? NONE;
    this.#set(trace, OLDER, second);
    this.#set(trace, NEWER, NONE);
    if (second === NONE) this.#oldest[list] = trace;
    else this.#set(second, NEWER, trace);
    this.#newest[list] = trace;
  }

  #unlink(list: number, trace: number): void {
    const newer = this.#get(trace, NEWER);
    const older = this.#get(trace, OLDER);
    if (newer === NONE) this.#newest[list] = older;
    else this.#set(newer, OLDER, older);
    if (older === NONE) this.#oldest[list] = newer;
    else this.#set(older, NEWER, newer);
  }

  #get(trace: number, word: number): number {
    return this.#index.words[trace * ROW_WORDS + word] ?? NONE;
  }

  #set(trace: number, word: number, value: number): void {
    this.#index.words[trace * ROW_WORDS + word] = value;
  }
}
