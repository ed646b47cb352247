/**
 * The argument of ring/layout.ts that no wake-up is lost, put to the proof: two threads run the two halves of each
 * protocol, one Atomics operation at a time, in every possible order. A lost wake-up shows as a wait that sleeps out.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import test, { after, before } from 'node:test';
import { Worker } from 'node:worker_threads';
import { createRingSet, type RingSet } from '../../src/ring/layout.ts';
import { claimSlot } from '../../src/ring/slots.ts';
import { setShardState, ShardState } from '../../src/ring/state.ts';
import { openRingWriter } from '../../src/ring/writer.ts';
import { makeRecord } from './ringrecord.ts';
import { Gate, type Part, type Play, type Result } from './ringsteps.ts';

const WAIT_MS = 20_000;
const ALL = 1 << 30;
let sleeper: Worker;
let waker: Worker;

before(() => {
  const file = new URL('./ringsteps.ts', import.meta.url);
  sleeper = new Worker(file, { workerData: 'ringsteps' });
  waker = new Worker(file, { workerData: 'ringsteps' });
});

after(async () => {
  await Promise.all([sleeper.terminate(), waker.terminate()]);
});

/** All orders of `s` steps of the sleeper and `w` steps of the waker. */
function* orders(s: number, w: number): Generator<string> {
  if (s === 0 && w === 0) yield '';
  if (s > 0) for (const rest of orders(s - 1, w)) yield `s${rest}`;
  if (w > 0) for (const rest of orders(s, w - 1)) yield `w${rest}`;
}

/** Until the thread asks for leave again, sleeps, or is through: then its last step is done. */
function settle(gate: Int32Array): void {
  const deadlineMs = performance.now() + WAIT_MS;
  for (;;) {
    const asked = Atomics.load(gate, Gate.Asked);
    if (asked > Atomics.load(gate, Gate.Allowed) || Atomics.load(gate, Gate.Resting) > 0) return;
    assert.ok(performance.now() < deadlineMs, 'a thread neither proceeds nor sleeps');
    Atomics.wait(gate, Gate.Asked, asked, 1);
  }
}

function step(gate: Int32Array): void {
  if (Atomics.load(gate, Gate.Asked) > Atomics.load(gate, Gate.Allowed)) {
    Atomics.add(gate, Gate.Allowed, 1);
    Atomics.notify(gate, Gate.Allowed);
  }
  settle(gate);
}

async function run(order: string, set: RingSet, sleeps: Part, wakes: Part): Promise<[Result, Result]> {
  const gates = [0, 1].map(() => new Int32Array(new SharedArrayBuffer(64))) as [Int32Array, Int32Array];
  const results = Promise.all([once(sleeper, 'message'), once(waker, 'message')]);
  sleeper.postMessage({ part: sleeps, set, gate: gates[0], waitMs: WAIT_MS } satisfies Play);
  waker.postMessage({ part: wakes, set, gate: gates[1], waitMs: WAIT_MS } satisfies Play);
  for (const gate of gates) settle(gate);
  for (const letter of order) step(gates[letter === 's' ? 0 : 1]);
  for (const gate of gates) {
    Atomics.store(gate, Gate.Allowed, ALL);
    Atomics.notify(gate, Gate.Allowed);
  }
  const [[slept], [woke]] = (await results) as [[Result], [Result]];
  return [slept, woke];
}

test('a producer that waits for room is woken, in every order of its steps and the release’s', async () => {
  for (const order of orders(5, 3)) {
    const set = createRingSet({ producerCount: 1, shardCount: 1, ringBytes: 1024 });
    const writer = openRingWriter(set, 0);
    for (let number = 0; number < 4; number++) writer.offer(0, makeRecord(0, number, 256), 0, 256);
    writer.publish();
    const [slept] = await run(order, set, 'wait-for-space', 'release');
    assert.equal(slept.value, true, order);
    assert.ok(slept.tookMs < WAIT_MS / 2, `${order}: slept ${slept.tookMs} ms`);
  }
});

test('a reader that waits for records is woken, in every order of its steps and the publisher’s', async () => {
  for (const order of orders(4, 3)) {
    const set = createRingSet({ producerCount: 1, shardCount: 1, ringBytes: 1024 });
    const [slept] = await run(order, set, 'wait-for-records', 'publish');
    assert.ok(slept.tookMs < WAIT_MS / 2, `${order}: slept ${slept.tookMs} ms`);
  }
});

test('a producer that waits for room in a shard whose reader died is told so', async () => {
  const set = createRingSet({ producerCount: 1, shardCount: 1, ringBytes: 1024 });
  const writer = openRingWriter(set, 0);
  for (let number = 0; number < 4; number++) writer.offer(0, makeRecord(0, number, 256), 0, 256);
  writer.publish();
  const gate = new Int32Array(new SharedArrayBuffer(64));
  const result = once(sleeper, 'message');
  sleeper.postMessage({ part: 'wait-for-space', set, gate, waitMs: WAIT_MS } satisfies Play);
  settle(gate);
  while (Atomics.load(gate, Gate.Resting) === 0) step(gate);
  // The thread has said that it goes to sleep, not that it sleeps: tell it until it has heard.
  Atomics.store(gate, Gate.Allowed, ALL);
  Atomics.notify(gate, Gate.Allowed);
  const telling = setInterval(() => setShardState(set, 0, ShardState.Dead), 5);
  const [woken] = (await result) as [Result];
  clearInterval(telling);
  assert.equal(woken.value, false);
  assert.ok(woken.tookMs < WAIT_MS / 2);
});

test('a thread that waits for a slot gets the one that is freed, in every order of both sides’ steps', async () => {
  for (const order of orders(4, 4)) {
    const set = createRingSet({ producerCount: 1, shardCount: 1, ringBytes: 1024 });
    claimSlot(set, 1);
    const [slept, woke] = await run(order, set, 'claim', 'free-slot');
    assert.equal(slept.value, 0, order);
    assert.ok(slept.tookMs < WAIT_MS / 2, `${order}: slept ${slept.tookMs} ms`);
    assert.equal(woke.value, 1, order);
  }
});
