import { test } from 'node:test';
import assert from 'node:assert/strict';
import { silentLog } from '../../../src/core/log.ts';
import { MAX_BACKOFF_MS } from '../../../src/upload/backoff.ts';
import type { Batch } from '../../../src/upload/batch.ts';
import { createCountingDeadLetters } from '../../../src/upload/deadletter.ts';
import { InfoReader } from '../../../src/upload/info.ts';
import { UploadLimits } from '../../../src/upload/limits.ts';
import { Outbox } from '../../../src/upload/outbox.ts';
import type { OutboxSettings } from '../../../src/upload/outbox.ts';
import type { Parcel } from '../../../src/upload/parcel.ts';
import { unfollowed } from '../../../src/upload/settlements.ts';
import { createMemoryShelf, type Shelf } from '../../../src/upload/shelf.ts';
import { CounterList } from '../assemble/fakes.ts';
import {
  DELIVERED,
  FakeClock,
  RESET,
  ScriptedBackend,
  UNREACHABLE,
  answered,
  codec,
  makeBatch,
  makeTenant,
  settle,
} from './fakes.ts';

const SETTINGS: OutboxSettings = {
  maxRetries: 3,
  retryBackoffMs: 100,
  uploadConcurrency: 4,
  uploadMaxBytes: 1_000_000,
  heldBytes: 1_000_000,
  tenantCount: 100,
};
const ONE = makeTenant(1);
const TWO = makeTenant(2);

interface SetUp {
  clock: FakeClock;
  backend: ScriptedBackend;
  counters: CounterList;
  limits: UploadLimits;
  outbox: Outbox;
}

/** `random` 1 makes every wait as long as it may be. */
function setUp(
  settings: Partial<OutboxSettings> = {},
  random = (): number => 1,
  shelf: Shelf = createMemoryShelf(),
): SetUp {
  const clock = new FakeClock();
  const backend = new ScriptedBackend(clock);
  const counters = new CounterList();
  const limits = new UploadLimits({ batchSize: 100, maxBufferBytes: 10_000_000 });
  const outbox = new Outbox(
    { ...SETTINGS, ...settings },
    {
      backend,
      codec,
      limits,
      info: new InfoReader(backend, limits, clock, silentLog),
      shelf,
      settlements: unfollowed,
      deadLetters: createCountingDeadLetters(counters, clock, silentLog),
      counters,
      clock,
      log: silentLog,
      random,
    },
  );
  return { clock, backend, counters, limits, outbox };
}

/** When each upload began, counted from the first. */
function times(backend: ScriptedBackend): number[] {
  return backend.uploads.map((upload) => upload.atMs - (backend.uploads[0]?.atMs ?? 0));
}

test('a batch is delivered by one upload', async () => {
  const { backend, counters, outbox } = setUp();
  outbox.accept(makeBatch(ONE, ['a', 'b']));
  await settle();
  assert.deepEqual(
    backend.uploads.map((upload) => upload.runs),
    [['a', 'b']],
  );
  assert.equal(counters.of('runs_delivered'), 2);
  assert.equal(outbox.stats.runCount, 0);
  assert.equal(outbox.stats.bytes, 0);
});

test('what is delivered has left the shelf before it is counted: nobody finds it in two places', async () => {
  const shelf = createMemoryShelf();
  const { counters, outbox } = setUp({}, () => 1, shelf);
  const countedBefore: number[] = [];
  shelf.settle = () => void countedBefore.push(counters.of('runs_delivered'));
  outbox.accept(makeBatch(ONE, ['a', 'b']));
  await settle();
  assert.deepEqual(countedBefore, [0]);
  assert.equal(counters.of('runs_delivered'), 2);
});

