import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { nextFireMs, scheduleIssue } from '../../../src/deploy/schedule.ts';

const NOW = Date.UTC(2026, 0, 1);

function firings(schedule: string, timezone: string | null, from: string, count: number): string[] {
  const times: string[] = [];
  let at = Date.parse(from);
  for (let i = 0; i < count; i++) {
    const next = nextFireMs({ schedule, timezone }, at);
    assert.ok(next !== null);
    at = next;
    times.push(new Date(next).toISOString().replace(':00.000Z', 'Z'));
  }
  return times;
}

describe('cron schedules', () => {
  it('are in UTC when no zone is named', () => {
    assert.deepEqual(firings('27 15 * * *', null, '2026-05-04T15:27:00Z', 1), ['2026-05-05T15:27Z']);
  });

  it('fire right after the gap when the clocks are set forward over their time', () => {
    assert.deepEqual(firings('30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', 2), [
      '2026-03-29T01:00Z',
      '2026-03-30T00:30Z',
    ]);
  });

  it('fire once when the clocks are set back over their time', () => {
    assert.deepEqual(firings('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z', 2), [
      '2026-10-25T00:30Z',
      '2026-10-26T01:30Z',
    ]);
  });

  it('go on by real time through a doubled hour when they are intervals', () => {
    assert.deepEqual(firings('*/30 * * * *', 'Europe/Berlin', '2026-10-25T00:00:00Z', 4), [
      '2026-10-25T00:30Z',
      '2026-10-25T01:00Z',
      '2026-10-25T01:30Z',
      '2026-10-25T02:00Z',
    ]);
  });

  it('find the next leap day', () => {
    assert.deepEqual(firings('0 0 29 2 *', null, '2026-01-01T00:00:00Z', 2), [
      '2028-02-29T00:00Z',
      '2032-02-29T00:00Z',
    ]);
  });

  it('end with their end time', () => {
    const endMs = Date.UTC(2026, 0, 1, 0, 5);
    const schedule = { schedule: '*/5 * * * *', timezone: null };
    assert.equal(nextFireMs(schedule, NOW, endMs), endMs);
    assert.equal(nextFireMs(schedule, endMs, endMs), null);
  });

  for (const [schedule, timezone, field] of [
    ['60 * * * *', null, 'schedule'],
    ['* * * *', null, 'schedule'],
    ['* * * * * *', null, 'schedule'],
    ['@daily', null, 'schedule'],
    ['0 0 L * *', null, 'schedule'],
    ['0 0 ? * *', null, 'schedule'],
    ['0 0 30 2 *', null, 'schedule'],
    ['*/0 * * * *', null, 'schedule'],
    ['5-1 * * * *', null, 'schedule'],
    ['', null, 'schedule'],
    [`${'1,'.repeat(5000)}1 * * * *`, null, 'schedule'],
    ['a{1,99999}b * * * *', null, 'schedule'],
    ['* * * * *', 'Mars/Phobos', 'timezone'],
    ['* * * * *', '+02:00', 'timezone'],
    ['* * * * *', '', 'timezone'],
  ] as const) {
    it(`refuse "${schedule.slice(0, 30)}" in ${timezone ?? 'UTC'}, naming the ${field}`, () => {
      const issue = scheduleIssue({ schedule, timezone }, NOW);
      assert.equal(issue?.field, field);
      assert.ok(issue.reason.length > 5);
    });
  }

  for (const schedule of ['* * * * *', '0 9 * * MON-FRI', '0 0 1,15 jan *', '0 0 * * 7', '*/15 8-18/2 * * 1']) {
    it(`take "${schedule}"`, () => {
      assert.equal(scheduleIssue({ schedule, timezone: 'America/New_York' }, NOW), null);
    });
  }
});
