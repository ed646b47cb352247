import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import { silentLog } from '../../../src/core/log.ts';
import { DAY_MS, MINUTE_MS } from '../../../src/core/units.ts';
import type { JsonText, ThreadTtl } from '../../../src/deploy/store/model.ts';
import type { DeploymentStore } from '../../../src/deploy/store/repositories.ts';
import { createSweeper } from '../../../src/deploy/sweep.ts';
import { describeOnEachEngine } from '../../deploy-engines.ts';
import type { TestDatabase } from '../../deploy-engines.ts';
import { SteppedClock } from '../../steppedclock.ts';

const NOW = Date.UTC(2026, 4, 4, 9);

describeOnEachEngine('what has a time to live', (engine) => {
  let database: TestDatabase;
  let store: DeploymentStore;
  before(async () => {
    database = await engine.create();
    store = await database.open();
  });
  after(async () => {
    await store.stop();
    await database.remove();
  });

  const thread = async (strategy: ThreadTtl['strategy'], ttlMs: number): Promise<string> => {
    const threadId = database.ids.next();
    const ttl = { strategy, ttlMs, expiresMs: NOW + ttlMs };
    await store.threads.create({ threadId, metadata: {}, ifExists: 'raise', ttl, nowMs: NOW });
    return threadId;
  };

  it('goes when it has passed, and not before', async () => {
    const clock = new SteppedClock(NOW);
    const early = await thread('delete', 10 * MINUTE_MS);
    const late = await thread('delete', DAY_MS);
    const kept = await thread('keep_latest', 10 * MINUTE_MS);
    const pruned: string[] = [];
    let swept = (): void => undefined;
    const sweeper = createSweeper({
      store,
      deleteThread: async (threadId) => (await store.threads.delete(threadId)).kind === 'deleted',
      pruneThread: (threadId) => {
        pruned.push(threadId);
        return Promise.resolve(true);
      },
      intervalMs: 5 * MINUTE_MS,
      threadCount: 100,
      clock: {
        nowMs: () => clock.nowMs(),
        sleep: (ms, signal) => {
          swept();
          return clock.sleep(ms, signal);
        },
      },
      log: silentLog,
    });
    const sweep = async (ms: number): Promise<void> => {
      const done = new Promise<void>((resolve) => (swept = resolve));
      clock.advance(ms);
      await done;
    };
    sweeper.start();
    await sweep(5 * MINUTE_MS);
    assert.ok(await store.threads.get(early));
    await sweep(5 * MINUTE_MS);
    assert.equal(await store.threads.get(early), null);
    assert.ok(await store.threads.get(late));
    assert.deepEqual(pruned, [kept]);
    await sweep(5 * MINUTE_MS);
    assert.deepEqual(pruned, [kept], 'its next term has begun');
    await sweeper.stop();
  });

  it('does not take a thread on which a run is in flight', async () => {
    const threadId = await thread('delete', MINUTE_MS);
    assert.equal(
      (await store.threads.expired(NOW + MINUTE_MS, 10)).some((row) => row.threadId === threadId),
      true,
    );
    await store.assistants.ensureDefaults([
      {
        assistantId: threadId,
        graphId: 'agent',
        name: 'agent',
        description: null,
        config: {},
        context: {},
        metadata: {},
        ifExists: 'do_nothing',
        nowMs: NOW,
      },
    ]);
    const creation = await store.runs.create({
      runId: database.ids.next(),
      assistantId: threadId,
      threadId,
      newThreadId: database.ids.next(),
      ifThreadMissing: 'reject',
      temporary: false,
      resumable: false,
      multitask: 'enqueue',
      notBeforeMs: NOW,
      webhook: null,
      config: {},
      context: {},
      metadata: {},
      restJson: '{}' as JsonText,
      claim: null,
      nowMs: NOW,
    });
    assert.equal(creation.kind, 'created');
    assert.equal(
      (await store.threads.expired(NOW + MINUTE_MS, 10)).some((row) => row.threadId === threadId),
      false,
    );
  });

  it('is not found in the store once it has passed, unless a read has put that off', async () => {
    const { items } = store.state;
    const put = (key: string) =>
      items.put({ namespace: ['ttl'], key, valueJson: '{"a":1}' as JsonText, ttlMs: 10 * MINUTE_MS }, NOW);
    await put('read');
    await put('unread');
    assert.ok(await items.get(['ttl'], 'read', true, NOW + 9 * MINUTE_MS));
    assert.ok(await items.get(['ttl'], 'unread', false, NOW + 9 * MINUTE_MS));
    const search = { namespacePrefix: ['ttl'], filter: null, query: null };
    const found = await items.search(search, { limit: 10, offset: 0 }, NOW + 11 * MINUTE_MS);
    assert.deepEqual(
      found.map(({ item }) => item.key),
      ['read'],
    );
    assert.equal(await items.get(['ttl'], 'unread', true, NOW + 11 * MINUTE_MS), null);
    assert.equal(await items.deleteExpired(NOW + 11 * MINUTE_MS), 1);
    assert.equal(await items.deleteExpired(NOW + 20 * MINUTE_MS), 1);
  });
});