for (const answer of [
  RESET,
  UNREACHABLE,
  ...[408, 425, 429, 499, 500, 502, 503, 504].map((status) => answered(status)),
]) {
  const title = answer.kind === 'answered' ? String(answer.status) : 'a network error';
  test(`after ${title} a batch is tried three times more, waiting twice as long each time`, async () => {
    const { clock, backend, counters, outbox } = setUp();
    backend.script = (_, count) => (count <= 3 ? answer : DELIVERED);
    outbox.accept(makeBatch(ONE, ['a', 'b']));
    await clock.advance(10_000);
    assert.deepEqual(times(backend), [0, 100, 300, 700]);
    assert.equal(counters.of('runs_delivered'), 2);
    assert.equal(counters.of('upload_attempts'), 4);
    assert.equal(counters.of('upload_retries'), 3);
    assert.equal(counters.of('upload_failures'), 3);
    assert.equal(counters.of('upload_failed_runs'), 6);
  });
}

test('the memory of a body is lent on only when no attempt can still be looking at it', async ({ mock }) => {
  const release = mock.method(codec, 'release');
  const { clock, backend, counters, outbox } = setUp();
  backend.script = (_, count) => (count === 1 ? RESET : DELIVERED);
  outbox.accept(makeBatch(ONE, ['a']));
  await clock.advance(1000);
  assert.equal(counters.of('runs_delivered'), 1);
  assert.equal(release.mock.callCount(), 0, 'the attempt that was broken off');
  outbox.accept(makeBatch(ONE, ['b']));
  await settle();
  assert.deepEqual(
    release.mock.calls.map(({ arguments: [body] }) => body),
    [backend.uploads[2]?.batch.body],
  );
});

test('waits are drawn between nothing and the full backoff, which ends at 30 s', async () => {
  const { clock, backend, outbox } = setUp({ maxRetries: 12 }, () => 0.5);
  backend.script = (_, count) => (count <= 12 ? RESET : DELIVERED);
  outbox.accept(makeBatch(ONE, ['a']));
  await clock.advance(600_000);
  const waits = times(backend).map((at, i, all) => at - (all[i - 1] ?? 0));
  assert.deepEqual(waits.slice(1, 4), [50, 100, 200]);
  assert.equal(waits.at(-1), MAX_BACKOFF_MS / 2);
});

test('RETRY_BACKOFF_MS=0 retries at once', async () => {
  const { backend, outbox, counters } = setUp({ retryBackoffMs: 0 });
  backend.script = (_, count) => (count <= 3 ? RESET : DELIVERED);
  outbox.accept(makeBatch(ONE, ['a']));
  await settle();
  assert.equal(backend.uploads.length, 4);
  assert.equal(counters.of('runs_delivered'), 1);
});

test('Retry-After wins over the backoff and holds the whole tenant, nobody else', async () => {
  const { clock, backend, outbox } = setUp();
  backend.script = (_, count) => (count === 1 ? answered(429, { retryAfterMs: 5000 }) : DELIVERED);
  outbox.accept(makeBatch(ONE, ['a']));
  await settle();
  outbox.accept(makeBatch(ONE, ['b']));
  outbox.accept(makeBatch(TWO, ['c']));
  await clock.advance(4999);
  assert.deepEqual(
    backend.uploads.map((upload) => upload.runs.join()),
    ['a', 'c'],
  );
  await clock.advance(1);
  assert.deepEqual(backend.uploads.map((upload) => upload.runs.join()).sort(), ['a', 'a', 'b', 'c']);
});

test('a longer Retry-After stands, whatever comes in between', async () => {
  const { clock, backend, outbox } = setUp({ uploadConcurrency: 4 });
  const answers = [answered(429, { retryAfterMs: 9000 }), answered(429, { retryAfterMs: 1000 })];
  backend.script = (_, count) => answers[count - 1] ?? DELIVERED;
  for (const name of ['a', 'b']) outbox.accept(makeBatch(ONE, [name]));
  await clock.advance(8999);
  assert.equal(backend.uploads.length, 2);
  await clock.advance(1001);
  assert.equal(backend.uploads.length, 4);
});

