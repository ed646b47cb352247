/** The oracle of the fault run finds what it is there to find, and a seed says all there is to say about a plan. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { BackendReport } from '../chaos/backend.ts';
import { checkArrival, keyOf, runIdOf, type ArrivedRun } from '../chaos/check.ts';
import { drawPlan } from '../chaos/plan.ts';
import { tally } from '../chaos/verdict.ts';
import { traceOf, type TraceSpec } from '../chaos/workload.ts';

const SEED = 11;

function numberWhere(fits: (trace: TraceSpec) => boolean): number {
  for (let number = 0; number < 1000; number++) if (fits(traceOf(SEED, number))) return number;
  return assert.fail('no such trace');
}

/** The run that a span of the workload becomes. */
function arrived(number: number, index: number): ArrivedRun {
  const trace = traceOf(SEED, number);
  const span = trace.spans[index] ?? assert.fail();
  const id = runIdOf(trace, index);
  const path: string[] = [];
  for (let at = index; at >= 0; at = trace.spans[at]?.parent ?? -1) path.unshift(runIdOf(trace, at));
  return {
    apiKey: keyOf(number),
    id,
    run: {
      id,
      trace_id: runIdOf(trace, 0),
      ...(path.length > 1 && { parent_run_id: path.at(-2) }),
      dotted_order: path.map((each) => `20260101T000000000000Z${each}`).join('.'),
      name: span.name,
      start_time: new Date(span.startMs).toISOString().replace('Z', '000Z'),
      end_time: new Date(span.endMs).toISOString().replace('Z', '000Z'),
      run_type: 'llm',
    },
    fields: {
      inputs: JSON.stringify({ messages: [{ role: 'user', content: span.question }] }),
      outputs: JSON.stringify({ messages: [{ role: 'assistant', content: span.answer }] }),
      extra: JSON.stringify({ metadata: { ...span.attributes, other: 1 } }),
    },
  };
}

test('what arrives as it was sent differs in nothing, whatever the trace', () => {
  for (let number = 0; number < 200; number++) {
    for (const index of traceOf(SEED, number).spans.keys()) {
      assert.deepEqual(checkArrival(SEED, arrived(number, index)), { number, index, differences: [] });
    }
  }
});

test('every change of a run is found', () => {
  const number = numberWhere(({ spans, requests }) => requests.length === 1 && (spans[2]?.parent ?? 0) === 1);
  const good = arrived(number, 2);
  const root = runIdOf(traceOf(SEED, number), 0);
  const changes: [string, ArrivedRun][] = [
    ['key', { ...good, apiKey: 'another' }],
    ['name', { ...good, run: { ...good.run, name: 'x' } }],
    ['start_time', { ...good, run: { ...good.run, start_time: '2026-01-01T00:00:00.000000Z' } }],
    ['end_time', { ...good, run: { ...good.run, end_time: null } }],
    ['run_type', { ...good, run: { ...good.run, run_type: 'chain' } }],
    ['inputs', { ...good, fields: { ...good.fields, inputs: '{}' } }],
    ['outputs', { ...good, fields: { ...good.fields, outputs: '{"messages":[]}' } }],
    ['chaos.flag', { ...good, fields: { ...good.fields, extra: '{"metadata":{}}' } }],
    ['parent', { ...good, run: { ...good.run, parent_run_id: root } }],
    ['parent', { ...good, run: { ...good.run, dotted_order: `Z${root}.Z${good.id}` } }],
  ];
  for (const [what, changed] of changes) {
    const { differences = [] } = checkArrival(SEED, changed) ?? {};
    assert.ok(
      differences.some((difference) => difference.startsWith(what)),
      `${what}: ${differences.join()}`,
    );
  }
});

