/**
 * The shelf on disk: what is put on it is written to segments and read again when its turn comes, oldest first by API key,
 * also by the next process. Owned by one shipper thread, with a folder of its own; the file system is asked in the
 * background.
 *
 * A batch stays in memory until it is written, so a disk that fails or is full makes this a shelf in memory, which tries
 * the disk again at growing intervals. Its record stays on disk until it is settled, whatever happens to the thread:
 * then its state byte says so, and a segment without a record that is needed is deleted.
 *
 * What it promises when the power is cut: a batch that was written longer ago than `syncIntervalMs`, and the time that the
 * medium takes, is there again. Of what came later any part may be missing, which its checksums tell. Whoever keeps the
 * requests of a batch hears that they are settled, and what a batch was split from goes, only after that.
 *
 * Full: beyond `maxBytes` the oldest segment goes, and with it what waits in it, counted. Old: what waits longer than
 * `maxAgeMs` goes as well. Stop: {@link Spool.close} writes what can be written and gives back the rest.
 */
import type { CounterName, Counters } from '../../core/counters.ts';
import { nodeBackgroundDisk, type BackgroundDisk } from '../../core/disk.ts';
import type { Clock } from '../../core/lifecycle.ts';
import type { Log } from '../../core/log.ts';
import type { Tenant } from '../../core/run.ts';
import { MiB, SECOND_MS } from '../../core/units.ts';
import type { Gauges } from '../gauges.ts';
import { createParcel, leaveOrigin } from '../parcel.ts';
import type { Kept, Parcel } from '../parcel.ts';
import type { Settlements } from '../settlements.ts';
import type { Shelf } from '../shelf.ts';
import { SegmentFile } from './file.ts';
import { filesOf, readSegment, takeSegment, takeSegments } from './folder.ts';
import { SegmentLog } from './log.ts';
import type { Segment, Written } from './log.ts';
import { decodeRecord, encodeRecord, isLive, metaOf, RecordState } from './record.ts';
import type { RecordMeta } from './record.ts';
import type { FoundRecord } from './segment.ts';
import { SlotQueue } from './slots.ts';
import type { Slot } from './slots.ts';

export interface SpoolSettings {
  /** Of this shard alone. */
  readonly folder: string;
  /** Where others may put segments that this shard takes over; null where that is another shard's duty. */
  readonly inbox: string | null;
  /** Part of the segments' names. */
  readonly label: string;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
  readonly segmentBytes: number;
  readonly syncIntervalMs: number;
}

export interface SpoolParts {
  readonly settlements: Settlements;
  readonly counters: Counters;
  readonly gauges: Gauges;
  readonly clock: Clock;
  readonly log: Log;
  readonly disk?: BackgroundDisk;
}

export const SpoolState = { Well: 0, Full: 1, DiskFull: 2, Unwritable: 3 } as const;

/** Read ahead of their turn: a few a key, and so many bytes together. */
const AHEAD_COUNT = 4;
const AHEAD_BYTES = 8 * MiB;
/** Between two tries of a disk that fails; doubles. */
const FIRST_RETRY_MS = SECOND_MS;
const MAX_RETRY_MS = 30 * SECOND_MS;
const TICK_MS = 2 * SECOND_MS;
const SAY_INTERVAL_MS = 10 * SECOND_MS;
/** Of a record, by a disk that says that it has it: then it is taken for damaged. */
const MAX_UNREAD_COUNT = 3;
/** "Full" ends when so much of the limit is free again. */
const FREE_RATIO = 0.1;

