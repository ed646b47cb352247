/** Requests that race each other for one thread: of group 16 of the cases (cases.test.ts). */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { after, afterEach, before, test } from 'node:test';
import pg from 'pg';
import { describeOnEachEngine, type TestDatabase } from '../deploy-engines.ts';
import { FIXTURE_GRAPHS, specs } from '../deploy-server.ts';
import { startApi, until, type Answer, type ApiServer } from './apiserver.ts';

interface Run {
  run_id: string;
  thread_id: string;
  status: string;
}

describeOnEachEngine('races', (engine) => {
  let server: ApiServer;

  before(async () => {
    server = await startApi({ engine, graphs: specs(FIXTURE_GRAPHS, 'steps') });
  });
  after(() => server.close());
  afterEach(() => assert.equal(server.counted('api_refused_internal'), 0, server.logged()));

  const create = (threadId: string, name: string, more: object = {}): Promise<Answer> =>
    server.ask('POST', `/threads/${threadId}/runs`, { assistant_id: 'steps', input: { name, stepMs: 1 }, ...more });
  const idOf = ({ json }: Answer): string => (json as Run).run_id;
  const list = async (threadId: string): Promise<Run[]> =>
    (await server.ask('GET', `/threads/${threadId}/runs?limit=1000`)).json as Run[];
  const threadOf = async (threadId: string): Promise<{ status: string }> =>
    (await server.ask('GET', `/threads/${threadId}`)).json as { status: string };
  const doneOf = async (threadId: string): Promise<string[]> => {
    const { json } = await server.ask('GET', `/threads/${threadId}/state`);
    return (json as { values: { done?: string[] } }).values.done ?? [];
  };
  const quiet = (threadId: string): Promise<void> =>
    until(
      async () => (await list(threadId)).every(({ status }) => !['pending', 'running'].includes(status)),
      'all have ended',
    );
  /** Whoever ran, ran alone: the steps of each stand together, in order. */
  const assertAlone = (done: readonly string[]): void => {
    const names = done.map((step) => step.split(':')[0]);
    const changes = names.filter((name, index) => name !== names[index - 1]);
    assert.equal(new Set(changes).size, changes.length, done.join(' '));
  };

  for (const strategy of ['reject', 'enqueue', 'interrupt', 'rollback'] as const) {
    test(`two runs on one thread at the same moment, ${strategy}, forty times`, async () => {
      for (let round = 0; round < 40; round++) {
        const threadId = await server.thread();
        const held = round % 2 === 1 ? [await create(threadId, 'zero', { input: { name: 'zero', stepMs: 2 } })] : [];
        // The one that is taken must not be over before the other one is looked at.
        const isHeld = strategy === 'reject' && held.length === 0;
        const gate = `${server.folder}/${threadId}`;
        const [a, b] = await Promise.all(
          ['a', 'b'].map((name) =>
            create(threadId, name, {
              multitask_strategy: strategy,
              ...(isHeld ? { input: { name, hold: { step: 'one', until: gate } } } : {}),
            }),
          ),
        );
        assert.ok(a !== undefined && b !== undefined);
        if (isHeld) await writeFile(gate, '');
        const refused = [a, b].filter(({ status }) => status === 409);
        assert.ok([a, b].every(({ status }) => status === 200 || (strategy === 'reject' && status === 409)));
        if (isHeld) assert.equal(refused.length, 1);
        await quiet(threadId);
        const runs = await list(threadId);
        const made = [...held, a, b].filter(({ status }) => status === 200).map(idOf);
        const done = await doneOf(threadId);
        assertAlone(done);
        assert.equal((await threadOf(threadId)).status, 'idle');
        switch (strategy) {
          case 'reject':
          case 'enqueue':
            assert.ok(runs.every(({ status }) => status === 'success'));
            assert.equal(runs.length, made.length);
            assert.equal(done.length, 3 * made.length);
            break;
          case 'interrupt':
            assert.equal(runs.length, made.length);
            assert.ok(runs.every(({ status }) => ['success', 'interrupted'].includes(status)));
            assert.ok(
              runs.some(({ status }) => status === 'success'),
              'one is displaced by none',
            );
            break;
          case 'rollback': {
            assert.ok(runs.length > 0 && runs.every(({ status }) => status === 'success'), JSON.stringify(runs));
            const history = (await server.ask('GET', `/threads/${threadId}/history?limit=1000`)).json as {
              metadata: { run_id: string };
            }[];
            const kept = new Set(runs.map(({ run_id: id }) => id));
            assert.deepEqual(
              history.filter(({ metadata }) => !kept.has(metadata.run_id)),
              [],
            );
          }
        }
      }
    });
  }

  test('a cancel against the end of its run, against itself, against a rollback and against the thread that goes', async () => {
    for (let round = 0; round < 60; round++) {
      const threadId = await server.thread();
      const runId = idOf(await create(threadId, 'a', { input: { name: 'a', stepMs: round % 6 } }));
      const path = `/threads/${threadId}/runs/${runId}`;
      const joined = server.ask('GET', `${path}/join`);
      const cancels = [
        `${path}/cancel`,
        `${path}/cancel?wait=1`,
        `${path}/cancel?wait=1&action=${round % 3 === 0 ? 'rollback' : 'interrupt'}`,
      ];
      const answers = await Promise.all([
        ...cancels.map((cancel) => server.ask('POST', cancel)),
        ...(round % 5 === 4 ? [server.ask('DELETE', `/threads/${threadId}`)] : []),
      ]);
      for (const { status, text } of answers) assert.ok([202, 204, 404].includes(status), `${status} ${text}`);
      assert.ok([200, 404].includes((await joined).status));
      if (round % 5 === 4) {
        assert.equal((await server.ask('GET', path)).status, 404);
        continue;
      }
      await quiet(threadId);
      const [run] = await list(threadId);
      const isRolledBack = round % 3 === 0;
      // Whichever came first: what was asked to vanish may have ended before it was asked.
      if (run === undefined) assert.ok(isRolledBack);
      else assert.ok(['success', 'interrupted'].includes(run.status), run.status);
      if (run === undefined) assert.deepEqual(await doneOf(threadId), []);
      assert.equal((await threadOf(threadId)).status, 'idle');
      const next = await server.ask('POST', `/threads/${threadId}/runs/wait`, {
        assistant_id: 'steps',
        input: { name: 'n' },
      });
      assert.equal((next.json as { done: string[] }).done.at(-1), 'n:three');
    }
  });

  test('requests that are sent again, as clients do when an answer was lost, change nothing the second time', async () => {
    const threadId = randomUUID();
    const assistantId = randomUUID();
    const twice = async (method: string, path: string, body?: object): Promise<[Answer, Answer]> => [
      await server.ask(method, path, body),
      await server.ask(method, path, body),
    ];
    const thread = await twice('POST', '/threads', {
      thread_id: threadId,
      if_exists: 'do_nothing',
      metadata: { a: 1 },
    });
    assert.equal(thread[0].text, thread[1].text);
    const assistant = { assistant_id: assistantId, graph_id: 'steps', if_exists: 'do_nothing', name: 'once' };
    const made = await twice('POST', '/assistants', assistant);
    assert.equal(made[0].text, made[1].text);
    const runId = idOf(
      await create(threadId, 'a', { input: { name: 'a', hold: { step: 'one', until: `${server.folder}/never` } } }),
    );
    for (const answer of await twice('POST', `/threads/${threadId}/runs/${runId}/cancel?wait=1`))
      assert.equal(answer.status, 204);
    const item = { namespace: ['twice'], key: 'k', value: { n: 1 } };
    for (const answer of await twice('PUT', '/store/items', item)) assert.equal(answer.status, 204);
    for (const answer of await twice('DELETE', '/store/items', item)) assert.equal(answer.status, 204);
    const removed = await twice('DELETE', `/threads/${threadId}`);
    assert.deepEqual(
      removed.map(({ status }) => status),
      [204, 404],
    );
    // Not over before the last of them is looked at.
    const gate = `${server.folder}/${threadId}`;
    const raced = await Promise.all(
      Array.from({ length: 10 }, () =>
        create(threadId, 'b', {
          if_not_exists: 'create',
          multitask_strategy: 'reject',
          input: { name: 'b', hold: { step: 'one', until: gate } },
        }),
      ),
    );
    await writeFile(gate, '');
    assert.equal(raced.filter(({ status }) => status === 200).length, 1, 'the thread is made once, and one run on it');
    await quiet(threadId);
  });
});

