/**
 * Reads a record where it lies, in a ring or elsewhere, without making an object of it: one view is moved from record
 * to record. Bytes are copied out with `Buffer.copy`: on shared memory `Uint8Array.set` is 25 times slower for 64 KiB
 * (14.1 µs against 0.56 µs) unless both sides happen to be aligned alike. (Others: bench/assemble.ts.)
 */
import { Fault } from './outcome.ts';
import { PART_COUNT, Part, RECORD_HEADER_BYTES, RecordOffset, alignRecord } from './record.ts';

/** Last microsecond that an f64 holds exactly; the year 2255. */
const MAX_TIME_US = Number.MAX_SAFE_INTEGER;

export class RecordView {
  /** The memory that the record lies in. */
  bytes: Buffer = Buffer.alloc(0);
  offset = 0;
  totalBytes = 0;
  flags = 0;
  /** Where each part begins in `bytes`; `starts[part + 1]` is where it ends. Filled by {@link readParts}. */
  readonly starts = new Int32Array(PART_COUNT + 1);
  #source: Uint8Array | null = null;
  #words: DataView = new DataView(new ArrayBuffer(0));

  /** Moves to another record. Only the header is looked at. */
  open(source: Uint8Array, offset: number): void {
    if (source !== this.#source) {
      this.#source = source;
      this.bytes = Buffer.from(source.buffer, source.byteOffset, source.byteLength);
      this.#words = new DataView(source.buffer, source.byteOffset, source.byteLength);
    }
    this.offset = offset;
    this.totalBytes = this.#words.getUint32(offset + RecordOffset.TotalBytes, true);
    this.flags = this.#words.getUint32(offset + RecordOffset.Flags, true);
  }

  /** Lets go of the memory, so that a view kept for later keeps nothing else alive. */
  close(): void {
    this.#source = null;
    this.bytes = Buffer.alloc(0);
    this.#words = new DataView(new ArrayBuffer(0));
  }

  /** Any aligned 32 bits of the header, signed: ids as words. */
  word(fieldOffset: number): number {
    return this.#words.getInt32(this.offset + fieldOffset, true);
  }

  get startUs(): number {
    return usable(this.#words.getFloat64(this.offset + RecordOffset.StartUs, true));
  }

  get endUs(): number {
    return usable(this.#words.getFloat64(this.offset + RecordOffset.EndUs, true));
  }

  get keyHash(): number {
    return this.#words.getUint32(this.offset + RecordOffset.KeyHash, true);
  }

  /** Number of the request that it came with; 0 when requests are not followed. */
  get source(): number {
    return this.#words.getUint32(this.offset + RecordOffset.Source, true);
  }

  /** The Key part is the first one: its place needs no sum. */
  get keyOffset(): number {
    return this.offset + RECORD_HEADER_BYTES;
  }

  get keyBytes(): number {
    return this.#words.getUint32(this.offset + RecordOffset.PartLengths + 4 * Part.Key, true);
  }

  /** Finds where the parts lie. */
  readParts(): void {
    let at = this.offset + RECORD_HEADER_BYTES;
    const lengths = this.offset + RecordOffset.PartLengths;
    for (let part = 0; part < PART_COUNT; part++) {
      this.starts[part] = at;
      at += this.#words.getUint32(lengths + 4 * part, true);
    }
    this.starts[PART_COUNT] = at;
    if (alignRecord(at - this.offset) !== this.totalBytes) {
      throw new Fault(`a record of ${this.totalBytes} bytes whose parts take ${at - this.offset}`);
    }
  }

  partStart(part: number): number {
    return this.starts[part] ?? 0;
  }

  partBytes(part: number): number {
    return (this.starts[part + 1] ?? 0) - (this.starts[part] ?? 0);
  }
}

/** Times are rendered with four digits of year and feed comparisons: nothing negative, nothing that is not a number. */
function usable(timeUs: number): number {
  return timeUs >= 0 && timeUs <= MAX_TIME_US ? timeUs : 0;
}
