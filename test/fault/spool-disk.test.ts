/**
 * The spool, its dead letters and its folders on a disk that fails at one operation, at each in turn, or where the process
 * or the power goes there: nothing is lost that was kept, and the failure is told and counted.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import { silentLog } from '../../src/core/log.ts';
import { openDeadBodies, type DeadBody } from '../../src/journal/deadbody.ts';
import { createGauges } from '../../src/upload/gauges.ts';
import { createParcel, type Parcel } from '../../src/upload/parcel.ts';
import { unfollowed } from '../../src/upload/settlements.ts';
import { openDeadLetters } from '../../src/upload/spool/deadletters.ts';
import { readSegment } from '../../src/upload/spool/folder.ts';
import { deadFolder, settleHome, shardFolder } from '../../src/upload/spool/home.ts';
import { Spool } from '../../src/upload/spool/spool.ts';
import { backgroundFace, dice, SimDisk, type Mishap, type Operation } from '../simdisk.ts';
import { CounterList } from '../unit/assemble/fakes.ts';
import { codec, FakeClock, makeBatch, makeTenant, settle } from '../unit/upload/fakes.ts';

const HOME = '/data/spool';
const TENANT = makeTenant(1);
/** Longer than any pause after a failure. */
const LONG_MS = 120_000;

interface Rig {
  readonly spool: Spool;
  readonly counters: CounterList;
}

async function open(disk: SimDisk, clock: FakeClock, folder = shardFolder(HOME, 0)): Promise<Rig> {
  const counters = new CounterList();
  const spool = new Spool(
    {
      folder,
      inbox: `${HOME}/inbox`,
      label: 's0',
      maxBytes: 64 << 20,
      maxAgeMs: 3_600_000_000,
      segmentBytes: 2000,
      syncIntervalMs: 500,
    },
    { settlements: unfollowed, counters, gauges: createGauges(), clock, log: silentLog, disk: backgroundFace(disk) },
  );
  await spool.open();
  return { spool, counters };
}

function nameOf({ batch }: Parcel): string {
  const plain = codec.decode(batch.body, batch.coding, batch.plainBytes).toString('utf8');
  return /name="post\.([^"]+)"/.exec(plain)?.[1] ?? '';
}

/** All that can be had, settled. */
async function takeAll({ spool }: Rig, clock: FakeClock): Promise<string[]> {
  const names: string[] = [];
  for (let idle = 0; idle < 3;) {
    const taken = spool.take(TENANT);
    if (taken === undefined) {
      await settle();
      await clock.advance(LONG_MS);
      idle++;
      continue;
    }
    idle = 0;
    names.push(nameOf(taken));
    spool.settle(taken);
  }
  return names;
}

interface Life {
  readonly delivered: Set<string>;
  failureCount: number;
}

/** Two processes: batches come, some are delivered, the rest is left in segments. */
async function live(disk: SimDisk, clock: FakeClock, offered: Set<string>): Promise<Life> {
  const life: Life = { delivered: new Set(), failureCount: 0 };
  for (const process of [1, 2]) {
    const rig = await open(disk, clock);
    for (let i = 0; i < 6; i++) {
      const name = `run-${process}-${i}`;
      offered.add(name);
      const batch = makeBatch(TENANT, [name], 10);
      const body = Buffer.concat([batch.body, Buffer.alloc(700, i)]);
      rig.spool.offer(createParcel({ ...batch, body }));
      await clock.advance(300);
      if (i % 3 !== 2) continue;
      const taken = rig.spool.take(TENANT) ?? (await settle(), rig.spool.take(TENANT));
      if (taken === undefined) continue;
      life.delivered.add(nameOf(taken));
      rig.spool.settle(taken);
    }
    await clock.advance(LONG_MS);
    for (const parcel of await rig.spool.close()) {
      // Told as lost by whoever stops.
      life.failureCount++;
      offered.delete(nameOf(parcel));
    }
    life.failureCount += rig.counters.of('spool_failures');
  }
  return life;
}

const kinds: { name: string; matches: (operation: Operation) => boolean; mishap: (part: number) => Mishap }[] = [
  { name: 'EIO', matches: () => true, mishap: () => ({ code: 'EIO' }) },
  {
    name: 'no descriptor',
    matches: ({ kind }) => kind === 'open' || kind === 'create',
    mishap: () => ({ code: 'EMFILE' }),
  },
  { name: 'a full disk', matches: ({ kind }) => kind === 'write', mishap: (part) => ({ code: 'ENOSPC', part }) },
];

for (const { name, matches, mishap } of kinds) {
  test(
    `${name}, once, at each operation of the spool: no batch is lost, and it is counted`,
    { timeout: 240_000 },
    async () => {
      const whole = new SimDisk();
      assert.equal((await live(whole, new FakeClock(), new Set())).failureCount, 0);
      const random = dice(3);
      let tried = 0;
      for (const { number, kind, path } of whole.operations.filter(matches)) {
        const disk = new SimDisk();
        const clock = new FakeClock();
        const part = random();
        let isMet = false;
        disk.before = (operation) => {
          if (operation.number !== number || !matches(operation)) return null;
          isMet = true;
          return mishap(part);
        };
        const offered = new Set<string>();
        const life = await live(disk, clock, offered);
        // Names of segments are drawn anew each time, so that the order of operations may differ a little.
        if (!isMet) continue;
        tried++;
        assert.ok(life.failureCount > 0, `${kind} of ${path}, operation ${number}, is counted`);
        disk.endProcess();
        const next = await open(disk, clock);
        const found = new Set(await takeAll(next, clock));
        for (const one of offered) {
          assert.ok(found.has(one) || life.delivered.has(one), `${one} is gone after ${kind}, operation ${number}`);
        }
        await next.spool.close();
      }
      assert.ok(tried >= 8, `${tried} operations`);
    },
  );
}

