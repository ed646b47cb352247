/**
 * One face for everything that starts and stops. `main.ts` starts sinks before sources and stops sources before sinks.
 * `start` and `stop` are idempotent; `stop` is legal before `start`. Every sleep and wait ends early on stop.
 */
export interface Stage {
  start(): Promise<void>;
  /** Drains what it holds, at most `deadlineMs` milliseconds from now. */
  stop(deadlineMs: number): Promise<void>;
}

/** Time as a dependency, so that tests can fake it. The system clock is the only production implementation. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  nowMs(): number;
  /** Resolves after `ms` milliseconds, or at once when `signal` is or becomes aborted. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const done = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener('abort', done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal?.addEventListener('abort', done, { once: true });
    }),
};
