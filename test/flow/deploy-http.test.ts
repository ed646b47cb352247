import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { MINUTE_MS } from '../../src/core/units.ts';
import { createAccess } from '../../src/deploy/access.ts';
import { defaultAssistantId } from '../../src/deploy/ids.ts';
import type { StoreLocation } from '../../src/deploy/store/location.ts';
import { EXAMPLES, specs, startServer } from '../deploy-server.ts';
import type { TestServer } from '../deploy-server.ts';
import { SteppedClock } from '../steppedclock.ts';
import { startReceiver } from '../webhook-receiver.ts';
import type { WebhookReceiver } from '../webhook-receiver.ts';

const UUID = '01a1f8c5-079e-774d-bc33-a9bb74b0a255';
const INPUT = { messages: [{ role: 'user', content: 'hi' }] };

interface Answer {
  status: number;
  headers: Headers;
  json: unknown;
  text: string;
}

async function ask(
  server: TestServer,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const response = await fetch(server.url + path, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  let json: unknown = null;
  try {
    json = JSON.parse(text);
  } catch {
    // Not every answer is JSON.
  }
  return { status: response.status, headers: response.headers, json, text };
}

function detailOf(answer: Answer): string {
  const keys = Object.keys(answer.json as object);
  assert.deepEqual(keys, ['detail'], answer.text);
  return (answer.json as { detail: string }).detail;
}

describe('the deployment API over HTTP', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ graphs: specs(EXAMPLES, 'echo') });
  });
  after(() => server.close());

  const refusals: [title: string, method: string, path: string, body: unknown, status: number, detail: RegExp][] = [
    ['a body that is no JSON', 'POST', '/threads', '{"metadata":', 400, /JSON/],
    ['a body that is no object', 'POST', '/threads', '[]', 422, /object/],
    ['a key that reaches a prototype', 'POST', '/threads', '{"metadata":{"a":{"__proto__":{}}}}', 422, /metadata\.a/],
    ['a body nested too deep', 'POST', '/runs', `${'{"input":['.padEnd(5000, '[')}`, 400, /JSON/],
    ['metadata with NUL', 'POST', '/threads', { metadata: { 'a\0': 1 } }, 422, /metadata.*NUL/],
    ['metadata with half a pair', 'POST', '/threads/search', '{"metadata":{"a":"\\ud800"}}', 422, /surrogate/],
    ['metadata that is a list', 'POST', '/threads/search', { metadata: [] }, 422, /metadata/],
    ['a limit of nothing', 'POST', '/threads/search', { limit: 0 }, 422, /limit/],
    ['a limit too large', 'POST', '/assistants/search', { limit: 1001 }, 422, /limit/],
    ['a negative offset', 'POST', '/assistants/search', { offset: -1 }, 422, /offset/],
    ['an unknown order', 'POST', '/threads/search', { sort_by: 'thread_id; drop table x' }, 422, /sort_by/],
    ['a path into nowhere', 'POST', '/threads/search', { extract: { a: 'secrets.key' } }, 422, /extract/],
    [
      'too many paths',
      'POST',
      '/threads/search',
      { extract: Object.fromEntries([...'abcdefghijk'].map((c) => [c, 'values.x'])) },
      422,
      /10/,
    ],
    ['an id that is none', 'POST', '/threads', { thread_id: 'x' }, 422, /thread_id/],
    [
      'supersteps without a graph',
      'POST',
      '/threads',
      { supersteps: [{ updates: [{ values: {} }] }] },
      422,
      /graph_id/,
    ],
    ['a thread that is none', 'GET', '/threads/x', undefined, 422, /thread_id/],
    ['an unknown thread', 'GET', `/threads/${UUID}`, undefined, 404, /not found/],
    ['a malformed escape', 'GET', '/threads/%zz', undefined, 400, /escape/],
    ['an unknown path', 'GET', '/threads/x/y/z', undefined, 404, /./],
    ['another method', 'PUT', '/threads', {}, 405, /./],
    ['an unknown graph', 'POST', '/assistants', { graph_id: 'nobody' }, 404, /nobody/],
    ['an unknown version', 'POST', '/assistants/echo/latest', { version: 99 }, 404, /99/],
    ['no version', 'POST', '/assistants/echo/latest', {}, 422, /version/],
    [
      'a schedule of six fields',
      'POST',
      '/runs/crons',
      { assistant_id: 'echo', schedule: '* * * * * *' },
      422,
      /schedule: five/,
    ],
    [
      'an unknown zone',
      'POST',
      '/runs/crons',
      { assistant_id: 'echo', schedule: '* * * * *', timezone: 'X' },
      422,
      /timezone/,
    ],
    [
      'a time that is none',
      'POST',
      '/runs/crons',
      { assistant_id: 'echo', schedule: '* * * * *', end_time: 'soon' },
      422,
      /end_time/,
    ],
    ['a cron of nobody', 'POST', '/runs/crons', { assistant_id: 'nobody', schedule: '* * * * *' }, 404, /nobody/],
    [
      'a cron on no thread',
      'POST',
      `/threads/${UUID}/runs/crons`,
      { assistant_id: 'echo', schedule: '* * * * *' },
      404,
      /Thread/,
    ],
    ['an unknown cron', 'DELETE', `/runs/crons/${UUID}`, undefined, 404, /not found/],
    ['a label with a full stop', 'PUT', '/store/items', { namespace: ['a.b'], key: 'k', value: {} }, 422, /namespace/],
    ['no namespace', 'PUT', '/store/items', { namespace: [], key: 'k', value: {} }, 422, /namespace/],
    ['a value that is no object', 'PUT', '/store/items', { namespace: ['a'], key: 'k', value: 1 }, 422, /value/],
    ['an unknown operator', 'POST', '/store/items/search', { filter: { a: { $where: '1' } } }, 422, /\$where/],
    ['webhooks of no run', 'GET', `/runs/${UUID}/webhooks`, undefined, 404, /not found/],
    ['a flag that is none', 'GET', '/ok?check_db=maybe', undefined, 422, /check_db/],
  ];
  for (const [title, method, path, body, status, detail] of refusals) {
    it(`refuses ${title} with ${status} and says so`, async () => {
      const answer = await ask(server, method, path, body);
      assert.equal(answer.status, status, answer.text);
      assert.match(detailOf(answer), detail);
    });
  }

  it('takes bodies whatever their label, and none at all', async () => {
    assert.equal((await ask(server, 'POST', '/threads', '{}', { 'content-type': 'text/plain' })).status, 200);
    const response = await fetch(`${server.url}/threads/search`, { method: 'POST' });
    assert.equal(response.status, 200);
  });

  it('pages through searches by headers', async () => {
    const mark = { batch: crypto.randomUUID() };
    for (let i = 0; i < 5; i++) await ask(server, 'POST', '/threads', { metadata: { ...mark, i } });
    const search = (offset: number) => ask(server, 'POST', '/threads/search', { metadata: mark, limit: 2, offset });
    const first = await search(0);
    assert.equal(first.headers.get('x-pagination-total'), '5');
    assert.equal(first.headers.get('x-pagination-next'), '2');
    const last = await search(4);
    assert.equal(last.headers.get('x-pagination-next'), null);
    assert.equal((last.json as unknown[]).length, 1);
    assert.equal((await ask(server, 'POST', '/threads/count', { metadata: mark })).text, '5');
  });

  it('answers a patch without a body when asked to', async () => {
    const { thread_id: id } = (await ask(server, 'POST', '/threads', {})).json as { thread_id: string };
    const minimal = await ask(server, 'PATCH', `/threads/${id}`, { metadata: { a: 1 } }, { prefer: 'return=minimal' });
    assert.deepEqual([minimal.status, minimal.text], [204, '']);
    const whole = await ask(server, 'PATCH', `/threads/${id}`, { metadata: { b: 2 }, ttl: { ttl: 5 } });
    assert.deepEqual((whole.json as { metadata: object }).metadata, { a: 1, b: 2 });
    const withTtl = (await ask(server, 'GET', `/threads/${id}?include=ttl`)).json as { ttl: { ttl_minutes: number } };
    assert.equal(withTtl.ttl.ttl_minutes, 5);
  });

  it('takes namespaces in every spelling in use', async () => {
    await ask(server, 'PUT', '/store/items', { namespace: ['a', 'b'], key: 'k', value: { n: 1 } });
    for (const query of ['namespace=a.b', 'namespace=a&namespace=b', 'namespace=["a","b"]']) {
      const answer = await ask(server, 'GET', `/store/items?key=k&${query}`);
      assert.deepEqual((answer.json as { value: object }).value, { n: 1 }, query);
    }
    assert.equal((await ask(server, 'GET', '/store/items?key=z&namespace=a.b')).text, 'null');
  });

  it('takes lists and booleans of a query in every spelling in use', async () => {
    const { thread_id: id } = (await ask(server, 'POST', '/threads', {})).json as { thread_id: string };
    await ask(server, 'POST', `/threads/${id}/runs/wait`, { assistant_id: 'echo', input: INPUT });
    for (const query of ['select=run_id&select=status', 'select=run_id,status', 'select=["run_id","status"]']) {
      const [row] = (await ask(server, 'GET', `/threads/${id}/runs?${query}`)).json as object[];
      assert.deepEqual(Object.keys(row ?? {}), ['run_id', 'status'], query);
    }
    for (const [query, status] of [
      ['subgraphs=true', 200],
      ['subgraphs=True', 200],
      ['subgraphs=1', 200],
      ['subgraphs=0', 200],
      ['subgraphs=', 200],
      ['subgraphs=yes', 422],
    ] as const)
      assert.equal((await ask(server, 'GET', `/threads/${id}/state?${query}`)).status, status, query);
  });

  it('gives each graph the assistant id that clients compute themselves', async () => {
    assert.equal(defaultAssistantId('agent'), 'fe096781-5601-53d2-b2f6-0d3403f7e9ca');
    const { assistant_id: id } = (await ask(server, 'GET', '/assistants/echo')).json as { assistant_id: string };
    assert.equal(id, defaultAssistantId('echo'));
    const answer = await ask(server, 'POST', '/runs/wait', { assistant_id: id.toUpperCase(), input: INPUT });
    assert.match(answer.text, /You said: hi/);
  });

  it('shows health, itself and its description', async () => {
    assert.deepEqual((await ask(server, 'GET', '/ok?check_db=1')).json, { ok: true });
    const info = (await ask(server, 'GET', '/info')).json as { flags: object; langgraph_js_version: string };
    assert.equal((info.flags as { crons: boolean }).crons, true);
    assert.match(info.langgraph_js_version, /^1\./);
    const document = (await ask(server, 'GET', '/openapi.json')).json as { paths: object };
    assert.ok('/threads/{thread_id}/runs/wait' in document.paths);
    assert.match((await ask(server, 'GET', '/docs')).headers.get('content-type') ?? '', /text\/html/);
  });

  it('lets pages of other origins read what the clients need', async () => {
    const origin = 'https://app.example.com';
    const preflight = await fetch(`${server.url}/threads`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-api-key' },
    });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers.get('access-control-allow-origin'), '*');
    assert.equal(preflight.headers.get('access-control-allow-headers'), 'x-api-key');
    const answer = await ask(server, 'POST', '/threads', {}, { origin });
    assert.match(answer.headers.get('access-control-expose-headers') ?? '', /Content-Location/);
  });
});