/** Ends the process, or cuts the power, at each operation of `work`, and looks at what is left. */
async function interrupt(
  prepare: (disk: SimDisk) => Promise<void>,
  work: (disk: SimDisk) => Promise<void>,
  look: (disk: SimDisk, where: string) => Promise<void>,
): Promise<void> {
  const random = dice(11);
  for (const end of ['kill', 'cut', 'EIO'] as const) {
    for (let number = 1, isOver = false; !isOver; number++) {
      const disk = new SimDisk();
      await prepare(disk);
      const first = disk.operations.length;
      const part = random();
      isOver = true;
      disk.before = (operation) => {
        if (operation.number !== first + number) return null;
        isOver = false;
        disk.isStopped = end !== 'EIO';
        return operation.kind === 'write' ? { code: 'EIO', part } : { code: 'EIO' };
      };
      await work(disk);
      if (end === 'cut') disk.cutPower(random);
      else disk.endProcess();
      await look(disk, `${end} at operation ${number}`);
    }
  }
}

test(
  'shards that are no more leave theirs to the others, wherever that is interrupted',
  { timeout: 120_000 },
  async () => {
    const names = ['of-0', 'of-1', 'of-2'];
    await interrupt(
      async (disk) => {
        await settleHome(HOME, 3, backgroundFace(disk));
        const clock = new FakeClock();
        for (const [shard, name] of names.entries()) {
          const rig = await open(disk, clock, shardFolder(HOME, shard));
          rig.spool.offer(createParcel(makeBatch(TENANT, [name])));
          await rig.spool.close();
        }
      },
      async (disk) =>
        settleHome(HOME, 1, backgroundFace(disk)).catch((error: unknown) =>
          assert.match(String(error), /EIO|ESTOPPED/),
        ),
      async (disk, where) => {
        await settleHome(HOME, 1, backgroundFace(disk));
        const clock = new FakeClock();
        const rig = await open(disk, clock);
        assert.deepEqual((await takeAll(rig, clock)).sort(), names, where);
        await rig.spool.close();
        assert.deepEqual(disk.namesIn(HOME), ['dead', 'inbox', 'shard-0'], where);
      },
    );
  },
);

test(
  'a dead letter that nobody has to keep any more is on the medium, or counted as lost',
  { timeout: 120_000 },
  async () => {
    let kept: string[] = [];
    let counters = new CounterList();
    await interrupt(
      (disk) => settleHome(HOME, 1, backgroundFace(disk)),
      async (disk) => {
        kept = [];
        counters = new CounterList();
        const clock = new FakeClock();
        const settings = {
          folder: deadFolder(HOME),
          label: 'dead0',
          segmentBytes: 1000,
          syncIntervalMs: 500,
          limits: null,
        };
        const counting = { put: () => Promise.resolve(), close: () => Promise.resolve() };
        const letters = openDeadLetters(settings, counting, {
          counters,
          clock,
          log: silentLog,
          disk: backgroundFace(disk),
        });
        for (let i = 0; i < 4; i++) {
          const failuresBefore = counters.of('spool_failures');
          const put = letters.put(makeBatch(TENANT, [`dead-${i}`], 600), 'rejected-by-backend', 'as the test says');
          await clock.advance(1000);
          await put;
          if (counters.of('spool_failures') === failuresBefore) kept.push(`dead-${i}`);
        }
        await letters.close();
      },
      async (disk, where) => {
        const face = backgroundFace(disk);
        let found = 0;
        for (const name of disk.namesIn(deadFolder(HOME))) {
          for await (const record of readSegment(`${deadFolder(HOME)}/${name}`, face))
            if (record.meta !== null) found++;
        }
        assert.ok(found >= kept.length, `${found} of ${kept.length} after ${where}`);
      },
    );
  },
);

test('a body among the dead letters is there whole, or whoever brought it is told', { timeout: 120_000 }, async () => {
  const bytes = Buffer.alloc(3000, 'poison ');
  const hash = createHash('sha256').update(bytes).digest('hex');
  const body: DeadBody = {
    encoding: 'json',
    coding: 'gzip',
    apiKey: 'k',
    project: null,
    receivedUs: 1e15,
    bytes,
    hash,
    reason: 'r',
  };
  let isKept = false;
  await interrupt(
    () => Promise.resolve(),
    async (disk) => {
      isKept = false;
      const bodies = openDeadBodies(deadFolder(HOME), 1 << 20, backgroundFace(disk));
      await bodies.keep(body).then(
        (kept) => (isKept = kept),
        (error: unknown) => assert.match(String(error), /EIO|ESTOPPED/),
      );
    },
    async (disk, where) => {
      const bodies = openDeadBodies(deadFolder(HOME), 1 << 20, backgroundFace(disk));
      const isThere = (await bodies.hashes()).has(hash);
      assert.ok(isThere || !isKept, where);
      if (isThere) {
        assert.equal(await bodies.holds(hash, 1e15), true, where);
        assert.ok(disk.contentOf(`${deadFolder(HOME)}/${hash}.body`)?.equals(bytes), where);
      }
      assert.equal(await bodies.keep(body), true, 'it can be kept afterwards');
      await settleHome(HOME, 1, backgroundFace(disk));
      assert.deepEqual(disk.namesIn(deadFolder(HOME)), [`${hash}.body`, `${hash}.json`], where);
    },
  );
});
