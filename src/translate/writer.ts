/**
 * Writes JSON bytes into the kernel's memory. Members and elements are each followed by a comma; the closing bracket
 * takes the place of the last one. Nothing here allocates, `text` apart.
 */
import { SLACK_BYTES } from './kernel/kernel.ts';
import type { Kernel, Literal } from './kernel/kernel.ts';

const COMMA = 0x2c;
const QUOTE = 0x22;
/** A control character becomes \u00XX. */
const MAX_ESCAPE_RATIO = 6;

/**
 * Thrown when a region is too small. Whoever laid it out starts over with larger ones: the kernel's memory never grows
 * while it is being written, so views of it may be held as long as one likes.
 */
export class RegionFull extends Error {}

export class Writer {
  readonly kernel: Kernel;
  /** Where the next byte goes. */
  pos = 0;
  /** End of the region. */
  #limit = 0;
  readonly #encoder = new TextEncoder();

  constructor(kernel: Kernel) {
    this.kernel = kernel;
  }

  /** Starts over in a region, which has {@link SLACK_BYTES} behind it. */
  place(start: number, lengthBytes: number): void {
    this.pos = start;
    this.#limit = start + lengthBytes;
  }

  /** Makes sure that there is room for `lengthBytes` more. */
  room(lengthBytes: number): void {
    if (this.pos + lengthBytes > this.#limit) throw new RegionFull('region full');
  }

  /** Moves to where a following vector access cannot touch what was written. */
  align(): void {
    this.pos = (this.pos + SLACK_BYTES - 1) & -16;
  }

  byte(value: number): void {
    this.room(1);
    this.kernel.u8[this.pos++] = value;
  }

  literal(literal: Literal): void {
    this.room(literal.length);
    this.pos = this.kernel.x.copy(literal.at, literal.length, this.pos);
  }

  /** Bytes as they are. */
  raw(at: number, length: number): void {
    this.room(length);
    this.pos = this.kernel.x.copy(at, length, this.pos);
  }

  /** A JSON string of UTF-8 bytes, quotes included. */
  string(at: number, length: number): void {
    this.room(MAX_ESCAPE_RATIO * length + 2);
    const kernel = this.kernel;
    kernel.u8[this.pos] = QUOTE;
    const end = kernel.x.escape(at, length, this.pos + 1);
    kernel.u8[end] = QUOTE;
    this.pos = end + 1;
  }

  /** The content of a JSON string, without quotes: for strings made of several pieces. */
  stringPart(at: number, length: number): void {
    this.room(MAX_ESCAPE_RATIO * length);
    this.pos = this.kernel.x.escape(at, length, this.pos);
  }

  /** `"key":` with a key that needs no escaping. */
  member(key: Literal): void {
    this.literal(key);
  }

  /** A 64-bit integer as a JSON number, or as a string where a double would round it. */
  integer(low: number, high: number): void {
    this.room(24);
    const kernel = this.kernel;
    // safe: |value| < 2^53
    if (high < 0x200000 && (high > -0x200000 || (high === -0x200000 && low !== 0))) {
      this.pos = kernel.x.decimal(low, high, this.pos);
      return;
    }
    kernel.u8[this.pos] = QUOTE;
    const end = kernel.x.decimal(low, high, this.pos + 1);
    kernel.u8[end] = QUOTE;
    this.pos = end + 1;
  }

  /** A 64-bit integer's digits, without quotes whatever its size. */
  digits(low: number, high: number): void {
    this.room(24);
    this.pos = this.kernel.x.decimal(low, high, this.pos);
  }

  /** A finite double, as JSON.stringify prints it. */
  number(value: number): void {
    if (Number.isInteger(value) && value >= -2_147_483_648 && value <= 2_147_483_647) {
      this.room(24);
      this.pos = this.kernel.x.decimal(value, value < 0 ? -1 : 0, this.pos);
      return;
    }
    const text = String(value);
    this.room(text.length);
    const { u8 } = this.kernel;
    for (let i = 0; i < text.length; i++) u8[this.pos++] = text.charCodeAt(i);
  }

  /** A JavaScript string's UTF-8 bytes as they are; slow, for rare values. */
  text(value: string): void {
    this.room(value.length * 3);
    const { u8 } = this.kernel;
    this.pos += this.#encoder.encodeInto(value, u8.subarray(this.pos)).written;
  }

  comma(): void {
    this.room(1);
    this.kernel.u8[this.pos++] = COMMA;
  }

  /** Ends an object or array: the bracket replaces a trailing comma. */
  close(bracket: number): void {
    this.room(1);
    const { u8 } = this.kernel;
    if (u8[this.pos - 1] === COMMA) u8[this.pos - 1] = bracket;
    else u8[this.pos++] = bracket;
  }

  /** Takes a trailing comma back. */
  dropComma(): void {
    if (this.kernel.u8[this.pos - 1] === COMMA) this.pos--;
  }
}
