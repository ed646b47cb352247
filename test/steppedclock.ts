/** A clock that moves only when a test moves it; sleepers wake at their moments, also across database calls. */
import type { Clock } from '../src/core/lifecycle.ts';

export class SteppedClock implements Clock {
  #nowMs: number;
  #sleepers = new Set<{ atMs: number; wake: () => void }>();
  #waiters: (() => void)[] = [];

  constructor(nowMs: number) {
    this.#nowMs = nowMs;
  }

  nowMs(): number {
    return this.#nowMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true || ms <= 0) return resolve();
      const wake = (): void => {
        this.#sleepers.delete(sleeper);
        signal?.removeEventListener('abort', wake);
        resolve();
      };
      const sleeper = { atMs: this.#nowMs + ms, wake };
      this.#sleepers.add(sleeper);
      signal?.addEventListener('abort', wake, { once: true });
      for (const waiter of this.#waiters.splice(0)) waiter();
    });
  }

  /** How long the next sleeper still sleeps; null when nobody does. */
  get nextMs(): number | null {
    const moments = [...this.#sleepers].map((sleeper) => sleeper.atMs);
    return moments.length === 0 ? null : Math.min(...moments) - this.#nowMs;
  }

  /** Resolves when somebody sleeps. */
  async asleep(): Promise<void> {
    if (this.#sleepers.size > 0) return;
    await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  /** Moves on at once and wakes whoever is due; without waiting for what they do. */
  set(nowMs: number): void {
    this.#nowMs = nowMs;
    for (const sleeper of [...this.#sleepers]) if (sleeper.atMs <= nowMs) sleeper.wake();
  }

  advance(ms: number): void {
    this.set(this.#nowMs + ms);
  }
}
