import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PipelineSample } from '../../src/core/pipeline.ts';
import { createHistory } from '../../src/observe/history.ts';

function sample(atMs: number, accepted: number): PipelineSample {
  return {
    atMs,
    phase: 'ready',
    reasons: [],
    counters: { spans_accepted: accepted, requests: 1 },
    gauges: { heldBytes: accepted * 2 },
    histograms: { ack_seconds: { counts: [accepted, 3], sum: 0.5 } },
  };
}

test('the history keeps the last samples, oldest first, as one array a series', () => {
  const history = createHistory(3);
  assert.deepEqual(
    history.read(0, () => true),
    { atMs: [], series: {} },
  );
  for (let n = 1; n <= 5; n++) history.add(sample(n * 1000, n));
  assert.deepEqual(
    history.read(0, () => true),
    {
      atMs: [3000, 4000, 5000],
      series: {
        'counters.spans_accepted': [3, 4, 5],
        'counters.requests': [1, 1, 1],
        'gauges.heldBytes': [6, 8, 10],
        'histograms.ack_seconds.sum': [0.5, 0.5, 0.5],
        'histograms.ack_seconds.0': [3, 4, 5],
        'histograms.ack_seconds.1': [3, 3, 3],
      },
    },
  );
});

test('a reader gets only what it asks for, and only as far back', () => {
  const history = createHistory(10);
  for (let n = 1; n <= 5; n++) history.add(sample(n * 1000, n));
  assert.deepEqual(
    history.read(4000, (name) => name === 'gauges.heldBytes'),
    { atMs: [4000, 5000], series: { 'gauges.heldBytes': [8, 10] } },
  );
});
