/**
 * A JSON document of a run as the database keeps it: text, so that it can be read with any SQLite tool, or, from 16 KiB,
 * zstd (level 1: 0.2 ms for 100 kB, a quarter of the pages to write).
 */
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { KiB } from '../core/units.ts';

export type Packed = string | Uint8Array | null;

const PACK_FROM_LENGTH = 16 * KiB;
const OPTIONS = { params: { [constants.ZSTD_c_compressionLevel]: 1 } };

export function packDocument(text: string | null): Packed {
  if (text === null || text.length < PACK_FROM_LENGTH) return text;
  return zstdCompressSync(text, OPTIONS);
}

export function unpackDocument(packed: Packed): string | null {
  return packed instanceof Uint8Array ? zstdDecompressSync(packed).toString('utf8') : packed;
}
