/**
 * One side of a forced interleaving: a thread that runs real ring code, but asks the test for leave before each of its
 * Atomics operations. `Atomics` itself is wrapped, so what is tested is the code as shipped, in an order that the test
 * chose.
 */
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import type { RingSet } from '../../src/ring/layout.ts';
import { createRecordWindow, openShardReader } from '../../src/ring/reader.ts';
import { claimSlot, releaseDeadSlots } from '../../src/ring/slots.ts';
import { openRingWriter } from '../../src/ring/writer.ts';
import { makeRecord } from './ringrecord.ts';

export type Part = 'wait-for-space' | 'release' | 'wait-for-records' | 'publish' | 'claim' | 'free-slot';

/** Words of a thread's gate. */
export const Gate = {
  /** Operations asked for. Thread → test. */
  Asked: 0,
  /** Operations allowed. Test → thread. */
  Allowed: 1,
  /** 1 while inside of a wait, 2 when the part is through. Thread → test. */
  Resting: 2,
} as const;

export interface Play {
  part: Part;
  set: RingSet;
  gate: Int32Array;
  waitMs: number;
}

export interface Result {
  /** What the part returned, as far as it says anything. */
  value: boolean | number;
  tookMs: number;
}

const real = { load: Atomics.load, store: Atomics.store, wait: Atomics.wait, notify: Atomics.notify };

/** Wraps Atomics so that operations on other memory than the gate's pass the gate first. Returns how to undo it. */
function installGate(gate: Int32Array): () => void {
  let asked = 0;
  const pass = (): void => {
    asked++;
    real.store(gate, Gate.Asked, asked);
    real.notify(gate, Gate.Asked);
    for (;;) {
      const allowed = real.load(gate, Gate.Allowed);
      if (allowed >= asked) return;
      real.wait(gate, Gate.Allowed, allowed);
    }
  };
  const rest = (how: number): void => {
    real.store(gate, Gate.Resting, how);
    real.notify(gate, Gate.Asked);
  };
  const table = Atomics as unknown as Record<string, (...parameters: unknown[]) => unknown>;
  const originals = new Map<string, (...parameters: unknown[]) => unknown>();
  for (const name of ['load', 'store', 'add', 'compareExchange', 'wait', 'waitAsync', 'notify']) {
    const original = table[name];
    if (original === undefined) continue;
    originals.set(name, original);
    table[name] = (...parameters: unknown[]) => {
      pass();
      const waits = name === 'wait' || name === 'waitAsync';
      if (waits) rest(1);
      const value = original(...parameters);
      if (name === 'wait') rest(0);
      return value;
    };
  }
  return () => {
    for (const [name, original] of originals) table[name] = original;
    rest(2);
  };
}

async function play({ part, set, gate, waitMs }: Play): Promise<Result> {
  const run = prepare(part, set, waitMs);
  const startMs = performance.now();
  const restore = installGate(gate);
  let value: boolean | number | Promise<void>;
  try {
    value = run();
  } finally {
    restore();
  }
  if (typeof value === 'object') {
    await value;
    value = true;
  }
  return { value, tookMs: performance.now() - startMs };
}

/** Does everything that is not under test; what it returns is. */
function prepare(part: Part, set: RingSet, waitMs: number): () => boolean | number | Promise<void> {
  switch (part) {
    case 'wait-for-space': {
      const writer = openRingWriter(set, 0);
      return () => writer.waitForSpace(0, 64, waitMs);
    }
    case 'release': {
      const reader = openShardReader(set, 0);
      reader.read(createRecordWindow(64), set.ringBytes);
      return () => {
        reader.release();
        return true;
      };
    }
    case 'wait-for-records': {
      const reader = openShardReader(set, 0);
      return () => reader.wait(waitMs);
    }
    case 'publish': {
      const writer = openRingWriter(set, 0);
      writer.offer(0, makeRecord(0, 1, 64), 0, 64);
      return () => {
        writer.publish();
        return true;
      };
    }
    case 'claim':
      return () => claimSlot(set, 2, waitMs);
    case 'free-slot':
      return () => releaseDeadSlots(set, new Set());
  }
}

if (!isMainThread && workerData === 'ringsteps' && parentPort !== null) {
  const port = parentPort;
  port.on('message', (message: Play) => {
    void play(message).then((result) => port.postMessage(result));
  });
}