describeOnEachEngine('a lease that is lost', (engine) => {
  // SQLite belongs to one process.
  if (engine.name === 'sqlite') return;
  let database: TestDatabase;
  let server: ApiServer;

  before(async () => {
    database = await engine.create();
    const limits = { leaseMs: 3000 };
    server = await startApi({
      graphs: specs(FIXTURE_GRAPHS, 'steps'),
      limits,
      settings: { location: database.location },
    });
  });
  after(async () => {
    await server.close();
    await database.remove();
  });

  test('ends the attempt here, and what it brings is thrown away: the run is what its new owner says', async () => {
    const threadId = await server.thread();
    const goOn = `${server.folder}/go-on`;
    const journal = `${server.folder}/journal`;
    const input = { name: 'here', journal, hold: { step: 'two', until: goOn } };
    const { json } = await server.ask('POST', `/threads/${threadId}/runs`, { assistant_id: 'steps', input });
    const { run_id: runId } = json as Run;
    await until(async () => (await readFile(journal, 'utf8').catch(() => '')).includes('here:two'), 'the second step');
    assert.equal(database.location.engine, 'postgres');
    const other = new pg.Client({ connectionString: database.location.url });
    await other.connect();
    try {
      // As if this process had been stopped for longer than its lease, and another one had taken the run up.
      const lease = [runId, Date.now() + 3_600_000];
      const taken = await other.query(
        `update deploy_run set owner_id = 'there', lease_until_ms = $2, attempt = 2 where run_id = $1`,
        lease,
      );
      assert.equal(taken.rowCount, 1);
      await until(() => server.counted('graph_results_discarded') === 1, 'the attempt here has ended');
      await writeFile(goOn, '');
      const run = (await server.ask('GET', `/threads/${threadId}/runs/${runId}`)).json as Run;
      assert.equal(run.status, 'running');
      assert.equal(server.counted('graph_runs_ended'), 0);
      assert.equal(await readFile(journal, 'utf8'), 'here:one\nhere:two\n');
    } finally {
      await other.end();
    }
  });
});
