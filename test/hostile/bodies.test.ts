/**
 * Bodies made to hurt whoever decodes them, sent to the program: groups 1 to 4 of the cases (cases.test.ts). Each test
 * ends with a proof that the program goes on.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { MiB } from '../../src/core/units.ts';
import { startCountingBackend, type CountingBackend } from '../flow/countingbackend.ts';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { openRaw, sendRaw } from '../flow/rawhttp.ts';
import { startProgram, type Program } from './program.ts';
import { attribute, field, spanRequest, varint } from './wire.ts';

const MAX_BODY_BYTES = MiB;
const CODINGS = { gzip: gzipSync, deflate: deflateSync, zstd: zstdCompressSync } as const;
type Coding = keyof typeof CODINGS | 'br' | 'identity';
/**
 * Made before there is a connection: compressing takes seconds in which this process does not hear that the program has
 * closed those that it keeps alive.
 */
const BOMBS = Object.entries(CODINGS).map(([coding, compress]) => [coding, compress(Buffer.alloc(128 * MiB))] as const);
const BROTLI_BOMB = brotliCompressSync(Buffer.alloc(64 * MiB));
const BOMB_IN_A_BOMB = gzipSync(gzipSync(Buffer.alloc(16 * MiB)));

let backend: CountingBackend;
let program: Program;

before(async () => {
  backend = await startCountingBackend();
  program = await startProgram({
    SERVICE_ENDPOINT: backend.url,
    DEPLOYMENT_API: 'off',
    MAX_BODY_BYTES: `${MAX_BODY_BYTES}`,
  });
});

after(async () => {
  const exitCode = await program.stop();
  await backend.close();
  assert.equal(exitCode, 0, program.output().slice(-2000));
});

afterEach(async () => {
  const { spans } = makeTrace(2, 2);
  const before = backend.runs.length;
  assert.equal((await postJson(program.url, jsonRequest(spans))).status, 200);
  await backend.until(() => backend.runs.length >= before + spans.length);
  await program.idle();
});

async function send(body: Uint8Array, coding: Coding, type = 'application/json'): Promise<Response> {
  return fetch(program.url, {
    method: 'POST',
    headers: { 'Content-Type': type, 'Content-Encoding': coding },
    body: new Uint8Array(body),
  });
}

/** How much a counter of refusals grows while `work` is done. */
async function refusals(code: string, work: () => Promise<void>): Promise<number> {
  const count = async (): Promise<number> =>
    (await program.metrics()).sum('collector_proxy_requests_refused_total', { code });
  const before = await count();
  await work();
  return (await count()) - before;
}

describe('1: compressed bodies', () => {
  for (const [coding, bomb] of BOMBS) {
    test(`bombs of 1:1000 in ${coding} are 413, and inflated no further than the limit`, async () => {
      assert.ok(bomb.length < 256 * 1024);
      // Warm: threads have their buffers.
      assert.equal((await send(bomb, coding as Coding)).status, 413);
      program.forgetPeak();
      const before = program.peakBytes();
      const grown = await refusals('body-too-large', async () => {
        const answers = await Promise.all(Array.from({ length: 12 }, () => send(bomb, coding as Coding)));
        assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([413]));
      });
      assert.equal(grown, 12);
      const peakBytes = program.peakBytes() - before;
      assert.ok(peakBytes < 64 * MiB, `${Math.round(peakBytes / MiB)} MiB more for twelve bombs of 128 MiB`);
    });
  }

  test('brotli and other codings that nobody offered are 415, unread', async () => {
    const grown = await refusals('unsupported-coding', async () => {
      assert.equal((await send(BROTLI_BOMB, 'br')).status, 415);
    });
    assert.equal(grown, 1);
  });

  test('a bomb in a bomb is bytes that are no OTLP', async () => {
    assert.equal((await send(BOMB_IN_A_BOMB, 'gzip')).status, 400);
  });

  test('zstd frames that lie about their size, or want a window of 2 GiB, are 400 and cost no memory', async () => {
    const head = Buffer.from([0x28, 0xb5, 0x2f, 0xfd]);
    const block = Buffer.from([0x19, 0, 0, 0x61, 0x62, 0x63]); // the last, raw, three bytes
    const size = Buffer.alloc(8);
    size.writeBigUInt64LE(1n << 40n);
    program.forgetPeak();
    const before = program.peakBytes();
    const grown = await refusals('malformed', async () => {
      for (const frame of [
        Buffer.concat([head, Buffer.from([0xe0]), size, block]), // one segment of a tebibyte
        Buffer.concat([head, Buffer.from([0, (31 - 10) << 3]), block]), // a window of 2 GiB
        Buffer.concat([head, Buffer.from([0xc0, 0xff]), size, block]), // both
      ]) {
        assert.equal((await send(frame, 'zstd')).status, 400);
      }
    });
    assert.equal(grown, 3);
    assert.ok(program.peakBytes() - before < 64 * MiB);
  });

  test('streams cut short are 400, streams one after the other are one body', async () => {
    for (const [coding, compress] of Object.entries(CODINGS)) {
      const text = Buffer.from(jsonRequest(makeTrace(3, 3).spans));
      const whole = compress(text);
      for (const at of [1, whole.length >> 1, whole.length - 1]) {
        assert.equal((await send(whole.subarray(0, at), coding as Coding)).status, 400, `${coding} to ${at}`);
      }
      if (coding === 'deflate') continue;
      const halves = Buffer.concat([compress(text.subarray(0, 100)), compress(text.subarray(100))]);
      assert.equal((await send(halves, coding as Coding)).status, 200, coding);
    }
  });
});

