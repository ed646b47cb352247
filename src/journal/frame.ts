/**
 * How a request body lies in a segment of the journal: a head, the API key, the project, then the body as it was
 * received. Frames stand one behind the other behind the segment's own head; numbers are little-endian.
 *
 * | Offset | Bytes | What                                                                |
 * | ------ | ----- | ------------------------------------------------------------------- |
 * | 0      | 4     | {@link MARK}, to find the next frame behind a damaged one           |
 * | 4      | 4     | CRC-32 of everything behind this word, body included                |
 * | 8      | 4     | length of the body                                                  |
 * | 12     | 2     | length of the API key                                               |
 * | 14     | 2     | length of the project, {@link NO_PROJECT} for none                  |
 * | 16     | 1     | encoding: index into {@link ENCODINGS}                              |
 * | 17     | 1     | content coding: index into {@link CODINGS}                          |
 * | 18     | 2     | number of the body in its segment                                   |
 * | 20     | 4     | 0                                                                   |
 * | 24     | 8     | when it arrived: f64, microseconds since the Unix epoch             |
 */
import { crc32 } from 'node:zlib';
import type { BodyCoding, BodyEncoding } from '../core/intake.ts';

/** At the head of every segment; the last character is the format's version. */
export const SEGMENT_HEAD = Buffer.from('cp-jrnl1', 'latin1');
export const FRAME_HEAD_BYTES = 32;
/** Begins with a byte that occurs in no UTF-8 text. */
export const MARK = Buffer.from([0xf5, 0x4a, 0x4e, 0x4c]);
const MARK_WORD = MARK.readUInt32LE();
const NO_PROJECT = 0xffff;
const ENCODINGS: readonly BodyEncoding[] = ['protobuf', 'json'];
const CODINGS: readonly BodyCoding[] = ['identity', 'gzip', 'deflate', 'zstd'];

/** What is needed to decode the body again. */
export interface FrameFacts {
  readonly encoding: BodyEncoding;
  readonly coding: BodyCoding;
  readonly apiKey: string;
  readonly project: string | null;
  readonly receivedUs: number;
}

export interface Frame extends FrameFacts {
  /** Number of the body in its segment. */
  readonly index: number;
  /** Where the body begins in the bytes that the frame was read from. */
  readonly bodyAt: number;
  readonly bodyBytes: number;
}

/** Of everything but the body. */
export function frameHeadBytes(facts: FrameFacts): number {
  return FRAME_HEAD_BYTES + Buffer.byteLength(facts.apiKey) + Buffer.byteLength(facts.project ?? '');
}

/** Writes everything but the body and the checksum; returns where the body belongs. */
export function writeFrameHead(
  target: Buffer,
  at: number,
  facts: FrameFacts,
  index: number,
  bodyBytes: number,
): number {
  const keyAt = at + FRAME_HEAD_BYTES;
  const keyBytes = target.write(facts.apiKey, keyAt);
  const projectBytes = target.write(facts.project ?? '', keyAt + keyBytes);
  target.writeUInt32LE(MARK_WORD, at);
  target.writeUInt32LE(0, at + 4);
  target.writeUInt32LE(bodyBytes, at + 8);
  target.writeUInt16LE(keyBytes, at + 12);
  target.writeUInt16LE(facts.project === null ? NO_PROJECT : projectBytes, at + 14);
  target.writeUInt8(ENCODINGS.indexOf(facts.encoding), at + 16);
  target.writeUInt8(CODINGS.indexOf(facts.coding), at + 17);
  target.writeUInt16LE(index, at + 18);
  target.writeUInt32LE(0, at + 20);
  target.writeDoubleLE(facts.receivedUs, at + 24);
  return keyAt + keyBytes + projectBytes;
}

/** Length of everything but the body, by a head that is whole; -1 when this is no frame. */
export function statedHeadBytes(source: Buffer, at: number): number {
  if (source.readUInt32LE(at) !== MARK_WORD) return -1;
  const projectBytes = source.readUInt16LE(at + 14);
  return FRAME_HEAD_BYTES + source.readUInt16LE(at + 12) + (projectBytes === NO_PROJECT ? 0 : projectBytes);
}

export function statedBodyBytes(source: Buffer, at: number): number {
  return source.readUInt32LE(at + 8);
}

/** Of a frame whose head lies in `source`; its body lies behind it, or in `body`. */
export function frameChecksum(source: Buffer, at: number, body: Uint8Array | null): number {
  const headBytes = statedHeadBytes(source, at);
  if (body !== null) return crc32(body, crc32(source.subarray(at + 8, at + headBytes)));
  return crc32(source.subarray(at + 8, at + headBytes + statedBodyBytes(source, at)));
}

export function writeChecksum(source: Buffer, at: number, body: Uint8Array | null): void {
  source.writeUInt32LE(frameChecksum(source, at, body), at + 4);
}

export function isIntact(source: Buffer, at: number, body: Uint8Array | null): boolean {
  return source.readUInt32LE(at + 4) === frameChecksum(source, at, body);
}

/** Of an intact frame. */
export function readFrame(source: Buffer, at: number): Frame {
  const keyAt = at + FRAME_HEAD_BYTES;
  const projectAt = keyAt + source.readUInt16LE(at + 12);
  const hasProject = source.readUInt16LE(at + 14) !== NO_PROJECT;
  const bodyAt = at + statedHeadBytes(source, at);
  return {
    index: source.readUInt16LE(at + 18),
    encoding: ENCODINGS[source.readUInt8(at + 16)] ?? 'protobuf',
    coding: CODINGS[source.readUInt8(at + 17)] ?? 'identity',
    apiKey: source.toString('utf8', keyAt, projectAt),
    project: hasProject ? source.toString('utf8', projectAt, bodyAt) : null,
    receivedUs: source.readDoubleLE(at + 24),
    bodyAt,
    bodyBytes: statedBodyBytes(source, at),
  };
}
