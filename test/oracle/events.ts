/** Messages that arrive as span events (row 3), or as Logfire's list of them in an attribute (row 13). */
import { contentOfAttribute } from './genai.ts';
import { isObject, object, slice, type Json, type JsonObject } from './json.ts';
import {
  choiceOf,
  indexedToolCall,
  inOrder,
  readMessage,
  roleOf,
  sortChoices,
  toolCallsOf,
  type ReadMessage,
} from './messages.ts';
import { CHOICE_EVENT, CONTENT_COMPLETION, CONTENT_PROMPT, messageEvents, type Span } from './span.ts';
import { family, J, JValue, nonEmptyString, type Attributes } from './values.ts';
import { wrap } from './wrapping.ts';

/** What a run of message events says: history, choices, and whether the last message is the answer. */
export interface Conversation {
  readonly inputs: JsonObject | undefined;
  readonly outputs: JsonObject | undefined;
}

// --- span events (row 3) --------------------------------------------------------------------------------------------

export function eventInputs(span: Span): JsonObject | undefined {
  return contentEvent(span, CONTENT_PROMPT, 'gen_ai.prompt', 'input') ?? conversationOfEvents(span).inputs;
}

export function eventOutputs(span: Span): JsonObject | undefined {
  return contentEvent(span, CONTENT_COMPLETION, 'gen_ai.completion', 'output') ?? conversationOfEvents(span).outputs;
}

/** The last such event that has a value. */
function contentEvent(span: Span, name: string, key: string, side: 'input' | 'output'): JsonObject | undefined {
  const found = span.events.filter((event) => event.name === name).map((event) => J(event.attributes.raw(key)));
  return wrap(found.filter((document) => wrap(document, side, span.runType) !== undefined).at(-1), side, span.runType);
}

function conversationOfEvents(span: Span): Conversation {
  const turns: Turn[] = [];
  for (const { name, attributes } of span.events) {
    const defaultRole = Object.hasOwn(messageEvents, name) ? messageEvents[name] : undefined;
    if (defaultRole !== undefined) turns.push({ message: messageOfEvent(attributes, defaultRole) });
    if (name === CHOICE_EVENT) turns.push({ choice: choiceOfEvent(attributes) });
  }
  return conversationOf(turns);
}

function messageOfEvent(attributes: Attributes, defaultRole: string): ReadMessage {
  const whole = attributes.first('gen_ai.event.content');
  const document = J(whole);
  if (document?.kind === 'json' && isObject(document.value)) return flatMessage(document.value, defaultRole);
  const role = roleOf(attributes.string('role'), defaultRole);
  const content =
    document === undefined
      ? contentOfAttribute(attributes.raw('content'))
      : wholeContent(whole, document.kind === 'json' ? document.value : undefined);
  const calls = eventToolCalls(attributes);
  return readMessage(
    object(
      ['role', role],
      ['content', content],
      ['name', attributes.string('name')],
      ['tool_call_id', role === 'tool' ? attributes.string('id') : undefined],
      ['tool_calls', calls.length > 0 ? calls : undefined],
    ),
    role,
    'list',
  );
}

/** `gen_ai.event.content` that is no object: its parts, else its text. */
function wholeContent(whole: Json | undefined, parsed: Json | undefined): Json {
  if (Array.isArray(parsed) && parsed.length > 0 && parsed.every(isObject)) return parsed;
  return whole === undefined ? '' : slice(whole);
}

function choiceOfEvent(attributes: Attributes): JsonObject {
  const whole = attributes.first('gen_ai.event.content');
  const document = J(whole);
  if (document?.kind === 'json' && isObject(document.value)) return choiceOfObject(document.value);
  const beside = {
    index: attributes.raw('index'),
    finishReason: attributes.raw('finish_reason'),
    toolCalls: eventToolCalls(attributes),
  };
  if (document !== undefined) {
    return choiceOf({ ...beside, message: wholeContent(whole, document.kind === 'json' ? document.value : undefined) });
  }
  const message = JValue(attributes.raw('message'));
  if (message !== undefined) return choiceOf({ ...beside, message });
  const content = attributes.raw('message.content') ?? attributes.raw('content');
  const flat = object(['role', attributes.string('message.role', 'role')], ['content', contentOfAttribute(content)]);
  return choiceOf({ ...beside, message: flat });
}

function eventToolCalls(attributes: Attributes): Json[] {
  const indexed = family(attributes.map, 'tool_calls.').map(indexedToolCall);
  return [...toolCallsOf(JValue(attributes.raw('tool_calls'))), ...indexed.filter((call) => call !== undefined)];
}

// --- the `events` attribute (row 13) --------------------------------------------------------------------------------

/** Undefined when the value is no list of such events. */
export function flatEvents(value: Json | undefined): Turn[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const named = value.filter(isObject).filter((item) => typeof item.get('event.name') === 'string');
  if (named.length === 0) return undefined;
  const turns: Turn[] = [];
  for (const item of named) {
    const name = nonEmptyString(item.get('event.name')) ?? '';
    const defaultRole = Object.hasOwn(messageEvents, name) ? messageEvents[name] : undefined;
    if (defaultRole !== undefined) turns.push({ message: flatMessage(item, defaultRole) });
    if (name === CHOICE_EVENT) turns.push({ choice: choiceOfObject(item) });
  }
  return turns;
}

/** A message object of an event: on tool messages `id` is the tool call's. */
function flatMessage(source: JsonObject, defaultRole: string): ReadMessage {
  const id = nonEmptyString(source.get('id'));
  if (roleOf(source.get('role'), defaultRole) !== 'tool') return readMessage(source, defaultRole, 'list');
  const renamed: JsonObject = new Map(source);
  renamed.delete('id');
  if (id !== undefined && nonEmptyString(source.get('tool_call_id')) === undefined) renamed.set('tool_call_id', id);
  return readMessage(renamed, defaultRole, 'list');
}

function choiceOfObject(source: JsonObject): JsonObject {
  return choiceOf({
    index: source.get('index'),
    finishReason: source.get('finish_reason'),
    message: source.get('message'),
    toolCalls: toolCallsOf(source.get('tool_calls')),
  });
}

// --- conversations --------------------------------------------------------------------------------------------------

export type Turn = { message: ReadMessage } | { choice: JsonObject };

export function conversationOf(turns: readonly Turn[]): Conversation {
  const history = turns.flatMap((turn) => ('message' in turn ? [turn.message] : []));
  const choices = sortChoices(turns.flatMap((turn) => ('choice' in turn ? [turn.choice] : [])));
  const messages = history.flatMap(inOrder);
  const last = messages.at(-1);
  if (choices.length === 0 && last?.get('role') === 'assistant') {
    return { inputs: messagesObject(messages.slice(0, -1)), outputs: messagesObject([last]) };
  }
  return {
    inputs: messagesObject(messages),
    outputs: choices.length === 0 ? undefined : object(['choices', choices]),
  };
}

export function messagesObject(messages: readonly JsonObject[]): JsonObject | undefined {
  return messages.length === 0 ? undefined : object(['messages', messages]);
}
