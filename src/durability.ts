/** Wires the journal of durable acknowledgement into the service: DURABLE_ACK. */
import { join, resolve } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { Config } from './config.ts';
import { createJournal, type Journal, type JournalLinks } from './journal/journal.ts';

/** Null where an acknowledgement means memory. */
export function createDurability(config: Config, links: JournalLinks): Journal | null {
  if (!config.durableAck) return null;
  return createJournal(
    {
      folder: resolve(config.journalDir ?? join(config.dataDir ?? '.', 'journal')),
      startThread: (data) =>
        new Worker(new URL('../workers/journal.ts', import.meta.url), { workerData: data, name: 'journal' }),
      maxBytes: config.journalMaxBytes,
    },
    links,
  );
}
