/**
 * The segments on disk: `<number, 16 digits>.journal` in one folder, each a head and frames (frame.ts). Owned by the
 * journal thread; every call blocks it. What `append` returned from survives a power cut: the frames are flushed, and so
 * is the folder since the file was made. Errors are the file system's own.
 *
 * A file that a write or flush failed on is never written to again: the kernel may have dropped the pages that it could
 * not write and call the next flush a success.
 */
import { join } from 'node:path';
import { MiB } from '../core/units.ts';
import { nodeDisk, type Disk } from './disk.ts';
import {
  FRAME_HEAD_BYTES,
  isIntact,
  MARK,
  SEGMENT_HEAD,
  statedBodyBytes,
  statedHeadBytes,
  writeChecksum,
} from './frame.ts';
import type { Chunk, ReadFrames } from './message.ts';

const SUFFIX = '.journal';
const DRAFT = 'segment.tmp';
const PROBE = 'probe.tmp';
const PROBE_BYTES = MiB / 4;
/** Of one read: about as much as a decode task holds. */
const READ_BYTES = MiB;

interface OpenSegment {
  readonly number: number;
  readonly file: number;
  /** Flushed up to here. */
  bytes: number;
}

/** Intact frames, and where in the file they lie. */
interface Found {
  readonly chunk: Chunk;
  readonly at: number;
  readonly end: number;
}

export class SegmentFiles {
  readonly #folder: string;
  readonly #disk: Disk;
  #open: OpenSegment | null = null;

  constructor(folder: string, disk: Disk = nodeDisk) {
    this.#folder = folder;
    this.#disk = disk;
  }

