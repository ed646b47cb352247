/** The shipper's thread as shipped: real rings, a real worker, real sockets and zstd. */
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { START_US, TRACE_UUID, makeRecord } from '../unit/assemble/fakes.ts';
import { assertSumLaw, name, traceName, withShipper } from './shipperrig.ts';

test('a trace that comes in pieces, children first, arrives as one tree', async () => {
  await withShipper({}, async (rig) => {
    rig.send({ span: name(2), parent: name(1), startUs: START_US + 2, parts: { Inputs: '{"q":"héllo"}' } });
    rig.send({ span: name(1), parent: name(0), startUs: START_US + 1 });
    rig.send({ span: name(0) });
    const { backend } = rig;
    await backend.until(() => backend.runs.length === 3);
    const byName = new Map(backend.runs.map((arrived) => [arrived.run['name'], arrived]));
    const [root, child, leaf] = [byName.get(name(0)), byName.get(name(1)), byName.get(name(2))];
    assert.ok(root && child && leaf);
    assert.equal(root.run['id'], TRACE_UUID);
    assert.equal(child.run['parent_run_id'], TRACE_UUID);
    assert.equal(leaf.run['parent_run_id'], child.run['id']);
    assert.equal(leaf.run['dotted_order'], `${String(child.run['dotted_order'])}.20250519T171915185225Z${leaf.id}`);
    assert.equal(leaf.run['start_time'], '2025-05-19T17:19:15.185225Z');
    assert.equal(leaf.fields['inputs'], '{"q":"héllo"}');
    const { undelivered } = await rig.drain();
    assert.deepEqual(undelivered, { unreachable: 0, refused: 0, unfinished: 0 });
    assertSumLaw(rig, 3);
  });
});

test('of every request it is told how many of its records are settled: delivered, refused for good, or dropped', async () => {
  await withShipper({ batchSize: 7, followSources: true, filterNonGenAi: true }, async (rig) => {
    const { backend } = rig;
    let isOpen = false;
    backend.reply = (runs) => {
      if (!isOpen) return { status: 503 };
      return { status: runs.some(({ run }) => run['name'] === name(9)) ? 422 : 200 };
    };
    for (let i = 0; i < 40; i++) {
      rig.send({ trace: traceName(i), span: name(i), source: 1 + (i % 3) });
      if (i % 4 === 0) rig.send({ trace: traceName(i), span: name(i), source: 4 }); // sent twice
      const noRun = { trace: traceName(i), span: name(100 + i), parent: name(i), source: 5 };
      if (i % 5 === 0) rig.send({ ...noRun, genAi: false }, { ...noRun, span: name(200 + i), noRun: 'dropped' });
    }
    rig.send({ trace: traceName(50), span: name(50) }); // of no request that is followed
    await backend.until(() => rig.gauges.get('downTenants') === 1);
    // Not 4 either: its spans are those of others that are still in memory.
    assert.deepEqual([...rig.settled.keys()], [5], 'nothing that the backend has not taken');
    isOpen = true;
    await rig.drain();
    assert.deepEqual(
      [...rig.settled].sort(([a], [b]) => a - b),
      [
        [1, 14],
        [2, 13],
        [3, 13],
        [4, 10],
        [5, 16],
      ],
    );
  });
});

test('two keys interleaved never share an upload', async () => {
  await withShipper({}, async (rig) => {
    for (let i = 0; i < 300; i++) rig.send({ key: `key-${i % 2}`, trace: traceName(i), span: name(i) });
    const { backend } = rig;
    await backend.until(() => backend.runs.length === 300);
    for (const { apiKey, run } of backend.runs) {
      assert.equal(apiKey, `key-${(Number.parseInt(run['name'] as string, 16) - 1) % 2}`);
    }
    await rig.drain();
    assertSumLaw(rig, 300);
  });
});

test('a backend that is away for a while gets everything once it is back, each run once', async () => {
  await withShipper({ batchSize: 10, maxRetries: 1 }, async (rig) => {
    const { backend } = rig;
    let status = 503;
    backend.reply = () => ({ status });
    for (let i = 0; i < 200; i++) rig.send({ trace: traceName(i), span: name(i) });
    await backend.until(() => rig.gauges.get('downTenants') === 1);
    status = 200;
    await backend.until(() => backend.runs.length >= 200);
    assert.equal(new Set(backend.runs.map(({ id }) => id)).size, 200);
    await rig.drain();
    assert.equal(backend.runs.length, 200);
    assertSumLaw(rig, 200);
  });
});

