/** Which span numbers of one phase have arrived: a bitmap, so that "each exactly once" can be said of millions. */

export interface ArrivalCounts {
  /** Different spans. */
  readonly arrivedCount: number;
  /** Arrivals of a span that had arrived before. */
  readonly repeatedCount: number;
}

export interface Arrivals {
  add(number: number): void;
  counts(): ArrivalCounts;
}

export function createArrivals(): Arrivals {
  let bits = new Uint8Array(1 << 20);
  let arrivedCount = 0;
  let repeatedCount = 0;
  return {
    add: (number) => {
      const word = number >>> 3;
      if (word >= bits.length) {
        const grown = new Uint8Array(Math.max(bits.length * 2, word + 1));
        grown.set(bits);
        bits = grown;
      }
      const mask = 1 << (number & 7);
      const byte = bits[word] ?? 0;
      if ((byte & mask) !== 0) {
        repeatedCount++;
        return;
      }
      bits[word] = byte | mask;
      arrivedCount++;
    },
    counts: () => ({ arrivedCount, repeatedCount }),
  };
}
