import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import test from 'node:test';
import type { Admission } from '../../src/core/outcome.ts';
import { createFixture, send, type Fixture, type FixtureSettings } from '../unit/decodefixture.ts';
import { scriptBody, type Script } from '../unit/fakedecoder.ts';

const DEADLINE_MS = 120_000;

async function withPool(settings: FixtureSettings, run: (fixture: Fixture) => Promise<void>): Promise<void> {
  const fixture = createFixture(settings);
  await fixture.pool.start();
  try {
    await run(fixture);
  } finally {
    await fixture.pool.stop(DEADLINE_MS);
    assert.equal(fixture.pool.heldBodyCount, 0);
    assert.equal(fixture.pool.aliveThreadCount, 0);
  }
}

function spans(...numbers: number[]): Script {
  return { spans: numbers.map((number) => ({ trace: number, number, bytes: 200 })) };
}

function isLost(admission: Admission): boolean {
  return admission.kind === 'busy' && admission.code === 'worker-lost' && admission.retryAfterMs > 0;
}

async function until(condition: () => boolean): Promise<void> {
  const endMs = performance.now() + DEADLINE_MS;
  while (!condition()) {
    assert.ok(performance.now() < endMs, 'in time');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const deaths: { name: string; then: NonNullable<Script['then']>; settings?: FixtureSettings }[] = [
  { name: 'ends itself', then: 'exit' },
  { name: 'meets a broken invariant', then: 'fault' },
  { name: 'runs out of memory', then: 'out-of-memory', settings: { pool: { threadHeapBytes: 32 * 1024 * 1024 } } },
];

for (const { name, then, settings } of deaths) {
  test(`a thread that ${name} costs the bodies in its hands; what was not published is nowhere, and the pool goes on`, async () => {
    await withPool(settings ?? {}, async ({ pool, readNumbers, counters, logLines }) => {
      const admissions = await Promise.all([
        send(pool, scriptBody(spans(1))),
        send(pool, scriptBody({ ...spans(2), then })),
        send(pool, scriptBody(spans(3))),
      ]);
      assert.ok(admissions.every(isLost), JSON.stringify(admissions));
      // The first body of the task had been published when the second killed the thread; the third never began.
      assert.deepEqual(readNumbers(), [1]);
      for (let number = 10; number < 13; number++) {
        assert.equal((await send(pool, scriptBody(spans(number)))).kind, 'accepted');
      }
      assert.deepEqual(readNumbers(), [10, 11, 12]);
      await until(() => counters.total('decode_workers_lost') === 1);
      assert.equal(pool.aliveThreadCount, 1);
      assert.ok(logLines.some((line) => line.level === 'error' && line.message === 'decode thread exited'));
    });
  });
}

test('every slot is free again after its thread died, many deaths in a row', async () => {
  await withPool({ threadCount: 2 }, async ({ pool, counters, readNumbers }) => {
    for (let death = 1; death <= 6; death++) {
      assert.ok(isLost(await send(pool, scriptBody({ ...spans(death), then: 'exit' }))));
      await until(() => counters.total('decode_workers_lost') === death);
    }
    const admissions = await Promise.all(
      Array.from({ length: 20 }, (_, number) => send(pool, scriptBody({ ...spans(number), busyMs: 5 }))),
    );
    assert.ok(admissions.every((admission) => admission.kind === 'accepted'));
    assert.equal(readNumbers().length, 20);
    assert.equal(pool.aliveThreadCount, 2);
  });
});

test('the other thread’s bodies are not touched by a death', async () => {
  await withPool({ threadCount: 2 }, async ({ pool }) => {
    const slow = send(pool, scriptBody({ ...spans(1), busyMs: 300 }));
    await new Promise((resolve) => setImmediate(resolve));
    const killer = send(pool, scriptBody({ then: 'exit' }));
    assert.ok(isLost(await killer));
    assert.equal((await slow).kind, 'accepted');
  });
});

test('a thread that dies between tasks is replaced, and nobody is answered wrongly', async () => {
  await withPool({}, async ({ pool, counters }) => {
    assert.equal((await send(pool, scriptBody({ ...spans(1), then: 'throw-later' }))).kind, 'accepted');
    await until(() => counters.total('decode_workers_lost') === 1 && pool.aliveThreadCount === 1);
    assert.equal((await send(pool, scriptBody(spans(2)))).kind, 'accepted');
  });
});

test('what a dying thread had kept back is not published by its successor', async () => {
  await withPool({ shardCount: 1, ringBytes: 4096 }, async ({ pool, readNumbers }) => {
    assert.ok(isLost(await send(pool, scriptBody({ ...spans(1, 2, 3), then: 'exit' }))));
    assert.equal((await send(pool, scriptBody(spans(4)))).kind, 'accepted');
    assert.deepEqual(readNumbers(), [4]);
  });
});

function isSetAside(admission: Admission): boolean {
  return admission.kind === 'refused' && admission.code === 'set-aside';
}

for (const { name, then, settings } of deaths) {
  test(`a body of which a thread ${name} twice is set aside whole, and is not looked at again`, async () => {
    await withPool(settings ?? {}, async ({ pool, setAside, counters, readNumbers }) => {
      const poison = scriptBody({ ...spans(7), then, message: 'x'.repeat(10_000) });
      const harmless = scriptBody({ ...spans(7), message: 'x'.repeat(10_000) });
      assert.ok(isLost(await send(pool, poison, { owned: true })));
      const options = { apiKey: 'whose', project: 'which', receivedUs: 77, owned: true };
      const verdict = await send(pool, poison, options);
      assert.ok(isSetAside(verdict), JSON.stringify(verdict));
      const [kept] = setAside;
      assert.ok(kept !== undefined);
      const { bytes, hash, reason, ...about } = kept;
      assert.deepEqual(Buffer.from(bytes), poison);
      assert.equal(hash, createHash('sha256').update(poison).digest('hex'));
      assert.match(reason, /two decode threads died/);
      assert.deepEqual(about, {
        encoding: 'json',
        coding: 'identity',
        apiKey: 'whose',
        project: 'which',
        receivedUs: 77,
      });
      await until(() => counters.total('decode_workers_lost') === 2);
      for (let again = 0; again < 3; again++) assert.ok(isSetAside(await send(pool, poison)));
      assert.equal((await send(pool, harmless)).kind, 'accepted');
      assert.deepEqual(readNumbers(), [7]);
      assert.equal(counters.total('decode_workers_lost'), 2);
      assert.equal(counters.total('bodies_set_aside'), 1);
      assert.equal(setAside.length, 1);
    });
  });
}

test('poison among others costs them an answer, and twice only itself', async () => {
  await withPool({}, async ({ pool, setAside, readNumbers }) => {
    const poison = scriptBody({ then: 'exit' });
    const others = [1, 2, 3].map((number) => scriptBody(spans(number)));
    for (let round = 0; round < 4; round++) {
      const admissions = await Promise.all([poison, ...others].map((bytes) => send(pool, bytes)));
      const [verdict] = admissions;
      assert.ok(verdict !== undefined);
      assert.ok(round === 0 ? isLost(verdict) : isSetAside(verdict), JSON.stringify(verdict));
      // In the round of the second death they may have stood behind the poison in the same thread's hands.
      const mayBeLost = round < 2;
      for (const admission of admissions.slice(1)) {
        assert.ok(admission.kind === 'accepted' || (mayBeLost && isLost(admission)), JSON.stringify(admission));
      }
    }
    assert.equal(setAside.length, 1);
    assert.ok(readNumbers().length >= 6);
  });
});

test('copies of a suspect that come at the same time wait for the first, and none costs a third thread', async () => {
  await withPool({ threadCount: 2 }, async ({ pool, counters, setAside }) => {
    const poison = scriptBody({ then: 'exit' });
    assert.ok(isLost(await send(pool, poison)));
    const admissions = await Promise.all(Array.from({ length: 5 }, () => send(pool, poison)));
    assert.equal(admissions.filter(isSetAside).length, 1);
    assert.equal(admissions.filter(isLost).length, 4);
    assert.ok(isSetAside(await send(pool, poison)));
    await until(() => counters.total('decode_workers_lost') === 2);
    assert.equal(setAside.length, 1);
  });
});

test('a suspect that is decoded the second time is suspect no more', async () => {
  const marker = join(mkdtempSync(join(tmpdir(), 'once-')), 'died');
  await withPool({}, async ({ pool, counters }) => {
    const body = scriptBody({ ...spans(1), then: 'exit', unlessFile: marker });
    assert.ok(isLost(await send(pool, body)));
    writeFileSync(marker, '');
    assert.equal((await send(pool, body)).kind, 'accepted');
    rmSync(marker);
    assert.ok(isLost(await send(pool, body)));
    writeFileSync(marker, '');
    assert.equal((await send(pool, body)).kind, 'accepted');
    assert.equal(counters.total('bodies_set_aside'), 0);
  });
});

test('poison that cannot be kept is refused all the same, and the sender is told', async () => {
  const setAside = (): Promise<void> => Promise.reject(new Error('the disk is full'));
  await withPool({ setAside }, async ({ pool, logLines }) => {
    const poison = scriptBody({ then: 'exit' });
    assert.ok(isLost(await send(pool, poison)));
    const verdict = await send(pool, poison);
    assert.ok(isSetAside(verdict) && verdict.kind === 'refused');
    assert.match(verdict.message, /could not be kept/);
    assert.ok(logLines.some((line) => line.message === 'a dead letter could not be written'));
  });
});
