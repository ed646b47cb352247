/**
 * Sealed batches in, delivered uploads out: tries each batch until there is a verdict.
 *
 * Owned by one shipper thread. A lane a tenant (lane.ts), served in turn, so that no tenant takes all places: one tenant
 * at most three quarters of them, tenants whose last attempt failed one each and half of them together. At most
 * `uploadConcurrency` uploads and `uploadMaxBytes` are in flight.
 *
 * Network errors, 408, 425, 429, 499 and 5xx are tried `maxRetries` times more; a batch that has used them up goes to the
 * shelf and is tried again slowly. 401, 403, 404 and redirects shelve the tenant. 413 splits by size, and cuts a single
 * run short once; 400, 422 and a first 409 split down to the single run.
 *
 * Full: {@link Outbox.full}. Nothing is refused here; the shipper stops reading the rings until {@link Outbox.room}. The
 * rings are everybody's, so tenants whose trouble is their own (key refused, quota used up) may fill half of what is
 * held and no more: beyond it their oldest batches are dropped, and counted.
 * Stop: {@link Outbox.drain}.
 */
import type { Counters } from '../core/counters.ts';
import type { Clock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import { Fault } from '../core/outcome.ts';
import type { DropCode, Verdict } from '../core/outcome.ts';
import type { Tenant } from '../core/run.ts';
import { SECOND_MS } from '../core/units.ts';
import { Alarm } from './alarm.ts';
import { batchName, halve, plainBody } from './batch.ts';
import type { Batch } from './batch.ts';
import type { Answer, Backend } from './client.ts';
import type { Codec } from './compress.ts';
import type { DeadLetters } from './deadletter.ts';
import { nameOfBatch, type Hand, type Poison } from './hand.ts';
import type { InfoReader } from './info.ts';
import { keyName } from './keyname.ts';
import { Lane } from './lane.ts';
import type { UploadLimits } from './limits.ts';
import { createParcel, leaveOrigin, partsOf } from './parcel.ts';
import type { Kept, Parcel } from './parcel.ts';
import type { Settlements } from './settlements.ts';
import type { Shelf } from './shelf.ts';
import { truncateRun } from './truncate.ts';
import { answerCounter, isTenantsOwn, judge, mayHaveArrived, refusesCoding } from './verdict.ts';

export interface OutboxSettings {
  readonly maxRetries: number;
  readonly retryBackoffMs: number;
  readonly uploadConcurrency: number;
  readonly uploadMaxBytes: number;
  readonly heldBytes: number;
  readonly tenantCount: number;
}

export interface OutboxParts {
  readonly backend: Backend;
  readonly codec: Codec;
  readonly limits: UploadLimits;
  readonly info: InfoReader;
  readonly shelf: Shelf;
  readonly deadLetters: DeadLetters;
  readonly counters: Counters;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: () => number;
  /** Told which requests' records are settled. */
  readonly settlements: Settlements;
  /** Holds what is split, cut short or encoded anew meanwhile. */
  readonly hand?: Hand;
  /** Its batches are set aside instead. */
  readonly poison?: Poison;
  /** Hears of everything that changes {@link Outbox.stats}. */
  readonly onChange?: () => void;
}

/** Runs that were not delivered when the deadline struck, by what kept them. */
export type Undelivered = Readonly<Record<'unreachable' | 'refused' | 'unfinished', number>>;

/** Of what is held, in memory as new batches; beyond it they go to the disk at once. */
const SPILL_RATIO = 0.5;
const ADOPT_INTERVAL_MS = SECOND_MS;
/** Of what is held, for tenants whose trouble is their own. */
const OWN_TROUBLE_RATIO = 0.5;
const REFUSED_MESSAGE = 'the backend refuses this key or address: its batches wait until that is mended';
const POISON_REASON = 'uploading threads died of this batch';

export class Outbox {
  readonly #settings: OutboxSettings;
  readonly #parts: OutboxParts;
  readonly #alarm: Alarm;
  /** By API key. */
  readonly #lanes = new Map<string, Lane>();
  /** The same lanes in the order in which they are served next. */
  #turns: Lane[] = [];
  readonly #inFlight = new Set<Promise<void>>();
  /** On their way to the dead letters. */
  readonly #settingAside = new Set<Promise<void>>();
  #draining = false;
  #adoptedMs = Number.NEGATIVE_INFINITY;
  #inFlightBytes = 0;
  #troubledInFlight = 0;
  /** Of parcels that are not on the shelf. */
  #parcelBytes = 0;
  #parcelCount = 0;
  #parcelRuns = 0;
  readonly #abort = new AbortController();
  readonly #poison: ReadonlySet<string>;
  #waiters: (() => void)[] = [];
  #lastDeliveredMs = 0;

  constructor(settings: OutboxSettings, parts: OutboxParts) {
    this.#settings = settings;
    this.#parts = parts;
    this.#alarm = new Alarm(parts.clock, () => this.#pump());
    this.#poison = new Set(parts.poison?.batches);
    parts.shelf.onChange = () => {
      this.#adoptLanes();
      this.#spill();
      this.#pump();
      this.#changed();
    };
  }

  get full(): boolean {
    return this.#heldBytes >= this.#settings.heldBytes || this.#lanes.size > this.#settings.tenantCount;
  }

  get stats(): OutboxStats {
    const { shelf } = this.#parts;
    let downTenants = 0;
    for (const lane of this.#lanes.values()) if (lane.down !== null) downTenants++;
    return {
      inFlightCount: this.#inFlight.size,
      inFlightBytes: this.#inFlightBytes,
      batchCount: this.#parcelCount + shelf.totalCount,
      runCount: this.#parcelRuns + shelf.runCount,
      bytes: this.#heldBytes,
      shelvedCount: shelf.totalCount,
      tenantCount: this.#lanes.size,
      downTenantCount: downTenants,
      lastDeliveredMs: this.#lastDeliveredMs,
    };
  }

  accept(batch: Batch): void {
    const lane = this.#laneOf(batch.tenant);
    const parcel = createParcel(batch);
    this.#book(parcel, 1);
    if (lane.down === null) lane.queue.push(parcel);
    else this.#shelve(parcel);
    this.#spill();
    this.#limitOwnTrouble();
    this.#pump();
  }

  /** Resolves when there is room, or at once when `signal` says so. */
  async room(signal: AbortSignal): Promise<void> {
    while (this.full && !signal.aborted) await this.#change(signal);
  }

  /**
   * Delivers everything, each tenant tried at once, until `signal`: then what is in flight is cut off, what is left goes
   * to the shelf, and counts as lost where that does not keep it. Nobody waits for a tenant whose key is refused, nor,
   * where the shelf does keep it, for what lies there or fails now. Call when nothing more will be accepted.
   */
  async drain(signal: AbortSignal): Promise<Undelivered> {
    this.#draining = true;
    for (const lane of this.#lanes.values()) lane.hurry();
    this.#pump();
    while (!this.#isDrained() && !signal.aborted) await this.#change(signal);
    this.#abort.abort();
    this.#parts.info.stop();
    this.#alarm.set(Number.POSITIVE_INFINITY);
    await Promise.all(this.#inFlight);
    await Promise.all(this.#settingAside);
    for (const lane of this.#lanes.values()) {
      for (const parcels of [lane.waiting, lane.queue]) for (const parcel of parcels.splice(0)) this.#shelve(parcel);
    }
    const left = await this.#parts.shelf.close();
    await this.#parts.deadLetters.close();
    return this.#giveUp(left);
  }

  /** Enough is held: the newest wait on disk. The rest of the budget is left to what is on its way there. */
  #spill(): void {
    const maxBytes = this.#settings.heldBytes * SPILL_RATIO;
    while (this.#parts.shelf.isDurable && this.#parcelBytes > maxBytes) {
      let longest: Parcel[] = [];
      for (const { queue } of this.#lanes.values()) if (queue.length > longest.length) longest = queue;
      if (longest.length === 0) return;
      for (const parcel of longest.splice(longest.length >> 1)) this.#shelve(parcel);
    }
  }

  /** Nothing more has to leave: what the shelf keeps is safe. */
  get #isLeaving(): boolean {
    return this.#draining && this.#parts.shelf.isDurable;
  }

  get #heldBytes(): number {
    return this.#parcelBytes + this.#parts.shelf.memoryBytes;
  }

  #pump(): void {
    if (this.#abort.signal.aborted) return;
    const nowMs = this.#parts.clock.nowMs();
    for (let skipped = 0; skipped < this.#turns.length && this.#inFlight.size < this.#settings.uploadConcurrency;) {
      const lane = this.#turns.shift();
      if (lane === undefined) break;
      this.#turns.push(lane);
      const parcel =
        lane.troubled && this.#troubledInFlight >= this.#troubledLimit ? undefined : lane.next(nowMs, !this.#isLeaving);
      if (parcel === undefined) {
        skipped++;
        continue;
      }
      skipped = 0;
      if (parcel.onShelf) {
        parcel.onShelf = false;
        this.#book(parcel, 1, true);
      }
      if (this.#isTooLarge(parcel)) {
        this.#split(lane, parcel, 'bytes');
        continue;
      }
      const bytes = this.#inFlightBytes + parcel.batch.body.length;
      if (this.#inFlight.size > 0 && bytes > this.#settings.uploadMaxBytes) {
        // The next one waits for room, and nobody smaller overtakes it: it would wait for ever.
        lane.putBack(parcel);
        break;
      }
      const attempt = this.#attempt(lane, parcel);
      this.#inFlight.add(attempt);
      void attempt.finally(() => {
        this.#inFlight.delete(attempt);
        this.#pump();
        this.#changed();
      });
    }
    let nextMs = Number.POSITIVE_INFINITY;
    for (const lane of this.#turns) {
      const dueMs = lane.nextDueMs;
      if (dueMs > nowMs && dueMs < nextMs) nextMs = dueMs;
    }
    this.#alarm.set(nextMs);
  }

  get #troubledLimit(): number {
    return Math.max(1, this.#settings.uploadConcurrency >> 1);
  }

  async #attempt(lane: Lane, parcel: Parcel): Promise<void> {
    const { backend, counters, limits } = this.#parts;
    if (!limits.allows(parcel.batch.coding)) {
      if (this.#isPoison(parcel)) return;
      this.#holding(parcel, () => this.#replace(parcel, this.#recoded(parcel.batch)));
    }
    const { troubled } = lane;
    const bytes = parcel.batch.body.length;
    lane.inFlightCount++;
    this.#inFlightBytes += bytes;
    if (troubled) this.#troubledInFlight++;
    if (parcel.attemptCount++ === 0) parcel.lanesSuccesses = lane.successCount;
    else counters.add('upload_retries');
    counters.add('upload_attempts');

    const startedMs = performance.now();
    const answer = await backend.upload(parcel.batch, this.#abort.signal);
    counters.observe('upload_seconds', (performance.now() - startedMs) / SECOND_MS);
    counters.add(answerCounter(answer));

    lane.inFlightCount--;
    this.#inFlightBytes -= bytes;
    if (troubled) this.#troubledInFlight--;
    if (this.#abort.signal.aborted && answer.kind === 'failed') {
      if (mayHaveArrived(answer)) parcel.repeated = true;
      lane.queue.unshift(parcel); // it is counted with the rest
    } else {
      this.#act(lane, parcel, answer);
      this.#limitOwnTrouble();
    }
  }

  #act(lane: Lane, parcel: Parcel, answer: Answer): void {
    const { clock, counters, limits } = this.#parts;
    if (refusesCoding(answer) && parcel.batch.coding !== 'identity') {
      limits.refuseCoding(parcel.batch.coding);
      counters.add('upload_failures');
      counters.add('upload_failed_runs', parcel.batch.runCount);
      lane.queue.unshift(parcel); // encoded anew by the next attempt
      return;
    }
    const verdict = judge(answer, parcel.batch, parcel.repeated);
    const nowMs = clock.nowMs();
    if (verdict.kind !== 'delivered') {
      counters.add('upload_failures');
      counters.add('upload_failed_runs', parcel.batch.runCount);
    }
    if (verdict.kind !== 'retry' && verdict.kind !== 'park' && answer.kind === 'answered' && lane.succeed()) {
      this.#parts.log.info({ key: lane.name }, 'uploads get through again');
    }
    switch (verdict.kind) {
      case 'delivered':
        // First: another thread that looks in between must not find them both in the spool and delivered.
        this.#settle(parcel);
        counters.add('runs_delivered', parcel.batch.runCount);
        if (verdict.again) counters.add('runs_delivered_again', parcel.batch.runCount);
        this.#book(parcel, -1);
        // Only after a single attempt: an earlier, broken-off one might still be looking at the bytes.
        if (parcel.attemptCount === 1) this.#parts.codec.release(parcel.batch.body);
        this.#lastDeliveredMs = nowMs;
        this.#parts.info.refresh();
        return;
      case 'retry':
        if (mayHaveArrived(answer)) parcel.repeated = true;
        this.#retry(lane, parcel, verdict, answer);
        return;
      case 'park':
        this.#goDown(lane, parcel, 'refused', answer);
        if (parcel.role === 'probe') lane.probeFailed(nowMs);
        this.#shelve(parcel);
        return;
      case 'split':
        if (verdict.by === 'bytes' && parcel.batch.runCount > 1) limits.refuseSize(parcel.batch.plainBytes);
        if (parcel.batch.runCount > 1) this.#split(lane, parcel, verdict.by);
        else this.#truncate(lane, parcel, verdict.reason);
        return;
      case 'rejected':
        this.#reject(parcel, verdict.code, verdict.reason);
        return;
    }
  }

  #retry(lane: Lane, parcel: Parcel, verdict: Verdict & { kind: 'retry' }, answer: Answer): void {
    const nowMs = this.#parts.clock.nowMs();
    lane.slowDown();
    if (verdict.retryAfterMs !== undefined) lane.pause(nowMs + verdict.retryAfterMs);
    if (parcel.role === 'probe') {
      if (lane.down !== null) lane.probeFailed(nowMs);
      this.#shelve(parcel);
    } else if (parcel.role === 'shelved') {
      lane.shelvedFailed(nowMs);
      this.#shelve(parcel);
    } else if (lane.down !== null) {
      this.#shelve(parcel);
    } else if (this.#isLeaving) {
      this.#goDown(lane, parcel, 'unreachable', answer);
      this.#shelve(parcel);
    } else if (parcel.attemptCount > this.#settings.maxRetries) {
      // While others get through, the trouble is this batch's own and the lane stays open for them.
      if (lane.successCount === parcel.lanesSuccesses) this.#goDown(lane, parcel, 'unreachable', answer);
      else lane.shelvedFailed(nowMs);
      this.#shelve(parcel);
    } else {
      const waitMs = verdict.retryAfterMs ?? lane.backoffMs(this.#settings.retryBackoffMs, parcel);
      lane.retry(parcel, nowMs + waitMs);
    }
  }

  #goDown(lane: Lane, { batch }: Parcel, reason: 'unreachable' | 'refused', answer: Answer): void {
    lane.slowDown();
    if (!lane.goDown(reason, isTenantsOwn(answer), this.#parts.clock.nowMs())) return;
    const fields = {
      key: lane.name,
      batch: batchName(batch),
      runs: batch.runCount,
      answer: answer.kind === 'answered' ? answer.status : answer.reason,
    };
    this.#parts.log.warn(fields, reason === 'refused' ? REFUSED_MESSAGE : 'uploads fail');
    for (const parcels of [lane.waiting, lane.queue]) {
      for (const parcel of parcels.splice(0)) this.#shelve(parcel);
    }
  }

  /** Out of the lane's hands. */
  #shelve(parcel: Parcel): void {
    this.#book(parcel, -1, true);
    parcel.onShelf = true;
    this.#parts.shelf.offer(parcel);
  }

  /** Nobody needs to keep it any more. */
  #settle(parcel: Parcel): void {
    const { settlements, shelf } = this.#parts;
    settlements.settle(parcel.batch.runSources);
    const release = (kept: Kept): void => shelf.settle(kept);
    release(parcel);
    leaveOrigin(parcel, release);
  }

  /** Sealed before its size was known to be refused, and not tried yet: what may have arrived keeps its composition. */
  #isTooLarge({ batch, attemptCount }: Parcel): boolean {
    const { limits } = this.#parts;
    const isTooLarge = batch.plainBytes > limits.maxBatchBytes || batch.runCount > limits.maxBatchRuns;
    return batch.runCount > 1 && attemptCount === 0 && isTooLarge;
  }

  #split(lane: Lane, parcel: Parcel, by: 'bytes' | 'runs'): void {
    const { codec, counters, limits } = this.#parts;
    if (this.#isPoison(parcel)) return;
    counters.add('batches_split');
    const halves = this.#holding(parcel, () => partsOf(parcel, halve(parcel.batch, codec, limits.coding, by)));
    this.#book(parcel, -1);
    for (const half of halves) this.#book(half, 1);
    lane.queue.unshift(...halves);
  }

  #truncate(lane: Lane, parcel: Parcel, reason: string): void {
    if (parcel.truncated) {
      this.#reject(parcel, 'oversize', reason);
      return;
    }
    if (this.#isPoison(parcel)) return;
    const { codec, limits } = this.#parts;
    this.#holding(parcel, () => this.#replace(parcel, truncateRun(parcel.batch, codec, limits.coding)));
    parcel.truncated = true;
    lane.queue.unshift(parcel);
  }

  /** Does something with the batch's content that a thread may die of. */
  #holding<Result>({ batch }: Parcel, work: () => Result): Result {
    const { hand } = this.#parts;
    hand?.holdBatch(batch);
    const result = work();
    hand?.drop();
    return result;
  }

  /** Threads died of its content: it is out of the lane's hands. */
  #isPoison(parcel: Parcel): boolean {
    if (this.#poison.size === 0 || !this.#poison.has(nameOfBatch(parcel.batch))) return false;
    const { batch } = parcel;
    const fields = { batch: batchName(batch), key: keyName(batch.tenant.apiKey), runs: batch.runCount };
    this.#parts.log.error(fields, 'a batch that uploading threads died of is set aside as a dead letter');
    this.#reject(parcel, 'rejected-by-backend', POISON_REASON);
    return true;
  }

  #reject(parcel: Parcel, code: DropCode, reason: string): void {
    const settingAside = this.#parts.deadLetters.put(parcel.batch, code, reason);
    this.#settingAside.add(settingAside);
    void settingAside.then(() => {
      this.#settingAside.delete(settingAside);
      this.#settle(parcel);
      this.#book(parcel, -1);
    });
  }

  #recoded(batch: Batch): Batch {
    const { codec, limits } = this.#parts;
    const body = codec.encode(plainBody(batch, codec), limits.coding);
    return { ...batch, coding: limits.coding, body };
  }

  #replace(parcel: Parcel, batch: Batch): void {
    this.#book(parcel, -1);
    parcel.batch = batch;
    this.#book(parcel, 1);
  }

  /** Books a parcel in (1) or out (-1) of this thread's hands; `moved` when it only goes to or comes from the shelf. */
  #book(parcel: Parcel, sign: 1 | -1, moved = false): void {
    this.#parcelBytes += sign * parcel.batch.body.length;
    this.#parcelCount += sign;
    this.#parcelRuns += sign * parcel.batch.runCount;
    if (sign === -1 && !moved) this.#changed();
  }

  #laneOf(tenant: Tenant): Lane {
    let lane = this.#lanes.get(tenant.apiKey);
    if (lane === undefined) {
      if (this.#lanes.size >= this.#settings.tenantCount) this.#forgetIdleLane();
      const maxWindow = Math.ceil((this.#settings.uploadConcurrency * 3) / 4);
      lane = new Lane(tenant, this.#parts.shelf, maxWindow, this.#parts.random);
      this.#lanes.set(tenant.apiKey, lane);
      this.#turns.push(lane);
    }
    return lane;
  }

  /** Lanes for keys that have something on the shelf and none yet: as many as leave half of the places to new keys. */
  #adoptLanes(): void {
    const { clock, random, shelf } = this.#parts;
    const nowMs = clock.nowMs();
    if (!shelf.isDurable || this.#draining || nowMs - this.#adoptedMs < ADOPT_INTERVAL_MS) return;
    this.#adoptedMs = nowMs;
    const without = [...shelf.tenants()].filter(({ apiKey }) => !this.#lanes.has(apiKey));
    const maxCount = Math.max(1, this.#settings.tenantCount / 2);
    const from = Math.floor(random() * without.length);
    for (const tenant of [...without.slice(from), ...without.slice(0, from)]) {
      if (this.#lanes.size >= maxCount && !this.#forgetIdleLane()) return;
      this.#laneOf(tenant).startSlowly(nowMs);
    }
  }

  /** One without anything, or whose batches are all on disk and do not get through. */
  #forgetIdleLane(): boolean {
    const { isDurable } = this.#parts.shelf;
    for (const lane of this.#lanes.values()) {
      if (!lane.isEmpty && !(isDurable && lane.isShelved)) continue;
      this.#lanes.delete(lane.tenant.apiKey);
      this.#turns = this.#turns.filter((other) => other !== lane);
      return true;
    }
    return false;
  }

  #limitOwnTrouble(): void {
    const maxBytes = this.#settings.heldBytes * OWN_TROUBLE_RATIO;
    const maxCount = this.#settings.tenantCount * OWN_TROUBLE_RATIO;
    if (this.#heldBytes <= maxBytes && this.#lanes.size <= maxCount) return;
    const { shelf } = this.#parts;
    if (shelf.isDurable) {
      while (this.#lanes.size > this.#settings.tenantCount && this.#forgetIdleLane());
      return;
    }
    // A quota holds up only its own tenant; where there is no other, clients who wait are the better store.
    const isAlone = this.#lanes.size === 1;
    const lanes = [...this.#lanes.values()].filter(
      (lane) => lane.ownTrouble && shelf.count(lane.tenant) > 0 && (lane.down === 'refused' || !isAlone),
    );
    const size = (lane: Lane): number => shelf.tenantBytes(lane.tenant);
    for (let bytes = lanes.reduce((sum, lane) => sum + size(lane), 0); bytes > maxBytes;) {
      const largest = lanes.reduce((one, other) => (size(other) > size(one) ? other : one));
      const droppedBytes = this.#dropOldest(largest);
      if (droppedBytes === 0) return;
      bytes -= droppedBytes;
    }
    const holding = lanes.filter((lane) => shelf.count(lane.tenant) > 0);
    for (const lane of holding.slice(0, Math.max(0, holding.length - maxCount))) {
      while (shelf.count(lane.tenant) > 0) if (this.#dropOldest(lane) === 0) return;
    }
    while (this.#lanes.size > this.#settings.tenantCount && this.#forgetIdleLane());
  }

  /** Drops the oldest shelved batch and returns its bytes; 0 when it is not in memory. */
  #dropOldest(lane: Lane): number {
    const parcel = this.#parts.shelf.take(lane.tenant);
    if (parcel === undefined) return 0;
    this.#parts.counters.add('dropped_spool-full', parcel.batch.runCount);
    this.#settle(parcel);
    return parcel.batch.body.length;
  }

  #isDrained(): boolean {
    if (this.#inFlight.size + this.#settingAside.size > 0) return false;
    const { isDurable } = this.#parts.shelf;
    for (const lane of this.#lanes.values()) {
      const mayWait = isDurable ? lane.isShelved : lane.down === 'refused';
      if (!mayWait && !lane.isEmpty) return false;
    }
    return true;
  }

  #giveUp(left: readonly Parcel[]): Undelivered {
    const undelivered = { unreachable: 0, refused: 0, unfinished: 0 };
    for (const { batch } of left) {
      const lane = this.#lanes.get(batch.tenant.apiKey);
      undelivered[lane?.down ?? (lane?.troubled === true ? 'unreachable' : 'unfinished')] += batch.runCount;
    }
    this.#lanes.clear();
    this.#turns = [];
    const lost = undelivered.unreachable + undelivered.refused + undelivered.unfinished;
    if (this.#parcelRuns !== 0) throw new Fault(`${this.#parcelRuns} runs are neither delivered nor given up`);
    this.#parts.counters.add('dropped_shutdown-deadline', lost);
    return undelivered;
  }

  #changed(): void {
    this.#parts.onChange?.();
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter();
  }

  /** Resolves when something was settled, or on `signal`. */
  #change(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        signal.removeEventListener('abort', done);
        resolve();
      };
      this.#waiters.push(done);
      signal.addEventListener('abort', done, { once: true });
    });
  }
}

export interface OutboxStats {
  readonly inFlightCount: number;
  readonly inFlightBytes: number;
  /** Sealed and not settled, shelf included. */
  readonly batchCount: number;
  readonly runCount: number;
  readonly bytes: number;
  readonly shelvedCount: number;
  readonly tenantCount: number;
  readonly downTenantCount: number;
  /** Unix time; 0 before the first. */
  readonly lastDeliveredMs: number;
}
