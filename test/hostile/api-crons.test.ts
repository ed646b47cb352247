/** Crons against time and against each other: of group 16 of the cases (cases.test.ts). */
import assert from 'node:assert/strict';
import { after, afterEach, before, it } from 'node:test';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../src/core/units.ts';
import { defaultAssistantId } from '../../src/deploy/ids.ts';
import { scheduleIssue } from '../../src/deploy/schedule.ts';
import type { DeploymentStore, NewCron } from '../../src/deploy/store/repositories.ts';
import { describeOnEachEngine } from '../deploy-engines.ts';
import type { TestDatabase } from '../deploy-engines.ts';
import { EXAMPLES, specs } from '../deploy-server.ts';
import { SteppedClock } from '../steppedclock.ts';
import { startApi, until } from './apiserver.ts';

const NOW = Date.UTC(2026, 4, 4, 9);
const ASSISTANT = defaultAssistantId('agent');

describeOnEachEngine('crons under attack', (engine) => {
  let database: TestDatabase;
  let store: DeploymentStore;
  /** On the same data, where that can be had. */
  let other: DeploymentStore;

  before(async () => {
    database = await engine.create();
    store = await database.open();
    other = engine.name === 'postgres' ? await database.open({ instanceId: 'there' }) : store;
    const base = { graphId: 'agent', name: 'agent', description: null, config: {}, context: {}, metadata: {} };
    await store.assistants.ensureDefaults([{ ...base, assistantId: ASSISTANT, ifExists: 'do_nothing', nowMs: NOW }]);
  });
  after(async () => {
    await store.stop();
    if (other !== store) await other.stop();
    await database.remove();
  });
  afterEach(async () => {
    const { rows } = await store.crons.search({}, { limit: 1000, offset: 0 }, { by: 'cronId', order: 'asc' });
    for (const cron of rows) await store.crons.delete(cron.cronId);
  });

  const make = async (change: Partial<NewCron> = {}): Promise<string> => {
    const made = await store.crons.create({
      cronId: database.ids.next(),
      assistantId: ASSISTANT,
      threadId: null,
      schedule: '*/5 * * * *',
      timezone: null,
      enabled: true,
      onRunCompleted: 'delete',
      endMs: null,
      metadata: {},
      payload: { assistant_id: 'agent', input: { n: 1 } },
      nowMs: NOW,
      ...change,
    });
    assert.equal(made.kind, 'created');
    return made.cron.cronId;
  };
  /** The moments at which a scheduler that looks every `stepMs` finds it due. */
  const firings = async (fromMs: number, untilMs: number, stepMs: number): Promise<string[]> => {
    const found: string[] = [];
    for (let nowMs = fromMs; nowMs <= untilMs; nowMs += stepMs) {
      for (const { creation } of (await store.crons.fireDue(nowMs, 10)).fired) {
        assert.equal(creation?.kind, 'created');
        found.push(new Date(nowMs).toISOString().slice(0, 16));
      }
    }
    return found;
  };

  it('fire once a day across both changes of the clocks, also when the hour is missing or comes twice', async () => {
    const spring = Date.UTC(2026, 2, 28, 12);
    await make({ schedule: '30 2 * * *', timezone: 'Europe/Berlin', nowMs: spring });
    assert.deepEqual(await firings(spring, spring + 3 * DAY_MS, 30 * MINUTE_MS), [
      '2026-03-29T01:00',
      '2026-03-30T00:30',
      '2026-03-31T00:30',
    ]);
    const autumn = Date.UTC(2026, 9, 24, 12);
    // What lies between is one catch-up.
    assert.deepEqual(await firings(autumn, autumn, 1), ['2026-10-24T12:00']);
    assert.deepEqual(await firings(autumn, autumn + 3 * DAY_MS, 30 * MINUTE_MS), [
      '2026-10-25T00:30',
      '2026-10-26T01:30',
      '2026-10-27T01:30',
    ]);
  });

  it('fire on the leap day alone, year after year', async () => {
    const from = Date.UTC(2027, 11, 31);
    await make({ schedule: '0 12 29 2 *', timezone: 'America/New_York', nowMs: from });
    const days = await firings(from, Date.UTC(2033, 0, 1), 17 * HOUR_MS);
    assert.deepEqual(
      days.map((day) => day.slice(0, 4)),
      ['2028', '2032'],
    );
  });

  it('are not fired again when the clock is set back', async () => {
    await make();
    assert.equal((await firings(NOW + 5 * MINUTE_MS, NOW + 5 * MINUTE_MS, 1)).length, 1);
    assert.deepEqual(await firings(NOW - DAY_MS, NOW + 9 * MINUTE_MS, HOUR_MS), []);
    assert.equal((await firings(NOW + 10 * MINUTE_MS, NOW + 10 * MINUTE_MS, 1)).length, 1);
  });

  it('missed for a year come once, however often they were due', async () => {
    await make({ schedule: '* * * * *' });
    assert.equal((await firings(NOW + 365 * DAY_MS, NOW + 365 * DAY_MS, 1)).length, 1);
    assert.deepEqual(await firings(NOW + 365 * DAY_MS, NOW + 365 * DAY_MS, 1), []);
  });

  it('are shared by two schedulers without one tick lost or doubled', async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => make({ schedule: '* * * * *' })));
    const seen = new Map<string, number>();
    for (let tick = 1; tick <= 5; tick++) {
      const rounds = await Promise.all(
        [store, other, store, other].map((each) => each.crons.fireDue(NOW + tick * MINUTE_MS, 50)),
      );
      for (const { cron } of rounds.flatMap((round) => round.fired))
        seen.set(cron.cronId, (seen.get(cron.cronId) ?? 0) + 1);
    }
    assert.deepEqual([...seen.keys()].sort(), ids.sort());
    assert.deepEqual(
      [...seen.values()],
      ids.map(() => 5),
    );
  });

  it('of which no run can be made stop alone: those that are due after them fire', async () => {
    const bad = await make({ payload: { assistant_id: 'agent', input: { a: 1 }, command: { resume: 1 } } });
    const worse = await make({ payload: { assistant_id: 'agent', stream_mode: 'of a later version' } });
    const good = await make();
    const { fired } = await store.crons.fireDue(NOW + 5 * MINUTE_MS, 50);
    const kinds = new Map(fired.map(({ cron, creation }) => [cron.cronId, creation?.kind]));
    assert.deepEqual([kinds.get(bad), kinds.get(worse), kinds.get(good)], ['unfit', 'unfit', 'created']);
    assert.equal((await store.crons.get(bad))?.nextRunMs, null);
    assert.deepEqual(
      (await store.crons.fireDue(NOW + 10 * MINUTE_MS, 50)).fired.map(({ cron }) => cron.cronId),
      [good],
    );
  });

  it('carry their own id on every run, whatever their metadata say', async () => {
    const forged = database.ids.next();
    const cronId = await make({
      metadata: { cron_id: forged },
      payload: { assistant_id: 'agent', metadata: { cron_id: forged } },
    });
    const [firing] = (await store.crons.fireDue(NOW + 5 * MINUTE_MS, 50)).fired;
    assert.ok(firing?.creation?.kind === 'created');
    assert.equal(firing.creation.run.metadata['cron_id'], cronId);
  });

  it('that cannot run are counted and said, and the others run', async () => {
    const clock = new SteppedClock(NOW);
    const server = await startApi({ engine, graphs: specs(EXAMPLES, 'echo'), settings: { clock } });
    try {
      const cron = { assistant_id: 'echo', schedule: '* * * * *', input: { messages: [] } };
      const made = await server.ask('POST', '/runs/crons', cron);
      const { cron_id: id } = made.json as { cron_id: string };
      const patched = await server.ask('PATCH', `/runs/crons/${id}`, { command: { resume: 1 } });
      assert.equal(patched.status, 422);
      assert.match(patched.detail, /^command: cannot be combined with input$/);
      await until(() => clock.nextMs !== null && clock.nextMs <= MINUTE_MS, 'the scheduler has heard of it');
      clock.advance(MINUTE_MS);
      await until(() => server.counted('crons_fired') === 1, 'the cron has fired');
      assert.equal(server.counted('crons_fired_without_run'), 0);
    } finally {
      await server.close();
    }
  });
});

