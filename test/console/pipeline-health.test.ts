/** What the pipeline page makes of figures: rates, quantiles, and a judgement in words. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { figuresOf, groupOf } from '../../src/console/app/pages/pipeline/figures.ts';
import { judge } from '../../src/console/app/pages/pipeline/health.ts';
import { quantile } from '../../src/console/app/pages/pipeline/quantile.ts';
import { createTrack, MAX_ROW_COUNT } from '../../src/console/app/pages/pipeline/track.ts';
import { createView } from '../../src/console/app/pages/pipeline/view.ts';
import { COUNTERS } from '../../src/core/counters.ts';
import { HISTOGRAMS } from '../../src/core/histograms.ts';
import type { Figures, PipelineSample, PipelineSnapshot } from '../../src/core/pipeline.ts';
import { GAUGES } from '../../src/upload/gauges.ts';

const NOW_MS = 1_800_000_000_000;
const LIMITS = {
  backlogBytes: 1000,
  admittedBytes: 1000,
  parkedBytes: 1000,
  heldBytes: 1000,
  reading: 2,
  decodeThreads: 2,
};
const WELL: Figures = { reading: 2, decodeThreads: 2, admittedBytes: 0, tenants: 1 };

function sample(
  atMs: number,
  counters: Figures,
  gauges: Figures = WELL,
  more: Partial<PipelineSample> = {},
): PipelineSample {
  return { atMs, phase: 'ready', reasons: [], counters, gauges, histograms: {}, ...more };
}

/** A minute without anything, then what is given. */
function judged(counters: Figures, gauges: Figures = {}, more: Partial<PipelineSample> = {}) {
  const track = createTrack();
  track.load({ atMs: [], series: {} });
  track.add(sample(NOW_MS - 10_000, Object.fromEntries(Object.keys(counters).map((name) => [name, 0]))));
  const now = sample(NOW_MS, counters, { ...WELL, ...gauges }, more);
  track.add(now);
  const snapshot: PipelineSnapshot = {
    ...now,
    version: '1',
    startedMs: NOW_MS - 60_000,
    limits: LIMITS,
    shards: [],
    meanings: { counters: COUNTERS, gauges: GAUGES, histograms: HISTOGRAMS },
  };
  return judge(createView(snapshot, now, track));
}

test('nothing happened: idle; spans get through: well', () => {
  assert.deepEqual(judged({}).overall, { level: 'idle', reasons: [] });
  const { overall, stages } = judged({ requests: 1, spans_accepted: 5, runs_delivered: 5 });
  assert.deepEqual(overall, { level: 'well', reasons: [] });
  assert.equal(stages.backend.level, 'well');
  assert.equal(stages.spool.level, 'idle');
});

test('every kind of trouble has its level and its words, at its stage and in all', () => {
  const cases: [
    Parameters<typeof judged>,
    stage: keyof ReturnType<typeof judge>['stages'],
    level: string,
    words: RegExp,
  ][] = [
    [
      [{ 'busy_rings-full': 3 }],
      'accept',
      'full',
      /^3 requests put off in the last minute: the pipeline behind is full$/,
    ],
    [[{ refused_unauthenticated: 1 }], 'accept', 'degraded', /^1 request refused in the last minute: no API key$/],
    [[{}, { backlogBytes: 950 }], 'rings', 'full', /^Rings: 95 % full \(950 B of 1000 B\)$/],
    [[{}, { parkedBytes: 900 }], 'assemble', 'full', /90 % full/],
    [[{}, { decodeThreads: 1 }], 'decode', 'degraded', /^1 of 2 decode threads are alive$/],
    [[{}, { decodeThreads: 0 }], 'decode', 'down', /^0 of 2/],
    [
      [{ ship_workers_lost: 2 }],
      'upload',
      'degraded',
      /^2 uploading threads died and were replaced in the last minute$/,
    ],
    [[{}, { reading: 1, fullSinceMs: NOW_MS - 5000 }], 'upload', 'full', /^1 of 2 shippers takes no more since 5 s$/],
    [[{ upload_failures: 4, upload_attempts: 9, runs_delivered: 1 }], 'upload', 'degraded', /^4 of 9 uploads failed/],
    [
      [{ uploads_5xx: 4, upload_failures: 4 }],
      'backend',
      'down',
      /^No upload succeeds \(4 × failed in the backend\); nothing was/,
    ],
    [
      [{ runs_delivered: 1 }, { tenants: 3, downTenants: 1 }],
      'backend',
      'degraded',
      /^Uploads fail for 1 of 3 API keys$/,
    ],
    [[{}, { downTenants: 1, lastDeliveredMs: NOW_MS - 125_000 }], 'backend', 'down', /last delivered 2 m 05 s ago$/],
    [[{}, { spoolState: 3 }], 'spool', 'down', /^The spool cannot be written$/],
    [[{}, { shelvedBatches: 7 }], 'spool', 'degraded', /^7 batches wait until the backend answers again$/],
  ];
  for (const [figures, stage, level, words] of cases) {
    const { overall, stages } = judged(...figures);
    assert.equal(stages[stage].level, level, JSON.stringify(figures));
    assert.match(stages[stage].reasons.join('\n'), new RegExp(words.source, 'm'), JSON.stringify(figures));
    assert.ok(
      overall.reasons.some((reason) => words.test(reason)),
      JSON.stringify(figures),
    );
    assert.notEqual(overall.level, 'well');
  }
});