test('a backend that hangs fills the held budget and then the ring; afterwards all arrives', async () => {
  const ringBytes = 1 << 16;
  const settings = { batchSize: 5, heldBytes: 60_000, attemptTimeoutMs: 60_000 };
  await withShipper(
    settings,
    async (rig) => {
      const { backend, gauges } = rig;
      let release: (reply: { status: number }) => void = () => undefined;
      const released = new Promise<{ status: number }>((resolve) => (release = resolve));
      backend.reply = () => released;
      // Hex digits do not compress below half.
      const noise = (i: number): string =>
        Array.from({ length: 600 }, (_, j) => ((Math.sin(i * 7919 + j) * 1e9) & 255).toString(16)).join('');
      let sent = 0;
      for (;;) {
        if (rig.send({ trace: traceName(sent), span: name(sent), parts: { Inputs: `"${noise(sent)}"` } })) sent++;
        else if (gauges.get('fullSinceMs') > 0 && gauges.get('reading') === 0) break;
        // The backend lives on this thread.
        else await new Promise((resolve) => setImmediate(resolve));
      }
      await backend.until(() => backend.uploads.length === 6);
      assert.equal(gauges.get('reading'), 0);
      assert.ok(gauges.get('fullSinceMs') > 0);
      assert.ok(gauges.get('heldBytes') < 60_000 + 100_000, `${gauges.get('heldBytes')} held`);
      release({ status: 200 });
      await backend.until(() => backend.runs.length >= sent - 5);
      await rig.drain();
      assert.equal(backend.runs.length, sent);
      assertSumLaw(rig, sent);
    },
    ringBytes,
  );
});

test('a record larger than a ring comes by message', async () => {
  await withShipper({}, async (rig) => {
    const record = makeRecord({ span: name(1), parent: name(0), parts: { Outputs: `"${'x'.repeat(3 << 20)}"` } });
    const buffer = new Uint8Array(record).buffer;
    rig.tell({ kind: 'oversize', record: buffer }, [buffer]);
    rig.send({ span: name(0) });
    const { backend } = rig;
    await backend.until(() => backend.runs.length === 2);
    const large = backend.runs.find((arrived) => arrived.fields['outputs'] !== undefined);
    assert.equal(large?.fields['outputs']?.length, (3 << 20) + 2);
    assert.equal(large?.run['parent_run_id'], TRACE_UUID);
    await rig.drain();
    assertSumLaw(rig, 2);
  });
});

test('a drain reads what is left, sends orphans under a placeholder, and delivers', async () => {
  await withShipper({ flushIntervalMs: 60_000 }, async (rig) => {
    for (let i = 0; i < 50; i++) rig.send({ span: name(i + 1), parent: name(0) });
    await rig.drain();
    assert.equal(rig.backend.runs.length, 50);
    assert.ok(rig.backend.runs.every(({ run }) => run['parent_run_id'] === TRACE_UUID));
    assert.equal(rig.counters.total('runs_orphaned'), 50);
    assertSumLaw(rig, 50);
  });
});

test('a drain ends at its deadline and says why runs are left', async () => {
  await withShipper({ batchSize: 10 }, async (rig) => {
    const { backend } = rig;
    backend.reply = (runs) => ({ status: runs[0]?.apiKey === 'revoked' ? 401 : 503 });
    for (let i = 0; i < 20; i++)
      rig.send({ key: i % 2 === 0 ? 'revoked' : 'good', trace: traceName(i), span: name(i) });
    // Why each is left must be known before the deadline.
    await backend.until(() => rig.gauges.get('downTenants') === 2);
    const { undelivered } = await rig.drain(500);
    assert.deepEqual(undelivered, { unreachable: 10, refused: 10, unfinished: 0 });
    assertSumLaw(rig, 20);
  });
});

test('a second stop ends a drain at once', async () => {
  await withShipper({}, async (rig) => {
    rig.backend.reply = () => null;
    rig.send({ span: name(0) });
    await rig.backend.until(() => rig.backend.uploads.length === 1);
    const drained = rig.drain(3_600_000);
    rig.tell({ kind: 'drain', deadlineMs: 0 });
    assert.deepEqual((await drained).undelivered, { unreachable: 0, refused: 0, unfinished: 1 });
    assertSumLaw(rig, 1);
  });
});

test('resends, bad runs and runs too large are each counted once', async () => {
  await withShipper({ batchSize: 25 }, async (rig) => {
    const { backend } = rig;
    const bad = new Set([name(7), name(33)]);
    backend.reply = (runs) => ({ status: runs.some(({ run }) => bad.has(run['name'] as string)) ? 422 : 200 });
    const sketches = Array.from({ length: 100 }, (_, i) => ({
      trace: traceName(i >> 2),
      span: name(i),
      parent: i % 4 === 0 ? null : name(i & ~3),
    }));
    rig.send(...sketches.toReversed());
    rig.send(...sketches.slice(0, 30));
    await rig.drain();
    assert.equal(backend.runs.length, 98);
    assert.equal(rig.counters.total('dropped_duplicate'), 30);
    assert.equal(rig.counters.total('dropped_rejected-by-backend'), 2);
    assertSumLaw(rig, 130);
  });
});