test('when retries are used up batches are kept, and one probe at a time asks at growing intervals up to 30 s', async () => {
  const { clock, backend, counters, outbox } = setUp();
  let up = false;
  backend.script = () => (up ? DELIVERED : UNREACHABLE);
  for (let i = 0; i < 20; i++) outbox.accept(makeBatch(ONE, [`run-${i}`]));
  await clock.advance(2000);
  const before = backend.uploads.length;
  assert.ok(before < 80, 'not every batch uses up its own retries');
  await clock.advance(120_000);
  const probes = backend.uploads.slice(before);
  const waits = probes.slice(1).map((probe, i) => probe.atMs - (probes[i]?.atMs ?? 0));
  assert.ok(probes.length <= 9, `${probes.length} probes in two minutes`);
  assert.equal(Math.max(...waits), MAX_BACKOFF_MS);
  assert.equal(outbox.stats.runCount, 20);
  assert.equal(outbox.stats.downTenantCount, 1);
  up = true;
  backend.maxInFlight = 0;
  const outage = backend.uploads.length;
  await clock.advance(MAX_BACKOFF_MS);
  assert.equal(counters.of('runs_delivered'), 20);
  assert.equal(outbox.stats.runCount, 0);
  const returned = backend.uploads.slice(outage);
  assert.equal(returned.length, 20, 'each batch left once');
  assert.equal(returned[0]?.atMs === returned[1]?.atMs, true);
  assert.ok(backend.maxInFlight <= 3, 'three quarters of the places');
});

test('after an outage uploads grow from one at a time: no thundering herd', async () => {
  const { clock, backend, outbox } = setUp({ uploadConcurrency: 16, maxRetries: 0 });
  let up = false;
  const arrivals: (() => void)[] = [];
  backend.script = () => (up ? new Promise((resolve) => arrivals.push(() => resolve(DELIVERED))) : UNREACHABLE);
  for (let i = 0; i < 40; i++) outbox.accept(makeBatch(ONE, [`run-${i}`]));
  await clock.advance(5000);
  up = true;
  await clock.advance(MAX_BACKOFF_MS);
  const sizes: number[] = [];
  while (arrivals.length > 0) {
    sizes.push(arrivals.length);
    for (const answer of arrivals.splice(0)) answer();
    await settle();
  }
  assert.deepEqual(sizes.slice(0, 2), [1, 1]);
  assert.ok(sizes.every((size, i) => size <= 2 * Math.max(...sizes.slice(0, i), 1) && size <= 12));
  assert.equal(Math.max(...sizes), 12, 'they do grow');
  assert.equal(outbox.stats.runCount, 0);
});

test('one batch that always fails does not hold up the others of its tenant', async () => {
  const { clock, backend, counters, outbox } = setUp({ uploadConcurrency: 1 });
  backend.script = (upload) => (upload.runs.includes('poison') ? answered(500) : DELIVERED);
  outbox.accept(makeBatch(ONE, ['poison']));
  for (let i = 0; i < 10; i++) {
    outbox.accept(makeBatch(ONE, [`run-${i}`]));
    await clock.advance(100);
    assert.equal(counters.of('runs_delivered'), i + 1);
  }
  await clock.advance(300_000);
  assert.equal(outbox.stats.runCount, 1);
  assert.equal(outbox.stats.downTenantCount, 0);
  const poisoned = backend.uploads.filter((upload) => upload.runs.includes('poison')).length;
  assert.ok(poisoned < 25, `${poisoned} attempts in five minutes`);
});

for (const status of [401, 403, 404, 302]) {
  test(`${status} parks its tenant, keeps the data, and does not touch the others`, async () => {
    const { clock, backend, counters, outbox } = setUp();
    let mended = false;
    backend.script = (upload) => (upload.tenant === 1 && !mended ? answered(status) : DELIVERED);
    for (let i = 0; i < 5; i++) {
      outbox.accept(makeBatch(ONE, [`one-${i}`]));
      outbox.accept(makeBatch(TWO, [`two-${i}`]));
    }
    await clock.advance(60_000);
    assert.equal(counters.of('runs_delivered'), 5);
    assert.equal(outbox.stats.runCount, 5);
    const refused = backend.uploads.filter((upload) => upload.tenant === 1).length;
    assert.ok(refused <= 12, `${refused} attempts in a minute`);
    mended = true;
    await clock.advance(60_000);
    assert.equal(counters.of('runs_delivered'), 10);
  });
}

