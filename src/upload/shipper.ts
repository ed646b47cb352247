/**
 * The shipper: reads a shard's records, has them assembled and batched, and sees that batches are delivered.
 *
 * In: records of one shard's rings, and by message those too large for a ring. Out: uploads. Owns its thread. Full (the
 * outbox says so): it stops reading; rings fill, producers wait, then clients are told to come back. Stop: {@link
 * Shipper.drain} reads what is left, sends off what waits for ancestors, seals, and delivers until the deadline.
 */
import type { Counters } from '../core/counters.ts';
import type { Clock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import { RecordView } from '../core/recordview.ts';
import { MINUTE_MS, MiB } from '../core/units.ts';
import type { RecordWindow, ShardReader } from '../ring/reader.ts';
import { createRecordWindow } from '../ring/reader.ts';
import type { Batcher } from './batcher.ts';
import type { Gauges } from './gauges.ts';
import { nameOfRecord, type Hand, type Poison } from './hand.ts';
import type { Outbox, Undelivered } from './outbox.ts';

/** What the shipper needs of the assembler. */
export interface RecordAssembler {
  take(window: RecordWindow, nowMs: number): void;
  sweep(nowMs: number): void;
  flush(): void;
  readonly nextSweepMs: number;
  readonly parkedCount: number;
  readonly parkedBytes: number;
  readonly traceCount: number;
  readonly spanCount: number;
}

export interface ShipperParts {
  readonly reader: ShardReader;
  readonly assembler: RecordAssembler;
  readonly batcher: Batcher;
  readonly outbox: Outbox;
  readonly gauges: Gauges;
  readonly counters: Counters;
  readonly clock: Clock;
  readonly log: Log;
  readonly hand: Hand;
  /** Its records are left out. */
  readonly poison: Poison;
}

/** Of one round: long enough that most traces are complete in it, short enough not to hold up uploads and messages. */
const ROUND_BYTES = MiB;
const ROUND_RECORDS = 4096;
/** While nothing is due. */
const IDLE_MS = MINUTE_MS;

export class Shipper {
  readonly #parts: ShipperParts;
  readonly #window = createRecordWindow(ROUND_RECORDS);
  readonly #oversize: ArrayBuffer[] = [];
  #oversizeBytes = 0;
  /** Ends reading and every wait of the loop. */
  readonly #stop = new AbortController();
  /** Ends delivering. */
  readonly #end = new AbortController();
  /** Ends one wait. */
  #nudge: () => void = () => undefined;
  readonly #poison: ReadonlySet<string>;
  #running: Promise<void> | null = null;
  #drained: Promise<Undelivered> | null = null;

  constructor(parts: ShipperParts) {
    this.#parts = parts;
    this.#poison = new Set(parts.poison.records);
  }

  /** Reads and ships until {@link drain}. Rejects with what ends the thread. */
  run(): Promise<void> {
    this.#running ??= this.#loop();
    return this.#running;
  }

  /** Takes a record that is too large for a ring. Whoever sends it bounds how many: see the gauge `oversizeBytes`. */
  takeOversize(record: ArrayBuffer): void {
    this.#oversize.push(record);
    this.#oversizeBytes += record.byteLength;
    this.#nudge();
  }

  get draining(): boolean {
    return this.#drained !== null;
  }

  /** Producers must have stopped. Afterwards everything is delivered or counted as lost. */
  drain(deadlineMs: number): Promise<Undelivered> {
    this.#drained ??= this.#drain(deadlineMs);
    return this.#drained;
  }

  /** Ends {@link drain} at once: a second signal. */
  end(): void {
    this.#end.abort();
  }

  async #drain(deadlineMs: number): Promise<Undelivered> {
    const { assembler, batcher, outbox, clock, hand } = this.#parts;
    void clock.sleep(deadlineMs, this.#end.signal).then(() => this.#end.abort());
    this.#stop.abort();
    this.#nudge();
    await this.run();
    while (this.#readRound()) await nextTurn();
    assembler.flush();
    batcher.flush();
    hand.drop();
    const undelivered = await outbox.drain(this.#end.signal);
    this.#end.abort();
    this.report();
    return undelivered;
  }

  async #loop(): Promise<void> {
    const { reader, assembler, batcher, outbox, clock, gauges, hand } = this.#parts;
    const stop = this.#stop.signal;
    while (!stop.aborted) {
      if (outbox.full) {
        if (gauges.get('reading') !== 0) gauges.set('fullSinceMs', clock.nowMs());
        gauges.set('reading', 0);
        this.#keepTime();
        await Promise.race([outbox.room(stop), this.#nudged(), clock.sleep(this.#idleMs(), stop)]);
        continue;
      }
      gauges.set('reading', 1);
      gauges.set('fullSinceMs', 0);
      const readAny = this.#readRound();
      this.#keepTime();
      if (readAny) await nextTurn();
      else await Promise.race([reader.wait(this.#idleMs()), this.#nudged()]);
    }
    assembler.sweep(clock.nowMs());
    batcher.flushDue(clock.nowMs());
    hand.drop();
  }

  /** One window from the rings, then what came by message. False when there was nothing. */
  #readRound(): boolean {
    const { reader, counters } = this.#parts;
    const count = reader.read(this.#window, ROUND_BYTES);
    if (count > 0) {
      this.#take(this.#window);
      reader.release();
    }
    const record = this.#oversize.shift();
    if (record === undefined) return count > 0;
    this.#oversizeBytes -= record.byteLength;
    const window = { count: 1, bytes: [Buffer.from(record)], offset: Int32Array.of(0) };
    this.#take(window);
    counters.add('oversize_records_read');
    return true;
  }

  #take(window: RecordWindow): void {
    const { assembler, clock, hand } = this.#parts;
    if (this.#poison.size > 0) this.#leaveOutPoison(window);
    assembler.take(window, clock.nowMs());
    hand.drop();
  }

  /** Whoever keeps their requests does so for good: they are not settled. */
  #leaveOutPoison(window: RecordWindow): void {
    const { counters, log } = this.#parts;
    const record = new RecordView();
    let keptCount = 0;
    for (let i = 0; i < window.count; i++) {
      const bytes = window.bytes[i] as Buffer;
      const offset = window.offset[i] ?? 0;
      record.open(bytes, offset);
      const span = nameOfRecord(record);
      if (this.#poison.has(span)) {
        counters.add('records_read');
        counters.add('dropped_worker-lost');
        log.error({ span }, 'a span that uploading threads died of is left out');
        continue;
      }
      window.bytes[keptCount] = bytes;
      window.offset[keptCount] = offset;
      keptCount++;
    }
    window.count = keptCount;
  }

  #keepTime(): void {
    const { assembler, batcher, clock, hand } = this.#parts;
    const nowMs = clock.nowMs();
    assembler.sweep(nowMs);
    batcher.flushDue(nowMs);
    hand.drop();
    this.report();
  }

  /** How long there is nothing to do unless records come. */
  #idleMs(): number {
    const { assembler, batcher, clock } = this.#parts;
    const nowMs = clock.nowMs();
    const dueMs = Math.min(batcher.nextFlushMs, assembler.nextSweepMs);
    return Math.min(Math.max(0, dueMs - nowMs), IDLE_MS);
  }

  #nudged(): Promise<void> {
    return new Promise((resolve) => {
      this.#nudge = resolve;
    });
  }

  /** Renews the gauges; called by the outbox as well, since uploads end while nothing is read. */
  report(): void {
    const { reader, assembler, batcher, outbox, gauges } = this.#parts;
    const { stats } = outbox;
    gauges.set('backlogBytes', reader.backlogBytes);
    gauges.set('oversizeBytes', this.#oversizeBytes);
    gauges.set('parkedRecords', assembler.parkedCount);
    gauges.set('parkedBytes', assembler.parkedBytes);
    gauges.set('rememberedTraces', assembler.traceCount);
    gauges.set('rememberedSpans', assembler.spanCount);
    gauges.set('openRuns', batcher.openRunCount);
    gauges.set('openBytes', batcher.openBytes);
    gauges.set('heldBatches', stats.batchCount);
    gauges.set('heldRuns', stats.runCount);
    gauges.set('heldBytes', stats.bytes);
    gauges.set('shelvedBatches', stats.shelvedCount);
    gauges.set('inFlightUploads', stats.inFlightCount);
    gauges.set('inFlightBytes', stats.inFlightBytes);
    gauges.set('tenants', stats.tenantCount);
    gauges.set('downTenants', stats.downTenantCount);
    gauges.set('lastDeliveredMs', stats.lastDeliveredMs);
  }
}

/** Lets uploads, timers and messages have their turn. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
