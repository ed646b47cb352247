/**
 * Puts single attributes together to a JSON document, which is then read like any other. It costs a second pass over
 * the bytes, at vector speed, and saves a second implementation of the message normal form.
 */
import { Node } from './document.ts';
import type { Documents, NodeWord } from './document.ts';
import { ValueType } from './kernel/kernel.ts';
import type { Literal } from './kernel/kernel.ts';
import type { Toolbox } from './toolbox.ts';
import { Loaded } from './value.ts';
import type { Values } from './value.ts';
import type { Writer } from './writer.ts';

export class Draft {
  readonly out: Writer;
  readonly #docs: Documents;
  readonly #values: Values;

  constructor({ draft, docs, values }: Toolbox) {
    this.out = draft;
    this.#docs = docs;
    this.#values = values;
  }

  /** Writes `"name":value,` where the literal is `"name":`; false when the value is unset. */
  member(name: Literal, type: number, a: number, b: number): boolean {
    const start = this.out.pos;
    this.out.literal(name);
    if (!this.#values.write(type, a, b, this.out)) {
      this.out.pos = start;
      return false;
    }
    this.out.comma();
    return true;
  }

  /** As `member`, for what only counts as a string: anything else is left out. */
  text(name: Literal, type: number, a: number, b: number): boolean {
    return type === ValueType.String && this.member(name, type, a, b);
  }

  /** As `member`; a string that holds JSON, or a structured value, is written as that JSON. */
  document(name: Literal, type: number, a: number, b: number): boolean {
    const values = this.#values;
    const loaded = values.load(type, a, b);
    if (loaded === Loaded.Absent) return false;
    this.out.literal(name);
    values.copySource(loaded, this.out);
    this.out.comma();
    return true;
  }

  /**
   * Content given as an attribute: JSON only when it is an array of objects (parts), or structured by itself; any other
   * string is text, whatever it looks like, but for a JSON null, which is nothing.
   */
  content(name: Literal, type: number, a: number, b: number): boolean {
    if (type === ValueType.Bytes) return this.member(name, type, a, b);
    if (type !== ValueType.String) return this.document(name, type, a, b);
    const values = this.#values;
    if (values.isNull(a, b)) return false;
    const first = this.out.kernel.x.skipSpace(a, a + b);
    if (first < a + b && this.out.kernel.u8[first] === 0x5b && values.loadText(a, b) === Loaded.Document) {
      if (this.#isObjects(values.node)) {
        this.out.literal(name);
        this.#docs.copySource(values.node, this.out);
        this.out.comma();
        return true;
      }
    }
    return this.member(name, type, a, b);
  }

  #isObjects(array: NodeWord): boolean {
    const docs = this.#docs;
    if (docs.type(array) !== Node.Array || docs.count(array) === 0) return false;
    const stop = docs.next(array);
    for (let item = docs.first(array); item < stop; item = docs.next(item)) {
      if (docs.type(item) !== Node.Object) return false;
    }
    return true;
  }

  /** Arguments of a tool call: a string stays the string it is, a structured value is a document. */
  callArguments(name: Literal, type: number, a: number, b: number): boolean {
    if (type === ValueType.String || type === ValueType.Bytes) return this.member(name, type, a, b);
    return this.document(name, type, a, b);
  }

  /** Parses what was written since `start`; the root. Nothing is written over it until the span is done. */
  close(start: number): NodeWord {
    const end = this.out.pos;
    this.out.align();
    return this.#docs.parse(start, end - start);
  }
}
