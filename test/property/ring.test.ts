import assert from 'node:assert/strict';
import { once } from 'node:events';
import test from 'node:test';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { createRingSet, headWord, tailWord } from '../../src/ring/layout.ts';
import { createRecordWindow, openShardReader } from '../../src/ring/reader.ts';
import { openRingWriter } from '../../src/ring/writer.ts';
import { makeRecord, windowRecords } from '../unit/ringrecord.ts';
import type { ProducerPlay, ReaderPlay, ReaderResult } from './ringthreads.ts';

interface Entry {
  producer: number;
  number: number;
  lengthBytes: number;
}

const RING_BYTES = 1024;
const lengthArbitrary = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 1, max: 64 }) },
  { weight: 1, arbitrary: fc.constantFrom(1, 63, 64) },
);

type Step =
  | { kind: 'offer'; producer: number; shard: number; words: number }
  | { kind: 'publish'; producer: number }
  | { kind: 'discard'; producer: number }
  | { kind: 'reopen-writer'; producer: number }
  | { kind: 'read'; shard: number; maxBytes: number }
  | { kind: 'release'; shard: number }
  | { kind: 'reopen-reader'; shard: number };

const stepArbitrary: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant('offer' as const),
      producer: fc.nat(1),
      shard: fc.nat(1),
      words: lengthArbitrary,
    }),
  },
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('publish' as const), producer: fc.nat(1) }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('discard' as const, 'reopen-writer' as const), producer: fc.nat(1) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('read' as const),
      shard: fc.nat(1),
      maxBytes: fc.integer({ min: 1, max: 3000 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('release' as const), shard: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reopen-reader' as const), shard: fc.nat(1) }) },
);

/** The ring as plain arrays: of each record only who wrote it and how long it is. */
interface Model {
  published: Entry[];
  /** How many of `published` are read but not released. */
  readCount: number;
  kept: Entry[];
}

test('two producers and two shards behave like plain arrays, whatever is done in whatever order', () => {
  fc.assert(
    fc.property(fc.array(stepArbitrary, { maxLength: 200 }), fc.constantFrom(0, 0x7ffffe00, -512), (steps, start) => {
      const set = createRingSet({ producerCount: 2, shardCount: 2, ringBytes: RING_BYTES });
      const words = new Int32Array(set.control);
      for (const slot of [0, 1]) {
        for (const shard of [0, 1]) {
          Atomics.store(words, tailWord(set, slot, shard), start);
          Atomics.store(words, headWord(set, slot, shard), start);
        }
      }
      const writers = [openRingWriter(set, 0), openRingWriter(set, 1)];
      const readers = [openShardReader(set, 0), openShardReader(set, 1)];
      const models = new Map<string, Model>();
      const modelOf = (producer: number, shard: number): Model => {
        const key = `${producer}/${shard}`;
        const model = models.get(key) ?? { published: [], readCount: 0, kept: [] };
        models.set(key, model);
        return model;
      };
      const sum = (entries: Entry[]): number => entries.reduce((bytes, entry) => bytes + entry.lengthBytes, 0);
      const window = createRecordWindow(256);
      let number = 0;
      for (const step of steps) {
        if (step.kind === 'offer') {
          const lengthBytes = step.words * 8;
          const writer = writers[step.producer];
          const model = modelOf(step.producer, step.shard);
          number++;
          const taken = writer?.offer(step.shard, makeRecord(step.producer, number, lengthBytes), 0, lengthBytes);
          const usedBytes = sum(model.published) + sum(model.kept);
          // A skip costs less than the record that caused it, so both bounds hold whatever lies before.
          if (taken === true) assert.ok(usedBytes + lengthBytes <= RING_BYTES);
          else assert.ok(usedBytes > 0, 'an empty ring takes everything');
          if (taken === true) model.kept.push({ producer: step.producer, number, lengthBytes });
        } else if (step.kind === 'publish') {
          writers[step.producer]?.publish();
          for (const shard of [0, 1]) {
            const model = modelOf(step.producer, shard);
            model.published.push(...model.kept.splice(0));
          }
        } else if (step.kind === 'discard' || step.kind === 'reopen-writer') {
          if (step.kind === 'discard') writers[step.producer]?.discard();
          else writers[step.producer] = openRingWriter(set, step.producer);
          for (const shard of [0, 1]) modelOf(step.producer, shard).kept = [];
        } else if (step.kind === 'read') {
          const reader = readers[step.shard];
          const unreadCount = [0, 1].reduce((count, producer) => {
            const model = modelOf(producer, step.shard);
            return count + model.published.length - model.readCount;
          }, 0);
          const count = reader?.read(window, step.maxBytes);
          const seen = windowRecords(window);
          assert.equal(count, seen.length);
          if (unreadCount > 0) assert.ok(seen.length > 0, 'what is published can be read');
          for (const record of seen) {
            const model = modelOf(record.producer, step.shard);
            assert.deepEqual(record, model.published[model.readCount], 'in order, nothing twice, nothing missing');
            model.readCount++;
          }
          if (seen.length > 1) assert.ok(sum(seen) <= step.maxBytes);
        } else if (step.kind === 'release') {
          readers[step.shard]?.release();
          for (const producer of [0, 1]) {
            const model = modelOf(producer, step.shard);
            model.published.splice(0, model.readCount);
            model.readCount = 0;
          }
        } else {
          readers[step.shard] = openShardReader(set, step.shard);
          for (const producer of [0, 1]) modelOf(producer, step.shard).readCount = 0;
        }
      }
    }),
    { numRuns: 400 },
  );
});

test('with a thread for every producer and reader, each record arrives once, whole, in its producer’s order', async () => {
  const file = new URL('./ringthreads.ts', import.meta.url);
  const threads = Array.from({ length: 4 }, () => new Worker(file, { workerData: 'ringthreads' }));
  const play = async (thread: number, message: ProducerPlay | ReaderPlay): Promise<unknown> => {
    const worker = threads[thread];
    assert.ok(worker);
    const answer = once(worker, 'message');
    worker.postMessage(message);
    return ((await answer) as unknown[])[0];
  };
  const entryArbitrary = fc.record({
    shard: fc.nat(1),
    words: lengthArbitrary,
    publish: fc.boolean(),
  });
  const scriptArbitrary = fc.array(entryArbitrary, { minLength: 300, maxLength: 1500 });
  try {
    await fc.assert(
      fc.asyncProperty(
        fc.tuple(scriptArbitrary, scriptArbitrary),
        fc.constantFrom([0, 0], [0, 50], [50, 0]),
        fc.integer({ min: 1, max: 4000 }),
        fc.integer({ min: 1, max: 100 }),
        async (scripts, [producerPause, readerPause], maxBytes, windowCount) => {
          const set = createRingSet({ producerCount: 2, shardCount: 2, ringBytes: RING_BYTES });
          const plays = scripts.map((script) =>
            script.map(({ shard, words, publish }) => ({ shard, lengthBytes: words * 8, publish })),
          );
          const expected = plays.flatMap((script, producer) =>
            script.map((entry, number) => ({ producer, number, lengthBytes: entry.lengthBytes, shard: entry.shard })),
          );
          const answers = await Promise.all([
            ...plays.map((script, slot) =>
              play(slot, { role: 'producer', set, slot, script, pauseEvery: producerPause ?? 0 }),
            ),
            ...[0, 1].map((shard) =>
              play(2 + shard, {
                role: 'reader',
                set,
                shard,
                expectedCount: expected.filter((entry) => entry.shard === shard).length,
                maxBytes,
                windowCount,
                pauseEvery: readerPause ?? 0,
              }),
            ),
          ]);
          assert.deepEqual(answers.slice(0, 2), ['done', 'done']);
          for (const shard of [0, 1]) {
            const { seen } = answers[2 + shard] as ReaderResult;
            for (const producer of [0, 1]) {
              const own = (list: Entry[]): Entry[] => list.filter((entry) => entry.producer === producer);
              assert.deepEqual(
                own(seen),
                own(expected.filter((entry) => entry.shard === shard).map(({ shard: _, ...entry }) => entry)),
              );
            }
          }
        },
      ),
      { numRuns: 30 },
    );
  } finally {
    await Promise.all(threads.map((thread) => thread.terminate()));
  }
});
