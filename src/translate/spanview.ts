/**
 * The Span message as a plain object, for converters: a new one each time, nothing shared, so that whatever a converter
 * does to it ends with its call. Reads what the translator has validated, with the kernel's own reader.
 */
import type { ConverterAttributes, ConverterSpan, ConverterValue } from './converter.ts';
import { ValueType, Word } from './kernel/kernel.ts';
import type { Kernel } from './kernel/kernel.ts';

/** Field number << 3 | wire type. */
const SpanTag = {
  TraceId: (1 << 3) | 2,
  SpanId: (2 << 3) | 2,
  TraceState: (3 << 3) | 2,
  ParentSpanId: (4 << 3) | 2,
  Name: (5 << 3) | 2,
  Kind: 6 << 3,
  Start: (7 << 3) | 1,
  End: (8 << 3) | 1,
  Event: (11 << 3) | 2,
  Link: (13 << 3) | 2,
  Status: (15 << 3) | 2,
} as const;
const SPAN_ATTRIBUTES = 9;
const EventTag = { Time: (1 << 3) | 1, Name: (2 << 3) | 2 } as const;
const EVENT_ATTRIBUTES = 3;
const LinkTag = { TraceId: (1 << 3) | 2, SpanId: (2 << 3) | 2, TraceState: (3 << 3) | 2 } as const;
const LINK_ATTRIBUTES = 4;
const StatusTag = { Message: (2 << 3) | 2, Code: 3 << 3 } as const;
const RESOURCE_ATTRIBUTES = 1;
const ScopeTag = { Name: (1 << 3) | 2, Version: (2 << 3) | 2 } as const;
const SCOPE_ATTRIBUTES = 3;

const KINDS = ['unspecified', 'internal', 'server', 'client', 'producer', 'consumer'] as const;
const CODES = ['unset', 'ok', 'error'] as const;
const NO_PARENT = /^0*$/;
const SPAN_ID_DIGITS = 16;

/** Messages around the span, as address ranges in the kernel's memory. */
export interface Surroundings {
  readonly resourceAt: number;
  readonly resourceEnd: number;
  readonly scopeAt: number;
  readonly scopeEnd: number;
}

/** Hears of every field: its tag, and of a length-delimited one the range of its content. */
type OnField = (tag: number, at: number, end: number) => void;

export class SpanView {
  readonly #kernel: Kernel;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  readonly #double = new DataView(new ArrayBuffer(8));

  constructor(kernel: Kernel) {
    this.#kernel = kernel;
  }

  /** The Span message in [at, end). */
  read(at: number, end: number, around: Surroundings, project: string | null): ConverterSpan {
    let [traceId, spanId, traceState, parentSpanId, name] = ['', '', '', '', ''];
    let [startTimeUnixNano, endTimeUnixNano] = [0n, 0n];
    let kind: ConverterSpan['kind'] = 'unspecified';
    let status: ConverterSpan['status'] = { code: 'unset', message: '' };
    const events: ConverterSpan['events'][number][] = [];
    const links: ConverterSpan['links'][number][] = [];
    this.#fields(at, end, (tag, from, to) => {
      if (tag === SpanTag.TraceId) traceId = this.#hex(from, to);
      else if (tag === SpanTag.SpanId) spanId = this.#hex(from, to);
      else if (tag === SpanTag.TraceState) traceState = this.#text(from, to);
      else if (tag === SpanTag.ParentSpanId) parentSpanId = this.#hex(from, to);
      else if (tag === SpanTag.Name) name = this.#text(from, to);
      else if (tag === SpanTag.Kind) kind = KINDS[from] ?? 'unspecified';
      else if (tag === SpanTag.Start) startTimeUnixNano = this.#fixed64();
      else if (tag === SpanTag.End) endTimeUnixNano = this.#fixed64();
      else if (tag === SpanTag.Event) events.push(this.#event(from, to));
      else if (tag === SpanTag.Link) links.push(this.#link(from, to));
      else if (tag === SpanTag.Status) status = this.#status(from, to);
    });
    const hasParent = parentSpanId.length === SPAN_ID_DIGITS && !NO_PARENT.test(parentSpanId);
    return {
      traceId,
      spanId,
      parentSpanId: hasParent ? parentSpanId : null,
      traceState,
      name,
      kind,
      startTimeUnixNano,
      endTimeUnixNano,
      attributes: this.#attributes(at, end, SPAN_ATTRIBUTES),
      events,
      links,
      status,
      resource: { attributes: this.#attributes(around.resourceAt, around.resourceEnd, RESOURCE_ATTRIBUTES) },
      scope: this.#scope(around.scopeAt, around.scopeEnd),
      project,
    };
  }

  #fields(at: number, end: number, onField: OnField): void {
    const kernel = this.#kernel;
    let pos = at;
    while (pos < end) {
      pos = kernel.x.readField(pos, end);
      if (pos === 0) return;
      onField(kernel.i32[Word.ValueType] ?? 0, kernel.i32[Word.ValueA] ?? 0, kernel.i32[Word.ValueB] ?? 0);
    }
  }