describe('2: codings', () => {
  test('stacked, unknown, repeated and empty codings are 415 or the body as it is', async () => {
    const body = gzipSync(jsonRequest(makeTrace(1, 1).spans));
    for (const [value, status] of [
      ['gzip, gzip', 415],
      ['gzip,identity', 415],
      [Array.from({ length: 500 }, () => 'gzip').join(', '), 415],
      ['snappy', 415],
      ['gzip\r\nContent-Encoding: gzip', 415],
      ['gzip\r\nContent-Encoding: identity', 415],
      ['GZip', 200],
      ['x-gzip', 200],
      ['', 400],
    ] as const) {
      const head = `POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Encoding: ${value}\r\nContent-Length: ${body.length}\r\n\r\n`;
      const { statusCode } = await sendRaw(program.port, Buffer.concat([Buffer.from(head), body]));
      assert.equal(statusCode, status, value.slice(0, 40));
    }
  });
});

describe('3: sizes and framing', () => {
  test('the limit is exact in every coding: one byte less, exactly, one byte more', async () => {
    const text = jsonRequest(makeTrace(1, 1).spans);
    for (const coding of ['identity', 'gzip', 'deflate', 'zstd'] as const) {
      for (const [lengthBytes, status] of [
        [MAX_BODY_BYTES - 1, 200],
        [MAX_BODY_BYTES, 200],
        [MAX_BODY_BYTES + 1, 413],
      ] as const) {
        const plain = Buffer.from(text.padEnd(lengthBytes));
        const body = coding === 'identity' ? plain : CODINGS[coding](plain);
        // Off the socket: an answer that comes before the body has left confuses clients.
        const head = `POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Encoding: ${coding}\r\nContent-Length: ${body.length}\r\n\r\n`;
        const { statusCode } = await sendRaw(program.port, Buffer.concat([Buffer.from(head), body]));
        assert.equal(statusCode, status, `${coding}, ${lengthBytes} bytes`);
      }
    }
  });

  test('chunks with endless extensions, and endless trailers, end the connection and cost no memory', async () => {
    const head =
      'POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
    program.forgetPeak();
    const before = program.peakBytes();
    for (const [begin, piece] of [
      ['1', `;${'x'.repeat(16_384)}`],
      ['1', `;a="${'\\"'.repeat(8192)}`],
      ['0\r\n', `X-Trailer: ${'x'.repeat(8192)}\r\n`],
    ] as const) {
      const connection = await openRaw(program.port);
      connection.write(head + begin);
      let sentBytes = 0;
      const flood = (): void => {
        while (!connection.socket.destroyed && sentBytes < 64 * MiB) {
          sentBytes += piece.length;
          if (!connection.socket.write(piece)) return;
        }
      };
      connection.socket.on('drain', flood);
      flood();
      await connection.closed;
      assert.ok(sentBytes < 64 * MiB, `${sentBytes} bytes of ${piece.slice(0, 12)} were taken`);
    }
    assert.ok(program.peakBytes() - before < 32 * MiB);
  });

  test('uploads that are broken off, at any point and by the hundred, give back what they held', async () => {
    const text = jsonRequest(makeTrace(1, 1).spans).padEnd(200_000);
    const request = `POST /v1/traces HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${text.length}\r\n\r\n${text}`;
    await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        const connection = await openRaw(program.port);
        connection.write(request.slice(0, Math.floor((request.length * i) / 100)));
        await new Promise((resolve) => setImmediate(resolve));
        connection.destroy();
      }),
    );
  });
});

