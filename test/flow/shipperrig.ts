/** A shipper's thread as shipped, for tests: real rings, a real worker, real sockets and zstd. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { COUNTER_NAMES, createCounterTable } from '../../src/core/counters.ts';
import type { CounterTable } from '../../src/core/counters.ts';
import { createRingSet } from '../../src/ring/layout.ts';
import { claimSlot } from '../../src/ring/slots.ts';
import { openRingWriter } from '../../src/ring/writer.ts';
import type { RingWriter } from '../../src/ring/writer.ts';
import { createGauges } from '../../src/upload/gauges.ts';
import type { Gauges } from '../../src/upload/gauges.ts';
import { createHand, NO_POISON } from '../../src/upload/hand.ts';
import type { FromShipper, ShipWorkerData, ToShipper } from '../../src/upload/message.ts';
import { SHIP_DEFAULTS } from '../../src/upload/settings.ts';
import type { ShipSettings } from '../../src/upload/settings.ts';
import { makeRecord } from '../unit/assemble/fakes.ts';
import type { SpanSketch } from '../unit/assemble/fakes.ts';
import { startCountingBackend } from './countingbackend.ts';
import type { CountingBackend } from './countingbackend.ts';

export interface Rig {
  readonly backend: CountingBackend;
  readonly writer: RingWriter;
  readonly counters: CounterTable;
  readonly gauges: Gauges;
  /** Records settled so far, by source. */
  readonly settled: Map<number, number>;
  /** Offers and publishes; false when the ring is full. */
  send(...sketches: SpanSketch[]): boolean;
  tell(message: ToShipper, transfer?: ArrayBuffer[]): void;
  /** Ends the thread at once, as a defect would. */
  kill(): Promise<void>;
  /** Drains and waits for the thread's end. */
  drain(deadlineMs?: number): Promise<FromShipper & { kind: 'drained' }>;
}

export async function withShipper(
  settings: Partial<ShipSettings>,
  use: (rig: Rig) => Promise<void>,
  ringBytes = 1 << 20,
  /** Left running at the end when it is given. */
  given: CountingBackend | null = null,
): Promise<void> {
  const backend = given ?? (await startCountingBackend());
  const rings = createRingSet({ producerCount: 1, shardCount: 1, ringBytes });
  const counters = createCounterTable(1);
  const gauges = createGauges();
  const data: ShipWorkerData = {
    shard: 0,
    rings,
    counters: counters.shared,
    counterRow: 0,
    gauges: gauges.shared,
    spoolReady: true,
    settings: { ...SHIP_DEFAULTS, endpoint: backend.url, flushIntervalMs: 20, retryBackoffMs: 5, ...settings },
    hand: createHand(),
    poison: NO_POISON,
  };
  const worker = new Worker(new URL('../../workers/ship.ts', import.meta.url), { workerData: data });
  const exited = once(worker, 'exit');
  const settled = new Map<number, number>();
  const drained = new Promise<FromShipper & { kind: 'drained' }>((resolve) => {
    worker.on('message', (message: FromShipper) => {
      if (message.kind === 'drained') resolve(message);
      if (message.kind !== 'settled') return;
      for (let i = 0; i < message.pairs.length; i += 2) {
        const source = message.pairs[i] ?? 0;
        settled.set(source, (settled.get(source) ?? 0) + (message.pairs[i + 1] ?? 0));
      }
    });
  });
  const writer = openRingWriter(rings, claimSlot(rings, 1));
  let mayEnd = false;
  const rig: Rig = {
    backend,
    writer,
    counters,
    gauges,
    settled,
    send(...sketches) {
      for (const sketch of sketches) {
        const record = makeRecord(sketch);
        if (!writer.offer(0, record, 0, record.length)) {
          writer.discard();
          return false;
        }
      }
      writer.publish();
      return true;
    },
    tell: (message, transfer = []) => worker.postMessage(message, transfer),
    async kill() {
      mayEnd = true;
      await worker.terminate();
    },
    async drain(deadlineMs = 60_000) {
      mayEnd = true;
      rig.tell({ kind: 'drain', deadlineMs });
      const message = await drained;
      assert.deepEqual(await exited, [0]);
      return message;
    },
  };
  try {
    await Promise.race([
      use(rig),
      exited.then(() => (mayEnd ? new Promise(() => undefined) : assert.fail('the thread ended'))),
    ]);
  } finally {
    await worker.terminate();
    if (given === null) await backend.close();
  }
}

/** Of the `i`th span. */
export const name = (i: number): string => (i + 1).toString(16).padStart(16, '0');
export const traceName = (i: number): string => (i + 1).toString(16).padStart(32, 'c0');

/** Accepted and inherited are delivered, dropped or held, to the run. */
export function assertSumLaw({ counters, gauges }: Rig, acceptedCount: number): void {
  const totals = counters.totals();
  const dropped = COUNTER_NAMES.filter((one) => one.startsWith('dropped_')).reduce((sum, one) => sum + totals[one], 0);
  const held = gauges.get('parkedRecords') + gauges.get('openRuns') + gauges.get('heldRuns');
  assert.equal(totals.records_read, acceptedCount);
  assert.equal(
    totals.runs_delivered + dropped + held,
    acceptedCount + totals.runs_inherited,
    JSON.stringify({ totals, held }),
  );
}
