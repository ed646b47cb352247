import { test } from 'node:test';
import assert from 'node:assert/strict';
import { Assembler } from '../../../src/assemble/assembler.ts';
import type { AssemblerSettings } from '../../../src/assemble/assembler.ts';
import {
  ASSEMBLER_SETTINGS,
  CounterList,
  RunCollector,
  SPAN,
  START_US,
  TRACE_UUID,
  makeRecord,
  sketchWindow,
  windowOf,
} from './fakes.ts';

const SPAN_UUID = '00000000-0000-0000-eee1-9b7ec3c1b174';
const T0 = '20250519T171915185223Z';
const LATER_MS = ASSEMBLER_SETTINGS.spanTtlMs;

function setUp(settings: Partial<AssemblerSettings> = {}): {
  assembler: Assembler;
  sink: RunCollector;
  counters: CounterList;
} {
  const sink = new RunCollector();
  const counters = new CounterList();
  return { assembler: new Assembler({ ...ASSEMBLER_SETTINGS, ...settings }, sink, counters), sink, counters };
}

function padded(span: string): string {
  return `00000000-0000-0000-${span.slice(0, 4)}-${span.slice(4)}`;
}

test('a root takes the trace id as its run id (V01)', () => {
  const { assembler, sink } = setUp();
  assembler.take(sketchWindow({}), 0);
  const run = sink.of(SPAN);
  assert.equal(run.order, `${T0}${TRACE_UUID}`);
  assert.equal(run.id, TRACE_UUID);
  assert.equal(run.traceId, TRACE_UUID);
  assert.equal(run.parentId, null);
  assert.equal(run.endUs, START_US + 1000);
});

test('with ROOT_RUN_ID=span a root takes its padded span id, also as trace id', () => {
  const { assembler, sink } = setUp({ rootRunId: 'span' });
  assembler.take(sketchWindow({ span: 'aaaaaaaaaaaaaaaa', parent: SPAN }, {}), 0);
  assert.equal(sink.of(SPAN).order, `${T0}${SPAN_UUID}`);
  assert.equal(sink.of('aaaaaaaaaaaaaaaa').order, `${T0}${SPAN_UUID}.${T0}${padded('aaaaaaaaaaaaaaaa')}`);
});

test('a child of a span that is no root names the padded span id of its parent (V02)', () => {
  const { assembler, sink } = setUp();
  const parent = 'aaaaaaaaaaaaaaaa';
  assembler.take(
    sketchWindow({ span: 'bbbbbbbbbbbbbbbb' }, { span: parent, parent: 'bbbbbbbbbbbbbbbb' }, { parent }),
    0,
  );
  assert.equal(sink.of(SPAN).id, SPAN_UUID);
  assert.equal(sink.of(SPAN).parentId, padded(parent));
});

test('a child that stands before its root in the same request is not copied (V03)', () => {
  const { assembler, sink, counters } = setUp();
  const root = 'bbbbbbbbbbbbbbbb';
  assembler.take(sketchWindow({ parent: root, startUs: START_US + 1000 }, { span: root }), 0);
  assert.equal(sink.of(SPAN).order, `${T0}${TRACE_UUID}.20250519T171915186223Z${SPAN_UUID}`);
  assert.equal(sink.of(SPAN).parentId, TRACE_UUID);
  assert.equal(counters.of('runs_parked'), 0);
});

test('three levels in three requests, deepest first, share their beginnings (V04)', () => {
  const { assembler, sink, counters } = setUp();
  const [root, child, grandchild] = ['0000000000000001', '0000000000000002', '0000000000000003'];
  assembler.take(sketchWindow({ span: grandchild, parent: child, startUs: START_US + 2 }), 0);
  assembler.take(sketchWindow({ span: child, parent: root, startUs: START_US + 1 }), 1);
  assert.equal(sink.runs.length, 0);
  assert.equal(assembler.parkedCount, 2);
  assembler.take(sketchWindow({ span: root }), 2);
  const [one, two, three] = [sink.of(root).order, sink.of(child).order, sink.of(grandchild).order];
  assert.deepEqual([one.length, two.length, three.length], [58, 117, 176]);
  assert.ok(two.startsWith(`${one}.`) && three.startsWith(`${two}.`));
  assert.equal(assembler.parkedCount, 0);
  assert.equal(assembler.parkedBytes <= 64 * 1024, true);
  assert.equal(counters.of('runs_parked'), 2);
});

