import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { Client } from '@langchain/langgraph-sdk';
import { describeOnEachEngine } from '../deploy-engines.ts';
import { EXAMPLES, FIXTURE_GRAPHS, specs, startServer, type TestServer } from '../deploy-server.ts';

describeOnEachEngine('State of a thread', (engine) => {
  let server: TestServer;
  let client: Client;

  before(async () => {
    server = await startServer({
      engine,
      graphs: [
        ...specs(EXAMPLES, 'echo', 'approval', 'nested'),
        ...specs(FIXTURE_GRAPHS, 'steps', 'nestedpause', 'questions'),
      ],
    });
    client = new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } });
  });
  after(() => server.close());

  async function newThread(graphId?: string): Promise<string> {
    return (await client.threads.create(graphId === undefined ? {} : { graphId })).thread_id;
  }

  test('a new thread has an empty state and no history', async () => {
    const threadId = await newThread();
    const response = await fetch(`${server.url}/threads/${threadId}/state`);
    assert.equal(response.status, 200);
    const state = (await response.json()) as Record<string, unknown>;
    assert.deepEqual(state['values'], {});
    assert.deepEqual(state['next'], []);
    assert.equal(state['checkpoint'], null);
    assert.deepEqual(await client.threads.getHistory(threadId), []);
  });

  test('the state of a thread that does not exist is not found', async () => {
    const threadId = randomUUID();
    for (const [method, path] of [
      ['GET', 'state'],
      ['POST', 'state'],
      ['GET', 'history'],
      ['POST', 'history'],
      ['GET', 'stream'],
    ])
      assert.equal(
        (await fetch(`${server.url}/threads/${threadId}/${path}`, method === 'POST' ? { method, body: '{}' } : {}))
          .status,
        404,
        `${method} ${path}`,
      );
  });

  test('messages in the state are flat and carry type and content', async () => {
    const threadId = await newThread();
    await client.runs.wait(threadId, 'echo', { input: { messages: [{ role: 'user', content: 'hi' }] } });
    const state = await client.threads.getState<{ messages: { type: string; content: string }[] }>(threadId);
    assert.deepEqual(
      state.values.messages.map(({ type, content }) => [type, content]),
      [
        ['human', 'hi'],
        ['ai', 'You said: hi'],
      ],
    );
    const thread = await client.threads.get(threadId);
    assert.deepEqual((thread.values as unknown as { messages: unknown[] }).messages, state.values.messages);
    assert.equal(thread.metadata?.['graph_id'], 'echo');
  });

  test('an interrupted thread shows its question, and resumes with the answer, a false one too', async () => {
    for (const [resume, result] of [
      [true, /^Published/],
      [false, /^Not published/],
    ] as const) {
      const threadId = await newThread();
      const asked = (await client.runs.wait(threadId, 'approval', { input: { topic: 'ice' } })) as Record<
        string,
        unknown
      >;
      const [interrupt] = asked['__interrupt__'] as { id: string; value: { question: string } }[];
      assert.equal(interrupt?.value.question, 'May this be published?');
      const state = await client.threads.getState(threadId);
      assert.deepEqual(state.next, ['review']);
      assert.deepEqual(state.tasks[0]?.interrupts, [interrupt]);
      const thread = await client.threads.get(threadId);
      assert.equal(thread.status, 'interrupted');
      assert.deepEqual(Object.values(thread.interrupts), [[interrupt]]);
      const [found] = await client.threads.search({ ids: [threadId], status: 'interrupted' });
      assert.equal(found?.thread_id, threadId);
      const ended = (await client.runs.wait(threadId, 'approval', { command: { resume } })) as { result: string };
      assert.match(ended.result, result);
      assert.equal((await client.threads.get(threadId)).status, 'idle');
      assert.deepEqual((await client.threads.get(threadId)).interrupts, {});
    }
  });

  test('a command can resume, update and go elsewhere in one step', async () => {
    const threadId = await newThread();
    await client.runs.wait(threadId, 'approval', { input: { topic: 'ice' } });
    const ended = (await client.runs.wait(threadId, 'approval', {
      command: { update: { draft: 'rewritten', decision: 'approved' }, goto: 'publish' },
    })) as { result: string };
    assert.equal(ended.result, 'Published: rewritten');
  });

  test('a command’s update may be a list of pairs, and one target or one node with its input may be gone to', async () => {
    for (const [update, goto, result] of [
      [
        [
          ['draft', 'in pairs'],
          ['decision', 'approved'],
        ],
        'publish',
        'Published: in pairs',
      ],
      [{ draft: 'ignored' }, { node: 'publish', input: { decision: 'approved', draft: 'sent' } }, 'Published: sent'],
      [null, [{ node: 'publish', input: { decision: 'rejected' } }], 'Not published.'],
    ] as const) {
      const threadId = await newThread();
      await client.runs.wait(threadId, 'approval', { input: { topic: 'ice' } });
      const response = await fetch(`${server.url}/threads/${threadId}/runs/wait`, {
        method: 'POST',
        body: JSON.stringify({ assistant_id: 'approval', input: {}, command: { update, goto, resume: null } }),
      });
      assert.equal(((await response.json()) as { result: string }).result, result);
    }
  });

  test('several questions at once are answered by their ids, together or one after the other', async () => {
    interface Asked {
      answers: string[];
      __interrupt__?: { id: string; value: string }[];
    }
    const run = async (threadId: string, payload: object): Promise<Asked> =>
      (await client.runs.wait(threadId, 'questions', payload)) as unknown as Asked;
    const idOf = (asked: Asked, value: string): string =>
      asked.__interrupt__?.find((interrupt) => interrupt.value === value)?.id ?? assert.fail(value);
    const together = await newThread();
    const both = await run(together, { input: {} });
    assert.equal(both.__interrupt__?.length, 2);
    assert.equal(Object.keys((await client.threads.get(together)).interrupts).length, 2);
    const answered = await run(together, {
      command: { resume: { [idOf(both, 'size?')]: 'big', [idOf(both, 'colour?')]: 'red' } },
    });
    assert.deepEqual(answered.answers.sort(), ['colour: red', 'size: big']);

    const apart = await newThread();
    const first = await run(apart, { input: {} });
    const second = await run(apart, { command: { resume: { [idOf(first, 'size?')]: 'big' } } });
    assert.deepEqual(
      second.__interrupt__?.map((interrupt) => interrupt.value),
      ['colour?'],
    );
    assert.equal((await client.threads.get(apart)).status, 'interrupted');
    const last = await run(apart, { command: { resume: { [idOf(first, 'colour?')]: 'red' } } });
    assert.deepEqual(last.answers.sort(), ['colour: red', 'size: big']);
    assert.equal((await client.threads.get(apart)).status, 'idle');
  });

  test('a state update writes a checkpoint as the node that it names, and what is next follows', async () => {
    const threadId = await newThread();
    await client.runs.wait(threadId, 'steps', { input: { name: 'a', stepMs: 0 } });
    const before = await client.threads.getState<{ done: string[] }>(threadId);
    const updated = await client.threads.updateState(threadId, { values: { done: ['by hand'] }, asNode: 'two' });
    const state = await client.threads.getState<{ done: string[] }>(threadId);
    assert.equal(
      state.checkpoint.checkpoint_id,
      (updated as { checkpoint: { checkpoint_id: string } }).checkpoint.checkpoint_id,
    );
    assert.deepEqual(state.values.done, [...before.values.done, 'by hand']);
    assert.deepEqual(state.next, ['three']);
    assert.equal(state.metadata?.['source'], 'update');
    assert.equal(state.metadata?.['graph_id'], 'steps');
    assert.equal((await client.threads.get(threadId)).status, 'interrupted');
    const continued = (await client.runs.wait(threadId, 'steps', { input: null })) as { done: string[] };
    assert.deepEqual(continued.done.slice(-2), ['by hand', 'a:three']);
  });

  test('an update that the graph objects to is 422 and says why; one while a run is in flight is 409; one without a graph is 400', async () => {
    const threadId = await newThread();
    await assert.rejects(client.threads.updateState(threadId, { values: { done: [] } }), /HTTP 400.*no graph/);
    await client.runs.wait(threadId, 'steps', { input: { name: 'a', stepMs: 0 } });
    await assert.rejects(
      client.threads.updateState(threadId, { values: { done: [] }, asNode: 'nowhere' }),
      /HTTP 422.*nowhere.*does not exist/,
    );
    // One that waits for its time is in flight as well.
    for (const payload of [{ input: { name: 'b', stepMs: 60_000 } }, { input: { name: 'c' }, afterSeconds: 3600 }]) {
      const run = await client.runs.create(threadId, 'steps', payload);
      await assert.rejects(
        client.threads.updateState(threadId, { values: { done: [] }, asNode: 'one' }),
        /HTTP 409.*busy/,
      );
      assert.equal((await client.threads.get(threadId)).status, 'busy');
      await client.runs.cancel(threadId, run.run_id, true);
    }
  });

  test('an earlier checkpoint can be read, and a run forked from it', async () => {
    const threadId = await newThread();
    await client.runs.wait(threadId, 'steps', { input: { name: 'a', stepMs: 0 } });
    const history = await client.threads.getHistory<{ done: string[] }>(threadId);
    const afterOne = history.find((state) => state.next[0] === 'two');
    assert.ok(afterOne?.checkpoint.checkpoint_id);
    const byPath = await client.threads.getState<{ done: string[] }>(threadId, afterOne.checkpoint.checkpoint_id);
    const byBody = await client.threads.getState<{ done: string[] }>(threadId, afterOne.checkpoint);
    assert.deepEqual(byPath.values.done, ['a:one']);
    assert.deepEqual(byBody, byPath);
    for (const from of [{ checkpointId: afterOne.checkpoint.checkpoint_id }, { checkpoint: afterOne.checkpoint }]) {
      const forked = (await client.runs.wait(threadId, 'steps', { input: null, ...from })) as { done: string[] };
      assert.deepEqual(forked.done, ['a:one', 'a:two', 'a:three']);
    }
    await assert.rejects(
      client.runs.wait(threadId, 'steps', { input: { name: 'b' }, checkpointId: randomUUID() }),
      /checkpoint [0-9a-f-]{36} not found/,
    );
    const newHistory = await client.threads.getHistory(threadId, { limit: 100 });
    assert.ok(newHistory.length > history.length);
    assert.ok(newHistory.some((state) => state.metadata?.['source'] === 'fork'));
  });

  test('history is newest first, can be limited, continued before a checkpoint, and filtered by metadata', async () => {
    const threadId = await newThread();
    await client.runs.wait(threadId, 'steps', { input: { name: 'a', stepMs: 0 }, metadata: { round: 'one' } });
    await client.runs.wait(threadId, 'steps', { input: { name: 'b', stepMs: 0 }, metadata: { round: 'two' } });
    const all = await client.threads.getHistory(threadId, { limit: 100 });
    assert.equal(all.length, 10);
    assert.deepEqual(
      all.map((state) => state.created_at),
      all
        .map((state) => state.created_at)
        .sort()
        .reverse(),
    );
    const two = await client.threads.getHistory(threadId, { limit: 2 });
    assert.deepEqual(two, all.slice(0, 2));
    const next = await client.threads.getHistory(threadId, {
      limit: 3,
      before: { configurable: { checkpoint_id: two[1]?.checkpoint.checkpoint_id ?? '' } },
    });
    assert.deepEqual(next, all.slice(2, 5));
    const filtered = await client.threads.getHistory(threadId, { limit: 100, metadata: { round: 'one' } });
    assert.deepEqual(filtered, all.slice(5));
    const response = await fetch(
      `${server.url}/threads/${threadId}/history?limit=1&before=${all[0]?.checkpoint.checkpoint_id}`,
    );
    assert.deepEqual(await response.json(), JSON.parse(JSON.stringify([all[1]])));
  });

  test('the state of a subgraph that waits is shown when asked for, and can be read by its namespace', async () => {
    const threadId = await newThread();
    await client.runs.wait(threadId, 'nestedpause', { input: { text: 'hello' } });
    const shallow = await client.threads.getState(threadId);
    const namespace = shallow.tasks[0]?.checkpoint?.checkpoint_ns ?? '';
    assert.match(namespace, /^inner:/);
    assert.equal(shallow.tasks[0]?.state, null);
    const deep = await client.threads.getState<{ text: string }>(threadId, undefined, { subgraphs: true });
    const inner = deep.tasks[0]?.state;
    assert.equal((inner?.values as { text: string }).text, 'hello, inside');
    const byNamespace = await client.threads.getState<{ text: string }>(threadId, {
      thread_id: threadId,
      checkpoint_ns: namespace,
    } as never);
    assert.equal(byNamespace.values.text, 'hello, inside');
    const ended = (await client.runs.wait(threadId, 'nestedpause', { command: { resume: 'done' } })) as {
      text: string;
    };
    assert.equal(ended.text, 'hello, inside, done');
  });

  test('a thread can be created with supersteps that pre-populate its state, and copied with its history', async () => {
    const thread = await client.threads.create({
      graphId: 'steps',
      supersteps: [
        { updates: [{ values: { name: 'p' }, asNode: '__start__' }] },
        { updates: [{ values: { done: ['p:one'] }, asNode: 'one' }] },
      ],
    });
    const state = await client.threads.getState<{ done: string[] }>(thread.thread_id);
    assert.deepEqual(state.values.done, ['p:one']);
    assert.deepEqual(state.next, ['two']);
    const copy = await client.threads.copy(thread.thread_id);
    const copied = await client.threads.getState<{ done: string[] }>(
      (copy as unknown as { thread_id: string }).thread_id,
    );
    assert.deepEqual(copied.values, state.values);
    assert.notEqual(copied.checkpoint.thread_id, thread.thread_id);
  });

  test('metadata of the state can be patched', async () => {
    const threadId = await newThread();
    await client.threads.patchState(threadId, { team: 'ops' });
    assert.equal((await client.threads.get(threadId)).metadata?.['team'], 'ops');
  });

  test('assistants show the drawing, the schemas and the subgraphs of their graph', async () => {
    const drawing = await client.assistants.getGraph('nested', { xray: true });
    assert.ok(drawing.nodes.some((node) => node.id === 'research:search'));
    const plain = await client.assistants.getGraph('nested');
    assert.deepEqual(
      plain.nodes.map((node) => node.id),
      ['__start__', 'research', 'conclude', '__end__'],
    );
    const schemas = await client.assistants.getSchemas('approval');
    assert.deepEqual(Object.keys(schemas.state_schema?.properties ?? {}), ['topic', 'draft', 'decision', 'result']);
    const subgraphs = await client.assistants.getSubgraphs('nested', { recurse: true });
    assert.deepEqual(Object.keys(subgraphs), ['research']);
    assert.equal((await fetch(`${server.url}/assistants/unknown/graph`)).status, 404);
    assert.equal((await fetch(`${server.url}/assistants/nested/graph?xray=maybe`)).status, 422);
  });
});
