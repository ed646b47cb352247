/** One span → one record, by the tables: the precedence among the conventions stands here, each convention in its file. */
import {
  embeddingInputs,
  embeddingOutputs,
  rerankerInputs,
  rerankerOutputs,
  retrievalInputs,
  retrievalOutputs,
} from './documents.ts';
import { runEventsOf, verdictOf } from './errors.ts';
import { eventInputs, eventOutputs } from './events.ts';
import {
  indexedInputs,
  indexedOutputs,
  legacyInputs,
  structuredInputs,
  structuredOutputs,
  systemMessages,
  toolInputs,
  toolOutputs,
} from './genai.ts';
import { isObject, object, type JsonObject } from './json.ts';
import { invocationParamsOf } from './invocation.ts';
import { metadataOf } from './metadata.ts';
import { headOf } from './name.ts';
import {
  messageInputs,
  messageOutputs,
  retrieverQuery,
  templateInputs,
  valueDocument,
  valueInputs,
  valueOutputs,
  wrapOutputs,
} from './openinference.ts';
import { base64, spansOfJson, spansOfProtobuf, type SpanInput } from './otlp.ts';
import { loggedInputs, loggedOutputs, promptInputs, resultOutputs } from './pydantic.ts';
import type { RecordView, Translation } from './record.ts';
import { runTypeOf } from './runtype.ts';
import { operationDetails, type Span, type SpanEvent } from './span.ts';
import { entityInputs, entityOutputs } from './traceloop.ts';
import { usageOf } from './usage.ts';
import { Attributes, J, JArray, microseconds, nonEmptyString, uuidOf } from './values.ts';
import { vercelInputs, vercelOutputs } from './vercel.ts';

export interface TranslateSettings {
  readonly genericAttributes: boolean;
  readonly project: string | null;
  readonly receivedUs: number;
}

/** Throws on a malformed body. */
export function translateBody(
  body: Uint8Array,
  encoding: 'protobuf' | 'json',
  settings: TranslateSettings,
): Translation {
  const spans = encoding === 'protobuf' ? spansOfProtobuf(body) : spansOfJson(body);
  const records = spans.flatMap((span) => translateSpan(span, settings) ?? []);
  return { records, rejectedCount: spans.length - records.length };
}

/** Undefined: the span is rejected. */
export function translateSpan(input: SpanInput, settings: TranslateSettings): RecordView | undefined {
  if (!isId(input.traceId, 16) || !isId(input.spanId, 8)) return undefined;
  const spanId = hex(input.spanId);
  const parent = isId(input.parentSpanId, 8) ? hex(input.parentSpanId) : null;

  const attributes = new Attributes(input.attributes);
  const events: SpanEvent[] = input.events.map((event) => ({
    name: event.name,
    timeNs: event.timeNs,
    attributes: new Attributes(event.attributes),
  }));
  const span: Span = { input, attributes, events, runType: runTypeOf(attributes, events) };

  const startNs = input.startNs === 0n ? input.endNs : input.startNs;
  const startUs = startNs === 0n ? settings.receivedUs : microseconds(startNs);
  const endUs = input.endNs === 0n ? null : Math.max(startUs, microseconds(input.endNs));

  const verdict = verdictOf(input, attributes, events);
  const usage = usageOf(span);
  const inputs = inputsOf(span);
  const outputs = withUsage(outputsOf(span), usage.usageMetadata);
  const runEvents = runEventsOf(events, verdict.consumed, startUs);
  const serialized = serializedOf(attributes);
  const attachments = attachmentsOf(attributes);
  return {
    traceId: hex(input.traceId),
    spanId,
    parentSpanId: parent === spanId ? null : parent,
    startUs,
    endUs,
    flags: { forcedRoot: isForcedRoot(attributes), notEnded: endUs === null, genAi: isGenAi(span) },
    overrides: overridesOf(attributes),
    head: headOf(span, verdict.status, settings.project),
    ...(inputs === undefined ? {} : { inputs }),
    ...(outputs === undefined ? {} : { outputs }),
    ...(runEvents === undefined ? {} : { events: runEvents }),
    extra: object(
      [
        'metadata',
        metadataOf({ span, usage, errorType: verdict.errorType, genericAttributes: settings.genericAttributes }),
      ],
      ['invocation_params', invocationParamsOf(span)],
    ),
    ...(verdict.error === undefined ? {} : { error: verdict.error }),
    ...(serialized === undefined ? {} : { serialized }),
    ...(attachments === undefined ? {} : { attachments }),
  };
}