test('a forced root drops its parent (V06)', () => {
  const { assembler, sink } = setUp();
  assembler.take(sketchWindow({ parent: 'aaaaaaaaaaaaaaaa', forcedRoot: true }), 0);
  assert.equal(sink.of(SPAN).order, `${T0}${TRACE_UUID}`);
});

test('a second root of a trace is a trace of its own, with its descendants (V07)', () => {
  const { assembler, sink } = setUp();
  const [first, second, child] = ['0000000000000001', '0000000000000002', '0000000000000003'];
  assembler.take(sketchWindow({ span: first, forcedRoot: true, parent: SPAN }), 0);
  assembler.take(sketchWindow({ span: child, parent: second }, { span: second, forcedRoot: true, parent: SPAN }), 0);
  assert.equal(sink.of(first).order, `${T0}${TRACE_UUID}`);
  assert.equal(sink.of(second).order, `${T0}${padded(second)}`);
  assert.equal(sink.of(child).order, `${T0}${padded(second)}.${T0}${padded(child)}`);
});

const GIVEN = {
  traceId: 'aaaaaaaa-0000-4000-8000-000000000001',
  parentRunId: 'aaaaaaaa-0000-4000-8000-000000000002',
  runId: 'aaaaaaaa-0000-4000-8000-000000000003',
};

test('ids and order that a span gives are taken as they are, and its children follow (V08)', () => {
  const { assembler, sink } = setUp();
  const order = `20250519T171915000001Z${GIVEN.traceId}.20250519T171915000002Z${GIVEN.parentRunId}.20250519T171915000003Z${GIVEN.runId}`;
  const child = 'bbbbbbbbbbbbbbbb';
  assembler.take(sketchWindow({ ...GIVEN, order }), 0);
  assembler.take(sketchWindow({ span: child, parent: SPAN }), 0);
  assert.equal(sink.of(SPAN).order, order);
  assert.equal(sink.of(child).order, `${order}.${T0}${padded(child)}`);
});

test('a given order never leaks into a neighbour that is rendered after it', () => {
  const { assembler, sink } = setUp();
  const [root, sibling] = ['0000000000000001', '0000000000000002'];
  const order = `20250519T171915000001Z${GIVEN.traceId}.20250519T171915000003Z${GIVEN.runId}`;
  assembler.take(sketchWindow({ span: root }, { order, parent: root }, { span: sibling, parent: root }), 0);
  assert.equal(sink.of(SPAN).order, order);
  assert.equal(sink.of(sibling).order, `${T0}${TRACE_UUID}.${T0}${padded(sibling)}`);
});

test('an order that contradicts the given ids or the grammar is not used', () => {
  for (const order of [
    `${T0}${GIVEN.traceId}.${T0}${GIVEN.traceId}`,
    `20250519T171915000001Z${GIVEN.traceId}`,
    'nonsense',
    `20250519T171915185Z${GIVEN.traceId}.20250519T171915185Z${GIVEN.parentRunId}.20250519T171915185Z${GIVEN.runId}`,
  ]) {
    const { assembler, sink } = setUp();
    assembler.take(sketchWindow({ ...GIVEN, order }), 0);
    assert.equal(
      sink.of(SPAN).order,
      `${T0}${GIVEN.traceId}.${T0}${GIVEN.parentRunId}.${T0}${GIVEN.runId}`,
      `given ${order}`,
    );
  }
});

test('a given parent that is a span of the same trace is waited for like any other', () => {
  const { assembler, sink } = setUp();
  const kept = 'cccccccccccccccc';
  assembler.take(sketchWindow({ parent: 'dddddddddddddddd', parentRunId: padded(kept) }), 0);
  assert.equal(sink.runs.length, 0);
  assembler.take(sketchWindow({ span: kept }), 0);
  assert.equal(sink.of(SPAN).parentId, TRACE_UUID);
});