it('no schedule holds up the server that is asked for it', () => {
  const parts = ['*', '*/1', '0-59', '59', '29', '30', '31', '2', '2,4,6,9,11', '1-7', '0,1,2,3,4,5,6', 'FEB', 'MON'];
  const schedules = [
    '0 0 30 2 *',
    '0 0 31 2,4,6,9,11 *',
    '59 23 29 2 *',
    `${'0-59/1,'.repeat(24)}1 * * * *`,
    `${'*/59,'.repeat(30)}0 0 1 1 *`,
    ...parts.flatMap((day) => parts.map((month) => `0 0 ${day} ${month} *`)),
    `${' '.repeat(1_000_000)}* * * * *`,
    `*${' '.repeat(1_000_000)}x`,
    'a'.repeat(1_000_000),
    `${'9'.repeat(190)} * * * *`,
    '1-1-1-1-1-1-1-1-1 * * * *',
    `${'-'.repeat(190)} * * * *`,
    `${','.repeat(190)} * * * *`,
  ];
  const zones = [null, 'Europe/Berlin', 'a'.repeat(1_000_000), `Europe/${'a/'.repeat(100_000)}`];
  const slowest = { ms: 0, schedule: '' };
  for (const schedule of schedules) {
    for (const timezone of zones) {
      const before = process.cpuUsage();
      const issue = scheduleIssue({ schedule, timezone }, NOW);
      const { user, system } = process.cpuUsage(before);
      const ms = (user + system) / 1000;
      if (ms > slowest.ms) Object.assign(slowest, { ms, schedule: schedule.slice(0, 40) });
      if (issue !== null) assert.ok(issue.reason.length < 500, issue.reason);
    }
  }
  // A pattern that is searched without end takes minutes; these take milliseconds of this process's own time.
  assert.ok(slowest.ms < 5000, JSON.stringify(slowest));
});
