/** The message normal form: every family's messages, parts, tool calls and choices become the same shape. */
import { isObject, Num, object, slice, type Json, type JsonObject } from './json.ts';
import { JArray, memberOf, nonEmptyString } from './values.ts';

/** `list`: an item of `messages`, content always present; `choice`: the message of a choice, content only when known. */
export type Place = 'list' | 'choice';

// --- messages -------------------------------------------------------------------------------------------------------

const ownMembers = ['role', 'parts', 'content', 'tool_calls', 'name', 'tool_call_id', 'finish_reason'];

/** One source message: tool responses among its parts become messages of their own. */
export function messagesOf(source: JsonObject, defaultRole: string, place: Place = 'list'): JsonObject[] {
  return inOrder(readMessage(source, defaultRole, place));
}

/** Responses come before what a user adds to them, but after the calls that they answer. */
export function inOrder({ responses, carrier }: ReadMessage): JsonObject[] {
  if (carrier === undefined) return responses;
  return carrier.has('tool_calls') ? [carrier, ...responses] : [...responses, carrier];
}

export interface ReadMessage {
  responses: JsonObject[];
  /** The message itself; undefined when it held tool responses only. */
  carrier: JsonObject | undefined;
}

export function readMessage(source: JsonObject, defaultRole: string, place: Place): ReadMessage {
  const parts = source.get('parts');
  const role = roleOf(source.get('role'), defaultRole);
  const read = Array.isArray(parts) ? readParts(parts, place) : readContent(memberOf(source, 'content'), role, place);
  const calls = [...read.calls, ...toolCallsOf(memberOf(source, 'tool_calls'))];
  const message = object(['role', role]);
  if (read.content !== undefined || place === 'list') message.set('content', read.content ?? null);
  if (calls.length > 0) message.set('tool_calls', calls);
  for (const name of ['name', 'tool_call_id', 'finish_reason']) {
    const value = nonEmptyString(source.get(name));
    if (value !== undefined) message.set(name, value);
  }
  for (const [name, value] of source) {
    const own = ownMembers.includes(name) && !(name === 'parts' && !Array.isArray(parts));
    if (own || value === null || name.startsWith('event.') || name.startsWith('gen_ai.')) continue;
    message.set(name, value);
  }
  const onlyResponses = read.responses.length > 0 && read.content === undefined && calls.length === 0;
  return { responses: read.responses, carrier: onlyResponses ? undefined : message };
}

/** The items of an array of messages; the carriers say which message item i became, for finish reasons. */
export function messageList(
  items: readonly Json[],
  defaultRole: string,
): { messages: JsonObject[]; carriers: Carrier[] } {
  const messages: JsonObject[] = [];
  const carriers: Carrier[] = [];
  for (const [index, item] of items.entries()) {
    const source = typeof item === 'string' ? object(['content', item]) : item;
    if (!isObject(source)) continue;
    const read = readMessage(source, defaultRole, 'list');
    messages.push(...inOrder(read));
    if (read.carrier !== undefined) carriers.push({ index, message: read.carrier });
  }
  return { messages, carriers };
}

export interface Carrier {
  readonly index: number;
  readonly message: JsonObject;
}

export function roleOf(value: Json | undefined, defaultRole: string): string {
  const role = nonEmptyString(value) ?? defaultRole;
  return role === 'model' ? 'assistant' : role;
}

/** Finish reasons from the span where the messages have none. */
export function addFinishReasons(carriers: readonly Carrier[], reasons: readonly (string | undefined)[]): void {
  for (const { index, message } of carriers) {
    const reason = reasons[index];
    if (reason !== undefined && !message.has('finish_reason')) message.set('finish_reason', reason);
  }
}

// --- content --------------------------------------------------------------------------------------------------------

export interface Content {
  /** Undefined when nothing is known. */
  content: Json | undefined;
  calls: Json[];
  responses: JsonObject[];
}

