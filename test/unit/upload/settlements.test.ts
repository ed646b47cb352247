/** When the records of a request need nobody's memory any more. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createSettlements, type Settlements } from '../../../src/upload/settlements.ts';

interface Told {
  readonly settlements: Settlements;
  /** What was told since the last call, by request. */
  readonly take: () => Record<string, number>;
}

function setUp(): Told {
  let told: Record<string, number> = {};
  const settlements = createSettlements((pairs) => {
    for (let i = 0; i < pairs.length; i += 2) {
      const source = String(pairs[i]);
      told[source] = (told[source] ?? 0) + (pairs[i + 1] ?? 0);
    }
  });
  return {
    settlements,
    take: () => {
      settlements.flush();
      const taken = told;
      told = {};
      return taken;
    },
  };
}

test('what is delivered or makes no run is told with its count, what has no request is not', () => {
  const { settlements, take } = setUp();
  for (const source of [7, 7, 8]) settlements.took(source);
  settlements.dropped(9);
  settlements.settle(Uint32Array.of(7, 0, 8, 7, 0));
  settlements.settle(null);
  assert.deepEqual(take(), { 7: 2, 8: 1, 9: 1 });
  assert.deepEqual(take(), {});
});

test('a span that came before is not settled before what was in memory when it came again', () => {
  const { settlements, take } = setUp();
  settlements.took(1);
  settlements.took(2);
  settlements.repeated(3);
  settlements.took(4);
  settlements.settle(Uint32Array.of(2));
  assert.deepEqual(take(), { 2: 1 });
  settlements.settle(Uint32Array.of(4));
  assert.deepEqual(take(), { 4: 1 });
  settlements.settle(Uint32Array.of(1));
  assert.deepEqual(take(), { 1: 1, 3: 1 });
});

test('with nothing in memory a repeated span is settled at once, and one within its own request waits for the rest', () => {
  const { settlements, take } = setUp();
  settlements.repeated(1);
  assert.deepEqual(take(), { 1: 1 });
  settlements.took(2);
  settlements.repeated(2);
  settlements.dropped(2);
  assert.deepEqual(take(), { 2: 1 });
  settlements.settle(Uint32Array.of(2));
  assert.deepEqual(take(), { 2: 2 });
});

test('many repeats are all told in the end', () => {
  const { settlements, take } = setUp();
  for (let source = 1; source <= 5000; source++) {
    settlements.took(source);
    settlements.repeated(10_000 + source);
  }
  const seen = new Set<string>();
  for (let source = 5000; source >= 1; source--) {
    settlements.settle(Uint32Array.of(source));
    for (const told of Object.keys(take())) seen.add(told);
    if (source > 1) assert.equal(seen.size, 5001 - source, 'the oldest is still in memory');
  }
  assert.equal(seen.size, 10_000);
});
