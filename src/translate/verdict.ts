/**
 * Whether the run failed and why; and which of the span's events stay events of the run.
 *
 * | Span status | Exception event                          | `error.type` | Run |
 * | ----------- | ---------------------------------------- | ------------ | --- |
 * | ERROR       | the last gives the text, if there is one | text, failing a status message | error |
 * | OK          | stays an event                           | metadata     | success |
 * | UNSET       | error, unless `exception.escaped` is false | error      | error |
 * | UNSET       | none                                     | none         | success; without end time pending |
 */
import type { Attributes } from './attributes.ts';
import type { EventReader } from './events.ts';
import { ValueType, Word } from './kernel/kernel.ts';
import type { Literal } from './kernel/kernel.ts';
import { ClaimedKeys, Members } from './members.ts';
import type { ErrorType } from './metadata.ts';
import { EventKind } from './span.ts';
import type { Span } from './span.ts';
import { writeTime } from './time.ts';
import type { Toolbox } from './toolbox.ts';
import { Words } from './words.ts';
import type { Writer } from './writer.ts';

const CLOSE_ARRAY = 0x5d;
const CLOSE_OBJECT = 0x7d;
const QUOTE = 0x22;
const EVENT_ATTRIBUTES = 3;
const STATUS_UNSET = 0;
const STATUS_OK = 1;
const STATUS_ERROR = 2;

export class Verdict implements ErrorType {
  readonly #kernel;
  readonly #events: EventReader;
  readonly #members: Members;
  readonly #claimed: ClaimedKeys;
  readonly #false: Words;
  readonly #key;
  readonly #l;
  #failed = false;
  /** Index of the exception event that gave the text, or -1. */
  #exception = -1;

