/** Scripted trouble and restricted keys: what tests of uploaders rely on. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { type BackendClient, createBackendClient } from '../../src/backend/client.ts';
import { type RunningBackend, startBackend } from '../../src/backend/owner.ts';
import { makeRun } from '../backend-runs.ts';

let backend: RunningBackend;
let client: BackendClient;

before(async () => {
  backend = await startBackend({ faults: true });
  client = createBackendClient(backend.url);
});
afterEach(() => client.clearFaults());
after(() => backend.stop());

test('A status with Retry-After for the next two uploads, which store nothing.', async () => {
  await client.addFault({ status: 503, retry_after: '7', count: 2 });
  const run = makeRun();
  for (const remaining of [1, 0]) {
    const answer = await client.uploadRuns([run]);
    assert.equal(answer.status, 503);
    assert.equal(answer.headers.get('retry-after'), '7');
    assert.deepEqual(
      (await client.faults()).map(({ remaining_count }) => remaining_count),
      [remaining],
    );
  }
  assert.equal((await client.uploadRuns([run])).status, 202, 'the third is taken, so the first two were not stored');
});

test('A status after the fact: the runs are stored, the answer says otherwise.', async () => {
  await client.addFault({ status: 504, when: 'after', count: 1 });
  const run = makeRun();
  assert.equal((await client.uploadRuns([run])).status, 504);
  assert.equal((await client.run(run.id))?.id, run.id);
  assert.equal((await client.uploadRuns([run])).status, 409);
});

test('A reset before or after: the uploader sees a broken connection either way.', async () => {
  await client.addFault({ reset: true, count: 1 });
  await client.addFault({ reset: true, when: 'after', count: 1 });
  const [lost, stored] = [makeRun(), makeRun()];
  await assert.rejects(client.uploadRuns([lost]));
  await assert.rejects(client.uploadRuns([stored]));
  assert.equal(await client.run(lost.id), null);
  assert.equal((await client.run(stored.id))?.id, stored.id);
});

test('A delay holds the answer back, and nothing else.', async () => {
  await client.addFault({ delay_ms: 150, count: 1 });
  const from = performance.now();
  const run = makeRun();
  assert.equal((await client.uploadRuns([run])).status, 202);
  assert.ok(performance.now() - from >= 149);
  assert.equal((await client.run(run.id))?.id, run.id);
});

test('Rules for one key leave the others alone; the first that matches wins; without a count they stay.', async () => {
  await client.addFault({ key: 'noisy', status: 429, body: 'slow down' });
  await client.addFault({ status: 500, count: 1 });
  for (let i = 0; i < 3; i++) {
    const answer = await client.uploadRuns([makeRun()], { key: 'noisy' });
    assert.deepEqual([answer.status, answer.text], [429, 'slow down']);
  }
  assert.equal((await client.uploadRuns([makeRun()], { key: 'calm' })).status, 500);
  assert.equal((await client.uploadRuns([makeRun()], { key: 'calm' })).status, 202);
  const states = await client.faults();
  assert.deepEqual(states[0], { status: 429, body: 'slow down', hit_count: 3, remaining_count: null });
  await client.clearFaults();
  assert.equal((await client.uploadRuns([makeRun()], { key: 'noisy' })).status, 202);
});

test('The log of uploads marks what was scripted.', async () => {
  await client.addFault({ status: 503, count: 1 });
  await client.uploadRuns([makeRun()]);
  const [note] = await client.uploads();
  assert.deepEqual([note?.status, note?.fault], [503, true]);
});

test('Rules that make no sense are refused.', async () => {
  for (const rule of [
    { statsu: 500 },
    { status: '500' },
    { status: 99 },
    { when: 'later' },
    { count: 0 },
    { delay_ms: -1 },
    { retry_after: 'a\r\nb' },
  ]) {
    await assert.rejects(client.addFault(rule as object), /400/, JSON.stringify(rule));
  }
  assert.deepEqual(await client.faults(), []);
});

test('Keys can be restricted: 401, 403, and tenants with names.', async () => {
  const own = await startBackend({
    keys: [
      { key: 'good', tenant: 'acme' },
      { key: 'old', refuse: 'unauthenticated' },
      { key: 'poor', refuse: 'forbidden' },
    ],
    unknownKey: 'forbidden',
  });
  const restricted = createBackendClient(own.url);
  const status = async (key: string): Promise<number> => (await restricted.uploadRuns([makeRun()], { key })).status;
  assert.deepEqual(
    [await status('good'), await status('old'), await status('poor'), await status('unknown'), await status('')],
    [202, 401, 403, 403, 401],
  );
  assert.deepEqual(
    (await restricted.projects()).map(({ tenant }) => tenant),
    ['acme'],
  );
  await own.stop();
});

test('A delay does not hold up the stop.', async () => {
  const own = await startBackend({ faults: true });
  const slow = createBackendClient(own.url);
  await slow.addFault({ delay_ms: 60_000 });
  const answer = slow.uploadRuns([makeRun()]);
  // The rule counts the upload when its body is here, that is, when the delay has begun.
  while ((await slow.faults())[0]?.hit_count === 0);
  const from = performance.now();
  await own.stop(120_000);
  assert.ok(performance.now() - from < 50_000);
  assert.equal((await answer).status, 202);
});

test('Nothing of a key can be read back.', async () => {
  await client.uploadRuns([makeRun()], { key: 'very-secret-key' });
  await client.addFault({ key: 'very-secret-key', status: 500 });
  for (const path of ['runs', 'traces', 'projects', 'uploads', 'stats', 'faults']) {
    assert.doesNotMatch(await (await fetch(`${backend.url}/api/${path}`)).text(), /very-secret/, path);
  }
});
