/** What the playground makes of a stream, of JSON that people type, and of a graph. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readAnswer, readJson, skeleton } from '../../src/console/app/pages/deployments/jsontext.ts';
import { layOut } from '../../src/console/app/pages/deployments/layout.ts';
import { begin, EMPTY, finish, take, type Transcript } from '../../src/console/app/pages/deployments/transcript.ts';

function told(
  events: readonly (readonly [event: string, data: unknown])[],
  from: Transcript = begin(EMPTY, []),
): Transcript {
  return events.reduce(
    (before, [event, data]) => take(before, { event, data: JSON.stringify(data), id: undefined }),
    from,
  );
}

test('tokens join the message of their id, calls grow, and the whole replaces both', () => {
  const piece = (content: string, more: object = {}) =>
    ['messages', [{ type: 'ai', id: 'a', content, ...more }, {}]] as const;
  const chunk = (args: string, name = '') => ({
    tool_call_chunks: [{ index: 0, id: name === '' ? '' : 'c1', name, args }],
  });
  const grown = told([piece('Hel'), piece('lo'), piece('', chunk('{"city":', 'weather')), piece('', chunk('"Rome"}'))]);
  assert.equal(grown.messages.length, 1);
  assert.equal(grown.messages[0]?.['content'], 'Hello');
  assert.deepEqual(grown.messages[0]?.['tool_calls'], [
    { id: 'c1', name: 'weather', args: { city: 'Rome' }, type: 'tool_call' },
  ]);
  const whole = told([['values', { messages: [{ type: 'human', content: 'x' }], n: 1 }]], grown);
  assert.deepEqual(whole.messages, [{ type: 'human', content: 'x' }]);
  assert.equal(whole.eventCount, 5);
});

test('updates are steps; interrupts are asked once, from whichever event they come', () => {
  const ask = { __interrupt__: [{ id: 'i', value: 'Well?' }] };
  const seen = told([
    ['metadata', { run_id: 'r' }],
    ['updates', { write: { draft: 'd' } }],
    ['updates|research:1', { search: null }],
    ['updates', ask],
    ['values', ask],
    ['something-new', [1]],
  ]);
  assert.equal(seen.runId, 'r');
  assert.deepEqual(
    seen.steps.map(({ number, event, node }) => [number, event, node]),
    [
      [1, 'updates', 'write'],
      [2, 'updates|research:1', 'search'],
      [3, 'something-new', null],
    ],
  );
  assert.deepEqual(seen.interrupts, [{ id: 'i', value: 'Well?' }]);
  assert.equal(finish(seen, 'ended').phase, 'interrupted');
  assert.equal(finish(seen, 'cancelled').phase, 'cancelled');
});

test('a failure keeps its words, whatever ends the stream; values of a subgraph are not the graph’s', () => {
  const seen = told([
    ['values|sub:1', { inner: true }],
    ['values', { outer: true }],
    ['error', { error: 'TypeError', message: 'x is not a function' }],
  ]);
  assert.deepEqual(seen.values, { outer: true });
  assert.equal(seen.error, 'TypeError: x is not a function');
  assert.equal(finish(seen, 'ended').phase, 'failed');
});

test('integers beyond a double come through with all their digits', () => {
  const seen = take(begin(EMPTY, []), { event: 'values', data: '{"id":12345678901234567890}', id: undefined });
  assert.match(String((seen.values as { id: unknown }).id), /^12345678901234567890$/);
});

test('JSON that is wrong says where; an answer that is none is text', () => {
  const problem = (text: string, asked: 'object' | 'any' = 'any') => {
    const typed = readJson(text, asked);
    return typed.ok ? null : typed.problem;
  };
  assert.equal(problem('{"a": [1, 2, {"b": null}], "c": "d\\n"}'), null);
  assert.match(problem('{"topic": }') ?? '', /^Line 1, column 11: Unexpected token '}'/);
  assert.match(problem('{\n  "a": 1,\n}') ?? '', /^Line 3, column 1: /);
  assert.match(problem('{"a": 1') ?? '', /^Line 1, column 8: /);
  assert.match(problem('[1 2]') ?? '', /^Line 1, column 4: /);
  assert.equal(problem(' '), 'Empty: JSON is wanted');
  assert.equal(problem('[]', 'object'), 'An object is wanted: { … }');
  assert.equal(readAnswer('yes'), 'yes');
  assert.equal(readAnswer('false'), false);
  assert.deepEqual(readAnswer('{"a": 1}'), { a: 1 });
});

test('a schema becomes a form to fill in', () => {
  const schema = {
    properties: { topic: {}, n: { type: 'integer' }, tags: { type: 'array' }, on: { type: 'boolean' } },
  };
  assert.deepEqual(JSON.parse(skeleton(schema)), { topic: '', n: 0, tags: [], on: false });
  assert.equal(skeleton(null), '{}');
});

test('every node has its place, none upon another, and edges to nowhere are left out', () => {
  const { nodes, edges, width, height } = layOut({
    nodes: ['__start__', 'a', 'sub:b', 'sub:c', '__end__'].map((id) => ({ id, type: 'runnable' })),
    edges: [
      { source: '__start__', target: 'a' },
      { source: 'a', target: 'sub:b', conditional: true, data: 'yes' },
      { source: 'a', target: 'sub:c', conditional: true },
      { source: 'sub:b', target: 'a' },
      { source: 'sub:c', target: '__end__' },
      { source: 'sub:c', target: 'nowhere' },
      { source: 'a', target: 'a' },
    ],
  });
  assert.equal(edges.length, 6);
  assert.deepEqual([nodes[0]?.kind, nodes[2]?.label, nodes[2]?.within], ['start', 'b', 'sub']);
  for (const one of nodes) {
    assert.ok(one.x >= 0 && one.y >= 0 && one.x + one.width <= width && one.y + one.height <= height);
    for (const other of nodes) {
      if (one === other) continue;
      const apart =
        one.x + one.width <= other.x ||
        other.x + other.width <= one.x ||
        one.y + one.height <= other.y ||
        other.y + other.height <= one.y;
      assert.ok(apart, `${one.id} ${other.id}`);
    }
  }
  for (const { path } of edges) assert.match(path, /^M[\d.]+ [\d.]+[QL]/);
});
