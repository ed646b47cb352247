/**
 * Who runs next. In: the news that a run may be waiting, or that a place is free. Out: claimed runs, to whoever executes them. The
 * order is the store's (oldest eligible first, one at a time per thread); the queue only decides when to ask. It never polls:
 * it asks when there is both a place and a reason, and sets one timer for the next run that is not due yet. On stop it
 * claims no more.
 */
import type { Clock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import type { Run } from './store/model.ts';
import type { RunClaim, RunRepository } from './store/repositories.ts';

export interface QueueSettings {
  runs: RunRepository;
  clock: Clock;
  log: Log;
  ownerId: string;
  leaseMs: number;
  /** Places free for another run. */
  freeCount(): number;
  execute(run: Run): void;
}

export interface Queue {
  /** A run may be waiting. */
  wake(): void;
  /** A place may have become free. */
  onFree(): void;
  /** A place for a run about to be created, so that it can be created as already claimed; null when none is free. */
  reserve(): RunClaim | null;
  /** Gives the reserved place back; call it whether or not the run was created as claimed, after that has been executed. */
  release(): void;
  claim(): RunClaim;
  stop(): void;
}

const RETRY_DELAY_MS = 1000;

export function createQueue(settings: QueueSettings): Queue {
  const { runs, clock, log } = settings;
  let reservedCount = 0;
  let maybeWaiting = false;
  let isClaiming = false;
  let isStopped = false;
  let dueTimer: NodeJS.Timeout | null = null;

  const placeCount = (): number => (isStopped ? 0 : settings.freeCount() - reservedCount);
  const hasPlace = (): boolean => placeCount() > 0;
  const claim = (): RunClaim => ({ ownerId: settings.ownerId, leaseUntilMs: clock.nowMs() + settings.leaseMs });

  const askAgainIn = (delayMs: number): void => {
    if (dueTimer !== null) clearTimeout(dueTimer);
    // Longer delays than a timer can hold are reached in several steps.
    dueTimer = setTimeout(wake, Math.min(Math.max(delayMs, 1), 2 ** 31 - 1));
  };

  const claimAll = async (): Promise<void> => {
    isClaiming = true;
    try {
      while (maybeWaiting && hasPlace()) {
        const count = placeCount();
        reservedCount += count;
        // What is created from here on sets it again.
        maybeWaiting = false;
        try {
          const nowMs = clock.nowMs();
          // All places at once: one by one, the way to the store and back would be the limit of runs per second.
          const claimed = await runs.claimOldest(claim(), count, nowMs);
          if (claimed.runs.length === count) maybeWaiting = true;
          for (const run of claimed.runs) settings.execute(run);
          if (claimed.nextDueMs !== null) askAgainIn(claimed.nextDueMs - nowMs);
        } finally {
          reservedCount -= count;
        }
      }
    } catch (error) {
      log.error({ err: error, retryMs: RETRY_DELAY_MS }, 'the queue could not be read');
      maybeWaiting = true;
      if (!isStopped) askAgainIn(RETRY_DELAY_MS);
    } finally {
      isClaiming = false;
    }
  };

  const advance = (): void => {
    if (!isClaiming && maybeWaiting && hasPlace()) void claimAll();
  };

  const wake = (): void => {
    maybeWaiting = true;
    advance();
  };

  return {
    wake,
    onFree: advance,
    reserve: () => {
      // Those who wait already come first.
      if (maybeWaiting || !hasPlace()) return null;
      reservedCount++;
      return claim();
    },
    release: () => {
      reservedCount--;
      advance();
    },
    claim,
    stop: () => {
      isStopped = true;
      if (dueTimer !== null) clearTimeout(dueTimer);
    },
  };
}
