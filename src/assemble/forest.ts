/**
 * All remembered traces as trees that grow in any order: a span is registered when it arrives, waits below a parent that
 * has not, and is placed once its ancestors are known up to a root. A span is looked at when it is registered and once
 * more when it is placed, so a trace costs time in proportion to its spans, whatever its shape and order.
 *
 * `onPlaced` hears of every span that is placed after it was registered to wait, parents before children.
 */
import type { Counters } from '../core/counters.ts';
import { RecordFlag, RecordOffset } from '../core/record.ts';
import type { RecordView } from '../core/recordview.ts';
import { ORDER_SEGMENT_BYTES, ORDER_TIME_BYTES, UUID_TEXT_BYTES } from '../core/run.ts';
import type { Tenant } from '../core/run.ts';
import { TimestampWriter, parseCompact } from '../core/timestamp.ts';
import { uuidText } from './identity.ts';
import { OrderWriter } from './orders.ts';
import { MAX_DEPTH, foreignOrder, lastSegmentAt, readOverrides } from './overrides.ts';
import { NONE, SpanFlag, SpanState, SpanTable } from './spans.ts';
import { TraceTable } from './traces.ts';

export interface ForestSettings {
  readonly rootRunId: 'trace' | 'span';
  readonly filterNonGenAi: boolean;
  readonly rememberedSpanCount: number;
}

const OVERRIDE_FLAGS =
  RecordFlag.HasRunId | RecordFlag.HasParentRunId | RecordFlag.HasTraceId | RecordFlag.HasDottedOrder;
/** What the converter made no run of. */
const NO_RUN_FLAGS = RecordFlag.ConverterDropped | RecordFlag.ConverterFailed;
/** Room that is made at once for the traces of so many spans; it doubles where traces are smaller. */
const SPANS_PER_TRACE = 8;

export class Forest {
  readonly traces: TraceTable;
  readonly spans: SpanTable;
  readonly orders: OrderWriter;
  readonly #settings: ForestSettings;
  readonly #counters: Counters;
  readonly #onPlaced: (span: number) => void;
  /** Spans whose children are to be placed. */
  readonly #stack: number[] = [];

  constructor(settings: ForestSettings, counters: Counters, onPlaced: (span: number) => void) {
    this.spans = new SpanTable(settings.rememberedSpanCount);
    this.traces = new TraceTable(settings.rememberedSpanCount / SPANS_PER_TRACE);
    this.orders = new OrderWriter(this.spans, this.traces);
    this.#settings = settings;
    this.#counters = counters;
    this.#onPlaced = onPlaced;
  }

  /** The record's span, waiting or already placed; NONE when it was registered before. */
  register(record: RecordView, tenant: Tenant, nowMs: number): number {
    const { spans, traces } = this;
    const { flags, startUs } = record;
    const trace = traces.intern(
      tenant,
      record.word(RecordOffset.TraceId),
      record.word(RecordOffset.TraceId + 4),
      record.word(RecordOffset.TraceId + 8),
      record.word(RecordOffset.TraceId + 12),
      nowMs,
    );
    const span = this.#internSpan(trace, record.word(RecordOffset.SpanId), record.word(RecordOffset.SpanId + 4));
    const known = spans.state(span);
    if (known === SpanState.Waiting || known === SpanState.Placed) return NONE;
    spans.setState(span, SpanState.Waiting);
    spans.setStartUs(span, startUs);
    if (startUs < traces.earliestUs(trace)) traces.setEarliestUs(trace, startUs);

    if ((flags & OVERRIDE_FLAGS) !== 0) {
      this.#registerGiven(record, trace, span);
    } else if ((flags & RecordFlag.HasParent) === 0 || (flags & RecordFlag.ForcedRoot) !== 0) {
      this.#placeRoot(trace, span);
    } else {
      const isFiltered = this.#settings.filterNonGenAi && (flags & RecordFlag.GenAi) === 0;
      if (isFiltered || (flags & NO_RUN_FLAGS) !== 0) spans.setFlags(span, SpanFlag.Filtered);
      this.#hang(span, this.#parentOf(record, trace));
    }
    return span;
  }

  /** Gives up waiting for what this span waits for. Afterwards it is placed. */
  orphan(span: number, nowMs: number): void {
    const { spans } = this;
    const top = this.#topOf(span);
    const missing = spans.parent(top);
    const trace = spans.traceOf(span);
    const fallback = this.#fallbackOf(trace);
    // Late spans of the trace, and perhaps its root, are still to be expected.
    this.traces.touch(trace, nowMs);
    if (spans.state(span) === SpanState.Placed) return; // it waited for the stand-in itself
    if (spans.state(missing) === SpanState.Awaited) {
      spans.setParent(missing, fallback);
      this.#abandon(missing);
    } else {
      // A cycle, which is cut here.
      spans.setParent(top, fallback);
      this.#counters.add('runs_orphaned');
      this.#place(top);
    }
  }

  orphanAll(trace: number, nowMs: number): void {
    const { spans } = this;
    for (let span = this.traces.firstSpan(trace); span !== NONE; span = spans.nextInTrace(span)) {
      if (spans.state(span) === SpanState.Waiting) this.orphan(span, nowMs);
    }
  }