test('a given parent that is the trace id waits for the root and shares its segment', () => {
  const { assembler, sink } = setUp();
  assembler.take(sketchWindow({ parentRunId: TRACE_UUID, startUs: START_US + 5 }), 0);
  assert.equal(sink.runs.length, 0);
  assembler.take(sketchWindow({ span: 'cccccccccccccccc' }), 0);
  assert.ok(sink.of(SPAN).order.startsWith(`${sink.of('cccccccccccccccc').order}.`));
});

test('a root with a given trace id takes it as run id and hands it to its descendants', () => {
  const { assembler, sink } = setUp();
  const child = 'cccccccccccccccc';
  assembler.take(sketchWindow({ span: child, parent: SPAN, traceId: GIVEN.traceId }, { traceId: GIVEN.traceId }), 0);
  assert.equal(sink.of(SPAN).order, `${T0}${GIVEN.traceId}`);
  assert.equal(sink.of(child).order, `${T0}${GIVEN.traceId}.${T0}${padded(child)}`);
});

test('a child keeps a given run id and its children point at it', () => {
  const { assembler, sink } = setUp();
  const [root, leaf] = ['0000000000000001', '0000000000000002'];
  assembler.take(sketchWindow({ span: leaf, parent: SPAN }, { parent: root, runId: GIVEN.runId }, { span: root }), 0);
  assert.equal(sink.of(SPAN).id, GIVEN.runId);
  assert.equal(sink.of(leaf).parentId, GIVEN.runId);
});

test('a span that has not ended has no end (V09)', () => {
  const { assembler, sink } = setUp();
  assembler.take(sketchWindow({ endUs: null }), 0);
  assert.ok(Number.isNaN(sink.of(SPAN).endUs));
});

test('a child that starts before its parent is moved, its end never before its start', () => {
  const { assembler, sink, counters } = setUp();
  const child = 'cccccccccccccccc';
  assembler.take(sketchWindow({ span: child, parent: SPAN, startUs: START_US - 3000, endUs: START_US - 1 }, {}), 0);
  assert.equal(sink.of(child).startText, T0);
  assert.equal(sink.of(child).endUs, START_US);
  assert.equal(counters.of('times_clamped'), 1);
});

test('a non-GenAI span in the middle makes no run and its child moves up (V39)', () => {
  const { assembler, sink, counters } = setUp({ filterNonGenAi: true });
  const [root, http, chat] = ['0000000000000001', '0000000000000002', '0000000000000003'];
  assembler.take(sketchWindow({ span: chat, parent: http }), 0);
  assembler.take(sketchWindow({ span: http, parent: root, genAi: false }), 0);
  assembler.take(sketchWindow({ span: root, genAi: false }), 0);
  assert.deepEqual(sink.runs.map((run) => run.span).sort(), [root, chat]);
  assert.equal(sink.of(chat).order, `${T0}${TRACE_UUID}.${T0}${padded(chat)}`);
  assert.equal(counters.of('dropped_filtered'), 1);
});

test('a chain of filtered spans collapses whatever the order of arrival', () => {
  const names = ['0000000000000001', '0000000000000002', '0000000000000003', '0000000000000004', '0000000000000005'];
  const sketches = names.map((span, i) => ({ span, parent: names[i - 1] ?? null, genAi: i === 0 || i === 4 }));
  for (const order of [sketches, sketches.toReversed()]) {
    const { assembler, sink } = setUp({ filterNonGenAi: true });
    for (const sketch of order) assembler.take(sketchWindow(sketch), 0);
    assert.equal(sink.runs.length, 2);
    assert.equal(sink.of('0000000000000005').parentId, TRACE_UUID);
  }
});

