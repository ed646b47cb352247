/** Records for ring tests: a length word, then bytes that tell producer and number, so that any mix-up shows. */
import assert from 'node:assert/strict';
import type { RecordWindow } from '../../src/ring/reader.ts';

/** `lengthBytes`: a multiple of eight. */
export function makeRecord(producer: number, number: number, lengthBytes: number): Buffer {
  const record = Buffer.alloc(lengthBytes, (producer * 31 + number * 7) & 0xff);
  record.writeUInt32LE(lengthBytes, 0);
  record.writeUInt32LE(((producer << 24) | number) >>> 0, 4);
  return record;
}

/** Checks every byte of the record at a place and says whose it is. */
export function readRecord(bytes: Buffer, offset: number): { producer: number; number: number; lengthBytes: number } {
  const lengthBytes = bytes.readUInt32LE(offset);
  const tag = bytes.readUInt32LE(offset + 4);
  const found = { producer: tag >>> 24, number: tag & 0xffffff, lengthBytes };
  const expected = makeRecord(found.producer, found.number, lengthBytes);
  assert.equal(expected.compare(bytes, offset, offset + lengthBytes), 0, `bytes of ${JSON.stringify(found)}`);
  return found;
}

export function windowRecords(window: RecordWindow): { producer: number; number: number; lengthBytes: number }[] {
  return Array.from({ length: window.count }, (_, i) => {
    const bytes = window.bytes[i];
    assert.ok(bytes);
    return readRecord(bytes, window.offset[i] ?? -1);
  });
}
