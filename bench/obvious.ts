/**
 * The obvious way to translate, to measure ours against: decode the request to objects, gather a span's attributes in a
 * map, build the run as an object, `JSON.stringify` it. Written as one would write it with some care for speed, and in
 * its favour: it knows only the conventions that the corpora use, and, like our records, leaves ids and times in the
 * form in which assembling wants them.
 */
import type protobuf from 'protobufjs';

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
type JsonObject = { [key: string]: Json };

export interface ObviousRun {
  traceId: string;
  spanId: string;
  parentSpanId: string | null;
  startUs: number;
  endUs: number;
  name: string;
  run_type: string;
  status: string;
  session_name: string;
  dotted_order: string;
  error?: string;
  tags?: string[];
  inputs?: Json;
  outputs?: Json;
  events?: Json[];
  extra: { metadata: JsonObject; invocation_params?: JsonObject };
}

/** A request in either spelling: what protobufjs decodes and what `JSON.parse` gives differ in ids and 64-bit numbers. */
interface OtlpRequest {
  resourceSpans?: {
    resource?: { attributes?: KeyValue[] };
    scopeSpans?: { scope?: { name?: string }; spans?: OtlpSpan[] }[];
  }[];
}

interface OtlpSpan {
  traceId: Buffer | string;
  spanId: Buffer | string;
  parentSpanId?: Buffer | string;
  name: string;
  kind?: number;
  startTimeUnixNano: Long64 | string;
  endTimeUnixNano: Long64 | string;
  attributes?: KeyValue[];
  events?: { name: string; timeUnixNano: Long64 | string; attributes?: KeyValue[] }[];
  status?: { code?: number; message?: string };
}

interface KeyValue {
  key: string;
  value?: AnyValue | null;
}

interface AnyValue {
  stringValue?: string;
  boolValue?: boolean;
  intValue?: Long64 | number | string;
  doubleValue?: number;
  arrayValue?: { values?: AnyValue[] };
  kvlistValue?: { values?: KeyValue[] };
  bytesValue?: Buffer | string;
}

interface Long64 {
  low: number;
  high: number;
  toNumber(): number;
  toString(): string;
}

export function obviousFromProtobuf(requestType: protobuf.Type, body: Buffer): Buffer {
  return Buffer.from(JSON.stringify(runsFromProtobuf(requestType, body, 'default')));
}

export function obviousFromJson(body: Buffer): Buffer {
  return Buffer.from(JSON.stringify(runsFromJson(body, 'default')));
}

export function runsFromProtobuf(requestType: protobuf.Type, body: Buffer, project: string): ObviousRun[] {
  return toRuns(requestType.decode(body) as OtlpRequest, project);
}

export function runsFromJson(body: Buffer, project: string): ObviousRun[] {
  return toRuns(JSON.parse(body.toString()) as OtlpRequest, project);
}

function toRuns(request: OtlpRequest, project: string): ObviousRun[] {
  const runs: ObviousRun[] = [];
  for (const { resource, scopeSpans } of request.resourceSpans ?? []) {
    const resourceMetadata: JsonObject = {};
    for (const { key, value } of resource?.attributes ?? []) resourceMetadata[key] = toValue(value);
    for (const { scope, spans } of scopeSpans ?? []) {
      for (const span of spans ?? []) runs.push(toRun(span, resourceMetadata, scope?.name ?? '', project));
    }
  }
  return runs;
}

