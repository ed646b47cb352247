/**
 * The journal and the power: whatever was sent, settled and started over before, and whichever operation of the disk was
 * the last, the next process finds all that was acknowledged and not settled, as it was sent, and goes on.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { dice, SimDisk } from '../simdisk.ts';
import { assertNothingLost, Bodies, startSim, type Fate, type SimProcess } from '../simjournal.ts';

type Step =
  | {
      readonly kind: 'send';
      readonly bytes: number;
      readonly fate: Fate;
      readonly owned: boolean;
      readonly records: number;
    }
  /** Delivers a part of what was acknowledged: by its place, 0 to 1. */
  | { readonly kind: 'settle'; readonly which: number }
  | { readonly kind: 'startOver' }
  /** A clean stop, and the next process. */
  | { readonly kind: 'restart' }
  /** Bodies sent one after the other until now are written. */
  | { readonly kind: 'quiet' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('send' as const),
      bytes: fc.oneof(fc.integer({ min: 8, max: 2500 }), fc.constant(300_000)),
      fate: fc.constantFrom<Fate>('accepted', 'accepted', 'accepted', 'accepted', 'busy'),
      owned: fc.boolean(),
      records: fc.integer({ min: 1, max: 3 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('settle' as const), which: fc.double({ min: 0, max: 1, noNaN: true }) }),
  },
  { weight: 4, arbitrary: fc.constant({ kind: 'quiet' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'startOver' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
);

/** Null when the disk has ended it on its way. */
async function startUnlessStopped(disk: SimDisk, bodies: Bodies): Promise<SimProcess | null> {
  try {
    return await startSim(disk, bodies);
  } catch (error) {
    if (disk.isStopped) return null;
    throw error;
  }
}

/** Does the steps on the disk, as far as it lets us. Everything that was sent is in `bodies`. */
async function live(disk: SimDisk, steps: readonly Step[], bodies: Bodies): Promise<void> {
  const settleSome = (process: SimProcess, which: number): void => {
    const waiting = bodies.all.filter((body) => body.isAcknowledged && !body.isSettled);
    const body = waiting[Math.floor(which * waiting.length)];
    if (body !== undefined) process.settle(body);
  };
  let process = await startUnlessStopped(disk, bodies);
  try {
    for (const one of steps) {
      if (process === null || disk.isStopped) return;
      switch (one.kind) {
        case 'send':
          process.send(bodies.add(one.bytes, one.fate, one.owned, one.records));
          break;
        case 'settle':
          settleSome(process, one.which);
          break;
        case 'quiet':
          await process.quiet();
          break;
        case 'startOver':
          process.journal.startOver();
          break;
        case 'restart':
          await process.quiet();
          await process.stop();
          process = await startUnlessStopped(disk, bodies);
          process?.journal.replay();
      }
    }
    await process?.quiet();
  } finally {
    await process?.stop();
  }
}

/** The process is gone before the operation of this number, or, of a write, in its midst. */
function stopAt(disk: SimDisk, number: number, part: number): void {
  disk.before = (operation) => {
    if (operation.number < number) return null;
    disk.isStopped = true;
    return operation.kind === 'write' ? { code: 'ESTOPPED', part } : { code: 'ESTOPPED' };
  };
}

for (const end of ['the power is cut', 'the process is killed'] as const) {
  test(
    `${end} at any operation: what was acknowledged is found again, whole, and nothing else`,
    { timeout: 240_000 },
    async () => {
      // What the next process had to find: of every cut of every history.
      let owedCount = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), fc.integer(), async (steps, seed) => {
          const whole = new SimDisk();
          await live(whole, steps, new Bodies());
          const random = dice(seed);
          for (let number = 1; number <= whole.operations.length + 1; number++) {
            const disk = new SimDisk();
            const bodies = new Bodies();
            stopAt(disk, number, random());
            await live(disk, steps, bodies);
            if (end === 'the power is cut') disk.cutPower(random);
            else disk.endProcess();
            owedCount += bodies.all.filter((body) => body.isAcknowledged && !body.isSettled).length;
            const next = await assertNothingLost(disk, bodies);
            // It goes on: what is taken now survives the next cut too, beside all that was there.
            const late = bodies.add(700, 'accepted', false, 1);
            next.send(late);
            await next.quiet();
            assert.equal(late.isAcknowledged, true, next.lines.join('\n'));
            disk.isStopped = true;
            await next.stop();
            disk.cutPower(random);
            const last = await assertNothingLost(disk, bodies);
            await last.stop();
            assert.equal(disk.openCount, 0, 'every file is closed');
          }
        }),
        { numRuns: 12, seed: 20_261_120, endOnFailure: false },
      );
      assert.ok(owedCount > 100, `${owedCount} bodies were to be found again`);
    },
  );
}
