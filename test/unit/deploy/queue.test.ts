import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../../src/core/log.ts';
import { systemClock } from '../../../src/core/lifecycle.ts';
import { createQueue, type Queue } from '../../../src/deploy/queue.ts';
import type { Run } from '../../../src/deploy/store/model.ts';
import type { RunRepository } from '../../../src/deploy/store/repositories.ts';

interface Bench {
  queue: Queue;
  executed: string[];
  claimCount: number;
  places: number;
  waiting: { runId: string; dueMs: number }[];
  failNext: boolean;
}

/** A store of waiting runs in memory, and places that a test opens and closes. */
function bench(places: number): Bench {
  const state = { executed: [] as string[], claimCount: 0, places, waiting: [] as Bench['waiting'], failNext: false };
  const claimOldest: RunRepository['claimOldest'] = async (_claim, count, nowMs) => {
    state.claimCount++;
    await Promise.resolve();
    if (state.failNext) {
      state.failNext = false;
      throw new Error('no database');
    }
    const claimed = state.waiting.filter((run) => run.dueMs <= nowMs).slice(0, count);
    state.waiting = state.waiting.filter((run) => !claimed.includes(run));
    const isShort = claimed.length < count && state.waiting.length > 0;
    return {
      runs: claimed as unknown as Run[],
      nextDueMs: isShort ? Math.min(...state.waiting.map((run) => run.dueMs)) : null,
    };
  };
  const queue = createQueue({
    runs: { claimOldest } as RunRepository,
    clock: systemClock,
    log: silentLog,
    ownerId: 'here',
    leaseMs: 1000,
    freeCount: () => state.places,
    execute: (run) => {
      state.places--;
      state.executed.push(run.runId);
    },
  });
  return Object.assign(state, { queue });
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

function due(...ids: string[]): Bench['waiting'] {
  return ids.map((runId) => ({ runId, dueMs: 0 }));
}

test('a queue that nobody wakes never asks', async () => {
  const it = bench(5);
  it.waiting = due('a');
  it.queue.onFree();
  await settled();
  assert.equal(it.claimCount, 0);
});

test('woken, it claims in order until the places are taken, and goes on when one is free', async () => {
  const it = bench(2);
  it.waiting = due('a', 'b', 'c', 'd');
  it.queue.wake();
  await settled();
  assert.deepEqual(it.executed, ['a', 'b']);
  it.places = 1;
  it.queue.onFree();
  await settled();
  assert.deepEqual(it.executed, ['a', 'b', 'c']);
});

test('once there is nothing left it does not ask again until it is woken', async () => {
  const it = bench(5);
  it.waiting = due('a');
  it.queue.wake();
  await settled();
  assert.equal(it.claimCount, 1);
  it.queue.onFree();
  await settled();
  assert.equal(it.claimCount, 1);
});

test('a run that is not due yet is claimed when it is, by one timer', async ({ mock }) => {
  mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 });
  const it = bench(5);
  it.waiting = [{ runId: 'late', dueMs: Date.now() + 60 }];
  it.queue.wake();
  await settled();
  assert.deepEqual(it.executed, []);
  assert.equal(it.claimCount, 1);
  mock.timers.tick(59);
  await settled();
  assert.equal(it.claimCount, 1, 'nobody asks before');
  mock.timers.tick(1);
  await settled();
  assert.deepEqual(it.executed, ['late']);
  assert.equal(it.claimCount, 2);
  it.queue.stop();
});

test('a place is reserved for a run about to be created only when nobody else is waiting', async () => {
  const it = bench(1);
  assert.ok(it.queue.reserve());
  // The one place is spoken for.
  assert.equal(it.queue.reserve(), null);
  it.queue.release();
  it.waiting = due('a');
  it.failNext = true;
  it.queue.wake();
  await settled();
  // Asking failed: somebody may still be waiting.
  assert.equal(it.queue.reserve(), null);
  it.queue.stop();
});

test('a store that fails is asked again', async () => {
  const it = bench(1);
  it.waiting = due('a');
  it.failNext = true;
  it.queue.wake();
  await settled();
  assert.deepEqual(it.executed, []);
  it.queue.wake();
  await settled();
  assert.deepEqual(it.executed, ['a']);
  it.queue.stop();
});

test('stopped, it claims nothing and reserves nothing', async () => {
  const it = bench(5);
  it.queue.stop();
  it.waiting = due('a');
  it.queue.wake();
  await settled();
  assert.equal(it.claimCount, 0);
  assert.equal(it.queue.reserve(), null);
});
