/**
 * A disk in memory that tells apart what is flushed and what is not. At a power cut it keeps all that was flushed, and of
 * the rest what a throw of dice says: each sector of each write, each truncation, each new, renamed and removed name on
 * its own, whatever came before or after it. A flush that fails loses what it should have brought to the medium: later
 * flushes do not bring it either, as on Linux.
 *
 * Assumed, as of real disks and journalled file systems: a sector of 512 bytes is written whole or not at all, and a rename
 * is never half done, also between two folders. Not assumed: any order.
 */
import { dirname } from 'node:path';
import type { BackgroundDisk, BackgroundFile } from '../src/core/disk.ts';
import type { Disk } from '../src/journal/disk.ts';

export type OperationKind =
  | 'makeFolder'
  | 'removeFolder'
  | 'list'
  | 'about'
  | 'create'
  | 'open'
  | 'read'
  | 'write'
  | 'truncate'
  | 'flush'
  | 'flushFolder'
  | 'close'
  | 'rename'
  | 'remove';

export interface Operation {
  readonly kind: OperationKind;
  readonly path: string;
  /** Since the disk was made, from 1. */
  readonly number: number;
}

/** What becomes of an operation: `code` fails it; of a write, `part` (0 to 1) of the bytes get there nevertheless. */
export interface Mishap {
  readonly code: string;
  readonly part?: number;
}

/** Numbers of [0, 1); equal for equal seeds. */
export function dice(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 2 ** 32;
  };
}

const SECTOR_BYTES = 512;

type Change = { kind: 'write'; at: number; bytes: Buffer } | { kind: 'truncate'; bytes: number };

class SimFile {
  live = Buffer.alloc(0);
  stable = Buffer.alloc(0);
  /** Since the last flush. */
  pending: Change[] = [];
  /** A flush of it failed. */
  lost: Change[] = [];
  changedMs = 0;
}

interface NameChange {
  readonly from: { folder: SimFolder; name: string } | null;
  readonly to: { folder: SimFolder; name: string } | null;
  readonly node: SimNode;
  isStable: boolean;
}

class SimFolder {
  live = new Map<string, SimNode>();
  stable = new Map<string, SimNode>();
  pending: NameChange[] = [];
}

type SimNode = SimFile | SimFolder;

export class SimDisk {
  /** Decides on every operation before it is done. */
  before: (operation: Operation) => Mishap | null = () => null;
  /** Operations so far, by which one of them can be named. */
  readonly operations: Operation[] = [];
  nowMs = 1_000_000;
  #root = new SimFolder();
  #files = new Map<number, { file: SimFile; path: string }>();
  #lastFile = 0;
  #locks = new Set<string>();
  /** Nothing is done any more: the process is gone. */
  isStopped = false;

  /** The process ends here: what it did stays, its files are closed, its locks are gone. */
  endProcess(): void {
    this.isStopped = false;
    this.before = () => null;
    this.#files = new Map();
    this.#locks = new Set();
  }

