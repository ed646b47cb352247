/** The spool's files: what a kill, a power cut, a bad disk and its limits do to them. Real files throughout. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { crc32 } from 'node:zlib';
import { nodeBackgroundDisk, type BackgroundDisk, type BackgroundFile } from '../../../src/core/disk.ts';
import { systemClock, type Clock } from '../../../src/core/lifecycle.ts';
import { silentLog } from '../../../src/core/log.ts';
import type { Tenant } from '../../../src/core/run.ts';
import { createGauges } from '../../../src/upload/gauges.ts';
import type { Gauges } from '../../../src/upload/gauges.ts';
import { createParcel, leaveOrigin, partsOf } from '../../../src/upload/parcel.ts';
import type { Parcel } from '../../../src/upload/parcel.ts';
import { unfollowed } from '../../../src/upload/settlements.ts';
import { lockHome, settleHome, shardFolder } from '../../../src/upload/spool/home.ts';
import { purge, takeInventory, type Entry } from '../../../src/upload/spool/inventory.ts';
import { readSegment } from '../../../src/upload/spool/folder.ts';
import { Spool, SpoolState } from '../../../src/upload/spool/spool.ts';
import type { SpoolSettings } from '../../../src/upload/spool/spool.ts';
import { backgroundFace, SimDisk } from '../../simdisk.ts';
import { CounterList } from '../assemble/fakes.ts';
import { codec, makeBatch, makeTenant } from './fakes.ts';

const root = mkdtempSync(join(tmpdir(), 'spool-'));
/** Unmounted before the folder goes. */
const mounted = mountTmpfs();
after(() => rmSync(root, { recursive: true, force: true }));

const ONE = makeTenant(1);
const TWO = makeTenant(2);

interface Rig {
  readonly spool: Spool;
  readonly counters: CounterList;
  readonly gauges: Gauges;
  /** Runs that were dropped, as the log tells. */
  saidDropCount(): number;
}

function newFolder(): string {
  return mkdtempSync(join(root, 'home-'));
}

async function open(
  folder: string,
  settings: Partial<SpoolSettings> = {},
  disk: BackgroundDisk = nodeBackgroundDisk,
  clock: Clock = systemClock,
): Promise<Rig> {
  const counters = new CounterList();
  const gauges = createGauges();
  let saidDropCount = 0;
  const warn = (fields: object, message: string): void => {
    if (message.includes('dropped')) saidDropCount += (fields as { runs: number }).runs;
  };
  const spool = new Spool(
    {
      folder,
      inbox: null,
      label: 's0',
      maxBytes: 64 << 20,
      maxAgeMs: 3_600_000,
      segmentBytes: 1 << 20,
      syncIntervalMs: 20,
      ...settings,
    },
    { settlements: unfollowed, counters, gauges, clock, log: { ...silentLog, warn }, disk },
  );
  await spool.open();
  return { spool, counters, gauges, saidDropCount: () => saidDropCount };
}

/** A batch that does not compress, named by its only run. */
function parcel(tenant: Tenant, name: string, payloadBytes = 10): Parcel {
  return createParcel(makeBatch(tenant, [name], payloadBytes));
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 2));
}

/** The key's oldest, read from disk if need be. */
async function take({ spool }: Rig, tenant: Tenant): Promise<Parcel> {
  for (;;) {
    const taken = spool.take(tenant);
    if (taken !== undefined) return taken;
    assert.ok(spool.count(tenant) > 0, 'nothing is left to take');
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

function nameOf({ batch }: Parcel): string {
  const plain = codec.decode(batch.body, batch.coding, batch.plainBytes).toString('utf8');
  return /name="post\.([^"]+)"/.exec(plain)?.[1] ?? '';
}

/** Everything that is left of the key, settled, in order. */
async function takeAll(rig: Rig, tenant: Tenant): Promise<string[]> {
  const names: string[] = [];
  while (rig.spool.count(tenant) > 0) {
    const taken = rig.spool.take(tenant);
    if (taken === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 1));
      continue;
    }
    names.push(nameOf(taken));
    rig.spool.settle(taken);
  }
  return names;
}

