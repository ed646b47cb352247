/** What becomes of runs when their process is killed or stopped, on both engines: nothing is lost, nothing done is done again. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, it } from 'node:test';
import { Client } from '@langchain/langgraph-sdk';
import { journalOf, startChild, type DeploymentChild } from '../deploy-child.ts';
import { describeOnEachEngine, type TestDatabase } from '../deploy-engines.ts';
import { readEvents } from '../event-stream.ts';

interface Server extends DeploymentChild {
  client: Client;
}

describeOnEachEngine('a process that is killed or stopped', (engine) => {
  let folder: string;
  let database: TestDatabase;
  let running: DeploymentChild | null = null;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'deploy-restart-'));
    database = await engine.create();
  });
  afterEach(async () => {
    await running?.kill();
    running = null;
    await database.remove();
    await rm(folder, { recursive: true, force: true });
  });

  async function start(): Promise<Server> {
    const child = await startChild(folder, database.location);
    running = child;
    return { ...child, client: new Client({ apiUrl: child.url, callerOptions: { maxRetries: 0 } }) };
  }

  it('after kill -9 in mid-run the run goes on from its last checkpoint, and those that waited start', async () => {
    const journal = join(folder, 'journal.txt');
    const threadId = randomUUID();
    const until = join(folder, 'go-on');
    const first = await start();
    const create = (name: string) =>
      first.client.runs.create(threadId, 'steps', {
        input: { name, journal, hold: { step: 'two', until } },
        ifNotExists: 'create',
        durability: 'sync',
        streamResumable: true,
        streamMode: 'updates',
      });
    const interruptedRun = await create('a');
    const waitingRun = await create('b');
    await journalOf(journal, 2);
    await first.kill();
    await writeFile(until, '');

    const second = await start();
    await second.client.runs.join(threadId, waitingRun.run_id);
    assert.equal((await second.client.runs.get(threadId, interruptedRun.run_id)).status, 'success');
    assert.equal((await second.client.runs.get(threadId, waitingRun.run_id)).status, 'success');
    const state = await second.client.threads.getState<{ done: string[] }>(threadId);
    assert.deepEqual(state.values.done, ['a:one', 'a:two', 'a:three', 'b:one', 'b:two', 'b:three']);
    // The step that was under way is repeated, the one before is not.
    assert.deepEqual(await journalOf(journal, 7), ['a:one', 'a:two', 'a:two', 'a:three', 'b:one', 'b:two', 'b:three']);

    // The stream that began before the crash can be read to its end, in order.
    const response = await fetch(`${second.url}/threads/${threadId}/runs/${interruptedRun.run_id}/stream`, {
      headers: { 'last-event-id': '-1' },
    });
    const events = await readEvents(response);
    const seqs = events.map((event) => Number(event.id.split('-')[1]));
    assert.deepEqual(
      seqs,
      seqs.slice().sort((a, b) => a - b),
    );
    assert.equal(new Set(seqs).size, seqs.length);
    assert.deepEqual(
      events.filter((event) => event.event === 'metadata').map((event) => (event.data as { attempt: number }).attempt),
      [1, 2],
    );
    assert.deepEqual(
      events.filter((event) => event.event === 'updates').map((event) => Object.keys(event.data as object)[0]),
      ['one', 'two', 'three'],
    );
  });

  it('a run that takes its server down three times ends as an error', async () => {
    const journal = join(folder, 'journal.txt');
    const threadId = randomUUID();
    let server = await start();
    const run = await server.client.runs.create(threadId, 'misbehave', {
      input: { how: 'wait', forMs: 60_000, journal },
      ifNotExists: 'create',
    });
    for (let attempt = 1; attempt <= 3; attempt++) {
      await journalOf(journal, attempt);
      await server.kill();
      server = await start();
    }
    const ended = (await server.client.runs.join(threadId, run.run_id)) as unknown as { __error__: { error: string } };
    assert.equal(ended.__error__.error, 'WorkerLost');
    assert.equal((await server.client.runs.get(threadId, run.run_id)).status, 'error');
    assert.equal((await server.client.threads.get(threadId)).status, 'error');
  });

  it('a stop gives a run back to the queue, uncounted, and the next start goes on with it', async () => {
    const journal = join(folder, 'journal.txt');
    const until = join(folder, 'go-on');
    const threadId = randomUUID();
    const first = await start();
    const run = await first.client.runs.create(threadId, 'steps', {
      input: { name: 'a', journal, hold: { step: 'two', until } },
      ifNotExists: 'create',
    });
    const joined = first.client.runs.join(threadId, run.run_id).catch((error: unknown) => error);
    await journalOf(journal, 2);
    await first.stop();
    // Whoever waited sees a broken connection, not an answer.
    assert.ok((await joined) instanceof Error);
    await writeFile(until, '');
    const second = await start();
    const ended = (await second.client.runs.join(threadId, run.run_id)) as unknown as { done: string[] };
    assert.deepEqual(ended.done, ['a:one', 'a:two', 'a:three']);
    assert.equal((await second.client.runs.get(threadId, run.run_id)).status, 'success');
  });

  it('a run that was waiting for its time keeps it across a restart', async () => {
    const threadId = randomUUID();
    const first = await start();
    const createdMs = Date.now();
    const run = await first.client.runs.create(threadId, 'steps', {
      input: { name: 'late', stepMs: 0 },
      ifNotExists: 'create',
      afterSeconds: 4,
    });
    await first.kill();
    const second = await start();
    const early = await second.client.runs.get(threadId, run.run_id);
    if (Date.now() - createdMs < 4000) assert.equal(early.status, 'pending');
    await second.client.runs.join(threadId, run.run_id);
    assert.ok(Date.now() - createdMs >= 4000);
    assert.equal((await second.client.runs.get(threadId, run.run_id)).status, 'success');
  });
});
