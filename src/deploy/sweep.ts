/**
 * Removes what has outlived its time: threads, events of ended runs, store items, accounts of webhooks. Comes in: nothing but the
 * clock. Goes out: deletions, a bounded number at a time. On stop it ends after the deletion in progress.
 */
import type { Clock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import { DAY_MS } from '../core/units.ts';
import type { DeploymentStore } from './store/repositories.ts';

export interface SweeperSettings {
  store: DeploymentStore;
  deleteThread(threadId: string): Promise<boolean>;
  pruneThread(threadId: string): Promise<boolean>;
  intervalMs: number;
  /** Threads in one sweep. */
  threadCount: number;
  clock: Clock;
  log: Log;
}

export interface Sweeper {
  start(): void;
  stop(): Promise<void>;
}

/** How long it can be seen what became of a webhook. */
const DELIVERY_MS = 30 * DAY_MS;

export function createSweeper(settings: SweeperSettings): Sweeper {
  const { store, clock, log } = settings;
  const stopping = new AbortController();
  let loop: Promise<void> | null = null;

  const sweep = async (): Promise<void> => {
    const nowMs = clock.nowMs();
    for (const { threadId, strategy } of await store.threads.expired(nowMs, settings.threadCount)) {
      if (stopping.signal.aborted) return;
      if (strategy === 'delete') await settings.deleteThread(threadId);
      else if (await settings.pruneThread(threadId)) {
        // Its next term begins.
        const ttl = (await store.threads.get(threadId))?.ttl;
        if (ttl) await store.threads.patch(threadId, {}, { ...ttl, expiresMs: nowMs + ttl.ttlMs }, nowMs);
      }
    }
    await store.events.deleteExpired(nowMs);
    await store.state.items.deleteExpired(nowMs);
    await store.webhooks.deleteEndedBefore(nowMs - DELIVERY_MS);
  };

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await clock.sleep(settings.intervalMs, stopping.signal);
      if (stopping.signal.aborted) return;
      await sweep().catch((error: unknown) => log.error({ err: error }, 'expired data could not be removed'));
    }
  };

  return {
    start: () => {
      loop ??= run();
    },
    stop: async () => {
      stopping.abort();
      await loop;
    },
  };
}
