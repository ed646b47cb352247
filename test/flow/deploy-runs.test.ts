import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@langchain/langgraph-sdk';
import { describeOnEachEngine } from '../deploy-engines.ts';
import { EXAMPLES, FIXTURE_GRAPHS, specs, startServer, type TestServer } from '../deploy-server.ts';
import { readEvents } from '../event-stream.ts';

describeOnEachEngine('Runs', (engine) => {
  let server: TestServer;
  let client: Client;

  before(async () => {
    server = await startServer({
      engine,
      graphs: [...specs(EXAMPLES, 'echo', 'approval'), ...specs(FIXTURE_GRAPHS, 'steps', 'misbehave', 'inspect')],
    });
    client = new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } });
  });
  after(() => server.close());

  const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
  const HELLO = { messages: [{ role: 'user', content: 'hello' }] };

  async function post(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
    return fetch(server.url + path, { method: 'POST', body: JSON.stringify(body), headers });
  }

  async function detailOf(response: Response): Promise<string> {
    return ((await response.json()) as { detail: string }).detail;
  }

  test('a run is created pending, and its record has every field that the API promises', async () => {
    const threadId = randomUUID();
    let created: unknown = null;
    const run = await client.runs.create(threadId, 'echo', {
      input: HELLO,
      metadata: { team: 'ops' },
      config: { tags: ['t'], configurable: { tone: 'kind' } },
      context: { user: 'u1' },
      ifNotExists: 'create',
      onRunCreated: (params) => (created = params),
    });
    assert.match(run.run_id, UUID);
    assert.equal(run.run_id[14], '7');
    assert.deepEqual(created, { run_id: run.run_id, thread_id: threadId });
    assert.deepEqual(Object.keys(run).sort(), [
      'assistant_id',
      'created_at',
      'kwargs',
      'metadata',
      'multitask_strategy',
      'run_id',
      'status',
      'thread_id',
      'updated_at',
    ]);
    assert.equal(run.status, 'pending');
    assert.equal(run.multitask_strategy, 'enqueue');
    const { kwargs } = run as unknown as {
      kwargs: { input: unknown; context: unknown; config: { configurable: object } };
    };
    assert.deepEqual(kwargs.input, HELLO);
    assert.deepEqual(kwargs.context, { user: 'u1' });
    const { configurable } = kwargs.config as { configurable: Record<string, unknown> };
    assert.equal(configurable['tone'], 'kind');
    assert.equal(configurable['run_id'], run.run_id);
    assert.equal(configurable['thread_id'], threadId);
    assert.equal(configurable['graph_id'], 'echo');
    await client.runs.join(threadId, run.run_id);
    const ended = await client.runs.get(threadId, run.run_id);
    assert.equal(ended.status, 'success');
    assert.equal(ended.metadata?.['team'], 'ops');
  });

  test('runs are listed newest first, in pages, by status, with chosen fields', async () => {
    const threadId = (await client.threads.create()).thread_id;
    const ids: string[] = [];
    for (let i = 0; i < 3; i++) {
      const run = await client.runs.create(threadId, 'echo', { input: HELLO });
      ids.unshift(run.run_id);
      await client.runs.join(threadId, run.run_id);
    }
    const listed = await client.runs.list(threadId);
    assert.deepEqual(
      listed.map((run) => run.run_id),
      ids,
    );
    assert.deepEqual(
      (await client.runs.list(threadId, { limit: 1, offset: 1 })).map((run) => run.run_id),
      [ids[1]],
    );
    assert.equal((await client.runs.list(threadId, { status: 'error' })).length, 0);
    const selected = await client.runs.list(threadId, { select: ['run_id', 'status'] });
    assert.deepEqual(selected[0], { run_id: ids[0], status: 'success' });
    for (const query of ['limit=0', 'limit=1001', 'offset=-1', 'status=odd'])
      assert.equal((await fetch(`${server.url}/threads/${threadId}/runs?${query}`)).status, 422, query);
  });

  test('a run that has ended can be deleted, one that is in flight cannot', async () => {
    const threadId = (await client.threads.create()).thread_id;
    const run = await client.runs.create(threadId, 'steps', { input: { name: 'a', stepMs: 60_000 } });
    await assert.rejects(client.runs.delete(threadId, run.run_id), /HTTP 409/);
    await client.runs.cancel(threadId, run.run_id, true);
    await client.runs.delete(threadId, run.run_id);
    await assert.rejects(client.runs.get(threadId, run.run_id), /HTTP 404/);
    await assert.rejects(client.runs.delete(threadId, run.run_id), /HTTP 404/);
  });

  test('wait answers the final values, or throws what the graph threw', async () => {
    const values = (await client.runs.wait(null, 'echo', { input: HELLO })) as { messages: { content: string }[] };
    assert.deepEqual(
      values.messages.map((message) => message.content),
      ['hello', 'You said: hello'],
    );
    await assert.rejects(
      client.runs.wait(null, 'misbehave', { input: { how: 'fail' } }),
      /TypeError: this graph is broken/,
    );
  });

  test('wait names the run in its head before the run has ended', async () => {
    const gone = new AbortController();
    const response = await fetch(`${server.url}/runs/wait`, {
      method: 'POST',
      body: JSON.stringify({ assistant_id: 'steps', input: { name: 'a', stepMs: 60_000 }, on_disconnect: 'cancel' }),
      signal: gone.signal,
    });
    assert.equal(response.status, 200);
    assert.equal(response.headers.get('content-type'), 'application/json');
    const location = response.headers.get('content-location') ?? '';
    assert.match(location, /^\/runs\/[0-9a-f-]{36}$/);
    assert.equal(response.headers.get('location'), `${location}/join`);
    gone.abort();
  });

  test('a graph that returns nothing is answered with an object', async () => {
    const response = await post('/runs/wait', { assistant_id: 'steps', input: { name: 'a' } });
    assert.equal(typeof (await response.json()), 'object');
  });

  test('a stateless run leaves nothing behind unless it is kept', async () => {
    const before = await client.threads.count();
    await client.runs.wait(null, 'echo', { input: HELLO });
    assert.equal(await client.threads.count(), before);
    const response = await post('/runs/wait', { assistant_id: 'echo', input: HELLO, on_completion: 'keep' });
    await response.text();
    const [, threadId, runId] =
      /^\/threads\/([^/]+)\/runs\/([^/]+)$/.exec(response.headers.get('content-location') ?? '') ?? [];
    assert.equal((await client.runs.get(threadId ?? '', runId ?? '')).status, 'success');
    assert.equal((await client.threads.getHistory(threadId ?? '')).length, 3);
  });

  test('a stateless run can be followed and joined by its id alone', async () => {
    const until = join(server.folder, randomUUID());
    const run = await client.runs.create(null, 'steps', {
      input: { name: 'a', hold: { step: 'one', until } },
      streamMode: 'updates',
    });
    // Their heads say that both are attached.
    const joined = await fetch(`${server.url}/runs/${run.run_id}/join`);
    const followed = await fetch(`${server.url}/runs/${run.run_id}/stream`);
    await writeFile(until, '');
    const updates = (await readEvents(followed)).filter(({ event }) => event === 'updates');
    // Its worker hears a moment later that somebody listens: the step under way may end before.
    assert.deepEqual(updates.flatMap(({ data }) => Object.keys(data as object)).slice(-2), ['two', 'three']);
    assert.deepEqual(((await joined.json()) as { done: string[] }).done, ['a:one', 'a:two', 'a:three']);
  });

  test('a batch creates all of its runs or none', async () => {
    const runs = await client.runs.createBatch([
      { assistantId: 'echo', input: HELLO },
      { assistantId: 'steps', input: { name: 'b' } },
    ]);
    assert.equal(new Set(runs.map((run) => run.thread_id)).size, 2);
    const before = await client.threads.count();
    const refused = await post('/runs/batch', [
      { assistant_id: 'echo', input: HELLO, on_completion: 'keep' },
      { assistant_id: 'unknown', input: HELLO },
    ]);
    assert.equal(refused.status, 404);
    assert.match(await detailOf(refused), /unknown/);
    assert.equal(await client.threads.count(), before);
    assert.equal((await post('/runs/batch', [])).status, 422);
  });

  test('a run can be delayed', async () => {
    const startMs = Date.now();
    await client.runs.wait(null, 'echo', { input: HELLO, afterSeconds: 0.5 });
    assert.ok(Date.now() - startMs >= 500);
  });

  test('a delayed run does not hold up one that is due now', async () => {
    const threadId = (await client.threads.create()).thread_id;
    const late = await client.runs.create(threadId, 'echo', { input: HELLO, afterSeconds: 3600 });
    await client.runs.wait(threadId, 'echo', { input: HELLO });
    assert.equal((await client.runs.get(threadId, late.run_id)).status, 'pending');
    await client.runs.cancel(threadId, late.run_id, true, 'rollback');
  });

  test('the graph sees its config, its context, chosen request headers, and the store', async () => {
    const threadId = randomUUID();
    const response = await post(
      `/threads/${threadId}/runs/wait`,
      {
        assistant_id: 'inspect',
        if_not_exists: 'create',
        input: {},
        config: { configurable: { tone: 'kind', __pregel_checkpointer: 'stolen' }, recursion_limit: 7 },
        context: { user: 'u1' },
        metadata: { team: 'ops' },
      },
      { 'x-tenant': 'acme', 'x-api-key': 'secret' },
    );
    const { seen } = (await response.json()) as { seen: Record<string, unknown> };
    const configurable = seen['configurable'] as Record<string, unknown>;
    assert.equal(configurable['tone'], 'kind');
    assert.equal(configurable['thread_id'], threadId);
    assert.equal(configurable['graph_id'], 'inspect');
    assert.equal(configurable['x-tenant'], 'acme');
    assert.equal(configurable['x-api-key'], undefined);
    assert.deepEqual(seen['context'], { user: 'u1' });
    assert.equal(seen['recursionLimit'], 7);
    assert.equal((seen['metadata'] as Record<string, unknown>)['team'], 'ops');
    const item = await client.store.getItem(['inspected'], threadId);
    assert.deepEqual(item?.value, { by: 'inspect' });
  });

  test('what an assistant is configured with reaches the graph, under what the request says', async () => {
    const assistant = await client.assistants.create({
      graphId: 'inspect',
      config: { tags: ['a'], recursion_limit: 9, configurable: { tone: 'kind', size: 'big' } },
      context: { user: 'of the assistant', lang: 'fr' },
      metadata: { team: 'ops', level: 1 },
    });
    const { seen } = (await client.runs.wait(null, assistant.assistant_id, {
      input: {},
      config: { configurable: { tone: 'plain' } },
      context: { user: 'of the run' },
      metadata: { level: 2 },
    })) as { seen: Record<string, Record<string, unknown>> };
    assert.equal(seen['recursionLimit'], 9);
    assert.deepEqual([seen['configurable']?.['tone'], seen['configurable']?.['size']], ['plain', 'big']);
    assert.equal(seen['configurable']?.['assistant_id'], assistant.assistant_id);
    assert.deepEqual(seen['context'], { user: 'of the run', lang: 'fr' });
    assert.deepEqual([seen['metadata']?.['team'], seen['metadata']?.['level']], ['ops', 2]);
  });

  test('a run that takes more steps than it may ends as an error of that name', async () => {
    const threadId = (await client.threads.create()).thread_id;
    const config = { recursion_limit: 2 };
    const payload = { input: { name: 'a', stepMs: 0 }, config };
    await assert.rejects(client.runs.wait(threadId, 'steps', payload), /^Error: GraphRecursionError: .*2/);
    const [run] = await client.runs.list(threadId);
    assert.equal(run?.status, 'error');
    const thread = (await client.threads.get(threadId)) as unknown as Record<string, unknown>;
    assert.equal(thread['status'], 'error');
    assert.equal((thread['error'] as { error: string }).error, 'GraphRecursionError');
    assert.deepEqual((thread['values'] as { done: string[] }).done, ['a:one', 'a:two']);
  });

  test('a stateless run that is kept can wait for a human like any other', async () => {
    const asked = await post('/runs/wait', {
      assistant_id: 'approval',
      input: { topic: 'ice' },
      on_completion: 'keep',
    });
    const threadId = /^\/threads\/([^/]+)\//.exec(asked.headers.get('content-location') ?? '')?.[1] ?? '';
    assert.ok('__interrupt__' in ((await asked.json()) as object));
    const ended = await client.runs.wait(threadId, 'approval', { command: { resume: 'yes' } });
    assert.match((ended as { result: string }).result, /^Published/);
  });

  test('durability exit leaves one checkpoint, sync and async leave one for every step', async () => {
    for (const [durability, count] of [
      ['exit', 1],
      ['sync', 5],
      ['async', 5],
    ] as const) {
      const threadId = (await client.threads.create()).thread_id;
      await client.runs.wait(threadId, 'steps', { input: { name: 'a' }, durability });
      assert.equal((await client.threads.getHistory(threadId)).length, count, durability);
    }
  });

  test('what would change behaviour and is not understood is refused with its path', async () => {
    for (const [field, value] of [
      ['multitask_strategy', 'queue'],
      ['stream_mode', 'everything'],
      ['durability', 'forever'],
      ['on_disconnect', 'maybe'],
      ['on_completion', 'complete'],
      ['if_not_exists', 'ignore'],
      ['after_seconds', -1],
      ['interrupt_before', 'two'],
      ['config', { recursion_limit: 0 }],
      ['metadata', []],
      ['command', 'resume'],
      ['stream_subgraphs', 'yes'],
      ['assistant_id', 7],
      ['langsmith_tracer', { example_id: 'seven' }],
      ['langsmith_tracer', { project_name: 'a\nb' }],
    ] as const) {
      const response = await post('/runs', { assistant_id: 'echo', input: HELLO, [field]: value });
      assert.equal(response.status, 422, field);
      assert.match(await detailOf(response), new RegExp(`^${field}`));
    }
    const both = await post('/runs', { assistant_id: 'echo', input: HELLO, command: { resume: 1 } });
    assert.equal(both.status, 422);
  });

  test('what is accepted without effect is named in the answer', async () => {
    const { thread_id: threadId } = await client.threads.create();
    const typo = {
      assistant_id: 'echo',
      input: HELLO,
      multitask_stategy: 'reject',
      feedback_keys: ['user-score'],
      ['ä"\n']: 1,
    };
    for (const path of ['/runs', '/runs/wait', '/runs/stream', `/threads/${threadId}/runs`, '/runs/batch']) {
      const response = await post(path, path === '/runs/batch' ? [typo] : typo);
      assert.equal(response.status, 200, path);
      assert.equal(
        response.headers.get('warning'),
        '299 - "without effect: feedback_keys, multitask_stategy, 1 more"',
        path,
      );
      await response.text();
    }
    const elsewhere = { checkpoint_id: randomUUID(), if_not_exists: 'create', multitask_strategy: 'reject' };
    for (const [path, fields, named] of [
      ['/runs/wait', { ...elsewhere, on_completion: 'delete' }, 'checkpoint_id, if_not_exists, multitask_strategy'],
      [`/threads/${threadId}/runs/wait`, { on_completion: 'keep', if_not_exists: 'create' }, 'on_completion'],
    ] as const) {
      const response = await post(path, { assistant_id: 'echo', input: HELLO, ...fields });
      const said = (response.headers.get('warning') ?? '').replace('299 - "without effect: ', '').replace('"', '');
      assert.deepEqual(said.split(', ').sort().join(', '), named);
      assert.match(await response.text(), /You said: hello/);
    }
    const plain = await post('/runs/wait', { assistant_id: 'echo', input: HELLO, feedback_keys: [], webhook: null });
    assert.equal(plain.headers.get('warning'), null);
    await plain.text();
  });

  test('malformed bodies, ids and paths are refused, and labels of bodies do not matter', async () => {
    assert.equal((await fetch(`${server.url}/runs`, { method: 'POST', body: '{' })).status, 400);
    assert.equal((await post('/runs', [])).status, 422);
    assert.equal((await fetch(`${server.url}/threads/not-a-uuid/runs`)).status, 422);
    assert.equal((await fetch(`${server.url}/threads/%ZZ/runs`)).status, 400);
    assert.equal((await fetch(`${server.url}/runs`, { method: 'DELETE' })).status, 405);
    const labelled = await fetch(`${server.url}/runs/wait`, {
      method: 'POST',
      body: JSON.stringify({ assistant_id: 'echo', input: HELLO }),
      headers: { 'content-type': 'text/plain' },
    });
    assert.equal(labelled.status, 200);
    await labelled.text();
  });

  test('an unknown assistant and an unknown thread are not found', async () => {
    const threadId = (await client.threads.create()).thread_id;
    for (const route of ['', '/wait', '/stream']) {
      const assistant = await post(`/threads/${threadId}/runs${route}`, { assistant_id: 'unknown', input: {} });
      assert.equal(assistant.status, 404);
      assert.match(await detailOf(assistant), /No assistant found for "unknown"/);
      const thread = await post(`/threads/${randomUUID()}/runs${route}`, { assistant_id: 'echo', input: {} });
      assert.equal(thread.status, 404);
    }
  });

  test('the singular spelling of the thread routes is served as well', async () => {
    const threadId = (await client.threads.create()).thread_id;
    const response = await post(`/thread/${threadId}/runs/wait`, { assistant_id: 'echo', input: HELLO });
    assert.equal(response.status, 200);
    assert.match(await response.text(), /You said: hello/);
  });

  test('deleting a thread ends what runs on it, and whoever waits gets an answer', async () => {
    const threadId = (await client.threads.create()).thread_id;
    const running = await client.runs.create(threadId, 'steps', { input: { name: 'a', stepMs: 60_000 } });
    const waiting = await client.runs.create(threadId, 'steps', { input: { name: 'b', stepMs: 0 } });
    // Their heads say that both are attached.
    const joined = await Promise.all(
      [running, waiting].map((run) => fetch(`${server.url}/threads/${threadId}/runs/${run.run_id}/join`)),
    );
    await client.threads.delete(threadId);
    assert.deepEqual(await Promise.all(joined.map((response) => response.json())), [null, null]);
    await assert.rejects(client.runs.get(threadId, running.run_id), /HTTP 404/);
  });
});
