/**
 * One segment of the journal as the main thread knows it: which of its bodies are still needed. A body is needed from
 * the moment it is gathered until all the records that were made of it are settled, or until it turns out that nobody was
 * told that it was accepted.
 *
 * Records are settled in other threads, often before the answer that says how many there are has come here: counts may
 * run ahead.
 */

/** Added to a body's count of outstanding records until that count is known. */
const UNKNOWN = 2 ** 30;
const SETTLED = -(2 ** 31);

/** A body's number in its segment takes 16 bits of the number that records carry, and 0 stands for no body. */
export const MAX_SEGMENT_BODIES = 0xffff;
const FIRST_BODIES = 1024;

export class Segment {
  /** Of the file. */
  readonly number: number;
  /** Upper half of the numbers that this segment's records carry; another one when it is replayed. */
  id: number;
  /** Of the file, what is still to be written included. */
  bytes: number;
  bodyCount = 0;
  /** Bodies that are still needed. */
  liveCount = 0;
  /** Their bytes. */
  liveBytes = 0;
  /** Nothing will be added any more. */
  sealed = false;
  #outstanding = new Int32Array(FIRST_BODIES);
  #bodyBytes = new Uint32Array(FIRST_BODIES);
  /** In place of `id`, of bodies that are decoded once more. */
  readonly #laterIds = new Map<number, number>();

  constructor(number: number, id: number, bytes: number) {
    this.number = number;
    this.id = id;
    this.bytes = bytes;
  }

  /** Takes a body in; returns its number. */
  add(frameBytes: number): number {
    const index = this.bodyCount;
    this.find(index, frameBytes);
    this.bytes += frameBytes;
    return index;
  }

  /** As `add`, for a body that is on disk already. False when it is known. */
  find(index: number, frameBytes: number): boolean {
    if (index < this.bodyCount) return false;
    while (this.bodyCount <= index) {
      if (this.bodyCount === this.#outstanding.length) this.#grow();
      this.#outstanding[this.bodyCount] = this.bodyCount === index ? UNKNOWN : SETTLED;
      this.bodyCount++;
    }
    this.#bodyBytes[index] = frameBytes;
    this.liveCount++;
    this.liveBytes += frameBytes;
    return true;
  }

  /** Number that the records of this body carry. Never 0. */
  sourceOf(index: number): number {
    return (this.#laterIds.get(index) ?? this.id) * 2 ** 16 + index + 1;
  }

  /** Ids that bodies have in place of the segment's. */
  get laterIds(): ReadonlySet<number> {
    return new Set(this.#laterIds.values());
  }

  isLive(index: number): boolean {
    return index < this.bodyCount && this.#outstanding[index] !== SETTLED;
  }

  /** Nobody has said yet how many records were made of it. */
  isUnanswered(index: number): boolean {
    return this.isLive(index) && (this.#outstanding[index] ?? 0) > UNKNOWN / 2;
  }

  /** So many records were made of it. */
  answered(index: number, recordCount: number): void {
    if (this.isUnanswered(index)) this.#change(index, recordCount - UNKNOWN);
  }

  /** So many of its records need nobody's memory any more. */
  settle(index: number, recordCount: number): void {
    this.#change(index, -recordCount);
  }

  /** It is decoded once more: what was made of it before, perhaps a part, does not count. */
  tryAgain(index: number, id: number): void {
    if (!this.isUnanswered(index)) return;
    this.#outstanding[index] = UNKNOWN;
    this.#laterIds.set(index, id);
  }

  /** It is not needed. */
  drop(index: number): void {
    if (!this.isLive(index)) return;
    this.#laterIds.delete(index);
    this.#outstanding[index] = SETTLED;
    this.liveCount--;
    this.liveBytes -= this.#bodyBytes[index] ?? 0;
  }

  /** All that is still needed is going to be decoded anew, under numbers of this id. */
  startOver(id: number): void {
    this.id = id;
    this.#laterIds.clear();
    for (let index = 0; index < this.bodyCount; index++) {
      if (this.#outstanding[index] !== SETTLED) this.#outstanding[index] = UNKNOWN;
    }
  }

  #change(index: number, amount: number): void {
    if (!this.isLive(index)) return;
    const outstanding = (this.#outstanding[index] ?? 0) + amount;
    if (outstanding === 0) this.drop(index);
    else this.#outstanding[index] = outstanding;
  }

  #grow(): void {
    const length = Math.min(2 * this.#outstanding.length, MAX_SEGMENT_BODIES);
    const outstanding = new Int32Array(length);
    outstanding.set(this.#outstanding);
    this.#outstanding = outstanding;
    const bodyBytes = new Uint32Array(length);
    bodyBytes.set(this.#bodyBytes);
    this.#bodyBytes = bodyBytes;
  }
}
