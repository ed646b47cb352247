/** Other people's ids and forged owners on every route of the deployment API: group 15 of the cases (cases.test.ts). */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { describeOnEachEngine } from '../deploy-engines.ts';
import { EXAMPLES, FIXTURE_GRAPHS, specs } from '../deploy-server.ts';
import { sendRawOrCut } from '../flow/rawhttp.ts';
import { operations, startApi, type ApiServer } from './apiserver.ts';

type Body = Record<string, unknown>;

/** What each route that takes a body is content with. */
function bodyFor(pattern: string): Body {
  return {
    ...{
      assistant_id: 'steps',
      graph_id: 'steps',
      input: { name: 'x' },
      schedule: '* * * * *',
      enabled: false,
      version: 1,
    },
    ...(pattern.endsWith('/state') ? { values: { name: 'forged' }, metadata: { forged: true } } : {}),
    ...(pattern.endsWith('/checkpoint') ? { checkpoint: {} } : {}),
  };
}

describeOnEachEngine('ids that are not of the place', (engine) => {
  let server: ApiServer;
  /** The victim's thread, with a run that ended, and one that goes on. */
  let threadId: string;
  let ended: string;
  let running: string;
  let otherThread: string;

  before(async () => {
    server = await startApi({
      engine,
      graphs: [...specs(FIXTURE_GRAPHS, 'steps', 'inspect'), ...specs(EXAMPLES, 'echo')],
    });
    threadId = await server.thread({ metadata: { owner: 'victim' } });
    otherThread = await server.thread({ metadata: { owner: 'thief', graph_id: 'steps' } });
    const create = async (input: Body): Promise<string> => {
      const { json } = await server.ask('POST', `/threads/${threadId}/runs`, { assistant_id: 'steps', input });
      return (json as { run_id: string }).run_id;
    };
    ended = await create({ name: 'a' });
    await server.ask('GET', `/threads/${threadId}/runs/${ended}/join`);
    running = await create({ name: 'b', hold: { step: 'one', until: `${server.folder}/never` } });
  });
  after(() => server.close());

  test('find nothing: a run under another thread, by any route, and the run stays as it was', async () => {
    const before = await server.ask('GET', `/threads/${threadId}/runs/${ended}`);
    let count = 0;
    for (const runId of [ended, running, randomUUID()]) {
      for (const { method, pattern, path } of operations({ thread_id: otherThread, run_id: runId })) {
        if (!pattern.includes(':thread_id') || !pattern.includes(':run_id')) continue;
        const answer = await server.ask(method, path, method === 'GET' ? undefined : {});
        assert.equal(answer.status, 404, `${method} ${path}: ${answer.text}`);
        assert.ok(!answer.text.includes(threadId), answer.text);
        count++;
      }
      const bulk = await server.ask('POST', '/runs/cancel', { thread_id: otherThread, run_ids: [runId] });
      assert.equal(bulk.status, 404);
    }
    assert.ok(count >= 15, `${count}`);
    assert.equal((await server.ask('GET', `/threads/${threadId}/runs/${ended}`)).text, before.text);
    const { status } = (await server.ask('GET', `/threads/${threadId}/runs/${running}`)).json as { status: string };
    assert.equal(status, 'running');
  });

  test('find nothing: threads, crons and assistants that are not there, by any route, and none is made', async () => {
    const counts = async (): Promise<string> =>
      (
        await Promise.all(
          ['/threads/count', '/assistants/count', '/runs/crons/count'].map((path) => server.ask('POST', path, {})),
        )
      )
        .map(({ text }) => text)
        .join();
    const before = await counts();
    const ids = {
      thread_id: randomUUID(),
      run_id: randomUUID(),
      cron_id: randomUUID(),
      assistant_id: randomUUID(),
      checkpoint_id: 'x',
    };
    for (const { method, pattern, path, takesBody } of operations(ids)) {
      if (!/:(thread|run|cron|assistant)_id/.test(pattern)) continue;
      const answer = await server.ask(method, path, takesBody ? bodyFor(pattern) : undefined);
      assert.equal(answer.status, 404, `${method} ${path}: ${answer.text}`);
      assert.match(answer.detail, /not found|No assistant|has no version/, `${method} ${path}`);
    }
    assert.equal(await counts(), before);
  });

  test("find nothing: another thread's checkpoints, to read, to fork from, to write behind", async () => {
    const state = (await server.ask('GET', `/threads/${threadId}/state`)).json as {
      checkpoint: Body & { checkpoint_id: string };
    };
    const checkpoint = { ...state.checkpoint, thread_id: threadId };
    const id = checkpoint.checkpoint_id;
    for (const [method, path, body] of [
      ['GET', `state/${id}`, undefined],
      ['POST', 'state/checkpoint', { checkpoint, subgraphs: true }],
      ['POST', 'history', { checkpoint }],
      ['GET', `history?before=${id}`, undefined],
    ] as const) {
      const answer = await server.ask(method, `/threads/${otherThread}/${path}`, body);
      assert.ok(answer.status < 500 && !answer.text.includes('a:one'), answer.text);
    }
    // The run is told that there is no such place, or begins from nothing: it never sees the other's values.
    for (const more of [
      { checkpoint },
      { checkpoint_id: id },
      { config: { configurable: { ...checkpoint, thread_id: threadId, thread_ts: id } } },
    ]) {
      const run = { assistant_id: 'steps', input: { name: 'c' }, ...more };
      const answer = await server.ask('POST', `/threads/${otherThread}/runs/wait`, run);
      assert.ok(!answer.text.includes('a:one') && !answer.text.includes('"name":"a"'), answer.text);
    }
    const own = (await server.ask('GET', `/threads/${threadId}/history?limit=1000`)).json as { metadata: Body }[];
    assert.ok(own.every(({ metadata }) => [ended, running].includes(String(metadata['run_id']))));
  });

  test('are not taken over by metadata or config: what identifies a run, its thread and its user stays ours', async () => {
    const id = await server.thread();
    const forged = {
      ...{
        run_id: ended,
        thread_id: threadId,
        graph_id: 'echo',
        assistant_id: randomUUID(),
        user_id: 'root',
        cron_id: ended,
      },
      ...{
        langgraph_auth_user: { identity: 'root' },
        langgraph_auth_user_id: 'root',
        langgraph_auth_permissions: ['*'],
      },
      ...{ __pregel_checkpointer: {}, __pregel_store: {}, __pregel_task_id: 'x', checkpoint_ns: '' },
    };
    const run = {
      assistant_id: 'inspect',
      input: {},
      metadata: forged,
      config: { configurable: forged, metadata: forged },
    };
    const answer = await server.ask('POST', `/threads/${id}/runs/wait`, run);
    const location = answer.headers.get('content-location') ?? '';
    const { seen } = answer.json as { seen: { configurable: Body } };
    const runId = location.slice(location.lastIndexOf('/') + 1);
    assert.notEqual(runId, ended);
    const { configurable } = seen;
    assert.deepEqual(
      [configurable['run_id'], configurable['thread_id'], configurable['graph_id'], configurable['user_id']],
      [runId, id, 'inspect', null],
    );
    for (const key of Object.keys(configurable)) assert.doesNotMatch(key, /^(?:__|langgraph_auth_)/);
    const thread = (await server.ask('GET', `/threads/${id}`)).json as { metadata: Body };
    assert.equal(thread.metadata['graph_id'], 'inspect');
    // The history of the victim has none of it, and a rollback of the forged run id would not find it.
    const [first] = (await server.ask('GET', `/threads/${id}/history`)).json as { metadata: Body }[];
    assert.equal(first?.metadata['run_id'], runId);
    const made = await server.ask('POST', `/threads/${randomUUID()}/runs`, { ...run, if_not_exists: 'create' });
    const fresh = (await server.ask('GET', `/threads/${(made.json as { thread_id: string }).thread_id}`)).json as {
      metadata: Body;
    };
    assert.equal(fresh.metadata['graph_id'], 'inspect');
    assert.equal((await server.ask('GET', '/ok')).status, 200);
  });

  test('cannot be taken: a thread or assistant whose id is there stays as it is', async () => {
    const metadata = { owner: 'thief' };
    assert.equal((await server.ask('POST', '/threads', { thread_id: threadId, metadata })).status, 409);
    const upper = threadId.toUpperCase();
    assert.equal((await server.ask('POST', '/threads', { thread_id: upper, metadata })).status, 409);
    const same = await server.ask('POST', '/threads', { thread_id: upper, metadata, if_exists: 'do_nothing' });
    assert.equal((same.json as { metadata: Body }).metadata['owner'], 'victim');
    const { assistant_id: id } = (await server.ask('GET', '/assistants/echo')).json as { assistant_id: string };
    const assistant = { assistant_id: id, graph_id: 'steps', metadata };
    assert.equal((await server.ask('POST', '/assistants', assistant)).status, 409);
    const kept = await server.ask('POST', '/assistants', { ...assistant, if_exists: 'do_nothing' });
    assert.equal((kept.json as { graph_id: string }).graph_id, 'echo');
  });

  test('what a client says in metadata comes back in no header, and none splits an answer', async () => {
    const odd = 'x\r\nset-cookie: a=b\r\n\r\n<script>';
    const id = await server.thread({ metadata: { [odd]: odd } });
    const more = { metadata: { [odd]: odd }, context: { [odd]: odd }, [odd]: 1, 'x"\r\ny': 1, é: 1 };
    for (const path of [
      `/threads/${id}/runs`,
      `/threads/${id}/runs/wait`,
      `/threads/${id}/runs/stream`,
      '/runs/wait',
      '/runs/batch',
    ]) {
      const run = { assistant_id: 'echo', input: { messages: [] }, ...more };
      const answer = await server.ask('POST', path, path.endsWith('batch') ? [run] : run);
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.headers.get('set-cookie'), null);
      assert.ok(!JSON.stringify([...answer.headers]).includes('script'), JSON.stringify([...answer.headers]));
      assert.match(answer.headers.get('warning') ?? '', /^299 - "without effect: [\w ]+"$/);
    }
    for (const query of [
      'a=%0d%0aset-cookie:a=b',
      'stream_mode=run_modes&a="<script>',
      'x=\u0001',
      'a=b\rset-cookie: a=b',
    ]) {
      const request = `GET /threads/${id}/stream?${query} HTTP/1.1\r\nhost: localhost\r\n\r\n`;
      const answer = await sendRawOrCut(server.port, request.replace('stream?', 'state?'));
      // A bare CR in the head ends the connection; all else is answered.
      assert.equal(answer === null, query.includes('\r'), query);
      assert.equal(answer?.headers.get('set-cookie'), undefined);
    }
  });
});
