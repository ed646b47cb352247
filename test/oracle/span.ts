/** What the families read: one span, its attributes and events decoded, its run type known. */
import type { Json } from './json.ts';
import type { Attributes } from './values.ts';
import { JArray, JValue, nonEmptyString } from './values.ts';
import type { SpanInput } from './otlp.ts';

export interface SpanEvent {
  readonly name: string;
  readonly timeNs: bigint;
  readonly attributes: Attributes;
}

export interface Span {
  readonly input: SpanInput;
  readonly attributes: Attributes;
  readonly events: readonly SpanEvent[];
  readonly runType: string;
}

export const OPERATION_DETAILS = 'gen_ai.client.inference.operation.details';

/** Event name → default role; `choice` and the two content events have none. */
export const messageEvents: Readonly<Record<string, string>> = {
  'gen_ai.system.message': 'system',
  'gen_ai.user.message': 'user',
  'gen_ai.assistant.message': 'assistant',
  'gen_ai.tool.message': 'tool',
  'gen_ai.tool.developer': 'developer',
};
export const CHOICE_EVENT = 'gen_ai.choice';
export const CONTENT_PROMPT = 'gen_ai.content.prompt';
export const CONTENT_COMPLETION = 'gen_ai.content.completion';

export function isMessageEvent(name: string): boolean {
  return Object.hasOwn(messageEvents, name) || [CHOICE_EVENT, CONTENT_PROMPT, CONTENT_COMPLETION].includes(name);
}

/** The attributes of the last event of operation details. */
export function operationDetails(span: Span): Attributes | undefined {
  return span.events.filter((event) => event.name === OPERATION_DETAILS).at(-1)?.attributes;
}

/** `gen_ai.response.finish_reasons`, item by item; a plain singular reason is item 0. */
export function finishReasons(span: Span): (string | undefined)[] {
  const several = JArray(span.attributes.raw('gen_ai.response.finish_reasons'));
  const single = JValue(span.attributes.raw('gen_ai.response.finish_reason'));
  const fallback: Json[] = Array.isArray(single) ? single : single === undefined ? [] : [single];
  const length = Math.max(several?.length ?? 0, fallback.length);
  return Array.from({ length }, (_, i) => nonEmptyString(several?.[i]) ?? nonEmptyString(fallback[i]));
}
