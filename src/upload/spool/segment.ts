/**
 * A segment: a file of records, appended to by one thread under a name that ends in `.open`, renamed to `.seg` once it is
 * complete. Names begin with the time of their making, so that their order is the order of their contents.
 */
import { randomBytes } from 'node:crypto';
import type { BackgroundFile } from '../../core/disk.ts';
import { KiB } from '../../core/units.ts';
import { MAGIC, RECORD_HEAD_BYTES, RECORD_VERSION, readHead, readMeta } from './record.ts';
import type { RecordMeta } from './record.ts';

export const OPEN_SUFFIX = '.open';
export const SEALED_SUFFIX = '.seg';

/** The times that nine digits hold: until the year 5188. */
const MAX_NAMED_MS = 36 ** 9 - 1;

/** Unique among all threads and processes; `label` is for people. Of a clock gone mad the nearest time that has a name. */
export function segmentName(nowMs: number, label: string): string {
  const namedMs = Math.min(MAX_NAMED_MS, Math.max(0, Math.floor(nowMs)));
  return `${namedMs.toString(36).padStart(9, '0')}-${label}-${randomBytes(4).toString('hex')}`;
}

/** Of a file's name; null when it is no segment. */
export function nameOfSegment(file: string): string | null {
  const match = /^([0-9a-z]{9}-[\w-]{1,40})(\.open|\.seg)$/.exec(file);
  return match?.[1] ?? null;
}

/** A record found by {@link scanSegment}. */
export interface FoundRecord {
  readonly offset: number;
  readonly lengthBytes: number;
  readonly state: number;
  readonly meta: RecordMeta;
}

/** Bytes that are no intact record of ours: a torn tail, damage, or another version's. */
export interface DamagedBytes {
  readonly offset: number;
  readonly lengthBytes: number;
  readonly meta: null;
  /** Another version's, as far as can be told. */
  readonly isForeign: boolean;
}

const CHUNK_BYTES = 256 * KiB;
const MAGIC_BYTES = Buffer.from(Uint32Array.of(MAGIC).buffer);

/**
 * All records of a file in order; contents are neither read nor checked. After damage the search goes on for the next
 * intact head.
 */
export async function* scanSegment(file: BackgroundFile): AsyncGenerator<FoundRecord | DamagedBytes> {
  const size = await file.size();
  const window = new FileWindow(file, size);
  for (let at = 0; at < size;) {
    const record = await recordAt(window, at, size);
    if (record !== null) {
      yield record;
      at += record.lengthBytes;
      continue;
    }
    // A segment is one version's from its beginning to its end.
    const isForeign = at === 0 && isLaterMagic(await window.read(0, MAGIC_BYTES.length));
    let next = at + 1;
    for (; next < size; next++) {
      next = await window.find(MAGIC_BYTES, next);
      if (next >= size || (await recordAt(window, next, size)) !== null) break;
    }
    next = Math.min(next, size);
    // With a record of ours behind it, it was a flipped bit.
    yield { offset: at, lengthBytes: next - at, meta: null, isForeign: isForeign && next === size };
    at = next;
  }
}

/** `CPR2` to `CPR9`. */
function isLaterMagic(bytes: Buffer): boolean {
  return /^CPR[2-9]$/.test(bytes.toString('latin1'));
}

async function recordAt(window: FileWindow, at: number, size: number): Promise<FoundRecord | DamagedBytes | null> {
  const headBytes = await window.read(at, RECORD_HEAD_BYTES);
  const head = readHead(headBytes, 0);
  if (head === null) return null;
  const lengthBytes = RECORD_HEAD_BYTES + head.metaBytes + head.contentBytes;
  if (at + lengthBytes > size) return null;
  const meta = readMeta(await window.read(at, RECORD_HEAD_BYTES + head.metaBytes), 0, head);
  if (meta === null) return null;
  if (meta.version !== RECORD_VERSION) return { offset: at, lengthBytes, meta: null, isForeign: true };
  return { offset: at, lengthBytes, state: head.state, meta };
}

/** A file seen through a buffer, so that small records in a row cost one read for many. */
class FileWindow {
  readonly #file: BackgroundFile;
  readonly #size: number;
  #bytes: Buffer = Buffer.alloc(0);
  #offset = 0;

  constructor(file: BackgroundFile, size: number) {
    this.#file = file;
    this.#size = size;
  }

  /** Fewer bytes at the file's end. Valid until the next call. */
  async read(at: number, lengthBytes: number): Promise<Buffer> {
    if (at < this.#offset || at + lengthBytes > this.#offset + this.#bytes.length) {
      const wanted = Math.min(Math.max(lengthBytes, CHUNK_BYTES), this.#size - at);
      this.#bytes = await this.#file.read(at, Math.max(0, wanted));
      this.#offset = at;
    }
    return this.#bytes.subarray(at - this.#offset, at - this.#offset + lengthBytes);
  }

  /** Where the bytes are found from `at` on; the file's size when they are not. */
  async find(needle: Buffer, at: number): Promise<number> {
    for (let from = at; from < this.#size;) {
      await this.read(from, needle.length);
      const found = this.#bytes.indexOf(needle, from - this.#offset);
      if (found >= 0) return this.#offset + found;
      from = Math.max(from + 1, this.#offset + this.#bytes.length - needle.length + 1);
    }
    return this.#size;
  }
}
