/** The query API over real HTTP: filters, pages, trees, counts. One workload, written once, asked in many ways. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import type { TraceNode } from '../../src/backend/api.ts';
import { type BackendClient, createBackendClient, type Query } from '../../src/backend/client.ts';
import { writeRfc3339 } from '../../src/backend/moment.ts';
import { type RunningBackend, startBackend } from '../../src/backend/owner.ts';
import { makeRun, type RunRecord, START_US } from '../backend-runs.ts';

let backend: RunningBackend;
let client: BackendClient;
const TRACE_COUNT = 30;
const HOUR_US = 3_600_000_000;
/** In order of start: trace `n` starts `n` minutes after the first. */
const roots: RunRecord[] = [];

/** Every third trace in project b, every fifth with a failing tool, every tenth not ended; durations grow. */
function workload(): RunRecord[] {
  return Array.from({ length: TRACE_COUNT }, (_, n) => {
    const root = makeRun({
      startUs: START_US + n * 60_000_000,
      durationUs: n % 10 === 9 ? null : (n + 1) * 100_000,
      fields: {
        name: n === 7 ? 'special agent' : 'agent',
        session_name: n % 3 === 0 ? 'b' : 'a',
        inputs: {
          messages: [
            { role: 'system', content: 'S' },
            { role: 'user', content: `Question number${n} about Zürich 東京` },
          ],
        },
      },
    });
    roots.push(root);
    const usage = { input_tokens: 10, output_tokens: n, total_cost: 0.001 };
    const chat = makeRun({
      parent: root,
      fields: {
        name: 'chat',
        run_type: 'llm',
        session_name: root['session_name'],
        extra: { metadata: { usage_metadata: usage } },
      },
    });
    const failing = {
      run_type: 'tool',
      name: 'search',
      error: `Timeout_${n}: 100% of the time`,
      session_name: root['session_name'],
    };
    return n % 5 === 0 ? [root, chat, makeRun({ parent: chat, fields: failing })] : [root, chat];
  }).flat();
}

before(async () => {
  backend = await startBackend();
  client = createBackendClient(backend.url);
  assert.equal((await client.uploadRuns(workload(), { key: 'main', coding: 'zstd' })).status, 202);
});
after(() => backend.stop());

/** The numbers of the traces that pass, newest first. */
async function numbers(query: Query): Promise<number[]> {
  const { items } = await client.traces({ limit: 1000, ...query });
  return items.map((item) => roots.findIndex((root) => root.id === item.trace_id));
}

const all = Array.from({ length: TRACE_COUNT }, (_, n) => TRACE_COUNT - 1 - n);
const where = (pass: (n: number) => boolean): number[] => all.filter(pass);
const timeOf = (n: number): string => writeRfc3339(START_US + n * 60_000_000);

const filters: [title: string, query: Query, expected: number[]][] = [
  ['nothing asked', {}, all],
  ['project', { project: 'b' }, where((n) => n % 3 === 0)],
  ['several projects', { project: ['a', 'b', 'c'] }, all],
  ['unknown project', { project: 'c' }, []],
  ['status', { status: 'pending' }, where((n) => n % 10 === 9)],
  ['run type of any run', { run_type: 'tool' }, where((n) => n % 5 === 0)],
  ['one of several run types', { run_type: ['retriever', 'llm'] }, all],
  ['name of the root', { name: 'special agent' }, [7]],
  ['since, inclusive', { since: timeOf(20) }, where((n) => n >= 20)],
  ['until, exclusive, in milliseconds', { until: (START_US - 1 + 20 * 60_000_000) / 1000 }, where((n) => n < 20)],
  ['minimum duration', { min_duration_ms: 2500 }, where((n) => n >= 24 && n % 10 !== 9)],
  ['maximum duration', { max_duration_ms: 300 }, where((n) => n <= 2)],
  ['any error', { error: 'true' }, where((n) => n % 5 === 0)],
  ['no error', { error: 'false' }, where((n) => n % 5 !== 0)],
  ['error text, whatever the case', { error: 'timeout_1' }, [15, 10]],
  ['error text, no wildcards', { error: '100% of' }, where((n) => n % 5 === 0)],
  ['error text, no wildcard either', { error: 'Timeout%0' }, []],
  ['one word of an input', { text: 'number12' }, [12]],
  ['the beginning of a word', { text: 'number2' }, where((n) => n === 2 || n >= 20)],
  ['several words, diacritics or not', { text: 'zurich NUMBER3' }, [3]],
  ['characters of a script without blanks', { text: '京' }, all],
  ['words of an error', { text: 'timeout' }, where((n) => n % 5 === 0)],
  ['a word that nobody wrote', { text: 'absent' }, []],
  [
    'everything at once',
    { project: 'b', run_type: 'tool', error: 'true', text: 'question', since: timeOf(1), min_duration_ms: 1 },
    [15],
  ],
];
for (const [title, query, expected] of filters) {
  test(`Traces by ${title}.`, async () => {
    assert.deepEqual(await numbers(query), expected);
    const stats = await client.stats(query);
    assert.equal(stats.trace_count, expected.length, 'counts agree with lists');
  });
}

