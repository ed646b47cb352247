/** What the process owes to others when it is killed, on both engines: webhooks still go out, crons fire once. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, it } from 'node:test';
import { defaultAssistantId } from '../../src/deploy/ids.ts';
import { journalOf, startChild, type DeploymentChild } from '../deploy-child.ts';
import { describeOnEachEngine, type TestDatabase } from '../deploy-engines.ts';
import { startReceiver } from '../webhook-receiver.ts';
import type { WebhookReceiver } from '../webhook-receiver.ts';

const INPUT = { name: 'a', stepMs: 0 };

async function run(url: string, webhook: string): Promise<void> {
  const response = await fetch(`${url}/runs/wait`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ assistant_id: 'steps', input: INPUT, webhook }),
  });
  assert.equal(response.status, 200, await response.text());
}

describeOnEachEngine('a process that is killed while it owes', (engine) => {
  let folder: string;
  let database: TestDatabase;
  let receiver: WebhookReceiver;
  let running: DeploymentChild | null = null;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'deploy-callback-'));
    database = await engine.create();
    receiver = await startReceiver();
  });
  afterEach(async () => {
    await running?.kill();
    running = null;
    await receiver.close();
    await database.remove();
    await rm(folder, { recursive: true, force: true });
  });

  async function start(): Promise<DeploymentChild> {
    running = await startChild(folder, database.location);
    return running;
  }

  /** One that was due when this year began. */
  async function createOverdueCron(payload: Record<string, unknown>): Promise<void> {
    const store = await database.open();
    const lastYearMs = Date.UTC(new Date().getUTCFullYear() - 1, 5, 1);
    const assistantId = defaultAssistantId('steps');
    const base = { graphId: 'steps', name: 'steps', description: null, config: {}, context: {}, metadata: {} };
    await store.assistants.ensureDefaults([{ ...base, assistantId, ifExists: 'do_nothing', nowMs: lastYearMs }]);
    await store.crons.create({
      cronId: database.ids.next(),
      assistantId,
      threadId: null,
      schedule: '0 0 1 1 *',
      timezone: null,
      enabled: true,
      onRunCompleted: 'delete',
      endMs: null,
      metadata: {},
      payload: { assistant_id: 'steps', ...payload },
      nowMs: lastYearMs,
    });
    await store.stop();
  }

  /** Of the only cron, after the end of the process: a file of SQLite has one owner. */
  async function nextRunMs(): Promise<number | null | undefined> {
    await running?.kill();
    const store = await database.open();
    const { rows } = await store.crons.search({}, { limit: 10, offset: 0 }, { by: 'cronId', order: 'asc' });
    await store.stop();
    return rows[0]?.nextRunMs;
  }

  it('a webhook that was on its way when the process was killed goes out again after the restart, under the same id', async () => {
    receiver.script(() => undefined);
    await run((await start()).url, `${receiver.url}/late`);
    await receiver.count(1);
    await running?.kill();
    await start();
    await receiver.count(2);
    const [first, second] = receiver.received;
    assert.equal(first?.headers['webhook-id'], second?.headers['webhook-id']);
    assert.equal(first?.json['run_id'], second?.json['run_id']);
  });

  it('a cron that was due while nothing ran fires once at the start, and not again after a kill right then', async () => {
    await createOverdueCron({ input: INPUT, webhook: `${receiver.url}/cron` });

    await start();
    await receiver.count(1);
    await running?.kill();
    const { url } = await start();
    // By the time that this run has called back, a second firing would have as well.
    await run(url, `${receiver.url}/run`);
    while (!receiver.received.some((call) => call.path === '/run')) await receiver.count(receiver.received.length + 1);
    const firings = receiver.received.filter((call) => call.path === '/cron');
    assert.equal(new Set(firings.map((call) => call.json['run_id'])).size, 1);
    assert.equal(await nextRunMs(), Date.UTC(new Date().getUTCFullYear() + 1, 0, 1));
  });

  it('the run of a cron whose process was killed in the middle of it is the one that goes on', async () => {
    const journal = join(folder, 'journal.txt');
    const until = join(folder, 'go-on');
    const input = { name: 'a', journal, hold: { step: 'two', until } };
    await createOverdueCron({ input, durability: 'sync', webhook: `${receiver.url}/cron` });
    await start();
    await journalOf(journal, 2);
    await running?.kill();
    await writeFile(until, '');
    const { url } = await start();
    await receiver.count(1);
    await run(url, `${receiver.url}/run`);
    while (!receiver.received.some((call) => call.path === '/run')) await receiver.count(receiver.received.length + 1);
    // A second firing would have written from the start again.
    assert.deepEqual(await journalOf(journal, 4), ['a:one', 'a:two', 'a:two', 'a:three']);
    assert.equal(receiver.received.find((call) => call.path === '/cron')?.json['status'], 'success');
    assert.equal(await nextRunMs(), Date.UTC(new Date().getUTCFullYear() + 1, 0, 1));
  });
});