describe('a deployment with API keys', () => {
  let server: TestServer;
  before(async () => {
    const access = { apiKeys: ['right'], auth: 'keys', trustedOrigins: () => false } as const;
    assert.ok(createAccess(access));
    server = await startServer({ graphs: specs(EXAMPLES, 'echo'), settings: { access } });
  });
  after(() => server.close());

  it('answers nothing to those who have none, on no path', async () => {
    for (const [method, path] of [
      ['GET', '/ok'],
      ['GET', '/info'],
      ['GET', '/docs'],
      ['GET', '/openapi.json'],
      ['POST', '/threads'],
      ['GET', `/threads/${UUID}`],
      ['GET', '/threads/%zz'],
      ['POST', '/assistants/search'],
      ['POST', '/runs/wait'],
      ['POST', '/runs/stream'],
      ['POST', '/runs/crons'],
      ['GET', `/runs/${UUID}/webhooks`],
      ['PUT', '/store/items'],
      ['DELETE', `/thread/${UUID}`],
    ] as const) {
      const answer = await ask(server, method, path, method === 'GET' ? undefined : {}, { 'x-api-key': 'wrong' });
      assert.equal(answer.status, 401, `${method} ${path}`);
      assert.match(detailOf(answer), /key/i);
    }
    assert.equal((await ask(server, 'POST', '/threads', {}, { 'x-api-key': 'right' })).status, 200);
    assert.equal((await ask(server, 'POST', '/threads', {}, { authorization: 'Bearer right' })).status, 200);
  });
});

