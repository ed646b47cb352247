/**
 * One tenant's way to the backend. Open: batches leave in order, several at a time, retries when they are due, and the
 * shelf in turn with what is new. Down (retries used up without any success, or the key refused): nothing leaves but one
 * probe at a time, at growing intervals; a success opens the lane again, one upload at first, then two, four, …
 */
import type { Tenant } from '../core/run.ts';
import { SECOND_MS } from '../core/units.ts';
import { backoffMs, probeIntervalMs } from './backoff.ts';
import { keyName } from './keyname.ts';
import type { Parcel } from './parcel.ts';
import type { Shelf } from './shelf.ts';

export class Lane {
  readonly tenant: Tenant;
  /** Of its key, for the log. */
  readonly name: string;
  /** In order, not tried yet. */
  readonly queue: Parcel[] = [];
  /** For their retry, the next one first. */
  readonly waiting: Parcel[] = [];
  inFlightCount = 0;
  /** Why it is down. */
  down: 'unreachable' | 'refused' | null = null;
  /** It is down for a reason of its tenant's: key, plan, quota. */
  ownTrouble = false;
  /** The last attempt failed: until one succeeds, one upload at a time. */
  troubled = false;
  successCount = 0;
  readonly #shelf: Shelf;
  readonly #random: () => number;
  readonly #maxWindow: number;
  #window: number;
  /** Of the whole lane: a Retry-After, or the next probe. */
  #notBeforeMs = 0;
  #probeFailures = 0;
  #shelfNotBeforeMs = 0;
  #shelfFailures = 0;
  #shelfTurn = false;

  constructor(tenant: Tenant, shelf: Shelf, maxWindow: number, random: () => number) {
    this.tenant = tenant;
    this.name = keyName(tenant.apiKey);
    this.#shelf = shelf;
    this.#random = random;
    this.#maxWindow = maxWindow;
    this.#window = maxWindow;
  }

  get isEmpty(): boolean {
    return this.inFlightCount === 0 && this.queue.length + this.waiting.length + this.#shelf.count(this.tenant) === 0;
  }

  /** All that it has is on the shelf. */
  get isShelved(): boolean {
    return this.inFlightCount + this.queue.length + this.waiting.length === 0;
  }

  /** What may be attempted now, which is then the caller's; with `shelfToo`, what was shelved in its turn. */
  next(nowMs: number, shelfToo: boolean): Parcel | undefined {
    if (nowMs < this.#notBeforeMs) return undefined;
    if (this.down !== null) {
      if (this.inFlightCount > 0) return undefined;
      const shelved = shelfToo ? this.#shelf.take(this.tenant) : undefined;
      return withRole('probe', shelved ?? this.waiting.shift() ?? this.queue.shift());
    }
    if (this.inFlightCount >= this.#window) return undefined;
    if ((this.waiting[0]?.dueMs ?? Number.POSITIVE_INFINITY) <= nowMs) return this.waiting.shift();
    const mayUnshelve = shelfToo && nowMs >= this.#shelfNotBeforeMs && this.#shelf.count(this.tenant) > 0;
    this.#shelfTurn = mayUnshelve && (!this.#shelfTurn || this.queue.length === 0);
    const shelved = this.#shelfTurn ? this.#shelf.take(this.tenant) : undefined;
    return withRole('shelved', shelved) ?? withRole('fresh', this.queue.shift());
  }

  /** An earlier process left batches on the shelf: begin as after an outage, and not all tenants in the same instant. */
  startSlowly(nowMs: number): void {
    this.slowDown();
    this.#shelfNotBeforeMs = nowMs + this.#random() * SECOND_MS;
  }

  /** What {@link next} gave cannot leave now. */
  putBack(parcel: Parcel): void {
    this.queue.unshift(parcel);
  }

  /** When {@link next} may have something that it does not have now for want of time alone; infinity if never. */
  get nextDueMs(): number {
    if (this.isEmpty || (this.down !== null && this.inFlightCount > 0)) return Number.POSITIVE_INFINITY;
    if (this.down !== null) return this.#notBeforeMs;
    const retryMs = this.waiting[0]?.dueMs ?? Number.POSITIVE_INFINITY;
    const shelfMs = this.#shelf.count(this.tenant) > 0 ? this.#shelfNotBeforeMs : Number.POSITIVE_INFINITY;
    return Math.max(this.#notBeforeMs, this.queue.length > 0 ? 0 : Math.min(retryMs, shelfMs));
  }

  /** The backend dealt with a request of this tenant. True when that ends an outage. */
  succeed(): boolean {
    const wasDown = this.down !== null;
    this.down = null;
    this.ownTrouble = false;
    this.troubled = false;
    this.successCount++;
    // One more for each success doubles it with every round of answers.
    this.#window = wasDown ? 1 : Math.min(this.#maxWindow, this.#window + 1);
    this.#probeFailures = 0;
    this.#shelfFailures = 0;
    if (wasDown) this.#shelfNotBeforeMs = 0;
    return wasDown;
  }

  /** Nothing of this tenant before that time. */
  pause(untilMs: number): void {
    this.#notBeforeMs = Math.max(this.#notBeforeMs, untilMs);
  }

  slowDown(): void {
    this.troubled = true;
    this.#window = 1;
  }

  /** The parcel waits for its next attempt. */
  retry(parcel: Parcel, dueMs: number): void {
    parcel.dueMs = dueMs;
    const at = this.waiting.findIndex((other) => other.dueMs > dueMs);
    this.waiting.splice(at < 0 ? this.waiting.length : at, 0, parcel);
  }

  backoffMs(baseMs: number, parcel: Parcel): number {
    return backoffMs(baseMs, parcel.attemptCount - 1, this.#random);
  }

  /** Ends sending; true when it was open before. */
  goDown(reason: 'unreachable' | 'refused', ownTrouble: boolean, nowMs: number): boolean {
    const wasOpen = this.down === null;
    this.down = reason;
    this.ownTrouble = ownTrouble;
    if (wasOpen) this.#probeFailures = 0;
    this.pause(nowMs + probeIntervalMs(this.#probeFailures, this.#random));
    return wasOpen;
  }

  probeFailed(nowMs: number): void {
    this.#probeFailures++;
    this.pause(nowMs + probeIntervalMs(this.#probeFailures, this.#random));
  }

  /** A batch that was shelved failed again although others get through: the shelf waits longer before the next one. */
  shelvedFailed(nowMs: number): void {
    this.#shelfNotBeforeMs = nowMs + probeIntervalMs(this.#shelfFailures++, this.#random);
  }

  /** At shutdown: whatever is waited for, try now. */
  hurry(): void {
    this.#notBeforeMs = 0;
    this.#shelfNotBeforeMs = 0;
    for (const parcel of this.waiting) parcel.dueMs = 0;
  }
}

function withRole(role: Parcel['role'], parcel: Parcel | undefined): Parcel | undefined {
  if (parcel !== undefined) parcel.role = role;
  return parcel;
}
