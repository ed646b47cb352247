import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@langchain/langgraph-sdk';
import { FIXTURE_GRAPHS, specs, startServer, type TestServer } from '../deploy-server.ts';

let server: TestServer;
let client: Client;

before(async () => {
  server = await startServer({
    graphs: specs(FIXTURE_GRAPHS, 'misbehave', 'steps'),
    // A machine that is busy with other things may hold a thread up for many seconds without meaning harm.
    limits: { abortGraceMs: 1000, maxHeapMb: 96 },
  });
  client = clientOf(server);
});
after(() => server.close());

function clientOf({ url }: TestServer): Client {
  return new Client({ apiUrl: url, callerOptions: { maxRetries: 0 } });
}

function journalFile(): string {
  return join(server.folder, `${randomUUID()}.txt`);
}

function linesOf(file: string): string[] {
  return readFileSync(file, 'utf8').trim().split('\n');
}

for (const how of ['exit', 'spin', 'leak', 'reject', 'throw-later'] as const) {
  test(`a graph that does "${how}" costs its worker, is tried three times from its last checkpoint, and ends as an error`, async (t) => {
    if (how === 'spin') {
      const impatient = await startServer({
        graphs: specs(FIXTURE_GRAPHS, 'misbehave'),
        limits: { stallTimeoutMs: 10_000, maxHeapMb: 96 },
      });
      t.after(() => impatient.close());
      return costsItsWorker(how, clientOf(impatient));
    }
    return costsItsWorker(how, client);
  });
}

async function costsItsWorker(how: string, client: Client): Promise<void> {
  const threadId = randomUUID();
  const journal = journalFile();
  const result = await client.runs.wait(threadId, 'misbehave', {
    input: { how, journal },
    ifNotExists: 'create',
    raiseError: false,
    // Otherwise the last step may still be on its way to the disk when the thread dies.
    durability: 'sync',
  });
  const error = (result as { __error__?: { error: string; message: string } }).__error__;
  assert.equal(error?.error, 'WorkerLost', JSON.stringify(result));
  assert.deepEqual(linesOf(journal), [how, how, how]);
  const [run] = await client.runs.list(threadId);
  assert.equal(run?.status, 'error');
  const history = await client.threads.getHistory(threadId);
  // The step before was done once: three attempts share its checkpoint.
  assert.deepEqual(
    history.map((state) => state.metadata?.['step']),
    [1, 0, -1],
  );
  assert.deepEqual(await client.runs.wait(null, 'misbehave', { input: { how: 'nothing' } }), {
    how: 'nothing',
    prepared: true,
    result: 'survived nothing',
  });
}

test('runs that share a worker with one that ends it go on from their checkpoint and succeed', async () => {
  const journal = journalFile();
  const neighbours = ['a', 'b', 'c'].map((name) =>
    client.runs.wait(null, 'steps', { input: { name, stepMs: 300, journal } }),
  );
  const culprit = client.runs.wait(null, 'misbehave', { input: { how: 'throw-later' }, raiseError: false });
  for (const [index, result] of (await Promise.all(neighbours)).entries()) {
    const name = 'abc'[index] ?? '';
    assert.deepEqual((result as { done: string[] }).done, [`${name}:one`, `${name}:two`, `${name}:three`]);
  }
  assert.ok('__error__' in ((await culprit) as object));
});

test('a run that goes on after it was told to stop costs its worker but not its neighbours, which are not counted as failed', async () => {
  const threadId = randomUUID();
  const journal = journalFile();
  const neighbour = client.runs.wait(null, 'steps', { input: { name: 'n', stepMs: 400 } });
  const stuck = await client.runs.create(threadId, 'misbehave', {
    input: { how: 'spin', forMs: 60_000, journal },
    ifNotExists: 'create',
  });
  await until(() => fileHasLine(journal));
  await client.runs.cancel(threadId, stuck.run_id, true);
  assert.equal((await client.runs.get(threadId, stuck.run_id)).status, 'interrupted');
  assert.deepEqual(((await neighbour) as { done: string[] }).done, ['n:one', 'n:two', 'n:three']);
});

test('a run that takes longer than the limit ends as timeout and says so', async () => {
  const impatient = await startServer({ graphs: specs(FIXTURE_GRAPHS, 'misbehave'), limits: { runTimeoutMs: 1000 } });
  try {
    const own = new Client({ apiUrl: impatient.url, callerOptions: { maxRetries: 0 } });
    const threadId = randomUUID();
    const result = await own.runs.wait(threadId, 'misbehave', {
      input: { how: 'hang' },
      ifNotExists: 'create',
      raiseError: false,
    });
    assert.equal((result as { __error__?: { error: string } }).__error__?.error, 'TimeoutError');
    const [run] = await own.runs.list(threadId);
    assert.equal(run?.status, 'timeout');
  } finally {
    await impatient.close();
  }
});

test("a thread's state can be read while the only worker is computing", async () => {
  const patient = await startServer({
    graphs: specs(FIXTURE_GRAPHS, 'steps', 'misbehave'),
    limits: { stallTimeoutMs: 300_000 },
  });
  try {
    const own = new Client({ apiUrl: patient.url, callerOptions: { maxRetries: 0 } });
    const threadId = randomUUID();
    await own.runs.wait(threadId, 'steps', { input: { name: 's', stepMs: 0 }, ifNotExists: 'create' });
    const journal = join(patient.folder, 'journal.txt');
    // Longer than anybody waits for an answer.
    const spinning = await own.runs.create(null, 'misbehave', { input: { how: 'spin', forMs: 600_000, journal } });
    await until(() => fileHasLine(journal));
    const state = await own.threads.getState<{ done: string[] }>(threadId);
    assert.deepEqual(state.values.done, ['s:one', 's:two', 's:three']);
    assert.equal((await own.runs.get(spinning.thread_id, spinning.run_id)).status, 'running');
    assert.deepEqual(linesOf(journal), ['spin'], 'it is computing still, in its first attempt');
    await own.runs.cancel(spinning.thread_id, spinning.run_id, true);
  } finally {
    await patient.close();
  }
});

/** A worker's start takes seconds on a machine that is busy. */
const PATIENCE_MS = 60_000;

async function until(holds: () => boolean): Promise<void> {
  for (const deadline = Date.now() + PATIENCE_MS; !holds();) {
    assert.ok(Date.now() < deadline, 'it never came');
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function fileHasLine(file: string): boolean {
  try {
    return readFileSync(file, 'utf8') !== '';
  } catch {
    return false;
  }
}
