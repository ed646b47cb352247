/** Vercel AI SDK, `ai.*` (row 8). */
import { isObject, object, slice, type Json, type JsonObject } from './json.ts';
import { instructionMessages } from './genai.ts';
import { addFinishReasons, messageList, messagesOf } from './messages.ts';
import { finishReasons, type Span } from './span.ts';
import { J, JArray, JValue } from './values.ts';
import { wrap } from './wrapping.ts';

export function vercelInputs(span: Span): JsonObject | undefined {
  const { attributes } = span;
  const wrapped = (key: string): JsonObject | undefined => wrap(J(attributes.raw(key)), 'input', span.runType);

  const promptMessages = JArray(attributes.raw('ai.prompt.messages'));
  if (promptMessages !== undefined) {
    const { messages } = messageList(promptMessages, 'user');
    if (messages.length > 0) return object(['messages', messages]);
  } else {
    const inputs = wrapped('ai.prompt.messages');
    if (inputs !== undefined) return inputs;
  }
  const values = items(span, 'ai.values');
  const documents = items(span, 'ai.documents');
  return (
    promptInputs(span) ??
    wrapped('ai.toolCall.args') ??
    wrapped('ai.value') ??
    (values.length > 0 ? object(['input', values]) : undefined) ??
    (documents.length > 0 ? object(['documents', documents]) : undefined)
  );
}

/** `ai.prompt`: `{system?, prompt?, messages?}`. */
function promptInputs(span: Span): JsonObject | undefined {
  const prompt = JValue(span.attributes.raw('ai.prompt'));
  if (isObject(prompt)) {
    const [system, text, list] = ['system', 'prompt', 'messages'].map((name) => prompt.get(name) ?? undefined);
    const messages = [
      ...(system === undefined ? [] : instructionMessages(system)),
      ...(typeof text === 'string' ? [object(['role', 'user'], ['content', text])] : []),
      ...(Array.isArray(text) ? messageList(text, 'user').messages : []),
      ...(Array.isArray(list) ? messageList(list, 'user').messages : []),
    ];
    if (messages.length > 0) return object(['messages', messages]);
  }
  return wrap(J(span.attributes.raw('ai.prompt')), 'input', span.runType);
}

export function vercelOutputs(span: Span): JsonObject | undefined {
  const { attributes } = span;
  const wrapped = (key: string): JsonObject | undefined => wrap(J(attributes.raw(key)), 'output', span.runType);
  const embeddings = items(span, 'ai.embeddings');
  const embedding = JValue(attributes.raw('ai.embedding'));
  const ranking = items(span, 'ai.ranking');
  return (
    responseMessage(span) ??
    wrapped('ai.response.object') ??
    wrapped('ai.toolCall.result') ??
    (embeddings.length > 0 ? object(['embeddings', embeddings]) : undefined) ??
    (embedding === undefined ? undefined : object(['embeddings', [embedding]])) ??
    (ranking.length > 0 ? object(['ranking', ranking]) : undefined)
  );
}

/** Text, reasoning, files and tool calls are one assistant message. */
function responseMessage(span: Span): JsonObject | undefined {
  const { attributes } = span;
  const reasoning = attributes.first('ai.response.reasoning');
  const text = attributes.first('ai.response.text');
  const files = JArray(attributes.raw('ai.response.files'));
  const rawCalls = JValue(attributes.raw('ai.response.toolCalls'));
  const calls = Array.isArray(rawCalls) ? rawCalls : undefined;

  const parts: Json[] = [];
  if (reasoning !== undefined) parts.push(object(['type', 'reasoning'], ['text', slice(reasoning)]));
  if (text !== undefined) parts.push(object(['type', 'text'], ['text', slice(text)]));
  parts.push(...(files ?? []));
  if (rawCalls !== undefined && calls === undefined) {
    parts.push(object(['type', 'text'], ['text', textOf(attributes.raw('ai.response.toolCalls'))]));
  }
  for (const call of calls ?? []) {
    if (isObject(call)) parts.push(new Map<string, Json>([...call, ['type', 'tool-call']]));
  }
  if (parts.length === 0) return undefined;

  const [message] = messagesOf(object(['parts', parts]), 'assistant', 'choice');
  if (message === undefined) return undefined;
  if (!message.has('content')) message.set('content', null);
  const finishReason = attributes.string('ai.response.finishReason');
  if (finishReason !== undefined) message.set('finish_reason', finishReason);
  addFinishReasons([{ index: 0, message }], finishReasons(span));
  return object(['messages', [message]]);
}

/** What was no array, as it came. */
function textOf(value: Json | undefined): string {
  return value === undefined ? '' : slice(value);
}

/** An array of JSON strings. */
function items(span: Span, key: string): Json[] {
  return (JArray(span.attributes.raw(key)) ?? []).map((item) =>
    typeof item === 'string' ? (JValue(item) ?? null) : item,
  );
}
