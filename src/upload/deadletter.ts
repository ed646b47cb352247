/** Where runs go that the backend refuses for good. */
import type { Counters } from '../core/counters.ts';
import type { Clock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import type { DropCode } from '../core/outcome.ts';
import { SECOND_MS } from '../core/units.ts';
import { batchName, type Batch } from './batch.ts';
import { keyName } from './keyname.ts';

export interface DeadLetters {
  /**
   * Takes all runs of the batch out of delivery. `reason` may quote the backend: it is for the file, not for the log.
   * Resolves when nobody has to keep them any more; never rejects.
   */
  put(batch: Batch, code: DropCode, reason: string): Promise<void>;
  /** Nothing is put afterwards. */
  close(): Promise<void>;
}

const LOG_INTERVAL_MS = 10 * SECOND_MS;

/** Counts them and says so, at most once in ten seconds; the runs are gone. */
export function createCountingDeadLetters(counters: Counters, clock: Clock, log: Log): DeadLetters {
  let unsaidCount = 0;
  let saidMs = Number.NEGATIVE_INFINITY;
  return {
    async put(batch, code, reason) {
      counters.add('runs_dead_lettered', batch.runCount);
      counters.add(`dropped_${code}`, batch.runCount);
      unsaidCount += batch.runCount;
      const nowMs = clock.nowMs();
      if (nowMs - saidMs < LOG_INTERVAL_MS) return;
      const answer = reason.split(' ', 1)[0];
      log.warn(
        { runs: unsaidCount, code, answer, batch: batchName(batch), key: keyName(batch.tenant.apiKey) },
        'runs refused by the backend for good',
      );
      unsaidCount = 0;
      saidMs = nowMs;
    },
    close: () => Promise.resolve(),
  };
}
