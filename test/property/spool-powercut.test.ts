/**
 * The spool and the power. Its promise: what was written longer ago than `syncIntervalMs` is there again, and so is
 * everything that it said need not be kept elsewhere; of what came later any part may be missing. It always opens, and
 * gives out nothing but what was put in, whole. Killed, not cut off, it has all that was written.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { silentLog } from '../../src/core/log.ts';
import { plainBody, sliceBatch, type Batch } from '../../src/upload/batch.ts';
import { createGauges } from '../../src/upload/gauges.ts';
import { createParcel, leaveOrigin, partsOf, type Kept, type Parcel } from '../../src/upload/parcel.ts';
import { createSettlements } from '../../src/upload/settlements.ts';
import { Spool } from '../../src/upload/spool/spool.ts';
import { backgroundFace, dice, SimDisk } from '../simdisk.ts';
import { CounterList } from '../unit/assemble/fakes.ts';
import { codec, FakeClock, makeBatch, makeTenant, settle } from '../unit/upload/fakes.ts';

const FOLDER = '/data/spool/shard-0';
const SYNC_INTERVAL_MS = 500;
const TENANT = makeTenant(1);

interface Run {
  readonly name: string;
  readonly source: number;
  /** It was given to the spool then. */
  readonly offeredMs: number;
  isDelivered: boolean;
}

/** All runs of one history, and all the batches that they were put in together. */
class Runs {
  readonly all: Run[] = [];
  readonly #bodies = new Map<string, Buffer>();

  batch(runCount: number, payloadBytes: number, nowMs: number): Batch {
    const runs = Array.from({ length: runCount }, (_, i): Run => {
      const source = this.all.length + i + 1;
      return { name: `run-${source}`, source, offeredMs: nowMs, isDelivered: false };
    });
    this.all.push(...runs);
    const names = runs.map(({ name }) => name);
    const batch = plainSlice(makeBatch(TENANT, names, payloadBytes), 0, runCount);
    return this.book({ ...batch, runSources: Uint32Array.from(runs, ({ source }) => source) });
  }

  book(batch: Batch): Batch {
    this.#bodies.set(namesIn(batch).join(), batch.body);
    return batch;
  }

  deliver(batch: Batch): void {
    const names = namesIn(batch);
    const body = this.#bodies.get(names.join());
    assert.ok(body?.equals(batch.body), `a batch of ${names.join()} is what was put in`);
    for (const run of this.all) if (names.includes(run.name)) run.isDelivered = true;
  }
}

/** Not compressed, so that it is as long as it looks. */
function plainSlice(batch: Batch, from: number, to: number): Batch {
  return sliceBatch(batch, plainBody(batch, codec), from, to, codec, 'identity');
}

function namesIn({ body, coding, plainBytes }: Batch): string[] {
  const plain = codec.decode(body, coding, plainBytes).toString('utf8');
  return [...plain.matchAll(/name="post\.([^"]+)"/g)].map(([, name = '']) => name);
}

interface Rig {
  readonly spool: Spool;
  readonly counters: CounterList;
  readonly clock: FakeClock;
  /** Requests that the spool, or a delivery, said are kept for nothing. */
  readonly settled: Set<number>;
}

async function open(disk: SimDisk, clock: FakeClock, settled: Set<number>): Promise<Rig> {
  const counters = new CounterList();
  const settlements = createSettlements((pairs) => {
    for (let i = 0; i < pairs.length; i += 2) settled.add(pairs[i] ?? 0);
  });
  const settings = {
    folder: FOLDER,
    inbox: null,
    label: 's0',
    maxBytes: 64 << 20,
    maxAgeMs: 3_600_000,
    segmentBytes: 4000,
    syncIntervalMs: SYNC_INTERVAL_MS,
  };
  const parts = { settlements, counters, gauges: createGauges(), clock, log: silentLog, disk: backgroundFace(disk) };
  const rig = { spool: new Spool(settings, parts), counters, clock, settled };
  await rig.spool.open();
  return rig;
}

/** The oldest, read from the disk if need be; none when it is not to be had. */
async function take({ spool }: Rig): Promise<Parcel | null> {
  for (let turn = 0; turn < 20; turn++) {
    const taken = spool.take(TENANT);
    if (taken !== undefined) return taken;
    await settle();
  }
  return null;
}

