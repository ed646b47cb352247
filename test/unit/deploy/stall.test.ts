/** When a graph's thread counts as stalled. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCounterTable } from '../../../src/core/counters.ts';
import { silentLog } from '../../../src/core/log.ts';
import { GraphThread, type Loss } from '../../../src/deploy/graph/thread.ts';
import type { RunOrder } from '../../../src/deploy/graph/protocol.ts';
import type { JsonText } from '../../../src/deploy/store/model.ts';

const STALL_TIMEOUT_MS = 1500;
const BEAT_INTERVAL_MS = 100;
/** Loads, and stands still from then on. */
const NEVER_BEATS = new URL(
  `data:text/javascript,${encodeURIComponent(`
    import { parentPort } from 'node:worker_threads';
    parentPort.postMessage([{ kind: 'ready' }]);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  `)}`,
);

const ORDER: RunOrder = {
  key: 1,
  runId: 'run',
  threadId: 'thread',
  graphId: 'graph',
  attempt: 1,
  isFresh: true,
  temporary: false,
  kwargsJson: '{}' as JsonText,
  listening: false,
  resumable: false,
};

test('a silent thread is not ended for the time in which nobody could look', async () => {
  const thread = new GraphThread(
    {
      workerUrl: NEVER_BEATS,
      data: { graphs: [], folder: '', location: null, trace: null, beatIntervalMs: BEAT_INTERVAL_MS },
      environment: {},
      maxHeapMb: 64,
      stallTimeoutMs: STALL_TIMEOUT_MS,
      abortGraceMs: STALL_TIMEOUT_MS,
      log: silentLog,
      counters: createCounterTable(1).row(0),
    },
    () => undefined,
  );
  await thread.born;
  const lost = new Promise<Loss>((resolve) =>
    thread.run(ORDER, {
      event: () => undefined,
      settled: () => Promise.resolve(),
      ended: () => undefined,
      lost: resolve,
    }),
  );
  // As after SIGSTOP, or without a processor.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * STALL_TIMEOUT_MS);
  const backMs = performance.now();
  const { reason, suspect } = await lost;
  assert.match(reason, /did not respond for 1500 ms/);
  assert.equal(suspect, true);
  // The late look counts for two of 200 ms; the rest has to be seen.
  const seenMs = performance.now() - backMs;
  assert.ok(seenMs > STALL_TIMEOUT_MS - 500, `ended ${Math.round(seenMs)} ms after the look that came late`);
});
