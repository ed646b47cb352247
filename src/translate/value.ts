/**
 * Attribute values as JSON. `load` makes of any value one of three things, so that conventions need not care how an
 * emitter typed it: a document (a JSON string that parses, an array, a kvlist), a text, or a scalar's JSON.
 *
 * | AnyValue        | becomes                                                                             |
 * | --------------- | ----------------------------------------------------------------------------------- |
 * | string          | text; where JSON is expected a document when it starts with `{`, `[` or `"` and parses |
 * | bool, double    | the same; NaN and infinities are absent                                             |
 * | int64           | a number when a double holds it exactly, else a string of its digits                |
 * | array, kvlist   | array, object, recursively                                                          |
 * | bytes           | base64 string                                                                       |
 * | unset           | absent                                                                              |
 */
import type { Attributes } from './attributes.ts';
import { Node } from './document.ts';
import type { Documents, NodeWord } from './document.ts';
import { ValueType, Word } from './kernel/kernel.ts';
import type { Kernel, Literal } from './kernel/kernel.ts';
import type { Key } from './keys.ts';
import { pythonToJson } from './lenient.ts';
import type { Writer } from './writer.ts';

/** What `load` found. */
export const Loaded = {
  Absent: 0,
  /** A JSON document: `node` is its root, `at` and `length` its source text. */
  Document: 1,
  /** UTF-8 text: `at`, `length`. */
  Text: 2,
  /** The JSON of a number or boolean, or of a value that is a string only in JSON (bytes): `at`, `length`. */
  Scalar: 3,
} as const;

const OPEN_OBJECT = 0x7b;
const OPEN_ARRAY = 0x5b;
const CLOSE_OBJECT = 0x7d;
const CLOSE_ARRAY = 0x5d;
const QUOTE = 0x22;
const NULL_WORD = 0x6c6c756e; // 'null', little-endian
const TEXT_DECODER = new TextDecoder('utf-8', { ignoreBOM: true });

export class Values {
  readonly #kernel: Kernel;
  readonly #docs: Documents;
  readonly #scratch: Writer;
  readonly #double: DataView;
  readonly #true: Literal;
  readonly #false: Literal;

  /** The result of the last load, until the next. */
  node: NodeWord = 0;
  at = 0;
  length = 0;

  constructor(kernel: Kernel, docs: Documents, scratch: Writer) {
    this.#kernel = kernel;
    this.#docs = docs;
    this.#scratch = scratch;
    this.#double = new DataView(new ArrayBuffer(8));
    this.#true = kernel.literal('true');
    this.#false = kernel.literal('false');
  }

  /** Loads a value that may be or hold JSON. */
  load(type: number, a: number, b: number): number {
    if (type === ValueType.String) return this.loadText(a, b);
    return this.#loadTyped(type, a, b);
  }

  /** Loads a value whose text is not to be read as JSON. */
  loadPlain(type: number, a: number, b: number): number {
    if (type !== ValueType.String) return this.#loadTyped(type, a, b);
    if (b === 0) return Loaded.Absent;
    this.at = a;
    this.length = b;
    return Loaded.Text;
  }

  loadKey(attributes: Attributes, key: Key): number {
    const type = attributes.type(key);
    return type === ValueType.Absent ? Loaded.Absent : this.load(type, attributes.a(key), attributes.b(key));
  }

  /** Writes what was loaded as JSON: document and scalar as they are, text as a string. */
  copy(loaded: number, out: Writer): void {
    if (loaded === Loaded.Document) this.#docs.copy(this.node, out);
    else if (loaded === Loaded.Text) out.string(this.at, this.length);
    else out.raw(this.at, this.length);
  }

  /** Writes what was loaded as a JSON string: text as it is, anything else as its source text. */
  copyAsString(loaded: number, out: Writer): void {
    const { u8 } = this.#kernel;
    if (loaded !== Loaded.Text && u8[this.at] === QUOTE) out.raw(this.at, this.length);
    else out.string(this.at, this.length);
  }

  /** As `copy`, a document whatever it holds: for what is parsed again. */
  copySource(loaded: number, out: Writer): void {
    if (loaded === Loaded.Document) this.#docs.copySource(this.node, out);
    else this.copy(loaded, out);
  }

  /** Whether a text is `null`, white space aside. */
  isNull(at: number, length: number): boolean {
    const { x, view } = this.#kernel;
    const end = at + length;
    const start = x.skipSpace(at, end);
    return end - start >= 4 && view.getUint32(start, true) === NULL_WORD && x.skipSpace(start + 4, end) === end;
  }

  /** Text that may be JSON; JSON null and blank strings are absent. */
  loadText(at: number, length: number): number {
    const { x, u8 } = this.#kernel;
    const end = at + length;
    const start = x.skipSpace(at, end);
    if (start === end) return Loaded.Absent;
    const first = u8[start];
    if (first === OPEN_OBJECT || first === OPEN_ARRAY || first === QUOTE) {
      const root = this.#docs.parse(at, length);
      if (root !== 0) return this.#loadNode(root);
    } else if (this.isNull(start, end - start)) return Loaded.Absent;
    this.at = at;
    this.length = length;
    return Loaded.Text;
  }