test('what the converter made no run of lets its children move up; a root of that kind stays a segment', () => {
  const names = ['0000000000000001', '0000000000000002', '0000000000000003', '0000000000000004'] as const;
  const [root, dropped, failed, chat] = names;
  const sketches = [
    { span: root, noRun: 'dropped' },
    { span: dropped, parent: root, noRun: 'dropped' },
    { span: failed, parent: dropped, noRun: 'failed' },
    { span: chat, parent: failed },
  ] as const;
  for (const order of [sketches, sketches.toReversed()]) {
    const { assembler, sink, counters } = setUp();
    for (const sketch of order) assembler.take(sketchWindow(sketch), 0);
    assembler.take(sketchWindow(sketches[1]), 0);
    assert.deepEqual(
      sink.runs.map((run) => run.order),
      [`${T0}${TRACE_UUID}.${T0}${padded(chat)}`],
    );
    assert.equal(assembler.parkedCount, 0);
    assert.equal(counters.of('dropped_converter-dropped'), 2);
    assert.equal(counters.of('dropped_converter-failed'), 1);
    assert.equal(counters.of('dropped_duplicate'), 1);
    assert.equal(counters.of('dropped_filtered'), 0);
  }
});

test('orphans leave after their time to live under one placeholder, their own hierarchy kept (V40)', () => {
  const { assembler, sink, counters } = setUp();
  const [child, grandchild] = ['0000000000000002', '0000000000000003'];
  assembler.take(sketchWindow({ span: grandchild, parent: child, startUs: START_US + 7 }), 0);
  assembler.take(sketchWindow({ span: child, parent: SPAN }), 10);
  assert.equal(assembler.nextSweepMs, LATER_MS);
  assembler.sweep(LATER_MS - 1);
  assert.equal(sink.runs.length, 0);
  assembler.sweep(LATER_MS);
  assert.equal(sink.of(child).order, `${T0}${TRACE_UUID}.${T0}${padded(child)}`);
  assert.ok(sink.of(grandchild).order.startsWith(`${sink.of(child).order}.`));
  assert.equal(counters.of('runs_orphaned'), 1);
  assert.equal(assembler.parkedCount, 0);
});

test('late siblings and a late root join the placeholder', () => {
  const { assembler, sink, counters } = setUp();
  const [child, sibling, late] = ['0000000000000002', '0000000000000003', '0000000000000004'];
  assembler.take(sketchWindow({ span: child, parent: SPAN, startUs: START_US + 7 }), 0);
  assembler.sweep(LATER_MS);
  assembler.take(sketchWindow({ span: sibling, parent: SPAN, startUs: START_US + 9 }), LATER_MS);
  assembler.take(sketchWindow({}), LATER_MS);
  assembler.take(sketchWindow({ span: late, parent: SPAN }), LATER_MS);
  const root = sink.of(SPAN).order;
  assert.equal(root, `20250519T171915185230Z${TRACE_UUID}`);
  for (const span of [child, sibling, late]) assert.ok(sink.of(span).order.startsWith(`${root}.`), span);
  assert.equal(counters.of('runs_parked'), 1, 'only the first had to wait');
});

test('an orphan of a trace whose root is known hangs on that root', () => {
  const { assembler, sink } = setUp();
  const orphan = '0000000000000002';
  assembler.take(sketchWindow({}, { span: orphan, parent: '00000000000000ff', startUs: START_US - 5 }), 0);
  assembler.sweep(LATER_MS);
  assert.equal(sink.of(orphan).order, `${T0}${TRACE_UUID}.${T0}${padded(orphan)}`);
});

test('cycles and self-parents end as orphans', () => {
  const { assembler, sink } = setUp();
  const [a, b, tail, self] = ['000000000000000a', '000000000000000b', '000000000000000c', '000000000000000d'];
  assembler.take(
    sketchWindow(
      { span: tail, parent: a },
      { span: a, parent: b },
      { span: b, parent: a },
      { span: self, parent: self },
    ),
    0,
  );
  assembler.flush();
  assert.equal(sink.runs.length, 4);
  for (const run of sink.runs) assert.equal(run.traceId, TRACE_UUID);
  assert.equal(sink.of(self).parentId, TRACE_UUID);
  assert.equal(sink.of(tail).parentId, padded(a));
});

test('a span seen before is dropped and counted, waiting or gone', () => {
  const { assembler, sink, counters } = setUp();
  const waiting = sketchWindow({ span: '0000000000000002', parent: SPAN });
  assembler.take(waiting, 0);
  assembler.take(waiting, 0);
  assembler.take(sketchWindow({}, {}), 0);
  assembler.take(waiting, 0);
  assert.equal(sink.runs.length, 2);
  assert.equal(counters.of('dropped_duplicate'), 3);
  assert.equal(counters.of('records_read'), 5);
});

