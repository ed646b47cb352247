/**
 * Fires crons. Comes in: due times in the database. Goes out: runs, created by the very transactions that advance those times. It
 * sleeps until the next is due or `wake` says that they have changed. Nothing is held here: a firing that was missed while no process
 * ran is caught up once. On stop it ends after the transaction in progress.
 */
import type { Clock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import { MINUTE_MS, SECOND_MS } from '../core/units.ts';
import type { CronFiring, CronRepository } from './store/repositories.ts';

export interface CronSchedulerSettings {
  crons: CronRepository;
  /** Runs that were created: to be executed. */
  onFired(firings: readonly CronFiring[]): void;
  clock: Clock;
  log: Log;
}

export interface CronScheduler {
  start(): void;
  /** Crons were created, changed or deleted. */
  wake(): void;
  stop(): Promise<void>;
}

/** Fired in one go before the runs are handed on. */
const BATCH_COUNT = 50;
/**
 * Timers know neither a suspended machine nor a clock that is set, and another process may have died with crons that it had made: the
 * due times are looked at again after this long at the latest.
 */
const RECHECK_MS = MINUTE_MS;
/** After the database has failed. */
const PAUSE_MS = 5 * SECOND_MS;

export function createCronScheduler(settings: CronSchedulerSettings): CronScheduler {
  const { crons, clock, log } = settings;
  const stopping = new AbortController();
  let sleep = new AbortController();
  let isWoken = false;
  let loop: Promise<void> | null = null;

  const wake = (): void => {
    isWoken = true;
    sleep.abort();
  };

  /** Milliseconds until the next one is due. */
  const turn = async (): Promise<number> => {
    const nowMs = clock.nowMs();
    const { fired, nextDueMs } = await crons.fireDue(nowMs, BATCH_COUNT);
    if (fired.length > 0) settings.onFired(fired);
    for (const { cron, creation } of fired) {
      if (creation === null || creation.kind === 'created') continue;
      const detail = creation.kind === 'unfit' ? { detail: creation.reason } : {};
      log.warn({ cronId: cron.cronId, reason: creation.kind, ...detail }, 'cron fired without a run');
    }
    return nextDueMs === null ? RECHECK_MS : Math.min(Math.max(nextDueMs - clock.nowMs(), 0), RECHECK_MS);
  };

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      isWoken = false;
      let idleMs: number;
      try {
        idleMs = await turn();
      } catch (error) {
        log.error({ err: error }, 'crons could not be fired');
        idleMs = PAUSE_MS;
      }
      sleep = new AbortController();
      if (isWoken || stopping.signal.aborted) continue;
      await clock.sleep(idleMs, sleep.signal);
    }
  };

  return {
    start: () => {
      loop ??= run();
    },
    wake,
    stop: async () => {
      stopping.abort();
      wake();
      await loop;
    },
  };
}