  /** The power is cut, and comes back. */
  cutPower(random: () => number): void {
    this.endProcess();
    const changes = new Set([...this.#everyFolder()].flatMap(({ pending }) => pending));
    for (const change of changes) if (!change.isStable && random() < 0.5) applyName(change);
    const seen = new Set<SimNode>();
    const settle = (folder: SimFolder): void => {
      if (seen.has(folder)) return;
      seen.add(folder);
      folder.pending = [];
      folder.live = new Map(folder.stable);
      for (const node of folder.stable.values()) {
        if (node instanceof SimFolder) settle(node);
        else settleFile(node, random);
      }
    };
    settle(this.#root);
  }

  /** Whole, as the process sees it; null when there is none. */
  contentOf(path: string): Buffer | null {
    const node = this.#find(path);
    return node instanceof SimFile ? Buffer.from(node.live) : null;
  }

  /** Names of the folder; none when there is no such folder. */
  namesIn(path: string): string[] {
    const node = this.#find(path);
    return node instanceof SimFolder ? [...node.live.keys()].sort() : [];
  }

  /** Puts a file there for good. */
  put(path: string, bytes: Buffer): void {
    const file = new SimFile();
    file.live = Buffer.from(bytes);
    file.stable = Buffer.from(bytes);
    const { folder, name } = this.#placeOf(path);
    folder.live.set(name, file);
    folder.stable.set(name, file);
  }

  // --- what is done, one step each

  #step(kind: OperationKind, path: string): Mishap | null {
    if (this.isStopped) throw failure('ESTOPPED', kind, path);
    const operation = { kind, path, number: this.operations.length + 1 };
    this.operations.push(operation);
    const mishap = this.before(operation);
    if (mishap !== null && mishap.part === undefined) throw failure(mishap.code, kind, path);
    return mishap;
  }

  makeFolder(path: string): void {
    const missing: string[] = [];
    for (let at = path; this.#find(at) === null; at = dirname(at)) missing.unshift(at);
    for (const at of missing) {
      this.#step('makeFolder', at);
      this.#changeName({ from: null, to: this.#placeOf(at), node: new SimFolder(), isStable: false });
    }
    for (let at = path; at !== '/'; at = dirname(at)) this.flushFolder(dirname(at));
  }

  removeFolder(path: string): void {
    this.#step('removeFolder', path);
    const folder = this.#folderAt(path);
    if (folder.live.size > 0) throw failure('ENOTEMPTY', 'removeFolder', path);
    this.#changeName({ from: this.#placeOf(path), to: null, node: folder, isStable: false });
  }

  list(path: string): string[] {
    this.#step('list', path);
    return [...this.#folderAt(path).live.keys()];
  }

  about(path: string): { sizeBytes: number; changedMs: number } {
    this.#step('about', path);
    const file = this.#fileAt(path);
    return { sizeBytes: file.live.length, changedMs: file.changedMs };
  }

  create(path: string): number {
    this.#step('create', path);
    if (this.#find(path) !== null) throw failure('EEXIST', 'create', path);
    const file = new SimFile();
    file.changedMs = this.nowMs;
    this.#changeName({ from: null, to: this.#placeOf(path), node: file, isStable: false });
    return this.#opened(file, path);
  }

  open(path: string): number {
    this.#step('open', path);
    return this.#opened(this.#fileAt(path), path);
  }

  /** Returns how many bytes were taken. */
  write(number: number, bytes: Uint8Array, offset: number): number {
    const { file, path } = this.#handle(number);
    const mishap = this.#step('write', path);
    const taken = Buffer.from(bytes.subarray(0, Math.floor(bytes.length * (mishap?.part ?? 1))));
    const change: Change = { kind: 'write', at: offset, bytes: taken };
    file.live = applied(file.live, change);
    file.pending.push(change);
    file.changedMs = this.nowMs;
    if (mishap !== null && mishap.code !== 'ENOSPC') throw failure(mishap.code, 'write', path);
    return taken.length;
  }

  read(number: number, offset: number, lengthBytes: number): Buffer {
    const { file, path } = this.#handle(number);
    this.#step('read', path);
    return Buffer.from(file.live.subarray(offset, offset + lengthBytes));
  }

  truncate(number: number, bytes: number): void {
    const { file, path } = this.#handle(number);
    this.#step('truncate', path);
    const change: Change = { kind: 'truncate', bytes };
    file.live = applied(file.live, change);
    file.pending.push(change);
  }

  flush(number: number): void {
    const { file, path } = this.#handle(number);
    try {
      this.#step('flush', path);
    } catch (error) {
      if (!this.isStopped) file.lost.push(...file.pending.splice(0));
      throw error;
    }
    for (const change of file.pending.splice(0)) file.stable = applied(file.stable, change);
  }

  flushFolder(path: string): void {
    this.#step('flushFolder', path);
    const folder = this.#folderAt(path);
    for (const change of folder.pending.splice(0)) {
      const source = change.from?.folder ?? folder;
      // A name comes from another folder with all that had become of it there.
      if (source !== folder) applyAll(source.pending.splice(0, source.pending.indexOf(change)));
      applyAll([change]);
    }
  }

  size(number: number): number {
    return this.#handle(number).file.live.length;
  }

  close(number: number): void {
    const { path } = this.#handle(number);
    this.#files.delete(number);
    this.#step('close', path);
  }

  rename(from: string, to: string): void {
    this.#step('rename', from);
    const node = this.#fileAt(from);
    this.#changeName({ from: this.#placeOf(from), to: this.#placeOf(to), node, isStable: false });
  }

  remove(path: string): void {
    this.#step('remove', path);
    const node = this.#find(path);
    if (node instanceof SimFile) this.#changeName({ from: this.#placeOf(path), to: null, node, isStable: false });
  }

  lock(path: string): { release(): void } {
    if (this.#locks.has(path)) throw new Error(`${path} is locked: another process uses this folder`);
    this.#locks.add(path);
    return { release: () => void this.#locks.delete(path) };
  }

  get openCount(): number {
    return this.#files.size;
  }

  // --- names

  #find(path: string): SimNode | null {
    let node: SimNode = this.#root;
    for (const name of path.split('/').filter((part) => part !== '')) {
      const next: SimNode | undefined = node instanceof SimFolder ? node.live.get(name) : undefined;
      if (next === undefined) return null;
      node = next;
    }
    return node;
  }

  #folderAt(path: string): SimFolder {
    const node = this.#find(path);
    if (node instanceof SimFolder) return node;
    throw failure(node === null ? 'ENOENT' : 'ENOTDIR', 'find', path);
  }

  #fileAt(path: string): SimFile {
    const node = this.#find(path);
    if (node instanceof SimFile) return node;
    throw failure(node === null ? 'ENOENT' : 'EISDIR', 'find', path);
  }

  #placeOf(path: string): { folder: SimFolder; name: string } {
    return { folder: this.#folderAt(dirname(path)), name: path.slice(path.lastIndexOf('/') + 1) };
  }

  #changeName(change: NameChange): void {
    change.from?.folder.live.delete(change.from.name);
    change.to?.folder.live.set(change.to.name, change.node);
    for (const folder of new Set([change.from?.folder, change.to?.folder])) folder?.pending.push(change);
  }

  *#everyFolder(): Generator<SimFolder> {
    const seen = new Set<SimFolder>();
    const waiting = [this.#root];
    for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
      if (seen.has(folder)) continue;
      seen.add(folder);
      yield folder;
      const nodes = [...folder.live.values(), ...folder.stable.values(), ...folder.pending.map(({ node }) => node)];
      for (const node of nodes) if (node instanceof SimFolder) waiting.push(node);
    }
  }

  #opened(file: SimFile, path: string): number {
    this.#lastFile++;
    this.#files.set(this.#lastFile, { file, path });
    return this.#lastFile;
  }

  #handle(number: number): { file: SimFile; path: string } {
    const handle = this.#files.get(number);
    if (handle === undefined) throw failure('EBADF', 'use', `file ${number}`);
    return handle;
  }
}

