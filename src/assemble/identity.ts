/** Ids between their forms: bytes in records, words in tables, text in runs. */
import { UUID_TEXT_BYTES } from '../core/run.ts';

const DASH = 0x2d;
const HIGH_DIGIT = new Uint8Array(256);
const LOW_DIGIT = new Uint8Array(256);
for (let value = 0; value < 256; value++) {
  HIGH_DIGIT[value] = '0123456789abcdef'.charCodeAt(value >> 4);
  LOW_DIGIT[value] = '0123456789abcdef'.charCodeAt(value & 15);
}

/** Writes a UUID of four little-endian words, 36 bytes. */
export function writeUuid(target: Buffer, at: number, a: number, b: number, c: number, d: number): void {
  writeWord(target, at, a);
  target[at + 8] = DASH;
  writeHalf(target, at + 9, b);
  target[at + 13] = DASH;
  writeHalf(target, at + 14, b >>> 16);
  target[at + 18] = DASH;
  writeHalf(target, at + 19, c);
  target[at + 23] = DASH;
  writeHalf(target, at + 24, c >>> 16);
  writeWord(target, at + 28, d);
}

/** The UUID of sixteen bytes as text. */
export function uuidText(bytes: Buffer, at: number): string {
  const text = Buffer.allocUnsafe(UUID_TEXT_BYTES);
  writeUuid(
    text,
    0,
    bytes.readInt32LE(at),
    bytes.readInt32LE(at + 4),
    bytes.readInt32LE(at + 8),
    bytes.readInt32LE(at + 12),
  );
  return text.toString('latin1');
}

function writeWord(target: Buffer, at: number, word: number): void {
  writeHalf(target, at, word);
  writeHalf(target, at + 4, word >>> 16);
}

function writeHalf(target: Buffer, at: number, half: number): void {
  const first = half & 0xff;
  const second = (half >>> 8) & 0xff;
  target[at] = HIGH_DIGIT[first] ?? 0;
  target[at + 1] = LOW_DIGIT[first] ?? 0;
  target[at + 2] = HIGH_DIGIT[second] ?? 0;
  target[at + 3] = LOW_DIGIT[second] ?? 0;
}
