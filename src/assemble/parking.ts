/**
 * Copies of records whose ancestors are not known yet, in chunks of memory that are reused once every record in them
 * has left. Entries are kept in the order of their arrival, so the one that has waited longest is at hand.
 *
 * A chunk is held by its last record. When the memory limit is reached although less than half of it is in use, the
 * owner calls {@link Parking.compact} before it gives up on anything.
 */
import type { RecordView } from '../core/recordview.ts';
import { KiB } from '../core/units.ts';
import { lengthened } from './slots.ts';
import { NONE } from './spans.ts';

const CHUNK_BYTES = 64 * KiB;
/** Larger records get a chunk to themselves. */
const SHARED_RECORD_BYTES = CHUNK_BYTES / 4;
/** Empty chunks kept for the next records. */
const SPARE_COUNT = 16;

interface Chunk {
  readonly bytes: Buffer;
  usedBytes: number;
  recordCount: number;
}

export class Parking {
  /** Memory of all chunks that hold records. */
  chunkBytes = 0;
  /** Of the records alone. */
  recordBytes = 0;
  count = 0;
  /** The entry that has waited longest, else NONE. */
  oldest = NONE;
  #newest = NONE;
  #freeEntry = NONE;
  #entryCount = 0;
  // Columns by entry.
  #span = new Int32Array(64);
  #chunk = new Int32Array(64);
  #offset = new Int32Array(64);
  #bytes = new Int32Array(64);
  #parkedMs = new Float64Array(64);
  #newer = new Int32Array(64);
  #older = new Int32Array(64);
  readonly #chunks: (Chunk | undefined)[] = [];
  readonly #freeChunks: number[] = [];
  readonly #spares: Buffer[] = [];
  /** The chunk being filled, else NONE. */
  #open = NONE;

  /** Copies the record in and returns its entry. */
  park(span: number, record: RecordView, nowMs: number): number {
    const entry = this.#takeEntry();
    this.#span[entry] = span;
    this.#parkedMs[entry] = nowMs;
    this.#place(entry, record.bytes, record.offset, record.totalBytes);
    this.#older[entry] = this.#newest;
    this.#newer[entry] = NONE;
    if (this.#newest === NONE) this.oldest = entry;
    else this.#newer[this.#newest] = entry;
    this.#newest = entry;
    this.count++;
    return entry;
  }

  /** Moves the view to the parked record; valid until the next call that changes anything here. */
  open(entry: number, view: RecordView): void {
    const chunk = this.#chunks[this.#chunk[entry] ?? NONE];
    if (chunk !== undefined) view.open(chunk.bytes, this.#offset[entry] ?? 0);
  }

  spanOf(entry: number): number {
    return this.#span[entry] ?? NONE;
  }

  parkedMs(entry: number): number {
    return this.#parkedMs[entry] ?? 0;
  }

  release(entry: number): void {
    this.#leave(entry);
    const newer = this.#newer[entry] ?? NONE;
    const older = this.#older[entry] ?? NONE;
    if (newer === NONE) this.#newest = older;
    else this.#older[newer] = older;
    if (older === NONE) this.oldest = newer;
    else this.#newer[older] = newer;
    this.#newer[entry] = this.#freeEntry;
    this.#freeEntry = entry;
    this.count--;
  }

  /** Moves all records together, oldest first, so that chunks with few records in them become free. */
  compact(): void {
    this.#open = NONE;
    for (let entry = this.oldest; entry !== NONE; entry = this.#newer[entry] ?? NONE) {
      const bytes = this.#bytes[entry] ?? 0;
      const chunk = this.#chunks[this.#chunk[entry] ?? NONE];
      if (chunk === undefined || bytes > SHARED_RECORD_BYTES) continue;
      const offset = this.#offset[entry] ?? 0;
      this.#leave(entry);
      // The bytes are still there: should its chunk have become free and be the next to be filled, then this record is
      // the first to go in, and `Buffer.copy` moves overlapping bytes correctly.
      this.#place(entry, chunk.bytes, offset, bytes);
    }
  }

  #place(entry: number, source: Buffer, offset: number, bytes: number): void {
    let index = this.#open;
    let chunk = this.#chunks[index];
    if (bytes > SHARED_RECORD_BYTES) {
      index = this.#addChunk(Buffer.allocUnsafeSlow(bytes));
      chunk = this.#chunks[index];
    } else if (chunk === undefined || chunk.usedBytes + bytes > CHUNK_BYTES) {
      index = this.#addChunk(this.#spares.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES));
      chunk = this.#chunks[index];
      this.#open = index;
    }
    if (chunk === undefined) return;
    source.copy(chunk.bytes, chunk.usedBytes, offset, offset + bytes);
    this.#chunk[entry] = index;
    this.#offset[entry] = chunk.usedBytes;
    this.#bytes[entry] = bytes;
    chunk.usedBytes += bytes;
    chunk.recordCount++;
    this.recordBytes += bytes;
  }

  #leave(entry: number): void {
    const index = this.#chunk[entry] ?? NONE;
    const chunk = this.#chunks[index];
    if (chunk === undefined) return;
    this.recordBytes -= this.#bytes[entry] ?? 0;
    if (--chunk.recordCount > 0) return;
    this.#chunks[index] = undefined;
    this.#freeChunks.push(index);
    this.chunkBytes -= chunk.bytes.length;
    if (chunk.bytes.length === CHUNK_BYTES && this.#spares.length < SPARE_COUNT) this.#spares.push(chunk.bytes);
    if (index === this.#open) this.#open = NONE;
  }

  #addChunk(bytes: Buffer): number {
    const index = this.#freeChunks.pop() ?? this.#chunks.length;
    this.#chunks[index] = { bytes, usedBytes: 0, recordCount: 0 };
    this.chunkBytes += bytes.length;
    return index;
  }

  #takeEntry(): number {
    const free = this.#freeEntry;
    if (free !== NONE) {
      this.#freeEntry = this.#newer[free] ?? NONE;
      return free;
    }
    if (this.#entryCount === this.#span.length) {
      const length = 2 * this.#entryCount;
      this.#span = lengthened(this.#span, length);
      this.#chunk = lengthened(this.#chunk, length);
      this.#offset = lengthened(this.#offset, length);
      this.#bytes = lengthened(this.#bytes, length);
      this.#parkedMs = lengthened(this.#parkedMs, length);
      this.#newer = lengthened(this.#newer, length);
      this.#older = lengthened(this.#older, length);
    }
    return this.#entryCount++;
  }
}