/** Its methods, for a file that is the same but for some. */
function bound(file: BackgroundFile): BackgroundFile {
  return {
    read: (offset, lengthBytes) => file.read(offset, lengthBytes),
    write: (pieces, offset) => file.write(pieces, offset),
    truncate: (bytes) => file.truncate(bytes),
    flush: () => file.flush(),
    size: () => file.size(),
    close: () => file.close(),
  };
}

const files = (folder: string): string[] => readdirSync(folder).sort();

/** One segment with these batches, as a clean stop leaves it; returns its path and where each record begins. */
async function segmentOf(names: readonly string[]): Promise<{ bytes: Buffer; offsets: number[]; file: string }> {
  const folder = newFolder();
  const rig = await open(folder);
  for (const name of names) rig.spool.offer(parcel(ONE, name));
  assert.deepEqual(await rig.spool.close(), []);
  const [file = ''] = files(folder);
  const offsets: number[] = [];
  for await (const { offset } of readSegment(join(folder, file))) offsets.push(offset);
  return { bytes: readFileSync(join(folder, file)), offsets, file };
}

test('what was spooled comes back in order, by key, with the same bytes, and leaves nothing behind', async () => {
  const folder = newFolder();
  const rig = await open(folder);
  const bodies = new Map<string, Buffer>();
  for (let i = 0; i < 50; i++) {
    const one = parcel(i % 2 === 0 ? ONE : TWO, `run-${i}`, 1000);
    bodies.set(`run-${i}`, Buffer.from(one.batch.body));
    rig.spool.offer(one);
  }
  await until(() => rig.gauges.get('spooledRuns') === 50);
  assert.equal(rig.spool.memoryBytes, 0);
  assert.deepEqual(await rig.spool.close(), []);

  const next = await open(folder);
  assert.equal(next.counters.of('runs_inherited'), 50);
  assert.deepEqual([...next.spool.tenants()].map(({ apiKey }) => apiKey).sort(), [ONE.apiKey, TWO.apiKey]);
  for (const tenant of [makeTenant(1), makeTenant(2)]) {
    for (let i = tenant.number - 1; i < 50; i += 2) {
      const taken = await take(next, tenant);
      assert.equal(nameOf(taken), `run-${i}`);
      assert.deepEqual(taken.batch.body, bodies.get(`run-${i}`));
      next.spool.settle(taken);
    }
  }
  await until(() => files(folder).length === 0);
  assert.equal(next.gauges.get('spoolBytes'), 0);
  await next.spool.close();
});

test('a file cut at any byte of its last record gives all before it, and counts the torn one', async () => {
  const { bytes, offsets, file } = await segmentOf(['a', 'b', 'c']);
  const last = offsets.at(-1) ?? 0;
  for (let end = last + 1; end < bytes.length; end++) {
    const folder = newFolder();
    writeFileSync(join(folder, file), bytes.subarray(0, end));
    const rig = await open(folder);
    assert.equal(rig.counters.of('spool_records_damaged'), 1, `cut at ${end}`);
    assert.equal(rig.counters.of('runs_inherited'), 2);
    assert.deepEqual(await takeAll(rig, ONE), ['a', 'b']);
    await rig.spool.close();
  }
});

test('a byte that changed anywhere costs its own record alone, and is never sent', async () => {
  const { bytes, offsets, file } = await segmentOf(['a', 'b', 'c']);
  const [, from = 0, to = 0] = offsets;
  for (let at = from; at < to; at++) {
    const inRecord = at - from;
    if (inRecord >= 20 && inRecord < 32) continue; // the state, and what is zero
    const folder = newFolder();
    const damaged = Buffer.from(bytes);
    damaged[at] = (damaged[at] ?? 0) ^ 0x40;
    writeFileSync(join(folder, file), damaged);
    const rig = await open(folder);
    assert.deepEqual(await takeAll(rig, ONE), ['a', 'c'], `byte ${inRecord}`);
    const { counters } = rig;
    const known = counters.of('spool_records_damaged') + counters.of('dropped_spool-damaged');
    assert.equal(known, 1, `byte ${inRecord}`);
    await rig.spool.close();
  }
});