test('409 for one run, or for a repeat of an attempt that may have arrived, is delivered', async () => {
  const { clock, backend, counters, outbox } = setUp();
  backend.script = (upload, count) => (upload.runs.length > 1 && count === 2 ? RESET : answered(409));
  outbox.accept(makeBatch(ONE, ['single']));
  await settle();
  outbox.accept(makeBatch(ONE, ['a', 'b', 'c']));
  await clock.advance(1000);
  assert.equal(backend.uploads.length, 3);
  assert.equal(counters.of('runs_delivered'), 4);
  assert.equal(counters.of('runs_delivered_again'), 4);
});

test('409 for several runs sent for the first time sends the halves, so that new runs among known ones arrive', async () => {
  const { backend, counters, outbox } = setUp();
  const known = new Set(['b']);
  backend.script = (upload) => {
    if (upload.runs.some((run) => known.has(run))) return answered(409);
    for (const run of upload.runs) known.add(run);
    return DELIVERED;
  };
  outbox.accept(makeBatch(ONE, ['a', 'b', 'c', 'd']));
  await settle();
  assert.deepEqual([...known].sort(), ['a', 'b', 'c', 'd']);
  assert.equal(counters.of('runs_delivered'), 4);
  assert.equal(counters.of('runs_delivered_again'), 1);
});

test('a 409 after an attempt that cannot have arrived is not taken for delivery', async () => {
  const { clock, backend, outbox } = setUp();
  backend.script = (_, count) => (count === 1 ? answered(429) : count === 2 ? answered(409) : DELIVERED);
  outbox.accept(makeBatch(ONE, ['a', 'b']));
  await clock.advance(1000);
  assert.deepEqual(
    backend.uploads.map((upload) => upload.runs.join()),
    ['a,b', 'a,b', 'a', 'b'],
  );
});

for (const status of [400, 422]) {
  test(`${status} is narrowed down to the bad run; all others are delivered`, async () => {
    const { backend, counters, outbox } = setUp();
    const arrived: string[] = [];
    backend.script = (upload) => {
      if (upload.runs.includes('bad')) return answered(status, { text: 'dotted_order' });
      arrived.push(...upload.runs);
      return DELIVERED;
    };
    const runs = Array.from({ length: 100 }, (_, i) => (i === 37 ? 'bad' : `run-${i}`));
    outbox.accept(makeBatch(ONE, runs));
    await settle();
    await settle();
    assert.deepEqual(arrived.sort(), runs.filter((run) => run !== 'bad').sort());
    assert.equal(counters.of('runs_delivered'), 99);
    assert.equal(counters.of('runs_dead_lettered'), 1);
    assert.equal(counters.of('dropped_rejected-by-backend'), 1);
    assert.ok(backend.uploads.length <= 15);
  });
}

test('another 4xx gives the batch up with its reason', async () => {
  const { counters, outbox, backend } = setUp();
  backend.script = () => answered(418);
  outbox.accept(makeBatch(ONE, ['a', 'b']));
  await settle();
  assert.equal(backend.uploads.length, 1);
  assert.equal(counters.of('dropped_rejected-by-backend'), 2);
});

test('413 splits by bytes, never sends as much again, and later batches stay below', async () => {
  const { backend, limits, counters, outbox } = setUp({ uploadConcurrency: 1 });
  backend.script = (upload) => (upload.batch.plainBytes > 700_000 ? answered(413) : DELIVERED);
  outbox.accept(makeBatch(ONE, ['a', 'b', 'c', 'd', 'e'], 400_000));
  await settle();
  assert.equal(counters.of('runs_delivered'), 5);
  const refused = backend.uploads.filter((upload) => upload.batch.plainBytes > 700_000);
  for (const [i, upload] of backend.uploads.entries()) {
    const smallest = Math.min(
      ...backend.uploads
        .slice(0, i)
        .filter((other) => refused.includes(other))
        .map((other) => other.batch.plainBytes),
    );
    assert.ok(upload.batch.plainBytes < smallest);
  }
  assert.ok(limits.maxBatchBytes <= 1_000_500);
});