describe('4: protobuf', () => {
  const value = (text: string): Buffer => field(1, text);
  const nested = (depth: number, number: number): Buffer => {
    let inner: Buffer = value('x');
    for (let left = depth; left > 0; left--) inner = field(number, number === 5 ? field(1, inner) : inner);
    return inner;
  };
  const nestedPairs = (depth: number): Buffer => {
    let inner: Buffer = value('x');
    for (let left = depth; left > 0; left--)
      inner = field(6, field(1, Buffer.concat([field(1, 'k'), field(2, inner)])));
    return inner;
  };
  const group = (depth: number): Buffer => Buffer.concat([Buffer.alloc(depth, 0x1b), Buffer.alloc(depth, 0x1c)]);
  const huge = Buffer.concat([varint(10n), varint((1n << 62n) + 5n), Buffer.from('x')]);

  /** 200 takes the span, the odd field aside; 400 refuses the body. */
  const cases: [title: string, body: Buffer, status: 200 | 400][] = [
    ['a message of no bytes', Buffer.alloc(0), 200],
    ['arrays nested 10 000 deep', spanRequest(attribute('a', nested(10_000, 5))), 400],
    ['pairs nested 10 000 deep', spanRequest(attribute('a', nestedPairs(10_000))), 400],
    ['unknown messages nested 10 000 deep', spanRequest(field(900, nested(10_000, 7))), 200],
    ['groups', spanRequest(group(1)), 400],
    ['groups nested 10 000 deep', spanRequest(group(10_000)), 400],
    ['a group that does not end', spanRequest(Buffer.from([0x1b])), 400],
    ['a length beyond the message', field(1, Buffer.from([0x12, 0x7f, 1])), 400],
    ['a length of 2^62', huge, 400],
    ['a length of 2^32 + 1', Buffer.concat([varint(10n), varint((1n << 32n) + 1n), Buffer.from('x')]), 400],
    ['a varint of eleven bytes', Buffer.concat([Buffer.from([0x08]), Buffer.alloc(10, 0xff), Buffer.from([1])]), 400],
    ['a varint that does not end', Buffer.from([0x08, 0xff, 0xff]), 400],
    ['a tag of 2^35', varint(1n << 38n), 400],
    ['field number 0', Buffer.from([0x00, 0x01]), 400],
    ['wire types 6 and 7', Buffer.from([0x0e, 0x0f]), 400],
    ['a 64-bit field cut short', Buffer.from([0x09, 1, 2, 3]), 400],
    ['a name of the wrong wire type', spanRequest(Buffer.from([0x28, 0x01])), 200],
    ['times as varints', spanRequest(Buffer.from([0x38, 0x01, 0x40, 0x01])), 200],
    ['attributes as 32-bit numbers', spanRequest(Buffer.from([0x4d, 1, 2, 3, 4])), 200],
    ['a packed list where single ones belong', spanRequest(field(6, Buffer.from([1, 2, 3]))), 200],
    [
      'unknown fields of every wire type',
      spanRequest(field(99, 'x'), Buffer.from([0x98, 6, 1, 0x9d, 6, 1, 2, 3, 4])),
      200,
    ],
    [
      'invalid UTF-8 everywhere',
      spanRequest(
        field(5, Buffer.from([0xff, 0xc0])),
        attribute(Buffer.from([0xed, 0xa0, 0x80]), field(1, Buffer.from([0xf5]))),
      ),
      200,
    ],
    ['ten thousand empty attributes', spanRequest(...Array.from({ length: 10_000 }, () => field(9, ''))), 200],
    ['text', Buffer.from('hello, this is no protobuf'), 400],
    ['JSON', Buffer.from('{"resourceSpans":[]}'), 400],
  ];
  for (const [title, body, status] of cases) {
    test(`${title}: ${status}`, async () => {
      const grown = await refusals('malformed', async () => {
        const answer = await send(body, 'identity', 'application/x-protobuf');
        assert.equal(answer.status, status);
        assert.equal(answer.headers.get('content-type'), 'application/x-protobuf');
        assert.ok((await answer.arrayBuffer()).byteLength < 4096);
      });
      assert.equal(grown, status === 400 ? 1 : 0);
    });
  }

  test('no decode thread was lost on the way', async () => {
    const { sum } = await program.metrics();
    assert.equal(sum('collector_proxy_decode_workers_lost_total'), 0);
    assert.equal(sum('collector_proxy_bodies_set_aside_total'), 0);
    assert.equal(sum('collector_proxy_requests_refused_total', { code: 'internal' }), 0);
  });
});