test('whoever follows requests hears of every record of theirs once: taken, without a run, or seen before', () => {
  const heard: string[] = [];
  const assembler = new Assembler(
    { ...ASSEMBLER_SETTINGS, filterNonGenAi: true },
    new RunCollector(),
    new CounterList(),
    {
      took: (source) => heard.push(`took ${source}`),
      dropped: (source) => heard.push(`dropped ${source}`),
      repeated: (source) => heard.push(`repeated ${source}`),
    },
  );
  const child = { span: 'aaaaaaaaaaaaaaaa', parent: SPAN, genAi: false };
  assembler.take(sketchWindow({ source: 1 }, { ...child, source: 2 }, {}), 0);
  assembler.take(sketchWindow({ source: 3 }, { ...child, source: 4 }), 0);
  assert.deepEqual(heard, ['took 1', 'dropped 2', 'repeated 3', 'repeated 4']);
});

test('the same trace under two API keys is two traces', () => {
  const { assembler, sink } = setUp();
  const child = '0000000000000002';
  assembler.take(sketchWindow({ key: 'key-one' }, { key: 'key-two', span: child, parent: SPAN }), 0);
  assert.deepEqual(
    sink.runs.map((run) => run.key),
    ['key-one'],
  );
  assembler.flush();
  assert.equal(sink.of(child).key, 'key-two');
});

test('beyond the parking budget the oldest trace leaves first, and a parked record is unharmed', () => {
  const { assembler, sink } = setUp({ parkBytes: 200_000 });
  const sent = new Map<string, Buffer>();
  for (let i = 0; i < 40; i++) {
    const span = (i + 1).toString(16).padStart(16, '0');
    const trace = (i >> 1).toString(16).padStart(32, 'f000000000000000');
    const record = makeRecord({
      trace,
      span,
      parent: '00000000000000ff',
      parts: { Inputs: `"${'x'.repeat(9000)}${i}"` },
    });
    sent.set(span, record);
    assembler.take(windowOf([record]), 0);
    assert.ok(assembler.parkedBytes <= 200_000);
  }
  assert.ok(sink.runs.length > 0);
  assert.deepEqual(sink.runs.map((run) => run.span).sort(), [...sent.keys()].slice(0, sink.runs.length));
  assert.equal(sink.runs.length % 2, 0, 'whole traces');
  assembler.flush();
  assert.equal(sink.runs.length, 40);
  for (const run of sink.runs) assert.deepEqual(run.record, sent.get(run.span));
});

test('records that stay behind in sparse chunks are moved together before anything is given up', () => {
  const { assembler, sink, counters } = setUp({ parkBytes: 640_000 });
  const trace = (i: number): string => i.toString(16).padStart(32, 'a000000000000000');
  let released = 0;
  for (let i = 0; i < 2000; i++) {
    const fill = { Inputs: `"${'y'.repeat(3000)}"` };
    assembler.take(sketchWindow({ trace: trace(i), parent: '00000000000000ff', parts: fill }), 0);
    // Nineteen of twenty get their root at once; the twentieth keeps its chunk.
    if (i % 20 !== 0) {
      assembler.take(sketchWindow({ trace: trace(i), span: '00000000000000ff' }), 0);
      released++;
    }
  }
  assert.equal(sink.runs.length, 2 * released);
  assert.equal(counters.of('runs_orphaned'), 0);
  assert.equal(assembler.parkedCount, 2000 - released);
  assembler.flush();
  assert.equal(sink.runs.length, 2000 + released);
});

test('a record larger than the whole parking budget leaves at once', () => {
  const { assembler, sink } = setUp({ parkBytes: 100_000 });
  assembler.take(sketchWindow({ parent: '00000000000000ff', parts: { Inputs: `"${'z'.repeat(300_000)}"` } }), 0);
  assert.equal(sink.runs.length, 1);
  assert.equal(assembler.parkedCount, 0);
});

