/**
 * The attributes of one span (or event), as the kernel noted them: by key id in a table that is never cleared (a
 * generation tells this span's entries from older ones), and in lists for indexed and prefixed keys.
 */
import { ValueType, Word } from './kernel/kernel.ts';
import type { Kernel } from './kernel/kernel.ts';
import type { Key } from './keys.ts';

const ENTRY_WORDS = 4;
const INDEXED_WORDS = 8;
const PREFIXED_WORDS = 6;

export class Attributes {
  readonly #kernel: Kernel;
  #table = 0;
  #generation = 0;
  #indexed = 0;
  #indexedMax = 0;
  #prefixed = 0;
  #prefixedMax = 0;
  indexedCount = 0;
  prefixedCount = 0;

  constructor(kernel: Kernel) {
    this.#kernel = kernel;
  }

  /** Once all keys are declared. */
  allocate(keyCount: number): void {
    this.#table = this.#kernel.allocate(keyCount * ENTRY_WORDS * 4);
  }

  /** Where the lists of the next scan go, and how many entries they take. */
  layOut(indexed: number, indexedMax: number, prefixed: number, prefixedMax: number): void {
    this.#indexed = indexed;
    this.#indexedMax = indexedMax;
    this.#prefixed = prefixed;
    this.#prefixedMax = prefixedMax;
  }

  /** Scans a Span message. Returns the kernel's code: 0, 1 malformed, 2 more attributes than the lists take. */
  scanSpan(at: number, end: number): number {
    this.#begin();
    const code = this.#kernel.x.scanSpan(at, end, this.#table, this.#generation);
    this.#end();
    return code;
  }

  /** Scans a Span.Event message. */
  scanEvent(at: number, end: number): number {
    this.#begin();
    const code = this.#kernel.x.scanEvent(at, end, this.#table, this.#generation);
    this.#end();
    return code;
  }

  #begin(): void {
    this.#kernel.x.configureLists(this.#indexed, this.#indexedMax, this.#prefixed, this.#prefixedMax);
    // A generation that comes around after 2^32 spans would meet no entry that old: every span of a live emitter
    // overwrites its keys. Zero is what fresh memory holds, so it is never used.
    this.#generation = (this.#generation + 1) >>> 0 || 1;
  }

  #end(): void {
    const { i32 } = this.#kernel;
    this.indexedCount = i32[Word.Indexed] ?? 0;
    this.prefixedCount = i32[Word.Prefixed] ?? 0;
  }

  /** Type of the value, 0 when absent. */
  type(key: Key): number {
    const word = (this.#table >> 2) + key * ENTRY_WORDS;
    const { u32 } = this.#kernel;
    return u32[word] === this.#generation ? (u32[word + 1] ?? 0) : 0;
  }

  has(key: Key): boolean {
    return this.type(key) !== ValueType.Absent;
  }

  /** First word of the value: address (string, array, kvlist, bytes), or low word. Only when present. */
  a(key: Key): number {
    return this.#kernel.i32[(this.#table >> 2) + key * ENTRY_WORDS + 2] ?? 0;
  }

  /** Second word of the value: length in bytes, or high word. Only when present. */
  b(key: Key): number {
    return this.#kernel.i32[(this.#table >> 2) + key * ENTRY_WORDS + 3] ?? 0;
  }

  /** A string that is not empty. */
  hasText(key: Key): boolean {
    return this.type(key) === ValueType.String && this.b(key) > 0;
  }

  /** Pretends that a key was absent (it has been consumed). */
  clear(key: Key): void {
    this.#kernel.u32[(this.#table >> 2) + key * ENTRY_WORDS] = 0;
  }

  /** Word index of an entry: key id, first number, second number, type, a, b. */
  indexedWord(index: number): number {
    return (this.#indexed >> 2) + index * INDEXED_WORDS;
  }

  /** Word index of an entry: prefix id, key address, key length, type, a, b. */
  prefixedWord(index: number): number {
    return (this.#prefixed >> 2) + index * PREFIXED_WORDS;
  }
}
