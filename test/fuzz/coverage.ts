/**
 * What an input has reached: one byte a place in the code, counted up by the instrumented TypeScript and WebAssembly alike.
 * The counters lie in a WebAssembly memory, so that both can write them without a call.
 */
const PAGE_COUNT = 4;
const PAGE_BYTES = 65_536;

/** Where instrumented code finds its counters: `globalThis[COUNTERS]`. */
export const COUNTERS = Symbol.for('fuzz.counters');

/** Hit counts → one of eight classes, so that a loop's 17th turn is not news but its hundredth is. */
const classOf = new Uint8Array(256);
for (let count = 1; count < 256; count++) {
  classOf[count] =
    count < 4 ? 1 << (count - 1) : count < 8 ? 8 : count < 16 ? 16 : count < 32 ? 32 : count < 128 ? 64 : 128;
}

export class Coverage {
  readonly memory = new WebAssembly.Memory({ initial: PAGE_COUNT, maximum: PAGE_COUNT });
  readonly counters = new Uint8Array(this.memory.buffer);
  readonly #words = new Int32Array(this.memory.buffer);
  /** Classes seen so far, one byte of flags a place. */
  readonly #seen = new Uint8Array(PAGE_COUNT * PAGE_BYTES);
  #placeCount = 0;

  /** Number of the next place in the code. */
  place(): number {
    if (this.#placeCount === this.counters.length) throw new Error('more places than counters');
    return this.#placeCount++;
  }

  /** Places that code can count at. */
  get placeCount(): number {
    return this.#placeCount;
  }

  /** Places that were ever reached. */
  get reachedCount(): number {
    let count = 0;
    for (let place = 0; place < this.#placeCount; place++) if (this.#seen[place] !== 0) count++;
    return count;
  }

  reset(): void {
    this.counters.fill(0, 0, this.#placeCount);
  }

  /** How many classes this run was the first to reach; they count as seen from now on. */
  takeNews(): number {
    let news = 0;
    this.#each((place, flag) => {
      const seen = this.#seen[place] ?? 0;
      if ((seen & flag) !== 0) return;
      this.#seen[place] = seen | flag;
      news++;
    });
    return news;
  }

  /** Places and classes of this run as numbers, for comparing inputs. */
  features(): number[] {
    const found: number[] = [];
    this.#each((place, flag) => found.push(place * 256 + flag));
    return found;
  }

  #each(visit: (place: number, flag: number) => void): void {
    const wordCount = Math.ceil(this.#placeCount / 4);
    for (let word = 0; word < wordCount; word++) {
      if (this.#words[word] === 0) continue;
      for (let place = word * 4; place < word * 4 + 4; place++) {
        const count = this.counters[place] ?? 0;
        if (count !== 0) visit(place, classOf[count] ?? 0);
      }
    }
  }
}