function deliver({ spool, settled }: Rig, runs: Runs, parcel: Parcel): void {
  runs.deliver(parcel.batch);
  for (const source of parcel.batch.runSources ?? []) settled.add(source);
  const release = (kept: Kept): void => spool.settle(kept);
  release(parcel);
  leaveOrigin(parcel, release);
}

type Step =
  | { readonly kind: 'offer'; readonly runCount: number; readonly payloadBytes: number }
  | { readonly kind: 'deliver' }
  | { readonly kind: 'putBack' }
  /** The first run is delivered, the others go back on their own. */
  | { readonly kind: 'split' }
  | { readonly kind: 'pass'; readonly ms: number }
  | { readonly kind: 'restart' };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      kind: fc.constant('offer' as const),
      runCount: fc.integer({ min: 1, max: 3 }),
      payloadBytes: fc.integer({ min: 0, max: 1500 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 700 }) }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'deliver' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'putBack' as const }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'split' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'restart' as const }) },
);

async function live(disk: SimDisk, clock: FakeClock, steps: readonly Step[], runs: Runs): Promise<Set<number>> {
  const settled = new Set<number>();
  let rig = await open(disk, clock, settled);
  for (const one of steps) {
    if (disk.isStopped) break;
    switch (one.kind) {
      case 'offer':
        rig.spool.offer(createParcel(runs.batch(one.runCount, one.payloadBytes, clock.nowMs())));
        break;
      case 'pass':
        await clock.advance(one.ms);
        break;
      case 'deliver':
      case 'putBack':
      case 'split': {
        const parcel = await take(rig);
        if (parcel === null) break;
        if (one.kind === 'deliver') deliver(rig, runs, parcel);
        else if (one.kind === 'putBack' || parcel.batch.runCount === 1) rig.spool.offer(parcel);
        else {
          const { runCount } = parcel.batch;
          const halves = [plainSlice(parcel.batch, 0, 1), plainSlice(parcel.batch, 1, runCount)];
          const [first, others] = partsOf(
            parcel,
            halves.map((half) => runs.book(half)),
          );
          assert.ok(first !== undefined && others !== undefined);
          deliver(rig, runs, first);
          rig.spool.offer(others);
        }
        break;
      }
      case 'restart':
        await rig.spool.close();
        if (!disk.isStopped) rig = await open(disk, clock, settled);
    }
  }
  await settle();
  return settled;
}

for (const end of ['cut', 'kill'] as const) {
  test(
    `${end} at any operation: the spool opens, has what it promised, and nothing else`,
    { timeout: 240_000 },
    async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 14 }), fc.integer(), async (steps, seed) => {
          const whole = new SimDisk();
          await live(whole, new FakeClock(), steps, new Runs());
          const random = dice(seed);
          for (let number = 1; number <= whole.operations.length + 1; number++) {
            const disk = new SimDisk();
            const clock = new FakeClock();
            const part = random();
            let stoppedMs: number | null = null;
            disk.before = (operation) => {
              if (operation.number < number) return null;
              disk.isStopped = true;
              stoppedMs ??= clock.nowMs();
              return operation.kind === 'write' ? { code: 'ESTOPPED', part } : { code: 'ESTOPPED' };
            };
            const runs = new Runs();
            const settled = await live(disk, clock, steps, runs);
            const endMs = stoppedMs ?? clock.nowMs();
            if (end === 'cut') disk.cutPower(random);
            else disk.endProcess();

            const isDelivered = new Map(runs.all.map((run) => [run, run.isDelivered]));
            const next = await open(disk, clock, new Set());
            assert.equal(next.counters.of('spool_failures'), 0, 'it opens');
            for (let parcel = await take(next); parcel !== null; parcel = await take(next)) deliver(next, runs, parcel);
            for (const run of runs.all) {
              if (isDelivered.get(run) === true) continue;
              const isOld = endMs - run.offeredMs > SYNC_INTERVAL_MS;
              const isPromised = isOld || settled.has(run.source);
              assert.ok(run.isDelivered || !isPromised, `${run.name} is gone, stopped at operation ${number}`);
            }
            await next.spool.close();
            assert.deepEqual(disk.namesIn(FOLDER), [], 'what is delivered is not kept');
          }
        }),
        { numRuns: 40, seed: 20_261_120, endOnFailure: false },
      );
    },
  );
}
