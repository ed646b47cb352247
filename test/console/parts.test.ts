/** The parts of the page that need no browser: conversations, trees, comparisons, the merged list, the histogram's figures. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { TraceRun, TraceSummary } from '../../src/backend/api.ts';
import { alignTrees } from '../../src/console/app/pages/compare/align.ts';
import { readConversation, type Block } from '../../src/console/app/pages/trace/conversation.ts';
import { buildTree, parentOf, visibleRows } from '../../src/console/app/pages/trace/tree.ts';
import { isNarrowed, queryOf, readFilter } from '../../src/console/app/pages/traces/filter.ts';
import { percentile, rangeOf } from '../../src/console/app/pages/traces/latency.ts';
import { merge } from '../../src/console/app/pages/traces/list.ts';
import { ExactNumber, parseExactJson } from '../../src/console/app/parts/exactjson.ts';
import { cost, duration, readDuration } from '../../src/console/app/parts/format.ts';
import { microseconds } from '../../src/console/app/parts/moment.ts';
import { linkUrl, pictureUrl } from '../../src/console/app/parts/safeurl.ts';

describe('a conversation is found, whoever wrote it', () => {
  const blocksOf = (document: unknown): [role: string, ...Block[]][] =>
    readConversation(document)?.messages.map(({ role, blocks }) => [role, ...blocks]) ?? [];
  const hi: Block = { kind: 'text', text: 'hi' };
  const call: Block = { kind: 'tool-call', id: 'c1', name: 'w', args: { city: 'P' } };

  const cases: [name: string, document: unknown, expected: [string, ...Block[]][]][] = [
    [
      'OpenAI',
      {
        messages: [
          { role: 'user', content: 'hi' },
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: 'c1', type: 'function', function: { name: 'w', arguments: '{"city":"P"}' } }],
          },
          { role: 'tool', tool_call_id: 'c1', content: 'sunny' },
        ],
      },
      [
        ['user', hi],
        ['assistant', call],
        ['tool', { kind: 'tool-result', id: 'c1', name: '', value: 'sunny' }],
      ],
    ],
    [
      'choices',
      { choices: [{ finish_reason: 'stop', message: { role: 'assistant', content: 'hi' } }] },
      [['assistant', hi]],
    ],
    ['completions', { choices: [{ text: 'hi' }] }, [['assistant', hi]]],
    [
      'Anthropic',
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm' },
          { type: 'text', text: 'hi' },
          { type: 'tool_use', id: 'c1', name: 'w', input: { city: 'P' } },
        ],
      },
      [['assistant', { kind: 'reasoning', text: 'hm' }, hi, call]],
    ],
    [
      'LangChain, serialised',
      {
        messages: [
          [
            {
              lc: 1,
              type: 'constructor',
              id: ['langchain_core', 'messages', 'HumanMessage'],
              kwargs: { content: 'hi' },
            },
            {
              lc: 1,
              type: 'constructor',
              id: ['langchain_core', 'messages', 'AIMessageChunk'],
              kwargs: { content: '', tool_calls: [{ id: 'c1', name: 'w', args: { city: 'P' } }] },
            },
          ],
        ],
      },
      [
        ['user', hi],
        ['assistant', call],
      ],
    ],
    [
      'LangChain, plain',
      {
        messages: [
          { type: 'human', content: 'hi' },
          { type: 'ai', data: { content: 'hi' } },
        ],
      },
      [
        ['user', hi],
        ['assistant', hi],
      ],
    ],
    ['generations', { generations: [[{ text: 'hi', message: { type: 'ai', content: 'hi' } }]] }, [['assistant', hi]]],
    [
      'GenAI parts',
      {
        messages: [
          {
            role: 'assistant',
            parts: [
              { type: 'text', content: 'hi' },
              { type: 'tool_call', id: 'c1', name: 'w', arguments: { city: 'P' } },
            ],
          },
        ],
      },
      [['assistant', hi, call]],
    ],
    [
      'pictures',
      {
        messages: [
          {
            role: 'user',
            content: [
              { type: 'image_url', image_url: { url: 'https://x/p.png' } },
              { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: 'QQ==' } },
              { type: 'file', mediaType: 'image/webp', data: 'QQ==' },
            ],
          },
        ],
      },
      [
        [
          'user',
          { kind: 'image', url: 'https://x/p.png' },
          { kind: 'image', url: 'data:image/jpeg;base64,QQ==' },
          { kind: 'image', url: 'data:image/webp;base64,QQ==' },
        ],
      ],
    ],
  ];
  for (const [name, document, expected] of cases) {
    test(name, () => assert.deepEqual(blocksOf(document), expected));
  }

  test('what is none, is none, and nothing of what is beside one is lost', () => {
    for (const document of [
      null,
      'hi',
      [],
      {},
      { input: 'hi' },
      { messages: 'hi' },
      { messages: [1] },
      { documents: [{ page_content: 'x' }] },
    ]) {
      assert.equal(readConversation(document), null);
    }
    const found = readConversation({ messages: [{ role: 'user', content: 'hi' }], model: 'm', tools: [] });
    assert.deepEqual(found?.rest, { model: 'm', tools: [] });
    const unknown = { type: 'hologram', depth: 3 };
    assert.deepEqual(blocksOf({ messages: [{ role: 'user', content: [unknown] }] }), [
      ['user', { kind: 'other', value: unknown }],
    ]);
  });
});

/** `names` with their depths: `a`, ` b` (a child), … A `!` marks a failure. */
function runs(...lines: readonly string[]): TraceRun[] {
  return lines.map((line, index) => {
    const name = line.trim();
    return {
      id: `${index}`,
      parent_run_id: null,
      name,
      run_type: 'chain',
      status: name.endsWith('!') ? 'error' : 'success',
      error: null,
      start_time: `2026-03-04T05:06:07.${String(index).padStart(6, '0')}Z`,
      end_time: `2026-03-04T05:06:07.${String(index + 10).padStart(6, '0')}Z`,
      duration_ms: 0.01,
      prompt_tokens: null,
      completion_tokens: null,
      total_tokens: 10,
      total_cost: null,
      depth: line.length - line.trimStart().length,
      orphan: false,
    };
  });
}