/** As the journal sees it. */
export function blockingFace(disk: SimDisk): Disk {
  const write = (file: number, bytes: Uint8Array, offset: number): void => {
    if (disk.write(file, bytes, offset) < bytes.length) throw failure('ENOSPC', 'write', `file ${file}`);
  };
  return {
    makeFolder: (folder) => disk.makeFolder(folder),
    lock: (file) => disk.lock(file),
    list: (folder) => disk.list(folder),
    create: (path) => disk.create(path),
    openToRead: (path) => disk.open(path),
    write,
    writeAll: (file, pieces, offset) => write(file, Buffer.concat(pieces), offset),
    read: (file, target, offset) => disk.read(file, offset, target.length).copy(target),
    truncate: (file, bytes) => disk.truncate(file, bytes),
    flush: (file) => disk.flush(file),
    flushFolder: (folder) => disk.flushFolder(folder),
    close: (file) => disk.close(file),
    rename: (from, to) => disk.rename(from, to),
    clear: (path) => disk.remove(path),
    size: (path) => disk.about(path).sizeBytes,
    openSize: (file) => disk.size(file),
  };
}

/** As the spool sees it. */
export function backgroundFace(disk: SimDisk): BackgroundDisk {
  const later = async <T>(step: () => T): Promise<T> => {
    await Promise.resolve();
    return step();
  };
  const faceOf = (file: number): BackgroundFile => ({
    write: (pieces, offset) => later(() => disk.write(file, Buffer.concat(pieces), offset)),
    read: (offset, lengthBytes) => later(() => disk.read(file, offset, lengthBytes)),
    truncate: (bytes) => later(() => disk.truncate(file, bytes)),
    flush: () => later(() => disk.flush(file)),
    size: () => later(() => disk.size(file)),
    close: () => later(() => disk.close(file)),
  });
  return {
    makeFolder: (folder) => later(() => disk.makeFolder(folder)),
    checkWritable: () => Promise.resolve(),
    list: (folder) => later(() => disk.list(folder)),
    create: (path) => later(() => faceOf(disk.create(path))),
    open: (path) => later(() => faceOf(disk.open(path))),
    rename: (from, to) => later(() => disk.rename(from, to)),
    remove: (path) => later(() => disk.remove(path)),
    removeFolder: (folder) => later(() => disk.removeFolder(folder)),
    flushFolder: (folder) => later(() => disk.flushFolder(folder)),
    about: (path) => later(() => disk.about(path)),
  };
}