describe('a deployment without graphs', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ graphs: [] });
  });
  after(() => server.close());

  it('has threads and searches, and says what is missing when asked for a run', async () => {
    const { thread_id: id } = (await ask(server, 'POST', '/threads', {})).json as { thread_id: string };
    assert.deepEqual((await ask(server, 'POST', '/assistants/search', {})).json, []);
    for (const path of [`/threads/${id}/runs`, '/runs/wait', '/runs/stream', `/thread/${id}/runs/wait`]) {
      const answer = await ask(server, 'POST', path, { assistant_id: 'agent', input: INPUT });
      assert.equal(answer.status, 404, path);
      assert.match(detailOf(answer), /DEPLOYMENT_CONFIG/);
    }
    for (const path of ['/runs/crons', `/threads/${id}/runs/crons`]) {
      const answer = await ask(server, 'POST', path, { assistant_id: 'agent', schedule: '* * * * *' });
      assert.equal(answer.status, 404, path);
      assert.match(detailOf(answer), /DEPLOYMENT_CONFIG/);
    }
  });
});

describe('a deployment whose database does not answer', () => {
  let server: TestServer;
  before(async () => {
    // A port that no database listens on.
    const location: StoreLocation = { engine: 'postgres', url: 'postgres://nobody@127.0.0.1:1/none', poolSize: 1 };
    server = await startServer({ graphs: [], settings: { location } });
  });
  after(() => server.close());

  it('is up, says that the database is not when asked, and tells clients no more than that', async () => {
    assert.equal((await ask(server, 'GET', '/ok')).status, 200);
    const checked = await ask(server, 'GET', '/ok?check_db=1');
    assert.equal(checked.status, 500);
    assert.match(detailOf(checked), /database/);
    const answer = await ask(server, 'POST', '/threads', {});
    assert.equal(answer.status, 503);
    assert.match(detailOf(answer), /^The database cannot be opened now/);
  });
});