export class Spool implements Shelf {
  onChange: () => void = () => undefined;
  totalCount = 0;
  runCount = 0;
  memoryBytes = 0;
  readonly #settings: SpoolSettings;
  readonly #parts: SpoolParts;
  readonly #disk: BackgroundDisk;
  readonly #log: SegmentLog;
  readonly #queues = new Map<string, SlotQueue>();
  /** Oldest first. */
  readonly #files = new Map<Segment, SegmentFile>();
  /** Could not be looked through yet. */
  #unread: Segment[] = [];
  #readAtMs = Number.NEGATIVE_INFINITY;
  /** On their way to disk. */
  #writingBytes = 0;
  #aheadBytes = 0;
  /** Of what comes now. */
  #nextSeq = 0;
  /** Of what was found: before all that comes now. */
  #foundSeq = Number.MIN_SAFE_INTEGER;
  /** Out of their queues, neither settled nor come back. */
  readonly #taken = new Set<Slot>();
  /** The folder has been read: until then nothing is written, so that all that is found there is from before. */
  #opened = false;
  #diskRuns = 0;
  #diskBatches = 0;
  #diskBytes = 0;
  #full = false;
  /** Why the disk does not take anything now. */
  #failure: string | null = null;
  #retryMs = FIRST_RETRY_MS;
  #retryAtMs = Number.NEGATIVE_INFINITY;
  /** By what was dropped: not said yet, and when it was said last. */
  readonly #unsaid = new Map<CounterName, { runCount: number; oldestMs: number; saidMs: number }>();
  readonly #stop = new AbortController();
  #ticking: Promise<void> = Promise.resolve();

  constructor(settings: SpoolSettings, parts: SpoolParts) {
    this.#settings = settings;
    this.#parts = parts;
    this.#disk = parts.disk ?? nodeBackgroundDisk;
    this.#log = new SegmentLog(settings, parts.clock, this.#disk);
    this.#log.onTrouble = (error) => this.#failed(error);
  }

  /**
   * Takes up what lies in the folder. Until then, and as long as the folder cannot be used, this is a shelf in memory. Never
   * rejects.
   */
  async open(): Promise<void> {
    await this.#openFolder().catch((error: unknown) => this.#failed(error));
    this.#ticking = this.#tick();
  }

  async #openFolder(): Promise<void> {
    // What this process knows to be there already, when a thread before this one died.
    const knownRuns = this.#parts.gauges.get('spooledRuns');
    await this.#disk.makeFolder(this.#settings.folder);
    const segments = await takeSegments(this.#disk, this.#settings.folder);
    await this.#takeUp(segments, () => this.#foundSeq++, knownRuns);
    this.#opened = true;
    this.#writeAll();
  }

  get isDurable(): boolean {
    return this.#opened && this.#failure === null;
  }

  offer(parcel: Parcel): void {
    const slot = (parcel.slot as Slot | null) ?? this.#newSlot(parcel);
    this.#taken.delete(slot);
    slot.attemptCount = parcel.attemptCount;
    slot.repeated = parcel.repeated;
    if (slot.place !== null) {
      // It was read from there, and can be again; so can those that were read ahead.
      slot.phase = 'disk';
      this.#insert(slot);
      this.#forgetAhead(slot.queue);
      return;
    }
    slot.phase = 'memory';
    this.#keepInMemory(slot, parcel);
    this.#insert(slot);
    this.#write(slot);
  }

  take(tenant: Tenant): Parcel | undefined {
    const queue = this.#queues.get(tenant.apiKey);
    if (queue === undefined) return undefined;
    this.#expire(queue);
    const slot = queue.at(0);
    if (slot === undefined) return undefined;
    const { parcel } = slot;
    if (parcel === null || slot.phase !== 'memory') {
      this.#readAhead(queue);
      return undefined;
    }
    this.#remove(slot);
    this.#forget(slot);
    this.#taken.add(slot);
    parcel.slot = slot;
    if (slot.place !== null) this.#parts.counters.add('runs_replayed', slot.runCount);
    this.#readAhead(queue);
    return parcel;
  }

  settle(kept: Kept): void {
    const slot = kept.slot as Slot | null;
    kept.slot = null;
    if (slot === null) return;
    this.#taken.delete(slot);
    this.#release(slot);
    this.#vacate(slot);
  }

  count({ apiKey }: Tenant): number {
    return this.#queues.get(apiKey)?.count ?? 0;
  }

