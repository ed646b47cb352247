/** Numbers that look random and are the same for the same seed (mulberry32). */
export interface Random {
  /** An integer, 0 to `limit` - 1. */
  readonly below: (limit: number) => number;
  /** True once in `times` calls. */
  readonly oneIn: (times: number) => boolean;
  /** One of them; `items` must not be empty. */
  readonly pick: <T>(items: ArrayLike<T>) => T;
}

export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return (t ^ (t >>> 14)) >>> 0;
  };
  const below = (limit: number): number => next() % limit;
  return {
    below,
    oneIn: (times) => below(times) === 0,
    pick: <T>(items: ArrayLike<T>) => items[below(items.length)] as T,
  };
}
