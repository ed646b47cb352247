/** A shipper thread that dies is replaced: what lies in its rings is shipped by the next, what it held is counted lost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCounterTable } from '../../src/core/counters.ts';
import { systemClock } from '../../src/core/lifecycle.ts';
import { silentLog } from '../../src/core/log.ts';
import { Part, RecordOffset } from '../../src/core/record.ts';
import { createRingSet } from '../../src/ring/layout.ts';
import { claimSlot } from '../../src/ring/slots.ts';
import { shardState, ShardState } from '../../src/ring/state.ts';
import { openRingWriter } from '../../src/ring/writer.ts';
import { createShippers, type Shippers } from '../../src/shippers.ts';
import { SHIP_DEFAULTS } from '../../src/upload/settings.ts';
import { startCountingBackend } from '../flow/countingbackend.ts';
import { makeRecord } from '../unit/assemble/fakes.ts';

/** A header that claims more parts than there are bytes: reading it breaks an invariant of the thread. */
function poison(): ArrayBuffer {
  const buffer = new ArrayBuffer(8);
  new Uint8Array(buffer).fill(0xff);
  return buffer;
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

test('a dead shipper is replaced, its rings are read on, and what it held counts as lost', async () => {
  const backend = await startCountingBackend();
  const rings = createRingSet({ producerCount: 1, shardCount: 1, ringBytes: 1 << 20 });
  const counters = createCounterTable(2);
  const shippers: Shippers = createShippers(
    {
      rings,
      counters,
      firstRow: 1,
      ship: { ...SHIP_DEFAULTS, endpoint: backend.url, flushIntervalMs: 10 },
      spoolReady: false,
      heapBytes: 256 << 20,
    },
    { counters: counters.row(0), log: silentLog, clock: systemClock },
  );
  await shippers.start();
  const writer = openRingWriter(rings, claimSlot(rings, 1));
  const offer = (span: string, parent: string | null): void => {
    const record = makeRecord({ span, parent });
    assert.ok(writer.offer(0, record, 0, record.length));
    writer.publish();
  };

  offer('00000000000000a1', null);
  await backend.until(() => backend.runs.length === 1);
  // Waits for its parent, in the thread's own memory.
  offer('00000000000000a3', '00000000000000a2');
  await until(() => counters.total('runs_parked') === 1);

  shippers.forwardOversize(0, poison());
  await until(() => shippers.reasons().length > 0);
  assert.equal(shardState(rings, 0), ShardState.Dead);
  offer('00000000000000a4', null);
  await backend.until(() => backend.runs.length === 2);

  assert.deepEqual(shippers.reasons(), []);
  assert.equal(shardState(rings, 0), ShardState.Open);
  assert.equal(counters.total('ship_workers_lost'), 1);
  assert.ok(counters.total('dropped_worker-lost') >= 1);
  await shippers.stop(5000);
  assert.equal(shippers.undeliveredCount, 0);
  assert.equal(
    counters.total('records_read'),
    counters.total('runs_delivered') + counters.total('dropped_worker-lost'),
  );
  await backend.close();
});

test('oversize records: what a dead shipper had not come to counts as lost, what comes then waits for the next', async () => {
  const backend = await startCountingBackend();
  const rings = createRingSet({ producerCount: 1, shardCount: 1, ringBytes: 1 << 20 });
  const counters = createCounterTable(2);
  const lostCounts: unknown[] = [];
  const shippers = createShippers(
    {
      rings,
      counters,
      firstRow: 1,
      ship: { ...SHIP_DEFAULTS, endpoint: backend.url, flushIntervalMs: 10 },
      spoolReady: false,
      heapBytes: 256 << 20,
    },
    {
      counters: counters.row(0),
      log: { ...silentLog, error: (fields: { lostCount?: number }) => void lostCounts.push(fields.lostCount) },
      clock: systemClock,
    },
  );
  await shippers.start();
  const forward = (span: string): void => shippers.forwardOversize(0, new Uint8Array(makeRecord({ span })).buffer);
  forward('00000000000000d1');
  await until(() => counters.total('runs_delivered') === 1);

  shippers.forwardOversize(0, poison());
  forward('00000000000000d2');
  forward('00000000000000d3');
  await until(() => shippers.reasons().length > 0);
  assert.deepEqual(lostCounts, [3]);
  assert.equal(counters.total('dropped_worker-lost'), 3);
  forward('00000000000000d4');
  assert.equal(shippers.congested, false);
  const inputs = `{"text":"${'x'.repeat(4 << 20)}"}`;
  for (let i = 0; i < 16; i++) {
    const record = makeRecord({ span: `00000000000000e${i.toString(16)}`, parts: { Inputs: inputs } });
    shippers.forwardOversize(0, new Uint8Array(record).buffer);
  }
  assert.equal(shippers.congested, true, 'what waits has a bound');
  await until(() => counters.total('runs_delivered') === 18);
  await until(() => !shippers.congested);
  const names = new Set(backend.runs.map(({ run }) => run['name']));
  assert.ok(names.has('00000000000000d4') && !names.has('00000000000000d2') && !names.has('00000000000000d3'));

  // Each death is booked by itself.
  shippers.forwardOversize(0, poison());
  await until(() => shippers.reasons().length > 0);
  await until(() => shippers.reasons().length === 0);
  assert.deepEqual(lostCounts, [3, 1]);
  await shippers.stop(5000);
  assert.equal(counters.total('ship_workers_lost'), 2);
  assert.equal(counters.total('records_read'), 22);
  assert.equal(counters.total('runs_delivered') + counters.total('dropped_worker-lost'), 22);
  await backend.close();
});

test('a span in the rings that shippers die of is left out after the second, and all others are shipped', async () => {
  const backend = await startCountingBackend();
  const rings = createRingSet({ producerCount: 1, shardCount: 1, ringBytes: 1 << 20 });
  const counters = createCounterTable(2);
  const shippers = createShippers(
    {
      rings,
      counters,
      firstRow: 1,
      ship: { ...SHIP_DEFAULTS, endpoint: backend.url, flushIntervalMs: 10 },
      spoolReady: false,
      heapBytes: 256 << 20,
    },
    { counters: counters.row(0), log: silentLog, clock: systemClock },
  );
  const writer = openRingWriter(rings, claimSlot(rings, 1));
  const offer = (record: Buffer): void => assert.ok(writer.offer(0, record, 0, record.length));
  const broken = makeRecord({ span: '00000000000000c2' });
  // A part that is longer than the record: an invariant of the thread is broken in the midst of taking it.
  broken.writeUInt32LE(1_000_000, RecordOffset.PartLengths + 4 * Part.Inputs);
  offer(makeRecord({ span: '00000000000000c1' }));
  offer(broken);
  offer(makeRecord({ span: '00000000000000c3' }));
  writer.publish();
  await shippers.start();
  await backend.until(() => backend.runs.length === 2);
  assert.deepEqual(backend.runs.map(({ run }) => run['name']).sort(), ['00000000000000c1', '00000000000000c3']);
  await until(() => shippers.reasons().length === 0);
  await shippers.stop(5000);
  assert.equal(counters.total('ship_workers_lost'), 2);
  assert.equal(counters.total('dropped_worker-lost'), 1);
  assert.equal(counters.total('records_read'), 3);
  await backend.close();
});

test('a shipper whose memory is used up is replaced, its rings are read on, and every span is accounted for', async () => {
  const backend = await startCountingBackend();
  const rings = createRingSet({ producerCount: 1, shardCount: 1, ringBytes: 1 << 20 });
  const counters = createCounterTable(2);
  const errors: string[] = [];
  const shippers: Shippers = createShippers(
    {
      rings,
      counters,
      firstRow: 1,
      ship: { ...SHIP_DEFAULTS, endpoint: backend.url, flushIntervalMs: 60_000 },
      spoolReady: false,
      heapBytes: 24 << 20,
    },
    {
      counters: counters.row(0),
      log: { ...silentLog, error: (fields, message) => void errors.push(`${message} ${JSON.stringify(fields)}`) },
      clock: systemClock,
    },
  );
  await shippers.start();
  const writer = openRingWriter(rings, claimSlot(rings, 1));
  const offer = (span: string): void => {
    const record = makeRecord({ span });
    assert.ok(writer.offer(0, record, 0, record.length));
    writer.publish();
  };
  offer('00000000000000b1');
  await until(() => counters.total('runs_batched') === 1);
  // Keys are remembered as strings: a few of a megabyte each are more than there is.
  for (let i = 0; counters.total('ship_workers_lost') === 0; i++) {
    const record = makeRecord({ key: `${i}`.padStart(1_000_000, 'k'), trace: i.toString(16).padStart(32, '7') });
    shippers.forwardOversize(0, new Uint8Array(record).buffer);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.match(errors[0] ?? '', /^shipper thread lost .*memory limit.*"lostCount":[1-9]/);
  offer('00000000000000b2');
  await until(() => shippers.reasons().length === 0);
  offer('00000000000000b3');
  await shippers.stop(60_000);
  assert.deepEqual(backend.runs.map(({ run }) => run['name']).sort(), ['00000000000000b2', '00000000000000b3']);
  assert.equal(counters.total('ship_workers_lost'), 1);
  assert.equal(
    counters.total('records_read'),
    counters.total('runs_delivered') + counters.total('dropped_worker-lost'),
  );
  await backend.close();
});

test('a shipper that cannot get ready ends the start with its reason', async () => {
  const rings = createRingSet({ producerCount: 1, shardCount: 1, ringBytes: 1 << 20 });
  const counters = createCounterTable(2);
  const shippers = createShippers(
    {
      rings,
      counters,
      firstRow: 1,
      ship: { ...SHIP_DEFAULTS, endpoint: 'not a URL' },
      spoolReady: false,
      heapBytes: 256 << 20,
    },
    { counters: counters.row(0), log: silentLog, clock: systemClock },
  );
  await assert.rejects(shippers.start(), /^Error: shipper of shard 0: .*URL/s);
  await shippers.stop(0);
});