describe('the tree of a trace', () => {
  const tree = buildTree(runs('a', ' b', '  c!', '  d', ' e'));

  test('knows what lies below each run, and where it stands in time', () => {
    assert.deepEqual(
      tree.rows.map(({ belowCount, failedBelowCount, tokens }) => [belowCount, failedBelowCount, tokens]),
      [
        [4, 1, 30],
        [2, 1, 20],
        [0, 0, 10],
        [0, 0, 10],
        [0, 0, 10],
      ],
    );
    assert.equal(tree.lengthUs, 14);
    assert.deepEqual([tree.rows[2]?.from, tree.rows[2]?.to], [2 / 14, 12 / 14]);
  });

  test('collapses, finds with ancestors, and leads upward', () => {
    const names = (collapsed: string[], find = ''): string =>
      visibleRows(tree, new Set(collapsed), find)
        .map(({ run }) => run.name)
        .join(' ');
    assert.equal(names([]), 'a b c! d e');
    assert.equal(names(['1']), 'a b e');
    assert.equal(names(['0']), 'a');
    assert.equal(names(['0'], 'D'), 'a b d');
    assert.equal(names([], 'nothing'), '');
    const [, b, c] = tree.rows;
    assert.ok(b !== undefined && c !== undefined);
    assert.equal(parentOf(tree, c), b);
  });

  test('of no runs is empty', () => assert.deepEqual(buildTree([]).rows, []));
});

test('two traces are paired level by level, and what only one has stands alone', () => {
  const pairs = alignTrees(
    buildTree(runs('one', ' plan', ' tool', '  http', ' answer')),
    buildTree(runs('other', ' plan', ' check', ' tool', ' answer', '  more')),
  );
  assert.deepEqual(
    pairs.map(({ depth, left, right }) => `${depth} ${left?.run.name ?? '–'} ${right?.run.name ?? '–'}`),
    ['0 one other', '1 plan plan', '1 – check', '1 tool tool', '2 http –', '1 answer answer', '2 – more'],
  );
});

test('thousands of runs that differ are still paired, each once', () => {
  const many = (word: string): TraceRun[] => runs('root', ...Array.from({ length: 3000 }, (_, n) => ` ${word} ${n}`));
  const pairs = alignTrees(buildTree(many('a')), buildTree(many('b')));
  assert.equal(pairs.length, 6001);
  assert.equal(pairs.filter(({ left }) => left !== null).length, 3001);
});

