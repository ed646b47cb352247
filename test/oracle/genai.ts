/** GenAI semantic conventions: structured messages, indexed legacy attributes, legacy strings. */
import { isObject, object, slice, type Json, type JsonObject } from './json.ts';
import {
  addFinishReasons,
  indexedToolCall,
  messageList,
  messagesOf,
  readParts,
  toolDefinition,
  type Carrier,
} from './messages.ts';
import { finishReasons, type Span } from './span.ts';
import type { Attributes } from './values.ts';
import { family, J, JArray, JValue, trim } from './values.ts';
import { wrap } from './wrapping.ts';

// --- structured messages (rows 1 and 2) -----------------------------------------------------------------------------

export function structuredInputs(attributes: Attributes, span: Span): JsonObject | undefined {
  const value = JValue(attributes.raw('gen_ai.input.messages'));
  const messages = structuredMessages(value, 'user');
  if (messages === undefined) return wrap(J(attributes.raw('gen_ai.input.messages')), 'input', span.runType);
  if (messages.messages.length === 0) return undefined;
  const tools = toolDefinitions(attributes);
  return object(
    ['messages', [...systemMessages(attributes), ...messages.messages]],
    ['tools', tools.length > 0 ? tools : undefined],
  );
}

export function structuredOutputs(attributes: Attributes, span: Span): JsonObject | undefined {
  const value = JValue(attributes.raw('gen_ai.output.messages'));
  const messages = structuredMessages(value, 'assistant');
  if (messages === undefined) return wrap(J(attributes.raw('gen_ai.output.messages')), 'output', span.runType);
  if (messages.messages.length === 0) return undefined;
  addFinishReasons(messages.carriers, finishReasons(span));
  return object(['messages', messages.messages]);
}

/** Undefined when the value is neither an array nor one message. */
function structuredMessages(
  value: Json | undefined,
  role: string,
): { messages: JsonObject[]; carriers: Carrier[] } | undefined {
  if (Array.isArray(value)) return messageList(value, role);
  if (isObject(value) && value.has('role')) return messageList([value], role);
  return undefined;
}

export function systemMessages(attributes: Attributes): JsonObject[] {
  const value = JValue(attributes.raw('gen_ai.system_instructions'));
  return value === undefined ? [] : instructionMessages(value);
}

/** System instructions: messages, parts, one message, one part, or text. */
export function instructionMessages(value: Json): JsonObject[] {
  if (Array.isArray(value)) {
    if (value.length > 0 && value.every((item) => isObject(item) && item.has('role'))) {
      return messageList(value, 'system').messages;
    }
    return systemParts(value);
  }
  if (isObject(value)) return value.has('role') ? messagesOf(value, 'system') : systemParts([value]);
  return value === '' ? [] : [object(['role', 'system'], ['content', slice(value)])];
}

function systemParts(parts: Json[]): JsonObject[] {
  const read = readParts(parts, 'choice');
  if (read.content === undefined && read.calls.length === 0) return [];
  return [
    object(
      ['role', 'system'],
      ['content', read.content ?? null],
      ['tool_calls', read.calls.length > 0 ? read.calls : undefined],
    ),
  ];
}

export function toolDefinitions(attributes: Attributes): Json[] {
  return (JArray(attributes.raw('gen_ai.tool.definitions')) ?? []).map(toolDefinition);
}

// --- indexed legacy attributes (row 6) ------------------------------------------------------------------------------

export function indexedInputs(span: Span): JsonObject | undefined {
  const { messages } = indexedMessages(span, 'gen_ai.prompt.', 'user');
  return messages.length === 0 ? undefined : object(['messages', messages]);
}

export function indexedOutputs(span: Span): JsonObject | undefined {
  const { messages, carriers } = indexedMessages(span, 'gen_ai.completion.', 'assistant');
  if (messages.length === 0) return undefined;
  addFinishReasons(carriers, finishReasons(span));
  return object(['messages', messages]);
}

function indexedMessages(
  span: Span,
  prefix: string,
  defaultRole: string,
): { messages: JsonObject[]; carriers: Carrier[] } {
  const sources: JsonObject[] = [];
  for (const members of family(span.attributes.map, prefix)) {
    const calls = family(members, 'tool_calls.').map(indexedToolCall);
    const toolCalls = calls.filter((call) => call !== undefined);
    const user = members.get('user');
    const haystack = typeof user === 'string' && !members.has('content') && !members.has('message.content');
    const source = object(
      ['role', members.get('role') ?? members.get('message.role') ?? (haystack ? 'user' : undefined)],
      [
        'content',
        contentOfAttribute(members.get('content') ?? members.get('message.content') ?? (haystack ? user : undefined)),
      ],
      ['name', members.get('name')],
      ['tool_call_id', members.get('tool_call_id')],
      ['tool_calls', toolCalls.length > 0 ? toolCalls : undefined],
      ['finish_reason', members.get('finish_reason')],
      ['refusal', members.get('refusal') === '' ? undefined : members.get('refusal')],
    );
    if (source.size > 0) sources.push(source);
  }
  return messageList(sources, defaultRole);
}

/** Content that is an attribute: a string is parsed only when it holds an array of objects. */
export function contentOfAttribute(value: Json | undefined): Json | undefined {
  if (typeof value !== 'string') return Array.isArray(value) || isObject(value) ? JValue(value) : value;
  if (trim(value) === 'null') return undefined;
  const parsed = JValue(value);
  return Array.isArray(parsed) && parsed.length > 0 && parsed.every(isObject) ? parsed : value;
}

// --- legacy strings (row 11) ----------------------------------------------------------------------------------------

export function legacyInputs(span: Span): JsonObject | undefined {
  return wrap(J(span.attributes.raw('gen_ai.prompt')), 'input', span.runType);
}

// --- tool and retrieval keys (row 5) --------------------------------------------------------------------------------

export function toolInputs(span: Span): JsonObject | undefined {
  return (
    wrap(J(span.attributes.raw('gen_ai.tool.call.arguments')), 'input', span.runType) ??
    wrap(J(span.attributes.raw('tool_arguments')), 'input', span.runType)
  );
}

export function toolOutputs(span: Span): JsonObject | undefined {
  return (
    wrap(J(span.attributes.raw('gen_ai.tool.call.result')), 'output', span.runType) ??
    wrap(J(span.attributes.raw('tool_response')), 'output', span.runType)
  );
}
