/** Asks the backend for its limits: once at the start, and again now and then until it has answered. Nobody waits for it. */
import type { Clock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import { MINUTE_MS } from '../core/units.ts';
import type { Backend } from './client.ts';
import type { UploadLimits } from './limits.ts';

export class InfoReader {
  readonly #backend: Backend;
  readonly #limits: UploadLimits;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #stop = new AbortController();
  #askedMs = Number.NEGATIVE_INFINITY;
  #known = false;

  constructor(backend: Backend, limits: UploadLimits, clock: Clock, log: Log) {
    this.#backend = backend;
    this.#limits = limits;
    this.#clock = clock;
    this.#log = log;
  }

  /** Asks unless it is known, or was asked a moment ago. */
  refresh(): void {
    const nowMs = this.#clock.nowMs();
    if (this.#known || nowMs - this.#askedMs < MINUTE_MS) return;
    this.#askedMs = nowMs;
    void this.#ask();
  }

  stop(): void {
    this.#stop.abort();
  }

  async #ask(): Promise<void> {
    const info = await this.#backend.info(this.#stop.signal);
    if (info === null || this.#known) return;
    this.#known = true;
    this.#limits.learn(info);
    const { maxBatchRuns, maxBatchBytes, coding } = this.#limits;
    this.#log.debug({ maxBatchRuns, maxBatchBytes, coding }, 'read the limits of the backend');
  }
}
