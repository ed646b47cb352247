/** Empties shard 0 of a ring set, for bench/pool.ts: what is measured there ends in the ring. */
import { parentPort, workerData } from 'node:worker_threads';
import { createRecordWindow, openShardReader } from '../src/ring/reader.ts';
import type { RingSet } from '../src/ring/layout.ts';

const reader = openShardReader(workerData as RingSet, 0);
const window = createRecordWindow(4096);
// Keeps the event loop alive; a wait on shared memory does not.
parentPort?.on('message', () => undefined);
for (;;) {
  while (reader.read(window, 1 << 30) > 0) reader.release();
  await reader.wait(1000);
}
