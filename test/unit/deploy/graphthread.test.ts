import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/core/log.ts';
import type { GraphWorkerData, RunOrder } from '../../../src/deploy/graph/protocol.ts';
import { GraphThread } from '../../../src/deploy/graph/thread.ts';

const LOAD_MS = 3000;
const STALL_MS = 1500;

/** Its event loop stands still while it loads; from then on it beats, and ends what it is given, or hangs. */
const worker = (onRun: string): URL =>
  new URL(
    `data:text/javascript,${encodeURIComponent(`
      import { parentPort, workerData } from 'node:worker_threads';
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${LOAD_MS});
      setInterval(() => Atomics.add(workerData.beat, 0, 1), 20);
      parentPort.on('message', ({ kind, order }) => { if (kind === 'run') { ${onRun} } });
      parentPort.postMessage([{ kind: 'ready' }]);
    `)}`,
  );

/** What becomes of a run that is given to a thread while that still loads. */
async function outcomeOf(onRun: string): Promise<string> {
  const thread = new GraphThread(
    {
      workerUrl: worker(onRun),
      data: { beatIntervalMs: 20 } as GraphWorkerData,
      environment: {},
      maxHeapMb: 64,
      stallTimeoutMs: STALL_MS,
      abortGraceMs: 1000,
      log: silentLog,
      counters: { add: () => undefined, observe: () => undefined },
    },
    () => undefined,
  );
  const outcome = await new Promise<string>((resolve) => {
    thread.run({ key: 1 } as RunOrder, {
      event: () => undefined,
      settled: () => Promise.resolve(),
      ended: () => resolve('ended'),
      lost: ({ reason }) => resolve(reason),
    });
  });
  thread.end('over', null);
  await thread.gone;
  return outcome;
}

test('a thread may load for longer than it may stand still with a run', async () => {
  const end = `parentPort.postMessage([{ kind: 'ended', key: order.key, end: {}, stateCleared: false }]);`;
  assert.equal(await outcomeOf(end), 'ended');
});

test('a thread that stands still with a run from before it was ready is ended', async () => {
  const reason = `The graph worker did not respond for ${STALL_MS} ms.`;
  assert.equal(await outcomeOf('for (;;);'), reason);
});
