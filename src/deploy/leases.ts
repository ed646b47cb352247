/**
 * Who may believe that a run is still being executed, and until when. In: the runs held here. Out: the news that one was lost or
 * cancelled by another process, and runs whose holder has gone. Held leases are renewed in thirds; what nobody renews is given
 * back to the queue by whichever process notices first, never what the process holds itself.
 */
import type { Clock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import { failure } from './attemptend.ts';
import type { CancelAction, RunRef } from './store/model.ts';
import type { RunEnding, RunRepository } from './store/repositories.ts';

export interface LeaseSettings {
  runs: RunRepository;
  clock: Clock;
  log: Log;
  ownerId: string;
  leaseMs: number;
  maxAttempts: number;
  held(): readonly string[];
  onLost(runId: string): void;
  onCancelled(runId: string, action: CancelAction): void;
  /** Runs may be waiting again; `ended` have used up their attempts. */
  onRecovered(ended: readonly { ref: RunRef; ending: RunEnding }[]): void;
}

export interface Leases {
  /** `all`: whatever is recorded as running is not. */
  start(all: boolean): Promise<void>;
  /** Runs are held: renew them while there are any. */
  keep(): void;
  stop(): void;
}

export function createLeases(settings: LeaseSettings): Leases {
  const { runs, clock, log, ownerId, leaseMs } = settings;
  let renewal: NodeJS.Timeout | null = null;
  let sweep: NodeJS.Timeout | null = null;

  const renew = async (nowMs: number): Promise<void> => {
    const held = settings.held();
    if (held.length === 0) {
      if (renewal !== null) clearInterval(renewal);
      renewal = null;
      return;
    }
    const { lost, cancelled } = await runs.renew(ownerId, held, nowMs + leaseMs);
    for (const runId of lost) settings.onLost(runId);
    for (const { runId, action } of cancelled) settings.onCancelled(runId, action);
  };

  const recover = async (all: boolean): Promise<void> => {
    const { maxAttempts } = settings;
    const errorJson = failure('WorkerLost', `${maxAttempts} attempts lost their server.`);
    const nowMs = clock.nowMs();
    // After a pause of the whole process, or a leap of the clock, what is held here has passed as well, and is not lost.
    if (!all) await renew(nowMs);
    const recovered = await runs.recover({ all, maxAttempts, errorJson, nowMs });
    if (all || recovered.requeuedCount > 0 || recovered.ended.length > 0) settings.onRecovered(recovered.ended);
  };

  const logged = (work: Promise<void>, message: string): void => {
    work.catch((error: unknown) => log.error({ err: error }, message));
  };

  return {
    start: async (all) => {
      await recover(all);
      // What was pending when the last process went, too.
      settings.onRecovered([]);
      sweep = setInterval(() => logged(recover(false), 'lost runs could not be looked for'), leaseMs);
    },
    keep: () => {
      renewal ??= setInterval(
        () => logged(renew(clock.nowMs()), 'the leases of runs could not be renewed'),
        leaseMs / 3,
      );
    },
    stop: () => {
      if (renewal !== null) clearInterval(renewal);
      if (sweep !== null) clearInterval(sweep);
    },
  };
}
