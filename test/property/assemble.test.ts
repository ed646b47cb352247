/** The assembler against random forests: every span leaves once, and every run obeys the rules of the backend. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { Assembler } from '../../src/assemble/assembler.ts';
import type { AssemblerSettings } from '../../src/assemble/assembler.ts';
import { ASSEMBLER_SETTINGS, CounterList, RunCollector, START_US, sketchWindow } from '../unit/assemble/fakes.ts';
import type { SeenRun, SpanSketch } from '../unit/assemble/fakes.ts';

interface Node extends SpanSketch {
  readonly span: string;
  readonly parent: string | null;
}

const name = (i: number): string => (i + 1).toString(16).padStart(16, '0');

/** Parents may be any span (cycles and self-parents included), missing, or none. */
function forest(parentOf: (i: number) => fc.Arbitrary<number | null>): fc.Arbitrary<Node[]> {
  return fc.integer({ min: 1, max: 40 }).chain((count) =>
    fc.tuple(
      ...Array.from({ length: count }, (_, i) =>
        fc.record({
          span: fc.constant(name(i)),
          parent: parentOf(i).map((parent) => (parent === null ? null : name(parent))),
          key: fc.constantFrom('key-one', 'key-two'),
          startUs: fc.integer({ min: START_US - 5000, max: START_US + 5000 }),
          genAi: fc.boolean(),
          forcedRoot: fc.integer({ min: 0, max: 19 }).map((n) => n === 0),
        }),
      ),
    ),
  );
}

const windowSizes = fc.infiniteStream(fc.integer({ min: 1, max: 12 }));

function shuffled(nodes: Node[], seed: number): Node[] {
  const random = (i: number): number => Math.abs(Math.sin(seed + i * 12.9898) * 43758.5453) % 1;
  return nodes
    .map((node, i) => ({ node, at: random(i) }))
    .sort((a, b) => a.at - b.at)
    .map(({ node }) => node);
}

function assertRules(run: SeenRun): void {
  const segments = run.order.split('.');
  const times = segments.map((segment) => segment.slice(0, 22));
  for (const segment of segments) {
    assert.match(segment, /^\d{8}T\d{12}Z[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
  }
  assert.deepEqual(times.toSorted(), times, 'no segment is earlier than its parent');
  assert.equal(
    new Set(segments.map((segment) => segment.slice(22))).size,
    segments.length,
    'no run is its own ancestor',
  );
}

/** `stepMs` pass between two windows. */
function feed(assembler: Assembler, nodes: Node[], sizes: Iterator<number>, stepMs = 0, between?: () => void): void {
  for (let at = 0, nowMs = 0; at < nodes.length; nowMs += stepMs) {
    const size = sizes.next().value as number;
    assembler.sweep(nowMs);
    assembler.take(sketchWindow(...nodes.slice(at, at + size)), nowMs);
    at += size;
    between?.();
  }
}

function setUp(settings: Partial<AssemblerSettings>): [Assembler, RunCollector, CounterList] {
  const sink = new RunCollector();
  const counters = new CounterList();
  return [new Assembler({ ...ASSEMBLER_SETTINGS, ...settings }, sink, counters), sink, counters];
}

test('a complete trace, in any order and any cut, is rebuilt exactly', () => {
  const trees = forest((i) => (i === 0 ? fc.constant(null) : fc.integer({ min: 0, max: i - 1 })));
  fc.assert(
    fc.property(trees, fc.integer(), windowSizes, fc.boolean(), (nodes, seed, sizes, filterNonGenAi) => {
      const [assembler, sink] = setUp({ filterNonGenAi });
      const whole = nodes.map((node) => ({ ...node, key: 'key-one', forcedRoot: false }));
      feed(assembler, shuffled(whole, seed), sizes);
      assert.equal(assembler.parkedCount, 0);
      const kept = whole.filter((node) => !filterNonGenAi || node.genAi || node.parent === null);
      assert.equal(sink.runs.length, kept.length);
      const keptSpans = new Map(kept.map((node) => [node.span, node]));
      const all = new Map(whole.map((node) => [node.span, node]));
      for (const node of kept) {
        const run = sink.of(node.span);
        assertRules(run);
        let parent = node.parent;
        while (parent !== null && !keptSpans.has(parent)) parent = all.get(parent)?.parent ?? null;
        const expected = parent === null ? '' : `${sink.of(parent).order}.`;
        assert.equal(run.order.slice(0, -58), expected);
      }
    }),
    { numRuns: 300 },
  );
});

test('whatever is missing, circular, resent, squeezed or expired, each span leaves exactly once and obeys the rules', () => {
  const tangles = forest(() => fc.option(fc.integer({ min: 0, max: 60 }), { nil: null, freq: 8 }));
  const settings = fc.record({
    rootRunId: fc.constantFrom<'trace' | 'span'>('trace', 'span'),
    filterNonGenAi: fc.boolean(),
    parkBytes: fc.constantFrom(0, 70_000, 1_000_000),
    rememberedSpanCount: fc.constantFrom(1000, 100_000),
  });
  fc.assert(
    fc.property(tangles, fc.integer(), windowSizes, settings, fc.boolean(), (drawn, seed, sizes, chosen, sweeping) => {
      const [assembler, sink, counters] = setUp(chosen);
      // With time passing, spans leave as orphans; of one trace only, so that it is not quiet long enough to be forgotten.
      const nodes = sweeping ? drawn.map((node) => ({ ...node, key: 'key-one' })) : drawn;
      const sent = shuffled([...nodes, ...nodes.slice(0, 5)], seed);
      feed(assembler, sent, sizes, sweeping ? ASSEMBLER_SETTINGS.spanTtlMs / 4 : 0, () => {
        assert.ok(assembler.parkedBytes <= chosen.parkBytes);
      });
      assembler.flush();
      for (const run of sink.runs) assertRules(run);
      assert.equal(new Set(sink.runs.map((run) => run.span)).size, sink.runs.length, 'once');
      assert.equal(
        sent.length,
        sink.runs.length + counters.of('dropped_duplicate') + counters.of('dropped_filtered') + assembler.parkedCount,
      );
      assert.equal(counters.of('dropped_duplicate'), sent.length - nodes.length);
      assert.equal(assembler.parkedCount, 0);
      const ids = sink.runs.map((run) => `${run.key} ${run.id}`);
      assert.equal(new Set(ids).size, ids.length, 'run ids are unique within a tenant');
      for (const run of sink.runs) assert.equal(run.key, nodes.find((node) => node.span === run.span)?.key);
    }),
    { numRuns: 500 },
  );
});
