/**
 * Where a zstd frame ends (RFC 8878, 3.1), without decompressing it. Needed for Node's own decoder alone, which takes a
 * truncated frame for an empty one and stops silently after the first of several (tried with Node 22.23).
 */

const MAGIC = 0xfd2fb528;
const SKIPPABLE_MAGIC = 0x184d2a50;
const BLOCK_RLE = 1;
const BLOCK_RESERVED = 3;
const DICTIONARY_ID_BYTES = [0, 1, 2, 4] as const;

export type ZstdFrame =
  { kind: 'frame'; endOffset: number; windowBytes: number } | { kind: 'skippable'; endOffset: number };

/** The frame that starts at `offset`, or null where there is none or not all of it. */
export function findZstdFrame(source: Buffer, offset: number): ZstdFrame | null {
  if (offset + 8 > source.length) return null;
  const magic = source.readUInt32LE(offset);
  if ((magic & 0xfffffff0) >>> 0 === SKIPPABLE_MAGIC) {
    const endOffset = offset + 8 + source.readUInt32LE(offset + 4);
    return endOffset <= source.length ? { kind: 'skippable', endOffset } : null;
  }
  if (magic !== MAGIC) return null;
  const descriptor = source.readUInt8(offset + 4);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const dictionaryIdBytes = DICTIONARY_ID_BYTES[(descriptor & 3) as 0 | 1 | 2 | 3];
  const sizeFlag = descriptor >> 6;
  const sizeBytes = sizeFlag === 0 ? (isSingleSegment ? 1 : 0) : 1 << sizeFlag;
  let at = offset + 5;
  let windowBytes = 0;
  if (!isSingleSegment) {
    const window = source.readUInt8(at++);
    const base = 2 ** (10 + (window >> 3));
    windowBytes = base + (base / 8) * (window & 7);
  }
  at += dictionaryIdBytes;
  if (at + sizeBytes > source.length) return null;
  if (isSingleSegment) windowBytes = contentBytes(source, at, sizeBytes);
  at += sizeBytes;
  for (;;) {
    if (at + 3 > source.length) return null;
    const header = source.readUIntLE(at, 3);
    const type = (header >> 1) & 3;
    if (type === BLOCK_RESERVED) return null;
    at += 3 + (type === BLOCK_RLE ? 1 : header >> 3);
    if ((header & 1) !== 0) break;
  }
  const hasChecksum = (descriptor & 4) !== 0;
  const endOffset = at + (hasChecksum ? 4 : 0);
  return endOffset <= source.length ? { kind: 'frame', endOffset, windowBytes } : null;
}

function contentBytes(source: Buffer, at: number, sizeBytes: number): number {
  switch (sizeBytes) {
    case 1:
      return source.readUInt8(at);
    case 2:
      return source.readUInt16LE(at) + 256;
    case 4:
      return source.readUInt32LE(at);
    default:
      return Number(source.readBigUInt64LE(at));
  }
}
