/**
 * OTLP bodies → spans, the slow way: protobuf through protobufjs and the schema in `proto/`, JSON through the judge's own
 * reader. Both end in the same plain span, values still as the wire had them.
 */
import protobuf from 'protobufjs';
import { fileURLToPath } from 'node:url';

import { readBody, Num, writtenMembers, type Json, type JsonObject } from './json.ts';

export type AnyValue =
  | { kind: 'unset' }
  | { kind: 'string'; value: string }
  | { kind: 'bool'; value: boolean }
  | { kind: 'int'; value: bigint }
  | { kind: 'double'; value: number }
  | { kind: 'bytes'; value: Uint8Array }
  | { kind: 'array'; value: AnyValue[] }
  | { kind: 'kvlist'; value: Pair[] };

export type Pair = [key: string, value: AnyValue];

export interface SpanInput {
  readonly traceId: Uint8Array;
  readonly spanId: Uint8Array;
  readonly parentSpanId: Uint8Array;
  readonly name: string;
  readonly kind: number;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Pair[];
  readonly events: { timeNs: bigint; name: string; attributes: Pair[] }[];
  readonly links: { traceId: Uint8Array; spanId: Uint8Array; attributes: Pair[] }[];
  readonly status: { code: number; message: string };
  readonly scopeName: string;
  readonly resource: Pair[];
}

const unset: AnyValue = { kind: 'unset' };
const none = new Uint8Array(0);

// --- protobuf -------------------------------------------------------------------------------------------------------

interface Wire extends protobuf.Message {
  [field: string]: unknown;
}

export function loadRequestType(): protobuf.Type {
  const path = fileURLToPath(new URL('../../proto/collector.proto', import.meta.url));
  return protobuf.loadSync(path).lookupType('opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest');
}

const requestType = loadRequestType();
addLibrarySpans(requestType);
leaveOutEntities(requestType);
/** Of messages in messages: enough for what canonical.ts lets through. */
protobuf.Reader.recursionLimit = 200;

/** Until protocol 0.15 scopes were called instrumentation libraries; field 1000 is reserved for them. */
function addLibrarySpans(request: protobuf.Type): void {
  const resourceSpans = request.root.lookupType('opentelemetry.proto.trace.v1.ResourceSpans');
  resourceSpans.reserved = [];
  resourceSpans.add(new protobuf.Field('librarySpans', 1000, 'ScopeSpans', 'repeated'));
}

/** Nothing of ours depends on them, so nobody looks whether they are well-formed. */
function leaveOutEntities(request: protobuf.Type): void {
  const resource = request.root.lookupType('opentelemetry.proto.resource.v1.Resource');
  resource.remove(resource.fields['entityRefs'] as protobuf.Field);
}

/** Throws when the body is no request. */
export function spansOfProtobuf(body: Uint8Array): SpanInput[] {
  const reader = protobuf.Reader.create(Buffer.from(body)) as protobuf.Reader & { stringVerify: () => string };
  // Invalid UTF-8 is replaced, not refused.
  reader.stringVerify = () => Buffer.from(reader.bytes()).toString('utf8');
  const request = requestType.decode(reader);
  const spans: SpanInput[] = [];
  for (const resourceSpans of list(request['resourceSpans'])) {
    const resource = pairs(child(resourceSpans, 'resource')?.['attributes']);
    const scoped = ['scopeSpans', 'librarySpans'].map((field) => list(resourceSpans[field]));
    for (const scopeSpans of scoped.find((found) => found.length > 0) ?? []) {
      const scopeName = text(child(scopeSpans, 'scope')?.['name']);
      for (const span of list(scopeSpans['spans'])) {
        const status = child(span, 'status');
        spans.push({
          traceId: bytes(span['traceId']),
          spanId: bytes(span['spanId']),
          parentSpanId: bytes(span['parentSpanId']),
          name: text(span['name']),
          kind: Number(span['kind']),
          startNs: ns(span['startTimeUnixNano']),
          endNs: ns(span['endTimeUnixNano']),
          attributes: pairs(span['attributes']),
          events: list(span['events']).map((event) => ({
            timeNs: ns(event['timeUnixNano']),
            name: text(event['name']),
            attributes: pairs(event['attributes']),
          })),
          links: list(span['links']).map((link) => ({
            traceId: bytes(link['traceId']),
            spanId: bytes(link['spanId']),
            attributes: pairs(link['attributes']),
          })),
          status: { code: Number(status?.['code'] ?? 0), message: text(status?.['message'] ?? '') },
          scopeName,
          resource,
        });
      }
    }
  }
  return spans;
}