function failure(code: string, kind: string, path: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${code}: ${kind} '${path}'`), { code });
}

function applied(content: Buffer, change: Change): Buffer<ArrayBuffer> {
  if (change.kind === 'truncate') {
    const cut = Buffer.alloc(change.bytes);
    content.copy(cut);
    return cut;
  }
  const end = change.at + change.bytes.length;
  const grown = Buffer.alloc(Math.max(content.length, change.bytes.length === 0 ? 0 : end));
  content.copy(grown);
  change.bytes.copy(grown, change.at);
  return grown;
}

function applyAll(changes: readonly NameChange[]): void {
  for (const change of changes) if (!change.isStable) applyName(change);
}

function applyName(change: NameChange): void {
  const { from, to, node } = change;
  change.isStable = true;
  if (from !== null) {
    // Its coming was lost: so is its going elsewhere.
    if (from.folder.stable.get(from.name) !== node) return;
    from.folder.stable.delete(from.name);
  }
  to?.folder.stable.set(to.name, node);
}

/** Sector by sector: what had been flushed, and of the rest anything. */
function settleFile(file: SimFile, random: () => number): void {
  let content = file.stable;
  for (const change of [...file.lost, ...file.pending]) {
    if (change.kind === 'truncate') {
      if (random() < 0.5) content = applied(content, change);
      continue;
    }
    for (const piece of sectorsOf(change)) if (random() < 0.5) content = applied(content, piece);
  }
  // The length is written apart from the bytes.
  if (content.length < file.live.length && random() < 0.5) {
    content = applied(content, { kind: 'truncate', bytes: file.live.length });
  }
  file.live = Buffer.from(content);
  file.stable = Buffer.from(content);
  file.pending = [];
  file.lost = [];
}

function* sectorsOf({ at, bytes }: Change & { kind: 'write' }): Generator<Change & { kind: 'write' }> {
  for (let from = 0; from < bytes.length;) {
    const end = Math.min(bytes.length, from + SECTOR_BYTES - ((at + from) % SECTOR_BYTES));
    yield { kind: 'write', at: at + from, bytes: bytes.subarray(from, end) };
    from = end;
  }
}
