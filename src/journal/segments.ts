/** All segments of the journal, as the main thread knows them: their numbers, their bytes, and whose records are whose. */
import { Fault } from '../core/outcome.ts';
import { SEGMENT_HEAD } from './frame.ts';
import { MAX_SEGMENT_BODIES, Segment } from './segment.ts';

/** Ids are the upper half of a 32-bit number. */
const ID_COUNT = 2 ** 16;

export class Segments {
  readonly #byId = new Map<number, Segment>();
  readonly #byNumber = new Map<number, Segment>();
  /** By ids that they had before they were started over, unless somebody else has them now. */
  readonly #byFormerId = new Map<number, Segment>();
  /** Of segments of which bodies were decoded once more; those in use are in `#byId` too. */
  readonly #laterIds = new Map<Segment, Set<number>>();
  readonly #segmentBytes: number;
  readonly #idCount: number;
  #lastNumber = 0;
  #lastId = -1;
  /** Of all files, what is still to be written included. */
  bytes = 0;
  /** Takes new bodies; null when the next body needs a new one. */
  open: Segment | null = null;

  /** A segment is full at `segmentBytes`; a larger body has one to itself. At most `idCount` ids are in use. */
  constructor(segmentBytes: number, idCount = ID_COUNT) {
    this.#segmentBytes = segmentBytes;
    this.#idCount = idCount;
  }

  /** Oldest first. */
  get all(): IterableIterator<Segment> {
    return this.#byNumber.values();
  }

  get count(): number {
    return this.#byNumber.size;
  }

  get liveBodyCount(): number {
    let count = 0;
    for (const segment of this.#byNumber.values()) count += segment.liveCount;
    return count;
  }

  byNumber(number: number): Segment | undefined {
    return this.#byNumber.get(number);
  }

  /** A file that was there. */
  adopt(number: number, bytes: number): Segment {
    const segment = new Segment(number, this.#freeId(), bytes);
    segment.sealed = true;
    this.#lastNumber = Math.max(this.#lastNumber, number);
    this.#enter(segment);
    return segment;
  }

  /** The open segment, if it has room for the frame, else a new one. */
  openFor(frameBytes: number): Segment {
    const { open } = this;
    const hasRoom =
      open !== null &&
      open.bodyCount < MAX_SEGMENT_BODIES &&
      (open.bodyCount === 0 || open.bytes + frameBytes <= this.#segmentBytes);
    if (hasRoom) return open;
    this.seal();
    this.open = new Segment(++this.#lastNumber, this.#freeId(), SEGMENT_HEAD.length);
    this.#enter(this.open);
    return this.open;
  }

  /** Takes a body into the segment; returns its number there. */
  add(segment: Segment, frameBytes: number): number {
    this.bytes += frameBytes;
    return segment.add(frameBytes);
  }

  /** Nothing more goes into the open segment, which is returned. */
  seal(): Segment | null {
    const { open } = this;
    if (open !== null) open.sealed = true;
    this.open = null;
    return open;
  }

  /** The segment of the body whose number this is, unless it is none of ours (any more). */
  find(source: number): Segment | undefined {
    return this.#byId.get(Math.floor(source / ID_COUNT));
  }

  /** As `find`, also by a number from before it was started over. */
  findEver(source: number): Segment | undefined {
    return this.find(source) ?? this.#byFormerId.get(Math.floor(source / ID_COUNT));
  }

  static indexOf(source: number): number {
    return (source % ID_COUNT) - 1;
  }

  /** The numbers of its records are not known any more; what is needed of it gets new ones. */
  startOver(segment: Segment): void {
    this.#byId.delete(segment.id);
    this.#byFormerId.set(segment.id, segment);
    segment.startOver(this.#freeId());
    this.#giveBackIds(segment);
    this.#byFormerId.delete(segment.id);
    this.#byId.set(segment.id, segment);
  }

  /** An id for those of the segment's bodies that are decoded once more now: see {@link Segment.tryAgain}. */
  laterId(segment: Segment): number {
    this.#giveBackIds(segment);
    const id = this.#freeId();
    this.#byFormerId.delete(id);
    this.#byId.set(id, segment);
    const ids = this.#laterIds.get(segment) ?? new Set();
    this.#laterIds.set(segment, ids.add(id));
    return id;
  }

  remove(segment: Segment): void {
    this.#byId.delete(segment.id);
    for (const id of this.#laterIds.get(segment) ?? []) this.#byId.delete(id);
    this.#laterIds.delete(segment);
    for (const [id, former] of this.#byFormerId) if (former === segment) this.#byFormerId.delete(id);
    if (this.#byNumber.delete(segment.number)) this.bytes -= segment.bytes;
  }

  /** Those that none of its bodies has any more. */
  #giveBackIds(segment: Segment): void {
    const ids = this.#laterIds.get(segment);
    if (ids === undefined) return;
    const inUse = segment.laterIds;
    for (const id of ids) {
      if (inUse.has(id)) continue;
      ids.delete(id);
      this.#byId.delete(id);
      this.#byFormerId.set(id, segment);
    }
  }

  #enter(segment: Segment): void {
    this.#byFormerId.delete(segment.id);
    this.#byId.set(segment.id, segment);
    this.#byNumber.set(segment.number, segment);
    this.bytes += segment.bytes;
  }

  /**
   * One that has not been in use for as long as possible: late news of an old one must not be taken for its. Memory bounds
   * how many bodies are under way, and so the ids in use, far below their count.
   */
  #freeId(): number {
    if (this.#byId.size === this.#idCount) throw new Fault('no id is left for bodies of the journal');
    do this.#lastId = (this.#lastId + 1) % this.#idCount;
    while (this.#byId.has(this.#lastId));
    return this.#lastId;
  }
}