function readContent(value: Json | undefined, role: string, place: Place): Content {
  if (Array.isArray(value) && value.length === 0) return { content: undefined, calls: [], responses: [] };
  if (Array.isArray(value) && value.every((item) => typeof item === 'string' || isObject(item))) {
    return readParts(value, place);
  }
  // What a tool answered is text for whoever reads the conversation.
  const content = role === 'tool' && value !== undefined ? slice(value) : value;
  return { content, calls: [], responses: [] };
}

export function readParts(parts: readonly Json[], place: Place): Content {
  const blocks: Json[] = [];
  const calls: Json[] = [];
  const responses: JsonObject[] = [];
  for (const part of parts) {
    if (part === null) continue;
    const read = partOf(part);
    if ('call' in read) calls.push(read.call);
    else if ('block' in read) blocks.push(read.block);
    else if (place === 'choice') blocks.push(part);
    else responses.push(read.response);
  }
  const [first] = blocks;
  if (blocks.length === 1 && isObject(first) && first.get('type') === 'text' && first.size === 2) {
    const text = first.get('text');
    if (typeof text === 'string') return { content: text, calls, responses };
  }
  return { content: blocks.length === 0 ? undefined : blocks, calls, responses };
}

type Part = { block: Json } | { call: JsonObject } | { response: JsonObject };

function partOf(part: Json): Part {
  if (typeof part === 'string') return { block: object(['type', 'text'], ['text', part]) };
  if (!isObject(part)) return { block: part };
  const kind = part.get('kind');
  const type = part.get('type') ?? (typeof kind === 'string' ? kind : null);
  if (type === null) return bedrockPart(part);
  switch (type) {
    case 'text':
      return { block: textBlock(part) ?? part };
    case 'reasoning':
    case 'thinking':
      return { block: reasoningBlock(part) ?? part };
    case 'tool_call':
      return { call: toolCall(part.get('id'), part.get('name'), memberOf(part, 'arguments')) };
    case 'tool-call':
      return { call: toolCall(part.get('toolCallId'), part.get('toolName'), memberOf(part, 'input', 'args')) };
    case 'tool_call_response':
      return { response: toolMessage(part.get('id'), part.get('name'), memberOf(part, 'response', 'result')) };
    case 'tool-result':
      return { response: toolMessage(part.get('toolCallId'), part.get('toolName'), vercelResult(part)) };
    default:
      return { block: mediaBlock(type, part) ?? part };
  }
}

function bedrockPart(part: JsonObject): Part {
  const toolUse = part.get('toolUse');
  const toolResult = part.get('toolResult');
  const reasoning = part.get('reasoningContent');
  if (typeof part.get('text') === 'string') return { block: textBlock(part) ?? part };
  if (isObject(toolUse))
    return { call: toolCall(toolUse.get('toolUseId'), toolUse.get('name'), memberOf(toolUse, 'input')) };
  if (isObject(toolResult)) {
    return {
      response: toolMessage(toolResult.get('toolUseId'), undefined, bedrockResult(memberOf(toolResult, 'content'))),
    };
  }
  if (isObject(reasoning)) {
    const inner = reasoning.get('reasoningText');
    const text = isObject(inner) ? inner.get('text') : undefined;
    if (typeof text === 'string') return { block: object(['type', 'reasoning'], ['reasoning', text]) };
  }
  return { block: part };
}

function textBlock(part: JsonObject): JsonObject | undefined {
  const text = firstString(part, 'content', 'text');
  return text === undefined
    ? undefined
    : block(object(['type', 'text'], ['text', text]), part, ['type', 'content', 'text']);
}

function reasoningBlock(part: JsonObject): JsonObject | undefined {
  const sources = ['content', 'thinking', 'text', 'reasoning'];
  const text = firstString(part, ...sources);
  if (text === undefined) return undefined;
  return block(object(['type', 'reasoning'], ['reasoning', text]), part, ['type', ...sources]);
}

/** The block, and what else of the part is not null. */
function block(made: JsonObject, part: JsonObject, used: readonly string[]): JsonObject {
  for (const [name, value] of part) {
    if (!used.includes(name) && !isKind(part, name) && value !== null) made.set(name, value);
  }
  return made;
}

