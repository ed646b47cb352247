/** The two ends of a ring, each in a thread of its own, for bench/ring.ts. */
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { distanceBytes, headWord, ringBuffer, SKIP_MARK, tailWord, type RingSet } from '../src/ring/layout.ts';
import type { Position } from '../src/ring/layout.ts';
import { createRecordWindow, openShardReader } from '../src/ring/reader.ts';
import { openRingWriter } from '../src/ring/writer.ts';

/**
 * `doorbell`: the reader as shipped: `waitAsync` on the bell, records used in place.
 * `copying`: the same, but every record is copied out of the ring before it is looked at.
 * `polling`: no bell; the reader looks at the tail on every turn of its event loop.
 */
export type Way = 'doorbell' | 'copying' | 'polling';

export interface Round {
  set: RingSet;
  way: Way;
  recordBytes: number;
  recordCount: number;
  /** Records between two publishes: a small request has 1, a typical one 100. */
  publishEvery: number;
  /** Idle time after each publish: 0 for as fast as it goes. */
  pauseMs: number;
}

export interface EndResult {
  cpuUs: number;
  bytes: number;
}

const OUTPUT_BYTES = 1 << 20;

function produce(round: Round): void {
  const writer = openRingWriter(round.set, 0);
  const record = Buffer.alloc(round.recordBytes, 1);
  record.writeUInt32LE(round.recordBytes, 0);
  const clock = new Int32Array(new SharedArrayBuffer(4));
  for (let number = 1; number <= round.recordCount; number++) {
    while (!writer.offer(0, record, 0, round.recordBytes)) {
      writer.publish();
      writer.waitForSpace(0, round.recordBytes, 10_000);
    }
    if (number % round.publishEvery === 0) {
      writer.publish();
      if (round.pauseMs > 0) Atomics.wait(clock, 0, 0, round.pauseMs);
    }
  }
  writer.publish();
}

/** What a batcher does with a record: looks at its header, copies the rest into the open batch. */
async function consume(round: Round): Promise<number> {
  const reader = openShardReader(round.set, 0);
  const window = createRecordWindow(1024);
  const output = Buffer.alloc(OUTPUT_BYTES);
  let position = 0;
  let bytes = 0;
  for (let count = 0; count < round.recordCount;) {
    const found = reader.read(window, 1 << 18);
    if (found === 0) {
      await reader.wait(10_000);
      continue;
    }
    for (let i = 0; i < found; i++) {
      const at = window.offset[i] ?? 0;
      let source = window.bytes[i] ?? output;
      let start = at;
      const lengthBytes = source.readUInt32LE(at);
      if (round.way === 'copying') {
        source = Buffer.from(source.subarray(at, at + lengthBytes));
        start = 0;
      }
      if (position + lengthBytes > OUTPUT_BYTES) position = 0;
      source.copy(output, position, start, start + lengthBytes);
      position += lengthBytes;
      bytes += lengthBytes;
    }
    count += found;
    reader.release();
  }
  return bytes;
}

async function consumePolling(round: Round): Promise<number> {
  const words = new Int32Array(round.set.control);
  const ring = ringBuffer(round.set, 0, 0);
  const output = Buffer.alloc(OUTPUT_BYTES);
  let head = Atomics.load(words, headWord(round.set, 0, 0)) as Position;
  let position = 0;
  let bytes = 0;
  for (let count = 0; count < round.recordCount;) {
    const tail = Atomics.load(words, tailWord(round.set, 0, 0)) as Position;
    if (distanceBytes(head, tail) === 0) {
      await new Promise((resolve) => setImmediate(resolve));
      continue;
    }
    while (head !== tail) {
      const at = head & (round.set.ringBytes - 1);
      const lengthBytes = ring.readUInt32LE(at);
      if (lengthBytes === SKIP_MARK) {
        head = ((head + round.set.ringBytes - at) | 0) as Position;
        continue;
      }
      if (position + lengthBytes > OUTPUT_BYTES) position = 0;
      ring.copy(output, position, at, at + lengthBytes);
      position += lengthBytes;
      bytes += lengthBytes;
      head = ((head + lengthBytes) | 0) as Position;
      count++;
    }
    Atomics.store(words, headWord(round.set, 0, 0), head);
    Atomics.notify(words, headWord(round.set, 0, 0));
  }
  return bytes;
}

if (!isMainThread && parentPort !== null && (workerData === 'producer' || workerData === 'consumer')) {
  const port = parentPort;
  port.on('message', (round: Round) => {
    void (async () => {
      // Of the whole process: both ends are measured together, the main thread sleeps.
      const before = process.cpuUsage();
      let bytes = round.recordCount * round.recordBytes;
      if (workerData === 'producer') produce(round);
      else bytes = await (round.way === 'polling' ? consumePolling(round) : consume(round));
      const { user, system } = process.cpuUsage(before);
      port.postMessage({ cpuUs: user + system, bytes } satisfies EndResult);
    })();
  });
}