function toRun(span: OtlpSpan, resourceMetadata: JsonObject, scopeName: string, project: string): ObviousRun {
  const traceId = toHex(span.traceId);
  const spanId = toHex(span.spanId);
  const metadata: JsonObject = { ...resourceMetadata };
  if (scopeName !== '') metadata['otel_scope'] = scopeName;
  const spanKind = SPAN_KINDS[span.kind ?? 0];
  if (spanKind !== undefined) metadata['otel_span_kind'] = spanKind;
  metadata['OTEL_TRACE_ID'] = traceId;
  metadata['OTEL_SPAN_ID'] = spanId;

  const attributes = new Map<string, Json>();
  const inputMessages: IndexedMessage[] = [];
  const outputMessages: IndexedMessage[] = [];
  const ownMetadata: [string, Json][] = [];
  for (const { key, value } of span.attributes ?? []) {
    const decoded = toValue(value);
    if (key.startsWith('langsmith.metadata.')) ownMetadata.push([key.slice(19), decoded]);
    else if (key.startsWith('llm.input_messages.')) addIndexed(inputMessages, key.slice(19), decoded);
    else if (key.startsWith('llm.output_messages.')) addIndexed(outputMessages, key.slice(20), decoded);
    else attributes.set(key, decoded);
  }

  const runType = runTypeOf(attributes);
  copyMetadata(attributes, runType, metadata);
  for (const [key, value] of ownMetadata) metadata[key] = value;
  const invocationParams = invocationParamsOf(attributes);
  const { status, error, errorType, events } = statusOf(span);
  if (errorType !== undefined) metadata['error_type'] = errorType;
  const run: ObviousRun = {
    traceId,
    spanId,
    parentSpanId: span.parentSpanId !== undefined && span.parentSpanId.length > 0 ? toHex(span.parentSpanId) : null,
    startUs: toUs(span.startTimeUnixNano),
    endUs: toUs(span.endTimeUnixNano),
    name: textOf(attributes.get('langsmith.trace.name')) ?? toolName(attributes, runType) ?? span.name,
    run_type: runType,
    status,
    session_name: project,
    dotted_order: '',
    extra: { metadata },
  };
  if (invocationParams !== null) run.extra.invocation_params = invocationParams;
  if (error !== null) run.error = error;
  if (events.length > 0) run.events = events;
  const tags = attributes.get('langsmith.span.tags');
  if (typeof tags === 'string') run.tags = tags.split(',').map((tag) => tag.trim());
  const inputs = inputsOf(attributes, inputMessages);
  const outputs = outputsOf(attributes, outputMessages, runType);
  if (inputs !== null) run.inputs = inputs;
  if (outputs !== null) run.outputs = outputs;
  const usage = usageOf(attributes);
  if (usage !== null) {
    const isModelRun = runType === 'llm' || runType === 'embedding';
    metadata[isModelRun ? 'usage_metadata' : 'aggregated_usage'] = usage;
    if (isModelRun && outputs !== null) run.outputs = { ...outputs, usage_metadata: usage };
  }
  return run;
}

// --- values ---------------------------------------------------------------------------------------------------------

function toValue(value: AnyValue | null | undefined): Json {
  if (value === null || value === undefined) return null;
  if (Object.hasOwn(value, 'stringValue')) return value.stringValue ?? null;
  if (Object.hasOwn(value, 'intValue')) return toInteger(value.intValue);
  if (Object.hasOwn(value, 'boolValue')) return value.boolValue ?? null;
  if (Object.hasOwn(value, 'doubleValue')) return value.doubleValue ?? null;
  if (Object.hasOwn(value, 'arrayValue')) return (value.arrayValue?.values ?? []).map(toValue);
  if (Object.hasOwn(value, 'kvlistValue')) {
    return Object.fromEntries((value.kvlistValue?.values ?? []).map((entry) => [entry.key, toValue(entry.value)]));
  }
  const bytes = value.bytesValue;
  return typeof bytes === 'string' ? bytes : (bytes?.toString('base64') ?? null);
}

function toInteger(value: Long64 | number | string | undefined): Json {
  const integer = typeof value === 'object' ? value.toNumber() : Number(value);
  if (Number.isSafeInteger(integer)) return integer;
  return typeof value === 'object' ? value.toString() : (value ?? null);
}

function toHex(id: Buffer | string): string {
  return typeof id === 'string' ? id.toLowerCase() : id.toString('hex');
}

/** Nanoseconds to microseconds, exactly, without a BigInt. */
function toUs(time: Long64 | string): number {
  if (typeof time === 'string') return Number(time.slice(0, -3));
  const high = time.high >>> 0;
  return high * 4_294_967 + Math.floor((high * 296 + (time.low >>> 0)) / 1000);
}

