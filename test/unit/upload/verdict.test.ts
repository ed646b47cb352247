/** Every status of the backend, and what it means for a batch: once and only here as a whole. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { isTenantsOwn, judge, mayHaveArrived } from '../../../src/upload/verdict.ts';
import { answered, RESET, UNREACHABLE } from './fakes.ts';

const ALL = Array.from({ length: 500 }, (_, i) => 100 + i);
const those = (holds: (status: number) => boolean): number[] => ALL.filter(holds);
const verdictOf = (status: number, runCount = 2): string => judge(answered(status), { runCount }, false).kind;

test('each status has its verdict, for several runs and for a single one', () => {
  const delivered = those((status) => status >= 200 && status < 300);
  const retried = those((status) => status >= 500 || [408, 425, 429, 499].includes(status));
  const parked = those((status) => status < 200 || (status >= 300 && status < 400)).concat([
    401, 402, 403, 404, 405, 407, 410, 415,
  ]);
  const split = [400, 409, 413, 422];
  const rejected = those((status) => ![delivered, retried, parked, split].some((list) => list.includes(status)));
  for (const [kind, statuses] of Object.entries({ delivered, retry: retried, park: parked, split, rejected })) {
    assert.ok(statuses.length > 0);
    for (const status of statuses) assert.equal(verdictOf(status), kind, `${status}`);
  }
  for (const [status, kind] of [
    [400, 'rejected'],
    [409, 'delivered'],
    [413, 'split'],
    [422, 'rejected'],
    [429, 'retry'],
  ] as const) {
    assert.equal(verdictOf(status, 1), kind, `${status} for one run`);
  }
});

test('whether a batch may have arrived is told by what was answered, or by how the connection failed', () => {
  assert.deepEqual(
    those((status) => mayHaveArrived(answered(status))),
    [408, ...those((status) => status >= 499)],
  );
  assert.deepEqual([RESET, UNREACHABLE].map(mayHaveArrived), [true, false]);
});

test('key, plan, permission and quota are a trouble of the tenant alone', () => {
  assert.deepEqual(
    those((status) => isTenantsOwn(answered(status))),
    [401, 402, 403, 429],
  );
  assert.ok(!isTenantsOwn(RESET));
});