function list(value: unknown): Wire[] {
  return (value ?? []) as Wire[];
}
function child(parent: Wire, field: string): Wire | undefined {
  return (parent[field] ?? undefined) as Wire | undefined;
}
function text(value: unknown): string {
  return (value as string | undefined) ?? '';
}
function bytes(value: unknown): Uint8Array {
  return new Uint8Array((value as Uint8Array | undefined) ?? none);
}
function ns(value: unknown): bigint {
  return BigInt((value as { toString(): string } | undefined)?.toString() ?? 0);
}
function pairs(value: unknown): Pair[] {
  return list(value).map((pair) => [text(pair['key']), anyOf(child(pair, 'value'))]);
}
function anyOf(value: Wire | undefined): AnyValue {
  // The oneof's virtual field names the member that the wire set last.
  switch (value?.['value']) {
    case 'stringValue':
      return { kind: 'string', value: text(value['stringValue']) };
    case 'boolValue':
      return { kind: 'bool', value: value['boolValue'] as boolean };
    case 'intValue':
      return { kind: 'int', value: ns(value['intValue']) };
    case 'doubleValue':
      return { kind: 'double', value: value['doubleValue'] as number };
    case 'bytesValue':
      return { kind: 'bytes', value: bytes(value['bytesValue']) };
    case 'arrayValue':
      return { kind: 'array', value: list(child(value, 'arrayValue')?.['values']).map(anyOf) };
    case 'kvlistValue':
      return { kind: 'kvlist', value: pairs(child(value, 'kvlistValue')?.['values']) };
    default:
      return unset;
  }
}

// --- JSON -----------------------------------------------------------------------------------------------------------

/** Throws when the body is no JSON object. */
export function spansOfJson(body: Uint8Array): SpanInput[] {
  const request = readBody(new TextDecoder().decode(body));
  if (!(request instanceof Map)) throw new SyntaxError('not an object');
  const spans: SpanInput[] = [];
  for (const resourceSpans of items(field(request, 'resourceSpans'))) {
    const resource = jsonPairs(member(field(resourceSpans, 'resource'), 'attributes'));
    const scoped = ['scopeSpans', 'instrumentationLibrarySpans'].map((key) => items(field(resourceSpans, key)));
    for (const scopeSpans of scoped.find((found) => found.length > 0) ?? []) {
      const scope = field(scopeSpans, 'scope') ?? field(scopeSpans, 'instrumentationLibrary');
      for (const span of items(field(scopeSpans, 'spans'))) {
        const status = field(span, 'status');
        spans.push({
          traceId: idOf(field(span, 'traceId'), 16),
          spanId: idOf(field(span, 'spanId'), 8),
          parentSpanId: idOf(field(span, 'parentSpanId'), 8),
          name: string(field(span, 'name')),
          kind: enumOf(field(span, 'kind'), 'SPAN_KIND_', spanKinds),
          startNs: nanoseconds(field(span, 'startTimeUnixNano')),
          endNs: nanoseconds(field(span, 'endTimeUnixNano')),
          attributes: jsonPairs(field(span, 'attributes')),
          events: items(field(span, 'events')).map((event) => ({
            timeNs: nanoseconds(field(event, 'timeUnixNano')),
            name: string(field(event, 'name')),
            attributes: jsonPairs(field(event, 'attributes')),
          })),
          links: items(field(span, 'links')).map((link) => ({
            traceId: idOf(field(link, 'traceId'), 16),
            spanId: idOf(field(link, 'spanId'), 8),
            attributes: jsonPairs(field(link, 'attributes')),
          })),
          status: {
            code: enumOf(member(status, 'code'), 'STATUS_CODE_', statusCodes),
            message: string(member(status, 'message')),
          },
          scopeName: string(member(scope, 'name')),
          resource,
        });
      }
    }
  }
  return spans;
}

const spanKinds = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'];
const statusCodes = ['UNSET', 'OK', 'ERROR'];

/**
 * Either spelling; null is unset. Of several the last one counts, but while camelCase is set snake_case does not, and a null in
 * camelCase unsets only what camelCase has set.
 */
function field(parent: JsonObject, name: string): Json | undefined {
  const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  let [value, isCamel]: [Json, boolean] = [null, false];
  for (const [key, next] of writtenMembers(parent)) {
    if (key === name ? next === null && !isCamel : key !== snake || isCamel) continue;
    [value, isCamel] = [next, key === name && next !== null];
  }
  return value ?? undefined;
}
function member(parent: Json | undefined, name: string): Json | undefined {
  return parent instanceof Map ? field(parent, name) : undefined;
}
function items(value: Json | undefined): JsonObject[] {
  return Array.isArray(value) ? value.filter((item): item is JsonObject => item instanceof Map) : [];
}
function string(value: Json | undefined): string {
  return typeof value === 'string' ? value : '';
}

