/**
 * Finds the conversation in a run's inputs or outputs, whoever wrote them: OpenAI and Anthropic messages, LangChain's
 * (serialised or not), the parts of the GenAI conventions, choices and generations. What is not recognised is kept as it
 * is, so that nothing is hidden.
 */

export type Block =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'reasoning'; readonly text: string }
  | { readonly kind: 'refusal'; readonly text: string }
  | { readonly kind: 'tool-call'; readonly id: string; readonly name: string; readonly args: unknown }
  | { readonly kind: 'tool-result'; readonly id: string; readonly name: string; readonly value: unknown }
  | { readonly kind: 'image'; readonly url: string }
  | { readonly kind: 'other'; readonly value: unknown };

export interface Message {
  /** As written, but `human` and `ai` are `user` and `assistant`; empty when it has none. */
  readonly role: string;
  readonly name: string;
  readonly blocks: readonly Block[];
  readonly finish: string;
}

export interface Conversation {
  readonly messages: readonly Message[];
  /** Members that are no part of it. */
  readonly rest: Readonly<Record<string, unknown>>;
}

type JsonObject = Readonly<Record<string, unknown>>;

const ROLES: Readonly<Record<string, string>> = {
  human: 'user',
  ai: 'assistant',
  model: 'assistant',
  AIMessageChunk: 'assistant',
  HumanMessage: 'user',
  AIMessage: 'assistant',
  SystemMessage: 'system',
  ToolMessage: 'tool',
};
const MESSAGE_TYPES = new Set(['human', 'ai', 'system', 'tool', 'function', 'developer', 'AIMessageChunk']);
const MAX_MESSAGE_COUNT = 5000;

/** Null: there is none in it. */
export function readConversation(document: unknown): Conversation | null {
  const object = asObject(document);
  if (object === null) return null;
  if (isMessage(object)) return { messages: [readMessage(object, '')], rest: {} };
  for (const [member, read] of SOURCES) {
    if (!(member in object)) continue;
    const found = read(object[member]);
    if (found === null || found.length === 0) continue;
    const { [member]: _taken, ...rest } = object;
    return { messages: found, rest };
  }
  return null;
}

const SOURCES: readonly (readonly [member: string, read: (value: unknown) => Message[] | null])[] = [
  ['messages', readMessages],
  ['choices', readChoices],
  ['generations', readGenerations],
  ['message', (value) => readMessages([value])],
  ['input', readMessages],
  ['output', (value) => readMessages(Array.isArray(value) ? value : [value])],
];

function readMessages(value: unknown): Message[] | null {
  if (!Array.isArray(value)) return null;
  // Chat models take several conversations at once.
  const list: readonly unknown[] =
    value.length > 0 && value.every(Array.isArray) ? (value.flat(1) as unknown[]) : value;
  const messages: Message[] = [];
  for (const item of list.slice(0, MAX_MESSAGE_COUNT)) {
    const object = asObject(item);
    if (object === null || !isMessage(object)) return null;
    messages.push(readMessage(object, ''));
  }
  return messages;
}

function readChoices(value: unknown): Message[] | null {
  if (!Array.isArray(value)) return null;
  const messages: Message[] = [];
  for (const item of value as unknown[]) {
    const choice = asObject(item);
    if (choice === null) return null;
    const finish = textOf(choice['finish_reason']);
    const message = asObject(choice['message'] ?? choice['delta']);
    if (message !== null) messages.push(readMessage({ role: 'assistant', ...message }, finish));
    else if (typeof choice['text'] === 'string') messages.push(plain('assistant', choice['text'], finish));
    else return null;
  }
  return messages;
}

function readGenerations(value: unknown): Message[] | null {
  if (!Array.isArray(value)) return null;
  const messages: Message[] = [];
  for (const item of value.flat(1) as unknown[]) {
    const generation = asObject(item);
    if (generation === null) return null;
    const message = asObject(generation['message']);
    if (message !== null && isMessage(message)) messages.push(readMessage(message, ''));
    else if (typeof generation['text'] === 'string') messages.push(plain('assistant', generation['text'], ''));
    else return null;
  }
  return messages;
}

function plain(role: string, text: string, finish: string): Message {
  return { role, name: '', blocks: [{ kind: 'text', text }], finish };
}

/** A LangChain message written by its serialiser has everything in `kwargs`, one of its older dictionaries in `data`. */
function unwrap(object: JsonObject): { readonly body: JsonObject; readonly role: string } {
  const id = object['id'];
  const kwargs = asObject(object['kwargs']);
  if (kwargs !== null && Array.isArray(id)) return { body: kwargs, role: textOf(id.at(-1)).replace(/Chunk$/, '') };
  const data = asObject(object['data']);
  if (data !== null && typeof object['type'] === 'string') return { body: data, role: object['type'] };
  return { body: object, role: textOf(object['role']) || textOf(object['type']) };
}

function isMessage(object: JsonObject): boolean {
  const { body, role } = unwrap(object);
  const hasRole = typeof object['role'] === 'string' || MESSAGE_TYPES.has(role) || role in ROLES;
  return hasRole && ('content' in body || 'parts' in body || 'tool_calls' in body || 'toolCalls' in body);
}

