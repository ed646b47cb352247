/** Segments on a real disk: what was appended is read again, whatever was cut off or damaged behind or beside it. */
import assert from 'node:assert/strict';
import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { nodeDisk } from '../../../src/journal/disk.ts';
import { SEGMENT_HEAD } from '../../../src/journal/frame.ts';
import { SegmentFiles } from '../../../src/journal/segmentfiles.ts';
import { bodiesIn, chunkOf, sampleBody, type SampleBody } from './frames.ts';

const root = mkdtempSync(join(tmpdir(), 'segments-'));
after(() => rmSync(root, { recursive: true }));

function freshFolder(): string {
  return join(mkdtempSync(join(root, 'f-')), 'journal');
}

function fileIn(folder: string, number = 1): string {
  return join(folder, `${String(number).padStart(16, '0')}.journal`);
}

interface Reading {
  bodies: (SampleBody & { index: number })[];
  damagedCount: number;
  damagedBytes: number;
  tornBytes: number;
}

function readAll(files: SegmentFiles, number = 1): Reading {
  const reading: Reading = { bodies: [], damagedCount: 0, damagedBytes: 0, tornBytes: 0 };
  for (let offset = 0; offset >= 0;) {
    const found = files.read(number, offset);
    if (found.chunk !== null) reading.bodies.push(...bodiesIn(found.chunk));
    reading.damagedCount += found.damagedCount;
    reading.damagedBytes += found.damagedBytes;
    reading.tornBytes += found.tornBytes;
    offset = found.next;
  }
  return reading;
}

/** Three bodies in a segment; where each frame begins in the file. */
function writeThree(folder: string): { bodies: SampleBody[]; starts: number[]; file: string; files: SegmentFiles } {
  const files = new SegmentFiles(folder);
  files.scan();
  const bodies = [sampleBody(0, 50), sampleBody(1, 60), sampleBody(2, 70)];
  const starts: number[] = [];
  for (const [index, body] of bodies.entries()) {
    files.append(1, [chunkOf([body], index)]);
    starts.push(statSync(fileIn(folder)).size);
  }
  files.close();
  return { bodies, starts: [SEGMENT_HEAD.length, ...starts], file: fileIn(folder), files };
}

test('bodies come back as they were, over several chunks, appends and segments', () => {
  const folder = freshFolder();
  const files = new SegmentFiles(folder);
  assert.deepEqual(files.scan(), []);
  const bodies = Array.from({ length: 40 }, (_, number) => sampleBody(number, (number * 997) % 5000));
  files.append(1, [chunkOf(bodies.slice(0, 10)), chunkOf(bodies.slice(10, 12), 10, true)]);
  files.append(1, [chunkOf(bodies.slice(12, 20), 12)]);
  files.append(2, [chunkOf(bodies.slice(20))]);
  files.close();
  const again = new SegmentFiles(folder);
  assert.deepEqual(
    again.scan().map(({ number, bytes }) => [number, bytes === statSync(fileIn(folder, number)).size]),
    [
      [1, true],
      [2, true],
    ],
  );
  const first = readAll(again, 1);
  assert.deepEqual(
    first.bodies,
    bodies.slice(0, 20).map((body, index) => ({ ...body, index })),
  );
  const second = readAll(again, 2);
  assert.deepEqual(
    second.bodies,
    bodies.slice(20).map((body, index) => ({ ...body, index })),
  );
  for (const { damagedCount, tornBytes } of [first, second]) assert.deepEqual([damagedCount, tornBytes], [0, 0]);
});

test('folder and files are for the owner alone, and nothing half-made stays', () => {
  const folder = freshFolder();
  const files = new SegmentFiles(folder);
  files.scan();
  files.append(7, [chunkOf([sampleBody(0)])]);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
  assert.equal(statSync(fileIn(folder, 7)).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(folder), ['0000000000000007.journal']);
  writeFileSync(join(folder, 'segment.tmp'), 'from a crash');
  files.close();
  new SegmentFiles(folder).scan();
  assert.deepEqual(readdirSync(folder), ['0000000000000007.journal']);
  files.remove(7);
  files.remove(7);
  assert.deepEqual(readdirSync(folder), []);
});

test('a body larger than what is read at a time comes alone, in its own buffer, between others', () => {
  const folder = freshFolder();
  const files = new SegmentFiles(folder);
  files.scan();
  const bodies = [sampleBody(0, 900_000), sampleBody(1, 900_000), sampleBody(2, 3_000_000), sampleBody(3, 10)];
  for (const [index, body] of bodies.entries()) files.append(1, [chunkOf([body], index, index % 2 === 0)]);
  const { bodies: read, damagedCount, tornBytes } = readAll(files);
  assert.deepEqual(
    read,
    bodies.map((body, index) => ({ ...body, index })),
  );
  assert.deepEqual([damagedCount, tornBytes], [0, 0]);
});

