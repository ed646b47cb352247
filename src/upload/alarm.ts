/** One wake-up call at a time, for the earliest moment that was asked for. */
import type { Clock } from '../core/lifecycle.ts';

export class Alarm {
  readonly #clock: Clock;
  readonly #onRing: () => void;
  #atMs = Number.POSITIVE_INFINITY;
  #sleep = new AbortController();

  constructor(clock: Clock, onRing: () => void) {
    this.#clock = clock;
    this.#onRing = onRing;
  }

  /** Replaces what was set before; infinity sets nothing. */
  set(atMs: number): void {
    if (atMs === this.#atMs) return;
    this.#sleep.abort();
    this.#atMs = atMs;
    if (atMs === Number.POSITIVE_INFINITY) return;
    const sleep = new AbortController();
    this.#sleep = sleep;
    void this.#clock.sleep(Math.max(0, atMs - this.#clock.nowMs()), sleep.signal).then(() => {
      if (sleep.signal.aborted) return;
      this.#atMs = Number.POSITIVE_INFINITY;
      this.#onRing();
    });
  }
}
