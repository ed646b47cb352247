/**
 * OTLP/JSON in, OTLP protobuf out: one pass over the bytes, no objects. From here on there is one encoding, so a trace
 * sent as JSON and as protobuf gives the same runs by construction.
 *
 * What is accepted beyond the specification (interoperability, see the README): ids in hex or base64, told apart by
 * their length; enums by name; snake_case keys (camelCase wins where both are present); integers as numbers or strings;
 * `null` for anything; unknown fields. A known field of the wrong JSON type counts as unset: senders differ, and one odd
 * field is no reason to lose a batch. Strings with lone surrogates or ill-formed UTF-8 get U+FFFD. Of equal keys of one
 * object the last wins, as with `JSON.parse`: two readers of one body must not see two different spans.
 *
 * Lengths of messages are written as varints padded to five bytes, so that nothing has to be measured beforehand.
 */
import { base64 } from '../translate/base64.ts';
import { Word } from '../translate/kernel/kernel.ts';
import type { Kernel } from '../translate/kernel/kernel.ts';
import type { Writer } from '../translate/writer.ts';
import { ANY_VALUE, Kind, MAX_FIELDS, schema } from './otlpschema.ts';
import type { Field, Message } from './otlpschema.ts';
import { NO_ID, unusualId } from './unusualid.ts';

const QUOTE = 0x22;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const COLON = 0x3a;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const LETTER_N = 0x6e;
const LETTER_T = 0x74;
const LETTER_F = 0x66;
const LENGTH_BYTES = 5;
/**
 * Deepest nesting of messages: room for values in as many lists of pairs, of three messages each, as the scanner takes
 * (MAX_PROTO_NESTING in layout.ts). It has the last word, so that a value is taken or refused alike in both encodings.
 */
const MAX_DEPTH = 160;
/** Containers in containers; the kernel's bound, MAX_JSON_DEPTH in layout.ts. */
const MAX_JSON_DEPTH = 512;

/** Thrown inside this file only; `transcode` turns it into a message for the client. */
class JsonProblem extends Error {}

const SPAN_KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'].map((k) => `SPAN_KIND_${k}`);
const STATUS_CODES = ['UNSET', 'OK', 'ERROR'].map((code) => `STATUS_CODE_${code}`);

export class JsonTranscoder {
  readonly #kernel: Kernel;
  readonly #out: Writer;
  readonly #root: Message;
  readonly #scratch: number;
  #pos = 0;
  #end = 0;

  constructor(kernel: Kernel, out: Writer) {
    this.#kernel = kernel;
    this.#out = out;
    this.#scratch = kernel.allocate(SCRATCH_BYTES);
    this.#root = schema(kernel);
  }