test('zeros, a file of nothing and files that are not ours are survived and left alone or counted', async () => {
  const { bytes, file } = await segmentOf(['a', 'b']);
  const folder = newFolder();
  writeFileSync(join(folder, file), Buffer.concat([bytes, Buffer.alloc(5000)]));
  writeFileSync(join(folder, file.replace('s0', 's1')), '');
  writeFileSync(join(folder, 'notes.txt'), 'mine');
  const rig = await open(folder);
  assert.equal(rig.counters.of('spool_records_damaged'), 1);
  assert.deepEqual(await takeAll(rig, ONE), ['a', 'b']);
  await until(() => files(folder).length === 1);
  assert.deepEqual(files(folder), ['notes.txt']);
  await rig.spool.close();
});

test('what was attempted before a kill may have arrived; what was settled is not sent again', async () => {
  const folder = newFolder();
  const rig = await open(folder);
  for (const name of ['a', 'b', 'c']) rig.spool.offer(parcel(ONE, name));
  await until(() => rig.gauges.get('spooledRuns') === 3);
  rig.spool.settle(await take(rig, ONE));
  await take(rig, ONE); // under way, when it all ends
  await rig.spool.close();
  const next = await open(folder);
  const [first, second] = [await take(next, ONE), await take(next, ONE)];
  assert.deepEqual([nameOf(first), nameOf(second)], ['b', 'c']);
  assert.equal(first.repeated, true);
  await next.spool.close();
});

test('a batch that is put back goes back to its place; one that was split stays until both halves are settled', async () => {
  const folder = newFolder();
  const rig = await open(folder);
  for (const name of ['a', 'b', 'c']) rig.spool.offer(parcel(ONE, name));
  await until(() => rig.gauges.get('spooledRuns') === 3);
  const taken = await take(rig, ONE);
  rig.spool.offer(taken);
  const whole = await take(rig, ONE);
  assert.equal(nameOf(whole), 'a');
  const [left, right] = partsOf(whole, [whole.batch, whole.batch]);
  assert.ok(left && right);
  const settle = rig.spool.settle.bind(rig.spool);
  leaveOrigin(left, settle);
  assert.equal(rig.gauges.get('spooledRuns'), 3);
  rig.spool.offer(right); // spooled itself, it needs the whole no more
  await until(() => rig.counters.of('runs_spooled') === 4 && rig.gauges.get('spooledBatches') === 3);
  await rig.spool.close();
  const next = await open(folder);
  assert.deepEqual(await takeAll(next, ONE), ['b', 'c', 'a']);
  await next.spool.close();
});

test('beyond its limit the oldest go, counted; the disk never holds more', async () => {
  const folder = newFolder();
  const maxBytes = 1 << 20;
  // Segments are removed in the background: the disk is looked at when none is on its way out.
  let removingCount = 0;
  const disk: BackgroundDisk = {
    ...nodeBackgroundDisk,
    remove: async (path) => {
      removingCount++;
      await nodeBackgroundDisk.remove(path);
      removingCount--;
    },
  };
  const rig = await open(folder, { maxBytes, segmentBytes: 1 << 16 }, disk);
  const noise = (i: number): Parcel => {
    const batch = makeBatch(ONE, [`run-${i}`], 10);
    return createParcel({ ...batch, body: Buffer.alloc(20_000, i), coding: 'identity', plainBytes: 20_000 });
  };
  for (let i = 0; i < 200; i++) {
    rig.spool.offer(noise(i));
    await until(() => rig.spool.memoryBytes === 0 && removingCount === 0);
    const size = files(folder).reduce((sum, file) => sum + statSync(join(folder, file)).size, 0);
    assert.ok(size <= maxBytes + (1 << 16), `${size} bytes after ${i}`);
  }
  const dropped = rig.counters.of('dropped_spool-full');
  assert.ok(dropped > 130 && dropped < 170, `${dropped} dropped`);
  assert.equal(rig.spool.runCount, 200 - dropped);
  assert.equal(rig.gauges.get('spoolState'), SpoolState.Full);
  const oldest = await take(rig, ONE);
  assert.equal(oldest.batch.body[0], dropped, 'the newest are kept');
  await rig.spool.close();
  assert.equal(rig.saidDropCount(), dropped, 'the log tells of all of them');
});