function enumOf(value: Json | undefined, prefix: string, names: readonly string[]): number {
  let number = -1;
  if (value instanceof Num && /^\d+$/.test(value.text)) number = Number(value.text);
  if (typeof value === 'string') {
    number = /^\d+$/.test(value)
      ? Number(value)
      : value.startsWith(prefix)
        ? names.indexOf(value.slice(prefix.length))
        : -1;
  }
  return number >= 0 && number < names.length ? number : 0;
}

function nanoseconds(value: Json | undefined): bigint {
  let result = -1n;
  if (typeof value === 'string' && /^\d+$/.test(value)) result = BigInt(value);
  if (value instanceof Num) {
    if (/^\d+$/.test(value.text)) result = BigInt(value.text);
    else if (Number.isFinite(Number(value.text))) result = BigInt(Math.trunc(Number(value.text)));
  }
  return result >= 0n && result < 1n << 64n ? result : 0n;
}

function idOf(value: Json | undefined, size: number): Uint8Array {
  if (typeof value !== 'string') return none;
  const hex = (digits: string): Uint8Array =>
    /^[0-9a-fA-F]+$/.test(digits) && digits.length === 2 * size ? new Uint8Array(Buffer.from(digits, 'hex')) : none;
  const groups = /^([0-9a-fA-F]{8})-([0-9a-fA-F]{4})-([0-9a-fA-F]{4})-([0-9a-fA-F]{4})-([0-9a-fA-F]{12})$/.exec(value);
  if (groups !== null && size === 16) return hex(groups.slice(1).join(''));
  if (value.length === 2 * size) return hex(value);
  const decoded = base64(value);
  if (decoded === undefined) return none;
  if (decoded.length === size) return decoded;
  return value.length === (size === 16 ? 44 : 24) ? hex(Buffer.from(decoded).toString('latin1')) : none;
}

/** Standard or URL alphabet, padded or not, nothing else. */
export function base64(value: string): Uint8Array | undefined {
  const match = /^([A-Za-z0-9+/_-]*)(={0,2})$/.exec(value);
  if (match === null) return undefined;
  const [, digits = '', padding = ''] = match;
  if (digits.length % 4 === 1) return undefined;
  if (padding !== '' && (digits.length + padding.length) % 4 !== 0) return undefined;
  return new Uint8Array(Buffer.from(digits.replaceAll('-', '+').replaceAll('_', '/'), 'base64'));
}

function jsonPairs(value: Json | undefined): Pair[] {
  return items(value).map((pair) => [string(field(pair, 'key')), jsonAny(field(pair, 'value'))]);
}

function jsonAny(value: Json | undefined): AnyValue {
  let result = unset;
  if (!(value instanceof Map)) return result;
  for (const [key, set] of value) {
    const candidate = jsonMember(
      key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      set,
    );
    if (candidate.kind !== 'unset') result = candidate;
  }
  return result;
}

function jsonMember(name: string, value: Json): AnyValue {
  switch (name) {
    case 'stringValue':
      return typeof value === 'string' ? { kind: 'string', value } : unset;
    case 'boolValue':
      return typeof value === 'boolean' ? { kind: 'bool', value } : unset;
    case 'intValue':
      return intOf(value);
    case 'doubleValue':
      return doubleOf(value);
    case 'bytesValue': {
      const decoded = typeof value === 'string' ? base64(value) : undefined;
      return decoded === undefined ? unset : { kind: 'bytes', value: decoded };
    }
    case 'arrayValue': {
      if (!(value instanceof Map)) return unset;
      const values = field(value, 'values');
      return { kind: 'array', value: Array.isArray(values) ? values.map(jsonAny) : [] };
    }
    case 'kvlistValue':
      return value instanceof Map ? { kind: 'kvlist', value: jsonPairs(field(value, 'values')) } : unset;
    default:
      return unset;
  }
}

function intOf(value: Json): AnyValue {
  const source = value instanceof Num ? value.text : typeof value === 'string' ? value : '';
  if (/^-?\d+$/.test(source)) {
    const int = BigInt(source);
    return BigInt.asIntN(64, int) === int ? { kind: 'int', value: int } : { kind: 'double', value: Number(source) };
  }
  return value instanceof Num ? { kind: 'double', value: Number(source) } : unset;
}

function doubleOf(value: Json): AnyValue {
  if (value instanceof Num) return { kind: 'double', value: Number(value.text) };
  if (typeof value === 'string' && /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(value)) {
    return { kind: 'double', value: Number(value) };
  }
  return unset;
}
