import assert from 'node:assert/strict';
import { test } from 'node:test';
import { COUNTER_NAMES, createCounterTable, openCounterTable } from '../../src/core/counters.ts';
import { HISTOGRAMS } from '../../src/core/histograms.ts';

test('every thread counts in its own row and all see the sum', () => {
  const table = createCounterTable(3);
  table.row(0).add('requests');
  openCounterTable(table.shared).row(2).add('requests', 41);
  assert.equal(table.total('requests'), 42);
  assert.equal(table.value(2, 'requests'), 41);
  assert.equal(table.totals().requests_busy, 0);
  assert.equal(Object.keys(table.totals()).length, COUNTER_NAMES.length);
  assert.throws(() => table.row(3), /counter row 3 of 3/);
});

test('a value falls into the first bucket whose bound it does not exceed, or into the last', () => {
  const table = createCounterTable(2);
  const { bounds } = HISTOGRAMS.batch_runs;
  for (const value of [0, 1, 2, 3, 10_000, 10_001]) table.row(1).observe('batch_runs', value);
  const { counts, sum } = table.histogram('batch_runs');
  assert.equal(counts.length, bounds.length + 1);
  assert.deepEqual(
    counts.flatMap((count, bucket) => (count === 0 ? [] : [[bounds[bucket] ?? 'beyond', count]])),
    [
      [1, 2],
      [2, 1],
      [5, 1],
      [10_000, 1],
      ['beyond', 1],
    ],
  );
  assert.equal(sum, 20_007);
});

test('no figure touches its neighbours', () => {
  const table = createCounterTable(1);
  for (const name of COUNTER_NAMES) table.row(0).add(name);
  table.row(0).observe('ack_seconds', 1000);
  table.row(0).observe('upload_seconds', 0);
  assert.ok(COUNTER_NAMES.every((name) => table.total(name) === 1));
  assert.equal(table.histogram('ack_seconds').counts.at(-1), 1);
  assert.equal(table.histogram('upload_seconds').counts[0], 1);
  assert.equal(table.histogram('upload_seconds').sum, 0);
  assert.ok(table.histogram('body_size_bytes').counts.every((count) => count === 0));
});
