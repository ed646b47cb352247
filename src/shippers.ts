/**
 * The owner of the shipper threads (main thread's side): one thread a shard, each started, replaced when it dies, and
 * drained at the end. What a dead shipper had read and not delivered is lost; what still lies in its rings is read by
 * its successor, but for a span or batch that {@link MAX_DEATHS} threads died of: the shard would never get past it.
 * Records too large for a ring go to their shipper by message, and wait here while there is none; `congested` says when
 * no more should come.
 */
import { Worker } from 'node:worker_threads';
import { DROP_COUNTER_NAMES, type Counters, type CounterTable } from './core/counters.ts';
import type { Clock, Stage } from './core/lifecycle.ts';
import type { Log } from './core/log.ts';
import { MiB, SECOND_MS } from './core/units.ts';
import type { RingSet } from './ring/layout.ts';
import { setShardState, ShardState } from './ring/state.ts';
import { createGauges, type Gauges } from './upload/gauges.ts';
import { createHand, inHand, NO_POISON, type InHand, type Poison } from './upload/hand.ts';
import type { FromShipper, ShipWorkerData, ToShipper } from './upload/message.ts';
import type { ShipSettings } from './upload/settings.ts';

export interface ShippersSettings {
  readonly rings: RingSet;
  /** Shard `s` writes row `firstRow + s`. */
  readonly counters: CounterTable;
  readonly firstRow: number;
  readonly ship: ShipSettings;
  /** Whether the folder of `ship.spool` can be used at the start; if not, {@link Shippers.spoolReady} says when. */
  readonly spoolReady: boolean;
  /** Of each thread's objects; buffers are not among them. A thread that needs more ends and is replaced. */
  readonly heapBytes: number;
}

export interface ShippersLinks {
  /** A row that the main thread writes. */
  readonly counters: Counters;
  readonly log: Log;
  readonly clock: Clock;
  /**
   * These records of `shard` need nobody's memory any more; see the message of that name in upload/message.ts. With
   * `followSources` only. Records of bodies that were answered "busy" half-way are among them.
   */
  readonly onSettled?: (shard: number, pairs: Uint32Array) => void;
  /**
   * A thread died: what it had read and not settled exists nowhere else any more. True: all of it is going to be fed in
   * again, and `lostCount` is not counted as lost. `suspectSource`: the request, 0 for none, whose span the thread had
   * in its hand.
   */
  readonly onLost?: (shard: number, lostCount: number, suspectSource: number) => boolean;
}

export interface Shippers extends Stage {
  /** Hands a record over to its shard's shipper; the buffer is given away. */
  forwardOversize(shard: number, record: ArrayBuffer): void;
  /** Whether so many oversize bytes wait that nothing more should be decoded for now. */
  readonly congested: boolean;
  readonly gauges: readonly Gauges[];
  /** Why spans may not be moving; empty when all is well. */
  reasons(): string[];
  /** Ends the drain of `stop` at once; what is left counts as lost. */
  endNow(): void;
  /** The spool's folder can be used from now on. */
  spoolReady(): void;
  /** Runs in the spool. */
  readonly spooledCount: number;
  /** Runs that had not been delivered when `stop` ended; 0 before. */
  readonly undeliveredCount: number;
}

/** Oversize records that wait for a shipper or in it; at this point new bodies are put off. */
const MAX_OVERSIZE_BYTES = 64 * MiB;
/** A posted record shows in the shipper's gauge within this time, unless the thread stands still. */
const GAUGE_LAG_MS = SECOND_MS;
/** By the gauge `spoolState`. */
const SPOOL_REASONS: readonly (string | undefined)[] = [
  undefined,
  'spool_full: at SPOOL_MAX_BYTES, the oldest batches are dropped',
  'spool_full: no space left on the disk, batches wait in memory',
  'spool_unwritable: batches wait in memory',
];
/** Threads that one span or batch may cost. */
const MAX_DEATHS = 2;
/** Remembered as deadly; beyond these the oldest are forgotten. */
const MAX_SUSPECTS = 256;
const FIRST_RESTART_MS = 100;
const MAX_RESTART_MS = 10 * SECOND_MS;
/** A thread that lived this long died of something new. */
const STABLE_MS = 60 * SECOND_MS;
/** After its deadline a thread gets this long to say what is left. */
const GRACE_MS = SECOND_MS;