describe('the list', () => {
  const trace = (id: string, second: number): TraceSummary =>
    ({
      trace_id: id,
      tenant: 't',
      start_time: `2026-03-04T05:06:${String(second).padStart(2, '0')}.000000Z`,
      name: id,
    }) as TraceSummary;
  const ids = (items: readonly TraceSummary[]): string => items.map(({ trace_id }) => trace_id).join('');
  const shown = [trace('d', 40), trace('c', 30), trace('b', 20)];

  test('takes what arrived to its place, each trace once, and what is gone out', () => {
    assert.equal(ids(merge(shown, [trace('e', 50)], new Set(), false)), 'edcb');
    assert.equal(ids(merge(shown, [trace('x', 35), trace('e', 50)], new Set(), false)), 'edxcb');
    assert.equal(ids(merge(shown, [trace('c', 45)], new Set(), false)), 'cdb');
    assert.equal(ids(merge(shown, [], new Set(['c']), false)), 'db');
  });

  test('leaves to its page what starts before its end, unless that is the end of all', () => {
    assert.equal(ids(merge(shown, [trace('a', 10)], new Set(), false)), 'dcb');
    assert.equal(ids(merge(shown, [trace('a', 10)], new Set(), true)), 'dcba');
    assert.equal(ids(merge([], [trace('a', 10), trace('b', 20)], new Set(), true)), 'ba');
  });
});

describe('a filter', () => {
  test('is read from the address, and asks for what the API understands', () => {
    const params = new URLSearchParams(
      'project=p&project=q&status=error&min_duration_ms=5&last=1h&text=%3F%3F&other=1',
    );
    const filter = readFilter(params);
    assert.deepEqual(filter.projects, ['p', 'q']);
    const query = queryOf(filter, 10_000_000);
    assert.equal(query['since'], '6400000');
    assert.equal(query['text'], '', 'no word in it: the API would refuse it');
    assert.equal(isNarrowed(params), true);
    assert.equal(isNarrowed(new URLSearchParams('other=1')), false);
  });

  test('comes from a drag: bounds of buckets, none for the outermost', () => {
    const bounds = [1, 10, 100];
    assert.deepEqual(rangeOf(bounds, [1.5, 2.5], null), {
      since: '1500',
      until: '2500',
      min_duration_ms: '',
      max_duration_ms: '',
    });
    assert.deepEqual(rangeOf(bounds, [0, 1], [1.2, 1.8]), {
      since: '0',
      until: '1000',
      min_duration_ms: '1',
      max_duration_ms: '10',
    });
    assert.deepEqual(rangeOf(bounds, [0, 1], [0.2, 3.5]), {
      since: '0',
      until: '1000',
      min_duration_ms: '',
      max_duration_ms: '',
    });
  });

  test('percentiles lie within their bucket', () => {
    const latency = { bounds_ms: [1, 10, 100], counts: [0, 90, 10, 0] };
    const [p50, p95] = [percentile(latency, 0.5) ?? 0, percentile(latency, 0.95) ?? 0];
    assert.ok(p50 > 1 && p50 < 10, String(p50));
    assert.ok(p95 > 10 && p95 < 100, String(p95));
    assert.equal(percentile({ bounds_ms: [1], counts: [0, 0] }, 0.5), null);
  });
});

test('numbers and times are written for people, and read back', () => {
  assert.deepEqual([null, 0, 0.34, 12.345, 999, 1234, 125_000, 3_700_000].map(duration), [
    '–',
    '0 ms',
    '340 µs',
    '12.3 ms',
    '999 ms',
    '1.23 s',
    '2 m 05 s',
    '1 h 01 m',
  ]);
  assert.deepEqual([null, 0, 1.5, 0.0042, 0.00026].map(cost), ['–', '$0', '$1.50', '$0.0042', '$0.00026']);
  assert.deepEqual(['500', '2s', '1.5m', '250 ms', '2x', ''].map(readDuration), [500, 2000, 90_000, 250, null, null]);
  assert.equal(microseconds('2026-03-04T05:06:07.000123Z') - microseconds('2026-03-04T05:06:07Z'), 123);
});

test('integers beyond a double stay exact', () => {
  const value = parseExactJson('{"a":12345678901234567890,"b":1.5,"c":7}') as Record<string, unknown>;
  assert.ok(value['a'] instanceof ExactNumber);
  assert.equal(String(value['a']), '12345678901234567890');
  assert.equal(value['b'], 1.5);
  assert.equal(value['c'], 7);
});

test('only pictures that can hold no script are pictures, only web addresses are links', () => {
  assert.notEqual(pictureUrl('data:image/png;base64,QQ=='), null);
  for (const url of [
    'data:image/svg+xml;base64,QQ==',
    'data:text/html;base64,QQ==',
    'https://x/p.png',
    'javascript:1',
    'data:image/png,x',
  ]) {
    assert.equal(pictureUrl(url), null, url);
  }
  assert.equal(linkUrl(' https://x/'), 'https://x/');
  for (const url of ['javascript:1', 'JaVaScRiPt:1', 'data:text/html,x', '/console', 'vbscript:1', ''])
    assert.equal(linkUrl(url), null, url);
});
