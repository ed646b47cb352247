/**
 * Keys of one JSON object, each written once; and lists of KeyValue messages as object members. Keys are compared as
 * they will be read: ill-formed UTF-8 replaced, escapes resolved.
 */
import { Word } from './kernel/kernel.ts';
import type { Kernel } from './kernel/kernel.ts';
import { ValueType } from './kernel/kernel.ts';
import type { Toolbox } from './toolbox.ts';
import type { Values } from './value.ts';
import type { Writer } from './writer.ts';

const BACKSLASH = 0x5c;
/** Entries of the kernel's table; an object with more than three quarters of it is finished with a Set of strings. */
const TABLE_ENTRIES = 512;
const ENTRY_BYTES = 16;
const FULL = 2;
const INITIAL_MEMBERS = 64;
const MEMBER_FIELDS = 5;

/** The keys written so far to the object at hand. */
export class ClaimedKeys {
  readonly #kernel: Kernel;
  readonly #scratch: Writer;
  readonly #table: number;
  #generation = 0;
  #count = 0;
  /** Addresses and lengths of all claimed keys, to fill the Set when the table is full. */
  #keys = new Int32Array(TABLE_ENTRIES * 2);
  #overflow: Set<string> | null = null;
  /** The key claimed, or asked for, last; in its final form. */
  at = 0;
  length = 0;

  constructor({ kernel, scratch }: Pick<Toolbox, 'kernel' | 'scratch'>) {
    this.#kernel = kernel;
    this.#scratch = scratch;
    this.#table = kernel.allocate(TABLE_ENTRIES * ENTRY_BYTES);
  }

  begin(): void {
    this.#generation = (this.#generation + 1) >>> 0 || 1;
    this.#count = 0;
    this.#overflow = null;
  }

  /** Claims an attribute's key. False: it was claimed before. `at` and `length` then are the key to write. */
  claim(at: number, length: number): boolean {
    this.#mend(at, length);
    return this.#claim(this.at, this.length);
  }

  /** Puts the key where it stands in its final form into `at` and `length`. */
  #mend(at: number, length: number): void {
    this.at = at;
    this.length = length;
    if (this.#kernel.x.wellFormed(at, length) !== 0) return;
    this.at = this.#scratch.pos;
    this.#scratch.room(3 * length);
    const end = this.#kernel.x.sanitize(at, length, this.at);
    this.length = end - this.at;
    this.#scratch.pos = end;
    this.#scratch.align();
  }

