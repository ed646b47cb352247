/**
 * What those do with a file system who must not wait for it (the spool, the dead letters), as a dependency: tests put a disk
 * in its place that fails, fills up, or forgets at a power cut what was not flushed. Errors are the system's own.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { access, mkdir, open, readdir, rename, rm, rmdir, stat } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';

/** For the owner's eyes only: bodies and keys are in them. */
export const FILE_MODE = 0o600;
export const FOLDER_MODE = 0o700;

export interface BackgroundFile {
  /** One behind the other, from `offset` on. Returns how many bytes were taken: fewer where the disk is full. */
  write(pieces: readonly Uint8Array[], offset: number): Promise<number>;
  /** Fewer bytes at the file's end. */
  read(offset: number, lengthBytes: number): Promise<Buffer>;
  truncate(bytes: number): Promise<void>;
  /** Resolves when the bytes survive a power cut. */
  flush(): Promise<void>;
  size(): Promise<number>;
  close(): Promise<void>;
}

export interface BackgroundDisk {
  /** With those above it. Resolves when their names survive a power cut. */
  makeFolder(folder: string): Promise<void>;
  /** Rejects where the folder cannot be written. */
  checkWritable(folder: string): Promise<void>;
  list(folder: string): Promise<string[]>;
  /** Makes the file; rejects when there is one. */
  create(path: string): Promise<BackgroundFile>;
  open(path: string, access: 'read' | 'change'): Promise<BackgroundFile>;
  rename(from: string, to: string): Promise<void>;
  /** Absence is fine. */
  remove(path: string): Promise<void>;
  /** Rejects when something is in it. */
  removeFolder(folder: string): Promise<void>;
  /** Resolves when names in it survive a power cut: what was created, renamed or removed. */
  flushFolder(folder: string): Promise<void>;
  about(path: string): Promise<{ sizeBytes: number; changedMs: number }>;
}

export const nodeBackgroundDisk: BackgroundDisk = {
  makeFolder: async (folder) => {
    await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
    for (const parent of parentsOf(folder)) await flushFolder(parent);
  },
  checkWritable: (folder) => access(folder, constants.W_OK),
  list: (folder) => readdir(folder),
  create: async (path) => new NodeFile(await open(path, 'wx', FILE_MODE)),
  open: async (path, kind) => new NodeFile(await open(path, kind === 'read' ? 'r' : 'r+')),
  rename,
  remove: (path) => rm(path, { force: true }),
  removeFolder: rmdir,
  flushFolder,
  about: async (path) => {
    const { size, mtimeMs } = await stat(path);
    return { sizeBytes: size, changedMs: mtimeMs };
  },
};

/** A write that took less than it was given: Linux says so only the next time. */
export function outOfSpace(): NodeJS.ErrnoException {
  return Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
}

/**
 * The folders above, in which it or one of them may have been made by us, also by a process that was killed before it
 * flushed them: those of the same file system that we may write. Throws the system's error.
 */
export function parentsOf(folder: string): string[] {
  const parents: string[] = [];
  for (let at = folder; ; at = dirname(at)) {
    const parent = dirname(at);
    if (parent === at || statSync(parent).dev !== statSync(at).dev || !mayWrite(parent)) return parents;
    parents.push(parent);
  }
}

function mayWrite(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.W_OK);
    return true;
  } catch (error) {
    if (['EACCES', 'EPERM', 'EROFS'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}

async function flushFolder(folder: string): Promise<void> {
  const handle = await open(folder, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

class NodeFile implements BackgroundFile {
  readonly #handle: FileHandle;

  constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  async write(pieces: readonly Uint8Array[], offset: number): Promise<number> {
    const { bytesWritten } = await this.#handle.writev([...pieces], offset);
    return bytesWritten;
  }

  async read(offset: number, lengthBytes: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafeSlow(lengthBytes);
    let length = 0;
    while (length < lengthBytes) {
      const { bytesRead } = await this.#handle.read(bytes, length, lengthBytes - length, offset + length);
      if (bytesRead === 0) break;
      length += bytesRead;
    }
    return bytes.subarray(0, length);
  }

  truncate(bytes: number): Promise<void> {
    return this.#handle.truncate(bytes);
  }

  flush(): Promise<void> {
    return this.#handle.datasync();
  }

  async size(): Promise<number> {
    return (await this.#handle.stat()).size;
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}
