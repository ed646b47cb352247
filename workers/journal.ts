/** The thread of the journal: owns the folder and its files. The logic is in src/journal/thread.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import { Fault } from '../src/core/outcome.ts';
import type { JournalWorkerData } from '../src/journal/message.ts';
import { runJournalThread } from '../src/journal/thread.ts';

if (parentPort === null) throw new Fault('workers/journal.ts runs as a worker thread only');
runJournalThread(parentPort, workerData as JournalWorkerData);