describe('a deployment that says nothing while it waits', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ graphs: specs(EXAMPLES, 'echo'), limits: { heartbeatMs: 10 * MINUTE_MS } });
  });
  after(() => server.close());

  it('sends the heads of its answers before the run has begun, with the place where the run is found', async () => {
    const { thread_id: id } = (await ask(server, 'POST', '/threads', {})).json as { thread_id: string };
    const late = { assistant_id: 'echo', input: INPUT, after_seconds: 3600 };
    const { run_id: runId } = (await ask(server, 'POST', `/threads/${id}/runs`, late)).json as { run_id: string };
    const gone = new AbortController();
    const heads = await Promise.all(
      ['join', 'stream'].map((way) =>
        fetch(`${server.url}/threads/${id}/runs/${runId}/${way}`, { signal: gone.signal }),
      ),
    );
    for (const way of ['wait', 'stream']) {
      const request = { method: 'POST', body: JSON.stringify(late), signal: gone.signal };
      heads.push(await fetch(`${server.url}/threads/${id}/runs/${way}`, request));
      heads.push(await fetch(`${server.url}/runs/${way}`, request));
    }
    heads.push(await fetch(`${server.url}/threads/${id}/stream`, { signal: gone.signal }));
    for (const { status, headers } of heads) {
      assert.equal(status, 200);
      assert.ok(headers.get('content-location'));
    }
    gone.abort();
  });
});

