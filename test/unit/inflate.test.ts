import assert from 'node:assert/strict';
import test from 'node:test';
import { deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { createInflater, type CompressedCoding, type Inflater } from '../../src/decode/inflate.ts';
import { builtinUnzstd, openNativeUnzstd } from '../../src/decode/unzstd.ts';
import { findZstdFrame } from '../../src/decode/zstdframe.ts';

const native = openNativeUnzstd();
const ways: { name: string; coding: CompressedCoding; compress: (source: Buffer) => Buffer; inflater: Inflater }[] = [
  { name: 'gzip', coding: 'gzip', compress: (source) => gzipSync(source), inflater: createInflater() },
  { name: 'deflate', coding: 'deflate', compress: (source) => deflateSync(source), inflater: createInflater() },
  {
    name: 'zstd of Node',
    coding: 'zstd',
    compress: (source) => zstdCompressSync(source),
    inflater: createInflater(builtinUnzstd),
  },
];
if (native !== null) {
  ways.push({
    name: 'native zstd',
    coding: 'zstd',
    compress: (source) => zstdCompressSync(source),
    inflater: createInflater(native),
  });
}

const LIMIT_BYTES = 300_000;

/** Compressible but not trivial. */
function text(lengthBytes: number): Buffer {
  const source = Buffer.alloc(lengthBytes);
  let state = 1;
  for (let i = 0; i < lengthBytes; i++) {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff;
    source[i] = 97 + ((state >> 16) % 12);
  }
  return source;
}

test('the native zstd could be loaded', { skip: native === null ? 'not built on this machine' : false }, () => {
  assert.notEqual(native, null);
});

for (const { name, coding, compress, inflater } of ways) {
  test(`${name}: what was compressed comes out, up to exactly the limit`, () => {
    for (const lengthBytes of [0, 1, 100, 65_536, LIMIT_BYTES - 1, LIMIT_BYTES]) {
      const source = text(lengthBytes);
      const outcome = inflater.inflate(coding, compress(source), LIMIT_BYTES);
      assert.equal(outcome.kind, 'inflated', `${lengthBytes} bytes`);
      assert.ok(outcome.kind === 'inflated' && outcome.bytes.equals(source), `${lengthBytes} bytes`);
    }
  });

  test(`${name}: one byte more than the limit is too large, and so is a bomb`, () => {
    assert.deepEqual(inflater.inflate(coding, compress(text(LIMIT_BYTES + 1)), LIMIT_BYTES), { kind: 'too-large' });
    const bomb = compress(Buffer.alloc(64 * 1024 * 1024));
    const before = process.memoryUsage().rss;
    assert.deepEqual(inflater.inflate(coding, bomb, LIMIT_BYTES), { kind: 'too-large' });
    assert.ok(process.memoryUsage().rss - before < 16 * 1024 * 1024, 'no memory for what was not wanted');
    assert.equal(inflater.inflate(coding, compress(text(100)), LIMIT_BYTES).kind, 'inflated', 'works afterwards');
  });

  test(`${name}: a stream cut short anywhere is malformed, and the next one is fine`, () => {
    const whole = compress(text(2000));
    for (let length = 0; length < whole.length; length++) {
      const outcome = inflater.inflate(coding, whole.subarray(0, length), LIMIT_BYTES);
      assert.equal(outcome.kind, 'malformed', `${length} of ${whole.length} bytes`);
    }
    assert.equal(inflater.inflate(coding, whole, LIMIT_BYTES).kind, 'inflated');
  });

  test(`${name}: bytes that are something else are malformed`, () => {
    for (const other of [text(50), Buffer.alloc(50), Buffer.from('{"resourceSpans":[]}')]) {
      assert.equal(inflater.inflate(coding, other, LIMIT_BYTES).kind, 'malformed');
    }
  });

  if (coding !== 'deflate') {
    test(`${name}: streams one after the other are one body, and the limit holds for their sum`, () => {
      const [first, second] = [text(3000), text(70_000)];
      const outcome = inflater.inflate(coding, Buffer.concat([compress(first), compress(second)]), LIMIT_BYTES);
      assert.ok(outcome.kind === 'inflated' && outcome.bytes.equals(Buffer.concat([first, second])));
      const half = compress(text(LIMIT_BYTES / 2));
      const halves = inflater.inflate(coding, Buffer.concat([half, half]), LIMIT_BYTES);
      assert.ok(halves.kind === 'inflated' && halves.bytes.length === LIMIT_BYTES);
      const sum = Buffer.concat([half, half, compress(text(1))]);
      assert.deepEqual(inflater.inflate(coding, sum, LIMIT_BYTES), { kind: 'too-large' });
      const cut = Buffer.concat([half, half.subarray(0, 20)]);
      assert.equal(inflater.inflate(coding, cut, LIMIT_BYTES).kind, 'malformed', 'the second is cut short');
    });
  }

  if (coding === 'zstd') {
    const skippable = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4]);

    test(`${name}: skippable frames are skipped`, () => {
      const source = text(500);
      for (const body of [Buffer.concat([skippable, compress(source)]), Buffer.concat([compress(source), skippable])]) {
        const outcome = inflater.inflate(coding, body, LIMIT_BYTES);
        assert.ok(outcome.kind === 'inflated' && outcome.bytes.equals(source));
      }
      assert.equal(inflater.inflate(coding, skippable.subarray(0, 11), LIMIT_BYTES).kind, 'malformed');
    });

    test(`${name}: a frame that lies about its size or wants a huge window costs no memory`, () => {
      const rssBefore = process.memoryUsage().rss;
      // Single segment, 8-byte content size of 1 TiB, one raw block of 3 bytes.
      const size = Buffer.alloc(8);
      size.writeBigUInt64LE(1n << 40n);
      const liar = Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0xe0]), size, rawBlock('abc')]);
      assert.equal(inflater.inflate(coding, liar, LIMIT_BYTES).kind, 'malformed');
      // Window descriptor of 2 GiB and of 128 MiB, no content size.
      for (const log of [31, 27]) {
        const frame = Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, (log - 10) << 3]), rawBlock('abc')]);
        assert.equal(inflater.inflate(coding, frame, LIMIT_BYTES).kind, 'malformed', `window 2^${log}`);
      }
      const allowed = Buffer.concat([Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, (25 - 10) << 3]), rawBlock('abc')]);
      const outcome = inflater.inflate(coding, allowed, LIMIT_BYTES);
      assert.ok(outcome.kind === 'inflated' && outcome.bytes.toString() === 'abc');
      assert.ok(process.memoryUsage().rss - rssBefore < 64 * 1024 * 1024);
    });
  }
}

test('deflate means zlib framing: a raw stream is malformed', () => {
  assert.equal(createInflater().inflate('deflate', deflateRawSync(text(500)), LIMIT_BYTES).kind, 'malformed');
});

test('the end of a zstd frame is found without decompressing it', () => {
  for (const lengthBytes of [0, 1, 255, 256, 300, 70_000, 2_000_000]) {
    const frame = zstdCompressSync(text(lengthBytes));
    const after = Buffer.concat([Buffer.from('in front'), frame, Buffer.from('behind')]);
    assert.equal(findZstdFrame(after, 8)?.endOffset, 8 + frame.length, `${lengthBytes} bytes`);
  }
});

/** The last block of a frame, uncompressed. */
function rawBlock(content: string): Buffer {
  const header = Buffer.alloc(3);
  header.writeUIntLE((content.length << 3) | 1, 0, 3);
  return Buffer.concat([header, Buffer.from(content)]);
}