// --- precedence -----------------------------------------------------------------------------------------------------

type Row = (span: Span) => JsonObject | undefined;

const inputRows: readonly Row[] = [
  /*  1 */ (span) => structuredInputs(span.attributes, span),
  /*  2 */ (span) => fromDetails(span, structuredInputs),
  /*  3 */ eventInputs,
  /*  4 */ templateInputs,
  /*  5 */ retrievalInputs,
  /*  5 */ rerankerInputs,
  /*  5 */ embeddingInputs,
  /*  5 */ toolInputs,
  /*  5 */ retrieverQuery,
  /*  6 */ indexedInputs,
  /*  7 */ messageInputs,
  /*  8 */ vercelInputs,
  /*  9 */ valueInputs,
  /* 10 */ entityInputs,
  /* 11 */ legacyInputs,
  /* 12 */ promptInputs,
  /* 13 */ loggedInputs,
];

const outputRows: readonly Row[] = [
  /*  1 */ (span) => structuredOutputs(span.attributes, span),
  /*  2 */ (span) => fromDetails(span, structuredOutputs),
  /*  3 */ eventOutputs,
  /*  5 */ retrievalOutputs,
  /*  5 */ rerankerOutputs,
  /*  5 */ (span) => embeddingOutputs(span, outputObject(span)),
  /*  5 */ toolOutputs,
  /*  6 */ indexedOutputs,
  /*  7 */ messageOutputs,
  /*  8 */ vercelOutputs,
  /*  9 */ valueOutputs,
  /* 10 */ entityOutputs,
  /* 11 */ legacyOutputs,
  /* 12 */ resultOutputs,
  /* 13 */ loggedOutputs,
];

function inputsOf(span: Span): JsonObject | undefined {
  const found = firstOf([...exporterFirst(span, legacyInputs), ...inputRows], span);
  if (found !== undefined) return found;
  const system = systemMessages(span.attributes);
  return system.length === 0 ? undefined : object(['messages', system]);
}

function outputsOf(span: Span): JsonObject | undefined {
  return firstOf([...exporterFirst(span, legacyOutputs), ...outputRows], span);
}

/** The backend's own SDK exporters write the run's inputs and outputs verbatim in row 11, but not those of AI SDK spans. */
function exporterFirst(span: Span, row: Row): Row[] {
  const { attributes } = span;
  return attributes.has('langsmith.span.kind') && attributes.string('ai.operationId') === undefined ? [row] : [];
}

function firstOf(rows: readonly Row[], span: Span): JsonObject | undefined {
  for (const row of rows) {
    const found = row(span);
    if (found !== undefined) return found;
  }
  return undefined;
}

function legacyOutputs(span: Span): JsonObject | undefined {
  return wrapOutputs(J(span.attributes.raw('gen_ai.completion')), span);
}

function fromDetails(
  span: Span,
  read: (attributes: Attributes, span: Span) => JsonObject | undefined,
): JsonObject | undefined {
  const details = operationDetails(span);
  return details === undefined ? undefined : read(details, span);
}

function outputObject(span: Span): JsonObject | undefined {
  const document = valueDocument(span, 'output');
  return document?.kind === 'json' && isObject(document.value) ? document.value : undefined;
}

