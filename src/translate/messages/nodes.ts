/** Small questions about the nodes that messages are made of. */
import { Node } from '../document.ts';
import type { Documents, NodeWord } from '../document.ts';
import type { Kernel } from '../kernel/kernel.ts';
import { Word } from '../kernel/kernel.ts';
import type { Toolbox } from '../toolbox.ts';
import type { Writer } from '../writer.ts';
import type { MessageLiterals } from './literals.ts';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

export class Nodes {
  readonly #kernel: Kernel;
  readonly #docs: Documents;
  readonly #scratch: Writer;
  readonly #l: MessageLiterals;

  constructor({ kernel, docs, scratch }: Toolbox, literals: MessageLiterals) {
    this.#l = literals;
    this.#kernel = kernel;
    this.#docs = docs;
    this.#scratch = scratch;
  }

  /** A node when it is a string, else 0. */
  string(node: NodeWord): NodeWord {
    return node !== 0 && this.#docs.type(node) === Node.String ? node : 0;
  }

  /** A node when it is a string that is not empty, else 0. */
  filled(node: NodeWord): NodeWord {
    return node !== 0 && this.#docs.type(node) === Node.String && this.#docs.end(node) - this.#docs.start(node) > 2
      ? node
      : 0;
  }

  /** Writes a string node as it is, any other as the JSON string of its source text. */
  stringOrSlice(node: NodeWord, out: Writer): void {
    if (this.#docs.type(node) === Node.String) this.#docs.copy(node, out);
    else out.string(this.#docs.start(node), this.#docs.end(node) - this.#docs.start(node));
  }

  /** Whether every element of a non-empty array is an object. */
  everyObject(array: NodeWord): boolean {
    const docs = this.#docs;
    if (docs.type(array) !== Node.Array || docs.count(array) === 0) return false;
    const stop = docs.next(array);
    for (let item = docs.first(array); item < stop; item = docs.next(item)) {
      if (docs.type(item) !== Node.Object) return false;
    }
    return true;
  }

  /** The part's `type`, or its `kind` where it has none. */
  typeOf(part: NodeWord): NodeWord {
    const w = this.#l.word;
    return this.#docs.present(part, w.type) || this.string(this.#docs.member(part, w.kind));
  }

  /** Whether a string node says nothing: white space only, or a JSON null. */
  isBlank(node: NodeWord): boolean {
    const text = (JSON.parse(this.#docs.text(node)) as string).replace(/^[ \t\n\r]+|[ \t\n\r]+$/g, '');
    return text === '' || text === 'null' || text === '""';
  }

  /** The document inside a string node, or 0. */
  parseString(node: NodeWord): NodeWord {
    const start = this.#docs.start(node) + 1;
    const end = this.#docs.end(node) - 1;
    const first = this.#kernel.x.skipSpace(start, end);
    if (first === end) return 0;
    const byte = this.#kernel.u8[first];
    if (byte !== 0x5b && byte !== 0x7b && byte !== QUOTE && byte !== BACKSLASH) return 0;
    const scratch = this.#scratch;
    const at = scratch.pos;
    scratch.room(3 * (end - start) + 64);
    if (this.#kernel.x.unescape(start, end + 1, at) === 0) return 0;
    const stop = this.#kernel.i32[Word.UnescapeOut] ?? at;
    scratch.pos = stop;
    scratch.align();
    const trimmed = this.#kernel.x.skipSpace(at, stop);
    const opening = this.#kernel.u8[trimmed];
    if (trimmed === stop || (opening !== 0x5b && opening !== 0x7b && opening !== QUOTE)) return 0;
    return this.#docs.parse(at, stop - at);
  }
}
