/**
 * The owner's side of the byte kernel: its memory, its exports, and where in memory what lies.
 *
 * Why WebAssembly at all: JavaScript engines look at one byte at a time, these instructions at sixteen. The sources are in
 * assembly/, in the dialect of TypeScript that AssemblyScript compiles; kernel.wasm is what `npm run kernel:build` makes of
 * them. bench/translation.ts measures the translator that stands on it; the same scan in TypeScript was not measured.
 *
 * Memory, from low to high: the kernel's own fixed part; what is allocated once at setup ({@link Kernel.allocate});
 * then, per request, input, scratch and output, laid out by the decoder. Every region is followed by at least
 * {@link SLACK_BYTES}: the kernel reads and writes whole vectors. Only one thread ever uses a kernel.
 */
import { readFileSync } from 'node:fs';

import { Fault } from '../../core/outcome.ts';

/** Bytes that the kernel may read or write past the end of any range. */
export const SLACK_BYTES = 64;

const PAGE_BYTES = 65_536;
/** 2 GiB: addresses stay within signed 32-bit integers. */
const MAX_PAGES = 32_768;
/** After a request that needed more memory than this, the memory is given back. */
const KEEP_BYTES = 64 * 1024 * 1024;
const OWNER_BASE = 0x40000;

/** Word (Int32) indices of the kernel's fixed results; the same numbers stand in assembly/layout.ts. */
export const Word = {
  DocFlags: 1024 >> 2,
  DocNodes: 1028 >> 2,
  UnescapeOut: 1032 >> 2,
  TraceOff: 1280 >> 2,
  TraceLen: 1284 >> 2,
  SpanOff: 1288 >> 2,
  SpanLen: 1292 >> 2,
  ParentOff: 1296 >> 2,
  ParentLen: 1300 >> 2,
  NameOff: 1304 >> 2,
  NameLen: 1308 >> 2,
  Kind: 1312 >> 2,
  StatusCode: 1316 >> 2,
  StatusOff: 1320 >> 2,
  StatusLen: 1324 >> 2,
  Events: 1328 >> 2,
  Links: 1332 >> 2,
  Indexed: 1336 >> 2,
  Prefixed: 1340 >> 2,
  Groups: 1344 >> 2,
  Marks: 1348 >> 2,
  EventNameOff: 1376 >> 2,
  EventNameLen: 1380 >> 2,
  LinkTraceOff: 1384 >> 2,
  LinkTraceLen: 1388 >> 2,
  LinkSpanOff: 1392 >> 2,
  LinkSpanLen: 1396 >> 2,
  ValueType: 1400 >> 2,
  ValueA: 1404 >> 2,
  ValueB: 1408 >> 2,
  MemberKeyOff: 1412 >> 2,
  MemberKeyLen: 1416 >> 2,
  TraceStateOff: 1420 >> 2,
  /** Bit 0: the start time is not zero; bit 1: the end time. */
  Given: 1428 >> 2,
  /** Whether the event's time is not zero. */
  EventGiven: 1432 >> 2,
  TraceStateLen: 1424 >> 2,
} as const;

/** Float64 indices. */
export const Double = { StartUs: 1352 >> 3, EndUs: 1360 >> 3, EventTimeUs: 1368 >> 3 } as const;

export const DocFlag = { EscapedKey: 1, MaybeDuplicate: 2, TapeFull: 4, LoneSurrogate: 16 } as const;

/** Types of an attribute's value, as the kernel notes them. 0 is absent. */
export const ValueType = {
  Absent: 0,
  String: 1,
  Bool: 2,
  Int: 3,
  Double: 4,
  Array: 5,
  Kvlist: 6,
  Bytes: 7,
} as const;

/** Addresses and lengths are bytes in the kernel's memory. The meaning of each is documented in assembly/. */
interface KernelExports {
  copy(src: number, len: number, dst: number): number;
  decimal(low: number, high: number, dst: number): number;
  equals(p: number, q: number, len: number): number;
  escape(src: number, len: number, dst: number): number;
  hash(p: number, len: number): number;
  hexBytes(p: number, count: number, dst: number): number;
  hexText(p: number, count: number, dst: number): number;
  integer(p: number, len: number): number;
  sanitize(src: number, len: number, dst: number): number;
  stringEnd(p: number, end: number): number;
  unescape(p: number, end: number, dst: number): number;
  wellFormed(p: number, len: number): number;
  parse(p: number, end: number, tape: number, maxNodes: number): number;
  skip(p: number, end: number, depth: number): number;
  skipSpace(p: number, end: number): number;
  checkAttributes(p: number, end: number, number: number): number;
  configureKeys(
    base: number,
    mask: number,
    prefixes: number,
    count: number,
    starts: number,
    groups: number,
    scratch: number,
  ): void;
  configureLists(indexed: number, maxIndexed: number, prefixed: number, maxPrefixed: number): void;
  lookupKey(p: number, len: number): number;
  nextElement(p: number, end: number): number;
  nextMember(p: number, end: number, number: number): number;
  readField(p: number, end: number): number;
  scanEvent(p: number, end: number, attributes: number, stamp: number): number;
  scanLink(p: number, end: number): void;
  scanSpan(p: number, end: number, attributes: number, stamp: number): number;
  claim(table: number, mask: number, generation: number, count: number, key: number, len: number): number;
}