  tenantBytes({ apiKey }: Tenant): number {
    return this.#queues.get(apiKey)?.memoryBytes ?? 0;
  }

  *tenants(): Generator<Tenant> {
    for (const queue of this.#queues.values()) if (queue.count > 0) yield queue.tenant;
  }

  async close(): Promise<Parcel[]> {
    this.#stop.abort();
    await this.#ticking;
    this.#sayDrops(0);
    this.#retryAtMs = Number.NEGATIVE_INFINITY;
    this.#opened = true;
    this.#writeAll();
    await this.#log.close();
    const closing = [...this.#files.values()].map((file) => file.close());
    await Promise.all(closing.map((closed) => closed.catch((error: unknown) => this.#failed(error))));
    this.#report();
    const left: Parcel[] = [];
    for (const queue of [...this.#queues.values()]) {
      for (const slot of queue.extract(({ place }) => place === null)) {
        this.#removed(slot);
        if (slot.parcel !== null) left.push(slot.parcel);
        this.#forget(slot);
      }
    }
    return left;
  }

  // --- writing

  #write(slot: Slot): void {
    const { parcel } = slot;
    if (parcel === null || slot.phase !== 'memory' || slot.place !== null) return;
    if (!this.#opened || !this.#isDue(this.#retryAtMs)) return;
    const { batch } = parcel;
    const pieces = encodeRecord(batch, metaFor(slot, parcel));
    const lengthBytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
    if (lengthBytes > this.#settings.maxBytes) return; // it will not fit: it stays in memory
    slot.phase = 'writing';
    this.#writingBytes += lengthBytes;
    this.#makeRoom();
    this.#log.append(pieces).then(
      (written) => {
        this.#writingBytes -= lengthBytes;
        this.#written(slot, parcel, written);
      },
      (error: unknown) => {
        this.#writingBytes -= lengthBytes;
        slot.phase = 'memory';
        this.#failed(error);
        this.onChange();
      },
    );
  }

  #written(slot: Slot, parcel: Parcel, { segment, offset, lengthBytes, synced }: Written): void {
    const file = this.#files.get(segment) ?? new SegmentFile(segment, this.#disk);
    this.#files.set(segment, file);
    this.#place(slot, file, offset, lengthBytes);
    slot.phase = 'disk';
    this.#forget(slot);
    this.#parts.counters.add('runs_spooled', slot.runCount);
    slot.sources = parcel.batch.runSources;
    const part: Kept = { slot: null, origin: parcel.origin };
    parcel.origin = null;
    void synced.then((failure) => {
      // It may be there after all, and is sent from there; but what it is made of stays where it is until it is delivered.
      if (failure !== null) return this.#failed(failure);
      this.#release(slot);
      leaveOrigin(part, (origin) => this.settle(origin));
    });
    this.#recovered();
    this.#report();
    this.onChange();
  }

  /** Nobody has to keep its requests any more. */
  #release(slot: Slot): void {
    this.#parts.settlements.settle(slot.sources);
    slot.sources = null;
  }

  #recovered(): void {
    if (this.#failure !== null) this.#parts.log.info({}, 'the spool can be written again');
    this.#failure = null;
    this.#retryMs = FIRST_RETRY_MS;
  }

  #failed(error: unknown): void {
    const { clock, counters, log } = this.#parts;
    const { code, message } = error as NodeJS.ErrnoException;
    counters.add('spool_failures');
    const nowMs = clock.nowMs();
    if (this.#isDue(this.#retryAtMs)) {
      this.#retryAtMs = nowMs + this.#retryMs;
      this.#retryMs = Math.min(2 * this.#retryMs, MAX_RETRY_MS);
    }
    const failure = code ?? message;
    if (this.#failure !== failure) {
      log.error(
        { code: failure, folder: this.#settings.folder },
        'the spool cannot be written: batches wait in memory',
      );
    }
    this.#failure = failure;
    this.#report();
  }

  /** A time that is further away than any pause was set before the clock was put back. */
  #isDue(atMs: number): boolean {
    const leftMs = atMs - this.#parts.clock.nowMs();
    return leftMs <= 0 || leftMs > MAX_RETRY_MS;
  }

  /** What could not be written before. */
  #writeAll(): void {
    const waiting: Slot[] = [];
    for (const queue of this.#queues.values()) {
      for (const slot of queue) if (slot.phase === 'memory' && slot.place === null) waiting.push(slot);
    }
    waiting.sort((a, b) => a.seq - b.seq);
    for (const slot of waiting) this.#write(slot);
  }

  /** Within the limit with all that is being written; the segment that is open is never the one to go. */
  #makeRoom(): void {
    while (this.#diskBytes + this.#writingBytes > this.#settings.maxBytes) {
      let oldest: SegmentFile | null = null;
      for (const file of this.#files.values()) {
        if (file.segment.sealed && (oldest === null || file.segment.name < oldest.segment.name)) oldest = file;
      }
      if (oldest === null) return;
      this.#full = true;
      this.#dropFile(oldest);
    }
  }

  // --- reading

  /** Fetches what is next of the key. */
  #readAhead(queue: SlotQueue): void {
    if (!this.#isDue(this.#readAtMs)) return;
    for (let i = 0; i < AHEAD_COUNT; i++) {
      const slot = queue.at(i);
      if (slot === undefined) return;
      if (slot.phase !== 'disk' || slot.place === null) continue;
      if (this.#aheadBytes + slot.place.lengthBytes > AHEAD_BYTES && i > 0) return;
      void this.#load(slot);
    }
  }

  #forgetAhead(queue: SlotQueue): void {
    for (let i = 0; i <= AHEAD_COUNT; i++) {
      const slot = queue.at(i);
      if (slot?.phase !== 'memory' || slot.place === null) continue;
      this.#forget(slot);
      slot.phase = 'disk';
    }
  }

  /** Never rejects. */
  async #load(slot: Slot): Promise<void> {
    const { place } = slot;
    if (place === null) return;
    slot.phase = 'loading';
    this.#aheadBytes += place.lengthBytes;
    const bytes = await place.file.read(place.offset, place.lengthBytes).catch((error: unknown) => error as Error);
    this.#aheadBytes -= place.lengthBytes;
    if (slot.place === null) return; // dropped meanwhile
    if (bytes instanceof Error && this.#mayReadLater(slot, bytes)) {
      slot.phase = 'disk';
      return;
    }
    const stored = bytes instanceof Error ? null : decodeRecord(bytes);
    if (stored === null || !isLive(stored.state)) {
      this.#remove(slot);
      this.#drop(slot, stored === null ? 'dropped_spool-damaged' : 'dropped_spool-purged');
      this.onChange();
      return;
    }
    const { batch, meta, state } = stored;
    const parcel = createParcel({ ...batch, tenant: slot.queue.tenant });
    const wasAttempted = state === RecordState.Attempted;
    parcel.attemptCount = Math.max(slot.attemptCount, meta.attempts + (wasAttempted ? 1 : 0));
    parcel.repeated = slot.repeated || meta.repeated || (wasAttempted && slot.attemptCount === 0);
    parcel.onShelf = true;
    // Before it is given out: whoever finds the record after a crash must know that the backend may have it.
    if (!wasAttempted)
      await place.file.mark(place.offset, RecordState.Attempted).catch((error: unknown) => this.#failed(error));
    if ((slot.place as unknown) === null) return;
    slot.phase = 'memory';
    this.#keepInMemory(slot, parcel);
    this.onChange();
  }

  /** The disk did not give a record: no descriptor is free, or no memory, or it fails. False: it never will. */
  #mayReadLater(slot: Slot, error: NodeJS.ErrnoException): boolean {
    const { clock, counters, log } = this.#parts;
    counters.add('spool_failures');
    const isBad = error.code === 'ENOENT' || (error.code === 'EIO' && ++slot.unreadCount >= MAX_UNREAD_COUNT);
    if (isBad) return false;
    log.error({ code: error.code ?? error.message }, 'the spool cannot be read: it is tried again');
    this.#readAtMs = clock.nowMs() + FIRST_RETRY_MS;
    return true;
  }

