import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { Client } from '@langchain/langgraph-sdk';
import { defaultAssistantId } from '../../src/deploy/ids.ts';
import { describeOnEachEngine } from '../deploy-engines.ts';
import { EXAMPLES, specs, startServer } from '../deploy-server.ts';
import type { TestServer } from '../deploy-server.ts';

describeOnEachEngine('the official client against assistants, threads, crons and the store', (engine) => {
  let server: TestServer;
  let client: Client;

  before(async () => {
    server = await startServer({ engine, graphs: specs(EXAMPLES, 'echo', 'nested') });
    client = new Client({ apiUrl: server.url });
  });
  after(() => server.close());

  it('finds one assistant for each graph from the start', async () => {
    const found = await client.assistants.search({ metadata: { created_by: 'system' } });
    assert.deepEqual(found.map((assistant) => assistant.name).sort(), ['echo', 'nested']);
    const [echo] = await client.assistants.search({ graphId: 'echo' });
    assert.equal(echo?.assistant_id, defaultAssistantId('echo'));
    assert.equal(echo.version, 1);
    assert.deepEqual(echo.config, {});
    assert.equal((await client.assistants.get('echo')).assistant_id, echo.assistant_id);
  });

  it('creates, versions, chooses, counts and deletes assistants', async () => {
    const created = await client.assistants.create({
      graphId: 'echo',
      name: 'Parrot',
      config: { configurable: { voice: 'loud' } },
      metadata: { team: 'ops' },
    });
    assert.equal(created.name, 'Parrot');
    const second = await client.assistants.update(created.assistant_id, {
      metadata: { more: 1 },
      config: { configurable: { voice: 'soft' } },
    });
    assert.equal(second.version, 2);
    assert.deepEqual(second.metadata, { team: 'ops', more: 1 });
    const versions = await client.assistants.getVersions(created.assistant_id);
    assert.deepEqual(
      versions.map((version) => version.version),
      [2, 1],
    );
    assert.equal('updated_at' in (versions[0] ?? {}), false);
    const back = await client.assistants.setLatest(created.assistant_id, 1);
    assert.deepEqual(back.config, { configurable: { voice: 'loud' } });
    const third = await client.assistants.update(created.assistant_id, { name: 'Parrot III' });
    assert.equal(third.version, 3);
    assert.equal(await client.assistants.count({ metadata: { team: 'ops' } }), 1);
    assert.equal((await client.assistants.search({ name: 'parrot' })).length, 1);
    await client.assistants.delete(created.assistant_id);
    await assert.rejects(client.assistants.get(created.assistant_id), /HTTP 404/);
  });

  it('refuses an assistant of an unknown graph, and one that is there already', async () => {
    await assert.rejects(client.assistants.create({ graphId: 'nobody' }), /HTTP 404/);
    const assistantId = crypto.randomUUID();
    await client.assistants.create({ graphId: 'echo', assistantId });
    await assert.rejects(client.assistants.create({ graphId: 'echo', assistantId }), /HTTP 409/);
    const again = await client.assistants.create({ graphId: 'echo', assistantId, ifExists: 'do_nothing' });
    assert.equal(again.assistant_id, assistantId);
  });

  it('creates a fresh thread as documented', async () => {
    const thread = await client.threads.create();
    const { thread_id, created_at, updated_at, ...rest } = thread as unknown as Record<string, unknown>;
    assert.match(String(thread_id), /^[0-9a-f-]{36}$/);
    assert.match(String(created_at), /^\d{4}-\d\d-\d\dT/);
    assert.equal(created_at, updated_at);
    assert.deepEqual(rest, {
      state_updated_at: null,
      metadata: {},
      status: 'idle',
      config: {},
      values: null,
      interrupts: {},
      error: null,
    });
  });

  it('creates, patches, searches, counts, copies, prunes and deletes threads', async () => {
    const threadId = crypto.randomUUID();
    await client.threads.create({ threadId, metadata: { colour: 'red', deep: { list: [1, { a: 2 }] } } });
    await assert.rejects(client.threads.create({ threadId }), /HTTP 409/);
    assert.equal((await client.threads.create({ threadId, ifExists: 'do_nothing' })).thread_id, threadId);
    await client.threads.update(threadId, { metadata: { size: 3 } });
    const found = await client.threads.search({ metadata: { deep: { list: [{ a: 2 }] } } });
    assert.deepEqual(found[0]?.metadata, { colour: 'red', deep: { list: [1, { a: 2 }] }, size: 3 });
    assert.equal(await client.threads.count({ metadata: { colour: 'blue' } }), 0);
    assert.equal(await client.threads.count({ metadata: { colour: 'red' } }), 1);

    const values = await client.runs.wait(threadId, 'echo', { input: { messages: [{ role: 'user', content: 'hi' }] } });
    assert.ok((values as { messages: unknown[] }).messages.length >= 2);
    const copy = await client.threads.copy(threadId);
    const [original, copied] = await Promise.all([
      client.threads.getHistory(threadId),
      client.threads.getHistory(copy.thread_id),
    ]);
    assert.deepEqual(
      copied.map((state) => state.checkpoint.checkpoint_id),
      original.map((state) => state.checkpoint.checkpoint_id),
    );
    assert.deepEqual(copied[0]?.values, original[0]?.values);
    await client.threads.prune([copy.thread_id], { strategy: 'keep_latest' });
    const pruned = await client.threads.getHistory(copy.thread_id);
    assert.equal(pruned.length, 1);
    assert.deepEqual(pruned[0]?.values, original[0]?.values);
    const more = await client.runs.wait(copy.thread_id, 'echo', {
      input: { messages: [{ role: 'user', content: 'still there?' }] },
    });
    assert.ok((more as { messages: unknown[] }).messages.length > (values as { messages: unknown[] }).messages.length);
    await client.threads.prune([copy.thread_id]);
    await assert.rejects(client.threads.get(copy.thread_id), /HTTP 404/);
    await client.threads.delete(threadId);
    await assert.rejects(client.threads.getState(threadId), /HTTP 404/);
  });

  it('fills a thread with supersteps', async () => {
    const thread = await client.threads.create({
      graphId: 'echo',
      supersteps: [
        { updates: [{ values: { messages: [{ role: 'user', content: 'one' }] }, asNode: '__input__' }] },
        { updates: [{ values: { messages: [{ role: 'user', content: 'one' }] }, asNode: '__start__' }] },
        { updates: [{ values: { messages: [{ role: 'assistant', content: 'two' }] }, asNode: 'echo' }] },
      ],
    });
    const state = await client.threads.getState<{ messages: { content: string }[] }>(thread.thread_id);
    assert.deepEqual(
      state.values.messages.map((message) => message.content),
      ['one', 'two'],
    );
  });

  it('picks chosen fields and extracted values out of searches', async () => {
    const thread = await client.threads.create({ metadata: { pick: 'me' } });
    await client.runs.wait(thread.thread_id, 'echo', { input: { messages: [{ role: 'user', content: 'pick' }] } });
    const [row] = (await client.threads.search({
      metadata: { pick: 'me' },
      select: ['thread_id', 'status'],
      extract: { last: 'values.messages[-1].content', first: 'values.messages[0].type', none: 'values.nothing.here' },
    })) as unknown as Record<string, unknown>[];
    assert.deepEqual(Object.keys(row ?? {}).sort(), ['extracted', 'status', 'thread_id']);
    const extracted = row?.['extracted'] as Record<string, unknown>;
    assert.equal(extracted['first'], 'human');
    assert.equal(typeof extracted['last'], 'string');
    assert.equal(extracted['none'], null);
  });

  it('creates, changes, searches, counts and deletes crons', async () => {
    const cron = await client.crons.create('echo', {
      schedule: '27 15 * * *',
      timezone: 'Europe/Berlin',
      input: { messages: [] },
      metadata: { owner: 'ops' },
      endTime: '2999-01-01T00:00:00',
    });
    const record = cron as unknown as Record<string, unknown>;
    assert.equal(record['schedule'], '27 15 * * *');
    assert.equal(record['thread_id'], null);
    assert.equal(record['end_time'], '2999-01-01T00:00:00.000Z');
    assert.equal(record['on_run_completed'], 'delete');
    const next = new Date(String(record['next_run_date']));
    assert.equal(next.getUTCMinutes(), 27);
    const thread = await client.threads.create();
    await client.crons.createForThread(thread.thread_id, 'echo', { schedule: '* * * * *', enabled: false });
    const search = await client.crons.search({ threadId: thread.thread_id });
    assert.equal(search.length, 1);
    assert.equal(search[0]?.next_run_date, null);
    assert.equal(await client.crons.count({ assistantId: 'echo' }), 2);
    const cronId = String(record['cron_id']);
    const changed = (await client.crons.update(cronId, { enabled: false, metadata: { more: 1 } })) as unknown;
    assert.deepEqual((changed as Record<string, unknown>)['metadata'], { owner: 'ops', more: 1 });
    assert.equal((changed as Record<string, unknown>)['next_run_date'], null);
    await client.crons.delete(cronId);
    await assert.rejects(client.crons.delete(cronId), /HTTP 404/);
    await client.threads.delete(thread.thread_id);
    assert.equal(await client.crons.count({ assistantId: 'echo' }), 0);
  });

  it('puts, gets, searches, lists and deletes items of the store', async () => {
    await client.store.putItem(['users', 'u1'], 'prefs', { lang: 'fr', age: 30 });
    await client.store.putItem(['users', 'u2'], 'prefs', { lang: 'de', age: 40 });
    await client.store.putItem(['other'], 'k', { lang: 'fr' });
    const item = await client.store.getItem(['users', 'u1'], 'prefs');
    assert.deepEqual(item?.value, { lang: 'fr', age: 30 });
    assert.deepEqual(item.namespace, ['users', 'u1']);
    assert.equal(await client.store.getItem(['users', 'u9'], 'prefs'), null);
    const french = await client.store.searchItems(['users'], { filter: { lang: 'fr' } });
    assert.deepEqual(
      french.items.map((found) => found.namespace),
      [['users', 'u1']],
    );
    const older = await client.store.searchItems([], { filter: { age: { $gte: 35 } } });
    assert.equal(older.items.length, 1);
    assert.deepEqual((await client.store.listNamespaces({ maxDepth: 1 })).namespaces, [['other'], ['users']]);
    assert.deepEqual((await client.store.listNamespaces({ suffix: ['u2'] })).namespaces, [['users', 'u2']]);
    await client.store.deleteItem(['users', 'u1'], 'prefs');
    await client.store.deleteItem(['users', 'u1'], 'prefs');
    assert.equal(await client.store.getItem(['users', 'u1'], 'prefs'), null);
  });
});
