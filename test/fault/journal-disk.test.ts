/**
 * The journal on a disk that fails at one operation, at each in turn: nothing that was acknowledged is lost, the failure
 * is told and counted, and afterwards it goes on.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { dice, SimDisk, type Mishap, type Operation } from '../simdisk.ts';
import { assertNothingLost, Bodies, FOLDER, startSim, type SimProcess } from '../simjournal.ts';

const SECOND_MS = 1000;

/** What a life in an unlucky world has told. */
interface Told {
  failureCount: number;
  lines: string[];
}

/** Starts until it works: whoever starts the process does so again. */
async function start(disk: SimDisk, bodies: Bodies, told: Told): Promise<SimProcess> {
  for (let tries = 0; ; tries++) {
    try {
      return await startSim(disk, bodies);
    } catch (error) {
      told.failureCount++;
      told.lines.push((error as Error).message);
      assert.ok(tries < 2, told.lines.join('\n'));
    }
  }
}

/** Bodies of all sizes over several segments and two processes, some delivered; a shipper that dies; what is left. */
async function live(context: TestContext, disk: SimDisk, bodies: Bodies): Promise<Told> {
  const told: Told = { failureCount: 0, lines: [] };
  let process = await start(disk, bodies, told);
  const pass = async (): Promise<void> => {
    await process.quiet();
    context.mock.timers.tick(SECOND_MS);
    process.alarm.ring();
    await process.quiet();
  };
  const send = async (...sizes: number[]): Promise<void> => {
    for (const size of sizes) process.send(bodies.add(size, 'accepted', size > 2000, 2));
    await pass();
  };
  const settle = async (...numbers: number[]): Promise<void> => {
    for (const number of numbers) if (bodies.byNumber(number).isAcknowledged) process.settle(bodies.byNumber(number));
    await pass();
  };
  const end = async (): Promise<void> => {
    await process.stop();
    told.failureCount += process.counters.total('journal_failures');
    told.lines.push(...process.lines);
  };
  await send(500, 2900, 300_000);
  await send(900);
  await settle(0, 1, 2);
  process.journal.startOver();
  await pass();
  await send(1500, 1500);
  await end();
  process = await start(disk, bodies, told);
  process.journal.replay();
  await pass();
  await pass();
  await send(800);
  await settle(3);
  // Until it has found out that the disk works.
  for (let second = 0; second < 5; second++) await pass();
  assert.deepEqual(process.journal.reasons(), []);
  await send(100);
  // The first may be the one that meets it.
  for (let tries = 0; tries < 3 && bodies.all.at(-1)?.isAcknowledged !== true; tries++) await send(100);
  assert.equal(bodies.all.at(-1)?.isAcknowledged, true, 'it goes on');
  await end();
  return told;
}

async function operationsOf(context: TestContext): Promise<readonly Operation[]> {
  const disk = new SimDisk();
  const told = await live(context, disk, new Bodies());
  assert.equal(told.failureCount, 0, told.lines.join('\n'));
  assert.deepEqual(
    disk.namesIn(FOLDER).filter((name) => !name.endsWith('.journal')),
    [],
  );
  return [...disk.operations];
}

const kinds: { name: string; matches: (operation: Operation) => boolean; mishap: (part: number) => Mishap }[] = [
  { name: 'EIO on it', matches: () => true, mishap: () => ({ code: 'EIO' }) },
  {
    name: 'a write of which a part gets there, then EIO',
    matches: ({ kind }) => kind === 'write',
    mishap: (part) => ({ code: 'EIO', part }),
  },
  {
    name: 'a full disk in the midst of a write',
    matches: ({ kind }) => kind === 'write',
    mishap: (part) => ({ code: 'ENOSPC', part }),
  },
];

for (const { name, matches, mishap } of kinds) {
  test(
    `${name}, once, at each operation: nothing acknowledged is lost, it is told, and it goes on`,
    { timeout: 240_000 },
    async (context) => {
      context.mock.timers.enable({ apis: ['setInterval'] });
      const operations = await operationsOf(context);
      const random = dice(7);
      let tried = 0;
      for (const { number, kind, path } of operations.filter(matches)) {
        const disk = new SimDisk();
        const part = random();
        disk.before = (operation) => (operation.number === number ? mishap(part) : null);
        const bodies = new Bodies();
        const told = await live(context, disk, bodies);
        const where = `${kind} of ${path}, operation ${number}`;
        assert.ok(told.failureCount > 0, `${where} is counted`);
        assert.match(told.lines.join('\n'), /EIO|ENOSPC/, `${where} is told`);
        disk.cutPower(random);
        const next = await assertNothingLost(disk, bodies);
        assert.equal(next.counters.total('journal_failures'), 0);
        await next.stop();
        tried++;
      }
      assert.ok(tried >= 10, `${tried} operations`);
    },
  );
}

test('a disk that refuses everything for a while: no acknowledgement meanwhile, all from before is there', async (context) => {
  context.mock.timers.enable({ apis: ['setInterval'] });
  const disk = new SimDisk();
  const bodies = new Bodies();
  const process = await startSim(disk, bodies);
  const before = bodies.add(400, 'accepted', false, 1);
  process.send(before);
  await process.quiet();
  assert.equal(before.isAcknowledged, true);
  disk.before = ({ kind }) => (kind === 'read' || kind === 'close' ? null : { code: 'EROFS' });
  const during = [1, 2, 3].map(() => bodies.add(400, 'accepted', false, 1));
  for (const body of during) {
    process.send(body);
    await process.quiet();
    context.mock.timers.tick(SECOND_MS);
    await process.quiet();
  }
  assert.ok(during.every(({ isAcknowledged }) => !isAcknowledged));
  assert.match(process.journal.reasons().join(), /^journal_unwritable: EROFS/);
  disk.before = () => null;
  context.mock.timers.tick(SECOND_MS);
  await process.quiet();
  assert.deepEqual(process.journal.reasons(), []);
  await process.stop();
  disk.cutPower(dice(1));
  await (await assertNothingLost(disk, bodies)).stop();
});