  /** Makes the folder when it is missing; returns the segments in it, oldest first. */
  scan(): { number: number; bytes: number }[] {
    this.#disk.makeFolder(this.#folder);
    this.#disk.clear(join(this.#folder, DRAFT));
    this.#disk.clear(join(this.#folder, PROBE));
    const segments: { number: number; bytes: number }[] = [];
    for (const name of this.#disk.list(this.#folder)) {
      const digits = /^(\d{16})\.journal$/.exec(name)?.[1];
      if (digits === undefined) continue;
      segments.push({ number: Number(digits), bytes: this.#disk.size(join(this.#folder, name)) });
    }
    return segments.sort((a, b) => a.number - b.number);
  }

  append(number: number, chunks: readonly Chunk[]): void {
    const open = this.#open?.number === number ? this.#open : this.#create(number);
    const pieces: Uint8Array[] = [];
    for (const chunk of chunks) {
      writeChecksums(chunk);
      pieces.push(new Uint8Array(chunk.frames, 0, chunk.usedBytes));
      if (chunk.body !== null) pieces.push(new Uint8Array(chunk.body, 0, chunk.bodyBytes));
    }
    try {
      this.#disk.writeAll(open.file, pieces, open.bytes);
      this.#disk.flush(open.file);
    } catch (error) {
      this.#abandon(open);
      throw error;
    }
    open.bytes += pieces.reduce((sum, piece) => sum + piece.length, 0);
  }

  /** Intact frames from `offset` on (0: from the first); what is damaged is stepped over. None of another version's file. */
  read(number: number, offset: number): ReadFrames {
    const file = this.#disk.openToRead(this.#path(number));
    try {
      return { segment: number, offset, ...this.#readFrom(file, offset) };
    } finally {
      this.#disk.close(file);
    }
  }

  remove(number: number): void {
    if (this.#open?.number === number) this.close();
    this.#disk.clear(this.#path(number));
    // Not flushed: should it be there again after a power cut, its spans are sent twice, which does no harm.
  }

  /** Fails as the next write would. */
  probe(): void {
    const path = join(this.#folder, PROBE);
    this.#disk.clear(path);
    const file = this.#disk.create(path);
    try {
      this.#disk.write(file, new Uint8Array(PROBE_BYTES), 0);
      this.#disk.flush(file);
    } finally {
      this.#disk.close(file);
      this.#disk.clear(path);
    }
  }

  close(): void {
    const open = this.#open;
    this.#open = null;
    if (open !== null) this.#disk.close(open.file);
  }

  #path(number: number): string {
    return join(this.#folder, `${String(number).padStart(16, '0')}${SUFFIX}`);
  }

  #create(number: number): OpenSegment {
    this.close();
    const disk = this.#disk;
    const draft = join(this.#folder, DRAFT);
    disk.clear(draft);
    const file = disk.create(draft);
    try {
      disk.write(file, SEGMENT_HEAD, 0);
      disk.flush(file);
      disk.rename(draft, this.#path(number));
      disk.flushFolder(this.#folder);
    } catch (error) {
      disk.close(file);
      throw error;
    }
    this.#open = { number, file, bytes: SEGMENT_HEAD.length };
    return this.#open;
  }

  /** Cuts off what may or may not have been written; where that fails too, its checksums will tell. */
  #abandon({ file, bytes }: OpenSegment): void {
    this.#open = null;
    try {
      this.#disk.truncate(file, bytes);
    } finally {
      this.#disk.close(file);
    }
  }

  #readFrom(file: number, offset: number): Omit<ReadFrames, 'segment' | 'offset'> {
    const size = this.#disk.openSize(file);
    const head = offset === 0 ? this.#headOf(file) : null;
    if (head !== null && isLaterHead(head)) {
      return { chunk: null, next: -1, isForeign: true, damagedCount: 0, damagedBytes: 0, tornBytes: 0 };
    }
    // A file whose head is damaged, or was never written, may hold frames all the same.
    const start = head?.equals(SEGMENT_HEAD) === true ? SEGMENT_HEAD.length : offset;
    const window = Buffer.allocUnsafeSlow(Math.max(0, Math.min(READ_BYTES, size - start)));
    for (let at = start; at < size;) {
      const view = window.subarray(0, this.#disk.read(file, window, at));
      if (view.length === 0) break;
      const found = this.#firstFrames(file, view, at, size);
      if ('next' in found) {
        at = found.next;
        continue;
      }
      const damagedBytes = found.at - start;
      const next = found.end < size ? found.end : -1;
      const damagedCount = damagedBytes > 0 ? 1 : 0;
      return { chunk: found.chunk, next, isForeign: false, damagedCount, damagedBytes, tornBytes: 0 };
    }
    const tornBytes = Math.max(0, size - start);
    return { chunk: null, next: -1, isForeign: false, damagedCount: 0, damagedBytes: 0, tornBytes };
  }

  #headOf(file: number): Buffer {
    const head = Buffer.alloc(SEGMENT_HEAD.length);
    return head.subarray(0, this.#disk.read(file, head, 0));
  }

  /** The first intact frames in the view, which lies at `base` of the file; without any, where to look next. */
  #firstFrames(file: number, view: Buffer, base: number, size: number): Found | { next: number } {
    for (let at = view.indexOf(MARK); at >= 0; at = view.indexOf(MARK, at + 1)) {
      const end = intactRunEnd(view, at);
      if (end > at) {
        const frames = new Uint8Array(view.subarray(at, end)).buffer;
        const chunk = { frames, usedBytes: end - at, body: null, bodyBytes: 0 };
        return { chunk, at: base + at, end: base + end };
      }
      const frameBytes = statedBytes(view, at);
      const frameEnd = base + at + frameBytes;
      if (frameEnd > size) continue;
      if (frameEnd > base + view.length) {
        // The view ends before its frame does: look at it from its beginning, with a view or a buffer that holds it.
        if (at > 0) return { next: base + at };
        const chunk = this.#largeFrame(file, view, base);
        if (chunk !== null) return { chunk, at: base, end: frameEnd };
      }
      // Damaged, but its length seems right: what looks like a frame inside of it is none.
      if (frameEnd === size || this.#hasMark(file, frameEnd)) return { next: frameEnd };
    }
    // A mark, or the head behind it, may be cut off by the view's end.
    const isLast = base + view.length >= size;
    return { next: isLast ? size : base + Math.max(1, view.length - FRAME_HEAD_BYTES) };
  }

  #hasMark(file: number, offset: number): boolean {
    const mark = Buffer.alloc(MARK.length);
    return this.#disk.read(file, mark, offset) === mark.length && mark.equals(MARK);
  }

  /** The frame at the view's beginning, whose body goes beyond it; null when it is damaged. */
  #largeFrame(file: number, view: Buffer, base: number): Chunk | null {
    const headBytes = statedHeadBytes(view, 0);
    if (headBytes > view.length) return null;
    const bodyBytes = statedBodyBytes(view, 0);
    const body = new Uint8Array(bodyBytes);
    if (this.#disk.read(file, body, base + headBytes) < bodyBytes || !isIntact(view, 0, body)) return null;
    const frames = new Uint8Array(view.subarray(0, headBytes)).buffer;
    return { frames, usedBytes: headBytes, body: body.buffer, bodyBytes };
  }
}

/** `cp-jrnl2` to `cp-jrnl9`. */
function isLaterHead(head: Buffer): boolean {
  return /^cp-jrnl[2-9]$/.test(head.toString('latin1'));
}

function writeChecksums({ frames, usedBytes, body, bodyBytes }: Chunk): void {
  const bytes = Buffer.from(frames, 0, usedBytes);
  for (let at = 0; at < usedBytes;) {
    const headBytes = statedHeadBytes(bytes, at);
    const isLast = body !== null && at + headBytes === usedBytes;
    writeChecksum(bytes, at, isLast ? new Uint8Array(body, 0, bodyBytes) : null);
    at += headBytes + (isLast ? 0 : statedBodyBytes(bytes, at));
  }
}

/** Infinity when its head is cut off. */
function statedBytes(view: Buffer, at: number): number {
  if (at + FRAME_HEAD_BYTES > view.length) return Number.POSITIVE_INFINITY;
  return statedHeadBytes(view, at) + statedBodyBytes(view, at);
}

/** The end of the intact frames that stand in a row from `at` on; `at` when there are none. */
function intactRunEnd(view: Buffer, at: number): number {
  let end = at;
  while (end + FRAME_HEAD_BYTES <= view.length) {
    const headBytes = statedHeadBytes(view, end);
    if (headBytes < 0) break;
    const frameEnd = end + headBytes + statedBodyBytes(view, end);
    if (frameEnd > view.length || !isIntact(view, end, null)) break;
    end = frameEnd;
  }
  return end;
}