test('a single run refused for its size is cut short once; still refused, it is given up as oversize', async () => {
  const { backend, counters, outbox } = setUp();
  backend.script = () => answered(413);
  outbox.accept(makeBatch(ONE, ['a'], 1000));
  await settle();
  assert.equal(backend.uploads.length, 2);
  assert.equal(counters.of('dropped_oversize'), 1);
  assert.equal(outbox.stats.runCount, 0);
});

test('415 makes this and later batches go out in an encoding that the backend can read', async () => {
  const { backend, limits, counters, outbox } = setUp();
  backend.script = (upload) => (upload.batch.coding === 'identity' ? DELIVERED : answered(415));
  outbox.accept(makeBatch(ONE, ['a', 'b']));
  await settle();
  assert.deepEqual(
    backend.uploads.map((upload) => upload.batch.coding),
    ['zstd', 'gzip', 'identity'],
  );
  assert.equal(limits.coding, 'identity');
  assert.equal(counters.of('runs_delivered'), 2);
});

test('an API key that cannot be sent gives the batch up instead of ending the thread', async () => {
  const { backend, counters, outbox } = setUp();
  backend.script = () => ({ kind: 'unsendable', reason: 'UND_ERR_INVALID_ARG' });
  outbox.accept(makeBatch(ONE, ['a', 'b']));
  await settle();
  assert.equal(counters.of('dropped_rejected-by-backend'), 2);
});

test('uploads in flight stay within their number and their bytes', async () => {
  const { backend, outbox } = setUp({ uploadConcurrency: 4, uploadMaxBytes: 300 });
  const answers: (() => void)[] = [];
  backend.script = () => new Promise((resolve) => answers.push(() => resolve(DELIVERED)));
  const batches = Array.from({ length: 12 }, (_, i) => makeBatch(i % 2 === 0 ? ONE : TWO, [`run-${i}`]));
  const limit = Math.floor(300 / Math.max(...batches.map((batch) => batch.body.length)));
  assert.ok(limit >= 1 && limit < 4);
  for (const batch of batches) outbox.accept(batch);
  for (let i = 0; i < 12; i++) {
    await settle();
    assert.ok(outbox.stats.inFlightBytes <= 300);
    assert.ok(backend.inFlight >= 1 && backend.inFlight <= 4);
    answers.shift()?.();
  }
  await settle();
  assert.equal(outbox.stats.runCount, 0);
});

test('a tenant whose uploads hang leaves places for the others', async () => {
  const { backend, counters, outbox } = setUp({ uploadConcurrency: 4 });
  backend.script = (upload) => (upload.tenant === 1 ? new Promise(() => undefined) : DELIVERED);
  for (let i = 0; i < 20; i++) outbox.accept(makeBatch(ONE, [`one-${i}`]));
  for (let i = 0; i < 20; i++) outbox.accept(makeBatch(TWO, [`two-${i}`]));
  await settle();
  await settle();
  assert.equal(counters.of('runs_delivered'), 20);
  assert.equal(backend.inFlight, 3);
});

test('tenants that fail together take half of the places', async () => {
  const { clock, backend, counters, outbox } = setUp({ uploadConcurrency: 4 });
  const hanging: (() => void)[] = [];
  backend.script = (upload, count) => {
    if (upload.tenant === 99) return DELIVERED;
    return count <= 8 ? RESET : new Promise((resolve) => hanging.push(() => resolve(RESET)));
  };
  for (let tenant = 1; tenant <= 8; tenant++) outbox.accept(makeBatch(makeTenant(tenant), ['a']));
  await clock.advance(1000);
  assert.equal(backend.inFlight, 2);
  outbox.accept(makeBatch(makeTenant(99), ['b']));
  await settle();
  assert.equal(counters.of('runs_delivered'), 1);
});