test('what is remembered stays bounded: the quietest complete traces are forgotten first', () => {
  const { assembler, sink } = setUp({ rememberedSpanCount: 64 });
  const waiting = '0000000000000002';
  assembler.take(sketchWindow({ span: waiting, parent: SPAN }), 0);
  for (let i = 0; i < 500; i++)
    assembler.take(sketchWindow({ trace: i.toString(16).padStart(32, 'b000000000000000') }), 0);
  assert.ok(assembler.spanCount <= 64);
  assert.equal(sink.runs.length, 500);
  assembler.take(sketchWindow({}), 0);
  assert.equal(sink.of(waiting).parentId, TRACE_UUID, 'its trace was not forgotten while it waited');
});

test('a place in the tables that is used again keeps nothing of the trace before', () => {
  const { assembler, sink } = setUp({ rememberedSpanCount: 1 });
  for (let i = 0; i < 10; i++) {
    assembler.take(sketchWindow({ trace: i.toString(16).padStart(32, 'b000000000000000') }), 0);
  }
  assert.equal(new Set(sink.runs.map((run) => run.id)).size, 10);
});

test('when every remembered trace waits, the quietest leaves as orphans rather than being lost', () => {
  const { assembler, sink, counters } = setUp({ rememberedSpanCount: 30 });
  for (let i = 0; i < 100; i++) {
    assembler.take(
      sketchWindow({ trace: i.toString(16).padStart(32, 'b000000000000000'), parent: '00000000000000ff' }),
      0,
    );
  }
  assert.ok(sink.runs.length >= 80);
  assembler.flush();
  assert.equal(sink.runs.length, 100);
  assert.equal(counters.of('runs_orphaned'), 100);
});

test('a quiet trace is forgotten after the time to live', () => {
  const { assembler } = setUp();
  assembler.take(sketchWindow({}), 0);
  assembler.sweep(LATER_MS - 1);
  assert.equal(assembler.spanCount, 1);
  assembler.sweep(LATER_MS);
  assert.equal(assembler.spanCount, 0);
  assert.equal(assembler.traceCount, 0);
});

test('forty thousand children before their parent, and a chain of forty thousand, take time in proportion', () => {
  const name = (i: number): string => (i + 1).toString(16).padStart(16, '0');
  const shapes = {
    star: (i: number) => ({ span: name(i), parent: i === 0 ? null : name(0) }),
    chain: (i: number) => ({ span: name(i), parent: i === 0 ? null : name(i - 1) }),
    cycle: (i: number) => ({ span: name(i), parent: name(i ^ 1) }),
  };
  for (const [shape, sketch] of Object.entries(shapes)) {
    const millis: number[] = [];
    for (const count of [2500, 40_000]) {
      const windows = Array.from({ length: count }, (_, i) => sketchWindow(sketch(count - 1 - i)));
      const { assembler } = setUp({ parkBytes: 64 * 1024 * 1024 });
      let runCount = 0;
      const counting = new Assembler(
        { ...ASSEMBLER_SETTINGS, parkBytes: 64 * 1024 * 1024 },
        { put: () => void runCount++ },
        new CounterList(),
      );
      for (const window of windows) assembler.take(window, 0);
      // The processor's time: what others do on the machine does not count.
      const began = process.cpuUsage();
      for (const window of windows) counting.take(window, 0);
      counting.flush();
      const { user, system } = process.cpuUsage(began);
      millis.push((user + system) / 1000);
      assert.equal(runCount, count, shape);
    }
    const [few = 0, many = 0] = millis;
    // Sixteen times as many; by their square it would be 256 times as long.
    assert.ok(many < 64 * few + 100, `${shape}: ${few} ms for 2500, ${many} ms for 40000`);
  }
});

test('a chain deeper than the limit stays valid: deeper spans become siblings', () => {
  const { assembler, sink } = setUp();
  const name = (i: number): string => (i + 1).toString(16).padStart(16, '0');
  assembler.take(
    sketchWindow(...Array.from({ length: 400 }, (_, i) => ({ span: name(i), parent: i === 0 ? null : name(i - 1) }))),
    0,
  );
  assert.equal(sink.runs.length, 400);
  assert.equal(Math.max(...sink.runs.map((run) => run.order.length)), 256 * 59 - 1);
  assert.equal(sink.of(name(399)).parentId, sink.of(name(300)).parentId);
});
