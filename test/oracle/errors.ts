/** Status, error text, and the events that stay events. */
import type { Json } from './json.ts';
import { object } from './json.ts';
import { isMessageEvent, OPERATION_DETAILS, type SpanEvent } from './span.ts';
import type { SpanInput } from './otlp.ts';
import { microseconds, timestamp, type Attributes } from './values.ts';

export interface Verdict {
  readonly status: 'success' | 'error' | 'pending';
  readonly error: string | undefined;
  readonly errorType: Json | undefined;
  /** The exception that gave the text: it is no event of the run any more. */
  readonly consumed: SpanEvent | undefined;
}

const UNSET = 0;
const OK = 1;
const ERROR = 2;

export function verdictOf(input: SpanInput, attributes: Attributes, events: readonly SpanEvent[]): Verdict {
  const errorType = attributes.first('error.type');
  const errorName = attributes.string('error.type');
  const exceptions = events.filter((event) => event.name === 'exception');
  const { message } = input.status;
  // This exporter says OK before it knows, and OpenTelemetry then keeps that.
  const code = input.status.code === OK && input.scopeName === 'langsmith' ? UNSET : input.status.code;
  const telling = code === ERROR ? exceptions : code === OK ? [] : exceptions.filter((event) => !isHandled(event));
  const failed = code === ERROR || (code !== OK && (telling.length > 0 || errorName !== undefined));
  if (!failed) {
    return { status: input.endNs === 0n ? 'pending' : 'success', error: undefined, errorType, consumed: undefined };
  }
  const last = telling.at(-1);
  const text = last === undefined ? undefined : exceptionText(last.attributes);
  const statusMessage = message === '' ? undefined : message;
  return {
    status: 'error',
    error: text ?? statusMessage ?? errorName ?? 'error',
    errorType: errorType ?? (text === undefined ? undefined : last?.attributes.string('exception.type')),
    consumed: text === undefined ? undefined : last,
  };
}

function isHandled(event: SpanEvent): boolean {
  const escaped = event.attributes.raw('exception.escaped');
  return escaped === false || (typeof escaped === 'string' && escaped.toLowerCase() === 'false');
}

function exceptionText(attributes: Attributes): string | undefined {
  const text = attributes.string('exception.message') ?? attributes.string('exception.type');
  const stack = attributes.string('exception.stacktrace');
  if (text === undefined) return stack === undefined ? undefined : `Stacktrace:\n${stack}`;
  return stack === undefined ? text : `${text}\n\nStacktrace:\n${stack}`;
}

const firstChunks = ['ai.stream.firstChunk', 'First Token Stream Event', 'llm.content.completion.chunk'];

export function runEventsOf(
  events: readonly SpanEvent[],
  consumed: SpanEvent | undefined,
  startUs: number,
): Json[] | undefined {
  const kept = events.filter(
    (event) => !isMessageEvent(event.name) && event.name !== OPERATION_DETAILS && event !== consumed,
  );
  if (kept.length === 0) return undefined;
  return kept.map(({ name, timeNs, attributes }) => {
    const time = timestamp(timeNs === 0n ? startUs : microseconds(timeNs));
    if (firstChunks.includes(name)) return object(['name', 'new_token'], ['time', time]);
    return object(
      ['name', name === '' ? 'unnamed' : name],
      ['time', time],
      ['kwargs', attributes.map.size > 0 ? new Map(attributes.map) : undefined],
    );
  });
}
