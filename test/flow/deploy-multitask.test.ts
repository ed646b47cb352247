import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@langchain/langgraph-sdk';
import { journalOf } from '../deploy-child.ts';
import { describeOnEachEngine } from '../deploy-engines.ts';
import { FIXTURE_GRAPHS, specs, startServer, type TestServer } from '../deploy-server.ts';

describeOnEachEngine('Multitasking', (engine) => {
  type MultitaskStrategy = 'reject' | 'interrupt' | 'rollback' | 'enqueue';

  let server: TestServer;
  let client: Client;

  before(async () => {
    server = await startServer({
      engine,
      graphs: specs(FIXTURE_GRAPHS, 'steps', 'misbehave'),
    });
    client = new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } });
  });
  after(() => server.close());

  interface Values {
    name: string;
    done: string[];
  }

  async function begin(
    threadId: string,
    name: string,
    stepMs: number,
    multitaskStrategy: MultitaskStrategy = 'enqueue',
  ) {
    return client.runs.create(threadId, 'steps', { input: { name, stepMs }, multitaskStrategy, ifNotExists: 'create' });
  }

  /** A run that stays in its second step until it is let go. */
  async function beginHeld(threadId: string, name: string) {
    const [until, journal] = [join(server.folder, randomUUID()), join(server.folder, randomUUID())];
    const input = { name, journal, hold: { step: 'two', until } };
    const { run_id } = await client.runs.create(threadId, 'steps', { input, ifNotExists: 'create' });
    return {
      run_id,
      /** Resolves when its first step is done and its second under way. */
      inSecondStep: () => journalOf(journal, 2),
      letGo: () => writeFile(until, ''),
    };
  }

  async function doneSteps(threadId: string): Promise<string[]> {
    return (await client.threads.getState<Values>(threadId)).values.done ?? [];
  }

  test('reject answers 409 while a run is in flight, and that run completes', async () => {
    const threadId = randomUUID();
    const first = await beginHeld(threadId, 'a');
    await assert.rejects(begin(threadId, 'b', 0, 'reject'), /HTTP 409.*already running/);
    await first.letGo();
    await client.runs.join(threadId, first.run_id);
    assert.deepEqual(await doneSteps(threadId), ['a:one', 'a:two', 'a:three']);
    assert.equal((await client.runs.list(threadId)).length, 1);
    // Nothing is in flight any more.
    const second = await begin(threadId, 'b', 0, 'reject');
    await client.runs.join(threadId, second.run_id);
    assert.equal((await doneSteps(threadId)).length, 6);
  });

  test('a run that waits for its time counts as in flight for reject', async () => {
    const threadId = randomUUID();
    await client.threads.create({ threadId });
    const delayed = await client.runs.create(threadId, 'steps', {
      input: { name: 'late', stepMs: 0 },
      afterSeconds: 3600,
    });
    assert.equal(delayed.status, 'pending');
    await assert.rejects(begin(threadId, 'b', 0, 'reject'), /HTTP 409/);
    assert.equal((await client.threads.get(threadId)).status, 'busy');
    await client.runs.cancel(threadId, delayed.run_id);
    assert.equal((await client.threads.get(threadId)).status, 'idle');
  });

  test('enqueued runs of a thread run one after the other in the order of their creation', async () => {
    const threadId = randomUUID();
    const runs = [];
    for (const name of ['a', 'b', 'c', 'd']) runs.push(await begin(threadId, name, 10));
    assert.deepEqual(
      (await client.runs.list(threadId)).map((run) => run.run_id),
      runs.map((run) => run.run_id).reverse(),
    );
    await client.runs.join(threadId, runs[3]?.run_id ?? '');
    assert.deepEqual(
      await doneSteps(threadId),
      ['a', 'b', 'c', 'd'].flatMap((name) => ['one', 'two', 'three'].map((step) => `${name}:${step}`)),
    );
  });

  test('interrupt keeps the record and the finished steps of the run that it stops, and the new run builds on them', async () => {
    const threadId = randomUUID();
    const first = await beginHeld(threadId, 'a');
    await first.inSecondStep();
    const second = await begin(threadId, 'b', 0, 'interrupt');
    await first.letGo();
    await client.runs.join(threadId, second.run_id);
    assert.equal((await client.runs.get(threadId, first.run_id)).status, 'interrupted');
    assert.equal((await client.runs.get(threadId, second.run_id)).status, 'success');
    assert.deepEqual(await doneSteps(threadId), ['a:one', 'b:one', 'b:two', 'b:three']);
    const history = await client.threads.getHistory(threadId);
    assert.deepEqual(
      history.map((state) => [state.metadata?.['step'], state.metadata?.['run_id']]),
      [
        [6, second.run_id],
        [5, second.run_id],
        [4, second.run_id],
        [3, second.run_id],
        [2, second.run_id],
        [1, first.run_id],
        [0, first.run_id],
        [-1, first.run_id],
      ],
    );
  });

  test('interrupt also ends the runs that are still waiting, without running them', async () => {
    const threadId = randomUUID();
    const first = await beginHeld(threadId, 'a');
    const waiting = await begin(threadId, 'b', 0);
    const joined = client.runs.join(threadId, waiting.run_id);
    const last = await begin(threadId, 'c', 0, 'interrupt');
    await first.letGo();
    await joined;
    assert.equal((await client.runs.get(threadId, waiting.run_id)).status, 'interrupted');
    await client.runs.join(threadId, last.run_id);
    assert.equal((await client.runs.get(threadId, first.run_id)).status, 'interrupted');
    assert.ok(!(await doneSteps(threadId)).some((step) => step.startsWith('b')));
  });

  test('rollback removes the run that it stops with every checkpoint that it wrote', async () => {
    const threadId = randomUUID();
    const before = await begin(threadId, 'x', 0);
    await client.runs.join(threadId, before.run_id);
    const historyBefore = await client.threads.getHistory(threadId);

    const first = await beginHeld(threadId, 'a');
    await first.inSecondStep();
    const second = await begin(threadId, 'b', 0, 'rollback');
    await first.letGo();
    await client.runs.join(threadId, second.run_id);
    await assert.rejects(client.runs.get(threadId, first.run_id), /HTTP 404/);
    assert.deepEqual(
      (await client.runs.list(threadId)).map((run) => run.run_id),
      [second.run_id, before.run_id],
    );
    assert.deepEqual(await doneSteps(threadId), ['x:one', 'x:two', 'x:three', 'b:one', 'b:two', 'b:three']);
    const history = await client.threads.getHistory(threadId, { limit: 100 });
    assert.deepEqual(history.slice(-historyBefore.length), historyBefore);
    assert.ok(history.every((state) => state.metadata?.['run_id'] !== first.run_id));
  });

  test('a rolled-back run that had resumed an interrupt gives the interrupt back', async () => {
    const approvals = await startServer({ graphs: specs(FIXTURE_GRAPHS, 'pausing') });
    try {
      const own = new Client({ apiUrl: approvals.url, callerOptions: { maxRetries: 0 } });
      const threadId = randomUUID();
      await own.runs.wait(threadId, 'pausing', { input: { text: 'hello' }, ifNotExists: 'create' });
      const before = await own.threads.getState(threadId);
      assert.equal(before.tasks[0]?.interrupts.length, 1);
      const started = join(approvals.folder, 'started');
      const resumed = await own.runs.create(threadId, 'pausing', { command: { resume: { ms: 60_000, started } } });
      while (!existsSync(started)) await new Promise((resolve) => setTimeout(resolve, 10));
      await own.runs.cancel(threadId, resumed.run_id, true, 'rollback');
      assert.deepEqual(await own.threads.getState(threadId), before);
      assert.equal((await own.threads.get(threadId)).status, 'interrupted');
      const answer = (await own.runs.wait(threadId, 'pausing', { command: { resume: 0 } })) as { text: string };
      assert.equal(answer.text, 'hello, resumed');
    } finally {
      await approvals.close();
    }
  });

  test('cancel stops a running run: waited for it answers 204, otherwise 202, and an unknown run is 404', async () => {
    const threadId = randomUUID();
    const run = await beginHeld(threadId, 'a');
    await run.inSecondStep();
    const waited = await fetch(`${server.url}/threads/${threadId}/runs/${run.run_id}/cancel?wait=1`, {
      method: 'POST',
    });
    assert.equal(waited.status, 204);
    await run.letGo();
    assert.equal((await client.runs.get(threadId, run.run_id)).status, 'interrupted');
    const thread = await client.threads.get(threadId);
    assert.equal(thread.status, 'idle');
    assert.deepEqual((thread.values as unknown as Values).name, 'a');

    const again = await begin(threadId, 'b', 60_000);
    const told = await fetch(`${server.url}/threads/${threadId}/runs/${again.run_id}/cancel`, { method: 'POST' });
    assert.equal(told.status, 202);
    assert.equal(await told.text(), '');
    await client.runs.join(threadId, again.run_id);
    assert.equal((await client.runs.get(threadId, again.run_id)).status, 'interrupted');
    // A run that has ended has nothing to stop.
    await client.runs.cancel(threadId, again.run_id, true);
    await assert.rejects(client.runs.cancel(threadId, randomUUID()), /HTTP 404/);
    await assert.rejects(client.runs.cancel(randomUUID(), again.run_id), /HTTP 404/);
  });

  test('cancel with rollback removes the run, and its waiters get the thread as it was', async () => {
    const threadId = randomUUID();
    await client.runs.wait(threadId, 'steps', { input: { name: 'x', stepMs: 0 }, ifNotExists: 'create' });
    const run = await begin(threadId, 'a', 60_000);
    // Its head says that it is attached.
    const joined = await fetch(`${server.url}/threads/${threadId}/runs/${run.run_id}/join`);
    await client.runs.cancel(threadId, run.run_id, true, 'rollback');
    assert.deepEqual(((await joined.json()) as Values).done, ['x:one', 'x:two', 'x:three']);
    await assert.rejects(client.runs.get(threadId, run.run_id), /HTTP 404/);
  });

  test('runs in bulk are cancelled by id and by status', async () => {
    const threadId = randomUUID();
    const runs = [await begin(threadId, 'a', 60_000), await begin(threadId, 'b', 60_000)];
    const byId = await fetch(`${server.url}/runs/cancel`, {
      method: 'POST',
      body: JSON.stringify({ thread_id: threadId, run_ids: runs.map((run) => run.run_id) }),
    });
    assert.equal(byId.status, 204);
    for (const run of runs) {
      await client.runs.join(threadId, run.run_id);
      assert.equal((await client.runs.get(threadId, run.run_id)).status, 'interrupted');
    }
    const other = await begin(threadId, 'c', 60_000);
    const byStatus = await fetch(`${server.url}/runs/cancel`, {
      method: 'POST',
      body: JSON.stringify({ status: 'all' }),
    });
    assert.equal(byStatus.status, 204);
    await client.runs.join(threadId, other.run_id);
    assert.equal((await client.runs.get(threadId, other.run_id)).status, 'interrupted');
  });

  test('many runs created at once on one thread never overlap, whatever their strategies', async () => {
    const threadId = randomUUID();
    await client.threads.create({ threadId });
    const strategies: MultitaskStrategy[] = ['enqueue', 'interrupt', 'rollback', 'reject'];
    const outcomes = await Promise.allSettled(
      Array.from({ length: 24 }, (_, index) =>
        begin(threadId, `r${index}`, index % 3, strategies[index % strategies.length]),
      ),
    );
    const created = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value.run_id] : []));
    for (const outcome of outcomes) if (outcome.status === 'rejected') assert.match(String(outcome.reason), /HTTP 409/);
    // Only `reject` may be turned away.
    assert.ok(created.length >= 18, `${created.length} were created`);
    for (const runId of created)
      await client.runs.join(threadId, runId).catch((error: unknown) => assert.match(String(error), /HTTP 404/));
    const left = await client.runs.list(threadId, { limit: 100 });
    assert.ok(left.some((run) => run.status === 'success'));
    assert.ok(left.every((run) => run.status === 'success' || run.status === 'interrupted'));
    // Each surviving run's steps stand together: no two were under way at once.
    const names = (await doneSteps(threadId)).map((step) => step.split(':')[0]);
    const changes = names.filter((name, index) => name !== names[index - 1]);
    assert.equal(new Set(changes).size, changes.length, names.join(' '));
    // The last run created is one that nothing displaced.
    assert.equal((await client.threads.get(threadId)).status, 'idle');
  });
});
