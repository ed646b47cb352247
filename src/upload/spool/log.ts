/**
 * A folder's open end: records are appended to one segment after the other. In: records as pieces. Out: where they lie,
 * and, later, that they are on the medium.
 *
 * Owned by one thread; the file system is asked in the background, one call at a time, and everything that has gathered
 * meanwhile is written by the next. fsync follows a write within `syncIntervalMs`, and before a segment is renamed.
 * A write that fails is taken back (the file is cut to where it was) and told to everybody whose record was in it or
 * waits behind it; nothing is tried again here. Stop: {@link SegmentLog.close}.
 *
 * After a power cut the folder has every record that was flushed; of what was written after the last flush, any part.
 */
import { join } from 'node:path';
import { nodeBackgroundDisk, outOfSpace, type BackgroundDisk, type BackgroundFile } from '../../core/disk.ts';
import type { Clock } from '../../core/lifecycle.ts';
import { MiB } from '../../core/units.ts';
import { OPEN_SUFFIX, SEALED_SUFFIX, segmentName } from './segment.ts';

export interface LogSettings {
  readonly folder: string;
  /** Part of the segments' names. */
  readonly label: string;
  /** A segment that has reached it gets no more records. */
  readonly segmentBytes: number;
  /** Longest time from a write to its fsync. */
  readonly syncIntervalMs: number;
}

/** A segment as its writer or its reader knows it. */
export interface Segment {
  readonly name: string;
  path: string;
  sizeBytes: number;
  /** Nothing is appended any more. */
  sealed: boolean;
  /** Of its newest record. */
  newestMs: number;
}

export interface Written {
  readonly segment: Segment;
  readonly offset: number;
  readonly lengthBytes: number;
  /** Null once it is on the medium; why not, when fsync failed. Never rejects. */
  readonly synced: Promise<Error | null>;
}

interface Waiting {
  readonly pieces: readonly Buffer[];
  readonly lengthBytes: number;
  readonly resolve: (written: Written) => void;
  readonly reject: (error: Error) => void;
}

/** Of one write. */
const MAX_WRITE_BYTES = 4 * MiB;

export class SegmentLog {
  readonly #settings: LogSettings;
  readonly #clock: Clock;
  readonly #disk: BackgroundDisk;
  #waiting: Waiting[] = [];
  #segment: Segment | null = null;
  #file: BackgroundFile | null = null;
  /** Written since the last fsync; resolved by the next. */
  #unsynced: { promise: Promise<Error | null>; resolve: (failure: Error | null) => void } | null = null;
  /** Set by the owner: hears what failed where nobody's record is at stake. */
  onTrouble: (error: Error) => void = () => undefined;
  #syncDue = false;
  #sealDue = false;
  #running: Promise<void> | null = null;
  readonly #stop = new AbortController();

  constructor(settings: LogSettings, clock: Clock, disk: BackgroundDisk = nodeBackgroundDisk) {
    this.#settings = settings;
    this.#clock = clock;
    this.#disk = disk;
  }

  /** The segment that records go to; null when the next one begins a new segment. */
  get segment(): Segment | null {
    return this.#segment;
  }

  get waitingCount(): number {
    return this.#waiting.length;
  }

  /** Rejects with the file system's error, and the record is not there. */
  append(pieces: readonly Buffer[]): Promise<Written> {
    return new Promise((resolve, reject) => {
      const lengthBytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
      this.#waiting.push({ pieces, lengthBytes, resolve, reject });
      this.#wake();
    });
  }

