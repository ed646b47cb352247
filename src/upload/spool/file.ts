/** A segment as its reader knows it: reads records, marks them in place, and goes when none of them is needed any more. */
import { outOfSpace, type BackgroundDisk, type BackgroundFile } from '../../core/disk.ts';
import { KiB } from '../../core/units.ts';
import type { Segment } from './log.ts';
import { STATE_OFFSET } from './record.ts';
import { OPEN_SUFFIX, SEALED_SUFFIX } from './segment.ts';

/**
 * What a record counts for at least, against the limit of the spool: small ones take a place in memory too, 256 bytes
 * each at most, so that 1 GiB of limit costs 16 MiB.
 */
export const MIN_RECORD_BYTES = 16 * KiB;
/** Bytes of limit for one byte of memory, at worst. */
export const SPOOL_INDEX_RATIO = 64;

export class SegmentFile {
  readonly segment: Segment;
  /** Records that are still needed. */
  liveCount = 0;
  /** As they count against the limit. */
  countedBytes = 0;
  readonly #disk: BackgroundDisk;
  #file: Promise<BackgroundFile> | null = null;
  /** One call after the other; never rejects. */
  #last: Promise<unknown> = Promise.resolve();
  #removed = false;

  constructor(segment: Segment, disk: BackgroundDisk) {
    this.segment = segment;
    this.#disk = disk;
  }

  /** One more record in it. */
  add(lengthBytes: number): void {
    this.liveCount++;
    this.countedBytes += Math.max(MIN_RECORD_BYTES, lengthBytes);
  }

  /** Rejects with the file system's error. Fewer bytes at the file's end. */
  read(offset: number, lengthBytes: number): Promise<Buffer> {
    return this.#queue((file) => file.read(offset, lengthBytes));
  }

  /** Rejects with the file system's error. */
  mark(offset: number, state: number): Promise<void> {
    return this.#queue(async (file) => {
      if ((await file.write([Uint8Array.of(state)], offset + STATE_OFFSET)) === 0) throw outOfSpace();
    });
  }

  /** Deletes the file once what has been asked before is done. Rejects with the file system's error. */
  async remove(): Promise<void> {
    if (this.#removed) return;
    this.#removed = true;
    await this.close();
    await this.#disk.remove(this.segment.path);
  }

  async close(): Promise<void> {
    await this.#last;
    const file = this.#file;
    this.#file = null;
    // Open by now: one that could not be opened is forgotten by `#open`, and whoever asked for it has heard of it.
    await (await file)?.close();
  }

  #queue<T>(work: (file: BackgroundFile) => Promise<T>): Promise<T> {
    const result = this.#last.then(async () => work(await this.#open()));
    this.#last = result.catch(() => undefined); // the caller hears of it
    return result;
  }

  #open(): Promise<BackgroundFile> {
    if (this.#file === null) {
      const file = openEither(this.#disk, this.segment.path);
      this.#file = file;
      file.catch(() => {
        this.#file = null; // the next call tries again
      });
    }
    return this.#file;
  }
}

/** Its writer may be about to rename it. */
async function openEither(disk: BackgroundDisk, path: string): Promise<BackgroundFile> {
  try {
    return await disk.open(path, 'change');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || !path.endsWith(OPEN_SUFFIX)) throw error;
    return disk.open(path.slice(0, -OPEN_SUFFIX.length) + SEALED_SUFFIX, 'change');
  }
}
