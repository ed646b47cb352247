/**
 * Records in, runs out: gives every span its place in its trace (parent, dotted order, start not before its parent's).
 *
 * In: windows of records that lie in the rings, in any order, children usually before their parents. Out: one
 * {@link RunSink.put} a span. Owned by one shipper thread.
 *
 * A window is gone through twice. First every span is registered, so that children which stand before their parent in
 * the same window (SDKs export in the order of ending) need not be copied; then those whose ancestors are known leave
 * straight from the ring, and the others are parked. A parked span leaves as soon as its last missing ancestor is
 * registered; when it has waited `spanTtlMs`; on {@link Assembler.flush}; or when parked records take more than
 * `parkBytes` (oldest trace first). In the last three cases its topmost known ancestor is hung on the trace's root, or,
 * if none has come, on one placeholder root a trace: a segment of the dotted order that is never sent as a run, whose id
 * is the trace id and whose start is the earliest known. A real root that comes later takes the placeholder's start.
 *
 * Of spans that have left, a few words are remembered for `spanTtlMs` after the last span of their trace, or until
 * `rememberedSpanCount` is reached: then the quietest traces are forgotten, and their late spans become orphans.
 * A span that is remembered already is a resend, and is dropped.
 *
 * FILTER_NON_GENAI: a span without anything of GenAI makes no run and its children hang on the nearest ancestor that
 * does. Roots are always kept: whether a root has exactly one child to take its place is only known after the trace.
 * A span that CONVERTER_MODULE made no run of is treated alike; such a root leaves its segment in the dotted order, like
 * a placeholder.
 */
import type { CounterName, Counters } from '../core/counters.ts';
import { RecordFlag } from '../core/record.ts';
import { RecordView } from '../core/recordview.ts';
import type { RunSink } from '../core/run.ts';
import { KiB } from '../core/units.ts';
import { Forest } from './forest.ts';
import type { ForestSettings } from './forest.ts';
import { Parking } from './parking.ts';
import { NONE, SpanFlag, SpanState } from './spans.ts';
import type { SpanTable } from './spans.ts';
import { Tenants } from './tenants.ts';
import type { TraceTable } from './traces.ts';

export interface AssemblerSettings extends ForestSettings {
  readonly spanTtlMs: number;
  readonly parkBytes: number;
  readonly rememberedSpanCount: number;
  readonly tenantCount: number;
}

/** Records where they lie. A ring reader's window is one. */
export interface Records {
  readonly count: number;
  readonly bytes: readonly Uint8Array[];
  readonly offset: ArrayLike<number>;
}

/** A record larger than this is not kept in memory by the view that looked at it last. */
const MAX_VIEWED_BYTES = 64 * KiB;

/** Hears what becomes of records, by the number of the request that they came with. */
export interface SourceFollower {
  /** It will be a run. */
  took(source: number): void;
  /** It makes no run. */
  dropped(source: number): void;
  /** Its span came before, with the same request or another, and is dropped; the first may still be in memory. */
  repeated(source: number): void;
}

/** Is told of each record before anything is done with it, so that it is known what a thread died of. */
export interface RecordHolder {
  holdRecord(record: RecordView): void;
}

const NO_HOLDER: RecordHolder = { holdRecord: () => undefined };
const NOBODY: SourceFollower = { took: () => undefined, dropped: () => undefined, repeated: () => undefined };

export class Assembler {
  readonly #settings: AssemblerSettings;
  readonly #sink: RunSink;
  readonly #counters: Counters;
  readonly #follower: SourceFollower;
  readonly #holder: RecordHolder;
  readonly #tenants: Tenants;
  readonly #forest: Forest;
  readonly #spans: SpanTable;
  readonly #traces: TraceTable;
  readonly #parking = new Parking();
  readonly #record = new RecordView();
  readonly #parked = new RecordView();
  /** Of the last call that brought the time. */
  #nowMs = 0;
  /** Of each record of the window: its span, or NONE when it makes no run. */
  #windowSpans = new Int32Array(1024);

  /** `follower` hears of every record whose source is not 0. */
  constructor(
    settings: AssemblerSettings,
    sink: RunSink,
    counters: Counters,
    follower: SourceFollower = NOBODY,
    holder: RecordHolder = NO_HOLDER,
  ) {
    this.#settings = settings;
    this.#sink = sink;
    this.#counters = counters;
    this.#follower = follower;
    this.#holder = holder;
    this.#tenants = new Tenants(settings.tenantCount);
    this.#forest = new Forest(settings, counters, (span) => this.#emitParked(span));
    this.#spans = this.#forest.spans;
    this.#traces = this.#forest.traces;
  }

  get parkedCount(): number {
    return this.#parking.count;
  }

  get parkedBytes(): number {
    return this.#parking.chunkBytes;
  }

  get traceCount(): number {
    return this.#traces.count;
  }

  get spanCount(): number {
    return this.#spans.count;
  }

