/** Seeded randomness, so that every run of a bench sees the same bytes. */

export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  /** Integer in [from, to], both included. */
  between(from: number, to: number): number;
  chance(probabilityRatio: number): boolean;
  pick<T>(items: readonly T[]): T;
  bytes(count: number): Uint8Array;
}

/** Mulberry32: 32 bits of state, good enough to draw text and ids, and three lines long. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
  const between = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1));
  return {
    next,
    between,
    chance: (probabilityRatio) => next() < probabilityRatio,
    pick: (items) => {
      const item = items[Math.floor(next() * items.length)];
      if (item === undefined) throw new RangeError('pick from an empty list');
      return item;
    },
    bytes: (count) => Uint8Array.from({ length: count }, () => between(0, 255)),
  };
}