function readMessage(object: JsonObject, finish: string): Message {
  const { body, role: written } = unwrap(object);
  const role = ROLES[written] ?? written;
  const name = textOf(body['name']);
  const callId = textOf(body['tool_call_id']) || textOf(body['toolCallId']);
  const content = body['parts'] ?? body['content'];
  const blocks: Block[] = [];
  const reasoning =
    textOf(body['reasoning_content']) || textOf(asObject(body['additional_kwargs'])?.['reasoning_content']);
  if (reasoning !== '') blocks.push({ kind: 'reasoning', text: reasoning });
  if (role === 'tool' || role === 'function') {
    if (Array.isArray(content) && content.every((part) => asObject(part) !== null))
      blocks.push(...content.map(readBlock));
    else blocks.push({ kind: 'tool-result', id: callId, name, value: content });
  } else if (typeof content === 'string') {
    if (content !== '') blocks.push({ kind: 'text', text: content });
  } else if (Array.isArray(content)) blocks.push(...content.map(readBlock));
  else if (content !== null && content !== undefined) blocks.push({ kind: 'other', value: content });
  if (typeof body['refusal'] === 'string') blocks.push({ kind: 'refusal', text: body['refusal'] });
  blocks.push(...readToolCalls(body, blocks));
  return { role, name, blocks, finish: finish || textOf(body['finish_reason']) };
}

/** Calls that stand beside the content, without those that the content has already. */
function readToolCalls(body: JsonObject, known: readonly Block[]): Block[] {
  const calls = body['tool_calls'] ?? body['toolCalls'] ?? asObject(body['additional_kwargs'])?.['tool_calls'];
  const single = asObject(body['function_call']);
  const list = Array.isArray(calls) ? (calls as unknown[]) : single === null ? [] : [{ function: single }];
  const ids = new Set(known.map((block) => (block.kind === 'tool-call' ? block.id : '')));
  return list
    .map((call) => readToolCall(asObject(call)))
    .filter((block) => block.kind !== 'tool-call' || block.id === '' || !ids.has(block.id));
}

function readToolCall(call: JsonObject | null): Block {
  if (call === null) return { kind: 'other', value: call };
  const inner = asObject(call['function']) ?? call;
  return {
    kind: 'tool-call',
    id: textOf(call['id']) || textOf(call['toolCallId']) || textOf(call['call_id']),
    name: textOf(inner['name']) || textOf(call['toolName']),
    args: parsed(inner['arguments'] ?? inner['args'] ?? inner['input']),
  };
}

function readBlock(part: unknown): Block {
  if (typeof part === 'string') return { kind: 'text', text: part };
  const block = asObject(part);
  if (block === null) return { kind: 'other', value: part };
  switch (block['type']) {
    case 'text':
    case 'input_text':
    case 'output_text': {
      const text = block['text'] ?? block['content'];
      return typeof text === 'string' ? { kind: 'text', text } : { kind: 'other', value: part };
    }
    case 'reasoning':
    case 'thinking':
    case 'redacted_thinking': {
      const text = block['reasoning'] ?? block['thinking'] ?? block['text'] ?? block['content'];
      return typeof text === 'string' ? { kind: 'reasoning', text } : { kind: 'other', value: part };
    }
    case 'refusal':
      return { kind: 'refusal', text: textOf(block['refusal']) };
    case 'tool_use':
    case 'tool_call':
    case 'tool-call':
    case 'function_call':
    case 'server_tool_use':
      return readToolCall(block);
    case 'tool_result':
    case 'tool-result':
    case 'tool_call_response':
    case 'function_call_output':
      return {
        kind: 'tool-result',
        id:
          textOf(block['tool_use_id']) ||
          textOf(block['toolCallId']) ||
          textOf(block['call_id']) ||
          textOf(block['id']),
        name: textOf(block['name']) || textOf(block['toolName']),
        value: block['content'] ?? block['result'] ?? block['response'] ?? block['output'],
      };
    default: {
      const url = imageOf(block);
      return url === null ? { kind: 'other', value: part } : { kind: 'image', url };
    }
  }
}

function imageOf(block: JsonObject): string | null {
  const { type } = block;
  if (type === 'image_url' || type === 'input_image') {
    const image = block['image_url'];
    return textOf(asObject(image)?.['url'] ?? image) || null;
  }
  const mime =
    textOf(block['mime_type']) ||
    textOf(block['mimeType']) ||
    textOf(block['mediaType']) ||
    textOf(block['media_type']);
  if (type !== 'image' && !mime.startsWith('image/')) return null;
  const source = asObject(block['source']);
  const data = textOf(source?.['data']) || textOf(block['data']) || textOf(block['content']) || textOf(block['image']);
  const url = textOf(source?.['url']) || textOf(block['url']) || textOf(block['uri']);
  if (data.startsWith('data:') || data.startsWith('http')) return data;
  return data === '' ? url || null : `data:${textOf(source?.['media_type']) || mime || 'image/png'};base64,${data}`;
}

/** JSON that was sent as text is shown as what it is. */
export function parsed(value: unknown): unknown {
  if (typeof value !== 'string' || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value) as unknown;
  } catch {
    // A model may be cut off in the middle of it: shown as the text that it is.
    return value;
  }
}

export function asObject(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
