/**
 * JSON documents inside attributes: validated in place by the kernel, their structure on a tape. A node is a word index
 * into the kernel's memory. Strings keep their quotes and escapes: a slice of a document is itself JSON and is copied
 * as it stands.
 */
import { DocFlag, Word } from './kernel/kernel.ts';
import type { Kernel, Literal } from './kernel/kernel.ts';
import type { Writer } from './writer.ts';

/** Types of a node. */
export const Node = { Object: 1, Array: 2, String: 3, Number: 4, True: 5, False: 6, Null: 7, Key: 8 } as const;

/** Word index of a node; 0 is none. */
export type NodeWord = number;

/**
 * Nodes on the tape: 16 bytes each. A document with more is validated and embedded, but not taken apart: it counts as
 * a document of no known shape. 4 MiB of address space, touched only as far as used.
 */
const TAPE_NODES = 262_144;
const NODE_WORDS = 4;
const ILL_FORMED_UTF8 = -2;
const ODD = DocFlag.EscapedKey | DocFlag.MaybeDuplicate | DocFlag.LoneSurrogate;
const QUOTE_BYTES = 1;
const BACKSLASH = 0x5c;
const COLON = 0x3a;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
/** Longest escape of one byte: \u00XX. */
const MAX_ESCAPE_RATIO = 6;

export class Documents {
  readonly #kernel: Kernel;
  /** For documents with ill-formed UTF-8, mended; its position moves on with each. */
  readonly #scratch: Writer;
  readonly #tape: number;
  #used = 0;
  /** Whether any document of the span has keys with escapes, lone surrogates or, perhaps, keys that occur twice. */
  #odd = false;

  constructor(kernel: Kernel, scratch: Writer) {
    this.#kernel = kernel;
    this.#scratch = scratch;
    this.#tape = kernel.allocate(TAPE_NODES * NODE_WORDS * 4);
  }

  /** Forgets all documents; nodes become invalid. */
  reset(): void {
    this.#used = 0;
    this.#odd = false;
    this.#lastOf = 0;
  }

  /**
   * The root node of the document in the range, or 0 when it is not JSON (or nested deeper than 512). Of equal keys of
   * an object the last wins, whatever escapes they are written with.
   */
  parse(at: number, length: number): NodeWord {
    const root = this.#parse(at, length);
    if (root >= 0) return root;
    // Ill-formed UTF-8: what a text decoder would make of it.
    const start = this.#scratch.pos;
    this.#scratch.room(3 * length);
    const end = this.#kernel.x.sanitize(at, length, start);
    this.#scratch.pos = end;
    this.#scratch.align();
    return Math.max(this.#parse(start, end - start), 0);
  }

  #parse(at: number, length: number): NodeWord {
    const kernel = this.#kernel;
    const left = TAPE_NODES - this.#used;
    const tape = this.#tape + this.#used * NODE_WORDS * 4;
    const code = kernel.x.parse(at, at + length, tape, left);
    if (code !== 0) return code === ILL_FORMED_UTF8 ? -1 : 0;
    const flags = kernel.i32[Word.DocFlags] ?? 0;
    const nodes = kernel.i32[Word.DocNodes] ?? 0;
    const root = tape >> 2;
    if ((flags & DocFlag.TapeFull) !== 0) {
      // Valid, but not all of it is on the tape: presented as a container without children.
      if (left === 0) return 0;
      kernel.i32[root] = (kernel.i32[root] ?? 0) & 0xff;
      kernel.i32[root + 3] = root + NODE_WORDS;
      this.#used++;
      return root;
    }
    this.#used += nodes;
    if ((flags & ODD) !== 0) this.#odd = true;
    return root;
  }