test('more tenants than may be remembered are full, too', async () => {
  const { clock, backend, outbox } = setUp({ tenantCount: 3 });
  backend.script = () => UNREACHABLE;
  for (let tenant = 1; tenant <= 3; tenant++) outbox.accept(makeBatch(makeTenant(tenant), ['a']));
  assert.equal(outbox.full, false);
  outbox.accept(makeBatch(makeTenant(4), ['a']));
  assert.equal(outbox.full, true);
  backend.script = () => DELIVERED;
  await clock.advance(60_000);
  outbox.accept(makeBatch(ONE, ['b']));
  assert.equal(outbox.full, false);
});

test('full is told, nothing is refused, and room comes with delivery', async () => {
  const { clock, backend, outbox } = setUp({ heldBytes: 500 });
  let up = false;
  backend.script = () => (up ? DELIVERED : UNREACHABLE);
  for (let i = 0; !outbox.full; i++) outbox.accept(makeBatch(ONE, [`run-${i}`]));
  let room = false;
  const waiting = outbox.room(new AbortController().signal).then(() => (room = true));
  await clock.advance(10_000);
  assert.equal(room, false);
  up = true;
  await clock.advance(30_000);
  await waiting;
  assert.equal(outbox.stats.runCount, 0);
});

test('of what is held beyond half, the newest goes to the disk', async () => {
  const batches: Batch[] = Array.from({ length: 20 }, (_, i) => makeBatch(ONE, [`run-${i}`]));
  const shelved: number[] = [];
  const memory = createMemoryShelf();
  const shelf = Object.assign(Object.create(memory) as Shelf, {
    isDurable: true,
    offer: (parcel: Parcel) => {
      shelved.push(batches.indexOf(parcel.batch));
      memory.offer(parcel);
    },
  });
  const { backend, outbox } = setUp({ heldBytes: 2000, uploadConcurrency: 1 }, undefined, shelf);
  backend.script = () => new Promise(() => undefined);
  for (const [i, batch] of batches.entries()) {
    const before = shelved.length;
    outbox.accept(batch);
    const now = shelved.slice(before);
    // All that goes is younger than all that stays, but for what went before.
    const stays = [...batches.keys()].filter((index) => index <= i && !shelved.includes(index));
    if (now.length > 0) assert.ok(Math.min(...now) > Math.max(0, ...stays), `${now.join()} with ${i}`);
  }
  assert.ok(shelved.length > 4 && shelved.length < 20, `${shelved.length} on the shelf`);
  await settle();
  assert.deepEqual(
    backend.uploads.map((upload) => upload.runs),
    [['run-0']],
  );
});

for (const status of [401, 429]) {
  test(`a tenant with ${status} fills half of what is held and loses its oldest; reading never stops for it`, async () => {
    const { clock, backend, counters, outbox } = setUp({ heldBytes: 2000 });
    backend.script = (upload) => (upload.tenant === 1 ? answered(status) : DELIVERED);
    outbox.accept(makeBatch(TWO, ['two']));
    for (let i = 0; i < 60; i++) {
      outbox.accept(makeBatch(ONE, [`one-${i}`]));
      await clock.advance(100);
      assert.equal(outbox.full, false);
    }
    const dropped = counters.of('dropped_spool-full');
    assert.ok(dropped > 0);
    assert.equal(outbox.stats.runCount, 60 - dropped);
    assert.ok(outbox.stats.bytes > 800 && outbox.stats.bytes <= 1200);
    backend.script = () => DELIVERED;
    await clock.advance(60_000);
    const kept = backend.uploads.filter((upload) => upload.tenant === 1).slice(-10);
    assert.ok(
      kept.some((upload) => upload.runs[0] === 'one-59'),
      'the youngest are kept',
    );
    assert.equal(counters.of('runs_delivered'), 61 - dropped);
  });
}

