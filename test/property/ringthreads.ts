/** A producer or a reader in a thread of its own, for the ring's model test. Both follow a script made from a seed. */
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { createRecordWindow, openShardReader } from '../../src/ring/reader.ts';
import type { RingSet } from '../../src/ring/layout.ts';
import { openRingWriter } from '../../src/ring/writer.ts';
import { makeRecord, windowRecords } from '../unit/ringrecord.ts';

export interface ProducerPlay {
  role: 'producer';
  set: RingSet;
  slot: number;
  /** What to write, in order, and whether to publish after it. */
  script: { shard: number; lengthBytes: number; publish: boolean }[];
  pauseEvery: number;
}

export interface ReaderPlay {
  role: 'reader';
  set: RingSet;
  shard: number;
  expectedCount: number;
  maxBytes: number;
  windowCount: number;
  pauseEvery: number;
}

/** What a reader saw, in its order. */
export interface ReaderResult {
  seen: { producer: number; number: number; lengthBytes: number }[];
}

const WAIT_MS = 30_000;

function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function produce(play: ProducerPlay): string {
  const writer = openRingWriter(play.set, play.slot);
  for (const [number, entry] of play.script.entries()) {
    if (play.pauseEvery > 0 && number % play.pauseEvery === 0) pause(1);
    const record = makeRecord(play.slot, number, entry.lengthBytes);
    while (!writer.offer(entry.shard, record, 0, entry.lengthBytes)) {
      writer.publish();
      if (!writer.waitForSpace(entry.shard, entry.lengthBytes, WAIT_MS)) return `no room for record ${number}`;
    }
    if (entry.publish) writer.publish();
  }
  writer.publish();
  return 'done';
}

async function read(play: ReaderPlay): Promise<ReaderResult> {
  const reader = openShardReader(play.set, play.shard);
  const window = createRecordWindow(play.windowCount);
  const seen: ReaderResult['seen'] = [];
  let turn = 0;
  while (seen.length < play.expectedCount) {
    if (reader.read(window, play.maxBytes) === 0) {
      await reader.wait(WAIT_MS);
      continue;
    }
    if (play.pauseEvery > 0 && ++turn % play.pauseEvery === 0) pause(1);
    seen.push(...windowRecords(window));
    reader.release();
  }
  return { seen };
}

if (!isMainThread && workerData === 'ringthreads' && parentPort !== null) {
  const port = parentPort;
  port.on('message', (play: ProducerPlay | ReaderPlay) => {
    if (play.role === 'producer') port.postMessage(produce(play));
    else void read(play).then((result) => port.postMessage(result));
  });
}