test('a batch larger than the whole limit stays in memory and costs nothing that is on disk', async () => {
  const folder = newFolder();
  const rig = await open(folder, { maxBytes: 1 << 16, segmentBytes: 1 << 14 });
  for (const name of ['a', 'b', 'c']) {
    const batch = makeBatch(ONE, [name], 10);
    rig.spool.offer(
      createParcel({ ...batch, body: Buffer.alloc(10_000, name), coding: 'identity', plainBytes: 10_000 }),
    );
  }
  await until(() => rig.spool.memoryBytes === 0);
  const giant = { ...makeBatch(ONE, ['giant'], 10), body: Buffer.alloc(1 << 17, 'g'), plainBytes: 1 << 17 };
  rig.spool.offer(createParcel({ ...giant, coding: 'identity' }));
  // Behind it another one, which is written: then the large one is not on its way any more.
  rig.spool.offer(parcel(ONE, 'd'));
  await until(() => rig.spool.memoryBytes <= giant.body.length);
  assert.equal(rig.spool.memoryBytes, giant.body.length);
  assert.equal(rig.gauges.get('spooledRuns'), 4);
  assert.equal(rig.counters.of('dropped_spool-full'), 0);
  const bodies: string[] = [];
  for (let i = 0; i < 4; i++) {
    const taken = await take(rig, ONE);
    bodies.push(taken.batch.body.subarray(0, 1).toString());
    rig.spool.settle(taken);
  }
  assert.deepEqual(bodies, ['a', 'b', 'c', 'g']);
  assert.deepEqual(await takeAll(rig, ONE), ['d']);
  assert.deepEqual(await rig.spool.close(), []);
});

test('what waits longer than the limit goes, counted', async () => {
  const folder = newFolder();
  const rig = await open(folder);
  for (const name of ['a', 'b']) rig.spool.offer(parcel(ONE, name));
  await rig.spool.close();
  const next = await open(folder, { maxAgeMs: 1 }, undefined, { ...systemClock, nowMs: () => Date.now() + 1000 });
  await until(() => next.spool.totalCount === 0 || next.spool.take(ONE) !== undefined);
  assert.equal(next.counters.of('dropped_spool-expired'), 2);
  await until(() => files(folder).length === 0);
  await next.spool.close();
});

test('a folder that cannot be written keeps batches in memory, says so, and writes them when it can', async () => {
  const parent = newFolder();
  const folder = join(parent, 'spool');
  writeFileSync(folder, 'a file where the folder should be');
  const rig = await open(folder);
  assert.equal(rig.spool.isDurable, false);
  assert.equal(rig.gauges.get('spoolState'), SpoolState.Unwritable);
  rig.spool.offer(parcel(ONE, 'a'));
  rig.spool.offer(parcel(ONE, 'b'));
  assert.equal(nameOf(await take(rig, ONE)), 'a');
  assert.ok(rig.counters.of('spool_failures') > 0);
  rmSync(folder);
  await until(() => rig.gauges.get('spooledRuns') === 1);
  assert.equal(rig.gauges.get('spoolState'), SpoolState.Well);
  assert.equal(rig.spool.isDurable, true);
  await rig.spool.close();
  const next = await open(folder);
  assert.deepEqual(await takeAll(next, ONE), ['b']);
  await next.spool.close();
});

test('a folder that cannot be written at the end gives back what would be lost', async () => {
  const folder = join(newFolder(), 'spool');
  writeFileSync(folder, '');
  const rig = await open(folder);
  rig.spool.offer(parcel(ONE, 'a'));
  assert.deepEqual((await rig.spool.close()).map(nameOf), ['a']);
});