/** A value that may be a JSON document in a string. */
function parsed(value: Json | undefined): Json | undefined {
  if (typeof value !== 'string') return value;
  const first = value.trimStart().charCodeAt(0);
  if (first !== 0x7b && first !== 0x5b && first !== 0x22) return value === '' || value === 'null' ? undefined : value;
  try {
    return JSON.parse(value) as Json;
  } catch {
    return value;
  }
}

function textOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

// --- type, metadata, parameters, usage ------------------------------------------------------------------------------

/** By number; unspecified and internal are not worth saying. */
const SPAN_KINDS = [undefined, undefined, 'server', 'client', 'producer', 'consumer'];
const RUN_TYPES = new Set(['tool', 'chain', 'llm', 'retriever', 'embedding', 'prompt', 'parser']);
const RUN_TYPE_BY_OPERATION: Record<string, string> = {
  chat: 'llm',
  completion: 'llm',
  text_completion: 'llm',
  generate_content: 'llm',
  embeddings: 'embedding',
  execute_tool: 'tool',
  retrieval: 'retriever',
  invoke_agent: 'chain',
};
const RUN_TYPE_BY_OPENINFERENCE_KIND: Record<string, string> = {
  LLM: 'llm',
  EMBEDDING: 'embedding',
  RETRIEVER: 'retriever',
  TOOL: 'tool',
  CHAIN: 'chain',
  AGENT: 'chain',
  RERANKER: 'retriever',
  PROMPT: 'prompt',
};

function runTypeOf(attributes: Map<string, Json>): string {
  const kind = attributes.get('langsmith.span.kind');
  if (typeof kind === 'string' && RUN_TYPES.has(kind.toLowerCase())) return kind.toLowerCase();
  const operation = RUN_TYPE_BY_OPERATION[textOf(attributes.get('gen_ai.operation.name')) ?? ''];
  if (operation !== undefined) return operation;
  return (
    RUN_TYPE_BY_OPENINFERENCE_KIND[textOf(attributes.get('openinference.span.kind'))?.toUpperCase() ?? ''] ?? 'chain'
  );
}

function toolName(attributes: Map<string, Json>, runType: string): string | undefined {
  if (runType !== 'tool') return undefined;
  return textOf(attributes.get('gen_ai.tool.name'));
}

function first(attributes: Map<string, Json>, keys: readonly string[]): Json | undefined {
  for (const key of keys) {
    const value = attributes.get(key);
    if (value !== undefined && value !== null) return value;
  }
  return undefined;
}

const PROVIDER_KEYS = ['gen_ai.provider.name', 'gen_ai.system', 'llm.system', 'llm.provider'];
const MODEL_KEYS = ['gen_ai.request.model', 'gen_ai.response.model', 'model', 'llm.model_name'];
const METADATA_KEYS: readonly [string, string][] = [
  ['session.id', 'session_id'],
  ['gen_ai.conversation.id', 'conversation_id'],
  ['user.id', 'user_id'],
];

function copyMetadata(attributes: Map<string, Json>, runType: string, metadata: JsonObject): void {
  const provider = first(attributes, PROVIDER_KEYS);
  if (provider !== undefined) metadata['ls_provider'] = provider;
  const model = first(attributes, MODEL_KEYS);
  if (model !== undefined) metadata['ls_model_name'] = model;
  if (runType === 'llm') metadata['ls_model_type'] = 'chat';
  for (const [key, name] of METADATA_KEYS) {
    const value = attributes.get(key);
    if (value !== undefined) metadata[name] = value;
  }
}

const PARAMETER_KEYS: readonly [string, string][] = [
  ['gen_ai.request.model', 'model'],
  ['gen_ai.response.model', 'model'],
  ['gen_ai.request.temperature', 'temperature'],
  ['gen_ai.request.top_p', 'top_p'],
  ['gen_ai.request.top_k', 'top_k'],
  ['gen_ai.request.max_tokens', 'max_tokens'],
  ['gen_ai.request.frequency_penalty', 'frequency_penalty'],
  ['gen_ai.request.presence_penalty', 'presence_penalty'],
  ['gen_ai.request.seed', 'seed'],
  ['gen_ai.request.stop_sequences', 'stop'],
  ['gen_ai.tool.name', 'tool_name'],
];