  /** Everything appended is on the medium, or has been refused. */
  async sync(): Promise<void> {
    this.#syncDue = true;
    this.#wake();
    while (this.#running !== null) await this.#running;
  }

  /** Ends the open segment, so that the next record begins another. */
  async seal(): Promise<void> {
    this.#sealDue = true;
    this.#wake();
    while (this.#running !== null) await this.#running;
  }

  /** Writes what waits, seals, and ends every timer. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.seal();
  }

  #wake(): void {
    this.#running ??= this.#run().finally(() => {
      this.#running = null;
      if (this.#waiting.length > 0 || this.#syncDue || this.#sealDue) this.#wake();
    });
  }

  /** Never rejects: every error goes to those whom it concerns. */
  async #run(): Promise<void> {
    await Promise.resolve(); // whoever appends in this turn shares the first write
    while (this.#waiting.length > 0) {
      const group = this.#takeGroup();
      try {
        await this.#write(group);
      } catch (error) {
        const refused = [...group, ...this.#waiting.splice(0)];
        await this.#sync();
        await this.#abandon();
        for (const { reject } of refused) reject(error as Error);
      }
    }
    if (this.#syncDue || this.#sealDue) await this.#sync();
    if (this.#sealDue) await this.#seal();
  }

  #takeGroup(): Waiting[] {
    let count = 0;
    let bytes = 0;
    do bytes += this.#waiting[count++]?.lengthBytes ?? 0;
    while (count < this.#waiting.length && bytes < MAX_WRITE_BYTES);
    return this.#waiting.splice(0, count);
  }

  async #write(group: readonly Waiting[]): Promise<void> {
    if (this.#segment !== null && this.#segment.sizeBytes >= this.#settings.segmentBytes) {
      await this.#sync();
      await this.#seal();
    }
    const [segment, file] = await this.#open();
    const start = segment.sizeBytes;
    const totalBytes = group.reduce((sum, { lengthBytes }) => sum + lengthBytes, 0);
    const writtenBytes = await file.write(
      group.flatMap(({ pieces }) => [...pieces]),
      start,
    );
    if (writtenBytes !== totalBytes) throw outOfSpace();
    segment.sizeBytes = start + totalBytes;
    segment.newestMs = this.#clock.nowMs();
    const { promise: synced } = (this.#unsynced ??= this.#expectSync());
    let offset = start;
    for (const { lengthBytes, resolve } of group) {
      resolve({ segment, offset, lengthBytes, synced });
      offset += lengthBytes;
    }
  }

  async #open(): Promise<[Segment, BackgroundFile]> {
    if (this.#segment !== null && this.#file !== null) return [this.#segment, this.#file];
    const nowMs = this.#clock.nowMs();
    const name = segmentName(nowMs, this.#settings.label);
    const path = join(this.#settings.folder, name + OPEN_SUFFIX);
    const file = await this.#disk.create(path);
    try {
      await this.#disk.flushFolder(this.#settings.folder);
    } catch (error) {
      // Records in it might be gone with its name.
      await this.#try(() => file.close());
      await this.#try(() => this.#disk.remove(path));
      throw error;
    }
    this.#file = file;
    this.#segment = { name, path, sizeBytes: 0, sealed: false, newestMs: nowMs };
    return [this.#segment, file];
  }

  #expectSync(): { promise: Promise<Error | null>; resolve: (failure: Error | null) => void } {
    let resolve: (failure: Error | null) => void = () => undefined;
    const promise = new Promise<Error | null>((settle) => (resolve = settle));
    void this.#clock.sleep(this.#settings.syncIntervalMs, this.#stop.signal).then(() => {
      this.#syncDue = true;
      this.#wake();
    });
    return { promise, resolve };
  }

  async #sync(): Promise<void> {
    this.#syncDue = false;
    const due = this.#unsynced;
    this.#unsynced = null;
    if (due === null || this.#file === null) return;
    const failure = await this.#file.flush().then(
      () => null,
      (error: unknown) => error as Error,
    );
    due.resolve(failure);
    // After a failed fsync nobody knows what the file holds: it gets nothing more, the checksums will tell.
    if (failure !== null) await this.#abandon();
  }

  async #seal(): Promise<void> {
    this.#sealDue = false;
    const segment = this.#segment;
    const file = this.#file;
    this.#segment = null;
    this.#file = null;
    if (segment === null || file === null) return;
    segment.sealed = true;
    await this.#try(() => file.close());
    const sealedPath = segment.path.slice(0, -OPEN_SUFFIX.length) + SEALED_SUFFIX;
    // Where it cannot be renamed it keeps its name, under which it is found as well.
    if (await this.#try(() => this.#disk.rename(segment.path, sealedPath))) segment.path = sealedPath;
  }

  /** Takes back what a failed write may have left, and leaves the segment. */
  async #abandon(): Promise<void> {
    const segment = this.#segment;
    const isEmpty = segment?.sizeBytes === 0;
    const file = this.#file;
    // Where even that fails, the checksums tell what is whole.
    if (segment !== null && file !== null) await this.#try(() => file.truncate(segment.sizeBytes));
    await this.#seal();
    if (isEmpty && segment !== null) await this.#try(() => this.#disk.remove(segment.path));
  }

  /** Whether it worked. */
  async #try(step: () => Promise<void>): Promise<boolean> {
    try {
      await step();
      return true;
    } catch (error) {
      this.onTrouble(error as Error);
      return false;
    }
  }
}
