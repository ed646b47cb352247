/**
 * Compression of upload bodies; the home of zstd. zstd-napi with one context that is used again for every batch, or
 * Node's own zlib (a new context a call) where the native package could not be built: 25 % more CPU for typical batches
 * of 100 runs (bench/assemble.ts), more for smaller ones.
 */
import { createRequire } from 'node:module';
import { constants, gunzipSync, gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { KiB, MiB } from '../core/units.ts';

/** As in the Content-Encoding header; `identity` means none. */
export type Coding = 'zstd' | 'gzip' | 'identity';

export interface Codec {
  readonly implementation: 'zstd-napi' | 'node:zlib';
  /** The result is the caller's: it shares no memory with `plain` nor with later results. */
  encode(plain: Buffer, coding: Coding): Buffer;
  /**
   * Takes a result back whose bytes nobody will read again, to make later ones in its memory. Optional: what is not
   * given back is the garbage collector's. At full load a result lives for milliseconds; with none given back, concurrent
   * marking took 5 % of the process (bench/main.ts --part 2 --profile).
   */
  release(body: Buffer): void;
  /** `plainBytes` is what must come out. */
  decode(body: Buffer, coding: Coding, plainBytes: number): Buffer;
}

/** What is used of `zstd-napi/binding`. */
interface NativeZstd {
  readonly CCtx: new () => {
    setParameter(parameter: number, value: number): void;
    compress2(target: Uint8Array, source: Uint8Array): number;
  };
  readonly CParameter: { readonly compressionLevel: number; readonly minMatch: number; readonly windowLog: number };
  compressBound(plainBytes: number): number;
}

/** Larger results get memory of their own for the moment, so that one giant batch does not stay in memory. */
const MAX_SCRATCH_BYTES = 16 * MiB;
const FAST_MIN_MATCH = 7;
/**
 * Level 1 takes a window of 512 KiB for bodies above 256 KiB, which costs some 80 µs a body whatever its size: 335 µs
 * against 256 µs for 100 typical runs (309 kB), to the same number of bytes. Large bodies of large runs repeat
 * themselves over longer distances (4 % more bytes at 3.4 MB): they keep it.
 */
const FAST_WINDOW_LOG = 18;
const MAX_FAST_WINDOW_BYTES = MiB;
const WINDOW_BY_LEVEL = 0;
/** Results are as large as the next multiple. */
const POOL_STEP_BYTES = 4 * KiB;
const MAX_POOL_BYTES = 4 * MiB;
/** What gzip is for are backends without zstd; its cost matters more than its ratio. */
const GZIP_LEVEL = 1;

export function createCodec(zstdLevel: number, native: NativeZstd | null = loadNative()): Codec {
  const pool = createPool();
  const zstd = native === null ? zlibZstd(zstdLevel) : nativeZstd(native, zstdLevel, pool);
  return {
    implementation: native === null ? 'node:zlib' : 'zstd-napi',
    encode(plain, coding) {
      if (coding === 'zstd') return zstd(plain);
      return coding === 'gzip' ? gzipSync(plain, { level: GZIP_LEVEL }) : Buffer.from(plain);
    },
    release: (body) => {
      pool.give(body);
    },
    decode(body, coding, plainBytes) {
      if (coding === 'zstd') return zstdDecompressSync(body, { maxOutputLength: plainBytes });
      return coding === 'gzip' ? gunzipSync(body, { maxOutputLength: plainBytes }) : body;
    },
  };
}

/** Null where the optional dependency is not installed or was not built for this platform. */
function loadNative(): NativeZstd | null {
  try {
    return createRequire(import.meta.url)('zstd-napi/binding') as NativeZstd;
  } catch {
    return null; // node:zlib does it; `implementation` says so
  }
}

function nativeZstd(native: NativeZstd, level: number, pool: ResultPool): (plain: Buffer) => Buffer {
  const context = new native.CCtx();
  context.setParameter(native.CParameter.compressionLevel, level);
  // For bodies of this size level 1 looks for matches of six bytes; of seven is a tenth faster for 1.8 % more bytes
  // (bench/service.ts). Deeper levels are asked for by who wants size.
  if (level === 1) context.setParameter(native.CParameter.minMatch, FAST_MIN_MATCH);
  let scratch = Buffer.alloc(0);
  let windowLog = WINDOW_BY_LEVEL;
  return (plain) => {
    const wanted = level === 1 && plain.length <= MAX_FAST_WINDOW_BYTES ? FAST_WINDOW_LOG : WINDOW_BY_LEVEL;
    if (wanted !== windowLog) context.setParameter(native.CParameter.windowLog, wanted);
    windowLog = wanted;
    const boundBytes = native.compressBound(plain.length);
    const target = boundBytes <= scratch.length ? scratch : Buffer.allocUnsafeSlow(boundBytes);
    if (target.length <= MAX_SCRATCH_BYTES) scratch = target;
    const lengthBytes = context.compress2(target, plain);
    const result = pool.take(lengthBytes);
    target.copy(result, 0, 0, lengthBytes);
    return result;
  };
}

/** Memory of results, in steps of {@link POOL_STEP_BYTES}, so that one fits many. */
interface ResultPool {
  take(lengthBytes: number): Buffer;
  give(result: Buffer): void;
}

function createPool(): ResultPool {
  const free = new Map<number, Buffer[]>();
  let freeBytes = 0;
  return {
    take: (lengthBytes) => {
      // Small ones may lie on the shelf in numbers: they take no more than they need.
      if (lengthBytes < POOL_STEP_BYTES) return Buffer.allocUnsafeSlow(lengthBytes);
      const capacity = Math.ceil(lengthBytes / POOL_STEP_BYTES) * POOL_STEP_BYTES;
      const known = free.get(capacity)?.pop();
      if (known !== undefined) freeBytes -= capacity;
      return (known ?? Buffer.allocUnsafeSlow(capacity)).subarray(0, lengthBytes);
    },
    give: (result) => {
      const capacity = result.buffer.byteLength;
      // not one of ours (zlib's), or enough of them
      if (result.byteOffset !== 0 || capacity % POOL_STEP_BYTES !== 0 || freeBytes + capacity > MAX_POOL_BYTES) return;
      const list = free.get(capacity) ?? [];
      free.set(capacity, list);
      list.push(Buffer.from(result.buffer as ArrayBuffer));
      freeBytes += capacity;
    },
  };
}

function zlibZstd(level: number): (plain: Buffer) => Buffer {
  const params = { [constants.ZSTD_c_compressionLevel]: level };
  return (plain) => zstdCompressSync(plain, { params });
}