function invocationParamsOf(attributes: Map<string, Json>): JsonObject | null {
  let params: JsonObject | null = null;
  for (const [key, name] of PARAMETER_KEYS) {
    const value = attributes.get(key);
    if (value !== undefined) (params ??= {})[name] = value;
  }
  const document = parsed(attributes.get('llm.invocation_parameters'));
  if (typeof document === 'object' && document !== null) params = Object.assign(params ?? {}, document);
  const tools = parsed(attributes.get('gen_ai.tool.definitions'));
  if (Array.isArray(tools)) (params ??= {})['tools'] = tools.map(toTool);
  return params;
}

const INPUT_TOKEN_KEYS = ['gen_ai.usage.input_tokens', 'gen_ai.usage.prompt_tokens', 'llm.token_count.prompt'];
const OUTPUT_TOKEN_KEYS = [
  'gen_ai.usage.output_tokens',
  'gen_ai.usage.completion_tokens',
  'llm.token_count.completion',
];
const TOTAL_TOKEN_KEYS = ['gen_ai.usage.total_tokens', 'llm.token_count.total'];

function usageOf(attributes: Map<string, Json>): JsonObject | null {
  const input = first(attributes, INPUT_TOKEN_KEYS);
  const output = first(attributes, OUTPUT_TOKEN_KEYS);
  if (input === undefined && output === undefined) return null;
  const usage: JsonObject = {};
  if (input !== undefined) usage['input_tokens'] = Number(input);
  if (output !== undefined) usage['output_tokens'] = Number(output);
  usage['total_tokens'] = Number(first(attributes, TOTAL_TOKEN_KEYS) ?? Number(input ?? 0) + Number(output ?? 0));
  const cacheRead = attributes.get('llm.token_count.prompt_details.cache_read');
  if (cacheRead !== undefined) usage['input_token_details'] = { cache_read: Number(cacheRead) };
  return usage;
}

interface Status {
  readonly status: string;
  readonly error: string | null;
  readonly errorType: string | undefined;
  readonly events: Json[];
}

function statusOf(span: OtlpSpan): Status {
  const code = span.status?.code ?? 0;
  let error: string | null = null;
  let errorType: string | undefined;
  const events: Json[] = [];
  for (const event of span.events ?? []) {
    const fields = Object.fromEntries((event.attributes ?? []).map((entry) => [entry.key, toValue(entry.value)]));
    if (event.name === 'exception' && code !== 1) {
      const stack = textOf(fields['exception.stacktrace']);
      errorType = textOf(fields['exception.type']);
      error = textOf(fields['exception.message']) ?? errorType ?? 'error';
      if (stack !== undefined) error += `\n\nStacktrace:\n${stack}`;
    } else {
      events.push({ name: event.name, time: new Date(toUs(event.timeUnixNano) / 1000).toISOString(), kwargs: fields });
    }
  }
  if (code === 2) error ??= span.status?.message ?? 'error';
  return { status: error === null ? 'success' : 'error', error, errorType, events };
}

// --- inputs and outputs ---------------------------------------------------------------------------------------------

function inputsOf(attributes: Map<string, Json>, indexed: IndexedMessage[]): JsonObject | null {
  if (attributes.has('langsmith.span.kind')) {
    const original = parsed(attributes.get('gen_ai.prompt'));
    if (original !== undefined) return wrap(original, 'input');
  }
  const structured = parsed(attributes.get('gen_ai.input.messages'));
  if (Array.isArray(structured)) {
    const messages: Json[] = [];
    const instructions = parsed(attributes.get('gen_ai.system_instructions'));
    if (Array.isArray(instructions)) addParts(messages, 'system', instructions as JsonObject[], undefined);
    for (const message of structured as JsonObject[]) addMessage(messages, message);
    const inputs: JsonObject = { messages };
    const tools = parsed(attributes.get('gen_ai.tool.definitions'));
    if (Array.isArray(tools)) inputs['tools'] = tools.map(toTool);
    return inputs;
  }
  if (indexed.length > 0) return { messages: toMessages(indexed) };
  const value = parsed(attributes.get('input.value')) ?? parsed(attributes.get('gen_ai.prompt'));
  return value === undefined ? null : wrap(value, 'input');
}

