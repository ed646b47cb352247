/** Logfire and Pydantic AI: whole conversations in one attribute, `prompt`, `final_result` (rows 12 and 13). */
import { conversationOf, flatEvents, messagesObject } from './events.ts';
import { systemMessages } from './genai.ts';
import { isObject, object, type Json, type JsonObject } from './json.ts';
import { inOrder, messageList, toolDefinition } from './messages.ts';
import { wrapOutputs } from './openinference.ts';
import type { Span } from './span.ts';
import { J, JArray, JObject, JValue, nonEmptyString } from './values.ts';
import { wrap } from './wrapping.ts';

export function promptInputs(span: Span): JsonObject | undefined {
  return wrap(J(span.attributes.raw('prompt')), 'input', span.runType);
}

/** `events`, then the head of the conversation. */
export function loggedInputs(span: Span): JsonObject | undefined {
  const events = flatEvents(JValue(span.attributes.raw('events')));
  const inputs = events === undefined ? undefined : conversationOf(events).inputs;
  if (inputs !== undefined) return inputs;
  const head = conversation(span)?.head ?? [];
  return head.length === 0 ? undefined : object(['messages', [...systemMessages(span.attributes), ...head]]);
}

export function loggedOutputs(span: Span): JsonObject | undefined {
  const events = flatEvents(JValue(span.attributes.raw('events')));
  return events === undefined ? undefined : conversationOf(events).outputs;
}

/** The tail of the conversation and the final result, or the final result alone. */
export function resultOutputs(span: Span): JsonObject | undefined {
  const result = span.attributes.raw('final_result');
  const found = conversation(span);
  if (found === undefined) return wrapOutputs(J(result), span);
  const outputs = messagesObject(found.tail) ?? object();
  const output = JValue(result);
  if (output !== undefined) outputs.set('output', output);
  return outputs.size === 0 ? undefined : outputs;
}

/** Split after the last message of the user. */
function conversation(span: Span): { head: JsonObject[]; tail: JsonObject[] } | undefined {
  const messages =
    flatConversation(JValue(span.attributes.raw('all_messages_events'))) ??
    structuredConversation(JValue(span.attributes.raw('pydantic_ai.all_messages')));
  if (messages === undefined || messages.length === 0) return undefined;
  const split = messages.findLastIndex((message) => message.get('role') === 'user') + 1;
  return { head: messages.slice(0, split), tail: messages.slice(split) };
}

function structuredConversation(value: Json | undefined): JsonObject[] | undefined {
  return Array.isArray(value) ? messageList(value, 'user').messages : undefined;
}

/** A choice counts as its message. */
function flatConversation(value: Json | undefined): JsonObject[] | undefined {
  return flatEvents(value)?.flatMap((turn) => {
    if ('message' in turn) return inOrder(turn.message);
    const message = turn.choice.get('message');
    if (!isObject(message)) return [];
    const reason = nonEmptyString(message.get('finish_reason')) ?? nonEmptyString(turn.choice.get('finish_reason'));
    if (!message.has('content')) message.set('content', null);
    if (reason !== undefined) message.set('finish_reason', reason);
    return [message];
  });
}

/** `model_request_parameters`: the tools of a request, where no definitions came. */
export function requestParameterTools(span: Span): Json[] {
  const parameters = JObject(span.attributes.raw('model_request_parameters'));
  return ['function_tools', 'output_tools'].flatMap((name) => JArray(parameters?.get(name)) ?? []).map(toolDefinition);
}