export function createShippers(settings: ShippersSettings, links: ShippersLinks): Shippers {
  const shards = Array.from(
    { length: settings.rings.shardCount },
    (_, shard) => new ShardOwner(shard, settings, links),
  );
  return {
    gauges: shards.map((shard) => shard.gauges),
    get congested() {
      return shards.some((shard) => shard.oversizeBytes > MAX_OVERSIZE_BYTES);
    },
    get undeliveredCount() {
      return shards.reduce((sum, shard) => sum + shard.undeliveredCount, 0);
    },
    start: async () => void (await Promise.all(shards.map((shard) => shard.start()))),
    stop: async (deadlineMs) => void (await Promise.all(shards.map((shard) => shard.stop(deadlineMs)))),
    forwardOversize: (shard, record) => shards[shard]?.forwardOversize(record),
    reasons: () => shards.flatMap((shard) => shard.reasons()),
    endNow: () => shards.forEach((shard) => shard.endNow()),
    spoolReady: () => shards.forEach((shard) => shard.spoolReady()),
    get spooledCount() {
      return shards.reduce((sum, shard) => sum + shard.gauges.get('spooledRuns'), 0);
    },
  };
}

class ShardOwner {
  readonly gauges = createGauges();
  undeliveredCount = 0;
  readonly #shard: number;
  readonly #settings: ShippersSettings;
  readonly #links: ShippersLinks;
  #worker: Worker | null = null;
  #alive = false;
  #startedMs = 0;
  #restartMs = FIRST_RESTART_MS;
  /** Booked so far for threads that died. */
  #lostCount = 0;
  #spoolReady: boolean;
  #stopping: Promise<void> | null = null;
  #starting: Promise<void> | null = null;
  /** Its thread has said its last word. */
  #drained = false;
  /** Ends the pause before a restart. */
  readonly #stop = new AbortController();
  /** Posted lately: what the gauge may not show yet. */
  readonly #posted: { bytes: number; atMs: number }[] = [];
  /** Oversize records that came while there was no thread; their bytes. */
  readonly #waiting: ArrayBuffer[] = [];
  #waitingBytes = 0;
  /** Oversize records posted so far, but for those that died with a thread before it had read them. */
  #postedCount = 0;
  readonly #hand = createHand();
  /** Threads that died with it in their hands, by kind and name. */
  readonly #deathCounts = new Map<string, number>();
  #poison: Poison = NO_POISON;

  constructor(shard: number, settings: ShippersSettings, links: ShippersLinks) {
    this.#shard = shard;
    this.#settings = settings;
    this.#links = links;
    this.#spoolReady = settings.spoolReady;
  }

