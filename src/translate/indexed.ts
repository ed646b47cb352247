/**
 * Families of attributes with numbers in their keys (`gen_ai.prompt.0.role`): groups the entries that the kernel listed
 * by their first number, in ascending order; gaps are legal, and emitters need not send them in order.
 */
import type { Attributes } from './attributes.ts';
import { Fault } from '../core/outcome.ts';
import { ValueType } from './kernel/kernel.ts';
import type { Kernel } from './kernel/kernel.ts';
import type { Keys } from './keys.ts';

const INITIAL_ENTRIES = 256;
/** Families are bits of a mask. */
const MAX_FAMILIES = 30;

/** A family's bit. */
export type Family = number;
/** A field within a family; from 1. */
export type FieldCode = number;

/** Declares families; the setup half of {@link IndexedView}. */
export class IndexedFamilies {
  readonly #keys: Keys;
  readonly familyOf: Int32Array = new Int32Array(4096);
  readonly fieldOf: Uint8Array = new Uint8Array(4096);
  #families = 0;

  constructor(keys: Keys) {
    this.#keys = keys;
  }

  /**
   * Declares a family: patterns such as `gen_ai.prompt.#.tool_calls.#.id`, each with the code that the family's reader
   * knows it by. Several patterns may share a code.
   */
  declare(patterns: readonly (readonly [string, FieldCode])[]): Family {
    if (this.#families >= MAX_FAMILIES) throw new Fault('more indexed families than a mask holds');
    const family = 1 << this.#families++;
    for (const [pattern, code] of patterns) {
      const key = this.#keys.indexed(pattern);
      this.familyOf[key] = family;
      this.fieldOf[key] = code;
    }
    return family;
  }
}

/**
 * Reads one family of one span. `select`, then for each group from `groupStart` to `groupEnd` the entries; an entry's
 * accessors take its position.
 */
export class IndexedView {
  readonly #kernel: Kernel;
  readonly #families: IndexedFamilies;
  #order = new Int32Array(INITIAL_ENTRIES);
  /** Entries of the selected family. */
  count = 0;

  constructor(kernel: Kernel, families: IndexedFamilies) {
    this.#kernel = kernel;
    this.#families = families;
  }

  /** Mask of the families that the attributes have members of. */
  present(attributes: Attributes): number {
    const { i32 } = this.#kernel;
    let mask = 0;
    for (let i = 0; i < attributes.indexedCount; i++) {
      mask |= this.#families.familyOf[i32[attributes.indexedWord(i)] ?? 0] ?? 0;
    }
    return mask;
  }

  /** Collects the family's entries, sorted by first and second number; later of equal fields stay later. */
  select(attributes: Attributes, family: Family): number {
    const { i32 } = this.#kernel;
    if (this.#order.length < attributes.indexedCount) this.#order = new Int32Array(attributes.indexedCount * 2);
    const order = this.#order;
    let count = 0;
    let sorted = true;
    let lastFirst = -1;
    let lastSecond = -1;
    for (let i = 0; i < attributes.indexedCount; i++) {
      const word = attributes.indexedWord(i);
      if (this.#families.familyOf[i32[word] ?? 0] !== family) continue;
      const first = i32[word + 1] ?? 0;
      const second = i32[word + 2] ?? 0;
      if (first < lastFirst || (first === lastFirst && second < lastSecond)) sorted = false;
      lastFirst = first;
      lastSecond = second;
      order[count++] = word;
    }
    if (!sorted) {
      order
        .subarray(0, count)
        .sort((p, q) => (i32[p + 1] ?? 0) - (i32[q + 1] ?? 0) || (i32[p + 2] ?? 0) - (i32[q + 2] ?? 0) || p - q);
    }
    this.count = count;
    return count;
  }

  /** First number of the entry at a position. */
  first(position: number): number {
    return this.#kernel.i32[(this.#order[position] ?? 0) + 1] ?? 0;
  }

  /** Second number, 0 where the pattern has only one. */
  second(position: number): number {
    return this.#kernel.i32[(this.#order[position] ?? 0) + 2] ?? 0;
  }

  field(position: number): FieldCode {
    return this.#families.fieldOf[this.#kernel.i32[this.#order[position] ?? 0] ?? 0] ?? 0;
  }

  type(position: number): number {
    return this.#kernel.i32[(this.#order[position] ?? 0) + 3] ?? 0;
  }

  a(position: number): number {
    return this.#kernel.i32[(this.#order[position] ?? 0) + 4] ?? 0;
  }

  b(position: number): number {
    return this.#kernel.i32[(this.#order[position] ?? 0) + 5] ?? 0;
  }

  /** Whether the value is a string that is not empty. */
  filled(position: number): boolean {
    return this.type(position) === ValueType.String && this.b(position) > 0;
  }

  /** Position after the group that starts at `position`. */
  groupEnd(position: number): number {
    const first = this.first(position);
    let end = position + 1;
    while (end < this.count && this.first(end) === first) end++;
    return end;
  }

  /** The last entry of a field in [from, to), or -1. */
  find(from: number, to: number, code: FieldCode): number {
    for (let i = to - 1; i >= from; i--) if (this.field(i) === code) return i;
    return -1;
  }

  /** The last entry of a field in [from, to) that is a filled string, or -1. */
  findFilled(from: number, to: number, code: FieldCode): number {
    const at = this.find(from, to, code);
    return at >= 0 && this.filled(at) ? at : -1;
  }
}
