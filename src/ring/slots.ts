/**
 * Which thread writes to which producer slot. A decode thread claims a slot when it starts; the main thread frees the
 * slots of threads that have exited. What a dead thread had published stays in its rings and is read; what it had not
 * is nowhere. The next owner of the slot goes on at the tail.
 */
import { Fault } from '../core/outcome.ts';
import { SECOND_MS } from '../core/units.ts';
import { doorbellWord, ownerWord, releasesWord, type RingSet } from './layout.ts';

const FREE = 0;
/** A replacement can be up before the exit of the thread it replaces was seen; that takes milliseconds. */
const CLAIM_WAIT_MS = 5 * SECOND_MS;

/** Blocks this thread, at most `waitMs`, until a slot is free; a {@link Fault} when none became so. */
export function claimSlot(set: RingSet, threadId: number, waitMs = CLAIM_WAIT_MS): number {
  const words = new Int32Array(set.control);
  const deadlineMs = performance.now() + waitMs;
  for (;;) {
    const releases = Atomics.load(words, releasesWord());
    for (let slot = 0; slot < set.producerCount; slot++) {
      if (Atomics.compareExchange(words, ownerWord(set, slot), FREE, ownerMark(threadId)) === FREE) return slot;
    }
    const leftMs = deadlineMs - performance.now();
    if (leftMs <= 0) throw new Fault(`all ${set.producerCount} producer slots are taken`);
    // Pairs with the `add` below: a slot freed after the load above changes the word, and this returns at once.
    Atomics.wait(words, releasesWord(), releases, leftMs);
  }
}

/**
 * For the main thread, with the ids of all threads that may still run: a thread is alive until its `exit` event, not
 * until somebody asked it to end. Returns how many slots became free.
 */
export function releaseDeadSlots(set: RingSet, aliveThreadIds: ReadonlySet<number>): number {
  const words = new Int32Array(set.control);
  let freedCount = 0;
  for (let slot = 0; slot < set.producerCount; slot++) {
    const owner = Atomics.load(words, ownerWord(set, slot));
    if (owner === FREE || aliveThreadIds.has(owner - 1)) continue;
    if (Atomics.compareExchange(words, ownerWord(set, slot), owner, FREE) === owner) freedCount++;
  }
  if (freedCount === 0) return 0;
  Atomics.add(words, releasesWord(), 1);
  Atomics.notify(words, releasesWord());
  // A producer that died between publishing and ringing left readers asleep in front of records.
  for (let shard = 0; shard < set.shardCount; shard++) {
    Atomics.add(words, doorbellWord(set, shard), 1);
    Atomics.notify(words, doorbellWord(set, shard));
  }
  return freedCount;
}

/** The main thread's id is 0, which is what a free slot holds. */
function ownerMark(threadId: number): number {
  return threadId + 1;
}