  constructor(box: Toolbox, events: EventReader) {
    const { kernel, keys, lit } = box;
    this.#kernel = kernel;
    this.#events = events;
    this.#members = new Members(box);
    this.#claimed = new ClaimedKeys(box);
    this.#false = new Words(box, { false: 0 });
    this.#key = {
      errorType: keys.key('error.type'),
      escaped: keys.eventKey('exception.escaped'),
      message: keys.eventKey('exception.message'),
      type: keys.eventKey('exception.type'),
      stack: keys.eventKey('exception.stacktrace'),
    };
    this.#l = {
      exporter: lit('langsmith'),
      success: lit('success'),
      error: lit('error'),
      pending: lit('pending'),
      stackAfter: lit('\\n\\nStacktrace:\\n'),
      stackAlone: lit('Stacktrace:\\n'),
      nameIs: lit('{"name":'),
      newToken: lit('{"name":"new_token"'),
      unnamed: lit('"unnamed"'),
      timeIs: lit(',"time":'),
      kwargsIs: lit(',"kwargs":{'),
    };
  }

  /** Looks at the span; everything else here speaks of the span looked at last. Returns its status. */
  judge(span: Span, notEnded: boolean, scopeAt: number, scopeLength: number): Literal {
    let code = this.#kernel.i32[Word.StatusCode] ?? 0;
    // The backend's own exporter says OK before it knows, and OpenTelemetry then keeps that.
    if (code === STATUS_OK && this.#isExporter(scopeAt, scopeLength)) code = STATUS_UNSET;
    const { attributes } = span;
    this.#exception = -1;
    this.#failed = false;
    let telling = -1;
    if (code !== STATUS_OK && (span.eventKinds & (1 << EventKind.Exception)) !== 0) telling = this.#telling(span, code);
    this.#failed =
      code === STATUS_ERROR || (code !== STATUS_OK && (telling >= 0 || attributes.hasText(this.#key.errorType)));
    if (this.#failed && telling >= 0) {
      const event = this.#events.scan(telling);
      const { message, type, stack } = this.#key;
      if (event.hasText(message) || event.hasText(type) || event.hasText(stack)) this.#exception = telling;
    }
    if (this.#failed) return this.#l.error;
    return notEnded ? this.#l.pending : this.#l.success;
  }

  #isExporter(at: number, length: number): boolean {
    const { exporter } = this.#l;
    return length === exporter.length && this.#kernel.x.equals(exporter.at, at, length) !== 0;
  }

  /** The last exception that says the run failed: under ERROR any, else one that was not handled. */
  #telling(span: Span, code: number): number {
    for (let i = span.eventCount - 1; i >= 0; i--) {
      if (this.#events.kind(i) !== EventKind.Exception) continue;
      if (code === STATUS_ERROR || !this.#isHandled(this.#events.scan(i))) return i;
    }
    return -1;
  }

  #isHandled(event: Attributes): boolean {
    const { escaped } = this.#key;
    const type = event.type(escaped);
    if (type === ValueType.Bool) return event.a(escaped) === 0;
    return type === ValueType.String && this.#false.findAnyCase(event.a(escaped), event.b(escaped)) === 0;
  }

  /** Writes the run's error as a JSON string; nothing when it did not fail. */
  writeError(span: Span, out: Writer): void {
    if (!this.#failed) return;
    const { attributes } = span;
    const { i32 } = this.#kernel;
    out.byte(QUOTE);
    const status = i32[Word.StatusLen] ?? 0;
    const { errorType } = this.#key;
    if (this.#exception >= 0) this.#writeException(out);
    else if (status > 0) out.stringPart(i32[Word.StatusOff] ?? 0, status);
    else if (attributes.hasText(errorType)) out.stringPart(attributes.a(errorType), attributes.b(errorType));
    else out.literal(this.#l.error);
    out.byte(QUOTE);
  }

  #writeException(out: Writer): void {
    const event = this.#events.scan(this.#exception);
    const { message, type, stack } = this.#key;
    const text = event.hasText(message) ? message : type;
    const hasText = event.hasText(text);
    if (hasText) out.stringPart(event.a(text), event.b(text));
    if (!event.hasText(stack)) return;
    out.literal(hasText ? this.#l.stackAfter : this.#l.stackAlone);
    out.stringPart(event.a(stack), event.b(stack));
  }

  #hasOwn(attributes: Attributes): boolean {
    const { errorType } = this.#key;
    const type = attributes.type(errorType);
    if (type === ValueType.String) return attributes.b(errorType) > 0;
    return type !== ValueType.Absent;
  }

  hasErrorType(span: Span): boolean {
    if (this.#hasOwn(span.attributes)) return true;
    return this.#exception >= 0 && this.#events.scan(this.#exception).hasText(this.#key.type);
  }

  writeErrorType(span: Span, out: Writer): void {
    const { errorType, type } = this.#key;
    const { attributes } = span;
    if (this.#hasOwn(attributes)) {
      this.#members.writeValue(attributes.type(errorType), attributes.a(errorType), attributes.b(errorType), out);
      return;
    }
    const event = this.#events.scan(this.#exception);
    out.string(event.a(type), event.b(type));
  }

  /** Writes the array `events`: what no convention consumed. Nothing when there are none. */
  writeEvents(span: Span, startUs: number, out: Writer): void {
    if (span.eventCount === 0) return;
    const start = out.pos;
    out.byte(0x5b);
    for (let i = 0; i < span.eventCount; i++) {
      const kind = this.#events.kind(i);
      const stays = kind === EventKind.Other || kind === EventKind.NewToken || kind === EventKind.Exception;
      if (stays && i !== this.#exception) this.#writeEvent(i, kind, startUs, out);
    }
    if (out.pos === start + 1) out.pos = start;
    else out.close(CLOSE_ARRAY);
  }

  #writeEvent(index: number, kind: number, startUs: number, out: Writer): void {
    this.#events.scan(index);
    const { timeUs, nameAt, nameLength } = this.#events;
    if (kind === EventKind.NewToken) out.literal(this.#l.newToken);
    else {
      out.literal(this.#l.nameIs);
      if (nameLength === 0) out.literal(this.#l.unnamed);
      else out.string(nameAt, nameLength);
    }
    out.literal(this.#l.timeIs);
    writeTime(this.#kernel.i32[Word.EventGiven] === 0 ? startUs : timeUs, out);
    if (kind !== EventKind.NewToken) {
      const at = out.pos;
      out.literal(this.#l.kwargsIs);
      this.#claimed.begin();
      const count = this.#members.write(
        this.#events.start(index),
        this.#events.end(index),
        EVENT_ATTRIBUTES,
        this.#claimed,
        out,
      );
      if (count > 0) out.close(CLOSE_OBJECT);
      else out.pos = at;
    }
    out.byte(CLOSE_OBJECT);
    out.comma();
  }
}