test(
  'a full disk keeps batches in memory until there is room again, and loses none',
  { skip: mounted === null && 'NO TMPFS: it cannot be mounted here' },
  async () => {
    const folder = join(mounted ?? '', 'spool');
    mkdirSync(folder);
    const rig = await open(folder);
    const names = Array.from({ length: 40 }, (_, i) => `run-${String(i).padStart(2, '0')}`);
    for (const name of names) {
      const batch = makeBatch(ONE, [name], 10);
      const { body } = batch;
      // The body is followed by what no decoder looks at.
      rig.spool.offer(createParcel({ ...batch, body: Buffer.concat([body, Buffer.alloc(60_000, 7)]) }));
    }
    await until(() => rig.gauges.get('spoolState') === SpoolState.DiskFull);
    assert.equal(rig.spool.totalCount, 40);
    assert.ok(rig.spool.memoryBytes > 0);
    assert.equal(rig.spool.isDurable, false);
    const taken: number[] = [];
    while (rig.spool.count(ONE) > 0) {
      const one = await take(rig, ONE);
      taken.push(one.batch.body.length);
      rig.spool.settle(one);
    }
    assert.equal(taken.length, 40);
    await until(() => rig.gauges.get('spoolState') === SpoolState.Well);
    rig.spool.offer(parcel(ONE, 'last'));
    await until(() => rig.gauges.get('spooledRuns') === 1);
    await rig.spool.close();
  },
);

test('one process at a time has the folder, and shards that are no more leave theirs to the others', async () => {
  const folder = newFolder();
  const home = lockHome(folder);
  assert.ok(home !== null);
  assert.equal(lockHome(folder), null);
  await settleHome(folder, 3);
  for (const shard of [0, 1, 2]) {
    const rig = await open(shardFolder(folder, shard));
    rig.spool.offer(parcel(ONE, `of-${shard}`));
    await rig.spool.close();
  }
  assert.equal(statSync(join(folder, 'lock')).mode & 0o777, 0o600);
  home.release();
  const next = lockHome(folder);
  assert.ok(next !== null);
  await settleHome(folder, 1);
  assert.equal(existsSync(shardFolder(folder, 1)), false);
  assert.equal(existsSync(shardFolder(folder, 2)), false);
  const rig = await open(shardFolder(folder, 0));
  assert.deepEqual((await takeAll(rig, ONE)).sort(), ['of-0', 'of-1', 'of-2']);
  await rig.spool.close();
  next.release();
});

test('what is purged while it is being read for its turn is not sent a second time', async () => {
  const home = newFolder();
  const folder = shardFolder(home, 0);
  const before = await open(folder);
  before.spool.offer(parcel(ONE, 'purged'));
  await before.spool.close();
  const purgeAll = async (): Promise<Entry[]> => purge((await takeInventory(home)).entries, false);
  const rig = await open(
    folder,
    {},
    {
      ...nodeBackgroundDisk,
      open: async (path, access) => {
        const file = await nodeBackgroundDisk.open(path, access);
        return {
          ...bound(file),
          read: async (offset, lengthBytes) => {
            const bytes = await file.read(offset, lengthBytes);
            // Now it is going to be marked as attempted.
            if (access === 'change') await purgeAll();
            return bytes;
          },
        };
      },
    },
  );
  const inHand = await take(rig, ONE);
  assert.equal(rig.counters.of('dropped_spool-purged'), 0);
  // It did not get through.
  rig.spool.offer(inHand);
  assert.deepEqual(await takeAll(rig, ONE), []);
  assert.equal(rig.counters.of('dropped_spool-purged'), 1);
  await rig.spool.close();
});

test('what is purged after its segment was completed, or delivered, is found all the same, or passed over', async () => {
  const home = newFolder();
  const folder = shardFolder(home, 0);
  const rig = await open(folder);
  for (const name of ['delivered', 'purged']) rig.spool.offer(parcel(ONE, name));
  await until(() => rig.gauges.get('spooledRuns') === 2);
  const { entries } = await takeInventory(home);
  assert.ok(entries[0]?.path.endsWith('.open'));
  rig.spool.settle(await take(rig, ONE));
  await rig.spool.close();
  assert.deepEqual(await purge(entries, false), [entries[1]], 'told is what was purged');
  assert.deepEqual((await takeInventory(home)).entries, []);
  for (const file of files(folder)) rmSync(join(folder, file));
  assert.deepEqual(await purge(entries, false), []);
});

