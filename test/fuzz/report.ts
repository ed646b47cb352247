/**
 * What a fuzzing thread and its owner share, so that the owner knows what the thread was doing when it hangs or dies: a
 * few numbers and the input at hand.
 */
const WORDS = { Turn: 0, InputBytes: 1, RunCount: 2, CorpusCount: 3, ReachedCount: 4, PlaceCount: 5 } as const;
const HEAD_BYTES = 64;

export class SharedReport {
  readonly shared: SharedArrayBuffer;
  readonly #words: Int32Array;
  readonly #input: Uint8Array;

  constructor(source: SharedArrayBuffer | number) {
    this.shared = typeof source === 'number' ? new SharedArrayBuffer(HEAD_BYTES + source) : source;
    this.#words = new Int32Array(this.shared, 0, HEAD_BYTES / 4);
    this.#input = new Uint8Array(this.shared, HEAD_BYTES);
  }

  /** Called by the thread before each run. */
  began(input: Uint8Array): void {
    const bytes = input.subarray(0, this.#input.length);
    this.#input.set(bytes);
    this.#words[WORDS.InputBytes] = bytes.length;
    Atomics.add(this.#words, WORDS.Turn, 1); // pairs with the load in `turn`
  }

  /** Changes with every run. */
  get turn(): number {
    return Atomics.load(this.#words, WORDS.Turn); // pairs with the add in `began`
  }

  get input(): Uint8Array {
    return this.#input.slice(0, this.#words[WORDS.InputBytes] ?? 0);
  }

  tell(numbers: { runCount: number; corpusCount: number; reachedCount: number; placeCount: number }): void {
    this.#words[WORDS.RunCount] = numbers.runCount;
    this.#words[WORDS.CorpusCount] = numbers.corpusCount;
    this.#words[WORDS.ReachedCount] = numbers.reachedCount;
    this.#words[WORDS.PlaceCount] = numbers.placeCount;
  }

  get numbers(): { runCount: number; corpusCount: number; reachedCount: number; placeCount: number } {
    const word = (index: number): number => this.#words[index] ?? 0;
    return {
      runCount: word(WORDS.RunCount),
      corpusCount: word(WORDS.CorpusCount),
      reachedCount: word(WORDS.ReachedCount),
      placeCount: word(WORDS.PlaceCount),
    };
  }
}
