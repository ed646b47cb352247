/**
 * The spool's folder, on the main thread: locks it for this process and makes it ready before the shippers use their parts
 * of it. A folder that another process has ends the start. One that cannot be written does not: batches wait in memory,
 * the readiness says so, and it is tried again until it works.
 */
import { join, resolve } from 'node:path';
import type { Config } from './config.ts';
import type { Counters } from './core/counters.ts';
import { nodeBackgroundDisk } from './core/disk.ts';
import type { Clock } from './core/lifecycle.ts';
import type { Log } from './core/log.ts';
import { SECOND_MS } from './core/units.ts';
import { lockHome, settleHome, type Home } from './upload/spool/home.ts';
import { DEAD_RATIO, type SpoolWishes } from './upload/spool/settings.ts';

export interface OwnedSpool {
  /** Whether the folder is ready; if not, `onReady` is called once it is. Rejects with one readable line. */
  start(onReady: () => void): Promise<boolean>;
  reasons(): string[];
  /** When the shippers have ended. */
  stop(): void;
}

const RETRY_MS = 5 * SECOND_MS;

/** As it is named to people and used by the `spool` command. */
export function spoolFolder(config: Pick<Config, 'spoolDir' | 'dataDir'>): string {
  return resolve(config.spoolDir ?? join(config.dataDir ?? '.', 'spool'));
}

/** Null when nothing is to be kept on disk. */
export function spoolWishes(config: Config): SpoolWishes | null {
  if (config.spoolMaxBytes === 0) return null;
  return {
    folder: spoolFolder(config),
    maxBytes: Math.floor((config.spoolMaxBytes * (1 - DEAD_RATIO)) / config.shipShards),
    maxDeadBytes: Math.floor(config.spoolMaxBytes * DEAD_RATIO),
    maxAgeMs: config.spoolMaxAgeMs,
  };
}

export function ownSpool(
  folder: string,
  shardCount: number,
  links: { readonly counters: Counters; readonly log: Log; readonly clock: Clock },
): OwnedSpool {
  const { counters, log, clock } = links;
  const stopping = new AbortController();
  let home: Home | null = null;
  let failure: string | null = null;

  const open = async (): Promise<boolean> => {
    try {
      await nodeBackgroundDisk.makeFolder(folder);
      home ??= lockHome(folder);
      if (home === null) throw new Error(`${folder} is the spool of another process: give each a SPOOL_DIR of its own`);
      await settleHome(folder, shardCount);
      failure = null;
      return true;
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      // An error without a system's code is the line above.
      if (code === undefined) throw error;
      counters.add('spool_failures');
      if (failure === null)
        log.error({ folder, code, reason: message }, 'the spool cannot be used: batches wait in memory');
      failure = code;
      return false;
    }
  };
  /** Never rejects. */
  const retry = async (onReady: () => void): Promise<void> => {
    for (;;) {
      await clock.sleep(RETRY_MS, stopping.signal);
      if (stopping.signal.aborted) return;
      try {
        if (!(await open())) continue;
      } catch (error) {
        log.error({ folder, err: error }, 'the spool cannot be used: batches wait in memory');
        continue;
      }
      log.info({ folder }, 'the spool can be used');
      return onReady();
    }
  };

  return {
    start: async (onReady) => {
      const isReady = await open();
      if (!isReady) void retry(onReady);
      return isReady;
    },
    reasons: () => (failure === null ? [] : [`spool_unwritable: ${failure} for ${folder}`]),
    stop: () => {
      stopping.abort();
      home?.release();
      home = null;
    },
  };
}
