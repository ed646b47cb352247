/**
 * What is being decoded again, on disk: `replay.note` in the journal's folder. A process that dies meanwhile leaves it
 * behind, so that the next one knows which body to handle with care. One sector, overwritten in place and flushed; without
 * an intact one nothing is suspected.
 *
 * | Offset | Bytes | What                                             |
 * | ------ | ----- | ------------------------------------------------ |
 * | 0      | 8     | {@link HEAD}; the last character is the version  |
 * | 8      | 8     | number of the segment: f64                       |
 * | 16     | 8     | where in it the bodies at hand begin: f64        |
 * | 24     | 4     | number of the one body at hand, or -1: i32       |
 * | 28     | 4     | processes that ended with that body at hand: u32 |
 * | 32     | 4     | CRC-32 of all above                              |
 */
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import type { Disk } from './disk.ts';

export interface ReplayNote {
  readonly segment: number;
  /** The offset that they were read from. */
  readonly offset: number;
  /** Of the body that is at hand alone; -1 when there are several. */
  readonly index: number;
  /** Processes that ended while this body was at hand alone. */
  readonly deathCount: number;
}

const HEAD = Buffer.from('cp-note1', 'latin1');
const NOTE_BYTES = 36;
const NAME = 'replay.note';
const DRAFT = 'replay.note.tmp';

/** Blocks on the disk; errors are the file system's own. */
export class NoteFile {
  readonly #folder: string;
  readonly #disk: Disk;
  #file: number | null = null;

  constructor(folder: string, disk: Disk) {
    this.#folder = folder;
    this.#disk = disk;
  }

  /** What an earlier process left; null when there is nothing, or nothing that can be believed. */
  read(): ReplayNote | null {
    this.#disk.clear(join(this.#folder, DRAFT));
    if (!this.#disk.list(this.#folder).includes(NAME)) return null;
    const file = this.#disk.openToRead(join(this.#folder, NAME));
    const bytes = Buffer.alloc(NOTE_BYTES);
    try {
      this.#disk.read(file, bytes, 0);
    } finally {
      this.#disk.close(file);
    }
    const isOurs =
      bytes.subarray(0, HEAD.length).equals(HEAD) && bytes.readUInt32LE(32) === crc32(bytes.subarray(0, 32));
    if (!isOurs) return null;
    return {
      segment: bytes.readDoubleLE(8),
      offset: bytes.readDoubleLE(16),
      index: bytes.readInt32LE(24),
      deathCount: bytes.readUInt32LE(28),
    };
  }

  /** Survives a power cut once this returns. */
  write({ segment, offset, index, deathCount }: ReplayNote): void {
    const bytes = Buffer.alloc(NOTE_BYTES);
    HEAD.copy(bytes);
    bytes.writeDoubleLE(segment, 8);
    bytes.writeDoubleLE(offset, 16);
    bytes.writeInt32LE(index, 24);
    bytes.writeUInt32LE(deathCount, 28);
    bytes.writeUInt32LE(crc32(bytes.subarray(0, 32)), 32);
    if (this.#file === null) {
      this.#create(bytes);
      return;
    }
    this.#disk.write(this.#file, bytes, 0);
    this.#disk.flush(this.#file);
  }

  /** Nothing is at hand any more. Not flushed: before a segment's number is used again, the folder is. */
  clear(): void {
    this.close();
    this.#disk.clear(join(this.#folder, NAME));
  }

  close(): void {
    const file = this.#file;
    this.#file = null;
    if (file !== null) this.#disk.close(file);
  }

  #create(bytes: Buffer): void {
    const draft = join(this.#folder, DRAFT);
    this.#disk.clear(draft);
    const file = this.#disk.create(draft);
    try {
      this.#disk.write(file, bytes, 0);
      this.#disk.flush(file);
      this.#disk.rename(draft, join(this.#folder, NAME));
      this.#disk.flushFolder(this.#folder);
    } catch (error) {
      this.#disk.close(file);
      throw error;
    }
    this.#file = file;
  }
}