test('Runs by trace, parent, type, name, text and error.', async () => {
  const root = roots[10];
  assert.ok(root !== undefined);
  const names = async (query: Query): Promise<string[]> => (await client.runs(query)).items.map(({ name }) => name);
  assert.deepEqual(await names({ trace: root.id }), ['search', 'chat', 'agent']);
  assert.deepEqual(await names({ parent: root.id }), ['chat']);
  assert.deepEqual(await names({ trace: root.id, run_type: 'llm' }), ['chat']);
  assert.deepEqual(await names({ trace: root.id, error: 'true' }), ['search']);
  assert.deepEqual(await names({ trace: root.id, error: 'false' }), ['chat', 'agent']);
  assert.deepEqual(await names({ error: 'Timeout_10' }), ['search']);
  assert.equal((await names({ name: 'chat', limit: 1000 })).length, TRACE_COUNT);
  assert.deepEqual(await names({ text: 'number10' }), ['agent']);
});

test('Pages follow each other without gap or overlap, also when starts are equal.', async () => {
  const key = 'pages';
  const same = Array.from({ length: 25 }, () =>
    makeRun({ startUs: START_US + 10 * HOUR_US, fields: { session_name: 'pages' } }),
  );
  assert.equal((await client.uploadRuns(same, { key })).status, 202);
  const seen: string[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const page: Awaited<ReturnType<BackendClient['traces']>> = await client.traces({
      project: 'pages',
      limit: 10,
      cursor,
    });
    seen.push(...page.items.map(({ trace_id }) => trace_id));
    cursor = page.next_cursor;
  }
  assert.equal(seen.length, 25);
  assert.deepEqual(new Set(seen), new Set(same.map(({ id }) => id)));
  assert.equal((await client.allRuns({ project: 'pages', limit: 7 })).length, 25);
});

test('A trace sums up its runs.', async () => {
  const root = roots[10];
  const { items } = await client.traces({ trace: root?.id });
  const [trace] = items;
  assert.deepEqual(
    { ...trace, tenant: '' },
    {
      trace_id: root?.id,
      tenant: '',
      project: 'a',
      root_arrived: true,
      name: 'agent',
      run_type: 'chain',
      status: 'success',
      error: null,
      start_time: timeOf(10),
      end_time: writeRfc3339(START_US + 600_000_000 + 1_100_000),
      duration_ms: 1100,
      run_count: 3,
      error_count: 1,
      run_types: ['tool', 'chain', 'llm'],
      prompt_tokens: 10,
      completion_tokens: 10,
      total_tokens: 20,
      total_cost: 0.001,
      preview: 'Question number10 about Zürich 東京',
    },
  );
});