test('a tenant that is refused while its queue fills everything gives half of it back at once', async () => {
  const { backend, outbox } = setUp({ heldBytes: 2000, uploadConcurrency: 1 });
  let refuse: () => void = () => undefined;
  backend.script = () => new Promise((resolve) => (refuse = () => resolve(answered(403))));
  for (let i = 0; !outbox.full; i++) outbox.accept(makeBatch(ONE, [`run-${i}`]));
  await settle();
  refuse();
  await settle();
  assert.equal(outbox.full, false);
});

test('keys drawn at random cannot block the tenants that deliver', async () => {
  const { clock, backend, counters, outbox } = setUp({ tenantCount: 20 });
  backend.script = (upload) => (upload.tenant >= 100 ? answered(401) : DELIVERED);
  for (let i = 0; i < 200; i++) {
    outbox.accept(makeBatch(makeTenant(100 + i), ['a']));
    await clock.advance(10);
    assert.equal(outbox.full, false);
  }
  outbox.accept(makeBatch(ONE, ['b']));
  await clock.advance(1000);
  assert.equal(counters.of('runs_delivered'), 1);
  assert.ok(outbox.stats.tenantCount <= 20);
  assert.equal(outbox.stats.runCount + counters.of('dropped_spool-full'), 200);
});

test("a wrong address is everybody's trouble: nothing is dropped, reading stops", async () => {
  const { clock, backend, counters, outbox } = setUp({ heldBytes: 1000 });
  backend.script = () => answered(404);
  for (let i = 0; i < 30 && !outbox.full; i++) {
    outbox.accept(makeBatch(i % 2 === 0 ? ONE : TWO, [`run-${i}`]));
    await clock.advance(100);
  }
  assert.equal(outbox.full, true);
  assert.equal(counters.of('dropped_spool-full'), 0);
});

test('a batch sealed before the backend told its limits is cut to them before it is sent', async () => {
  const { backend, limits, counters, outbox } = setUp();
  limits.learn({ maxBatchRuns: 3, maxBatchBytes: null, zstd: null, gzip: null });
  outbox.accept(makeBatch(ONE, ['a', 'b', 'c', 'd', 'e', 'f', 'g']));
  await settle();
  assert.equal(counters.of('runs_delivered'), 7);
  assert.ok(backend.uploads.every((upload) => upload.runs.length <= 3));
});

test('a drain tries every waiting tenant at once and reports what is left by reason', async () => {
  const { clock, backend, counters, outbox } = setUp();
  let draining = false;
  backend.script = (upload) => {
    if (upload.tenant === 1) return answered(401);
    if (upload.tenant === 2) return UNREACHABLE;
    return draining ? DELIVERED : answered(503, { retryAfterMs: 3_600_000 });
  };
  for (const tenant of [1, 2, 3]) outbox.accept(makeBatch(makeTenant(tenant), ['a', 'b']));
  await clock.advance(5000);
  draining = true;
  const end = new AbortController();
  const drained = outbox.drain(end.signal);
  await clock.advance(3000);
  assert.equal(counters.of('runs_delivered'), 2);
  end.abort();
  assert.deepEqual(await drained, { unreachable: 2, refused: 2, unfinished: 0 });
  assert.equal(counters.of('dropped_shutdown-deadline'), 4);
  assert.equal(outbox.stats.runCount, 0);
});

test('a drain does not wait for tenants whose key is refused, and cuts off what hangs at its deadline', async () => {
  const one = setUp();
  one.backend.script = () => answered(403);
  one.outbox.accept(makeBatch(ONE, ['a']));
  await settle();
  assert.deepEqual(await one.outbox.drain(new AbortController().signal), { unreachable: 0, refused: 1, unfinished: 0 });

  const two = setUp();
  two.backend.script = () => new Promise(() => undefined);
  two.outbox.accept(makeBatch(ONE, ['a']));
  await settle();
  const end = new AbortController();
  const drained = two.outbox.drain(end.signal);
  end.abort();
  assert.deepEqual(await drained, { unreachable: 0, refused: 0, unfinished: 1 });
});