function outputsOf(attributes: Map<string, Json>, indexed: IndexedMessage[], runType: string): JsonObject | null {
  if (attributes.has('langsmith.span.kind')) {
    const original = parsed(attributes.get('gen_ai.completion'));
    if (original !== undefined) return wrap(original, 'output');
  }
  const structured = parsed(attributes.get('gen_ai.output.messages'));
  if (Array.isArray(structured)) {
    const messages: Json[] = [];
    for (const message of structured as JsonObject[]) addMessage(messages, message);
    return { messages };
  }
  if (indexed.length > 0) return { messages: toMessages(indexed) };
  const value = parsed(attributes.get('output.value')) ?? parsed(attributes.get('gen_ai.completion'));
  if (value === undefined) return null;
  if (runType === 'llm' && typeof value === 'string') return { messages: [{ role: 'assistant', content: value }] };
  return wrap(value, 'output');
}

function wrap(value: Json, key: 'input' | 'output'): JsonObject {
  if (Array.isArray(value)) {
    const areMessages = value.length > 0 && value.every((item) => (item as JsonObject | null)?.['role'] !== undefined);
    return areMessages ? { messages: value } : { [key]: value };
  }
  return typeof value === 'object' && value !== null ? value : { [key]: value };
}

/** `{role, parts}` to the messages that the backend shows; a tool's answer becomes a message of its own. */
function addMessage(messages: Json[], message: JsonObject): void {
  const parts = message['parts'];
  if (Array.isArray(parts))
    addParts(messages, textOf(message['role']) ?? 'user', parts as JsonObject[], message['finish_reason']);
  else messages.push(message);
}

function addParts(messages: Json[], role: string, parts: JsonObject[], finishReason: Json | undefined): void {
  const content: JsonObject[] = [];
  const toolCalls: Json[] = [];
  let answered = false;
  for (const part of parts) {
    switch (part['type']) {
      case 'text':
        content.push({ type: 'text', text: part['content'] ?? '' });
        break;
      case 'tool_call':
        toolCalls.push({
          id: part['id'] ?? null,
          type: 'function',
          function: { name: part['name'] ?? null, arguments: toText(part['arguments']) },
        });
        break;
      case 'tool_call_response':
        messages.push({ role: 'tool', tool_call_id: part['id'] ?? null, content: toText(part['response']) });
        answered = true;
        break;
      default:
        content.push(part);
    }
  }
  if (answered && content.length === 0 && toolCalls.length === 0) return;
  const single = content[0];
  const message: JsonObject = {
    role,
    content:
      single === undefined
        ? null
        : content.length === 1 && single['type'] === 'text'
          ? (single['text'] ?? '')
          : content,
  };
  if (toolCalls.length > 0) message['tool_calls'] = toolCalls;
  if (finishReason !== undefined) message['finish_reason'] = finishReason;
  messages.push(message);
}

function toText(value: Json | undefined): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}

function toTool(definition: Json): Json {
  if (typeof definition !== 'object' || definition === null || Array.isArray(definition)) return definition;
  if (definition['function'] !== undefined) return definition;
  const { type, ...rest } = definition;
  return { type: type ?? 'function', function: rest };
}

/** One `llm.*_messages.N` of OpenInference. */
interface IndexedMessage {
  index: number;
  role: Json;
  content: Json;
}

function addIndexed(messages: IndexedMessage[], rest: string, value: Json): void {
  const dot = rest.indexOf('.');
  const index = Number(rest.slice(0, dot));
  let message = messages.find((candidate) => candidate.index === index);
  if (message === undefined) {
    message = { index, role: null, content: null };
    messages.push(message);
  }
  if (rest.endsWith('.message.role')) message.role = value;
  else if (rest.endsWith('.message.content')) message.content = value;
}

function toMessages(messages: IndexedMessage[]): Json[] {
  return messages.sort((a, b) => a.index - b.index).map(({ role, content }) => ({ role, content }));
}