test('A trace whose root is not here yet shows what is; the root then corrects it.', async () => {
  const root = makeRun({ durationUs: 50_000, fields: { name: 'late root', session_name: 'late' } });
  const early = makeRun({
    parent: root,
    startUs: START_US + 3000,
    durationUs: 1000,
    fields: { name: 'early', session_name: 'other' },
  });
  const middle = makeRun({
    parent: early,
    startUs: START_US + 4000,
    durationUs: 9000,
    fields: { inputs: { query: 'first?' } },
  });
  await client.uploadRuns([middle]);
  await client.uploadRuns([early]);
  const before = (await client.trace(root.id))?.trace;
  assert.deepEqual(
    [before?.root_arrived, before?.name, before?.status, before?.start_time, before?.duration_ms, before?.preview],
    [false, 'step', 'pending', writeRfc3339(START_US + 3000), 10, 'first?'],
  );
  const orphans = await client.tree(root.id);
  assert.deepEqual(
    orphans?.roots.map(({ name, orphan }) => [name, orphan]),
    [['early', true]],
  );
  await client.uploadRuns([root]);
  const trace = (await client.trace(root.id))?.trace;
  assert.deepEqual(
    [
      trace?.root_arrived,
      trace?.name,
      trace?.project,
      trace?.status,
      trace?.start_time,
      trace?.duration_ms,
      trace?.run_count,
    ],
    [true, 'late root', 'late', 'success', writeRfc3339(START_US), 50, 3],
  );
});

test('A tree has each child below its parent, siblings by start; flat has the same runs in that order.', async () => {
  const root = makeRun();
  const second = makeRun({ parent: root, startUs: START_US + 9000, fields: { name: 'second' } });
  const first = makeRun({ parent: root, startUs: START_US + 5000, fields: { name: 'first' } });
  const leaf = makeRun({ parent: first, startUs: START_US + 9500, fields: { name: 'leaf' } });
  const lost = makeRun({ parent: makeRun({ parent: root, startUs: START_US }), fields: { name: 'lost' } });
  await client.uploadRuns([leaf, second, lost, root, first]);
  const outline = (nodes: readonly TraceNode[]): unknown[] =>
    nodes.map(({ name, children }) => [name, outline(children)]);
  const tree = await client.tree(root.id);
  assert.deepEqual(outline(tree?.roots ?? []), [
    [
      'agent',
      [
        ['first', [['leaf', []]]],
        ['second', []],
      ],
    ],
    ['lost', []],
  ]);
  const flat = await client.trace(root.id);
  assert.deepEqual(
    flat?.runs.map(({ name, depth, orphan }) => [name, depth, orphan]),
    [
      ['agent', 0, false],
      ['first', 1, false],
      ['leaf', 2, false],
      ['second', 1, false],
      ['lost', 0, true],
    ],
  );
  assert.deepEqual(flat.misplaced_run_ids, []);
});

test('Runs whose dotted order does not continue the one of their parent are named.', async () => {
  const root = makeRun();
  const otherStart = makeRun({ id: root.id, startUs: START_US - 5000 });
  const child = makeRun({ parent: otherStart, startUs: START_US });
  await client.uploadRuns([root, child]);
  assert.deepEqual((await client.trace(root.id))?.misplaced_run_ids, [child.id]);
});

test('A trace of 10 000 spans is read in one answer, flat and as a tree; one that is too deep, flat only.', async () => {
  const wide = makeRun({ fields: { name: 'wide' } });
  const children = Array.from({ length: 9999 }, (_, n) => makeRun({ parent: wide, startUs: START_US + n }));
  assert.equal((await client.uploadRuns([wide, ...children], { coding: 'zstd' })).status, 202);
  assert.equal((await client.trace(wide.id))?.runs.length, 10_000);
  assert.equal((await client.tree(wide.id))?.roots[0]?.children.length, 9999);

  // Uploaders write the whole path into each run; here the ends suffice.
  const deep = makeRun();
  const chain = [deep];
  for (let depth = 1; depth <= 1200; depth++) {
    const parent = chain.at(-1) ?? deep;
    const child = makeRun({ parent });
    const segments = child.dotted_order.split('.');
    const dotted = depth < 2 ? child.dotted_order : [segments[0], segments.at(-2), segments.at(-1)].join('.');
    chain.push(
      Object.defineProperty({ ...child, dotted_order: dotted }, 'start_us', { value: START_US + depth * 1000 }),
    );
  }
  assert.equal((await client.uploadRuns(chain, { coding: 'zstd' })).status, 202);
  const flat = await client.trace(deep.id);
  assert.equal(flat?.runs.at(-1)?.depth, 1200);
  await assert.rejects(client.tree(deep.id), /deeper than 1000; ask for flat/);
});