test('segments of another version are told, counted and left as they are', async () => {
  const { bytes, file } = await segmentOf(['a', 'b']);
  const folder = newFolder();
  const later = Buffer.from(bytes);
  for (let at = later.indexOf('CPR1'); at >= 0; at = later.indexOf('CPR1')) later.write('CPR2', at);
  const newerMeta = Buffer.from(bytes);
  // The same records, whose meta data say that they are of another version, and whose checksums are right.
  for (let at = newerMeta.indexOf('CPR1'); at >= 0; at = newerMeta.indexOf('CPR1', at + 1)) {
    newerMeta.write('{"version":2', at + 32);
    const metaEnd = at + 32 + newerMeta.readUInt32LE(at + 4);
    newerMeta.writeUInt32LE(
      crc32(newerMeta.subarray(at + 32, metaEnd), crc32(newerMeta.subarray(at, at + 12))),
      at + 12,
    );
  }
  writeFileSync(join(folder, file), bytes);
  writeFileSync(join(folder, file.replace('s0', 's1')), later);
  writeFileSync(join(folder, file.replace('s0', 's2')), newerMeta);
  const rig = await open(folder);
  assert.equal(rig.counters.of('spool_segments_foreign'), 2);
  assert.equal(rig.counters.of('spool_records_damaged'), 0);
  assert.deepEqual(await takeAll(rig, ONE), ['a', 'b']);
  await until(() => files(folder).length === 2);
  await rig.spool.close();
  assert.deepEqual(readFileSync(join(folder, file.replace('s0', 's1'))), later);
  assert.deepEqual(readFileSync(join(folder, file.replace('s0', 's2'))), newerMeta);
});

test('what is delivered while a segment is still being looked through does not take the rest of it along', async () => {
  const disk = new SimDisk();
  const folder = '/spool/shard-0';
  const face = backgroundFace(disk);
  const names = Array.from({ length: 30 }, (_, i) => `run-${i}`);
  const rig = await open(folder, {}, face);
  for (const name of names) {
    const batch = makeBatch(ONE, [name], 10);
    rig.spool.offer(createParcel({ ...batch, body: Buffer.concat([batch.body, Buffer.alloc(20_000)]) }));
  }
  await rig.spool.close();
  // Whatever can be had is taken and settled between any two reads.
  const taken: string[] = [];
  const next = open(
    folder,
    {},
    {
      ...face,
      open: async (path, access) => {
        const file = await face.open(path, access);
        return {
          ...file,
          read: async (offset, lengthBytes) => {
            await new Promise((resolve) => setImmediate(resolve));
            return file.read(offset, lengthBytes);
          },
        };
      },
    },
  );
  const { spool } = await next;
  while (spool.count(ONE) > 0) {
    const parcel = spool.take(ONE);
    if (parcel === undefined) {
      await new Promise((resolve) => setImmediate(resolve));
      continue;
    }
    taken.push(nameOf(parcel));
    spool.settle(parcel);
  }
  assert.deepEqual(taken, names);
  await spool.close();
});

test('a clock that jumps, or has gone mad, costs no batch but by the age that it says', async () => {
  const folder = newFolder();
  let nowMs = Date.now();
  const rig = await open(folder, { maxAgeMs: 1e16 }, undefined, { ...systemClock, nowMs: () => nowMs });
  for (const [name, ms] of Object.entries({ now: nowMs, before: -5000, long: 1e15, again: nowMs - 1000 })) {
    nowMs = ms;
    rig.spool.offer(parcel(ONE, name));
    await until(() => rig.spool.memoryBytes === 0);
  }
  nowMs = Date.now();
  await rig.spool.close();
  const next = await open(folder, { maxAgeMs: 1e16 });
  assert.deepEqual((await takeAll(next, ONE)).sort(), ['again', 'before', 'long', 'now']);
  await next.spool.close();
});

/** Half a mebibyte; null where that cannot be. */
function mountTmpfs(): string | null {
  const folder = mkdtempSync(join(root, 'tmpfs-'));
  chmodSync(folder, 0o700);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=512k', 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    return null; // not root, or no right to: the test says that it was skipped
  }
  after(() => execFileSync('umount', ['--lazy', folder]));
  return folder;
}
