import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatFor, renderFamilies, type Family } from '../../src/observe/exposition.ts';

const families: Family[] = [
  {
    type: 'counter',
    name: 'things',
    help: 'A "thing" is\nC:\\thing.',
    samples: [
      { labels: {}, value: 3 },
      { labels: { path: 'a\\b"c\nd', empty: '' }, value: 1.5 },
    ],
  },
  {
    type: 'plain-counter',
    name: 'otelcol_spans',
    help: 'Spans.',
    samples: [{ labels: {}, value: 9_007_199_254_740_991 }],
  },
  { type: 'gauge', name: 'level', help: '', samples: [{ labels: {}, value: -Infinity }] },
  {
    type: 'histogram',
    name: 'wait_seconds',
    help: 'Waits.',
    samples: [{ labels: { shard: '0' }, bounds: [0.5, 1], counts: [2, 0, 3], sum: 12.25 }],
  },
];

test('the classic text format: escaped help and labels, buckets cumulated', () => {
  assert.equal(
    renderFamilies(families, 'text'),
    String.raw`# HELP things_total A "thing" is\nC:\\thing.
# TYPE things_total counter
things_total 3
things_total{path="a\\b\"c\nd",empty=""} 1.5
# HELP otelcol_spans Spans.
# TYPE otelcol_spans counter
otelcol_spans 9007199254740991
# HELP level 
# TYPE level gauge
level -Inf
# HELP wait_seconds Waits.
# TYPE wait_seconds histogram
wait_seconds_bucket{shard="0",le="0.5"} 2
wait_seconds_bucket{shard="0",le="1"} 2
wait_seconds_bucket{shard="0",le="+Inf"} 5
wait_seconds_sum{shard="0"} 12.25
wait_seconds_count{shard="0"} 5
`,
  );
});

test('OpenMetrics: families without `_total`, bounds as floats, counters of other names unknown, an end', () => {
  assert.equal(
    renderFamilies(families, 'openmetrics'),
    String.raw`# HELP things A \"thing\" is\nC:\\thing.
# TYPE things counter
things_total 3
things_total{path="a\\b\"c\nd",empty=""} 1.5
# HELP otelcol_spans Spans.
# TYPE otelcol_spans unknown
otelcol_spans 9007199254740991
# HELP level 
# TYPE level gauge
level -Inf
# HELP wait_seconds Waits.
# TYPE wait_seconds histogram
wait_seconds_bucket{shard="0",le="0.5"} 2
wait_seconds_bucket{shard="0",le="1.0"} 2
wait_seconds_bucket{shard="0",le="+Inf"} 5
wait_seconds_sum{shard="0"} 12.25
wait_seconds_count{shard="0"} 5
# EOF
`,
  );
});

test('Accept decides the format by its weights; text is what everybody reads', () => {
  const prometheus =
    'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,' +
    'text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2';
  assert.equal(formatFor(prometheus), 'openmetrics');
  assert.equal(formatFor('application/openmetrics-text'), 'openmetrics');
  assert.equal(formatFor('Application/OpenMetrics-Text; version=1.0.0'), 'openmetrics');
  for (const accept of ['', '*/*', 'text/plain', 'text/html', 'text/plain, application/openmetrics-text;q=0.5']) {
    assert.equal(formatFor(accept), 'text', accept);
  }
  assert.equal(formatFor('application/openmetrics-text;q=0, text/plain;q=0.1'), 'text');
  assert.equal(formatFor('application/openmetrics-text;q=what'), 'text');
});
