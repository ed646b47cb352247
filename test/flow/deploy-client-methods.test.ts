/** Every method that the official JavaScript client has, against the real server; the last test holds the list against the package. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, it } from 'node:test';
import { Client } from '@langchain/langgraph-sdk';
import { describeOnEachEngine } from '../deploy-engines.ts';
import { EXAMPLES, FIXTURE_GRAPHS, specs, startServer, type TestServer } from '../deploy-server.ts';

const SURFACES = ['assistants', 'threads', 'runs', 'crons', 'store', '~ui'] as const;
type Surface = (typeof SURFACES)[number];

const NOT_SERVED = new Map([
  ['threads.stream', 'the thread-centric protocol of the newest hooks'],
  ['~ui.getComponent', 'bundles of generative user interfaces'],
]);

/** The same object, but it is noted which of its methods were called. */
function noted<T extends object>(surface: Surface, target: T, called: Set<string>): T {
  return new Proxy(target, {
    get: (of, key) => {
      const value: unknown = Reflect.get(of, key);
      if (typeof value === 'function') called.add(`${surface}.${String(key)}`);
      return typeof value === 'function' ? (value.bind(of) as unknown) : value;
    },
  });
}

describeOnEachEngine('the official client, method by method', (engine) => {
  let server: TestServer;
  let client: Client;
  const called = new Set<string>();
  const HELLO = { messages: [{ role: 'user', content: 'hello' }] };
  const SLOW = { name: 'a', stepMs: 60_000 };

  before(async () => {
    server = await startServer({
      engine,
      graphs: [
        ...specs(EXAMPLES, 'echo', 'approval'),
        ...specs(FIXTURE_GRAPHS, 'steps', 'nestedpause'),
        { ...(specs(EXAMPLES, 'nested')[0] ?? assert.fail()), description: 'Has a subgraph.' },
      ],
    });
    const plain = new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } });
    for (const surface of SURFACES)
      Object.defineProperty(plain, surface, { value: noted(surface, plain[surface], called) });
    client = plain;
  });
  after(() => server.close());

  async function newThread(): Promise<string> {
    return (await client.threads.create()).thread_id;
  }

  it('assistants: search with pages, count, get', async () => {
    const metadata = { created_by: 'system' };
    const ids: string[] = [];
    for (let offset = 0, next: string | null = '0'; next !== null; offset = Number(next)) {
      const page = await client.assistants.search({ metadata, limit: 2, offset, includePagination: true });
      ids.push(...page.assistants.map((assistant) => assistant.graph_id));
      next = page.next;
    }
    assert.deepEqual(ids.sort(), ['approval', 'echo', 'nested', 'nestedpause', 'steps']);
    assert.equal(await client.assistants.count({ metadata }), 5);
    const sorted = await client.assistants.search({ metadata, sortBy: 'name', sortOrder: 'asc', select: ['name'] });
    assert.deepEqual(
      sorted.map((assistant) => ({ ...assistant })),
      ['approval', 'echo', 'nested', 'nestedpause', 'steps'].map((name) => ({ name })),
    );
    const nested = await client.assistants.get('nested');
    assert.equal(nested.description, 'Has a subgraph.');
    assert.deepEqual(await client.assistants.get(nested.assistant_id.toUpperCase()), nested);
  });

  it('assistants: graph, schemas, subgraphs, by name and by id in any case', async () => {
    const { assistant_id: id } = await client.assistants.get('nested');
    for (const assistant of ['nested', id, id.toUpperCase()]) {
      const plain = await client.assistants.getGraph(assistant);
      assert.deepEqual([plain.edges[0]?.source, plain.edges[0]?.target], ['__start__', 'research']);
      const names = (await client.assistants.getGraph(assistant, { xray: 1 })).nodes.map((node) => node.id);
      assert.ok(names.includes('research:search'), names.join());
      const schemas = await client.assistants.getSchemas(assistant);
      assert.equal(schemas.graph_id, 'nested');
      assert.ok('topic' in (schemas.input_schema?.properties ?? {}));
      assert.deepEqual(Object.keys(await client.assistants.getSubgraphs(assistant)), ['research']);
      const named = await client.assistants.getSubgraphs(assistant, { namespace: 'research', recurse: true });
      assert.deepEqual(Object.keys(named), ['research']);
    }
  });

  it('assistants: create, update, versions, choose one, delete with its threads', async () => {
    const created = await client.assistants.create({
      graphId: 'echo',
      name: 'Parrot',
      description: 'Says it again.',
      context: { voice: 'loud' },
      metadata: { team: 'ops' },
    });
    const id = created.assistant_id;
    assert.equal(created.description, 'Says it again.');
    const same = await client.assistants.update(id, {});
    assert.equal(same.version, 2);
    assert.deepEqual({ ...same, version: 1, updated_at: created.updated_at }, created);
    await client.assistants.update(id, { name: 'Parrot III', graphId: 'steps' });
    const versions = await client.assistants.getVersions(id, { limit: 2 });
    assert.deepEqual(
      versions.map(({ version, name, graph_id }) => [version, name, graph_id]),
      [
        [3, 'Parrot III', 'steps'],
        [2, 'Parrot', 'echo'],
      ],
    );
    const none = await client.assistants.getVersions(id, { metadata: { team: 'other' } });
    assert.deepEqual(none, []);
    await assert.rejects(client.assistants.getVersions(randomUUID()), /HTTP 404/);
    const chosen = await client.assistants.setLatest(id, 1);
    assert.deepEqual([chosen.version, chosen.name, chosen.graph_id], [1, 'Parrot', 'echo']);
    const byQuery = await fetch(`${server.url}/assistants/${id}/latest?version=3`, { method: 'POST' });
    assert.equal(((await byQuery.json()) as { version: number }).version, 3);
    await client.assistants.setLatest(id, 1);

    // A thread that a client made for the graph is the assistant's from its first run.
    const mine = await client.threads.create({ graphId: 'echo' });
    await client.runs.wait(mine.thread_id, id, { input: HELLO });
    assert.equal((await client.threads.get(mine.thread_id)).metadata?.['assistant_id'], id);
    const other = await newThread();
    await client.runs.wait(other, 'echo', { input: HELLO });
    await client.assistants.delete(id, { deleteThreads: true });
    await assert.rejects(client.assistants.get(id), /HTTP 404/);
    await assert.rejects(client.threads.get(mine.thread_id), /HTTP 404/);
    assert.equal((await client.threads.get(other)).status, 'idle');
  });

  it('threads: create, get, update, search, count, copy, prune, delete', async () => {
    const threadId = randomUUID();
    const mark = randomUUID();
    await client.threads.create({ threadId, metadata: { mark }, ttl: 60 });
    const withTtl = (await client.threads.get(threadId, { include: ['ttl'] })) as unknown as { ttl: object };
    assert.equal((withTtl.ttl as { ttl_minutes: number }).ttl_minutes, 60);
    assert.ok(!('ttl' in (await client.threads.get(threadId))));
    const nothing: unknown = await client.threads.update(threadId, { metadata: { b: 1 }, returnMinimal: true });
    assert.equal(nothing, undefined);
    const patched = await client.threads.update(threadId, { ttl: { ttl: 5, strategy: 'delete' } });
    assert.deepEqual(patched.metadata, { mark, b: 1 });

    await client.runs.wait(threadId, 'echo', { input: HELLO });
    const found = await client.threads.search({
      ids: [threadId],
      metadata: { mark },
      values: { messages: [{ content: 'hello' }] },
      status: 'idle',
      sortBy: 'state_updated_at',
      sortOrder: 'desc',
      select: ['thread_id', 'values'],
      extract: { answer: 'values.messages[-1].content' },
    });
    assert.equal(found.length, 1);
    assert.deepEqual(Object.keys(found[0] ?? {}).sort(), ['extracted', 'thread_id', 'values']);
    assert.equal(await client.threads.count({ metadata: { mark }, status: 'busy' }), 0);
    assert.equal(await client.threads.count({ metadata: { mark }, values: { messages: [{ type: 'ai' }] } }), 1);
    const copy = await client.threads.copy(threadId);
    assert.deepEqual([copy.metadata?.['mark'], copy.status], [mark, 'idle']);
    assert.deepEqual(await client.threads.prune([copy.thread_id], { strategy: 'keep_latest' }), { pruned_count: 1 });
    assert.equal((await client.threads.getHistory(copy.thread_id)).length, 1);
    assert.deepEqual(await client.threads.prune([copy.thread_id, randomUUID()]), { pruned_count: 1 });
    assert.equal(await client.threads.delete(threadId), undefined);
    await assert.rejects(client.threads.delete(threadId), /HTTP 404/);
  });

  it('threads: state in each of its forms, history, updates, metadata', async () => {
    const threadId = await newThread();
    await client.runs.wait(threadId, 'nestedpause', { input: { text: 'hello' } });
    const state = await client.threads.getState(threadId, undefined, { subgraphs: true });
    assert.ok(state.tasks[0]?.state);
    const { checkpoint } = state;
    for (const at of [checkpoint.checkpoint_id ?? '', checkpoint, { thread_id: threadId } as typeof checkpoint])
      assert.deepEqual(await client.threads.getState(threadId, at, { subgraphs: true }), state);
    const [newest, before] = await client.threads.getHistory(threadId, { limit: 2, checkpoint: { checkpoint_ns: '' } });
    assert.equal(newest?.checkpoint.checkpoint_id, checkpoint.checkpoint_id);
    for (const config of [checkpoint, { configurable: { checkpoint_id: checkpoint.checkpoint_id } }])
      assert.deepEqual(await client.threads.getHistory(threadId, { limit: 1, before: config as never }), [before]);
    const forked = await client.threads.updateState<{ text: string }>(threadId, {
      values: { text: 'other' },
      checkpointId: before?.checkpoint.checkpoint_id ?? '',
      asNode: '__start__',
    });
    const { configurable, ...reference } = forked as unknown as Record<string, Record<string, unknown>>;
    assert.equal(configurable, undefined);
    const at = reference['checkpoint'];
    assert.equal(at?.['thread_id'], threadId);
    const after = await client.threads.getState<{ text: string }>(threadId);
    assert.equal(after.checkpoint.checkpoint_id, at['checkpoint_id']);
    assert.equal(after.values.text, 'other');
    await client.threads.patchState({ configurable: { thread_id: threadId } }, { team: 'ops' });
    assert.equal((await client.threads.get(threadId)).metadata?.['team'], 'ops');
  });

  it('runs: create, get, list, join, stream, join the stream, wait, delete', async () => {
    const threadId = await newThread();
    const created: unknown[] = [];
    const onRunCreated = (params: unknown): void => void created.push(params);
    const run = await client.runs.create(threadId, 'steps', { input: { name: 'a', stepMs: 0 }, onRunCreated });
    const joined = (await client.runs.join(threadId, run.run_id, { cancelOnDisconnect: true })) as unknown;
    assert.deepEqual((joined as { done: string[] }).done, ['a:one', 'a:two', 'a:three']);
    const events: string[] = [];
    const payload = { input: { name: 'b', stepMs: 0 }, streamMode: 'updates', streamResumable: true } as const;
    let streamed = '';
    for await (const { event, data } of client.runs.stream(threadId, 'steps', { ...payload, onRunCreated })) {
      if (event === 'metadata') streamed = (data as { run_id: string }).run_id;
      events.push(event);
    }
    assert.deepEqual(events, ['metadata', 'updates', 'updates', 'updates']);
    const again: string[] = [];
    const join = { lastEventId: '-1', streamMode: ['updates', 'values'] } as const;
    for await (const { event } of client.runs.joinStream(threadId, streamed, {
      ...join,
      streamMode: [...join.streamMode],
    }))
      again.push(event);
    assert.deepEqual(again, events);
    await client.runs.wait(threadId, 'steps', { input: { name: 'c', stepMs: 0 }, onRunCreated });
    const listed = await client.runs.list(threadId, { status: 'success', select: ['run_id', 'thread_id'] });
    assert.deepEqual(
      [...listed].reverse().map((row) => ({ ...row })),
      created,
    );
    await client.runs.delete(threadId, run.run_id);
    await assert.rejects(client.runs.get(threadId, run.run_id), /HTTP 404/);
    assert.equal((await client.runs.get(threadId, streamed)).status, 'success');
  });

  it('runs: nodes to interrupt at, all or by name, before and after', async () => {
    for (const [payload, next] of [
      [{ interruptBefore: '*' }, ['one']],
      [{ interruptAfter: '*' }, ['two']],
      [{ interruptBefore: ['three'] }, ['three']],
      [{ interruptAfter: ['two'] }, ['three']],
    ] as [{ interruptBefore?: '*' | string[]; interruptAfter?: '*' | string[] }, string[]][]) {
      const threadId = await newThread();
      const values = await client.runs.wait(threadId, 'steps', { input: { name: 'a', stepMs: 0 }, ...payload });
      assert.deepEqual((values as { __interrupt__: unknown }).__interrupt__, []);
      assert.deepEqual((await client.threads.getState(threadId)).next, next);
      assert.equal((await client.threads.get(threadId)).status, 'interrupted');
      await client.runs.wait(threadId, 'steps', { input: null });
      assert.deepEqual((await client.threads.getState<{ done: string[] }>(threadId)).values.done.length, 3);
    }
  });

  it('runs: the older word for durability', async () => {
    for (const [checkpointDuring, count] of [
      [false, 1],
      [true, 5],
    ] as const) {
      const threadId = await newThread();
      await client.runs.wait(threadId, 'steps', { input: { name: 'a', stepMs: 0 }, checkpointDuring });
      assert.equal((await client.threads.getHistory(threadId)).length, count);
    }
  });

  it('runs: a null answer to an interrupt is an answer', async () => {
    const threadId = await newThread();
    await client.runs.wait(threadId, 'approval', { input: { topic: 'ice' } });
    const ended = await client.runs.wait(threadId, 'approval', { command: { resume: null } });
    assert.match((ended as { result: string }).result, /^Not published/);
  });

  it('runs: in batches, spelled as the client leaves them', async () => {
    const [late, now] = await client.runs.createBatch([
      { assistantId: 'steps', input: { name: 'a' }, afterSeconds: 3600, streamMode: 'updates' },
      { assistantId: 'echo', input: HELLO, metadata: { team: 'ops' } },
    ]);
    assert.ok(late && now);
    assert.equal((await client.runs.get(late.thread_id, late.run_id)).status, 'pending');
    const { kwargs } = late as unknown as { kwargs: { stream_mode: string[] } };
    assert.deepEqual(kwargs.stream_mode, ['updates']);
    const response = await fetch(`${server.url}/runs/batch`, {
      method: 'POST',
      body: JSON.stringify([{ assistantId: 'steps', assistant_id: 'echo', input: HELLO, afterMinutes: 1 }]),
    });
    assert.equal(response.headers.get('warning'), '299 - "without effect: assistantId, afterMinutes"');
    await response.text();
    await client.runs.cancel(late.thread_id, late.run_id, true, 'rollback');
  });

  it('runs: cancelled one by one and many at once, by id, by status, by thread', async () => {
    const [one, other] = [await newThread(), await newThread()];
    const start = (threadId: string) => client.runs.create(threadId, 'steps', { input: SLOW });
    const statusOf = async (threadId: string, runId: string): Promise<string> =>
      (await client.runs.get(threadId, runId)).status;
    const [first, second, third] = [await start(one), await start(one), await start(other)];
    assert.equal(await client.runs.cancel(one, first.run_id, true), undefined);
    assert.equal(await statusOf(one, first.run_id), 'interrupted');
    await client.runs.cancelMany({ threadId: one, status: 'all' });
    await client.runs.join(one, second.run_id);
    assert.equal(await statusOf(one, second.run_id), 'interrupted');
    assert.notEqual(await statusOf(other, third.run_id), 'interrupted');
    await client.runs.cancelMany({ threadId: other.toUpperCase(), runIds: [third.run_id.toUpperCase()] });
    await client.runs.join(other, third.run_id);
    assert.equal(await statusOf(other, third.run_id), 'interrupted');
    await assert.rejects(client.runs.cancelMany({ threadId: other, runIds: [randomUUID()] }), /HTTP 404/);
    await assert.rejects(client.runs.cancelMany({ threadId: other }), /HTTP 422.*status/);
    await assert.rejects(client.runs.cancelMany({ runIds: [third.run_id] }), /HTTP 422.*thread_id/);
    await assert.rejects(
      client.runs.cancelMany({ threadId: other, runIds: [third.run_id], status: 'all' }),
      /HTTP 422.*run_ids: cannot be combined/,
    );
  });

  it('threads: the stream of a thread', async () => {
    const threadId = await newThread();
    const gone = new AbortController();
    const seen: string[] = [];
    const options = {
      streamMode: ['lifecycle', 'state_update'] as ('lifecycle' | 'state_update')[],
      signal: gone.signal,
    };
    const reading = (async () => {
      for await (const { event, data } of client.threads.joinStream(threadId, options)) {
        seen.push(event === 'metadata' ? (data as { status: string }).status : event);
        if (seen.at(-1) === 'run_done') break;
      }
    })();
    // A reader that comes after the run is told nothing of it: run until one is seen.
    while (!seen.includes('run_done')) {
      await client.runs.wait(threadId, 'steps', { input: { name: 'a', stepMs: 0 } });
    }
    await reading;
    gone.abort();
    assert.deepEqual(seen.slice(-2), ['state_update', 'run_done']);
  });

  it('crons: create, on a thread too, search, count, update, delete', async () => {
    const owner = randomUUID();
    const threadId = await newThread();
    const common = { schedule: '0 0 29 2 *', metadata: { owner }, input: HELLO, enabled: true };
    const cron = (await client.crons.create('echo', {
      ...common,
      timezone: 'Europe/Berlin',
      endTime: '2999-01-01T00:00:00Z',
      onRunCompleted: 'keep',
      streamMode: ['updates'],
      durability: 'exit',
    })) as unknown as Record<string, unknown>;
    const cronId = String(cron['cron_id']);
    assert.equal(cron['on_run_completed'], 'keep');
    await client.crons.createForThread(threadId, 'echo', { ...common, multitaskStrategy: 'reject' });
    assert.equal(await client.crons.count({ metadata: { owner } }), 2);
    const found = await client.crons.search({
      metadata: { owner },
      enabled: true,
      sortBy: 'created_at',
      sortOrder: 'asc',
      select: ['cron_id', 'thread_id'],
      limit: 1,
    });
    assert.deepEqual(
      found.map((row) => ({ ...row })),
      [{ cron_id: cronId, thread_id: null }],
    );
    assert.equal((await client.crons.search({ threadId, assistantId: 'echo' })).length, 1);
    const changed = (await client.crons.update(cronId, {
      schedule: '0 12 * * *',
      timezone: null as unknown as string,
      endTime: null as unknown as string,
      input: { messages: [] },
      onRunCompleted: 'delete',
    })) as unknown as Record<string, unknown>;
    assert.deepEqual(
      [changed['schedule'], changed['timezone'], changed['end_time'], changed['on_run_completed']],
      ['0 12 * * *', null, null, 'delete'],
    );
    const payload = changed['payload'] as Record<string, unknown>;
    assert.deepEqual([payload['input'], payload['durability']], [{ messages: [] }, 'exit']);
    assert.match(String(changed['next_run_date']), /T12:00:00/);
    assert.equal(await client.crons.delete(cronId), undefined);
    assert.equal(await client.crons.count({ metadata: { owner } }), 1);
  });

  it('store: put, get, search, list, delete', async () => {
    const root = randomUUID();
    await client.store.putItem([root, 'a'], 'k', { lang: 'fr' }, { ttl: 60, index: false });
    await client.store.putItem([root, 'b'], 'k', { lang: 'de' }, { index: ['lang'] });
    const item = await client.store.getItem([root, 'a'], 'k', { refreshTtl: true });
    assert.deepEqual([item?.namespace, item?.key, item?.value], [[root, 'a'], 'k', { lang: 'fr' }]);
    assert.ok(item?.createdAt && item.updatedAt);
    assert.equal(await client.store.getItem([root, 'a'], 'other'), null);
    const page = await client.store.searchItems([root], { limit: 1, offset: 1, refreshTtl: false });
    assert.equal(page.items.length, 1);
    const filtered = await client.store.searchItems([root], { filter: { lang: 'de' } });
    assert.deepEqual(filtered.items[0]?.value, { lang: 'de' });
    const { namespaces } = await client.store.listNamespaces({ prefix: [root], limit: 1, offset: 1 });
    assert.deepEqual(namespaces, [[root, 'b']]);
    await client.store.deleteItem([root, 'a'], 'k');
    assert.equal(await client.store.getItem([root, 'a'], 'k'), null);
  });

  it('has no other methods', () => {
    const all = SURFACES.flatMap((surface) => {
      const prototype = Object.getPrototypeOf(client[surface]) as object;
      const names = Object.getOwnPropertyNames(prototype).filter((name) => name !== 'constructor');
      return names.map((name) => `${surface}.${name}`);
    });
    assert.deepEqual(
      [...called].filter((name) => all.includes(name)).sort(),
      all.filter((name) => !NOT_SERVED.has(name)).sort(),
    );
    for (const name of NOT_SERVED.keys()) assert.ok(all.includes(name), name);
  });
});
