/** Bodies and queries of the deployment API that mean harm, on both engines: group 14 of the cases (cases.test.ts), and what databases refuse. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, afterEach, before, test } from 'node:test';
import { MiB } from '../../src/core/units.ts';
import { describeOnEachEngine } from '../deploy-engines.ts';
import { EXAMPLES, FIXTURE_GRAPHS, specs } from '../deploy-server.ts';
import { operations, startApi, type ApiServer } from './apiserver.ts';

const ID = '00000000-0000-4000-8000-000000000000';
const NUL = 'a\0b';
const HALF = 'a\ud800b';
/** Too long for an index of PostgreSQL, also compressed. */
const LONG = randomBytes(6000).toString('hex');

describeOnEachEngine('hostile input', (engine) => {
  let server: ApiServer;
  let threadId: string;

  before(async () => {
    server = await startApi({ engine, graphs: [...specs(EXAMPLES, 'echo'), ...specs(FIXTURE_GRAPHS, 'steps')] });
    threadId = await server.thread();
    const run = { assistant_id: 'steps', input: { name: 'a' } };
    assert.equal((await server.ask('POST', `/threads/${threadId}/runs/wait`, run)).status, 200);
  });
  after(() => server.close());
  afterEach(async () => {
    assert.equal((await server.ask('GET', '/ok?check_db=1')).status, 200);
    assert.equal(server.counted('api_refused_internal'), 0, server.logged());
    assert.equal(server.counted('graph_attempts_lost'), 0, server.logged());
  });

  const run = { assistant_id: 'steps', input: { name: 'b' } };
  const cron = { assistant_id: 'steps', schedule: '* * * * *', enabled: false };

  /** `:t` stands for a thread with a history. */
  const refusals: [title: string, method: string, path: string, body: unknown, detail: RegExp][] = [
    ...[NUL, HALF].flatMap((odd): [string, string, string, unknown, RegExp][] => [
      ['metadata of a thread', 'POST', '/threads', { metadata: { k: [odd] } }, /^metadata: /],
      ['metadata of a run', 'POST', '/threads/:t/runs', { ...run, metadata: { [odd]: 1 } }, /^metadata: /],
      ['metadata of a cron', 'POST', '/runs/crons', { ...cron, metadata: { k: odd } }, /^metadata: /],
      ['metadata of a state', 'PATCH', '/threads/:t/state', { metadata: { k: odd } }, /^metadata: /],
      ['values of a search', 'POST', '/threads/search', { values: { k: odd } }, /^values: /],
      ['a filter of the history', 'POST', '/threads/:t/history', { metadata: { k: odd } }, /^metadata: /],
      ['the config of an assistant', 'POST', '/assistants', { graph_id: 'echo', config: { k: odd } }, /^config: /],
      ['the context of an assistant', 'PATCH', '/assistants/echo', { context: { k: odd } }, /^context: /],
      ['the name of an assistant', 'POST', '/assistants', { graph_id: 'echo', name: odd }, /^name: /],
      ['a name that is searched for', 'POST', '/assistants/search', { name: odd }, /^name: /],
      ['a graph', 'POST', '/assistants', { graph_id: odd }, /^graph_id: /],
      ['an assistant', 'POST', '/runs', { ...run, assistant_id: odd }, /^assistant_id: /],
      ['a checkpoint of a run', 'POST', '/threads/:t/runs', { ...run, checkpoint_id: odd }, /^checkpoint_id: /],
      [
        'a checkpoint in the config',
        'POST',
        '/threads/:t/runs',
        { ...run, config: { configurable: { checkpoint_ns: odd } } },
        /^config\.configurable\.checkpoint_ns: /,
      ],
      ['a checkpoint of a state', 'POST', '/threads/:t/state', { values: {}, checkpoint_id: odd }, /^checkpoint_id: /],
      ['a node', 'POST', '/threads/:t/state', { values: {}, as_node: odd }, /^as_node: /],
      [
        'a namespace of a state',
        'POST',
        '/threads/:t/state/checkpoint',
        { checkpoint: { checkpoint_ns: odd } },
        /_ns: /,
      ],
      [
        'a node to go to',
        'POST',
        '/threads/:t/runs',
        { assistant_id: 'steps', command: { goto: odd } },
        /^command\.goto: /,
      ],
      ['a key of an item', 'PUT', '/store/items', { namespace: ['a'], key: odd, value: {} }, /^key: /],
      ['a label of an item', 'PUT', '/store/items', { namespace: [odd], key: 'k', value: {} }, /^namespace\[0\]: /],
      ['a filter of items', 'POST', '/store/items/search', { filter: { [odd]: 1 } }, /^filter: /],
      ['a webhook', 'POST', '/runs', { ...run, webhook: `https://example.com/${odd}` }, /^webhook: /],
    ]),
    ['NUL in a path', 'GET', '/threads/:t/state/a%00b', undefined, /^checkpoint_id: /],
    ['NUL in a query', 'GET', '/threads/:t/history?before=a%00b', undefined, /^before: /],
    ['NUL in the query of an item', 'GET', '/store/items?namespace=a&key=a%00b', undefined, /key/],
    ['a key too long', 'PUT', '/store/items', { namespace: ['a'], key: LONG, value: {} }, /^key: .*2000 bytes/],
    ['labels too long', 'PUT', '/store/items', { namespace: [LONG], key: 'k', value: {} }, /2000 bytes/],
    [
      'a namespace too long',
      'POST',
      '/threads/:t/state',
      { values: {}, checkpoint: { checkpoint_ns: LONG } },
      /checkpoint_ns: .*2000 bytes/,
    ],
    ['a time to live without end', 'POST', '/threads', { ttl: 1e300 }, /^ttl: /],
    ['one for an item', 'PUT', '/store/items', { namespace: ['a'], key: 'k', value: {}, ttl: 1e300 }, /^ttl: /],
    ['a version beyond all', 'POST', '/assistants/echo/latest', { version: 2 ** 40 }, /^version: /],
    [
      'no concurrency at all',
      'POST',
      '/runs',
      { ...run, config: { max_concurrency: 0 } },
      /^config\.max_concurrency: /,
    ],
    [
      'input and command of a cron',
      'POST',
      '/runs/crons',
      { ...cron, input: { a: 1 }, command: { resume: 1 } },
      /^command: /,
    ],
  ];
  for (const [title, method, path, body, detail] of refusals) {
    const odd = JSON.stringify(body ?? path).includes('ud800')
      ? 'half a pair in '
      : JSON.stringify(body ?? '').includes('u0000')
        ? 'NUL in '
        : '';
    test(`is refused: ${odd}${title}`, async () => {
      const answer = await server.ask(method, path.replace(':t', threadId), body);
      assert.equal(answer.status, 422, answer.text);
      assert.match(answer.detail, detail);
    });
  }

  test('is kept as it is where nothing is searched by it: NUL, half pairs and large numbers in values and inputs', async () => {
    const odd = { text: NUL, half: HALF, '\0': 1, large: 2 ** 60 };
    const item = { namespace: ['odd'], key: 'k', value: odd, ttl: 1e-7 };
    assert.equal((await server.ask('PUT', '/store/items', item)).status, 204);
    assert.equal((await server.ask('PUT', '/store/items', { ...item, ttl: null })).status, 204);
    assert.deepEqual(
      ((await server.ask('GET', '/store/items?namespace=odd&key=k')).json as { value: object }).value,
      odd,
    );
    const messages = [{ role: 'user', content: NUL + HALF, id: '1' }];
    const id = await server.thread({ ttl: 1e-7 + 60 });
    const waited = await server.ask('POST', `/threads/${id}/runs/wait`, {
      assistant_id: 'echo',
      input: { messages },
      context: odd,
    });
    assert.equal((waited.json as { messages: { content: string }[] }).messages[0]?.content, NUL + HALF);
    const { values } = (await server.ask('GET', `/threads/${id}/state`)).json as {
      values: { messages: { content: string }[] };
    };
    assert.equal(values.messages[0]?.content, NUL + HALF);
    assert.equal((await server.ask('POST', '/threads/search', { ids: [id], values: { absent: 1 } })).text, '[]');
  });

  test('cannot reach a prototype by any body of the API', async () => {
    const bodies = [
      '{"__proto__":{"polluted":1}}',
      '{"metadata":{"a":[{"__proto__":{"polluted":1}}]},"values":{"__proto__":{"polluted":1}},"filter":{"__proto__":{"$eq":1}}}',
      '{"input":{"__proto__":{"polluted":1}},"config":{"configurable":{"__proto__":{"polluted":1}}},"assistant_id":"echo"}',
    ];
    const other = { polluted: 1 };
    const named = {
      ...{ constructor: { prototype: other }, prototype: other, toString: 1, hasOwnProperty: 1, valueOf: 1 },
      ...{ assistant_id: 'echo', graph_id: 'constructor', schedule: '* * * * *', enabled: false },
      ...{ namespace: ['constructor'], key: 'prototype', value: { constructor: { prototype: other } } },
      ...{ metadata: { constructor: { prototype: other } }, values: { constructor: { prototype: other } } },
      ...{ select: ['constructor', '__proto__'], extract: { constructor: 'values.constructor.prototype' } },
      ...{ filter: { constructor: { $eq: 1 } }, config: { configurable: { constructor: other, toString: 1 } } },
    };
    for (const { method, path, takesBody } of operations({
      thread_id: ID,
      run_id: ID,
      cron_id: ID,
      assistant_id: 'none',
    })) {
      if (!takesBody || /stream$/.test(path)) continue;
      for (const body of bodies) {
        const answer = await server.ask(method, path, body);
        assert.ok([404, 422].includes(answer.status), `${method} ${path} ${body}: ${answer.status} ${answer.text}`);
        if (answer.status === 422) assert.match(answer.detail, /__proto__: this key is not accepted|body: /);
      }
      const answer = await server.ask(method, path, named);
      assert.ok(answer.status < 500, `${method} ${path}: ${answer.text}`);
    }
    assert.equal(({} as { polluted?: number }).polluted, undefined);
  });

  test('cannot reach a prototype by the name of a node, a channel or a namespace', async () => {
    for (const name of [
      'constructor',
      '__proto__',
      'toString',
      'hasOwnProperty',
      '__start__',
      '__end__',
      '__pregel_tasks',
    ]) {
      const id = await server.thread();
      await server.ask('POST', `/threads/${id}/runs/wait`, run);
      for (const body of [
        { values: { name: 'c' }, as_node: name },
        { values: { [name === '__proto__' ? 'valueOf' : name]: 1 } },
      ]) {
        const answer = await server.ask('POST', `/threads/${id}/state`, body);
        assert.ok(answer.status === 200 || answer.status === 422, `${name}: ${answer.text}`);
      }
      for (const more of [
        { command: { goto: name } },
        { command: { goto: { node: name } } },
        { command: { update: [[name, 1]] } },
        { input: {}, interrupt_before: [name], interrupt_after: [name] },
      ]) {
        const answer = await server.ask('POST', `/threads/${id}/runs/wait`, { assistant_id: 'steps', ...more });
        assert.equal(answer.status, 200, `${name} ${JSON.stringify(more)}: ${answer.text}`);
      }
      assert.ok((await server.ask('GET', `/assistants/echo/subgraphs/${name}`)).status < 500, name);
    }
  });

  test('of a million wrong entries costs one complaint', async () => {
    const many = `[${'0,'.repeat(1_000_000)}0]`;
    const wrong: [path: string, body: string, detail: RegExp][] = [
      [
        '/runs',
        `{"assistant_id":"echo","feedback_keys":${many}}`,
        /^feedback_keys: at most 1000 entries, not 1000001$/,
      ],
      ['/runs', `{"assistant_id":"echo","interrupt_before":${many}}`, /^interrupt_before: /],
      ['/runs', `{"assistant_id":"echo","stream_mode":${many}}`, /^stream_mode: /],
      ['/runs', `{"assistant_id":"echo","command":{"goto":${many}}}`, /^command\.goto: /],
      ['/runs', `{"assistant_id":"echo","command":{"update":${many}}}`, /^command\.update: /],
      ['/runs', `{"assistant_id":"echo","config":{"tags":${many}}}`, /^config\.tags: /],
      ['/runs/batch', many, /^body: at most 1000 entries/],
      [
        '/runs/batch',
        `[${`{"assistant_id":"echo","config":{"tags":[${'0,'.repeat(900)}0]}},`.repeat(900)}0]`,
        /^\[0\]\.config\.tags\[0\]: /,
      ],
      ['/runs/cancel', `{"thread_id":"${ID}","run_ids":${many}}`, /^run_ids: /],
      ['/threads', `{"metadata":{"graph_id":"echo"},"supersteps":${many}}`, /^supersteps: /],
      ['/threads/search', `{"ids":${many},"select":${many}}`, /^ids: .*; select: /],
      [
        '/threads/search',
        `{"extract":{${Array.from({ length: 100_000 }, (_, i) => `"${i}":0`).join()}}}`,
        /^extract: at most 10/,
      ],
      ['/threads/prune', `{"thread_ids":${many}}`, /^thread_ids: /],
      ['/store/items/search', `{"namespace_prefix":${many}}`, /^namespace_prefix: /],
      ['/store/namespaces', `{"prefix":${many},"suffix":${many}}`, /^prefix: .*; suffix: /],
    ];
    for (const [path, body, detail] of wrong) {
      const answer = await server.ask('POST', path, body);
      assert.equal(answer.status, 422, `${path}: ${answer.text.slice(0, 500)}`);
      assert.match(answer.detail, detail);
      assert.ok(answer.text.length < 1000, path);
    }
  });

  test('nested a hundred thousand levels deep is refused by every route that takes a body', async () => {
    const deep = (open: string, inner: string, close: string): string =>
      open.repeat(100_000) + inner + close.repeat(100_000);
    const refusedBefore = server.counted('api_refused_invalid');
    let count = 0;
    for (const { method, path, takesBody } of operations({
      thread_id: ID,
      run_id: ID,
      cron_id: ID,
      assistant_id: 'echo',
    })) {
      if (!takesBody) continue;
      for (const body of [`{"metadata":${deep('{"a":', '1', '}')}}`, `{"input":${deep('[', '1', ']')}}`]) {
        const answer = await server.ask(method, path, body);
        assert.equal(answer.status, 422, `${method} ${path}`);
        assert.match(answer.detail, /nested more than 200 levels deep/);
        count++;
      }
    }
    assert.ok(count > 40);
    assert.equal(server.counted('api_refused_invalid') - refusedBefore, count);
  });

  test('of 33 MiB is 413, and counted; what a refusal repeats of a long text is short', async () => {
    const tooLarge = server.counted('api_refused_too-large');
    const large = await server.ask('POST', '/threads', `{"metadata":{"a":"${'x'.repeat(33 * MiB)}"}}`);
    assert.equal(large.status, 413);
    assert.match(large.detail, /too large/);
    assert.equal(server.counted('api_refused_too-large'), tooLarge + 1);
    const name = 'n'.repeat(5 * MiB);
    for (const [method, path, body] of [
      ['POST', '/runs', { assistant_id: name }],
      ['POST', '/assistants', { graph_id: name }],
      ['POST', '/threads/search', { extract: { [name]: 'secrets' } }],
      ['POST', '/threads/search', { extract: { a: name } }],
      ['POST', '/store/items/search', { filter: { a: { [`$${name}`]: 1 } } }],
      ['POST', '/runs/crons', { assistant_id: 'echo', schedule: name, timezone: name }],
      ['POST', '/threads', { metadata: { [name]: '\0' }, if_exists: name }],
    ] as const) {
      const answer = await server.ask(method, path, body);
      assert.ok([404, 422].includes(answer.status), `${path}: ${answer.status}`);
      assert.ok(answer.detail.length > 10 && answer.text.length < 10_000, `${path}: ${answer.text.length}`);
    }
  });
});