  /** Takes all records of the window; afterwards nothing here refers to its memory. */
  take(window: Records, nowMs: number): void {
    const { count } = window;
    if (count === 0) return;
    this.#nowMs = nowMs;
    // A record makes at most two spans (itself, its parent) and perhaps a placeholder: with the room made first, no
    // trace is forgotten in the middle of a window.
    this.#makeRoom(3 * count);
    if (this.#windowSpans.length < count) this.#windowSpans = new Int32Array(2 * count);
    const record = this.#record;
    for (let i = 0; i < count; i++) {
      record.open(window.bytes[i] as Uint8Array, window.offset[i] as number);
      this.#holder.holdRecord(record);
      this.#windowSpans[i] = this.#register();
    }
    for (let i = 0; i < count; i++) {
      const span = this.#windowSpans[i] ?? NONE;
      if (span === NONE) continue;
      record.open(window.bytes[i] as Uint8Array, window.offset[i] as number);
      if (this.#spans.state(span) === SpanState.Placed) this.#emit(span, record);
      else this.#park(span);
    }
    record.close();
    this.#counters.add('records_read', count);
    if (this.#parking.chunkBytes > this.#settings.parkBytes) this.#relieveParking();
  }

  /** When {@link sweep} should be called next; infinity when nothing waits. */
  get nextSweepMs(): number {
    const { oldest } = this.#parking;
    return oldest === NONE ? Number.POSITIVE_INFINITY : this.#parking.parkedMs(oldest) + this.#settings.spanTtlMs;
  }

  /** Sends off what has waited too long, forgets what has been quiet for too long. */
  sweep(nowMs: number): void {
    this.#nowMs = nowMs;
    const limitMs = nowMs - this.#settings.spanTtlMs;
    const parking = this.#parking;
    while (parking.oldest !== NONE && parking.parkedMs(parking.oldest) <= limitMs) {
      this.#forest.orphan(parking.spanOf(parking.oldest), this.#nowMs);
    }
    for (let trace = this.#traces.quietestComplete; trace !== NONE; trace = this.#traces.quietestComplete) {
      if (this.#traces.touchedMs(trace) > limitMs) break;
      this.#forget(trace);
    }
  }

  /** Sends off everything that waits. */
  flush(): void {
    const parking = this.#parking;
    while (parking.oldest !== NONE) this.#forest.orphan(parking.spanOf(parking.oldest), this.#nowMs);
  }

  /** The record's span if it is going to be a run, else NONE. */
  #register(): number {
    const record = this.#record;
    const span = this.#forest.register(record, this.#tenants.resolve(record), this.#nowMs);
    const { flags, source } = record;
    if (span === NONE) {
      this.#counters.add('dropped_duplicate');
      if (source !== 0) this.#follower.repeated(source);
      return NONE;
    }
    if ((flags & RecordFlag.ConverterFailed) !== 0) return this.#drop('dropped_converter-failed');
    if ((flags & RecordFlag.ConverterDropped) !== 0) return this.#drop('dropped_converter-dropped');
    if ((this.#spans.flags(span) & SpanFlag.Filtered) !== 0) return this.#drop('dropped_filtered');
    if (source !== 0) this.#follower.took(source);
    return span;
  }

  #drop(counter: CounterName): number {
    this.#counters.add(counter);
    const { source } = this.#record;
    if (source !== 0) this.#follower.dropped(source);
    return NONE;
  }

  #emitParked(span: number): void {
    const entry = this.#spans.entry(span);
    if (entry === NONE) return;
    this.#parking.open(entry, this.#parked);
    this.#emit(span, this.#parked);
    this.#parking.release(entry);
    if (this.#parked.totalBytes > MAX_VIEWED_BYTES) this.#parked.close();
    this.#spans.setEntry(span, NONE);
    this.#traces.addParked(this.#spans.traceOf(span), -1);
  }

  #emit(span: number, record: RecordView): void {
    this.#holder.holdRecord(record);
    const spans = this.#spans;
    const tenant = this.#traces.tenantOf(spans.traceOf(span));
    if (tenant === undefined) return;
    let endUs = Number.NaN;
    let clamped = (spans.flags(span) & SpanFlag.Clamped) !== 0;
    if ((record.flags & RecordFlag.NotEnded) === 0) {
      const startUs = spans.startUs(span);
      endUs = record.endUs;
      if (endUs < startUs) {
        endUs = startUs;
        clamped = true;
      }
    }
    if (clamped) this.#counters.add('times_clamped');
    const { orders } = this.#forest;
    const length = orders.write(span);
    this.#sink.put(tenant, record, orders.text, length, endUs);
  }

  #park(span: number): void {
    this.#spans.setEntry(span, this.#parking.park(span, this.#record, this.#nowMs));
    this.#traces.addParked(this.#spans.traceOf(span), 1);
    this.#counters.add('runs_parked');
  }

  /** Compacting is worth its copies when at least half of the memory comes free. */
  #relieveParking(): void {
    const parking = this.#parking;
    if (parking.recordBytes < parking.chunkBytes / 2) parking.compact();
    while (parking.chunkBytes > this.#settings.parkBytes && parking.oldest !== NONE) {
      this.#forest.orphanAll(this.#spans.traceOf(parking.spanOf(parking.oldest)), this.#nowMs);
    }
  }

  #makeRoom(spanCount: number): void {
    while (this.#spans.count > 0 && this.#spans.count + spanCount > this.#settings.rememberedSpanCount) {
      this.#forget(this.#traces.quietest);
    }
  }

  #forget(trace: number): void {
    if (this.#traces.parkedCount(trace) > 0) this.#forest.orphanAll(trace, this.#nowMs);
    this.#forest.forget(trace);
  }
}