  /** What is still needed of these segments. `knownRuns` of it are accounted for already. */
  async #takeUp(segments: readonly Segment[], nextSeq: () => number, knownRuns: number): Promise<void> {
    const { counters, log } = this.#parts;
    const { folder } = this.#settings;
    let runCount = 0;
    let batchCount = 0;
    let damagedCount = 0;
    for (const segment of segments) {
      if (this.#stop.signal.aborted) break;
      const found = await this.#lookThrough(segment);
      if (found === null) continue;
      damagedCount += found.damagedCount;
      const file = new SegmentFile(segment, this.#disk);
      this.#files.set(segment, file);
      for (const record of found.records) {
        const slot = this.#foundSlot(record.meta, nextSeq());
        this.#place(slot, file, record.offset, record.lengthBytes);
        this.#insert(slot);
        runCount += slot.runCount;
        batchCount++;
      }
      if (file.liveCount === 0) this.#removeFile(file);
      this.onChange();
    }
    counters.add('runs_inherited', Math.max(0, runCount - knownRuns));
    counters.add('spool_records_damaged', damagedCount);
    if (damagedCount > 0)
      log.warn({ records: damagedCount, folder }, 'torn or damaged records in the spool are left out');
    if (batchCount > 0) log.info({ runs: runCount, batches: batchCount }, 'batches in the spool are going to be sent');
    this.#makeRoom();
    this.#report();
  }

  /**
   * All that is still needed of it, before any of it is used: a segment goes when what is known of it is delivered. Null
   * when it is left alone, now or for good.
   */
  async #lookThrough(segment: Segment): Promise<{ records: FoundRecord[]; damagedCount: number } | null> {
    const { counters, log } = this.#parts;
    const records: FoundRecord[] = [];
    let damagedCount = 0;
    try {
      for await (const record of readSegment(segment.path, this.#disk)) {
        if (record.meta !== null) {
          if (isLive(record.state)) records.push(record);
        } else if (record.isForeign) {
          counters.add('spool_segments_foreign');
          log.error({ file: segment.path }, 'a segment of the spool is of another version: it is left as it is');
          return null;
        } else {
          damagedCount++;
        }
      }
    } catch (error) {
      counters.add('spool_failures');
      const { code, message } = error as NodeJS.ErrnoException;
      log.error(
        { code: code ?? message, file: segment.path },
        'a segment of the spool cannot be read: it is tried again',
      );
      this.#unread.push(segment);
      return null;
    }
    return { records, damagedCount };
  }

  // --- slots

  #newSlot(parcel: Parcel): Slot {
    return {
      seq: this.#nextSeq++,
      queue: this.#queueOf(parcel.batch.tenant),
      runCount: parcel.batch.runCount,
      createdMs: this.#parts.clock.nowMs(),
      phase: 'memory',
      parcel: null,
      place: null,
      attemptCount: 0,
      repeated: false,
      sources: null,
      unreadCount: 0,
    };
  }