  #event(at: number, end: number): ConverterSpan['events'][number] {
    let name = '';
    let timeUnixNano = 0n;
    this.#fields(at, end, (tag, from, to) => {
      if (tag === EventTag.Time) timeUnixNano = this.#fixed64();
      else if (tag === EventTag.Name) name = this.#text(from, to);
    });
    return { name, timeUnixNano, attributes: this.#attributes(at, end, EVENT_ATTRIBUTES) };
  }

  #link(at: number, end: number): ConverterSpan['links'][number] {
    let [traceId, spanId, traceState] = ['', '', ''];
    this.#fields(at, end, (tag, from, to) => {
      if (tag === LinkTag.TraceId) traceId = this.#hex(from, to);
      else if (tag === LinkTag.SpanId) spanId = this.#hex(from, to);
      else if (tag === LinkTag.TraceState) traceState = this.#text(from, to);
    });
    return { traceId, spanId, traceState, attributes: this.#attributes(at, end, LINK_ATTRIBUTES) };
  }

  #status(at: number, end: number): ConverterSpan['status'] {
    let message = '';
    let code: ConverterSpan['status']['code'] = 'unset';
    this.#fields(at, end, (tag, from, to) => {
      if (tag === StatusTag.Message) message = this.#text(from, to);
      else if (tag === StatusTag.Code) code = CODES[from] ?? 'unset';
    });
    return { code, message };
  }

  #scope(at: number, end: number): ConverterSpan['scope'] {
    let [name, version] = ['', ''];
    this.#fields(at, end, (tag, from, to) => {
      if (tag === ScopeTag.Name) name = this.#text(from, to);
      else if (tag === ScopeTag.Version) version = this.#text(from, to);
    });
    return { name, version, attributes: this.#attributes(at, end, SCOPE_ATTRIBUTES) };
  }

  /** The KeyValue messages that are field `number` of a message. */
  #attributes(at: number, end: number, number: number): ConverterAttributes {
    const kernel = this.#kernel;
    const found = Object.create(null) as Record<string, ConverterValue>;
    let pos = kernel.x.nextMember(at, end, number);
    while (pos !== 0) {
      const keyAt = kernel.i32[Word.MemberKeyOff] ?? 0;
      const key = this.#text(keyAt, keyAt + (kernel.i32[Word.MemberKeyLen] ?? 0));
      const value = this.#value();
      if (value !== undefined) found[key] = value;
      pos = kernel.x.nextMember(pos, end, number);
    }
    return found;
  }

  /** The value that the kernel stands at; undefined when it is absent. */
  #value(): ConverterValue | undefined {
    const { i32 } = this.#kernel;
    const a = i32[Word.ValueA] ?? 0;
    const b = i32[Word.ValueB] ?? 0;
    switch (i32[Word.ValueType]) {
      case ValueType.String:
        return this.#text(a, a + b);
      case ValueType.Bool:
        return a !== 0;
      case ValueType.Int: {
        const value = (BigInt(b) << 32n) | BigInt(a >>> 0);
        return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
      }
      case ValueType.Double: {
        this.#double.setInt32(0, a, true);
        this.#double.setInt32(4, b, true);
        const value = this.#double.getFloat64(0, true);
        return Number.isFinite(value) ? value : undefined;
      }
      case ValueType.Bytes:
        return this.#bytes(a, a + b).toString('base64');
      case ValueType.Array:
        return this.#array(a, a + b);
      case ValueType.Kvlist:
        return this.#attributes(a, a + b, 1);
      default:
        return undefined;
    }
  }

  #array(at: number, end: number): ConverterValue[] {
    const { x } = this.#kernel;
    const found: ConverterValue[] = [];
    for (let pos = x.nextElement(at, end); pos !== 0; pos = x.nextElement(pos, end)) found.push(this.#value() ?? null);
    return found;
  }

  /** The 64 bits of the field read last. */
  #fixed64(): bigint {
    return this.#kernel.view.getBigUint64(Word.ValueA * Int32Array.BYTES_PER_ELEMENT, true);
  }

  #text(at: number, end: number): string {
    return this.#decoder.decode(this.#kernel.u8.subarray(at, end));
  }

  #hex(at: number, end: number): string {
    return this.#bytes(at, end).toString('hex');
  }

  #bytes(at: number, end: number): Buffer {
    return Buffer.from(this.#kernel.u8.buffer, at, end - at);
  }
}
