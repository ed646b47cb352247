import assert from 'node:assert/strict';
import test from 'node:test';
import { createRingSet, headWord, tailWord, waitingWord, type RingSet } from '../../src/ring/layout.ts';
import { createRecordWindow, openShardReader } from '../../src/ring/reader.ts';
import { claimSlot, releaseDeadSlots } from '../../src/ring/slots.ts';
import { setShardState, shardState, ShardState } from '../../src/ring/state.ts';
import { openRingWriter, type RingWriter } from '../../src/ring/writer.ts';
import { makeRecord, windowRecords } from './ringrecord.ts';

function oneRing(ringBytes = 1024): RingSet {
  return createRingSet({ producerCount: 1, shardCount: 1, ringBytes });
}

function offerRecord(writer: RingWriter, number: number, lengthBytes: number, shard = 0, producer = 0): boolean {
  return writer.offer(shard, makeRecord(producer, number, lengthBytes), 0, lengthBytes);
}

/** Reads everything there is, without releasing it. */
function readNumbers(reader: ReturnType<typeof openShardReader>): number[] {
  const window = createRecordWindow(64);
  const numbers: number[] = [];
  while (reader.read(window, 1 << 20) > 0) numbers.push(...windowRecords(window).map((r) => r.number));
  return numbers;
}

test('a record is invisible until it is published, and then there in order', () => {
  const set = oneRing();
  const writer = openRingWriter(set, 0);
  const reader = openShardReader(set, 0);
  assert.equal(offerRecord(writer, 1, 64), true);
  assert.equal(offerRecord(writer, 2, 128), true);
  assert.deepEqual(readNumbers(reader), []);
  assert.equal(reader.backlogBytes, 0);
  writer.publish();
  assert.equal(reader.backlogBytes, 192);
  assert.deepEqual(readNumbers(reader), [1, 2]);
});

test('a record is taken from the middle of a larger array', () => {
  const set = oneRing();
  const writer = openRingWriter(set, 0);
  const reader = openShardReader(set, 0);
  const array = new Uint8Array(500);
  array.set(makeRecord(0, 9, 96), 130);
  const view = array.subarray(2);
  assert.equal(writer.offer(0, view, 128, 96), true);
  writer.publish();
  assert.deepEqual(readNumbers(reader), [9]);
});

test('a ring can be exactly full, refuses more, and takes more once the reader released', () => {
  const set = oneRing(1024);
  const writer = openRingWriter(set, 0);
  const reader = openShardReader(set, 0);
  for (let number = 0; number < 4; number++) assert.equal(offerRecord(writer, number, 256), true);
  assert.equal(writer.freeBytes(0), 0);
  assert.equal(offerRecord(writer, 4, 8), false);
  writer.publish();
  assert.equal(reader.backlogBytes, 1024);
  assert.deepEqual(readNumbers(reader), [0, 1, 2, 3]);
  assert.equal(offerRecord(writer, 4, 8), false, 'read but not released: still the reader’s');
  const before = writer.progress(0);
  assert.equal(writer.progress(0), before);
  reader.release();
  assert.notEqual(writer.progress(0), before);
  assert.equal(reader.backlogBytes, 0);
  assert.equal(writer.freeBytes(0), 1024);
  assert.equal(offerRecord(writer, 4, 8), true);
});

test('an empty ring takes a record of half its size wherever its position stands', () => {
  for (let before = 0; before < 1024; before += 8) {
    const set = oneRing(1024);
    const writer = openRingWriter(set, 0);
    const reader = openShardReader(set, 0);
    for (let left = before; left > 0; left -= Math.min(left, 512)) offerRecord(writer, 0, Math.min(left, 512));
    writer.publish();
    readNumbers(reader);
    reader.release();
    assert.equal(offerRecord(writer, 7, writer.maxRecordBytes), true, `after ${before} bytes`);
    writer.publish();
    assert.deepEqual(readNumbers(reader), [7]);
    reader.release();
    assert.equal(reader.backlogBytes, 0);
  }
});

test('a record that would cross the end starts over at the beginning', () => {
  const set = oneRing(1024);
  const writer = openRingWriter(set, 0);
  const reader = openShardReader(set, 0);
  offerRecord(writer, 1, 496);
  offerRecord(writer, 2, 496);
  writer.publish();
  readNumbers(reader);
  reader.release();
  // 32 bytes are left until the end.
  assert.equal(offerRecord(writer, 3, 40), true);
  writer.publish();
  const window = createRecordWindow(4);
  assert.equal(reader.read(window, 1000), 1);
  assert.equal(window.offset[0], 0);
  assert.equal(reader.backlogBytes, 32 + 40);
  assert.deepEqual(
    windowRecords(window).map((r) => r.number),
    [3],
  );
});