test('a span of a trace in two requests may hang on any ancestor, and on nothing else', () => {
  const number = numberWhere(({ spans, requests }) => requests.length === 2 && (spans[2]?.parent ?? 0) === 1);
  const good = arrived(number, 2);
  const trace = traceOf(SEED, number);
  const below = (parent: string): ArrivedRun => ({
    ...good,
    run: { ...good.run, parent_run_id: parent, dotted_order: `Z${runIdOf(trace, 0)}.Z${good.id}` },
  });
  assert.deepEqual(checkArrival(SEED, below(runIdOf(trace, 0)))?.differences, []);
  assert.equal(checkArrival(SEED, below(runIdOf(trace, 1)))?.differences.length, 1);
});

test('the root of a trace in two requests may have the start of a child that came before it, and no other', () => {
  const fits = ({ spans, requests }: TraceSpec): boolean => {
    const [early = [], late] = requests;
    return late !== undefined && early.some((index) => spans[index]?.startMs !== spans[0]?.startMs);
  };
  const number = numberWhere(fits);
  const trace = traceOf(SEED, number);
  const early = trace.requests[0]?.find((index) => trace.spans[index]?.startMs !== trace.spans[0]?.startMs) ?? 0;
  const good = arrived(number, 0);
  const starting = (startMs: number): ArrivedRun => ({
    ...good,
    run: { ...good.run, start_time: new Date(startMs).toISOString().replace('Z', '000Z') },
  });
  assert.deepEqual(checkArrival(SEED, starting(trace.spans[early]?.startMs ?? 0))?.differences, []);
  assert.equal(checkArrival(SEED, starting((trace.spans[0]?.startMs ?? 0) - 1))?.differences.length, 1);
});

test('ids that were never sent are strangers', () => {
  const good = arrived(3, 0);
  assert.equal(checkArrival(SEED + 1, good), null);
  assert.equal(checkArrival(SEED, { ...good, id: runIdOf(traceOf(SEED, 4), 0) }), null);
  assert.equal(checkArrival(SEED, { ...good, run: { ...good.run, trace_id: 'x' } }), null);
  const last = traceOf(SEED, 3).spans.length;
  const beyond = `00000000-0000-0000-5000-0000000003${last.toString(16).padStart(4, '0')}`.replace(
    /-5000-0000000003/,
    '-5000-00000003',
  );
  assert.equal(checkArrival(SEED, { ...good, id: beyond }), null);
});

test('the tally tells what is missing, what came twice, and what came without an acknowledgement', () => {
  const report: BackendReport = {
    uploadCount: 0,
    takenUploadCount: 0,
    arrivals: [
      [1, [1, 2]],
      [2, [1]],
      [3, [0, 1]],
    ],
    differences: [],
    differenceCount: 0,
    strangers: [],
    strangerCount: 0,
    followedCount: 0,
    answersByStatus: {},
  };
  const result = tally(
    [
      { traceNumber: 1, spans: [0, 1], acknowledgedMs: 10 },
      { traceNumber: 2, spans: [0], acknowledgedMs: null },
      { traceNumber: 3, spans: [1, 0], acknowledgedMs: 20 },
      { traceNumber: 4, spans: [0], acknowledgedMs: 30 },
    ],
    report,
  );
  assert.deepEqual(
    { ...result, missing: result.missing.length },
    {
      requestCount: 4,
      acknowledgedRequestCount: 3,
      acknowledgedSpanCount: 5,
      missingSpanCount: 2,
      missing: 2,
      arrivedSpanCount: 4,
      unacknowledgedArrivedCount: 1,
      repeatedCount: 1,
    },
  );
});

test('a seed is a plan; deeds of one track do not overlap and end before the run does', () => {
  const durationMs = 120_000;
  const plan = drawPlan(5, durationMs);
  assert.deepEqual(drawPlan(5, durationMs), plan);
  assert.notDeepEqual(drawPlan(6, durationMs), plan);
  for (const track of [plan.process, plan.backend, plan.disk]) {
    assert.ok(track.length > 0);
    let freeMs = 0;
    for (const { atMs, deed } of track) {
      assert.ok(atMs >= freeMs);
      freeMs = atMs + ('forMs' in deed ? deed.forMs : 'pauseMs' in deed ? deed.pauseMs : 0);
      assert.ok(freeMs <= durationMs);
    }
  }
});
