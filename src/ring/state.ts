/**
 * What a shard's reader is up to, as told by the main thread: the only writer, so a plain `store` is enough. The word
 * is never consulted for correctness of the data, only to end waits: records of a dead reader stay in the rings, and
 * the reader that replaces it goes on at the last release.
 */
import { doorbellWord, headWord, stateWord, type RingSet } from './layout.ts';

export const ShardState = {
  Open: 0,
  /** No producer will publish any more: an empty shard is finished. */
  Draining: 1,
  /** Nobody reads: producers fill what is free and then refuse without waiting. */
  Dead: 2,
} as const;

export type ShardState = (typeof ShardState)[keyof typeof ShardState];

/**
 * Ends the waits of the shard's reader and of all producers that wait for room in this shard; a producer that was about
 * to sleep in this very instant sleeps out its time, which is bounded.
 */
export function setShardState(set: RingSet, shard: number, state: ShardState): void {
  const words = new Int32Array(set.control);
  Atomics.store(words, stateWord(set, shard), state);
  Atomics.add(words, doorbellWord(set, shard), 1);
  Atomics.notify(words, doorbellWord(set, shard));
  for (let slot = 0; slot < set.producerCount; slot++) Atomics.notify(words, headWord(set, slot, shard));
}

export function shardState(set: RingSet, shard: number): ShardState {
  return Atomics.load(new Int32Array(set.control), stateWord(set, shard)) as ShardState;
}
