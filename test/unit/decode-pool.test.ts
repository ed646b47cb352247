import assert from 'node:assert/strict';
import test from 'node:test';
import { deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import type { Admission } from '../../src/core/outcome.ts';
import { setShardState, ShardState } from '../../src/ring/state.ts';
import { createFixture, send, type Fixture, type FixtureSettings } from './decodefixture.ts';
import { scriptBody, type ScriptSpan } from './fakedecoder.ts';

const DEADLINE_MS = 10_000;

async function withPool(settings: FixtureSettings, run: (fixture: Fixture) => Promise<void>): Promise<void> {
  const fixture = createFixture(settings);
  await fixture.pool.start();
  try {
    await run(fixture);
  } finally {
    await fixture.pool.stop(DEADLINE_MS);
    assert.equal(fixture.pool.heldBodyCount, 0);
    assert.equal(fixture.pool.heldBytes, 0);
    assert.equal(fixture.pool.aliveThreadCount, 0);
  }
}

function spans(...numbers: number[]): ScriptSpan[] {
  return numbers.map((number) => ({ trace: number, number, bytes: 200 }));
}

function accepted(acceptedCount: number, rejectedCount = 0, message = ''): Admission {
  return { kind: 'accepted', acceptedCount, rejectedCount, message };
}

test('a body is answered after its records are in the rings of their shards', async () => {
  await withPool({}, async ({ pool, readNumbers, counters }) => {
    assert.deepEqual(await send(pool, scriptBody({ spans: spans(1, 2, 3) })), accepted(3));
    assert.deepEqual(readNumbers(), [1, 2, 3]);
    assert.equal(counters.total('records_written'), 3);
    assert.equal(counters.total('decode_bodies'), 1);
    assert.ok(counters.total('record_bytes') >= 600);
  });
});

test('the decoder is told everything that the acceptor knows about the body', async () => {
  await withPool({}, async ({ pool }) => {
    const told = async (options: Parameters<typeof send>[2]): Promise<unknown> => {
      const admission = await send(pool, scriptBody({ echo: true }), options);
      assert.equal(admission.kind, 'accepted');
      return JSON.parse(admission.message);
    };
    const answers = await Promise.all([
      told({ encoding: 'json', apiKey: 'first', project: 'one', receivedUs: 1.7e15 + 0.5 }),
      told({ encoding: 'protobuf', apiKey: 'second', project: null, receivedUs: 3 }),
      told({ encoding: 'protobuf', apiKey: 'first', project: 'ünïcode', receivedUs: 4, owned: true }),
    ]);
    assert.deepEqual(answers, [
      { encoding: 'json', apiKey: 'first', project: 'one', receivedUs: 1.7e15 + 0.5, sourceNumber: 0 },
      { encoding: 'protobuf', apiKey: 'second', project: null, receivedUs: 3, sourceNumber: 0 },
      { encoding: 'protobuf', apiKey: 'first', project: 'ünïcode', receivedUs: 4, sourceNumber: 0 },
    ]);
  });
});

test('compressed bodies arrive decompressed, whichever the coding', async () => {
  await withPool({}, async ({ pool, readNumbers }) => {
    const body = scriptBody({ spans: spans(7) });
    for (const owned of [false, true]) {
      assert.deepEqual(await send(pool, gzipSync(body), { coding: 'gzip', owned }), accepted(1));
      assert.deepEqual(await send(pool, deflateSync(body), { coding: 'deflate', owned }), accepted(1));
      assert.deepEqual(await send(pool, zstdCompressSync(body), { coding: 'zstd', owned }), accepted(1));
    }
    assert.equal(readNumbers().length, 6);
  });
});

test('a body that is too large after decompression, or not what it says, is refused', async () => {
  await withPool({ thread: { maxBodyBytes: 10_000 } }, async ({ pool, readNumbers }) => {
    const bomb = gzipSync(Buffer.alloc(1_000_000));
    const refusals = await Promise.all([
      send(pool, bomb, { coding: 'gzip' }),
      send(pool, Buffer.alloc(10_001, 'x')),
      send(pool, Buffer.from('not compressed at all'), { coding: 'zstd' }),
      send(pool, gzipSync(scriptBody({ spans: spans(1) })).subarray(0, 40), { coding: 'gzip' }),
    ]);
    assert.deepEqual(
      refusals.map((admission) => admission.kind === 'refused' && admission.code),
      ['body-too-large', 'body-too-large', 'malformed', 'malformed'],
    );
    assert.deepEqual(await send(pool, scriptBody({ spans: spans(1) })), accepted(1));
    assert.deepEqual(readNumbers(), [1]);
  });
});

test('nothing of a malformed body stays, and its neighbours in the task do not notice', async () => {
  await withPool({}, async ({ pool, readNumbers, counters, oversize }) => {
    const admissions = await Promise.all([
      send(pool, scriptBody({ spans: spans(1), rejectedCount: 2, message: 'two spans are bad' })),
      send(pool, scriptBody({ spans: [...spans(2), { trace: 1, number: 3, bytes: 50_000 }], then: 'malformed' })),
      send(pool, scriptBody({ spans: spans(4), then: 'throw' })),
      send(pool, scriptBody({ spans: spans(5) })),
    ]);
    assert.deepEqual(admissions, [
      accepted(1, 2, 'two spans are bad'),
      { kind: 'refused', code: 'malformed', message: 'as the script says' },
      { kind: 'refused', code: 'internal', message: 'internal error while decoding' },
      accepted(1),
    ]);
    assert.deepEqual(readNumbers(), [1, 5]);
    assert.deepEqual(oversize, []);
    assert.equal(counters.total('records_written'), 2);
    assert.equal(counters.total('oversize_records'), 0);
  });
});

test('a defect of the decoder is logged with its stack, and not told to the client', async () => {
  await withPool({}, async ({ pool, logLines }) => {
    await send(pool, scriptBody({ then: 'throw' }));
    assert.equal(logLines.length, 1);
    assert.match(JSON.stringify(logLines[0]), /TypeError: defect in the decoder.*fakedecoder/);
  });
});

test('bodies that arrive while the threads are busy travel together', async () => {
  await withPool({}, async ({ pool, counters, readNumbers }) => {
    const bodies = Array.from({ length: 500 }, (_, number) => scriptBody({ spans: spans(number) }));
    const admissions = await Promise.all(bodies.map((body) => send(pool, body)));
    assert.ok(admissions.every((admission) => admission.kind === 'accepted'));
    assert.equal(counters.total('decode_bodies'), 500);
    assert.ok(counters.total('decode_tasks') <= 4, `${counters.total('decode_tasks')} tasks`);
    assert.deepEqual(
      readNumbers(),
      bodies.map((_, number) => number),
    );
  });
});

test('large, empty and own-buffer bodies mix with small ones', async () => {
  await withPool({ ringBytes: 1 << 20, pool: { maxTaskBytes: 100_000 } }, async ({ pool, readNumbers }) => {
    const padding = 'x'.repeat(60_000);
    const sent: Promise<Admission>[] = [];
    for (let number = 0; number < 40; number++) {
      const message = number % 4 === 0 ? padding.repeat(number % 8 === 0 ? 3 : 1) : '';
      sent.push(send(pool, scriptBody({ spans: spans(number), message }), { owned: number % 3 === 0 }));
    }
    sent.push(send(pool, new Uint8Array(), {}), send(pool, new Uint8Array(), { owned: true }));
    const admissions = await Promise.all(sent);
    // The scripted decoder cannot parse nothing.
    assert.deepEqual(
      admissions.map((admission) => admission.kind),
      [...Array.from({ length: 40 }, () => 'accepted'), 'refused', 'refused'],
    );
    assert.equal(readNumbers().length, 40);
  });
});

test('a record larger than a ring takes is forwarded before its body is answered', async () => {
  await withPool({ ringBytes: 4096 }, async ({ pool, oversize, readNumbers, counters }) => {
    const script = { spans: [{ trace: 1, number: 9, bytes: 3000 }, ...spans(2)] };
    const admission = await send(pool, scriptBody(script));
    assert.deepEqual(admission, accepted(2));
    assert.deepEqual(readNumbers(), [2]);
    assert.equal(oversize.length, 1);
    const [entry] = oversize;
    assert.ok(entry);
    assert.equal(entry.shard, 1);
    assert.equal(new DataView(entry.record).getUint32(0, true), entry.record.byteLength);
    assert.equal(counters.total('oversize_records'), 1);
  });
});

test('oversize records are bounded: a body over the bound alone is too large, one that shares a task is busy', async () => {
  const settings = { ringBytes: 4096, thread: { maxOversizeBytes: 10_000 } };
  await withPool(settings, async ({ pool, oversize }) => {
    const large = (count: number): Buffer =>
      scriptBody({ spans: Array.from({ length: count }, (_, number) => ({ trace: 1, number, bytes: 4000 })) });
    const [first, second, third] = await Promise.all([
      send(pool, large(3)),
      send(pool, large(2)),
      send(pool, large(1)),
    ]);
    assert.ok(first?.kind === 'refused' && first.code === 'body-too-large');
    assert.equal(second?.kind, 'accepted');
    assert.ok(third?.kind === 'busy' && third.code === 'rings-full');
    assert.equal(oversize.length, 2);
    assert.equal((await send(pool, large(1))).kind, 'accepted', 'alone it fits');
  });
});

test('a full ring makes the body wait a while, then busy; the next is refused at once until the reader moves', async () => {
  const settings = { shardCount: 1, ringBytes: 4096, thread: { ringWaitMs: 200 } };
  await withPool(settings, async ({ pool, readNumbers, counters }) => {
    const full = scriptBody({ spans: spans(...Array.from({ length: 30 }, (_, number) => number)) });
    const startMs = performance.now();
    const first = await send(pool, full);
    assert.deepEqual(first, { kind: 'busy', code: 'rings-full', message: 'the pipeline is full', retryAfterMs: 1000 });
    assert.ok(performance.now() - startMs >= 190);
    assert.equal(counters.total('ring_full_waits'), 1);
    for (let i = 0; i < 3; i++) assert.equal((await send(pool, full)).kind, 'busy');
    assert.equal(counters.total('ring_full_waits'), 1, 'nobody waited again');
    assert.equal(readNumbers().length, 20, 'what had been published stays: 4096 bytes of 200');
    assert.deepEqual(await send(pool, scriptBody({ spans: spans(99) })), accepted(1));
    assert.deepEqual(readNumbers(), [99]);
  });
});

test('a reader that frees room in time lets a body larger than the ring through', async () => {
  const settings = { shardCount: 1, ringBytes: 4096, thread: { ringWaitMs: DEADLINE_MS, bodyWaitMs: DEADLINE_MS } };
  await withPool(settings, async ({ pool, readNumbers, counters }) => {
    const numbers = Array.from({ length: 200 }, (_, number) => number);
    let isDone = false;
    const sent = send(pool, scriptBody({ spans: spans(...numbers) })).finally(() => (isDone = true));
    const seen: number[] = [];
    while (!isDone) {
      seen.push(...readNumbers());
      await new Promise((resolve) => setImmediate(resolve));
    }
    seen.push(...readNumbers());
    assert.deepEqual(await sent, accepted(200));
    assert.deepEqual(seen, numbers);
    assert.ok(counters.total('ring_full_waits') > 0);
  });
});

test('a decoder that goes on after the sink refused is not believed', async () => {
  await withPool({ shardCount: 1, ringBytes: 1024, thread: { ringWaitMs: 1 } }, async ({ pool }) => {
    const body = scriptBody({ spans: spans(1, 2, 3, 4, 5, 6, 7, 8), then: 'ignore-full' });
    const admission = await send(pool, body);
    assert.ok(admission.kind === 'busy' && admission.code === 'rings-full');
  });
});

test('nobody waits for the ring of a shard without a reader', async () => {
  const settings = { shardCount: 1, ringBytes: 1024, thread: { ringWaitMs: 60_000, bodyWaitMs: 60_000 } };
  await withPool(settings, async ({ pool, rings }) => {
    setShardState(rings, 0, ShardState.Dead);
    const admission = await send(pool, scriptBody({ spans: spans(1, 2, 3, 4, 5, 6, 7, 8) }));
    assert.ok(admission.kind === 'busy' && admission.code === 'rings-full');
  });
});

test('beyond its byte limit the pool turns bodies away, though never a lone one', async () => {
  await withPool({ pool: { maxHeldBytes: 20_000 } }, async ({ pool }) => {
    const body = scriptBody({ message: 'x'.repeat(15_000) });
    const admissions = await Promise.all([send(pool, body), send(pool, body)]);
    assert.equal(admissions[0]?.kind, 'accepted');
    assert.ok(admissions[1]?.kind === 'busy' && admissions[1].code === 'in-flight-limit');
    const lone = await send(pool, scriptBody({ message: 'x'.repeat(50_000) }));
    assert.equal(lone.kind, 'accepted');
  });
});

test('before the start and while stopping the pool answers busy, and says why', async () => {
  const { pool } = createFixture();
  const early = await send(pool, scriptBody({}));
  assert.ok(early.kind === 'busy' && early.code === 'starting');
  await pool.start();
  const held = send(pool, scriptBody({ busyMs: 50 }));
  const stopping = pool.stop(DEADLINE_MS);
  const late = await send(pool, scriptBody({}));
  assert.ok(late.kind === 'busy' && late.code === 'draining');
  assert.equal((await held).kind, 'accepted', 'what was held is finished');
  await stopping;
  assert.equal(pool.aliveThreadCount, 0);
});

test('at the stop’s deadline the rest is answered busy, and the threads end in the midst of it', async () => {
  const { pool } = createFixture();
  await pool.start();
  const held = Array.from({ length: 3 }, () => send(pool, scriptBody({ busyMs: 60_000 })));
  await new Promise((resolve) => setImmediate(resolve));
  const startMs = performance.now();
  await pool.stop(50);
  assert.ok(performance.now() - startMs < 30_000, 'not after all of the 60 s');
  for (const admission of await Promise.all(held)) {
    assert.ok(admission.kind === 'busy' && admission.code === 'draining');
  }
});

test('stop is legal before start and twice', async () => {
  const { pool } = createFixture();
  await pool.stop(1000);
  await pool.stop(1000);
  const admission = await send(pool, scriptBody({}));
  assert.ok(admission.kind === 'busy' && admission.code === 'draining');
});

test('a thread that cannot get ready fails the start with its reason', async () => {
  const decoder = { genericAttributes: false, rootRunId: 'trace', converterModule: 'broken' } as const;
  const { pool } = createFixture({ threadCount: 2, thread: { decoder } });
  await assert.rejects(pool.start(), /the converter does not load/);
  await pool.stop(1000);
});

test('a pool with more threads than the rings have slots is a fault', () => {
  const { rings } = createFixture();
  assert.throws(() => createFixture({ threadCount: 2, thread: { rings } }), /2 decode threads for 1 ring slots/);
});