  #foundSlot(meta: RecordMeta, seq: number): Slot {
    return {
      seq,
      queue: this.#queueOf({ number: 0, apiKey: meta.key }),
      runCount: meta.runs,
      createdMs: meta.createdMs,
      phase: 'disk',
      parcel: null,
      place: null,
      attemptCount: 0,
      repeated: false,
      sources: null,
      unreadCount: 0,
    };
  }

  #queueOf(tenant: Tenant): SlotQueue {
    const known = this.#queues.get(tenant.apiKey);
    if (known !== undefined) return known;
    const queue = new SlotQueue(tenant);
    this.#queues.set(tenant.apiKey, queue);
    return queue;
  }

  #insert(slot: Slot): void {
    this.#queues.set(slot.queue.tenant.apiKey, slot.queue);
    slot.queue.insert(slot);
    this.totalCount++;
    this.runCount += slot.runCount;
  }

  /** It is the first of its queue, or nearly. */
  #remove(slot: Slot): void {
    const { queue } = slot;
    if (queue.at(0) === slot) queue.shift();
    else queue.extract((other) => other === slot);
    this.#removed(slot);
  }

  #removed(slot: Slot): void {
    this.totalCount--;
    this.runCount -= slot.runCount;
    const { queue } = slot;
    if (queue.count === 0 && this.#queues.get(queue.tenant.apiKey) === queue) {
      this.#queues.delete(queue.tenant.apiKey);
    }
  }

  #keepInMemory(slot: Slot, parcel: Parcel): void {
    slot.parcel = parcel;
    slot.queue.memoryBytes += parcel.batch.body.length;
    this.memoryBytes += parcel.batch.body.length;
  }

  #forget(slot: Slot): void {
    if (slot.parcel === null) return;
    slot.queue.memoryBytes -= slot.parcel.batch.body.length;
    this.memoryBytes -= slot.parcel.batch.body.length;
    slot.parcel = null;
  }

  #place(slot: Slot, file: SegmentFile, offset: number, lengthBytes: number): void {
    slot.place = { file, offset, lengthBytes };
    const before = file.countedBytes;
    file.add(lengthBytes);
    this.#diskBytes += file.countedBytes - before;
    this.#diskRuns += slot.runCount;
    this.#diskBatches++;
  }

  /** Its record is not needed any more. */
  #vacate(slot: Slot): void {
    const { place } = slot;
    if (place === null) return;
    slot.place = null;
    this.#diskRuns -= slot.runCount;
    this.#diskBatches--;
    const { file } = place;
    if (--file.liveCount === 0 && file.segment.sealed) {
      this.#removeFile(file);
    } else {
      file.mark(place.offset, RecordState.Done).catch((error: unknown) => this.#failed(error));
      if (file.liveCount === 0 && this.#log.waitingCount === 0) {
        void this.#log.seal().then(() => {
          if (file.liveCount === 0 && file.segment.sealed) this.#removeFile(file);
        });
      }
    }
    this.#report();
  }

  #removeFile(file: SegmentFile): void {
    if (!this.#files.delete(file.segment)) return;
    this.#diskBytes -= file.countedBytes;
    file.remove().catch((error: unknown) => this.#failed(error));
    if (this.#diskBytes <= this.#settings.maxBytes * (1 - FREE_RATIO)) this.#full = false;
  }

  // --- what goes

  #dropFile(file: SegmentFile): void {
    for (const queue of [...this.#queues.values()]) {
      for (const slot of queue.extract((other) => other.place?.file === file)) {
        this.#removed(slot);
        this.#forget(slot);
        this.#drop(slot, 'dropped_spool-full');
      }
    }
    // What is under way from it goes on without it.
    for (const slot of this.#taken) if (slot.place?.file === file) this.#vacate(slot);
    this.#removeFile(file);
  }

  /** It is in no queue any more. */
  #drop(slot: Slot, counter: CounterName): void {
    // What was damaged may still be had from where its requests are kept.
    if (counter !== 'dropped_spool-damaged') this.#release(slot);
    this.#vacate(slot);
    this.#parts.counters.add(counter, slot.runCount);
    const unsaid = this.#unsaid.get(counter) ?? { runCount: 0, oldestMs: 0, saidMs: Number.NEGATIVE_INFINITY };
    this.#unsaid.set(counter, unsaid);
    if (unsaid.runCount === 0) unsaid.oldestMs = slot.createdMs;
    unsaid.runCount += slot.runCount;
    this.#sayDrops(SAY_INTERVAL_MS);
  }

  /** What was dropped and not said yet, but no reason again within `intervalMs`. */
  #sayDrops(intervalMs: number): void {
    const { clock, log } = this.#parts;
    const nowMs = clock.nowMs();
    for (const [counter, unsaid] of this.#unsaid) {
      if (unsaid.runCount === 0 || Math.abs(nowMs - unsaid.saidMs) < intervalMs) continue;
      const { runCount: runs, oldestMs } = unsaid;
      const reason = counter.slice('dropped_'.length);
      log.warn({ runs, reason, oldest: new Date(oldestMs) }, 'batches in the spool are dropped, oldest first');
      unsaid.saidMs = nowMs;
      unsaid.runCount = 0;
    }
  }

  #expire(queue: SlotQueue): void {
    const oldestMs = this.#parts.clock.nowMs() - this.#settings.maxAgeMs;
    for (let slot = queue.at(0); slot !== undefined && slot.createdMs < oldestMs; slot = queue.at(0)) {
      if (slot.phase === 'writing' || slot.phase === 'loading') return;
      this.#remove(slot);
      if (slot.parcel !== null) this.#parts.settlements.settle(slot.parcel.batch.runSources);
      this.#forget(slot);
      this.#drop(slot, 'dropped_spool-expired');
    }
  }

  /** Never rejects. */
  async #tick(): Promise<void> {
    const { clock } = this.#parts;
    const { signal } = this.#stop;
    for (;;) {
      await clock.sleep(TICK_MS, signal);
      if (signal.aborted) return;
      for (const queue of [...this.#queues.values()]) this.#expire(queue);
      this.#sayDrops(SAY_INTERVAL_MS);
      await this.#lookAfterFolder().catch((error: unknown) => this.#failed(error));
      this.#report();
      this.#reportOldest();
      this.onChange();
    }
  }

  async #lookAfterFolder(): Promise<void> {
    const { inbox, folder } = this.#settings;
    if (!this.#opened) {
      if (!this.#isDue(this.#retryAtMs)) return;
      await this.#openFolder();
    }
    if (this.#failure !== null && this.#isDue(this.#retryAtMs)) {
      await this.#disk.makeFolder(folder);
      await this.#disk.checkWritable(folder);
      this.#writeAll();
      if (this.#writingBytes === 0) this.#recovered(); // nothing waits: the next write will tell
    }
    if (this.#unread.length > 0) await this.#takeUp(this.#unread.splice(0), () => this.#foundSeq++, 0);
    if (inbox === null) return;
    for (const file of await filesOf(inbox, this.#disk)) {
      const segment = await takeSegment(this.#disk, inbox, file, folder);
      if (segment === null) continue;
      // Its name has left one folder, and is to be found in the other after a power cut.
      await this.#disk.flushFolder(folder);
      await this.#takeUp([segment], () => this.#nextSeq++, 0);
    }
  }

  #reportOldest(): void {
    let oldestMs = 0;
    for (const queue of this.#queues.values()) {
      const createdMs = queue.at(0)?.createdMs ?? 0;
      if (createdMs > 0 && (oldestMs === 0 || createdMs < oldestMs)) oldestMs = createdMs;
    }
    this.#parts.gauges.set('spoolOldestMs', oldestMs);
  }

  #report(): void {
    const { gauges } = this.#parts;
    const troubled =
      this.#failure === 'ENOSPC' || this.#failure === 'EDQUOT' ? SpoolState.DiskFull : SpoolState.Unwritable;
    gauges.set('spooledRuns', this.#diskRuns);
    gauges.set('spooledBatches', this.#diskBatches);
    gauges.set('spoolBytes', this.#diskBytes);
    gauges.set('spoolState', this.#failure !== null ? troubled : this.#full ? SpoolState.Full : SpoolState.Well);
  }
}

function metaFor(slot: Slot, { batch, attemptCount, repeated, truncated }: Parcel): RecordMeta {
  return metaOf(batch, { createdMs: slot.createdMs, attempts: attemptCount, repeated, truncated });
}