describe('webhooks and crons of a deployment', () => {
  let server: TestServer;
  let receiver: WebhookReceiver;
  const clock = new SteppedClock(Date.UTC(2026, 4, 4, 9, 0, 30));

  before(async () => {
    receiver = await startReceiver();
    server = await startServer({
      graphs: specs(EXAMPLES, 'echo'),
      settings: { clock, webhooks: { allowPrivate: true } },
    });
  });
  after(async () => {
    await server.close();
    await receiver.close();
  });
  afterEach(async () => {
    const crons = (await ask(server, 'POST', '/runs/crons/search', { limit: 1000 })).json as { cron_id: string }[];
    for (const cron of crons) await ask(server, 'DELETE', `/runs/crons/${cron.cron_id}`);
  });

  it('call back after every one of the runs that can ask for it', async () => {
    const { thread_id: id } = (await ask(server, 'POST', '/threads', {})).json as { thread_id: string };
    const paths = [
      `/threads/${id}/runs`,
      `/thread/${id}/runs/stream`,
      `/threads/${id}/runs/wait`,
      '/runs/stream',
      '/runs/wait',
      '/runs',
    ];
    const firstCount = receiver.received.length;
    for (const [index, path] of paths.entries()) {
      const webhook = `${receiver.url}/${index}?token=t`;
      const answer = await ask(server, 'POST', path, { assistant_id: 'echo', input: INPUT, webhook });
      assert.equal(answer.status, 200, answer.text);
    }
    await receiver.count(firstCount + paths.length);
    const calls = receiver.received.slice(firstCount).sort((a, b) => a.path.localeCompare(b.path));
    for (const [index, call] of calls.entries()) {
      assert.equal(call.path, `/${index}?token=t`);
      assert.equal(call.json['status'], 'success');
      assert.deepEqual((call.json['kwargs'] as { input: unknown }).input, INPUT);
      const messages = (call.json['values'] as { messages?: { type: string }[] } | undefined)?.messages;
      // Stateless runs have no lasting values.
      assert.equal(messages?.[0]?.type, paths[index]?.startsWith('/thread') ? 'human' : undefined);
    }
    const runId = String(calls[0]?.json['run_id']);
    for (;;) {
      const [delivery] = (await ask(server, 'GET', `/runs/${runId}/webhooks`)).json as Record<string, unknown>[];
      if (delivery?.['status'] !== 'delivered') continue;
      assert.equal(delivery['attempt_count'], 1);
      assert.equal((delivery['attempts'] as { status_code: number }[])[0]?.status_code, 200);
      break;
    }
  });

  it('fire crons, stateless and on threads, and tell who asked', async () => {
    const { thread_id: id } = (await ask(server, 'POST', '/threads', {})).json as { thread_id: string };
    const firstCount = receiver.received.length;
    const ids: string[] = [];
    for (const path of ['/runs/crons', `/thread/${id}/runs/crons`]) {
      const answer = await ask(server, 'POST', path, {
        assistant_id: 'echo',
        schedule: '* * * * *',
        input: INPUT,
        webhook: `${receiver.url}/cron`,
        metadata: { owner: 'ops' },
      });
      assert.equal(answer.status, 200, answer.text);
      const cron = answer.json as { cron_id: string; next_run_date: string };
      assert.equal(cron.next_run_date, '2026-05-04T09:01:00.000Z');
      ids.push(cron.cron_id);
    }
    // The scheduler has heard of them.
    while (clock.nextMs !== MINUTE_MS / 2) await new Promise((resolve) => setImmediate(resolve));
    clock.advance(MINUTE_MS / 2);
    await receiver.count(firstCount + 2);
    const calls = receiver.received.slice(firstCount);
    assert.deepEqual(
      calls.map((call) => (call.json['metadata'] as { cron_id: string }).cron_id).sort(),
      [...ids].sort(),
    );
    assert.ok(calls.some((call) => call.json['thread_id'] === id));
    assert.ok(calls.every((call) => (call.json['metadata'] as { owner: string }).owner === 'ops'));
  });
});

describe('webhooks into the own network', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ graphs: specs(EXAMPLES, 'echo') });
  });
  after(() => server.close());

  it('are refused by every route that takes one, before anything is created', async () => {
    const { thread_id: id } = (await ask(server, 'POST', '/threads', {})).json as { thread_id: string };
    for (const path of [
      `/threads/${id}/runs`,
      `/threads/${id}/runs/stream`,
      `/threads/${id}/runs/wait`,
      `/threads/${id}/runs/crons`,
      '/runs/crons',
      '/runs/stream',
      '/runs/wait',
      '/runs',
    ]) {
      const body = { assistant_id: 'echo', input: INPUT, schedule: '* * * * *', webhook: 'http://169.254.169.254/' };
      const answer = await ask(server, 'POST', path, body);
      assert.equal(answer.status, 422, path);
      assert.match(detailOf(answer), /^webhook: .*WEBHOOK_ALLOW_PRIVATE/);
    }
    assert.deepEqual((await ask(server, 'GET', `/threads/${id}/runs`)).json, []);
    assert.equal((await ask(server, 'POST', '/runs/crons/count', {})).text, '0');
  });
});
