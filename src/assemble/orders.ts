/**
 * Renders the dotted order of a placed span by walking up to its root. Spans of one trace share their beginnings, so
 * segments that the last rendering left in the buffer and that are still right are not written again.
 */
import { ORDER_SEGMENT_BYTES, ORDER_TIME_BYTES } from '../core/run.ts';
import { TimestampWriter } from '../core/timestamp.ts';
import { writeUuid } from './identity.ts';
import { MAX_DEPTH } from './overrides.ts';
import { NONE, SpanFlag } from './spans.ts';
import type { SpanTable } from './spans.ts';
import type { TraceTable } from './traces.ts';

const DOT = 0x2e;
/** A segment with its dot. */
const STEP_BYTES = ORDER_SEGMENT_BYTES + 1;

export class OrderWriter {
  /** Holds what {@link write} rendered last. */
  readonly text = Buffer.alloc(MAX_DEPTH * STEP_BYTES);
  readonly #spans: SpanTable;
  readonly #traces: TraceTable;
  readonly #timestamps = new TimestampWriter();
  /** The span whose segment stands at each depth; right up to `#validDepth`. */
  readonly #rendered = new Int32Array(MAX_DEPTH + 1);
  #validDepth = 0;

  constructor(spans: SpanTable, traces: TraceTable) {
    this.#spans = spans;
    this.#traces = traces;
  }

  /** Slots change their meaning: nothing of the last rendering may be used again. */
  forget(): void {
    this.#validDepth = 0;
  }

  /** Renders into {@link text} and returns the length. */
  write(span: number): number {
    const spans = this.#spans;
    const depth = spans.depth(span);
    let at = span;
    for (let level = depth; at !== NONE; level--) {
      if (level <= this.#validDepth && this.#rendered[level] === at) break;
      this.#rendered[level] = at;
      if ((spans.flags(at) & SpanFlag.GivenOrder) !== 0) {
        spans.givenOrders.get(at)?.copy(this.text);
        // Its ancestors are not spans of ours, whoever stood at their depths before.
        this.#rendered.fill(NONE, 0, level);
        break;
      }
      this.#writeSegment(at, (level - 1) * STEP_BYTES);
      at = spans.parent(at);
    }
    this.#validDepth = depth;
    return depth * STEP_BYTES - 1;
  }

  #writeSegment(span: number, offset: number): void {
    const spans = this.#spans;
    const { text } = this;
    if (offset > 0) text[offset - 1] = DOT;
    this.#timestamps.writeCompact(text, offset, spans.startUs(span));
    const idAt = offset + ORDER_TIME_BYTES;
    const flags = spans.flags(span);
    if ((flags & SpanFlag.GivenId) !== 0) {
      spans.givenIds.get(span)?.copy(text, idAt);
    } else if ((flags & SpanFlag.TraceId) !== 0) {
      const traces = this.#traces;
      const trace = spans.traceOf(span);
      const [b, c] = [traces.idWord(trace, 1), traces.idWord(trace, 2)];
      writeUuid(text, idAt, traces.idWord(trace, 0), b, c, traces.idWord(trace, 3));
    } else {
      writeUuid(text, idAt, 0, 0, spans.idWord(span, 0), spans.idWord(span, 1));
    }
  }
}