  /** Its spans must not wait any more, or whoever waits for them must not care. */
  forget(trace: number): void {
    const { spans } = this;
    let span = this.traces.firstSpan(trace);
    while (span !== NONE) {
      const next = spans.nextInTrace(span);
      spans.remove(span);
      span = next;
    }
    this.traces.remove(trace);
    this.orders.forget();
  }

  #registerGiven(record: RecordView, trace: number, span: number): void {
    const { runId, parentRunId, traceId, order } = readOverrides(record);
    const forcedRoot = (record.flags & RecordFlag.ForcedRoot) !== 0;
    if (order !== null && (!forcedRoot || lastSegmentAt(order) === 0)) {
      this.#placeAt(trace, span, order);
    } else if (forcedRoot || (parentRunId === null && (record.flags & RecordFlag.HasParent) === 0)) {
      const isFirst = this.traces.root(trace) === NONE;
      this.#giveId(span, runId ?? (isFirst ? traceId : null));
      this.#placeRoot(trace, span);
    } else {
      const own = runId ?? uuidOfSpan(record);
      const parent = parentRunId === null ? this.#parentOf(record, trace) : this.#spanOfRun(record, trace, parentRunId);
      if (parent === NONE) {
        const text = Buffer.alloc(ORDER_TIME_BYTES);
        new TimestampWriter().writeCompact(text, 0, record.startUs);
        const traceText = traceId ?? uuidText(record.bytes, record.offset + RecordOffset.TraceId);
        this.#placeAt(trace, span, foreignOrder(text.toString('latin1'), traceText, parentRunId ?? traceText, own));
      } else {
        this.#giveId(span, runId);
        this.#hang(span, parent);
      }
    }
  }

  #parentOf(record: RecordView, trace: number): number {
    const [low, high] = [record.word(RecordOffset.ParentSpanId), record.word(RecordOffset.ParentSpanId + 4)];
    return this.#internSpan(trace, low, high);
  }

  /** The span of this trace that a run id names, arrived or not; NONE when the run is somebody else's. */
  #spanOfRun(record: RecordView, trace: number, runId: string): number {
    const root = this.traces.root(trace);
    if (root !== NONE) {
      const length = this.orders.write(root);
      if (this.orders.text.toString('latin1', length - UUID_TEXT_BYTES, length) === runId) return root;
    }
    const bytes = Buffer.from(runId.replaceAll('-', ''), 'hex');
    if (bytes.subarray(0, 8).every((byte) => byte === 0)) {
      return this.#internSpan(trace, bytes.readInt32LE(8), bytes.readInt32LE(12));
    }
    const isTrace = uuidText(record.bytes, record.offset + RecordOffset.TraceId) === runId;
    return isTrace && this.#settings.rootRunId === 'trace' ? this.#internStandIn(trace) : NONE;
  }

  #giveId(span: number, runId: string | null): void {
    if (runId === null) return;
    this.spans.givenIds.set(span, Buffer.from(runId, 'latin1'));
    this.spans.addFlag(span, SpanFlag.GivenId);
  }

  /** Places a span whose whole order is known from elsewhere. */
  #placeAt(trace: number, span: number, order: string): void {
    const { spans } = this;
    const lastAt = lastSegmentAt(order);
    spans.givenOrders.set(span, Buffer.from(order, 'latin1'));
    spans.addFlag(span, SpanFlag.GivenOrder);
    spans.setStartUs(span, parseCompact(order.slice(lastAt, lastAt + ORDER_TIME_BYTES)));
    if (lastAt === 0 && this.traces.root(trace) === NONE) this.traces.setRoot(trace, span);
    spans.setParent(span, NONE);
    spans.setDepth(span, (order.length + 1) / (ORDER_SEGMENT_BYTES + 1));
    this.#settle(span);
  }

  /** Hangs a span on its parent and places it if the parent is placed or given up; otherwise it waits. */
  #hang(span: number, parent: number): void {
    const { spans } = this;
    spans.setParent(span, parent);
    const state = spans.state(parent);
    if (state === SpanState.Placed || state === SpanState.Abandoned) {
      this.#place(span);
    } else {
      spans.setNextSibling(span, spans.firstChild(parent));
      spans.setFirstChild(parent, span);
    }
  }

  #placeRoot(trace: number, span: number): void {
    const { spans, traces } = this;
    const isFirst = traces.root(trace) === NONE;
    if (isFirst) traces.setRoot(trace, span);
    let standIn = NONE;
    // The first root is the trace; a later one is a trace of its own, with its span id.
    if (isFirst && this.#settings.rootRunId === 'trace' && (spans.flags(span) & SpanFlag.GivenId) === 0) {
      spans.addFlag(span, SpanFlag.TraceId);
      standIn = spans.find(trace, 0, 0);
      if (standIn !== NONE) this.#joinStandIn(span, standIn);
    }
    spans.setParent(span, NONE);
    spans.setDepth(span, 1);
    this.#settle(span);
    if (standIn !== NONE && spans.state(standIn) !== SpanState.Placed) this.#placeStandIn(standIn, span);
  }

  /** Runs may have left under the stand-in already: their first segment must be the root's. */
  #joinStandIn(root: number, standIn: number): void {
    const { spans } = this;
    if (spans.state(standIn) !== SpanState.Placed || spans.startUs(root) === spans.startUs(standIn)) return;
    spans.setStartUs(root, spans.startUs(standIn));
    spans.addFlag(root, SpanFlag.Clamped);
  }

  /** The span id zero, which no span has, stands for the trace's root as long as that is missing. */
  #internStandIn(trace: number): number {
    return this.#internSpan(trace, 0, 0);
  }

  #placeStandIn(standIn: number, root: number): void {
    const { spans } = this;
    spans.setFlags(standIn, SpanFlag.TraceId);
    spans.setStartUs(standIn, spans.startUs(root));
    spans.setParent(standIn, NONE);
    spans.setDepth(standIn, 1);
    this.#settle(standIn);
  }

  /** What orphans of the trace hang on. */
  #fallbackOf(trace: number): number {
    const root = this.traces.root(trace);
    if (root !== NONE) return root;
    const standIn = this.#internStandIn(trace);
    if (this.spans.state(standIn) !== SpanState.Placed) {
      this.spans.setStartUs(standIn, this.traces.earliestUs(trace));
      this.#placeStandIn(standIn, standIn);
    }
    return standIn;
  }

  /** Places a span below its parent, which is placed or given up, and then everything that waited for it. */
  #place(span: number): void {
    this.#placeBelow(span);
    this.#settle(span);
  }

  /** The place of one span below its parent. */
  #placeBelow(span: number): void {
    const { spans } = this;
    let parent = spans.parent(span);
    if (spans.state(parent) === SpanState.Abandoned) {
      parent = spans.parent(parent);
      if ((spans.flags(span) & SpanFlag.Filtered) === 0) this.#counters.add('runs_orphaned');
    } else if ((spans.flags(parent) & SpanFlag.Filtered) !== 0) {
      parent = spans.parent(parent);
    }
    if (spans.depth(parent) >= MAX_DEPTH && spans.parent(parent) !== NONE) parent = spans.parent(parent);
    spans.setParent(span, parent);
    if ((spans.flags(span) & SpanFlag.Filtered) !== 0) return;
    spans.setDepth(span, spans.depth(parent) + 1);
    const parentUs = spans.startUs(parent);
    if (spans.startUs(span) < parentUs) {
      spans.setStartUs(span, parentUs);
      spans.addFlag(span, SpanFlag.Clamped);
    }
  }

  /** The span's own place is settled: it may leave, and so may all that waited for it, at any depth (no recursion). */
  #settle(span: number): void {
    const { spans } = this;
    const stack = this.#stack;
    const base = stack.length;
    spans.setState(span, SpanState.Placed);
    this.#onPlaced(span);
    stack.push(span);
    while (stack.length > base) {
      const parent = stack.pop() ?? NONE;
      let child = spans.firstChild(parent);
      spans.setFirstChild(parent, NONE);
      while (child !== NONE) {
        const next = spans.nextSibling(child);
        // In a cycle the first one placed is also somebody's child.
        if (spans.state(child) === SpanState.Waiting) {
          this.#placeBelow(child);
          spans.setState(child, SpanState.Placed);
          this.#onPlaced(child);
          stack.push(child);
        }
        child = next;
      }
    }
  }

  /** The fallback stands in for a span that never came: its children are placed, and those still to come will be at once. */
  #abandon(missing: number): void {
    const { spans } = this;
    let child = spans.firstChild(missing);
    spans.setFirstChild(missing, NONE);
    spans.setState(missing, SpanState.Abandoned);
    while (child !== NONE) {
      const next = spans.nextSibling(child);
      if (spans.state(child) === SpanState.Waiting) this.#place(child);
      child = next;
    }
  }

  /** The last waiting span upwards: its parent has not arrived; or, in a cycle, any span of the cycle (Brent). */
  #topOf(span: number): number {
    const { spans } = this;
    let [slow, fast] = [span, span];
    for (let steps = 0, limit = 2; ; steps++) {
      const parent = spans.parent(fast);
      if (spans.state(parent) !== SpanState.Waiting) return fast;
      fast = parent;
      if (fast === slow) return fast;
      if (steps === limit) {
        slow = fast;
        limit *= 2;
        steps = 0;
      }
    }
  }

  #internSpan(trace: number, low: number, high: number): number {
    const { spans } = this;
    const span = spans.intern(trace, low, high);
    if (spans.added) {
      spans.setNextInTrace(span, this.traces.firstSpan(trace));
      this.traces.setFirstSpan(trace, span);
    }
    return span;
  }
}

/** The run id that a span has of itself: its span id, padded. */
function uuidOfSpan(record: RecordView): string {
  const hex = record.bytes.toString(
    'hex',
    record.offset + RecordOffset.SpanId,
    record.offset + RecordOffset.SpanId + 8,
  );
  return `00000000-0000-0000-${hex.slice(0, 4)}-${hex.slice(4)}`;
}
