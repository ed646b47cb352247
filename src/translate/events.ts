/**
 * The events of a span: what each is for, and their attributes when asked. Kinds by name:
 *
 * | Name                                                                    | For                              |
 * | ----------------------------------------------------------------------- | -------------------------------- |
 * | `exception`                                                             | the run's error                  |
 * | `gen_ai.client.inference.operation.details`                             | inputs and outputs, row 2        |
 * | `gen_ai.content.prompt`, `gen_ai.content.completion`                    | inputs, outputs, row 3           |
 * | `gen_ai.{system,user,assistant,tool}.message`, `gen_ai.tool.developer`, `gen_ai.choice` | a conversation, row 3 |
 * | `ai.stream.firstChunk`, `First Token Stream Event`, `llm.content.completion.chunk` | `new_token` in `events` |
 * | anything else                                                           | `events` of the run              |
 */
import type { Attributes } from './attributes.ts';
import { Double, Word } from './kernel/kernel.ts';
import type { Kernel, Literal } from './kernel/kernel.ts';
import { GENAI_PREFIXES } from './keys.ts';
import { EventKind } from './span.ts';
import type { Span } from './span.ts';
import type { Toolbox } from './toolbox.ts';

const INITIAL_EVENTS = 64;
const FIELDS = 3;
/** Field 11, length-delimited. */
const EVENT_TAG = (11 << 3) | 2;

const NAMES: readonly (readonly [string, number])[] = [
  ['exception', EventKind.Exception],
  ['ai.stream.firstChunk', EventKind.NewToken],
  ['First Token Stream Event', EventKind.NewToken],
  ['llm.content.completion.chunk', EventKind.NewToken],
  ['gen_ai.client.inference.operation.details', EventKind.OperationDetails],
  ['gen_ai.content.prompt', EventKind.ContentPrompt],
  ['gen_ai.content.completion', EventKind.ContentCompletion],
  ['gen_ai.choice', EventKind.Choice],
  ['gen_ai.system.message', EventKind.SystemMessage],
  ['gen_ai.user.message', EventKind.UserMessage],
  ['gen_ai.assistant.message', EventKind.AssistantMessage],
  ['gen_ai.tool.message', EventKind.ToolMessage],
  ['gen_ai.tool.developer', EventKind.DeveloperMessage],
];

export class EventReader {
  readonly #kernel: Kernel;
  readonly #event: Attributes;
  readonly #names: readonly { literal: Literal; kind: number }[];
  readonly #genAiPrefixes: readonly Literal[];
  /** Address, end and kind of each event. */
  #events = new Int32Array(INITIAL_EVENTS * FIELDS);

  constructor({ kernel, lit }: Toolbox, event: Attributes) {
    this.#kernel = kernel;
    this.#event = event;
    this.#names = NAMES.map(([name, kind]) => ({ literal: lit(name), kind }));
    this.#genAiPrefixes = GENAI_PREFIXES.map(lit);
  }

  /** Lists the events of the span message in the range. Returns whether any has a GenAI name. */
  list(span: Span, at: number, end: number, count: number): boolean {
    span.eventCount = 0;
    span.eventKinds = 0;
    if (count === 0) return false;
    const { x } = this.#kernel;
    if (this.#events.length < count * FIELDS) this.#events = new Int32Array(count * FIELDS * 2);
    let genAi = false;
    let index = 0;
    let pos = at;
    while (pos !== 0 && pos < end) {
      pos = x.readField(pos, end);
      const { i32 } = this.#kernel;
      if (i32[Word.ValueType] !== EVENT_TAG) continue;
      const start = i32[Word.ValueA] ?? 0;
      const stop = i32[Word.ValueB] ?? 0;
      this.#event.scanEvent(start, stop);
      const nameAt = i32[Word.EventNameOff] ?? 0;
      const nameLength = i32[Word.EventNameLen] ?? 0;
      const kind = this.kindOf(nameAt, nameLength);
      genAi ||= this.isGenAi(nameAt, nameLength);
      this.#events[index++] = start;
      this.#events[index++] = stop;
      this.#events[index++] = kind;
      span.eventKinds |= 1 << kind;
    }
    span.eventCount = index / FIELDS;
    return genAi;
  }

  kindOf(at: number, length: number): number {
    const { x } = this.#kernel;
    for (const { literal, kind } of this.#names) {
      if (literal.length === length && x.equals(literal.at, at, length) !== 0) return kind;
    }
    return EventKind.Other;
  }

  isGenAi(at: number, length: number): boolean {
    const { x } = this.#kernel;
    for (const prefix of this.#genAiPrefixes) {
      if (length >= prefix.length && x.equals(prefix.at, at, prefix.length) !== 0) return true;
    }
    return false;
  }

  kind(index: number): number {
    return this.#events[index * FIELDS + 2] ?? 0;
  }

  start(index: number): number {
    return this.#events[index * FIELDS] ?? 0;
  }

  end(index: number): number {
    return this.#events[index * FIELDS + 1] ?? 0;
  }

  /** Scans an event: its attributes are then in `span.event`, its time and name here. */
  scan(index: number): Attributes {
    this.#event.scanEvent(this.start(index), this.end(index));
    return this.#event;
  }

  /** Of the event scanned last, microseconds; 0 when it has none. */
  get timeUs(): number {
    return this.#kernel.f64[Double.EventTimeUs] ?? 0;
  }

  get nameAt(): number {
    return this.#kernel.i32[Word.EventNameOff] ?? 0;
  }

  get nameLength(): number {
    return this.#kernel.i32[Word.EventNameLen] ?? 0;
  }

  /** Index of the last event of a kind, or -1. */
  last(span: Span, kind: number): number {
    if ((span.eventKinds & (1 << kind)) === 0) return -1;
    for (let i = span.eventCount - 1; i >= 0; i--) if (this.kind(i) === kind) return i;
    return -1;
  }
}