/** `kind` says what the part is where `type` does not. */
function isKind(part: JsonObject, name: string): boolean {
  return name === 'kind' && (part.get('type') ?? null) === null && typeof part.get('kind') === 'string';
}

function firstString(part: JsonObject, ...names: string[]): string | undefined {
  return names.map((name) => part.get(name)).find((value) => typeof value === 'string');
}

// --- media ----------------------------------------------------------------------------------------------------------

function mediaBlock(type: Json, part: JsonObject): JsonObject | undefined {
  const mime = ['mime_type', 'media_type', 'mediaType', 'mimeType']
    .map((n) => nonEmptyString(part.get(n)))
    .find(Boolean);
  const modality = part.get('modality') ?? null;
  const kind =
    modality !== null
      ? modality
      : mime?.startsWith('image/')
        ? 'image'
        : mime?.startsWith('audio/')
          ? 'audio'
          : undefined;
  const uri = firstString(part, 'uri');
  const url = firstString(part, 'url');
  const data = firstString(part, 'content', 'data');
  const image = firstString(part, 'image');
  const transcript = firstString(part, 'transcript');
  const audio = (member: 'url' | 'data', value: string): JsonObject =>
    object(['type', 'audio'], [member, value], ['mime_type', mime], ['transcript', transcript]);
  switch (type) {
    case 'uri':
      if (uri !== undefined && kind === 'image') return imageBlock(uri);
      return uri !== undefined && kind === 'audio' ? audio('url', uri) : undefined;
    case 'blob':
      if (data !== undefined && kind === 'image') return imageBlock(dataUrl(data, mime));
      return data !== undefined && kind === 'audio' ? audio('data', data) : undefined;
    case 'binary':
      if (data !== undefined && mime?.startsWith('image/')) return imageBlock(dataUrl(data, mime));
      return data !== undefined && mime?.startsWith('audio/') ? audio('data', data) : undefined;
    case 'image-url':
      return url === undefined ? undefined : imageBlock(url);
    case 'audio-url':
      return url === undefined ? undefined : audio('url', url);
    case 'image':
      return image === undefined ? undefined : imageBlock(dataUrl(image, mime));
    case 'image_url': {
      const bare = firstString(part, 'image_url');
      return bare === undefined ? undefined : imageBlock(bare);
    }
    case 'file': {
      const fileId = firstString(part, 'file_id');
      if (fileId !== undefined) return object(['type', 'file'], ['file', object(['file_id', fileId])]);
      const fileData = firstString(part, 'data');
      return fileData !== undefined && mime?.startsWith('image/') ? imageBlock(dataUrl(fileData, mime)) : undefined;
    }
    default:
      return undefined;
  }
}

export function imageBlock(url: string): JsonObject {
  return object(['type', 'image_url'], ['image_url', object(['url', url])]);
}

function dataUrl(data: string, mime: string | undefined): string {
  return /^(https?|data):/.test(data) ? data : `data:${mime ?? 'image/png'};base64,${data}`;
}

// --- tools ----------------------------------------------------------------------------------------------------------

/** `args`: absent and null leave the member out, strings are kept, anything else as it stood. */
export function toolCall(
  id: Json | undefined,
  name: Json | undefined,
  args: Json | undefined,
  type = 'function',
): JsonObject {
  return object(
    ['id', nonEmptyString(id)],
    ['type', type],
    [
      'function',
      object(
        ['name', nonEmptyString(name)],
        ['arguments', args === undefined || args === null ? undefined : slice(args)],
      ),
    ],
  );
}

/** The `tool_calls` member of a message: an array, or a string that holds one. */
export function toolCallsOf(value: Json | undefined): Json[] {
  const list = Array.isArray(value) ? value : (JArray(value) ?? []);
  return list.map((item) => {
    if (!isObject(item)) return item;
    const called = item.get('function');
    if (isObject(called)) {
      const type = nonEmptyString(item.get('type'));
      return toolCall(item.get('id'), called.get('name'), memberOf(called, 'arguments'), type);
    }
    if (typeof item.get('name') !== 'string') return item;
    return toolCall(item.get('id'), item.get('name'), memberOf(item, 'arguments', 'args', 'input'));
  });
}

