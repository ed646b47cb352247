/** What the JSON transcoder knows of OTLP's messages: names, numbers and kinds of their fields, from the published tables. */
import type { Kernel, Literal } from '../translate/kernel/kernel.ts';

/** Most fields that a message here has. */
export const MAX_FIELDS = 16;
/** Name of the message AnyValue here. */
export const ANY_VALUE = 'value';

/** How a value of JSON becomes one of protobuf. */
export const Kind = {
  String: 1,
  Message: 2,
  Messages: 3,
  Fixed64: 4,
  Int64: 5,
  Uint32: 6,
  Fixed32: 7,
  Double: 8,
  Bool: 9,
  Bytes: 10,
  TraceId: 11,
  SpanId: 12,
  SpanKind: 13,
  StatusCode: 14,
} as const;

export interface Field {
  readonly camel: Literal;
  readonly snake: Literal;
  readonly name: string;
  readonly number: number;
  readonly kind: number;
  readonly message: Message | null;
}

export interface Message {
  readonly name: string;
  readonly fields: Field[];
  /** By index of a field, and at the end for the first key: index of the field that came after it last time. */
  readonly successors: Uint8Array;
}

/** The message ExportTraceServiceRequest and all below it; its keys live in the kernel's memory. */
export function schema(kernel: Kernel): Message {
  const field = (number: number, name: string, kind: number, inner: Message | null = null): Field => {
    const snake = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    return { number, name, kind, message: inner, camel: kernel.literal(name), snake: kernel.literal(snake) };
  };
  const message = (name: string, fields: Field[]): Message => ({
    name,
    fields,
    successors: new Uint8Array(MAX_FIELDS + 1),
  });
  const anyValue = message(ANY_VALUE, []);
  const keyValue = message('attribute', [field(1, 'key', Kind.String), field(2, 'value', Kind.Message, anyValue)]);
  anyValue.fields.push(
    field(1, 'stringValue', Kind.String),
    field(2, 'boolValue', Kind.Bool),
    field(3, 'intValue', Kind.Int64),
    field(4, 'doubleValue', Kind.Double),
    field(5, 'arrayValue', Kind.Message, message('arrayValue', [field(1, 'values', Kind.Messages, anyValue)])),
    field(6, 'kvlistValue', Kind.Message, message('kvlistValue', [field(1, 'values', Kind.Messages, keyValue)])),
    field(7, 'bytesValue', Kind.Bytes),
  );
  const attributes = (number: number): Field => field(number, 'attributes', Kind.Messages, keyValue);
  const event = message('event', [
    field(1, 'timeUnixNano', Kind.Fixed64),
    field(2, 'name', Kind.String),
    attributes(3),
  ]);
  const link = message('link', [
    field(1, 'traceId', Kind.TraceId),
    field(2, 'spanId', Kind.SpanId),
    field(3, 'traceState', Kind.String),
    attributes(4),
  ]);
  const status = message('status', [field(2, 'message', Kind.String), field(3, 'code', Kind.StatusCode)]);
  const span = message('span', [
    field(1, 'traceId', Kind.TraceId),
    field(2, 'spanId', Kind.SpanId),
    field(3, 'traceState', Kind.String),
    field(4, 'parentSpanId', Kind.SpanId),
    field(5, 'name', Kind.String),
    field(6, 'kind', Kind.SpanKind),
    field(7, 'startTimeUnixNano', Kind.Fixed64),
    field(8, 'endTimeUnixNano', Kind.Fixed64),
    attributes(9),
    field(10, 'droppedAttributesCount', Kind.Uint32),
    field(11, 'events', Kind.Messages, event),
    field(12, 'droppedEventsCount', Kind.Uint32),
    field(13, 'links', Kind.Messages, link),
    field(14, 'droppedLinksCount', Kind.Uint32),
    field(15, 'status', Kind.Message, status),
    field(16, 'flags', Kind.Fixed32),
  ]);
  const scope = message('scope', [field(1, 'name', Kind.String), field(2, 'version', Kind.String), attributes(3)]);
  const scopeSpans = message('scopeSpans', [
    field(1, 'scope', Kind.Message, scope),
    // before protocol 0.15
    field(1, 'instrumentationLibrary', Kind.Message, scope),
    field(2, 'spans', Kind.Messages, span),
  ]);
  const resourceSpans = message('resourceSpans', [
    field(1, 'resource', Kind.Message, message('resource', [attributes(1)])),
    field(2, 'scopeSpans', Kind.Messages, scopeSpans),
    field(1000, 'instrumentationLibrarySpans', Kind.Messages, scopeSpans),
    field(1000, 'deprecatedScopeSpans', Kind.Messages, scopeSpans),
  ]);
  return message('request', [field(1, 'resourceSpans', Kind.Messages, resourceSpans)]);
}
