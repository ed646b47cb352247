/** What a stream of a run has told so far. Each event makes a new one; an event that this page does not know is listed as it is. */
import type { ServerEvent } from '../../api/events.ts';
import { parseExactJson } from '../../parts/exactjson.ts';
import type { Interrupt, JsonObject } from './api.ts';

export interface Transcript {
  readonly runId: string | null;
  readonly phase: 'ready' | 'running' | 'ended' | 'interrupted' | 'failed' | 'cancelled';
  /** As the graph's own: grown token by token, replaced by the whole when it comes. */
  readonly messages: readonly JsonObject[];
  readonly steps: readonly Step[];
  /** The latest; null before the first. */
  readonly values: unknown;
  readonly interrupts: readonly Interrupt[];
  readonly error: string | null;
  readonly eventCount: number;
}

export interface Step {
  readonly number: number;
  /** The stream mode, with the subgraph's place behind it. */
  readonly event: string;
  /** Of an update. */
  readonly node: string | null;
  readonly data: unknown;
}

export const EMPTY: Transcript = {
  runId: null,
  phase: 'ready',
  messages: [],
  steps: [],
  values: null,
  interrupts: [],
  error: null,
  eventCount: 0,
};

/** A run that streams for hours must not fill the tab. */
const MAX_STEP_COUNT = 500;

/** What is known of the thread stays, until the run says otherwise. */
export function begin(before: Transcript, sent: readonly JsonObject[]): Transcript {
  return { ...EMPTY, phase: 'running', values: before.values, messages: [...before.messages, ...sent] };
}

export function take(before: Transcript, event: ServerEvent): Transcript {
  const data = parseExactJson(event.data);
  const next = { ...before, eventCount: before.eventCount + 1 };
  const [mode = '', ...place] = event.event.split('|');
  const isRoot = place.length === 0;
  switch (mode) {
    case 'metadata':
      return { ...next, runId: text(asObject(data)?.['run_id']) ?? before.runId };
    case 'error':
      return { ...next, phase: 'failed', error: errorText(data) };
    case 'messages':
      return { ...next, messages: grow(before.messages, Array.isArray(data) ? asObject(data[0]) : null) };
    case 'values': {
      const values = asObject(data);
      if (!isRoot || values === null || '__interrupt__' in values) return interrupted(next, values?.['__interrupt__']);
      return { ...next, values, messages: messagesOf(values) ?? before.messages };
    }
    case 'updates': {
      const updates = Object.entries(asObject(data) ?? {});
      const own = updates.filter(([node]) => node !== '__interrupt__');
      const stopped = interrupted(next, asObject(data)?.['__interrupt__']);
      return own.reduce((told, [node, update]) => listed(told, event.event, node, update), stopped);
    }
    default:
      return listed(next, event.event, null, data);
  }
}

/** The connection has ended. */
export function finish(before: Transcript, how: 'ended' | 'cancelled'): Transcript {
  if (before.phase !== 'running') return before;
  if (how === 'cancelled') return { ...before, phase: 'cancelled' };
  return { ...before, phase: before.interrupts.length > 0 ? 'interrupted' : 'ended' };
}

export function failed(before: Transcript, message: string): Transcript {
  return { ...before, phase: 'failed', error: message };
}

/** Of a thread as it stands, before anything is run. */
export function standing(values: unknown, interrupts: readonly Interrupt[]): Transcript {
  return {
    ...EMPTY,
    values,
    messages: messagesOf(asObject(values)) ?? [],
    interrupts,
    phase: interrupts.length > 0 ? 'interrupted' : 'ready',
  };
}

function listed(before: Transcript, event: string, node: string | null, data: unknown): Transcript {
  const number = (before.steps.at(-1)?.number ?? 0) + 1;
  return { ...before, steps: [...before.steps, { number, event, node, data }].slice(-MAX_STEP_COUNT) };
}

function interrupted(before: Transcript, found: unknown): Transcript {
  if (!Array.isArray(found)) return before;
  const known = new Set(before.interrupts.map(({ id }) => id));
  const fresh = (found as Interrupt[]).filter(({ id }) => id === undefined || !known.has(id));
  return { ...before, interrupts: [...before.interrupts, ...fresh] };
}

/** A piece joins the message of its id; another message begins. */
function grow(messages: readonly JsonObject[], piece: JsonObject | null): readonly JsonObject[] {
  if (piece === null) return messages;
  const index = piece['id'] === undefined ? -1 : messages.findLastIndex(({ id }) => id === piece['id']);
  const known = messages[index];
  if (known === undefined) return [...messages, withCalls(piece)];
  const joined = withCalls({
    ...known,
    content: joinedContent(known['content'], piece['content']),
    tool_call_chunks: [...asArray(known['tool_call_chunks']), ...asArray(piece['tool_call_chunks'])],
  });
  return messages.with(index, joined);
}

function joinedContent(before: unknown, piece: unknown): unknown {
  if (typeof before === 'string' && typeof piece === 'string') return before + piece;
  const blocks = (content: unknown): unknown[] =>
    Array.isArray(content) ? content : content === '' || content === undefined ? [] : [{ type: 'text', text: content }];
  return [...blocks(before), ...blocks(piece)];
}

/** Calls whose arguments are still on their way are shown as far as they have come. */
function withCalls(message: JsonObject): JsonObject {
  const chunks = asArray(message['tool_call_chunks']).map(asObject);
  if (chunks.length === 0) return message;
  const calls = new Map<unknown, { id: string; name: string; args: string }>();
  for (const chunk of chunks) {
    if (chunk === null) continue;
    const call = calls.get(chunk['index']) ?? { id: '', name: '', args: '' };
    call.id += text(chunk['id']) ?? '';
    call.name += text(chunk['name']) ?? '';
    call.args += text(chunk['args']) ?? '';
    calls.set(chunk['index'], call);
  }
  const toolCalls = [...calls.values()].map(({ id, name, args }) => ({
    id,
    name,
    args: parsedOr(args),
    type: 'tool_call',
  }));
  return { ...message, tool_calls: toolCalls };
}

function parsedOr(args: string): unknown {
  try {
    return JSON.parse(args) as unknown;
  } catch {
    // Not all of it has come.
    return args;
  }
}

function messagesOf(values: JsonObject | null): readonly JsonObject[] | null {
  const messages = values?.['messages'];
  return Array.isArray(messages) && messages.every((each) => asObject(each) !== null)
    ? (messages as JsonObject[])
    : null;
}

function errorText(data: unknown): string {
  const object = asObject(data);
  const words = [text(object?.['error']), text(object?.['message'])].filter((each) => each !== null);
  return words.length === 0 ? JSON.stringify(data) : words.join(': ');
}

export function asObject(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}

function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