test('losses that nobody asked for are told; those that were asked for are none', () => {
  const { overall } = judged({ 'dropped_spool-full': 2, dropped_filtered: 9, 'dropped_converter-dropped': 9 });
  assert.equal(overall.level, 'degraded');
  assert.deepEqual(overall.reasons, [
    '2 spans dropped in the last minute: no room to hold it any longer, oldest first',
  ]);
});

test('the worst comes first, and the process’s own reasons are told too', () => {
  const { overall } = judged(
    { refused_malformed: 1 },
    { decodeThreads: 0 },
    { reasons: ['no decode thread is alive'] },
  );
  assert.equal(overall.level, 'down');
  assert.match(overall.reasons[0] ?? '', /decode threads/);
  assert.ok(overall.reasons.includes('No decode thread is alive'));
});

test('every figure of the process has a stage, and a value that people can read', () => {
  const names = [...Object.keys(COUNTERS), ...Object.keys(GAUGES)];
  assert.deepEqual(
    names.filter((name) => groupOf(name) === 'process'),
    [],
  );
  assert.equal(groupOf('somethingOfTomorrow'), 'process');
  assert.equal(groupOf('journalBytes'), 'spool');
});

test('figures that come later are shown as well, zeros when they are none', () => {
  const track = createTrack();
  track.add(sample(1000, { requests: 1 }));
  track.add(sample(2000, { requests: 3, tomorrow: 5 }));
  assert.deepEqual(track.column('counters.tomorrow'), [0, 5]);
  assert.equal(track.rate('counters.requests', 1000), 2);
  const now = sample(3000, { requests: 3, tomorrow: 5 }, { tomorrowBytes: 2048 });
  const view = createView(
    {
      ...now,
      version: '1',
      startedMs: 0,
      limits: {},
      shards: [],
      meanings: { counters: {}, gauges: {}, histograms: {} },
    },
    now,
    track,
  );
  const shown = figuresOf(view).map(({ name, value }) => `${name} ${value}`);
  assert.deepEqual(shown, ['requests 3', 'tomorrow 5', 'tomorrowBytes 2 KiB']);
});

test('the track forgets what is older than it keeps, and a sample that is not newer', () => {
  const track = createTrack();
  for (let n = 1; n <= MAX_ROW_COUNT + 500; n++) track.add(sample(n * 1000, { requests: n }));
  track.add(sample(5000, { requests: 1 }));
  assert.ok(track.atMs.length >= MAX_ROW_COUNT && track.atMs.length < MAX_ROW_COUNT + 100);
  assert.equal(track.column('counters.requests').length, track.atMs.length);
  assert.equal(track.growth('counters.requests', 60_000), 60);
  assert.equal(track.rate('counters.requests', 60_000), 1);
});

test('a quantile lies within its bucket; beyond the last bound it is that bound; of nothing there is none', () => {
  assert.equal(quantile([1, 2, 4], [0, 0, 0, 0], 0.5), null);
  assert.equal(quantile([1, 2, 4], [10, 0, 0, 0], 0.5), 0.5);
  assert.equal(quantile([1, 2, 4], [5, 0, 5, 0], 0.75), 3);
  assert.equal(quantile([1, 2, 4], [0, 0, 0, 3], 0.99), 4);
  assert.equal(quantile([1, 2, 4], [99, 0, 0, 1], 0.99), 1);
});
