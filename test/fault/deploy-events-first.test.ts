/** The stream of a run that can be resumed is never behind the run's checkpoints: what a restart does not repeat was told. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { uncounted } from '../../src/core/counters.ts';
import { silentLog } from '../../src/core/log.ts';
import { openCheckpointSaver } from '../../src/deploy/checkpoint/saver.ts';
import { createPool } from '../../src/deploy/graph/pool.ts';
import { DEFAULT_LIMITS } from '../../src/deploy/settings.ts';
import { stateLocation } from '../../src/deploy/store/location.ts';
import type { JsonText } from '../../src/deploy/store/model.ts';
import { describeOnEachEngine } from '../deploy-engines.ts';
import { FIXTURE_GRAPHS, specs } from '../deploy-server.ts';

describeOnEachEngine('checkpoints of a resumable run', (engine) => {
  for (const durability of ['sync', 'async'] as const) {
    it(`wait until the events before them are on record (${durability})`, async () => {
      const database = await engine.create();
      const store = await database.open();
      const location = stateLocation(database.location);
      const saver = await openCheckpointSaver(location);
      const pool = createPool({
        ...DEFAULT_LIMITS,
        workerUrl: new URL('../../workers/graph.ts', import.meta.url),
        data: {
          graphs: specs(FIXTURE_GRAPHS, 'steps'),
          folder: FIXTURE_GRAPHS,
          location,
          trace: null,
          beatIntervalMs: 250,
        },
        environment: {},
        threadCount: 1,
        spareCount: 0,
        log: silentLog,
        counters: uncounted,
      });
      const threadId = database.ids.next();
      const runId = database.ids.next();
      const kwargs = {
        input: { name: 'a' },
        config: { configurable: { thread_id: threadId, run_id: runId } },
        stream_mode: ['updates'],
        durability,
      };
      let heardCount = 0;
      const recordedCounts: number[] = [];
      try {
        await pool.start();
        await new Promise<void>((resolve, reject) => {
          const order = { runId, threadId, graphId: 'steps', attempt: 1, isFresh: true, temporary: false };
          pool.run(
            { ...order, resumable: true, listening: true, kwargsJson: JSON.stringify(kwargs) as JsonText },
            false,
            {
              event: () => heardCount++,
              settled: async () => {
                // Nothing is on record before this promise resolves: the checkpoints lie behind what was heard before.
                recordedCounts.push(heardCount);
                for await (const { metadata } of saver.list({ configurable: { thread_id: threadId } }))
                  if ((metadata?.step ?? 0) > (recordedCounts.at(-2) ?? 0))
                    reject(new Error(`step ${metadata?.step} is saved, ${recordedCounts.at(-2)} events are on record`));
              },
              ended: (end) => (end.kind === 'success' ? resolve() : reject(new Error(JSON.stringify(end)))),
              lost: (loss) => reject(new Error(loss.reason)),
            },
          );
        });
        assert.equal(heardCount, 3);
        assert.equal(recordedCounts.at(-1), 3, recordedCounts.join());
        assert.equal((await saver.getTuple({ configurable: { thread_id: threadId } }))?.metadata?.step, 3);
      } finally {
        await pool.stop(1000);
        await saver.close();
        await store.stop();
        await database.remove();
      }
    });
  }
});