  /** Writes the protobuf form of the document in the range to the writer. Null, or what is wrong with it. */
  transcode(at: number, end: number): string | null {
    this.#pos = at;
    this.#end = end;
    this.#depth = 0;
    const { u8 } = this.#kernel;
    if (u8[at] === 0xef && u8[at + 1] === 0xbb && u8[at + 2] === 0xbf) this.#pos += 3;
    try {
      if (this.#peek() !== OPEN_OBJECT) this.#fail('the body must be a JSON object');
      this.#message(this.#root, 0);
      this.#pos = this.#kernel.x.skipSpace(this.#pos, this.#end);
      if (this.#pos !== this.#end) this.#fail('unexpected bytes after the JSON object');
      return null;
    } catch (error) {
      if (error instanceof JsonProblem) return error.message;
      throw error;
    }
  }

  #fail(what: string): never {
    throw new JsonProblem(`${what} (at byte ${this.#pos - this.#base})`);
  }
  #base = 0;

  /** Where byte 0 of the document is, for error messages. */
  set base(at: number) {
    this.#base = at;
  }

  /** The next byte that is not white space, not consumed; 0 at the end. */
  #peek(): number {
    const { u8 } = this.#kernel;
    let pos = this.#pos;
    while (pos < this.#end) {
      const byte = u8[pos] ?? 0;
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) {
        this.#pos = pos;
        return byte;
      }
      pos++;
    }
    this.#pos = pos;
    return 0;
  }

  #skip(): void {
    const after = this.#kernel.x.skip(this.#pos, this.#end, this.#depth);
    if (after !== 0) this.#pos = after;
    else this.#skipLoose(this.#depth);
  }

  /** Passes over a value that may hold ill-formed UTF-8, at which the kernel stops. */
  #skipLoose(depth: number): void {
    const byte = this.#peek();
    if (byte === QUOTE) return this.#skipString();
    if (byte !== OPEN_OBJECT && byte !== OPEN_ARRAY) {
      const after = this.#kernel.x.skip(this.#pos, this.#end, depth);
      if (after === 0) this.#fail('malformed JSON');
      this.#pos = after;
      return;
    }
    if (depth === MAX_JSON_DEPTH) this.#fail('malformed JSON: nested too deeply');
    const isObject = byte === OPEN_OBJECT;
    const close = isObject ? CLOSE_OBJECT : CLOSE_ARRAY;
    this.#pos++;
    if (this.#peek() === close) {
      this.#pos++;
      return;
    }
    for (;;) {
      if (isObject) {
        if (this.#peek() !== QUOTE) this.#fail('malformed JSON: expected a key');
        this.#skipString();
        if (this.#peek() !== COLON) this.#fail('malformed JSON: expected a colon');
        this.#pos++;
      }
      this.#skipLoose(depth + 1);
      const after = this.#peek();
      this.#pos++;
      if (after === close) return;
      if (after !== COMMA) this.#fail('malformed JSON: expected a comma or the end of a value');
    }
  }

  #skipString(): void {
    const close = this.#kernel.x.stringEnd(this.#pos + 1, this.#end);
    this.#pos = close === 0 ? this.#stringEndLoose() : close + 1;
  }

  /** Reads an object whose fields are known; unknown ones are skipped. The object is next. */
  #message(message: Message, depth: number): void {
    if (depth > MAX_DEPTH) this.#fail('nested too deeply');
    this.#peek();
    this.#pos++; // the opening brace
    this.#depth++;
    if (this.#peek() === CLOSE_OBJECT) {
      this.#pos++;
      this.#depth--;
      return;
    }
    let camelSeen = 0;
    let seen = 0;
    let last = MAX_FIELDS;
    for (;;) {
      const index = this.#field(message, last);
      const field = message.fields[index];
      if (this.#peek() !== COLON) this.#fail('malformed JSON: expected a colon');
      this.#pos++;
      if (field === undefined) this.#skip();
      else {
        last = index;
        const bit = 1 << index;
        const isCamel = !this.#snake;
        const isNull = this.#peek() === LETTER_N;
        if ((camelSeen & bit) === 0 ? isCamel && isNull : !isCamel) this.#skip();
        else {
          const range = 2 * (depth * MAX_FIELDS + index);
          if ((seen & bit) !== 0) this.#blank(this.#ranges[range] ?? 0, this.#ranges[range + 1] ?? 0);
          camelSeen = isCamel && !isNull ? camelSeen | bit : camelSeen & ~bit;
          seen |= bit;
          this.#ranges[range] = this.#out.pos;
          this.#value(field, depth);
          this.#ranges[range + 1] = this.#out.pos;
        }
      }
      const byte = this.#peek();
      this.#pos++;
      if (byte === CLOSE_OBJECT) {
        this.#depth--;
        return;
      }
      if (byte !== COMMA) this.#fail('malformed JSON: expected a comma or the end of an object');
    }
  }
  /** Of each field of the messages that are open: where its value was written. */
  readonly #ranges = new Int32Array(2 * (MAX_DEPTH + 1) * MAX_FIELDS);

  /** Turns what was written in a range into fields that no message knows: number 1 as a varint. */
  #blank(from: number, to: number): void {
    const { u8 } = this.#kernel;
    for (let at = from; at < to; at += 2) {
      const isLast = to - at === 3;
      u8[at] = 1 << 3;
      u8[at + 1] = isLast ? 0x80 : 0;
      if (isLast) u8[(at += 2)] = 0;
    }
  }
  #snake = false;
  /** Containers open at the position. */
  #depth = 0;

  /**
   * Reads a key; index of the field it names, or -1. Writers keep to an order: the field that came after `last` the last
   * time is tried before the others, which saves finding the end of the key.
   */
  #field(message: Message, last: number): number {
    if (this.#peek() !== QUOTE) this.#fail('malformed JSON: expected a key');
    const { x, u8 } = this.#kernel;
    let start = this.#pos + 1;
    const guess = message.successors[last] ?? 0;
    const guessed = message.fields[guess]?.camel;
    if (guessed !== undefined) {
      const quote = start + guessed.length;
      if (quote < this.#end && u8[quote] === QUOTE && x.equals(start, guessed.at, guessed.length) !== 0) {
        this.#pos = quote + 1;
        this.#snake = false;
        return guess;
      }
    }
    const close = x.stringEnd(start, this.#end);
    if (close === 0) {
      // Ill-formed UTF-8 in a key: no key of ours.
      this.#pos = this.#stringEndLoose();
      return -1;
    }
    this.#pos = close + 1;
    let length = close - start;
    if (length > MAX_KEY_BYTES) return -1;
    for (let i = start; i < close; i++) {
      if (u8[i] === BACKSLASH) {
        x.unescape(start, close + 1, this.#scratch);
        start = this.#scratch;
        length = (this.#kernel.i32[Word.UnescapeOut] ?? 0) - start;
        break;
      }
    }
    const { fields } = message;
    for (let index = 0; index < fields.length; index++) {
      const { camel, snake } = fields[index] as Field;
      if (camel.length === length && x.equals(start, camel.at, length) !== 0) {
        this.#snake = false;
        message.successors[last] = index;
        return index;
      }
      if (snake !== camel && snake.length === length && x.equals(start, snake.at, length) !== 0) {
        this.#snake = true;
        return index;
      }
    }
    return -1;
  }

  /** Address after the string at the position, its UTF-8 ill-formed. */
  #stringEndLoose(): number {
    const { u8, x } = this.#kernel;
    for (let i = this.#pos + 1; i < this.#end; i++) {
      if (u8[i] === BACKSLASH) i++;
      else if (u8[i] === QUOTE) {
        this.#out.room(3 * (i - this.#pos));
        if (x.unescape(this.#pos + 1, this.#end, this.#out.pos) === 0) break;
        return i + 1;
      }
    }
    return this.#fail('malformed JSON: unterminated or invalid string');
  }

  #tag(number: number, wire: number): void {
    this.#varint(((number << 3) | wire) >>> 0, 0);
  }

  /** A varint of two words, low and high. */
  #varint(low: number, high: number): void {
    const out = this.#out;
    out.room(10);
    const { u8 } = this.#kernel;
    let lo = low >>> 0;
    let hi = high >>> 0;
    while (hi !== 0 || lo > 127) {
      u8[out.pos++] = (lo & 127) | 128;
      lo = ((lo >>> 7) | (hi << 25)) >>> 0;
      hi >>>= 7;
    }
    u8[out.pos++] = lo;
  }

  /** Leaves room for a length; returns where. */
  #open(): number {
    const at = this.#out.pos;
    this.#out.room(LENGTH_BYTES);
    this.#out.pos += LENGTH_BYTES;
    return at;
  }

  #close(at: number): void {
    const { u8 } = this.#kernel;
    let length = this.#out.pos - at - LENGTH_BYTES;
    for (let i = 0; i < LENGTH_BYTES - 1; i++) {
      u8[at + i] = (length & 127) | 128;
      length >>>= 7;
    }
    u8[at + LENGTH_BYTES - 1] = length;
  }

  #value(field: Field, depth: number): void {
    const byte = this.#peek();
    switch (field.kind) {
      case Kind.String:
        if (byte !== QUOTE) break;
        this.#tag(field.number, 2);
        this.#string(field);
        return;
      case Kind.Message: {
        if (byte !== OPEN_OBJECT) break;
        this.#tag(field.number, 2);
        const at = this.#open();
        this.#message(field.message ?? this.#root, depth + 1);
        this.#close(at);
        return;
      }
      case Kind.Messages:
        if (byte !== OPEN_ARRAY) break;
        this.#messages(field, depth);
        return;
      case Kind.Fixed64:
        if (!this.#numeric()) return;
        this.#nanoseconds();
        this.#tag(field.number, 1);
        this.#out.room(8);
        this.#kernel.view.setInt32(this.#out.pos, this.#low, true);
        this.#kernel.view.setInt32(this.#out.pos + 4, this.#high, true);
        this.#out.pos += 8;
        return;
      case Kind.Int64:
        if (this.#numeric()) this.#int64(field.number);
        return;
      case Kind.Double:
        if (this.#numeric()) this.#double(field.number, this.#finite());
        return;
      case Kind.Bool:
        if (byte !== LETTER_T && byte !== LETTER_F) break;
        this.#skip();
        this.#tag(field.number, 0);
        this.#out.byte(byte === LETTER_T ? 1 : 0);
        return;
      case Kind.Bytes:
        if (byte !== QUOTE) break;
        this.#bytes(field);
        return;
      case Kind.TraceId:
        if (byte !== QUOTE) break;
        this.#id(field, 16);
        return;
      case Kind.SpanId:
        if (byte !== QUOTE) break;
        this.#id(field, 8);
        return;
      case Kind.SpanKind:
        this.#enumeration(field, SPAN_KINDS);
        return;
      case Kind.StatusCode:
        this.#enumeration(field, STATUS_CODES);
        return;
    }
    // null, the wrong type, or counts and flags that nothing of ours depends on
    this.#skip();
  }

  /** Elements that are no objects are passed over; among the values of an array they keep their place, unset. */
  #messages(field: Field, depth: number): void {
    this.#pos++; // the opening bracket
    this.#depth++;
    if (this.#peek() === CLOSE_ARRAY) {
      this.#pos++;
      this.#depth--;
      return;
    }
    const keepsPlaces = field.message?.name === ANY_VALUE;
    for (;;) {
      const isObject = this.#peek() === OPEN_OBJECT;
      if (isObject || keepsPlaces) {
        this.#tag(field.number, 2);
        const at = this.#open();
        if (isObject) this.#message(field.message ?? this.#root, depth + 1);
        this.#close(at);
      }
      if (!isObject) this.#skip();
      const byte = this.#peek();
      this.#pos++;
      if (byte === CLOSE_ARRAY) {
        this.#depth--;
        return;
      }
      if (byte !== COMMA) this.#fail('malformed JSON: expected a comma or the end of an array');
    }
  }

  /** Writes length and UTF-8 bytes of the string that is next. */
  #string(field: Field): void {
    const out = this.#out;
    const at = this.#open();
    // The output is at most three times the string; what is left of the body bounds the string.
    out.room(Math.min(this.#end - this.#pos, SHORT_BYTES) * 3);
    let close = 0;
    const shortEnd = Math.min(this.#end, this.#pos + SHORT_BYTES);
    close = this.#kernel.x.unescape(this.#pos + 1, shortEnd, out.pos);
    if (close === 0 && shortEnd < this.#end) {
      out.room((this.#end - this.#pos) * 3);
      close = this.#kernel.x.unescape(this.#pos + 1, this.#end, out.pos);
    }
    if (close === 0) this.#fail(`malformed JSON: ${field.name} holds an unterminated or invalid string`);
    this.#pos = close + 1;
    out.pos = this.#kernel.i32[Word.UnescapeOut] ?? out.pos;
    this.#close(at);
  }

  #low = 0;
  #high = 0;

  /**
   * Consumes the value that is next. True when it is a number or a string; its text, which may yet be no number, is then
   * [#start, #start + #length).
   */
  #numeric(): boolean {
    const first = this.#peek();
    const { x } = this.#kernel;
    this.#quoted = first === QUOTE;
    if (this.#quoted) {
      const close = x.stringEnd(this.#pos + 1, this.#end);
      if (close === 0) {
        this.#pos = this.#stringEndLoose();
        return false;
      }
      this.#start = this.#pos + 1;
      this.#length = close - this.#start;
      this.#pos = close + 1;
      this.#resolve();
      return true;
    }
    this.#escaped = false;
    this.#start = this.#pos;
    this.#skip();
    this.#length = this.#pos - this.#start;
    return first === MINUS || (first >= DIGIT_0 && first <= DIGIT_9);
  }
  #start = 0;
  #length = 0;
  #quoted = false;
  /** The text still holds escapes: it is too long for the scratch. */
  #escaped = false;

  /** Resolves escapes in the string found last, which number readers and ids then see as plain text. */
  #resolve(): void {
    this.#escaped = this.#hasEscape(this.#start, this.#length);
    if (!this.#escaped || this.#length > SCRATCH_BYTES / 4) return;
    this.#kernel.x.unescape(this.#start, this.#start + this.#length + 1, this.#scratch);
    this.#start = this.#scratch;
    this.#length = (this.#kernel.i32[Word.UnescapeOut] ?? 0) - this.#scratch;
    this.#escaped = false;
  }

  #hasEscape(at: number, length: number): boolean {
    const { u8 } = this.#kernel;
    for (let i = at; i < at + length; i++) if (u8[i] === BACKSLASH) return true;
    return false;
  }

  /** The text as unsigned nanoseconds into #low and #high; 0 when it is nothing of the kind. */
  #nanoseconds(): void {
    const { x, i32, u8 } = this.#kernel;
    const code = u8[this.#start] === MINUS ? 0 : x.integer(this.#start, this.#length);
    this.#low = 0;
    this.#high = 0;
    if (code !== 0) {
      this.#low = i32[Word.ValueA] ?? 0;
      this.#high = i32[Word.ValueB] ?? 0;
      return;
    }
    if (this.#quoted) return;
    // Exponent form or a fraction: JavaScript senders that print doubles.
    const value = Math.trunc(Number(this.#text()));
    if (!(value >= 0 && value <= MAX_UINT64)) return;
    const nanoseconds = BigInt(value);
    this.#low = Number(nanoseconds & 0xffffffffn) | 0;
    this.#high = Number((nanoseconds >> 32n) & 0xffffffffn) | 0;
  }

  /** Writes the text as an int64; a number that is none as a double; anything else not at all. */
  #int64(number: number): void {
    const { x, i32 } = this.#kernel;
    if (x.integer(this.#start, this.#length) === 1) {
      this.#tag(number, 0);
      this.#varint(i32[Word.ValueA] ?? 0, i32[Word.ValueB] ?? 0);
      return;
    }
    const text = this.#text();
    if (this.#quoted && !/^-?\d+$/.test(text)) return;
    this.#double(INT_OVERFLOW_FIELD, Number(text));
  }

  /** The text as a double; NaN when it is no JSON number. */
  #finite(): number {
    const text = this.#text();
    return JSON_NUMBER.test(text) ? Number(text) : NaN;
  }

  #text(): string {
    const text = Buffer.from(this.#kernel.u8.buffer as ArrayBuffer, this.#start, this.#length).toString('utf8');
    return this.#escaped ? (JSON.parse(`"${text}"`) as string) : text;
  }

  /** Not written when it is not finite: such a value counts as unset. */
  #double(number: number, value: number): void {
    if (!Number.isFinite(value)) return;
    this.#tag(number, 1);
    this.#out.room(8);
    this.#kernel.view.setFloat64(this.#out.pos, value, true);
    this.#out.pos += 8;
  }

  #bytes(field: Field): void {
    if (!this.#numeric()) return;
    const decoded = base64(this.#text());
    if (decoded !== null) this.#writeBytes(field.number, decoded);
  }

  #writeBytes(number: number, bytes: Uint8Array): void {
    this.#tag(number, 2);
    this.#varint(bytes.length, 0);
    this.#out.room(bytes.length);
    this.#kernel.u8.set(bytes, this.#out.pos);
    this.#out.pos += bytes.length;
  }

  /**
   * An id of `count` bytes: hex, base64 with or without padding, a dashed UUID (16 bytes), or base64 of hex text: each
   * has a length of its own, so the length alone decides. Anything else is written as one byte, which no id has: the
   * span is then rejected, or has no parent, without failing the request.
   */
  #id(field: Field, count: number): void {
    const { x, u8 } = this.#kernel;
    const start = this.#pos + 1;
    if (u8[start] === QUOTE) {
      this.#pos = start + 1;
      return; // empty: as absent
    }
    const close = x.stringEnd(start, this.#end);
    if (close === 0) {
      this.#pos = this.#stringEndLoose();
      this.#writeBytes(field.number, NO_ID);
      return;
    }
    const length = close - start;
    if (length === 2 * count && !this.#hasEscape(start, length)) {
      this.#tag(field.number, 2);
      this.#out.byte(count);
      this.#out.room(count);
      if (x.hexBytes(start, count, this.#out.pos) !== 0) {
        this.#out.pos += count;
        this.#pos = close + 1;
        return;
      }
      u8[this.#out.pos - 1] = 1;
      u8[this.#out.pos++] = 0;
      this.#pos = close + 1;
      return;
    }
    this.#numeric();
    this.#writeBytes(field.number, unusualId(this.#text(), count));
  }

  /** An integer, its digits in a string, or a name; 0 otherwise. */
  #enumeration(field: Field, names: readonly string[]): void {
    if (!this.#numeric()) return;
    const text = this.#text();
    let code = /^\d{1,9}$/.test(text) ? Number(text) : this.#quoted ? names.indexOf(text) : 0;
    if (code < 0 || code >= names.length) code = 0;
    this.#tag(field.number, 0);
    this.#out.byte(code);
  }
}

const SCRATCH_BYTES = 1024;
const MAX_KEY_BYTES = 256;
const SHORT_BYTES = 4096;
const MAX_UINT64 = 18_446_744_073_709_549_568; // the largest double below 2^64
/** An integer that fits no 64 bits becomes AnyValue.double_value. */
const INT_OVERFLOW_FIELD = 4;
const JSON_NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
const MINUS = 0x2d;
const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;
