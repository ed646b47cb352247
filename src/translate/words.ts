/** Finds a code by an attribute's text without making a string of it. */
import type { Kernel, Literal } from './kernel/kernel.ts';
import type { Toolbox } from './toolbox.ts';

const MAX_WORD_BYTES = 64;

export class Words {
  readonly #kernel: Kernel;
  readonly #words = new Map<number, { literal: Literal; code: number }[]>();
  readonly #lower: number;

  /** Each word with its code; codes are integers from 0. */
  constructor({ kernel, lit }: Toolbox, words: Readonly<Record<string, number>>) {
    this.#kernel = kernel;
    this.#lower = kernel.allocate(MAX_WORD_BYTES);
    for (const [word, code] of Object.entries(words)) {
      const literal = lit(word);
      const hash = kernel.x.hash(literal.at, literal.length);
      const entries = this.#words.get(hash) ?? [];
      entries.push({ literal, code });
      this.#words.set(hash, entries);
    }
  }

  /** The code of the word in the range, or -1. */
  find(at: number, length: number): number {
    const { x } = this.#kernel;
    const entries = this.#words.get(x.hash(at, length));
    if (entries === undefined) return -1;
    for (const { literal, code } of entries) {
      if (literal.length === length && x.equals(literal.at, at, length) !== 0) return code;
    }
    return -1;
  }

  /** As `find`, ASCII letters compared in lower case (the words must be in lower case). */
  findAnyCase(at: number, length: number): number {
    if (length > MAX_WORD_BYTES) return -1;
    const { u8 } = this.#kernel;
    for (let i = 0; i < length; i++) {
      const byte = u8[at + i] ?? 0;
      u8[this.#lower + i] = byte >= 0x41 && byte <= 0x5a ? byte + 0x20 : byte;
    }
    return this.find(this.#lower, length);
  }
}
