/** Spans → request bodies, in both encodings: what the tests send. */
import { loadRequestType, type AnyValue, type Pair, type SpanInput } from './otlp.ts';

/** A double though it is integral. */
export class Double {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

/** Values as a test writes them; `null` is an unset value, a number is an int64 when integral. */
export type Plain =
  | null
  | string
  | boolean
  | number
  | bigint
  | Uint8Array
  | Double
  | readonly Plain[]
  | { readonly [key: string]: Plain };

export type PlainAttributes = Readonly<Record<string, Plain>> | readonly (readonly [string, Plain])[];

export interface SpanSpec {
  readonly traceId?: string;
  readonly spanId?: string;
  readonly parentSpanId?: string;
  readonly name?: string;
  readonly kind?: number;
  readonly startNs?: bigint;
  readonly endNs?: bigint;
  readonly attributes?: PlainAttributes;
  readonly events?: readonly { name: string; timeNs?: bigint; attributes?: PlainAttributes }[];
  readonly links?: readonly { traceId: string; spanId: string; attributes?: PlainAttributes }[];
  readonly status?: { code: number; message?: string };
  readonly scopeName?: string;
  readonly resource?: PlainAttributes;
}

export const TRACE_ID = '5b8efff798038103d269b633813fc60c';
export const SPAN_ID = 'eee19b7ec3c1b174';
export const START_NS = 1747675155185223936n;
export const END_NS = 1747675156185223000n;

export function spanOf(spec: SpanSpec): SpanInput {
  const id = (hex: string): Uint8Array => new Uint8Array(Buffer.from(hex, 'hex'));
  return {
    traceId: id(spec.traceId ?? TRACE_ID),
    spanId: id(spec.spanId ?? SPAN_ID),
    parentSpanId: id(spec.parentSpanId ?? ''),
    name: spec.name ?? 'span',
    kind: spec.kind ?? 0,
    startNs: spec.startNs ?? START_NS,
    endNs: spec.endNs ?? END_NS,
    attributes: pairsOf(spec.attributes ?? {}),
    events: (spec.events ?? []).map((event) => ({
      name: event.name,
      timeNs: event.timeNs ?? START_NS,
      attributes: pairsOf(event.attributes ?? {}),
    })),
    links: (spec.links ?? []).map((link) => ({
      traceId: id(link.traceId),
      spanId: id(link.spanId),
      attributes: pairsOf(link.attributes ?? {}),
    })),
    status: { code: spec.status?.code ?? 0, message: spec.status?.message ?? '' },
    scopeName: spec.scopeName ?? '',
    resource: pairsOf(spec.resource ?? {}),
  };
}

export function pairsOf(attributes: PlainAttributes): Pair[] {
  const entries = Array.isArray(attributes) ? (attributes as [string, Plain][]) : Object.entries(attributes);
  return entries.map(([key, value]) => [key, anyOf(value)]);
}

export function anyOf(value: Plain): AnyValue {
  if (value === null) return { kind: 'unset' };
  if (typeof value === 'string') return { kind: 'string', value };
  if (typeof value === 'boolean') return { kind: 'bool', value };
  if (typeof value === 'bigint') return { kind: 'int', value };
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) ? { kind: 'int', value: BigInt(value) } : { kind: 'double', value };
  }
  if (value instanceof Uint8Array) return { kind: 'bytes', value };
  if (value instanceof Double) return { kind: 'double', value: value.value };
  if (Array.isArray(value)) return { kind: 'array', value: value.map(anyOf) };
  return { kind: 'kvlist', value: pairsOf(value as Readonly<Record<string, Plain>>) };
}

// --- protobuf -------------------------------------------------------------------------------------------------------

const requestType = loadRequestType();

/**
 * Stands for broken text: written as as many bytes that no UTF-8 has, so that no length prefix has to change. Long enough
 * not to turn up in ids and numbers.
 */
export const BROKEN = '\ue000\ue001';
const brokenBytes = Buffer.from([0xf0, 0x28, 0xff, 0xc3, 0x28, 0x80]);

export function protobufOf(spans: readonly SpanInput[]): Uint8Array {
  const request = { resourceSpans: spans.map((span) => resourceSpans(span, protobufForm)) };
  return breakText(requestType.encode(requestType.fromObject(request)).finish());
}

export function jsonOf(spans: readonly SpanInput[]): Uint8Array {
  const request = { resourceSpans: spans.map((span) => resourceSpans(span, jsonForm)) };
  return breakText(Buffer.from(JSON.stringify(request)));
}

function breakText(body: Uint8Array): Uint8Array {
  const bytes = Buffer.from(body);
  const mark = Buffer.from(BROKEN);
  for (let at = bytes.indexOf(mark); at >= 0; at = bytes.indexOf(mark, at)) brokenBytes.copy(bytes, at);
  return bytes;
}

interface Form {
  readonly id: (id: Uint8Array) => unknown;
  readonly bytes: (bytes: Uint8Array) => unknown;
  readonly double: (value: number) => unknown;
}

const protobufForm: Form = { id: (id) => id, bytes: (bytes) => bytes, double: (value) => value };
const jsonForm: Form = {
  id: (id) => Buffer.from(id).toString('hex'),
  bytes: (bytes) => Buffer.from(bytes).toString('base64'),
  double: (value) => (Number.isFinite(value) ? value : String(value)),
};

function resourceSpans(span: SpanInput, form: Form): object {
  return {
    resource: { attributes: keyValues(span.resource, form) },
    scopeSpans: [{ scope: { name: span.scopeName }, spans: [spanMessage(span, form)] }],
  };
}

function spanMessage(span: SpanInput, form: Form): object {
  return {
    traceId: form.id(span.traceId),
    spanId: form.id(span.spanId),
    ...(span.parentSpanId.length === 0 ? {} : { parentSpanId: form.id(span.parentSpanId) }),
    name: span.name,
    kind: span.kind,
    startTimeUnixNano: span.startNs.toString(),
    endTimeUnixNano: span.endNs.toString(),
    attributes: keyValues(span.attributes, form),
    events: span.events.map((event) => ({
      timeUnixNano: event.timeNs.toString(),
      name: event.name,
      attributes: keyValues(event.attributes, form),
    })),
    links: span.links.map((link) => ({
      traceId: form.id(link.traceId),
      spanId: form.id(link.spanId),
      attributes: keyValues(link.attributes, form),
    })),
    status: span.status,
  };
}

function keyValues(pairs: readonly Pair[], form: Form): object[] {
  return pairs.map(([key, value]) => ({ key, value: anyMessage(value, form) }));
}

function anyMessage(value: AnyValue, form: Form): object {
  switch (value.kind) {
    case 'unset':
      return {};
    case 'string':
      return { stringValue: value.value };
    case 'bool':
      return { boolValue: value.value };
    case 'int':
      return { intValue: value.value.toString() };
    case 'double':
      return { doubleValue: form.double(value.value) };
    case 'bytes':
      return { bytesValue: form.bytes(value.value) };
    case 'array':
      return { arrayValue: { values: value.value.map((item) => anyMessage(item, form)) } };
    case 'kvlist':
      return { kvlistValue: { values: keyValues(value.value, form) } };
  }
}