  get oversizeBytes(): number {
    const nowMs = this.#links.clock.nowMs();
    while (this.#posted[0] !== undefined && nowMs - this.#posted[0].atMs > GAUGE_LAG_MS) this.#posted.shift();
    const postedBytes = this.#posted.reduce((sum, { bytes }) => sum + bytes, 0);
    return this.#waitingBytes + postedBytes + this.gauges.get('oversizeBytes');
  }

  /** Rejects when the first thread cannot get ready. */
  start(): Promise<void> {
    this.#starting ??= this.#spawn().then((failure) => {
      if (failure !== null) throw new Error(`shipper of shard ${this.#shard}: ${failure}`);
    });
    return this.#starting;
  }

  forwardOversize(record: ArrayBuffer): void {
    if (!this.#alive) {
      this.#waiting.push(record);
      this.#waitingBytes += record.byteLength;
      return;
    }
    this.#posted.push({ bytes: record.byteLength, atMs: this.#links.clock.nowMs() });
    this.#postedCount++;
    this.#worker?.postMessage({ kind: 'oversize', record } satisfies ToShipper, [record]);
  }

  #forwardWaiting(): void {
    this.#waitingBytes = 0;
    for (const record of this.#waiting.splice(0)) this.forwardOversize(record);
  }

  reasons(): string[] {
    if (this.#stopping !== null) return [];
    const spool = SPOOL_REASONS[this.gauges.get('spoolState')];
    return [
      ...(this.#alive ? [] : [`the shipper of shard ${this.#shard} is being replaced`]),
      ...(spool === undefined ? [] : [`${spool} (shard ${this.#shard})`]),
    ];
  }

  spoolReady(): void {
    this.#spoolReady = true;
    this.#worker?.postMessage({ kind: 'spool-ready' } satisfies ToShipper);
  }

  stop(deadlineMs: number): Promise<void> {
    this.#stopping ??= this.#drain(deadlineMs);
    return this.#stopping;
  }

  endNow(): void {
    if (this.#alive) this.#worker?.postMessage({ kind: 'drain', deadlineMs: 0 } satisfies ToShipper);
  }

  /** Resolves with null when the thread is ready, or with why it ended before that. */
  #spawn(): Promise<string | null> {
    const { rings, counters, firstRow, ship, heapBytes } = this.#settings;
    const workerData: ShipWorkerData = {
      shard: this.#shard,
      rings,
      counters: counters.shared,
      counterRow: firstRow + this.#shard,
      gauges: this.gauges.shared,
      spoolReady: this.#spoolReady,
      settings: ship,
      hand: this.#hand,
      poison: this.#poison,
    };
    const worker = new Worker(new URL('../workers/ship.ts', import.meta.url), {
      workerData,
      name: `ship-${this.#shard}`,
      resourceLimits: { maxOldGenerationSizeMb: heapBytes / MiB },
    });
    this.#worker = worker;
    let failure: string | null = null;
    worker.on('error', (error) => {
      failure = error instanceof Error ? (error.stack ?? error.message) : String(error);
    });
    return new Promise((resolve) => {
      let ready = false;
      worker.on('message', (message: FromShipper) => {
        switch (message.kind) {
          case 'ready':
            ready = true;
            this.#alive = true;
            this.#startedMs = this.#links.clock.nowMs();
            setShardState(rings, this.#shard, ShardState.Open);
            this.#forwardWaiting();
            resolve(null);
            return;
          case 'drained': {
            const { unreachable, refused, unfinished } = message.undelivered;
            this.undeliveredCount = unreachable + refused + unfinished;
            this.#drained = true;
            return;
          }
          case 'settled':
            this.#links.onSettled?.(this.#shard, message.pairs);
            return;
          case 'log':
            this.#links.log[message.level](message.fields, message.message);
            return;
        }
      });
      worker.on('exit', (code) => {
        this.#alive = false;
        const reason = failure ?? `ended with code ${code}`;
        if (ready) this.#died(reason);
        else resolve(reason);
      });
    });
  }

  #died(reason: string): void {
    if (this.#drained) return;
    const { counters, log, clock } = this.#links;
    counters.add('ship_workers_lost');
    const suspect = inHand(this.#hand);
    new Uint32Array(this.#hand).fill(0);
    if (suspect !== null) this.#accuse(suspect);
    const lostCount = this.#countLost(suspect?.source ?? 0);
    if (this.#stopping !== null) {
      log.error({ shard: this.#shard, reason, lostCount }, 'shipper thread lost while it was stopping');
      return;
    }
    // Producers must not wait for a reader that is not there.
    setShardState(this.#settings.rings, this.#shard, ShardState.Dead);
    if (clock.nowMs() - this.#startedMs > STABLE_MS) this.#restartMs = FIRST_RESTART_MS;
    const restartInMs = this.#restartMs;
    log.error({ shard: this.#shard, reason, lostCount, restartInMs, inHand: suspect?.name }, 'shipper thread lost');
    void this.#replace();
  }

  #accuse({ kind, name }: InHand): void {
    const suspect = `${kind} ${name}`;
    const deathCount = (this.#deathCounts.get(suspect) ?? 0) + 1;
    this.#deathCounts.delete(suspect);
    this.#deathCounts.set(suspect, deathCount);
    for (const oldest of this.#deathCounts.keys()) {
      if (this.#deathCounts.size <= MAX_SUSPECTS) break;
      this.#deathCounts.delete(oldest);
    }
    const deadly = [...this.#deathCounts].filter(([, count]) => count >= MAX_DEATHS).map(([what]) => what);
    const namesOf = (prefix: string): string[] =>
      deadly.filter((what) => what.startsWith(prefix)).map((what) => what.slice(prefix.length));
    this.#poison = { records: namesOf('record '), batches: namesOf('batch '), oneRunEach: kind === 'batch' };
  }

  /**
   * Books what the dead thread had read and neither delivered nor dropped, and the oversize records that it had not come
   * to: they were given away, and count as read, for nobody will. Uploads in flight at its death may have
   * arrived all the same: they count as lost because nobody heard. What is in the spool is not lost.
   */
  #countLost(suspectSource: number): number {
    const { counters: table, firstRow } = this.#settings;
    const row = firstRow + this.#shard;
    const settled = (['runs_delivered', ...DROP_COUNTER_NAMES] as const).reduce(
      (sum, name) => sum + table.value(row, name),
      this.#lostCount + this.gauges.get('spooledRuns'),
    );
    const taken = table.value(row, 'records_read') + table.value(row, 'runs_inherited');
    const heldCount = Math.max(0, taken - settled);
    this.#lostCount += heldCount;
    const oversizeReadCount = table.value(row, 'oversize_records_read');
    const unreadCount = this.#postedCount - oversizeReadCount;
    this.#postedCount = oversizeReadCount;
    this.#links.counters.add('records_read', unreadCount);
    const lostCount = heldCount + unreadCount;
    const isFedAgain = this.#stopping === null && this.#links.onLost?.(this.#shard, lostCount, suspectSource) === true;
    if (!isFedAgain) this.#links.counters.add('dropped_worker-lost', lostCount);
    return lostCount;
  }

  /** Tries until a thread is ready or it is time to stop. Never rejects. */
  async #replace(): Promise<void> {
    const { log, clock } = this.#links;
    while (!this.#stop.signal.aborted) {
      await clock.sleep(this.#restartMs, this.#stop.signal);
      this.#restartMs = Math.min(2 * this.#restartMs, MAX_RESTART_MS);
      if (this.#stop.signal.aborted) return;
      const failure = await this.#spawn();
      if (failure === null) {
        log.info({ shard: this.#shard }, 'shipper thread replaced');
        return;
      }
      log.error({ shard: this.#shard, reason: failure }, 'shipper thread could not be replaced');
    }
  }

  async #drain(deadlineMs: number): Promise<void> {
    this.#stop.abort();
    const worker = this.#worker;
    if (worker === null || !this.#alive) return;
    // Not `once`, which rejects when the thread dies of an error: that too is an end, and the log has its reason.
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    setShardState(this.#settings.rings, this.#shard, ShardState.Draining);
    worker.postMessage({ kind: 'drain', deadlineMs } satisfies ToShipper);
    const cut = setTimeout(() => {
      this.#links.log.error({ shard: this.#shard }, 'shipper thread did not end in time');
      void worker.terminate();
    }, deadlineMs + GRACE_MS);
    await exited;
    clearTimeout(cut);
  }
}
