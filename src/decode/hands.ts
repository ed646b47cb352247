/**
 * What each decode thread has in its hands, in shared memory: a thread that dies takes its task with it, and this is what
 * tells afterwards which body it died of. A thread writes before it begins with a body and after it has come to its end;
 * the main thread reads when a task was lost.
 */
import { crc32 } from 'node:zlib';
import { KiB } from '../core/units.ts';

/** Per slot: serial number of the task, 0 for none; the body's print and length. */
const WORDS = 4;
const SERIAL = 0;
const PRINT = 1;
const LENGTH = 2;

/** Bodies shorter than three samples are sampled whole. */
const SAMPLE_BYTES = 2 * KiB;

/** How a body is known again: cheap (1 to 2 µs whatever the length), and wrong only for bodies made to be alike. */
export interface Print {
  readonly checksum: number;
  readonly lengthBytes: number;
}

/** Of the body as it was received. */
export function printOf(body: Uint8Array): Print {
  const lengthBytes = body.length;
  if (lengthBytes <= 3 * SAMPLE_BYTES) return { checksum: crc32(body), lengthBytes };
  const middle = (lengthBytes - SAMPLE_BYTES) >>> 1;
  let checksum = crc32(body.subarray(0, SAMPLE_BYTES));
  checksum = crc32(body.subarray(middle, middle + SAMPLE_BYTES), checksum);
  checksum = crc32(body.subarray(lengthBytes - SAMPLE_BYTES), checksum);
  return { checksum, lengthBytes };
}

export function createHands(slotCount: number): SharedArrayBuffer {
  return new SharedArrayBuffer(slotCount * WORDS * Uint32Array.BYTES_PER_ELEMENT);
}

/** One thread's own. */
export class Hand {
  readonly #words: Uint32Array;

  constructor(hands: SharedArrayBuffer, slot: number) {
    this.#words = new Uint32Array(hands, slot * WORDS * Uint32Array.BYTES_PER_ELEMENT, WORDS);
  }

  take(serial: number, body: Uint8Array): void {
    const { checksum, lengthBytes } = printOf(body);
    this.#words[PRINT] = checksum;
    this.#words[LENGTH] = lengthBytes;
    this.#words[SERIAL] = serial;
  }

  drop(): void {
    this.#words[SERIAL] = 0;
  }
}

/** The body that was being decoded when the task of this serial number was lost; null when none of its bodies was. */
export function bodyInHand(hands: SharedArrayBuffer, serial: number): Print | null {
  const words = new Uint32Array(hands);
  for (let at = 0; at < words.length; at += WORDS) {
    if (words[at + SERIAL] !== serial) continue;
    return { checksum: words[at + PRINT] ?? 0, lengthBytes: words[at + LENGTH] ?? 0 };
  }
  return null;
}