/** Bytes in the kernel's memory that never change: a constant piece of output, or the name of a key. */
export interface Literal {
  readonly at: number;
  readonly length: number;
}

export class Kernel {
  x: KernelExports;
  u8: Uint8Array;
  i32: Int32Array;
  u32: Uint32Array;
  f64: Float64Array;
  view: DataView;
  #memory: WebAssembly.Memory;
  readonly #module: WebAssembly.Module;
  #staticEnd = OWNER_BASE;
  readonly #onRenew: (() => void)[] = [];
  readonly #encoder = new TextEncoder();
  readonly #literals = new Map<string, Literal>();

  constructor() {
    this.#module = new WebAssembly.Module(readFileSync(new URL('./kernel.wasm', import.meta.url)));
    this.#memory = new WebAssembly.Memory({ initial: 32, maximum: MAX_PAGES });
    this.x = this.#instantiate();
    const buffer = this.#memory.buffer;
    this.u8 = new Uint8Array(buffer);
    this.i32 = new Int32Array(buffer);
    this.u32 = new Uint32Array(buffer);
    this.f64 = new Float64Array(buffer);
    this.view = new DataView(buffer);
  }

  #instantiate(): KernelExports {
    const instance = new WebAssembly.Instance(this.#module, { env: { memory: this.#memory } });
    // A copy: the engine reads the exports object itself as a dictionary, several times slower than plain fields.
    return { ...(instance.exports as unknown as KernelExports) };
  }

  #views(): void {
    const buffer = this.#memory.buffer;
    this.u8 = new Uint8Array(buffer);
    this.i32 = new Int32Array(buffer);
    this.u32 = new Uint32Array(buffer);
    this.f64 = new Float64Array(buffer);
    this.view = new DataView(buffer);
  }

  /** Makes sure that addresses up to `end`, and the slack behind it, exist. */
  reserve(end: number): void {
    const missing = end + SLACK_BYTES - this.u8.length;
    if (missing <= 0) return;
    const pages = Math.ceil(missing / PAGE_BYTES);
    const current = this.u8.length / PAGE_BYTES;
    // Half as much again, so that a growing output does not renew the views page by page.
    const wanted = Math.min(Math.max(pages, current >> 1), MAX_PAGES - current);
    if (wanted < pages) throw new Fault('translation needs more than 2 GiB');
    this.#memory.grow(wanted);
    this.#views();
  }

  /** Allocates for the kernel's whole life. Only at setup: requests lay out what is behind `staticEnd`. */
  allocate(lengthBytes: number): number {
    const at = this.#staticEnd;
    this.#staticEnd = (at + lengthBytes + SLACK_BYTES + 15) & -16;
    this.reserve(this.#staticEnd);
    return at;
  }

  get staticEnd(): number {
    return this.#staticEnd;
  }

  literal(text: string): Literal {
    const known = this.#literals.get(text);
    if (known !== undefined) return known;
    const bytes = this.#encoder.encode(text);
    const literal = { at: this.allocate(bytes.length), length: bytes.length };
    this.u8.set(bytes, literal.at);
    this.#literals.set(text, literal);
    return literal;
  }

  /** Called whenever the instance is replaced: whoever configured it has to do so again. */
  onRenew(callback: () => void): void {
    this.#onRenew.push(callback);
  }

  /** Between requests: gives memory back that an uncommonly large request needed. Addresses of statics stay. */
  trim(): void {
    if (this.u8.length <= KEEP_BYTES || this.#staticEnd > KEEP_BYTES / 2) return;
    const statics = this.u8.slice(0, this.#staticEnd);
    this.#memory = new WebAssembly.Memory({
      initial: Math.ceil((this.#staticEnd + PAGE_BYTES) / PAGE_BYTES),
      maximum: MAX_PAGES,
    });
    this.x = this.#instantiate();
    this.#views();
    this.u8.set(statics);
    for (const renew of this.#onRenew) renew();
  }
}