test('Runs that are each other’s parents are all shown once.', async () => {
  const traceId = randomUUID();
  const root = makeRun({ id: traceId });
  const [a, b] = [randomUUID(), randomUUID()];
  const ring = (id: string, parent: string): RunRecord => {
    const through = makeRun({ parent: root, id: parent });
    return makeRun({ parent: through, id });
  };
  assert.equal((await client.uploadRuns([ring(a, b), ring(b, a)])).status, 202);
  assert.deepEqual(
    (await client.trace(traceId))?.runs.map(({ depth }) => depth),
    [0, 1],
  );
});

test('Stats count what passes the filter, by latency and over time.', async () => {
  const stats = await client.stats({ project: 'b', until: writeRfc3339(START_US + HOUR_US), since: timeOf(0) });
  const passing = where((n) => n % 3 === 0);
  const ended = passing.filter((n) => n % 10 !== 9);
  assert.equal(stats.trace_count, passing.length);
  assert.equal(
    stats.run_count,
    passing.reduce((sum, n) => sum + (n % 5 === 0 ? 3 : 2), 0),
  );
  assert.deepEqual(stats.by_status, { success: ended.length, error: 0, pending: passing.length - ended.length });
  assert.equal(stats.error_trace_count, passing.filter((n) => n % 5 === 0).length);
  assert.equal(
    stats.total_tokens,
    passing.reduce((sum, n) => sum + 10 + n, 0),
  );
  assert.equal(stats.latency.counts.length, stats.latency.bounds_ms.length + 1);
  const between = (low: number, high: number): number =>
    ended.filter((n) => (n + 1) * 100 >= low && (n + 1) * 100 < high).length;
  stats.latency.counts.forEach((count, index) => {
    const { bounds_ms: bounds } = stats.latency;
    assert.equal(count, between(bounds[index - 1] ?? 0, bounds[index] ?? Infinity), `bucket ${index}`);
  });
  assert.ok(stats.time.buckets.length <= 61);
  assert.equal(
    stats.time.buckets.reduce((sum, bucket) => sum + bucket.trace_count, 0),
    passing.length,
  );
  const first = stats.time.buckets.findIndex((bucket) => bucket.trace_count > 0);
  assert.ok(Date.parse(stats.time.buckets[first]?.start_time ?? '') <= START_US / 1000);
  assert.ok(stats.store.used_bytes > 0);
});

test('Stats without any trace are zeros.', async () => {
  const stats = await client.stats({ project: 'none' });
  assert.deepEqual([stats.trace_count, stats.run_count, stats.total_cost, stats.time.buckets.length], [0, 0, null, 0]);
});

test('Wrong parameters are refused, with what is right.', async () => {
  const wrong: [path: string, text: RegExp][] = [
    ['/api/runs?projekt=a', /unknown parameter "projekt"; known here: .*project/],
    ['/api/traces?parent=x', /unknown parameter "parent"/],
    ['/api/runs?status=done', /status: "done" is none of success, error, pending/],
    ['/api/runs?run_type=agent', /run_type: "agent" is none of/],
    ['/api/runs?trace=1', /trace: not a UUID/],
    ['/api/runs?since=yesterday', /since: neither RFC 3339/],
    ['/api/runs?min_duration_ms=-1', /min_duration_ms: not a number/],
    ['/api/runs?limit=0', /limit: from 1 to 1000/],
    ['/api/runs?limit=1001', /limit: from 1 to 1000/],
    ['/api/runs?cursor=x', /cursor: not one/],
    ['/api/runs?text=%22%2A', /text: no word/],
    ['/api/stats?buckets=0', /buckets: from 1 to 500/],
    [`/api/traces/${randomUUID()}?format=xml`, /format: neither flat nor tree/],
  ];
  for (const [path, text] of wrong) {
    const response = await fetch(`${backend.url}${path}`);
    assert.equal(response.status, 400, path);
    assert.match(((await response.json()) as { error: string }).error, text);
  }
});

test('What is not there is 404.', async () => {
  assert.equal(await client.run(randomUUID()), null);
  assert.equal(await client.trace(randomUUID()), null);
  assert.equal(await client.trace('no-uuid'), null);
});