  /** The object in a text that is JSON or, failing that, Python's repr of plain data; 0 when it is neither or no object. */
  loadLenientObject(type: number, a: number, b: number): NodeWord {
    const loaded = this.load(type, a, b);
    let node = loaded === Loaded.Document ? this.node : 0;
    if (loaded === Loaded.Text && type === ValueType.String) {
      const json = pythonToJson(TEXT_DECODER.decode(this.#kernel.u8.subarray(a, a + b)));
      if (json === null) return 0;
      const start = this.#scratch.pos;
      this.#scratch.text(json);
      const end = this.#scratch.pos;
      this.#scratch.align();
      node = this.#docs.parse(start, end - start);
    }
    return node !== 0 && this.#docs.type(node) === Node.Object ? node : 0;
  }

  #loadNode(root: NodeWord): number {
    this.node = root;
    this.at = this.#docs.start(root);
    this.length = this.#docs.end(root) - this.at;
    return Loaded.Document;
  }

  #loadTyped(type: number, a: number, b: number): number {
    if (type === ValueType.Absent) return Loaded.Absent;
    const scratch = this.#scratch;
    const start = scratch.pos;
    if (!this.write(type, a, b, scratch)) return Loaded.Absent;
    const code = this.#loadScratch(start, Loaded.Scalar);
    if (type !== ValueType.Array && type !== ValueType.Kvlist) return code;
    const root = this.#docs.parse(this.at, this.length);
    if (root === 0) return Loaded.Absent;
    return this.#loadNode(root);
  }

  #loadScratch(start: number, code: number): number {
    this.at = start;
    this.length = this.#scratch.pos - start;
    this.#scratch.align();
    return code;
  }

  #base64(at: number, length: number): string {
    return Buffer.from(this.#kernel.u8.buffer as ArrayBuffer, at, length).toString('base64');
  }

  /** Writes a value as JSON, strings as strings. False, and nothing written, when it is absent. */
  write(type: number, a: number, b: number, out: Writer): boolean {
    switch (type) {
      case ValueType.String:
        out.string(a, b);
        return true;
      case ValueType.Int:
        out.integer(a, b);
        return true;
      case ValueType.Bool:
        out.literal(a === 0 ? this.#false : this.#true);
        return true;
      case ValueType.Double: {
        const value = this.double(a, b);
        if (!Number.isFinite(value)) return false;
        out.number(value);
        return true;
      }
      case ValueType.Bytes:
        out.byte(QUOTE);
        out.text(this.#base64(a, b));
        out.byte(QUOTE);
        return true;
      case ValueType.Array:
        this.#array(a, b, out);
        return true;
      case ValueType.Kvlist:
        this.#kvlist(a, b, out);
        return true;
      default:
        return false;
    }
  }

  double(low: number, high: number): number {
    this.#double.setInt32(0, low, true);
    this.#double.setInt32(4, high, true);
    return this.#double.getFloat64(0, true);
  }

  #array(at: number, length: number, out: Writer): void {
    const kernel = this.#kernel;
    const end = at + length;
    out.byte(OPEN_ARRAY);
    let pos = kernel.x.nextElement(at, end);
    while (pos !== 0) {
      const { i32 } = kernel;
      if (!this.write(i32[Word.ValueType] ?? 0, i32[Word.ValueA] ?? 0, i32[Word.ValueB] ?? 0, out)) out.text('null');
      out.comma();
      pos = kernel.x.nextElement(pos, end);
    }
    out.close(CLOSE_ARRAY);
  }

  #isSet(i32: Int32Array): boolean {
    const type = i32[Word.ValueType] ?? 0;
    if (type === ValueType.Double) return Number.isFinite(this.double(i32[Word.ValueA] ?? 0, i32[Word.ValueB] ?? 0));
    return type !== ValueType.Absent;
  }

  /** Rare, so it may make strings: the last of equal keys wins, and unset values are left out. */
  #kvlist(at: number, length: number, out: Writer): void {
    const kernel = this.#kernel;
    const end = at + length;
    const members = new Map<string, [number, number, number]>();
    let pos = kernel.x.nextMember(at, end, 1);
    while (pos !== 0) {
      const { i32, u8 } = kernel;
      const keyAt = i32[Word.MemberKeyOff] ?? 0;
      const name = TEXT_DECODER.decode(u8.subarray(keyAt, keyAt + (i32[Word.MemberKeyLen] ?? 0)));
      // unset members are dropped first; then the last of equal keys wins, where it stands
      if (this.#isSet(i32)) {
        members.delete(name);
        members.set(name, [i32[Word.ValueType] ?? 0, i32[Word.ValueA] ?? 0, i32[Word.ValueB] ?? 0]);
      }
      pos = kernel.x.nextMember(pos, end, 1);
    }
    out.byte(OPEN_OBJECT);
    for (const [name, [type, a, b]] of members) {
      out.text(JSON.stringify(name));
      out.byte(0x3a);
      this.write(type, a, b, out);
      out.comma();
    }
    out.close(CLOSE_OBJECT);
  }
}