  /** Whether an attribute's key is claimed already. */
  has(keyAt: number, keyLength: number): boolean {
    this.#mend(keyAt, keyLength);
    const { at, length } = this;
    const count = this.#count;
    const overflow = this.#overflow;
    if (overflow !== null) return overflow.has(this.#text(at, length));
    for (let i = 0; i < count; i++) {
      const own = this.#keys[2 * i + 1] ?? 0;
      if (own === length && this.#kernel.x.equals(this.#keys[2 * i] ?? 0, at, length) !== 0) return true;
    }
    return false;
  }

  /** Claims a key that stands in a document between quotes at `at`. */
  claimQuoted(at: number, length: number): boolean {
    const { u8, x } = this.#kernel;
    const start = at + 1;
    const end = at + length - 1;
    for (let i = start; i < end; i++) {
      if (u8[i] !== BACKSLASH) continue;
      const plain = this.#scratch.pos;
      this.#scratch.room(3 * length);
      x.unescape(start, end + 1, plain);
      const stop = this.#kernel.i32[Word.UnescapeOut] ?? plain;
      this.#scratch.pos = stop;
      this.#scratch.align();
      return this.#claim(plain, stop - plain);
    }
    return this.#claim(start, end - start);
  }

  #claim(at: number, length: number): boolean {
    this.at = at;
    this.length = length;
    if (this.#overflow !== null) return this.#claimSlowly(this.#overflow, at, length);
    const code = this.#kernel.x.claim(this.#table, TABLE_ENTRIES - 1, this.#generation, this.#count, at, length);
    if (code === FULL) {
      const set = new Set<string>();
      for (let i = 0; i < this.#count; i++) set.add(this.#text(this.#keys[2 * i] ?? 0, this.#keys[2 * i + 1] ?? 0));
      this.#overflow = set;
      return this.#claimSlowly(set, at, length);
    }
    if (code === 0) return false;
    this.#keys[2 * this.#count] = at;
    this.#keys[2 * this.#count + 1] = length;
    this.#count++;
    return true;
  }

  #claimSlowly(set: Set<string>, at: number, length: number): boolean {
    const text = this.#text(at, length);
    if (set.has(text)) return false;
    set.add(text);
    return true;
  }

  #text(at: number, length: number): string {
    return Buffer.from(this.#kernel.u8.subarray(at, at + length)).toString('latin1');
  }
}

/** Lists of KeyValue messages (resource, event and link attributes): the last of equal keys that is set wins. */
export class Members {
  readonly #kernel: Kernel;
  readonly #values: Values;
  #found = new Int32Array(INITIAL_MEMBERS * MEMBER_FIELDS);

  constructor({ kernel, values }: Pick<Toolbox, 'kernel' | 'values'>) {
    this.#kernel = kernel;
    this.#values = values;
  }

  writeValue(type: number, a: number, b: number, out: Writer): void {
    this.#values.write(type, a, b, out);
  }

  /**
   * Writes what repeated field `number` of the message holds as `"key":value,`, passing over keys that are claimed, or
   * are claimed in `except`. Returns how many were written.
   */
  write(
    at: number,
    end: number,
    number: number,
    claimed: ClaimedKeys,
    out: Writer,
    except: ClaimedKeys | null = null,
  ): number {
    const kernel = this.#kernel;
    let count = 0;
    let pos = kernel.x.nextMember(at, end, number);
    while (pos !== 0) {
      const { i32 } = kernel;
      const type = i32[Word.ValueType] ?? 0;
      if (type !== ValueType.Absent && i32[Word.MemberKeyLen] !== 0) {
        if ((count + 1) * MEMBER_FIELDS > this.#found.length) {
          const larger = new Int32Array(this.#found.length * 2);
          larger.set(this.#found);
          this.#found = larger;
        }
        const slot = count * MEMBER_FIELDS;
        this.#found[slot] = i32[Word.MemberKeyOff] ?? 0;
        this.#found[slot + 1] = i32[Word.MemberKeyLen] ?? 0;
        this.#found[slot + 2] = type;
        this.#found[slot + 3] = i32[Word.ValueA] ?? 0;
        this.#found[slot + 4] = i32[Word.ValueB] ?? 0;
        count++;
      }
      pos = kernel.x.nextMember(pos, end, number);
    }
    let written = 0;
    const found = this.#found;
    for (let i = count - 1; i >= 0; i--) {
      const slot = i * MEMBER_FIELDS;
      const type = found[slot + 2] ?? 0;
      const a = found[slot + 3] ?? 0;
      const b = found[slot + 4] ?? 0;
      if (type === ValueType.Double && !Number.isFinite(this.#values.double(a, b))) continue;
      if (except?.has(found[slot] ?? 0, found[slot + 1] ?? 0) === true) continue;
      if (!claimed.claim(found[slot] ?? 0, found[slot + 1] ?? 0)) continue;
      out.string(claimed.at, claimed.length);
      out.byte(0x3a);
      this.#values.write(type, a, b, out);
      out.comma();
      written++;
    }
    return written;
  }
}

/**
 * The members of a resource, which many spans share: found and rendered once, then claimed and copied for each span.
 * They live in a region of their own until the next `render`.
 */
export class SharedMembers {
  readonly #kernel: Kernel;
  readonly #values: Values;
  /** Key address and length, address and length of the rendered `"key":value,` of each. */
  #members = new Int32Array(INITIAL_MEMBERS * 4);
  #count = 0;

  constructor({ kernel, values }: Pick<Toolbox, 'kernel' | 'values'>) {
    this.#kernel = kernel;
    this.#values = values;
  }

  /** Renders repeated field `number` of the message, in reverse: the last of equal keys comes first. */
  render(at: number, end: number, number: number, claimed: ClaimedKeys, out: Writer): void {
    const kernel = this.#kernel;
    this.#count = 0;
    const found: [number, number, number, number, number][] = [];
    for (let pos = kernel.x.nextMember(at, end, number); pos !== 0; pos = kernel.x.nextMember(pos, end, number)) {
      const { i32 } = kernel;
      found.push([
        i32[Word.MemberKeyOff] ?? 0,
        i32[Word.MemberKeyLen] ?? 0,
        i32[Word.ValueType] ?? 0,
        i32[Word.ValueA] ?? 0,
        i32[Word.ValueB] ?? 0,
      ]);
    }
    claimed.begin();
    for (const [keyAt, keyLength, type, a, b] of found.reverse()) {
      if (type === ValueType.Absent || keyLength === 0) continue;
      if (type === ValueType.Double && !Number.isFinite(this.#values.double(a, b))) continue;
      if (!claimed.claim(keyAt, keyLength)) continue;
      // A mended key lies in scratch, which the next span overwrites.
      const mendedAt = out.pos;
      const isMended = claimed.at !== keyAt;
      if (isMended) out.raw(claimed.at, claimed.length);
      const start = out.pos;
      out.string(claimed.at, claimed.length);
      out.byte(0x3a);
      this.#values.write(type, a, b, out);
      out.comma();
      this.#add(isMended ? mendedAt : keyAt, claimed.length, start, out.pos - start);
    }
  }

  #add(keyAt: number, keyLength: number, at: number, length: number): void {
    const slot = this.#count * 4;
    if (slot + 4 > this.#members.length) {
      const larger = new Int32Array(this.#members.length * 2);
      larger.set(this.#members);
      this.#members = larger;
    }
    this.#members[slot] = keyAt;
    this.#members[slot + 1] = keyLength;
    this.#members[slot + 2] = at;
    this.#members[slot + 3] = length;
    this.#count++;
  }

  /** Copies the members whose keys are not claimed yet. */
  copy(claimed: ClaimedKeys, out: Writer): void {
    const members = this.#members;
    for (let i = 0, slot = 0; i < this.#count; i++, slot += 4) {
      if (claimed.claim(members[slot] ?? 0, members[slot + 1] ?? 0)) {
        out.raw(members[slot + 2] ?? 0, members[slot + 3] ?? 0);
      }
    }
  }
}
