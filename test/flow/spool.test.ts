/** The spool, as the shipper's thread uses it: a backend that is away, threads that end in every way, keys apart. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { settleHome } from '../../src/upload/spool/home.ts';
import type { ShipSettings } from '../../src/upload/settings.ts';
import type { SpoolWishes } from '../../src/upload/spool/settings.ts';
import { startCountingBackend } from './countingbackend.ts';
import type { CountingBackend, Reply } from './countingbackend.ts';
import { assertSumLaw, name, traceName, withShipper } from './shipperrig.ts';
import type { Rig } from './shipperrig.ts';

let root = '';

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'spool-'));
});

after(() => rm(root, { recursive: true }));

async function newSpool(wishes: Partial<SpoolWishes> = {}): Promise<SpoolWishes> {
  const folder = await mkdtemp(join(root, 'home-'));
  await settleHome(folder, 1);
  return { folder, maxBytes: 64 << 20, maxDeadBytes: 8 << 20, maxAgeMs: 3_600_000, ...wishes };
}

const away = (): Reply => ({ status: 503 });

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** All are published together, so that batches are full but for each key's last one, however late a thread gets its turn. */
function send(rig: Rig, from: number, count: number, key = (_: number) => 'key-one'): void {
  const numbers = Array.from({ length: count }, (_, i) => from + i);
  assert.ok(rig.send(...numbers.map((i) => ({ key: key(i), trace: traceName(i), span: name(i) }))));
}

/** One after the other on the same folder and backend. */
function generation(
  spool: SpoolWishes,
  backend: CountingBackend,
  use: (rig: Rig) => Promise<void>,
  settings: Partial<ShipSettings> = {},
): Promise<void> {
  return withShipper({ batchSize: 10, maxRetries: 1, spool, ...settings }, use, 1 << 20, backend);
}

const namesIn = (backend: CountingBackend): string[] => backend.runs.map(({ run }) => run['name'] as string);
const filesIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder, { recursive: true })).filter((file) => /\.(seg|open)$/.test(file));

test('a backend that is away fills the disk instead of memory, and gets everything, oldest first, when it is back', async () => {
  const spool = await newSpool();
  const backend = await startCountingBackend();
  await generation(spool, backend, async (rig) => {
    backend.reply = away;
    send(rig, 0, 300);
    // No batch is in memory, but for those that are tried again from time to time.
    await until(() => rig.gauges.get('spooledRuns') === 300 && rig.gauges.get('heldBytes') === 0);
    assertSumLaw(rig, 300);
    const [file = ''] = await filesIn(spool.folder);
    assert.equal((await stat(join(spool.folder, file))).mode & 0o777, 0o600);
    assert.equal((await stat(join(spool.folder, 'shard-0'))).mode & 0o777, 0o700);

    backend.reply = () => ({ status: 202 });
    await backend.until(() => backend.runs.length >= 300);
    await until(() => rig.gauges.get('spooledRuns') === 0);
    assert.deepEqual(namesIn(backend).sort(), Array.from({ length: 300 }, (_, i) => name(i)).sort());
    assert.equal(rig.counters.total('runs_replayed') >= 290, true);
    await rig.drain();
    assertSumLaw(rig, 300);
    assert.deepEqual(await filesIn(spool.folder), [], 'nothing is left on disk');
  });
  await backend.close();
});

test('what cannot leave at the end goes to disk and is sent by the next process, in the same uploads', async () => {
  const spool = await newSpool();
  const backend = await startCountingBackend();
  backend.reply = away;
  const bodies: string[] = [];
  await generation(spool, backend, async (rig) => {
    send(rig, 0, 95);
    await backend.until(() => backend.uploads.length > 0);
    const { undelivered } = await rig.drain();
    assert.deepEqual(undelivered, { unreachable: 0, refused: 0, unfinished: 0 });
    assert.equal(rig.gauges.get('spooledRuns'), 95);
    assertSumLaw(rig, 95);
  });
  backend.reply = (runs) => {
    bodies.push(runs.map(({ run }) => run['name']).join());
    return { status: 202 };
  };
  await generation(spool, backend, async (rig) => {
    await backend.until(() => backend.runs.length >= 95);
    await rig.drain();
    assert.equal(rig.counters.total('runs_inherited'), 95);
    assertSumLaw(rig, 0);
  });
  assert.equal(bodies.length, 10, 'batches of ten, as they were');
  assert.deepEqual(namesIn(backend).sort(), Array.from({ length: 95 }, (_, i) => name(i)).sort());
  assert.deepEqual(await filesIn(spool.folder), []);
  await backend.close();
});

test('a thread that is killed during an outage loses nothing that was in the spool', async () => {
  const spool = await newSpool();
  const backend = await startCountingBackend();
  backend.reply = away;
  await generation(spool, backend, async (rig) => {
    send(rig, 0, 200);
    await until(() => rig.gauges.get('spooledRuns') === 200);
    await rig.kill();
  });
  backend.reply = () => ({ status: 202 });
  await generation(spool, backend, async (rig) => {
    await backend.until(() => backend.runs.length >= 200);
    await rig.drain();
  });
  assert.deepEqual(new Set(namesIn(backend)).size, 200);
  await backend.close();
});