test('positions may pass 2^31 and 2^32', () => {
  for (const start of [0x7fffffc0, -64]) {
    const set = oneRing(1024);
    const words = new Int32Array(set.control);
    Atomics.store(words, tailWord(set, 0, 0), start);
    Atomics.store(words, headWord(set, 0, 0), start);
    const writer = openRingWriter(set, 0);
    const reader = openShardReader(set, 0);
    for (let number = 0; number < 20; number++) {
      assert.equal(offerRecord(writer, number, 24), true);
      assert.equal(offerRecord(writer, 1000 + number, 488), true);
      writer.publish();
      assert.equal(writer.freeBytes(0) <= 1024 - 512, true);
      assert.deepEqual(readNumbers(reader), [number, 1000 + number]);
      reader.release();
      assert.equal(writer.freeBytes(0), 1024);
    }
  }
});

test('what is discarded was never there, also when it had wrapped', () => {
  const set = oneRing(1024);
  const writer = openRingWriter(set, 0);
  const reader = openShardReader(set, 0);
  offerRecord(writer, 1, 400);
  writer.publish();
  readNumbers(reader);
  reader.release();
  offerRecord(writer, 2, 400);
  offerRecord(writer, 3, 400);
  writer.discard();
  writer.publish();
  assert.equal(reader.backlogBytes, 0);
  offerRecord(writer, 4, 80);
  writer.publish();
  assert.deepEqual(readNumbers(reader), [4]);
});

test('a record that is too large, unaligned, or does not state its length is a fault', () => {
  const writer = openRingWriter(oneRing(1024), 0);
  assert.equal(writer.maxRecordBytes, 512);
  assert.throws(() => offerRecord(writer, 1, 520), /does not fit/);
  assert.throws(() => writer.offer(0, makeRecord(0, 1, 64), 0, 56), /does not state/);
  assert.throws(() => writer.offer(0, Buffer.alloc(12).fill(12, 0, 1), 0, 12), /does not state/);
  assert.throws(() => writer.offer(0, Buffer.alloc(8), 0, 0), /does not state/);
  assert.throws(() => offerRecord(writer, 1, 64, 1), /shard 1 of 1/);
});

test('a reader meets a damaged length with a fault, not with a walk through foreign memory', () => {
  const set = oneRing(1024);
  const writer = openRingWriter(set, 0);
  offerRecord(writer, 1, 64);
  writer.publish();
  const ring = set.rings[0];
  assert.ok(ring);
  for (const length of [4, 9, 2048, -8]) {
    new Int32Array(ring)[0] = length;
    assert.throws(() => openShardReader(set, 0).read(createRecordWindow(4), 1 << 20), /a record of/);
  }
});

test('a read takes at least one record, and no more than its byte and record budget', () => {
  const set = oneRing(4096);
  const writer = openRingWriter(set, 0);
  const reader = openShardReader(set, 0);
  for (let number = 0; number < 8; number++) offerRecord(writer, number, 256);
  writer.publish();
  const window = createRecordWindow(3);
  assert.equal(reader.read(window, 1), 1);
  assert.equal(reader.read(window, 600), 2);
  assert.equal(reader.read(window, 1 << 20), 3);
  assert.equal(reader.read(window, 1 << 20), 2);
  assert.equal(reader.read(window, 1 << 20), 0);
});

test('producers take turns in being served first', () => {
  const set = createRingSet({ producerCount: 2, shardCount: 1, ringBytes: 1024 });
  const reader = openShardReader(set, 0);
  for (const producer of [0, 1]) {
    const writer = openRingWriter(set, producer);
    for (let number = 0; number < 4; number++) offerRecord(writer, number, 128, 0, producer);
    writer.publish();
  }
  const window = createRecordWindow(16);
  const served: number[] = [];
  while (reader.read(window, 128) > 0) served.push(...windowRecords(window).map((r) => r.producer));
  assert.deepEqual(served, [0, 1, 0, 1, 0, 1, 0, 1]);
});

test('a shard sees its own records only', () => {
  const set = createRingSet({ producerCount: 2, shardCount: 3, ringBytes: 1024 });
  for (const producer of [0, 1]) {
    const writer = openRingWriter(set, producer);
    for (const shard of [0, 1, 2]) offerRecord(writer, producer * 10 + shard, 64, shard, producer);
    writer.publish();
  }
  for (const shard of [0, 1, 2]) assert.deepEqual(readNumbers(openShardReader(set, shard)), [shard, 10 + shard]);
});