  /** Copies a node; members that a later one of the same name replaces are left out. */
  #copyLive(node: NodeWord, out: Writer): void {
    const type = this.type(node);
    if (type !== Node.Object && type !== Node.Array) {
      this.#copyMended(node, out);
      return;
    }
    const stop = this.next(node);
    if (type === Node.Array) {
      out.byte(OPEN_ARRAY);
      for (let child = this.first(node); child < stop; child = this.next(child)) {
        this.#copyLive(child, out);
        out.comma();
      }
      out.close(CLOSE_ARRAY);
      return;
    }
    out.byte(OPEN_OBJECT);
    const last = this.#lastKeys(node);
    for (let key = this.first(node); key < stop; key = this.next(this.value(key))) {
      if (!last.has(key)) continue;
      this.#copyMended(key, out);
      out.byte(COLON);
      this.#copyLive(this.value(key), out);
      out.comma();
    }
    out.close(CLOSE_OBJECT);
  }

  /** Copies a scalar or key; lone surrogates become U+FFFD. */
  #copyMended(node: NodeWord, out: Writer): void {
    const start = this.start(node);
    const length = this.end(node) - start;
    const isString = this.type(node) === Node.String || this.type(node) === Node.Key;
    if (isString && this.hasEscape(start, length)) {
      const text = JSON.parse(this.text(node)) as string;
      if (!text.isWellFormed()) {
        out.text(JSON.stringify(text.toWellFormed()));
        return;
      }
    }
    out.raw(start, length);
  }

  /** The keys of an object that no later key of the same name replaces. */
  #lastKeys(node: NodeWord): Set<NodeWord> {
    const last = new Map<string, NodeWord>();
    const stop = this.next(node);
    for (let key = this.first(node); key < stop; key = this.next(this.value(key))) {
      last.set((JSON.parse(this.text(key)) as string).toWellFormed(), key);
    }
    return new Set(last.values());
  }

  /**
   * Whether a key of the object counts: of equal names the last does. To be asked wherever members are gone through to
   * be written.
   */
  counts(node: NodeWord, key: NodeWord): boolean {
    if (!this.#odd) return true;
    if (this.#lastOf !== node) {
      this.#last = this.#lastKeys(node);
      this.#lastOf = node;
    }
    return this.#last.has(key);
  }
  #last = new Set<NodeWord>();
  #lastOf: NodeWord = 0;

  type(node: NodeWord): number {
    return (this.#kernel.i32[node] ?? 0) & 0xff;
  }

  /** Members of an object, elements of an array. */
  count(node: NodeWord): number {
    return (this.#kernel.i32[node] ?? 0) >> 8;
  }

  start(node: NodeWord): number {
    return this.#kernel.i32[node + 1] ?? 0;
  }

  end(node: NodeWord): number {
    return this.#kernel.i32[node + 2] ?? 0;
  }

  /** The node after this one's subtree: its sibling, where it has one (compare with `stop` of the parent). */
  next(node: NodeWord): NodeWord {
    return this.#kernel.i32[node + 3] ?? 0;
  }

  /** First element of an array, first key of an object; only when it is below `next(node)`. */
  first(node: NodeWord): NodeWord {
    return node + NODE_WORDS;
  }

  /** The value that follows a key node. */
  value(key: NodeWord): NodeWord {
    return key + NODE_WORDS;
  }

  /** Whether a key (or string) node's text is the literal's. */
  is(node: NodeWord, literal: Literal): boolean {
    const { i32, x } = this.#kernel;
    const start = (i32[node + 1] ?? 0) + QUOTE_BYTES;
    const length = (i32[node + 2] ?? 0) - QUOTE_BYTES - start;
    if (length === literal.length) return x.equals(start, literal.at, length) !== 0;
    if (length < literal.length || length > MAX_ESCAPE_RATIO * literal.length) return false;
    if (this.type(node) === Node.Key && !this.#odd) return false;
    return this.hasEscape(start, length) && this.#isDecoded(node, literal, true);
  }

  /** Whether a string node's text begins with the literal's. */
  starts(node: NodeWord, prefix: Literal): boolean {
    const start = this.start(node) + QUOTE_BYTES;
    const length = this.end(node) - QUOTE_BYTES - start;
    if (length >= prefix.length && this.#kernel.x.equals(start, prefix.at, prefix.length) !== 0) return true;
    if ((this.type(node) === Node.Key && !this.#odd) || length < prefix.length) return false;
    const escaped = this.hasEscape(start, Math.min(length, MAX_ESCAPE_RATIO * prefix.length));
    return escaped && this.#isDecoded(node, prefix, false);
  }

  hasEscape(at: number, length: number): boolean {
    const { u8 } = this.#kernel;
    for (let i = at; i < at + length; i++) if (u8[i] === BACKSLASH) return true;
    return false;
  }

  #isDecoded(node: NodeWord, literal: Literal, whole: boolean): boolean {
    const text = JSON.parse(this.text(node)) as string;
    const { u8 } = this.#kernel;
    const wanted = Buffer.from(u8.subarray(literal.at, literal.at + literal.length)).toString('utf8');
    return whole ? text === wanted : text.startsWith(wanted);
  }

  /** The value of an object's member, or 0 when it has none or the node is no object. */
  member(node: NodeWord, name: Literal): NodeWord {
    if (this.type(node) !== Node.Object) return 0;
    const stop = this.next(node);
    let found: NodeWord = 0;
    for (let key = this.first(node); key < stop; key = this.next(this.value(key))) {
      if (!this.is(key, name)) continue;
      found = this.value(key);
      if (!this.#odd) break;
    }
    return found;
  }

  /** The value of the member that has the same name as another object's key node, or 0. */
  memberLike(node: NodeWord, name: NodeWord): NodeWord {
    if (this.type(node) !== Node.Object) return 0;
    const { x } = this.#kernel;
    const start = this.start(name);
    const length = this.end(name) - start;
    const stop = this.next(node);
    for (let key = this.first(node); key < stop; key = this.next(this.value(key))) {
      const own = this.start(key);
      if (this.end(key) - own === length && x.equals(own, start, length) !== 0) return this.value(key);
    }
    return 0;
  }

  /** As `member`, but a JSON null counts as none. */
  present(node: NodeWord, name: Literal): NodeWord {
    const value = this.member(node, name);
    return value !== 0 && this.type(value) === Node.Null ? 0 : value;
  }

  /** The node's source text as a JavaScript string; slow. */
  text(node: NodeWord): string {
    const start = this.start(node);
    return Buffer.from(this.#kernel.u8.buffer as ArrayBuffer, start, this.end(node) - start).toString('utf8');
  }

  /** Whether every element of an array is an object with the member. False for an empty array. */
  everyHas(node: NodeWord, name: Literal): boolean {
    if (this.type(node) !== Node.Array || this.count(node) === 0) return false;
    const stop = this.next(node);
    for (let child = this.first(node); child < stop; child = this.next(child)) {
      if (this.member(child, name) === 0) return false;
    }
    return true;
  }

  /** Copies the node's source text, whatever it holds: for what is parsed again. */
  copySource(node: NodeWord, out: Writer): void {
    const start = this.start(node);
    out.raw(start, this.end(node) - start);
  }

  /** Copies the node as JSON: its source text, where no key occurs twice. */
  copy(node: NodeWord, out: Writer): void {
    if (this.#odd) {
      this.#copyLive(node, out);
      return;
    }
    this.copySource(node, out);
  }
}