test('a batch that the backend took without our hearing of it is known again after a kill: 409 is delivered', async () => {
  const spool = await newSpool();
  const backend = await startCountingBackend();
  backend.reply = away;
  await generation(spool, backend, async (rig) => {
    send(rig, 0, 10);
    await until(() => rig.gauges.get('spooledRuns') === 10);
    // From the spool it is tried again, arrives, and no answer comes.
    const before = backend.uploads.length;
    backend.reply = () => null;
    await backend.until(() => backend.uploads.length > before);
    await rig.kill();
  });
  const before = backend.uploads.length;
  backend.reply = () => ({ status: 409 });
  await generation(spool, backend, async (rig) => {
    await until(() => rig.counters.total('runs_delivered') === 10);
    await rig.drain();
    assert.equal(rig.counters.total('runs_delivered_again'), 10);
    assert.equal(rig.counters.total('batches_split'), 0);
  });
  assert.equal(backend.uploads.length, before + 1);
  await backend.close();
});

test('a revoked key and an exhausted quota wait on disk while another key goes on', async () => {
  const spool = await newSpool();
  const backend = await startCountingBackend();
  const statusOf: Record<string, number> = { 'key-0': 401, 'key-1': 429, 'key-2': 202 };
  backend.reply = (runs) => ({ status: statusOf[runs[0]?.apiKey ?? ''] ?? 500 });
  await generation(spool, backend, async (rig) => {
    for (let round = 0; round < 10; round++) {
      send(rig, round * 90, 90, (i) => `key-${i % 3}`);
      await backend.until(() => backend.runs.length >= (round + 1) * 30);
    }
    await until(() => rig.gauges.get('spooledRuns') === 600);
    assert.ok(backend.runs.every(({ apiKey }) => apiKey === 'key-2'));
    statusOf['key-0'] = 202;
    statusOf['key-1'] = 202;
    await backend.until(() => backend.runs.length >= 900);
    await rig.drain();
    assertSumLaw(rig, 900);
  });
  assert.equal(new Set(namesIn(backend)).size, 900);
  for (const { apiKey, run } of backend.runs) {
    assert.equal(apiKey, `key-${(Number.parseInt(run['name'] as string, 16) - 1) % 3}`);
  }
  await backend.close();
});

test('when the backend is back, each key begins with one upload, and many keys do not come all at once', async () => {
  const spool = await newSpool();
  const backend = await startCountingBackend();
  backend.reply = away;
  const keys = 12;
  await generation(
    spool,
    backend,
    async (rig) => {
      send(rig, 0, 480, (i) => `key-${i % keys}`);
      await until(() => rig.gauges.get('spooledRuns') === 480);
      await rig.drain();
    },
    { batchSize: 4 },
  );
  const inFlight = new Map<string, number>();
  const most = new Map<string, number>();
  let total = 0;
  let mostTotal = 0;
  backend.reply = async (runs) => {
    const { apiKey = '' } = runs[0] ?? {};
    inFlight.set(apiKey, (inFlight.get(apiKey) ?? 0) + 1);
    mostTotal = Math.max(mostTotal, ++total);
    const isFirst = !most.has(apiKey);
    most.set(apiKey, Math.max(most.get(apiKey) ?? 0, inFlight.get(apiKey) ?? 0));
    await new Promise((resolve) => setTimeout(resolve, 20));
    if (isFirst) assert.equal(inFlight.get(apiKey), 1, 'nothing goes beside the first upload of a key');
    inFlight.set(apiKey, (inFlight.get(apiKey) ?? 0) - 1);
    total--;
    return { status: 202 };
  };
  await generation(
    spool,
    backend,
    async (rig) => {
      await backend.until(() => backend.runs.length >= 480);
      await rig.drain();
    },
    { batchSize: 4, uploadConcurrency: 8 },
  );
  assert.equal(most.size, keys);
  assert.ok(mostTotal <= 8, `${mostTotal} at a time`);
  assert.equal(new Set(namesIn(backend)).size, 480);
  await backend.close();
});

test('a slow backend: beyond half of the budget new batches wait on disk, and the ring is read on', async () => {
  const spool = await newSpool();
  const backend = await startCountingBackend();
  await generation(
    spool,
    backend,
    async (rig) => {
      let release: (reply: Reply) => void = () => undefined;
      const released = new Promise<Reply>((resolve) => (release = resolve));
      backend.reply = () => released;
      const pad = (i: number): string =>
        Array.from({ length: 600 }, (_, j) => ((Math.sin(i * 7919 + j) * 1e9) & 255).toString(16)).join('');
      for (let i = 0; i < 400; i++) {
        while (!rig.send({ trace: traceName(i), span: name(i), parts: { Inputs: `"${pad(i)}"` } })) {
          await new Promise((resolve) => setImmediate(resolve));
        }
      }
      await until(() => rig.counters.total('records_read') === 400 && rig.gauges.get('spooledRuns') > 200);
      // What is on its way to the disk is in memory until it is there.
      await until(() => rig.gauges.get('heldBytes') < 60_000);
      release({ status: 202 });
      backend.reply = () => ({ status: 202 });
      await backend.until(() => backend.runs.length >= 400);
      await rig.drain();
      assertSumLaw(rig, 400);
    },
    { batchSize: 5, heldBytes: 60_000, attemptTimeoutMs: 600_000, headersTimeoutMs: 600_000 },
  );
  assert.equal(new Set(namesIn(backend)).size, 400);
  await backend.close();
});

test('of every request the records are settled once they are on disk', async () => {
  const spool = await newSpool();
  const backend = await startCountingBackend();
  backend.reply = away;
  await generation(
    spool,
    backend,
    async (rig) => {
      for (let i = 0; i < 40; i++) rig.send({ trace: traceName(i), span: name(i), source: 7 });
      await until(() => rig.settled.get(7) === 40);
      assert.equal(rig.gauges.get('spooledRuns'), 40);
      backend.reply = () => ({ status: 202 });
      await backend.until(() => backend.runs.length >= 40);
      await rig.drain();
      assert.equal(rig.settled.get(7), 40, 'not told again when they are delivered');
    },
    { followSources: true },
  );
  await backend.close();
});