test('a producer that died mid-write leaves nothing: its successor goes on at the last publish', () => {
  const set = oneRing();
  const dead = openRingWriter(set, 0);
  offerRecord(dead, 1, 64);
  dead.publish();
  offerRecord(dead, 2, 64);
  Atomics.store(new Int32Array(set.control), waitingWord(set, 0, 0), 1);
  const successor = openRingWriter(set, 0);
  assert.equal(Atomics.load(new Int32Array(set.control), waitingWord(set, 0, 0)), 0);
  offerRecord(successor, 3, 64);
  successor.publish();
  assert.deepEqual(readNumbers(openShardReader(set, 0)), [1, 3]);
});

test('a reader that died loses nothing: its successor reads again what was not released', () => {
  const set = oneRing();
  const writer = openRingWriter(set, 0);
  const dead = openShardReader(set, 0);
  offerRecord(writer, 1, 64);
  writer.publish();
  readNumbers(dead);
  dead.release();
  offerRecord(writer, 2, 64);
  writer.publish();
  assert.deepEqual(readNumbers(dead), [2]);
  assert.deepEqual(readNumbers(openShardReader(set, 0)), [2]);
});

test('every slot has one owner, and is free again only once its thread is known to be dead', () => {
  const set = createRingSet({ producerCount: 2, shardCount: 1, ringBytes: 1024 });
  assert.equal(claimSlot(set, 0), 0, 'the main thread’s id is 0 and still claims');
  assert.equal(claimSlot(set, 7), 1);
  assert.throws(() => claimSlot(set, 8, 0), /all 2 producer slots are taken/);
  assert.equal(releaseDeadSlots(set, new Set([0, 7])), 0);
  assert.equal(releaseDeadSlots(set, new Set([0])), 1);
  assert.equal(claimSlot(set, 8, 0), 1);
});

test('releasing a dead slot wakes readers, in case its thread had published without ringing', async () => {
  const set = oneRing();
  const reader = openShardReader(set, 0);
  claimSlot(set, 3);
  const keepAlive = setTimeout(() => undefined, 60_000);
  const woken = reader.wait(60_000);
  releaseDeadSlots(set, new Set());
  await woken;
  clearTimeout(keepAlive);
});

test('a change of state ends the reader’s wait once, also when it came before the wait', async () => {
  const set = oneRing();
  const reader = openShardReader(set, 0);
  const keepAlive = setTimeout(() => undefined, 60_000);
  const woken = reader.wait(60_000);
  setShardState(set, 0, ShardState.Draining);
  await woken;
  assert.equal(reader.state, ShardState.Draining);
  await reader.wait(60_000);
  const startMs = performance.now();
  await reader.wait(20);
  assert.ok(performance.now() - startMs >= 15, 'later waits sleep');
  setShardState(set, 0, ShardState.Open);
  await reader.wait(60_000);
  assert.equal(shardState(set, 0), ShardState.Open);
  clearTimeout(keepAlive);
});

test('a wait ends at once when records are left, and sleeps its time when there are none', async () => {
  const set = oneRing();
  const writer = openRingWriter(set, 0);
  const reader = openShardReader(set, 0);
  const keepAlive = setTimeout(() => undefined, 60_000);
  offerRecord(writer, 1, 64);
  writer.publish();
  await reader.wait(60_000);
  assert.deepEqual(readNumbers(reader), [1]);
  const startMs = performance.now();
  await reader.wait(20);
  assert.ok(performance.now() - startMs >= 15);
  clearTimeout(keepAlive);
});

test('a producer waits for room no longer than its time, and not at all for a dead shard', () => {
  const set = oneRing();
  const writer = openRingWriter(set, 0);
  for (let number = 0; number < 4; number++) offerRecord(writer, number, 256);
  writer.publish();
  const startMs = performance.now();
  assert.equal(writer.waitForSpace(0, 64, 30), false);
  const tookMs = performance.now() - startMs;
  assert.ok(tookMs >= 29 && tookMs < 30_000, `${tookMs} ms`);
  setShardState(set, 0, ShardState.Dead);
  assert.equal(writer.waitForSpace(0, 64, 60_000), false);
  const reader = openShardReader(set, 0);
  readNumbers(reader);
  reader.release();
  assert.equal(writer.waitForSpace(0, 64, 60_000), true, 'room is room, whoever reads');
});