/** An item of an indexed `…tool_calls.M.*` family. */
export function indexedToolCall(members: ReadonlyMap<string, Json>): JsonObject | undefined {
  const pick = (...names: string[]): Json | undefined => names.map((n) => members.get(n)).find((v) => v !== undefined);
  const known = ['id', 'type', 'name', 'arguments', 'function.name', 'function.arguments'];
  if (!known.some((name) => members.has(name))) return undefined;
  return toolCall(
    members.get('id'),
    pick('name', 'function.name'),
    pick('arguments', 'function.arguments'),
    nonEmptyString(members.get('type')),
  );
}

function toolMessage(id: Json | undefined, name: Json | undefined, content: Json | undefined): JsonObject {
  return object(
    ['role', 'tool'],
    ['tool_call_id', nonEmptyString(id)],
    ['name', nonEmptyString(name)],
    ['content', content === undefined || content === null ? null : slice(content)],
  );
}

function vercelResult(part: JsonObject): Json | undefined {
  const output = memberOf(part, 'output', 'result');
  const typed = isObject(output) && output === part.get('output') && typeof output.get('type') === 'string';
  return typed && output.has('value') ? output.get('value') : output;
}

function bedrockResult(content: Json | undefined): Json | undefined {
  const only = Array.isArray(content) && content.length === 1 ? content[0] : undefined;
  const text = isObject(only) ? only.get('text') : undefined;
  return typeof text === 'string' ? text : content;
}

/** A tool definition in OpenAI's shape. */
export function toolDefinition(item: Json): Json {
  if (!isObject(item)) return item;
  const type = item.get('type') ?? null;
  const name = item.get('name');
  if (typeof name !== 'string' || item.has('function') || (type !== null && type !== 'function')) return item;
  return object(
    ['type', 'function'],
    [
      'function',
      object(
        ['name', name],
        ['description', memberOf(item, 'description')],
        ['parameters', memberOf(item, 'parameters', 'inputSchema', 'input_schema', 'parameters_json_schema')],
      ),
    ],
  );
}

// --- choices --------------------------------------------------------------------------------------------------------

export interface ChoiceSource {
  readonly index: Json | undefined;
  readonly finishReason: Json | undefined;
  readonly message: Json | undefined;
  /** Beside the message: used when the message has none. */
  readonly toolCalls: readonly Json[];
}

export function choiceOf(source: ChoiceSource): JsonObject {
  const message = choiceMessage(source.message);
  if (!message.has('tool_calls') && source.toolCalls.length > 0) message.set('tool_calls', [...source.toolCalls]);
  return object(
    ['index', indexOf(source.index)],
    ['finish_reason', nonEmptyString(source.finishReason)],
    ['message', message],
  );
}

function choiceMessage(source: Json | undefined): JsonObject {
  if (isObject(source)) return messagesOf(source, 'assistant', 'choice')[0] ?? object(['role', 'assistant']);
  const parts = Array.isArray(source) && source.length > 0 && source.every(isObject) ? source : undefined;
  const content = parts ?? (source === undefined || source === null ? undefined : slice(source));
  return messagesOf(object(['content', content]), 'assistant', 'choice')[0] ?? object(['role', 'assistant']);
}

function indexOf(value: Json | undefined): Num | undefined {
  const text = value instanceof Num ? value.text : typeof value === 'string' && /^\d+$/.test(value) ? value : '';
  const number = Number(text);
  return text !== '' && Number.isSafeInteger(number) && number >= 0 ? new Num(String(number)) : undefined;
}

/** By index; one without index counts as the place it has. */
export function sortChoices(choices: readonly JsonObject[]): JsonObject[] {
  const key = (choice: JsonObject, place: number): number => {
    const index = choice.get('index');
    return index instanceof Num ? Number(index.text) : place;
  };
  return choices
    .map((choice, place) => ({ choice, key: key(choice, place) }))
    .sort((a, b) => a.key - b.key)
    .map(({ choice }) => choice);
}