test('a tail cut off at every byte of the last body: the others come back, the rest is left out', () => {
  const folder = freshFolder();
  const { bodies, starts, file, files } = writeThree(folder);
  const whole = readFileSync(file);
  const [, , lastStart = 0] = starts;
  for (let end = whole.length - 1; end >= lastStart; end--) {
    truncateSync(file, end);
    const { bodies: read, damagedCount, tornBytes } = readAll(files);
    assert.deepEqual(
      read.map(({ bytes }) => bytes),
      bodies.slice(0, 2).map(({ bytes }) => bytes),
    );
    assert.deepEqual([damagedCount, tornBytes], [0, end - lastStart]);
  }
});

test('a tail of zeros or of other bytes, as a power cut leaves it, is left out', () => {
  for (const tail of [Buffer.alloc(5000), Buffer.alloc(1_500_000, 0xf5), Buffer.from('text')]) {
    const folder = freshFolder();
    const { file, files } = writeThree(folder);
    appendFileSync(file, tail);
    const { bodies, damagedCount, tornBytes } = readAll(files);
    assert.equal(bodies.length, 3);
    assert.deepEqual([damagedCount, tornBytes], [0, tail.length]);
  }
});

test('every single damaged byte of the middle body costs that body alone, and is told', () => {
  const folder = freshFolder();
  const { bodies, starts, file, files } = writeThree(folder);
  const whole = readFileSync(file);
  const [, from = 0, to = 0] = starts;
  for (let at = from; at < to; at++) {
    const damaged = Buffer.from(whole);
    damaged[at] = (damaged[at] ?? 0) ^ 0x10;
    writeFileSync(file, damaged);
    const { bodies: read, damagedCount, damagedBytes, tornBytes } = readAll(files);
    assert.deepEqual(
      read.map(({ bytes }) => bytes),
      [bodies[0]?.bytes, bodies[2]?.bytes],
      `byte ${at - from}`,
    );
    assert.deepEqual([damagedCount, damagedBytes, tornBytes], [1, to - from, 0]);
  }
});

test('a damaged head of the file does not hide its bodies', () => {
  const { file, files } = writeThree(freshFolder());
  const damaged = readFileSync(file);
  damaged[0] = 0;
  writeFileSync(file, damaged);
  const { bodies, damagedCount } = readAll(files);
  assert.equal(bodies.length, 3);
  assert.equal(damagedCount, 1);
});

test('what looks like a body inside of a damaged one is not taken for one', () => {
  const folder = freshFolder();
  const files = new SegmentFiles(folder);
  files.scan();
  // A frame as bytes, checksum and all, sent as a body.
  files.append(9, [chunkOf([sampleBody(5)])]);
  const forged = readFileSync(fileIn(folder, 9)).subarray(SEGMENT_HEAD.length);
  const carrier = { ...sampleBody(1), bytes: Buffer.concat([Buffer.alloc(40), forged, Buffer.alloc(40)]) };
  files.append(1, [chunkOf([sampleBody(0), carrier, sampleBody(2)])]);
  const file = fileIn(folder, 1);
  const damaged = readFileSync(file);
  damaged[damaged.indexOf(forged) - 1] = 1;
  writeFileSync(file, damaged);
  assert.deepEqual(
    readAll(files).bodies.map(({ index }) => index),
    [0, 2],
  );
});

test('a file that a write failed on is cut back and never written again; the next segment is', () => {
  const folder = freshFolder();
  let fails = false;
  const disk = {
    ...nodeDisk,
    flush: (file: number): void => {
      if (fails) throw Object.assign(new Error('EIO: i/o error, fdatasync'), { code: 'EIO' });
      nodeDisk.flush(file);
    },
  };
  const files = new SegmentFiles(folder, disk);
  files.scan();
  files.append(1, [chunkOf([sampleBody(0)])]);
  const goodBytes = statSync(fileIn(folder)).size;
  fails = true;
  assert.throws(() => files.append(1, [chunkOf([sampleBody(1)], 1)]), /EIO/);
  assert.equal(statSync(fileIn(folder)).size, goodBytes);
  assert.throws(() => files.probe(), /EIO/);
  assert.throws(() => files.append(2, [chunkOf([sampleBody(1)])]), /EIO/);
  fails = false;
  files.probe();
  files.append(3, [chunkOf([sampleBody(1)])]);
  assert.equal(readAll(files, 1).bodies.length, 1);
  assert.equal(readAll(files, 3).bodies.length, 1);
  assert.deepEqual(readdirSync(folder).sort(), ['0000000000000001.journal', '0000000000000003.journal']);
});

test('more pieces than one system call takes are written all', () => {
  const folder = freshFolder();
  const files = new SegmentFiles(folder);
  files.scan();
  // More pieces than one system call takes.
  const bodies = Array.from({ length: 1300 }, (_, number) => sampleBody(number, 20));
  files.append(
    1,
    bodies.map((body, index) => chunkOf([body], index)),
  );
  assert.equal(readAll(files).bodies.length, 1300);
});
