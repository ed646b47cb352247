/** What the journal does with a file system, as a dependency: tests put one in between that fails, or forgets. */
import {
  closeSync,
  constants,
  fdatasyncSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
  writevSync,
} from 'node:fs';
import { FILE_MODE, FOLDER_MODE, parentsOf } from '../core/disk.ts';
import { lockFolder, type FolderLock } from './lock.ts';

export interface Disk {
  /** With those above it. Returns when their names survive a power cut. */
  makeFolder(folder: string): void;
  /** Keeps other processes out of the folder that the file is in. Throws a readable line when one has it. */
  lock(file: string): FolderLock;
  list(folder: string): string[];
  /** Makes the file; fails when there is one. */
  create(path: string): number;
  openToRead(path: string): number;
  /** All of it, at this place. */
  write(file: number, bytes: Uint8Array, offset: number): void;
  writeAll(file: number, pieces: readonly Uint8Array[], offset: number): void;
  /** Reads as many bytes as there are, at most all of `target`. */
  read(file: number, target: Uint8Array, offset: number): number;
  truncate(file: number, bytes: number): void;
  /** Returns when the bytes survive a power cut. */
  flush(file: number): void;
  flushFolder(folder: string): void;
  close(file: number): void;
  rename(from: string, to: string): void;
  /** Removes the file; absence is fine. */
  clear(path: string): void;
  size(path: string): number;
  openSize(file: number): number;
}

/** Of one call of `writev`. */
const MAX_PIECES = 512;

export const nodeDisk: Disk = {
  makeFolder: (folder) => {
    mkdirSync(folder, { recursive: true, mode: FOLDER_MODE });
    for (const parent of parentsOf(folder)) flushFolder(parent);
  },
  lock: lockFolder,
  list: (folder) => readdirSync(folder),
  create: (path) => openSync(path, 'wx', FILE_MODE),
  openToRead: (path) => openSync(path, 'r'),
  write: writeWhole,
  writeAll: (file, pieces, offset) => {
    let at = offset;
    for (let first = 0; first < pieces.length; first += MAX_PIECES) {
      const some = pieces.slice(first, first + MAX_PIECES);
      let writtenBytes = writevSync(file, some, at);
      for (const piece of some) {
        // A write may stop half-way: near the end of the disk, or beyond 2 GiB.
        if (writtenBytes < piece.length) writeWhole(file, piece.subarray(writtenBytes), at + writtenBytes);
        writtenBytes = Math.max(0, writtenBytes - piece.length);
        at += piece.length;
      }
    }
  },
  read: (file, target, offset) => {
    let readBytes = 0;
    while (readBytes < target.length) {
      const count = readSync(file, target, readBytes, target.length - readBytes, offset + readBytes);
      if (count === 0) break;
      readBytes += count;
    }
    return readBytes;
  },
  truncate: ftruncateSync,
  flush: fdatasyncSync,
  flushFolder,
  close: closeSync,
  rename: renameSync,
  clear: (path) => rmSync(path, { force: true }),
  size: (path) => statSync(path).size,
  openSize: (file) => fstatSync(file).size,
};

function flushFolder(folder: string): void {
  const file = openSync(folder, constants.O_RDONLY);
  try {
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

function writeWhole(file: number, bytes: Uint8Array, offset: number): void {
  let writtenBytes = 0;
  while (writtenBytes < bytes.length) {
    writtenBytes += writeSync(file, bytes, writtenBytes, bytes.length - writtenBytes, offset + writtenBytes);
  }
}
