/** What a `langgraph.json` says about the API itself, seen by its clients. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Client } from '@langchain/langgraph-sdk';
import { uncounted } from '../../src/core/counters.ts';
import { silentLog } from '../../src/core/log.ts';
import { readDeploymentConfig } from '../../src/deploy/config.ts';
import { deploymentSettings } from '../../src/deploy/settings.ts';
import { EXAMPLES, FIXTURE_GRAPHS, startServer, type TestServer } from '../deploy-server.ts';

const INPUT = { messages: [{ role: 'user', content: 'hi' }] };

async function startWith(folder: string, file: object): Promise<TestServer> {
  const path = join(folder, 'langgraph.json');
  const graphs = { echo: `${EXAMPLES}/echo.ts:graph`, inspect: `${FIXTURE_GRAPHS}/inspect.ts:graph` };
  await writeFile(path, JSON.stringify({ graphs, ...file }));
  const reading = await readDeploymentConfig(path, {});
  assert.ok(reading.kind === 'read', JSON.stringify(reading));
  const settings = deploymentSettings({
    config: reading.config,
    environment: {},
    location: { engine: 'sqlite', folder, synchronous: 'normal' },
    apiKeys: [],
    auth: 'keys',
    webhooks: { allowPrivate: false, keys: [] },
    version: '1.2.3',
    otherOperations: [],
    log: silentLog,
    counters: uncounted,
  });
  return startServer({ graphs: settings.graphs, folder, settings });
}

describe('a configuration file', () => {
  let folder: string;
  let server: TestServer;
  let base: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'deploy-configfile-'));
    server = await startWith(folder, {
      http: {
        mount_prefix: '/agents/v1',
        disable_store: true,
        disable_meta: true,
        disable_webhooks: true,
        cors: { allow_origins: ['https://app.example.com'], max_age: 60 },
        configurable_headers: { includes: ['x-*', 'accept-language'], excludes: ['x-secret-*'] },
      },
    });
    base = `${server.url}/agents/v1`;
  });
  after(async () => {
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('moves the API below a prefix, where the official client finds it', async () => {
    const client = new Client({ apiUrl: base, callerOptions: { maxRetries: 0 } });
    const { thread_id: threadId } = await client.threads.create();
    let created: unknown = null;
    const events: string[] = [];
    for await (const { event } of client.runs.stream(threadId, 'echo', {
      input: INPUT,
      onRunCreated: (params) => (created = params),
    }))
      events.push(event);
    assert.deepEqual(events, ['metadata', 'values', 'values']);
    const [run] = await client.runs.list(threadId);
    assert.deepEqual(created, { thread_id: threadId, run_id: run?.run_id });
    assert.equal((await fetch(`${server.url}/threads/${threadId}`)).status, 404);
  });

  it('leaves out groups of routes, but for the health', async () => {
    for (const [path, status] of [
      ['/store/items?namespace=a&key=k', 404],
      ['/info', 404],
      ['/docs', 404],
      ['/ok', 200],
      ['/assistants/echo', 200],
    ] as const)
      assert.equal((await fetch(base + path)).status, status, path);
  });

  it('drops webhooks without a word, wherever they point', async () => {
    const response = await fetch(`${base}/runs/wait`, {
      method: 'POST',
      body: JSON.stringify({ assistant_id: 'echo', input: INPUT, on_completion: 'keep', webhook: 'http://10.0.0.1/' }),
    });
    assert.equal(response.status, 200);
    const runId = (response.headers.get('content-location') ?? '').split('/').at(-1) ?? '';
    await response.text();
    assert.deepEqual(await (await fetch(`${base}/runs/${runId}/webhooks`)).json(), []);
  });

  it('lets in the pages of the origins that it names, and no others', async () => {
    const preflight = (origin: string) =>
      fetch(`${base}/runs/stream`, {
        method: 'OPTIONS',
        headers: { origin, 'access-control-request-method': 'POST', 'access-control-request-headers': 'x-api-key' },
      });
    const allowed = await preflight('https://app.example.com');
    assert.equal(allowed.status, 204);
    assert.equal(allowed.headers.get('access-control-allow-origin'), 'https://app.example.com');
    assert.equal(allowed.headers.get('access-control-max-age'), '60');
    assert.match(allowed.headers.get('access-control-allow-headers') ?? '', /x-api-key/);
    assert.equal((await preflight('https://evil.example')).headers.get('access-control-allow-origin'), null);

    const search = (origin: string) =>
      fetch(`${base}/threads/search`, { method: 'POST', headers: { origin }, body: '{}' });
    const answer = await search('https://app.example.com');
    assert.equal(answer.status, 200);
    const exposed = (answer.headers.get('access-control-expose-headers') ?? '').split(', ');
    for (const name of ['Content-Location', 'Location', 'X-Pagination-Total', 'X-Pagination-Next', 'Warning'])
      assert.ok(exposed.includes(name), name);
    const foreign = await search('https://evil.example');
    assert.equal(foreign.status, 403);
    assert.equal(foreign.headers.get('access-control-allow-origin'), null);
  });

  it('chooses the request headers that a graph sees', async () => {
    const response = await fetch(`${base}/runs/wait`, {
      method: 'POST',
      body: JSON.stringify({ assistant_id: 'inspect', input: {} }),
      headers: { 'x-tenant': 'acme', 'x-secret-word': 'hush', 'accept-language': 'fr', 'user-agent': 'test' },
    });
    const { seen } = (await response.json()) as { seen: { configurable: Record<string, unknown> } };
    const { configurable } = seen;
    assert.deepEqual(
      [
        configurable['x-tenant'],
        configurable['accept-language'],
        configurable['x-secret-word'],
        configurable['user-agent'],
      ],
      ['acme', 'fr', undefined, undefined],
    );
  });
});

describe('a graph that the file has no longer', () => {
  let folder: string;
  let server: TestServer | undefined;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'deploy-configfile-'));
  });
  after(async () => {
    await server?.close();
    await rm(folder, { recursive: true, force: true });
  });

  it('is found neither by its name nor in a search, although its assistant is still on record', async () => {
    server = await startWith(folder, {});
    const before = new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } });
    await before.assistants.create({ graphId: 'echo', name: 'Parrot' });
    assert.equal(await before.assistants.count(), 3);
    await server.close({ keep: true });
    server = await startWith(folder, { graphs: { inspect: `${FIXTURE_GRAPHS}/inspect.ts:graph` } });
    const client = new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } });
    assert.equal((await client.assistants.get('echo')).graph_id, 'echo');
    const names = (await client.assistants.search()).map((assistant) => assistant.name);
    assert.deepEqual(names.sort(), ['Parrot', 'inspect']);
    assert.equal(await client.assistants.count({ metadata: { created_by: 'system' } }), 1);
    await assert.rejects(client.runs.wait(null, 'echo', { input: INPUT }), /HTTP 404.*No assistant found for/);
    await assert.rejects(client.crons.create('echo', { schedule: '* * * * *' }), /HTTP 404.*No assistant found for/);
    assert.ok(await client.runs.wait(null, 'inspect', { input: {} }));
  });
});