/** Usage stands in the outputs too, when there are any and they have none of their own. */
function withUsage(outputs: JsonObject | undefined, usage: JsonObject | undefined): JsonObject | undefined {
  if (outputs === undefined || usage === undefined || outputs.has('usage_metadata')) return outputs;
  return new Map([...outputs, ['usage_metadata', usage]]);
}

// --- the frame ------------------------------------------------------------------------------------------------------

function isId(id: Uint8Array, size: number): boolean {
  return id.length === size && id.some((byte) => byte !== 0);
}

function hex(id: Uint8Array): string {
  return Buffer.from(id).toString('hex');
}

function isForcedRoot(attributes: Attributes): boolean {
  return ['langsmith.is_root', 'langsmith.root_span'].some((key) => {
    const value = attributes.raw(key);
    return value === true || value === 'true';
  });
}

const SEGMENT = '\\d{8}T\\d{12}Z[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';
const DOTTED_ORDER = new RegExp(`^${SEGMENT}(\\.${SEGMENT})*$`);

function overridesOf(attributes: Attributes): RecordView['overrides'] {
  const runId = uuidOf(attributes.raw('langsmith.span.id'));
  const parentRunId = uuidOf(attributes.raw('langsmith.span.parent_id'));
  const traceId = uuidOf(attributes.raw('langsmith.trace.id'));
  const dottedOrder = attributes.string('langsmith.span.dotted_order');
  return {
    ...(runId === undefined ? {} : { runId }),
    ...(parentRunId === undefined ? {} : { parentRunId }),
    ...(traceId === undefined ? {} : { traceId }),
    ...(dottedOrder !== undefined && DOTTED_ORDER.test(dottedOrder) ? { dottedOrder } : {}),
  };
}

const genAiPrefixes = ['gen_ai.', 'llm.', 'ai.', 'langsmith.', 'openinference.', 'traceloop.', 'pydantic_ai.', 'mcp.'];
const genAiScopes = ['ai', 'langsmith', 'openinference', 'traceloop', 'pydantic-ai', 'mcp'];
const genAiScopePrefixes = [...genAiPrefixes, '@arizeai/openinference', '@traceloop/'];

function isGenAi(span: Span): boolean {
  const { attributes, events, input } = span;
  const names = [...attributes.map.keys(), ...events.map((event) => event.name), input.name];
  return (
    names.some((name) => genAiPrefixes.some((prefix) => name.startsWith(prefix))) ||
    genAiScopes.includes(input.scopeName) ||
    genAiScopePrefixes.some((prefix) => input.scopeName.startsWith(prefix))
  );
}

function serializedOf(attributes: Attributes): JsonObject | undefined {
  const serialized = object(
    ...['name', 'signature', 'doc'].map((name): [string, unknown] => [
      name,
      attributes.first(`gen_ai.serialized.${name}`),
    ]),
  );
  return serialized.size === 0 ? undefined : serialized;
}

function attachmentsOf(attributes: Attributes): RecordView['attachments'] {
  const found = new Map<string, { name: string; mimeType: string; base64: string }>();
  for (const item of JArray(attributes.raw('langsmith.attachments')) ?? []) {
    if (!isObject(item)) continue;
    const name = nonEmptyString(item.get('name'));
    const content = item.get('content');
    const data = typeof content === 'string' ? base64(content) : undefined;
    if (name === undefined || data === undefined || !isPartName(name)) continue;
    const mimeType = nonEmptyString(item.get('mime_type'));
    const printable = mimeType !== undefined && /^[\x20-\x7e]{1,255}$/.test(mimeType);
    found.delete(name);
    found.set(name, {
      name,
      mimeType: printable ? mimeType : 'application/octet-stream',
      base64: Buffer.from(data).toString('base64'),
    });
  }
  return found.size === 0 ? undefined : [...found.values()];
}

function isPartName(name: string): boolean {
  return !/[."\u0000-\u001f\u007f]/.test(name) && Buffer.byteLength(name) <= 255;
}
