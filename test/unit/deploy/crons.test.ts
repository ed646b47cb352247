import assert from 'node:assert/strict';
import { after, afterEach, before, it } from 'node:test';
import { MINUTE_MS } from '../../../src/core/units.ts';
import { silentLog } from '../../../src/core/log.ts';
import { createCronScheduler } from '../../../src/deploy/crons.ts';
import { defaultAssistantId } from '../../../src/deploy/ids.ts';
import type { CronFiring, DeploymentStore, NewCron } from '../../../src/deploy/store/repositories.ts';
import { describeOnEachEngine } from '../../deploy-engines.ts';
import type { TestDatabase } from '../../deploy-engines.ts';
import { SteppedClock } from '../../steppedclock.ts';

const NOW = Date.UTC(2026, 4, 4, 9);
const ASSISTANT = defaultAssistantId('agent');

describeOnEachEngine(
  'crons',
  (engine) => {
    let database: TestDatabase;
    let store: DeploymentStore;

    before(async () => {
      database = await engine.create();
      store = await database.open();
      await store.assistants.ensureDefaults([
        {
          assistantId: ASSISTANT,
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
    });
    after(async () => {
      await store.stop();
      await database.remove();
    });
    afterEach(async () => {
      const { rows } = await store.crons.search({}, { limit: 1000, offset: 0 }, { by: 'cronId', order: 'asc' });
      for (const cron of rows) await store.crons.delete(cron.cronId);
    });

    const make = async (change: Partial<NewCron> = {}) => {
      const made = await store.crons.create({
        cronId: database.ids.next(),
        assistantId: ASSISTANT,
        threadId: null,
        schedule: '*/5 * * * *',
        timezone: null,
        enabled: true,
        onRunCompleted: 'delete',
        endMs: null,
        metadata: { owner: 'ops' },
        payload: { assistant_id: 'agent', input: { n: 1 }, webhook: 'https://example.com/hook' },
        nowMs: NOW,
        ...change,
      });
      assert.equal(made.kind, 'created');
      return made.cron;
    };
    const created = (firing: CronFiring | undefined) => {
      assert.equal(firing?.creation?.kind, 'created');
      return firing.creation.run;
    };

    it('create a run with the same input on a new thread each time, marked with the cron', async () => {
      const cron = await make();
      assert.deepEqual((await store.crons.fireDue(NOW + 4 * MINUTE_MS, 10)).fired, []);
      const first = await store.crons.fireDue(NOW + 5 * MINUTE_MS, 10);
      const run = created(first.fired[0]);
      assert.equal(first.nextDueMs, NOW + 10 * MINUTE_MS);
      assert.deepEqual(run.metadata, { owner: 'ops', cron_id: cron.cronId });
      assert.deepEqual((JSON.parse(run.kwargsJson) as { input: unknown }).input, { n: 1 });
      assert.equal(run.webhook, 'https://example.com/hook');
      assert.equal(run.temporary, true);
      const second = created((await store.crons.fireDue(NOW + 10 * MINUTE_MS, 10)).fired[0]);
      assert.notEqual(second.threadId, run.threadId);
    });

    it('fire once after a downtime, then on time again', async () => {
      await make();
      const late = await store.crons.fireDue(NOW + 62 * MINUTE_MS, 10);
      assert.equal(late.fired.length, 1);
      assert.equal(late.nextDueMs, NOW + 65 * MINUTE_MS);
    });

    it('are never fired twice for one tick by several schedulers at once', async () => {
      await Promise.all(Array.from({ length: 10 }, () => make()));
      const rounds = await Promise.all(Array.from({ length: 4 }, () => store.crons.fireDue(NOW + 5 * MINUTE_MS, 50)));
      const fired = rounds.flatMap((round) => round.fired.map((firing) => firing.cron.cronId));
      assert.equal(fired.length, 10);
      assert.equal(new Set(fired).size, 10);
    });

    it('on a thread queue their runs there, and keep the thread', async () => {
      const threadId = database.ids.next();
      await store.threads.create({ threadId, metadata: {}, ifExists: 'raise', ttl: null, nowMs: NOW });
      await make({ threadId });
      const run = created((await store.crons.fireDue(NOW + 5 * MINUTE_MS, 10)).fired[0]);
      assert.equal(run.threadId, threadId);
      assert.equal(run.temporary, false);
      const next = created((await store.crons.fireDue(NOW + 10 * MINUTE_MS, 10)).fired[0]);
      assert.equal(next.status, 'pending');
      await store.threads.delete(threadId);
      assert.equal((await store.crons.fireDue(NOW + 20 * MINUTE_MS, 10)).fired.length, 0);
    });

    it('do not fire while disabled or after their end, and stay to be seen', async () => {
      const disabled = await make({ enabled: false });
      const ending = await make({ endMs: NOW + 7 * MINUTE_MS });
      assert.equal(disabled.nextRunMs, null);
      assert.equal((await store.crons.fireDue(NOW + 5 * MINUTE_MS, 10)).fired.length, 1);
      assert.equal((await store.crons.get(ending.cronId))?.nextRunMs, null);
      assert.equal((await store.crons.fireDue(NOW + 60 * MINUTE_MS, 10)).fired.length, 0);
      const enabled = await store.crons.patch(disabled.cronId, { enabled: true }, NOW + 61 * MINUTE_MS);
      assert.equal(enabled?.nextRunMs, NOW + 65 * MINUTE_MS);
      const extended = await store.crons.patch(ending.cronId, { endMs: null }, NOW + 61 * MINUTE_MS);
      assert.equal(extended?.nextRunMs, NOW + 65 * MINUTE_MS);
    });

    it('that expired while nothing ran do not catch up', async () => {
      await make({ endMs: NOW + 4 * MINUTE_MS });
      assert.equal((await store.crons.fireDue(NOW + 60 * MINUTE_MS, 10)).fired.length, 0);
    });

    it('go with their assistant', async () => {
      const assistantId = database.ids.next();
      await store.assistants.create({
        assistantId,
        graphId: 'agent',
        name: 'x',
        description: null,
        config: {},
        context: {},
        metadata: {},
        ifExists: 'raise',
        nowMs: NOW,
      });
      const cron = await make({ assistantId });
      assert.equal(await store.assistants.delete(assistantId), true);
      assert.equal(await store.crons.get(cron.cronId), null);
    });

    it('are known again after a restart, neither lost nor doubled', async () => {
      await make();
      assert.equal((await store.crons.fireDue(NOW + 5 * MINUTE_MS, 10)).fired.length, 1);
      await store.stop();
      store = await database.open();
      assert.equal((await store.crons.fireDue(NOW + 5 * MINUTE_MS, 10)).fired.length, 0);
      assert.equal((await store.crons.fireDue(NOW + 10 * MINUTE_MS, 10)).fired.length, 1);
    });

    it('are fired by the scheduler at their time, across a leap day, without polling', async () => {
      const clock = new SteppedClock(Date.UTC(2028, 1, 28, 23, 59, 30));
      const fired: string[] = [];
      let onFired = (): void => undefined;
      const scheduler = createCronScheduler({
        crons: store.crons,
        onFired: (firings) => {
          fired.push(...firings.map(() => new Date(clock.nowMs()).toISOString()));
          assert.equal(firings[0]?.creation?.kind, 'created');
          onFired();
        },
        clock,
        log: silentLog,
      });
      scheduler.start();
      await clock.asleep();
      await make({ schedule: '0 0 29 2 *', nowMs: clock.nowMs() });
      const next = new Promise<void>((resolve) => (onFired = resolve));
      scheduler.wake();
      // The sleep that wake() cut is replaced by one until the due time.
      while (clock.nextMs !== 30_000) await new Promise((resolve) => setImmediate(resolve));
      clock.advance(30_000);
      await next;
      assert.deepEqual(fired, ['2028-02-29T00:00:00.000Z']);
      await scheduler.stop();
      await scheduler.stop();
    });
  },
  { alsoThreaded: true },
);
