/** The HTTP face over real sockets: a real acceptor in front of an intake that answers as the test says. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { afterEach, beforeEach, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createAcceptor, type Acceptor, type AcceptorSettings } from '../../src/accept/acceptor.ts';
import { createCounterTable, type CounterTable } from '../../src/core/counters.ts';
import type { HttpApp, HttpRequest, HttpSink } from '../../src/core/http.ts';
import type { Intake, IntakeBody } from '../../src/core/intake.ts';
import type { Clock } from '../../src/core/lifecycle.ts';
import type { Log } from '../../src/core/log.ts';
import type { Admission } from '../../src/core/outcome.ts';
import { allowLongHeads } from '../../src/config.ts';
import { KiB, MiB } from '../../src/core/units.ts';
import { openRaw, sendRaw, type RawConnection, type RawResponse } from './rawhttp.ts';

const HOST = 'Host: proxy\r\n';
const KEY = 'X-API-Key: key-one\r\n';
const PROTOBUF = 'Content-Type: application/x-protobuf\r\n';
const JSON_TYPE = 'Content-Type: application/json\r\n';
const MAX_BODY_BYTES = 2 * MiB;

allowLongHeads();

interface Taken {
  readonly body: IntakeBody;
  readonly bytes: Buffer;
  readonly owned: boolean;
}

/** Keeps what it is handed; settles each body at once (in a later turn) unless told to hold. */
class FakeIntake implements Intake {
  readonly taken: Taken[] = [];
  admission: Admission = { kind: 'accepted', acceptedCount: 1, rejectedCount: 0, message: '' };
  hold = false;
  fault: Error | null = null;
  #arrived: () => void = () => undefined;

  submit(body: IntakeBody, bytes: Uint8Array): void {
    this.#take(body, Buffer.from(bytes), false);
  }

  submitOwned(body: IntakeBody, buffer: ArrayBuffer, lengthBytes: number): void {
    this.#take(body, Buffer.from(structuredClone(buffer, { transfer: [buffer] }), 0, lengthBytes), true);
  }

  /** Resolves when `count` bodies have been handed over. */
  async handed(count: number): Promise<void> {
    while (this.taken.length < count) {
      await new Promise<void>((resolve) => {
        this.#arrived = resolve;
      });
    }
  }

  #take(body: IntakeBody, bytes: Buffer, owned: boolean): void {
    if (this.fault !== null) throw this.fault;
    this.taken.push({ body, bytes, owned });
    const { admission } = this;
    if (!this.hold) setImmediate(() => body.settle(admission));
    this.#arrived();
  }
}

class CollectingLog implements Log {
  readonly lines: { level: string; fields: object; message: string }[] = [];
  debug = this.#at('debug');
  info = this.#at('info');
  warn = this.#at('warn');
  error = this.#at('error');
  child(): Log {
    return this;
  }
  #at(level: string) {
    return (fields: object, message: string): void => void this.lines.push({ level, fields, message });
  }
}

class SteppedClock implements Clock {
  now = 1_800_000_000_000;
  nowMs(): number {
    return this.now;
  }
  sleep(_ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      signal?.addEventListener('abort', () => resolve(), { once: true });
    });
  }
}

let intake: FakeIntake;
let log: CollectingLog;
let clock: SteppedClock;
let counters: CounterTable;
let reasons: string[];
let acceptor: Acceptor;
const connections: RawConnection[] = [];

async function start(settings: Partial<AcceptorSettings> = {}, apps: HttpApp[] = []): Promise<void> {
  acceptor = createAcceptor(
    {
      host: '127.0.0.1',
      port: 0,
      tlsCertFile: null,
      tlsKeyFile: null,
      maxBodyBytes: MAX_BODY_BYTES,
      maxInflightBytes: 16 * MiB,
      apiKey: null,
      project: null,
      corsAllowOrigins: [],
      ...settings,
    },
    { intake, log, clock, counters: counters.row(0), stageReasons: () => [...reasons], apps },
  );
  await acceptor.start();
  acceptor.ready();
}

/** The acceptor of `beforeEach` gives way to one with other settings. */
async function restart(settings: Partial<AcceptorSettings>, apps: HttpApp[] = []): Promise<void> {
  acceptor.close();
  await start(settings, apps);
}

async function open(): Promise<RawConnection> {
  const connection = await openRaw(acceptor.port);
  connections.push(connection);
  return connection;
}

function post(headers: string, body: string | Uint8Array = '', path = '/v1/traces'): Buffer {
  const bytes = Buffer.from(body);
  return Buffer.concat([
    Buffer.from(`POST ${path} HTTP/1.1\r\n${HOST}${headers}Content-Length: ${bytes.length}\r\n\r\n`),
    bytes,
  ]);
}

function chunked(headers: string, pieces: (string | Uint8Array)[]): Buffer {
  const framed = pieces.flatMap((piece) => {
    const bytes = Buffer.from(piece);
    return [Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')];
  });
  const head = Buffer.from(`POST /v1/traces HTTP/1.1\r\n${HOST}${headers}Transfer-Encoding: chunked\r\n\r\n`);
  return Buffer.concat([head, ...framed, Buffer.from('0\r\n\r\n')]);
}

/** `{code, message}` of a `google.rpc.Status` in JSON. */
function rpcStatus(response: RawResponse): { code: number; message: string } {
  assert.equal(response.headers.get('content-type'), 'application/json');
  return JSON.parse(response.body.toString());
}

/** Each test leaves no bytes charged: whatever was reserved has been given back. */
function assertNothingHeld(): void {
  assert.equal(acceptor.inflightBytes, 0);
}

beforeEach(async () => {
  intake = new FakeIntake();
  log = new CollectingLog();
  clock = new SteppedClock();
  counters = createCounterTable(1);
  reasons = [];
  await start();
});

afterEach(() => {
  for (const connection of connections.splice(0)) connection.destroy();
  acceptor.close();
});

describe('accepted exports', () => {
  test('all spans accepted: 200, an empty body in the encoding of the request, and a request id', async () => {
    const binary = await sendRaw(acceptor.port, post(KEY + PROTOBUF, 'body'));
    assert.equal(binary.statusCode, 200);
    assert.equal(binary.headers.get('content-type'), 'application/x-protobuf');
    assert.equal(binary.body.length, 0);
    assert.match(binary.headers.get('x-request-id') ?? '', /^[\w-]{10,}$/);
    const json = await sendRaw(acceptor.port, post(KEY + JSON_TYPE, '{}'));
    assert.equal(json.statusCode, 200);
    assert.equal(json.headers.get('content-type'), 'application/json');
    assert.equal(json.body.toString(), '{}');
    assertNothingHeld();
  });

  test('an empty protobuf request is handed on like any other', async () => {
    intake.admission = { kind: 'accepted', acceptedCount: 0, rejectedCount: 0, message: '' };
    assert.equal((await sendRaw(acceptor.port, post(KEY + PROTOBUF))).statusCode, 200);
    assert.equal((await sendRaw(acceptor.port, chunked(KEY + PROTOBUF, []))).statusCode, 200);
    assert.deepEqual(
      intake.taken.map(({ bytes }) => bytes.length),
      [0, 0],
    );
    assertNothingHeld();
  });

  test('spans rejected one by one: still 200, with a partial success', async () => {
    intake.admission = { kind: 'accepted', acceptedCount: 7, rejectedCount: 3, message: 'bad id' };
    const json = await sendRaw(acceptor.port, post(KEY + JSON_TYPE, '{}'));
    assert.equal(json.statusCode, 200);
    assert.deepEqual(JSON.parse(json.body.toString()), {
      partialSuccess: { rejectedSpans: '3', errorMessage: 'bad id' },
    });
    const binary = await sendRaw(acceptor.port, post(KEY + PROTOBUF, 'x'));
    assert.equal(binary.body.toString('hex'), '0a0a08031206626164206964');
    assert.equal(counters.total('spans_accepted'), 14);
    assert.equal(counters.total('spans_invalid'), 6);
  });

  test('media types are parsed: parameters, case and the structured suffixes', async () => {
    const types: [type: string, encoding: string | null][] = [
      ['application/json; charset=utf-8', 'json'],
      ['Application/JSON', 'json'],
      ['application/vnd.otlp+json', 'json'],
      ['application/x-protobuf;x=y', 'protobuf'],
      ['application/protobuf', 'protobuf'],
      ['application/otlp+proto', 'protobuf'],
      ['text/plain', null],
      ['application/grpc', null],
      ['application/x-protobuffer', null],
      ['json', null],
    ];
    for (const [type, encoding] of types) {
      const before = intake.taken.length;
      const { statusCode } = await sendRaw(acceptor.port, post(`${KEY}Content-Type: ${type}\r\n`, '{}'));
      assert.equal(statusCode, encoding === null ? 415 : 200, type);
      assert.equal(intake.taken[before]?.body.encoding ?? null, encoding, type);
    }
  });

  test('content codings are told to the intake, whatever their case', async () => {
    for (const [coding, expected] of [
      ['', 'identity'],
      ['identity', 'identity'],
      ['gzip', 'gzip'],
      ['GZIP', 'gzip'],
      ['deflate', 'deflate'],
      ['zstd', 'zstd'],
    ] as const) {
      const header = coding === '' ? '' : `Content-Encoding: ${coding}\r\n`;
      assert.equal((await sendRaw(acceptor.port, post(KEY + PROTOBUF + header, 'x'))).statusCode, 200);
      assert.equal(intake.taken.at(-1)?.body.coding, expected);
    }
  });

  test('the path is known with a slash at its end, appended twice, and with a query', async () => {
    for (const path of ['/v1/traces/', '/v1/traces/v1/traces', '/v1/traces/v1/traces/', '/v1/traces?a=b%zz']) {
      assert.equal((await sendRaw(acceptor.port, post(KEY + PROTOBUF, 'x', path))).statusCode, 200, path);
    }
  });

  test('bodies arrive whole and unchanged: in one piece, in many, chunked, small and large, by byte', async () => {
    const sizes = [1, 5000, 255 * KiB, 256 * KiB, 256 * KiB + 1, 700 * KiB, MAX_BODY_BYTES];
    const connection = await open();
    for (const [round, sizeBytes] of sizes.entries()) {
      const body = Buffer.from(Array.from({ length: sizeBytes }, (_, i) => (i * 31 + round) & 0xff));
      connection.write(post(KEY + PROTOBUF, body));
      assert.equal((await connection.response()).statusCode, 200);
      assert.ok(intake.taken.at(-1)?.bytes.equals(body), `${sizeBytes} bytes with a length`);
      const cut = Math.floor(sizeBytes / 3);
      connection.write(
        chunked(
          KEY + PROTOBUF,
          [body.subarray(0, cut), body.subarray(cut)].filter((p) => p.length > 0),
        ),
      );
      assert.equal((await connection.response()).statusCode, 200);
      assert.ok(intake.taken.at(-1)?.bytes.equals(body), `${sizeBytes} bytes chunked`);
    }
    const slow = await open();
    // The server library wants the request line in one piece.
    const request = post(KEY + PROTOBUF, 'slowly');
    const lineBytes = request.indexOf('\r\n') + 2;
    slow.write(request.subarray(0, lineBytes));
    for (const byte of request.subarray(lineBytes)) {
      slow.write(Uint8Array.of(byte));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal((await slow.response()).statusCode, 200);
    assert.equal(intake.taken.at(-1)?.bytes.toString(), 'slowly');
    assert.equal(
      counters.total('request_bytes'),
      intake.taken.reduce((sum, { bytes }) => sum + bytes.length, 0),
    );
    assertNothingHeld();
  });

  test('a client that asks before it sends is told to go on', async () => {
    const connection = await open();
    connection.write(
      `POST /v1/traces HTTP/1.1\r\n${HOST}${KEY}${PROTOBUF}Expect: 100-continue\r\nContent-Length: 3\r\n\r\n`,
    );
    assert.equal((await connection.response()).statusCode, 100);
    connection.write('abc');
    assert.equal((await connection.response()).statusCode, 200);
  });

  test('thirty requests in flight on as many connections each get their own answer', async () => {
    intake.hold = true;
    const asked = await Promise.all(
      Array.from({ length: 30 }, async (_, i) => {
        const connection = await open();
        connection.write(post(`${KEY}${JSON_TYPE}X-Request-Id: id-${i}\r\n`, `{"n":${i}}`));
        return connection;
      }),
    );
    await intake.handed(30);
    for (const { body, bytes } of [...intake.taken].reverse()) {
      const { n } = JSON.parse(bytes.toString());
      body.settle({ kind: 'accepted', acceptedCount: 1, rejectedCount: 0, message: `number ${n}` });
    }
    for (const [i, connection] of asked.entries()) {
      const response = await connection.response();
      assert.equal(response.headers.get('x-request-id'), `id-${i}`);
      assert.equal(JSON.parse(response.body.toString()).partialSuccess.errorMessage, `number ${i}`);
    }
    assertNothingHeld();
  });
});

describe('keys and projects', () => {
  test('without any key the answer is 401, says how to send one, and the spans go nowhere', async () => {
    const response = await sendRaw(acceptor.port, post(JSON_TYPE, '{}'));
    assert.equal(response.statusCode, 401);
    assert.ok(response.headers.get('www-authenticate')?.includes('X-API-Key'));
    assert.equal(rpcStatus(response).code, 16);
    assert.equal(intake.taken.length, 0);
  });

  test('the key of the request comes before the configured one; project headers before the configured project', async () => {
    await restart({ apiKey: 'configured', project: 'configured project' });
    const asks: [headers: string, key: string, project: string | null][] = [
      ['', 'configured', 'configured project'],
      ['X-API-Key: own\r\n', 'own', 'configured project'],
      ['Service-Project: a b\r\n', 'configured', 'a b'],
      ['Langsmith-Project: ls\r\n', 'configured', 'ls'],
      ['Langsmith-Project: ls\r\nService-Project: sp\r\n', 'configured', 'sp'],
      ['Service-Project: \r\nLangsmith-Project: ls\r\n', 'configured', 'ls'],
      ['Authorization: Bearer other\r\n', 'configured', 'configured project'],
    ];
    for (const [headers, key, project] of asks) {
      assert.equal((await sendRaw(acceptor.port, post(PROTOBUF + headers, 'x'))).statusCode, 200);
      assert.deepEqual([intake.taken.at(-1)?.body.apiKey, intake.taken.at(-1)?.body.project], [key, project], headers);
    }
  });

  test('without header and setting the project is left to the span', async () => {
    await sendRaw(acceptor.port, post(KEY + PROTOBUF, 'x'));
    assert.equal(intake.taken[0]?.body.project, null);
  });

  test('keys and projects that could forge a header or flood a log are 400', async () => {
    for (const header of [
      'X-API-Key: two words\r\n',
      `X-API-Key: ${'k'.repeat(513)}\r\n`,
      'X-API-Key: tab\tinside\r\n',
      `${KEY}Service-Project: ${'p'.repeat(513)}\r\n`,
      `${KEY}Service-Project: tab\tinside\r\n`,
      `${KEY}Langsmith-Project: del\x7fete\r\n`,
    ]) {
      const response = await sendRaw(acceptor.port, post(JSON_TYPE + header, '{}'));
      assert.equal(response.statusCode, 400, header);
      assert.equal(rpcStatus(response).code, 3);
    }
    assert.equal(intake.taken.length, 0);
  });

  test('no log line ever holds a key', async () => {
    intake.admission = { kind: 'refused', code: 'malformed', message: 'not a message' };
    await sendRaw(acceptor.port, post(KEY + JSON_TYPE, '['));
    intake.admission = { kind: 'busy', code: 'rings-full', message: 'full', retryAfterMs: 1 };
    await sendRaw(acceptor.port, post(KEY + JSON_TYPE, '{}'));
    await sendRaw(acceptor.port, post(`${KEY}Content-Type: text/plain\r\n`, '{}'));
    assert.ok(log.lines.length >= 3);
    assert.ok(!JSON.stringify(log.lines).includes('key-one'));
  });
});

describe('refusals', () => {
  test('what the decoder cannot read is 400 with details, in the encoding of the request', async () => {
    intake.admission = { kind: 'refused', code: 'malformed', message: 'ends too early' };
    const json = await sendRaw(acceptor.port, post(KEY + JSON_TYPE, '{'));
    assert.equal(json.statusCode, 400);
    assert.deepEqual(JSON.parse(json.body.toString()), {
      code: 3,
      message: 'ends too early',
      details: [
        {
          '@type': 'type.googleapis.com/google.rpc.BadRequest',
          fieldViolations: [{ field: 'body', description: 'ends too early' }],
        },
      ],
    });
    const binary = await sendRaw(acceptor.port, post(KEY + PROTOBUF, 'x'));
    assert.equal(binary.statusCode, 400);
    assert.equal(binary.headers.get('content-type'), 'application/x-protobuf');
    assert.equal(binary.body[0], 0x08);
    assert.equal(counters.total('requests_refused'), 2);
  });

  test('unknown paths are 404 with a Status, whatever stands in them', async () => {
    for (const path of [
      '/',
      '/v1/metrics',
      '/v1/traces/x',
      '/../../etc/passwd',
      '/%',
      '/%zz%00',
      '/v1%2Ftraces',
      '//v1/traces',
    ]) {
      const response = await sendRaw(acceptor.port, `GET ${path} HTTP/1.1\r\n${HOST}\r\n`);
      assert.equal(response.statusCode, 404, path);
      assert.equal(rpcStatus(response).code, 12);
      assert.ok(response.headers.has('x-request-id'));
    }
    const binary = await sendRaw(acceptor.port, post(KEY + PROTOBUF, 'x', '/v1/logs'));
    assert.equal(binary.statusCode, 404);
    assert.equal(binary.headers.get('content-type'), 'application/x-protobuf');
  });

  test('other methods are 405 and told which are allowed; HEAD gets no body, OPTIONS an empty answer', async () => {
    for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'post', 'BREW']) {
      const response = await sendRaw(acceptor.port, `${method} /v1/traces HTTP/1.1\r\n${HOST}\r\n`);
      assert.equal(response.statusCode, 405, method);
      assert.equal(response.headers.get('allow'), 'POST, OPTIONS');
      assert.equal(rpcStatus(response).code, 12);
    }
    const connection = await open();
    connection.write(`HEAD /v1/traces HTTP/1.1\r\n${HOST}\r\n`);
    assert.equal((await connection.response({ head: true })).statusCode, 405);
    connection.write(`OPTIONS /v1/traces HTTP/1.1\r\n${HOST}\r\n`);
    const options = await connection.response();
    assert.equal(options.statusCode, 204);
    assert.equal(options.headers.get('allow'), 'POST, OPTIONS');
    assert.equal(options.headers.get('access-control-allow-origin'), undefined);
  });

  test('a declared length over the limit is 413 before the body is sent, and the connection lives on', async () => {
    const connection = await open();
    const length = MAX_BODY_BYTES + 1;
    connection.write(`POST /v1/traces HTTP/1.1\r\n${HOST}${KEY}${JSON_TYPE}Content-Length: ${length}\r\n\r\n`);
    const response = await connection.response();
    assert.equal(response.statusCode, 413);
    assert.equal(rpcStatus(response).code, 3);
    connection.write(Buffer.alloc(length));
    connection.write(post(KEY + JSON_TYPE, '{}'));
    assert.equal((await connection.response()).statusCode, 200);
    assert.equal(intake.taken.length, 1);
    assertNothingHeld();
  });

  test('a chunked body is accepted up to the limit and 413 one byte beyond; the client can finish sending', async () => {
    const connection = await open();
    const exact = [Buffer.alloc(MAX_BODY_BYTES - 10), Buffer.alloc(10)];
    connection.write(chunked(KEY + JSON_TYPE, exact));
    assert.equal((await connection.response()).statusCode, 200);
    connection.write(chunked(KEY + JSON_TYPE, [...exact, 'x', Buffer.alloc(3 * MiB)]));
    assert.equal((await connection.response()).statusCode, 413);
    connection.write(post(KEY + JSON_TYPE, '{}'));
    assert.equal((await connection.response()).statusCode, 200);
    assert.deepEqual(
      intake.taken.map(({ bytes }) => bytes.length),
      [MAX_BODY_BYTES, 2],
    );
    assertNothingHeld();
  });

  test('a chunked body without end is cut after a bounded amount', async () => {
    const connection = await open();
    const piece = Buffer.concat([Buffer.from('100000\r\n'), Buffer.alloc(MiB), Buffer.from('\r\n')]);
    connection.write(`POST /v1/traces HTTP/1.1\r\n${HOST}${KEY}${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\n`);
    let sentCount = 0;
    const flood = (): void => {
      while (!connection.socket.destroyed && sentCount < 200 && connection.socket.write(piece)) sentCount++;
    };
    connection.socket.on('drain', flood);
    flood();
    await connection.closed;
    assert.ok(sentCount < 100, `${sentCount} MiB were read`);
    assertNothingHeld();
  });

  test('unsupported types and codings are 415; codings are told, and never stacked', async () => {
    const noType = await sendRaw(acceptor.port, post(KEY, '{}'));
    assert.equal(noType.statusCode, 415);
    assert.equal(rpcStatus(noType).code, 3);
    for (const coding of ['br', 'snappy', 'gzip, gzip', 'gzip\r\nContent-Encoding: gzip']) {
      const response = await sendRaw(acceptor.port, post(`${KEY}${JSON_TYPE}Content-Encoding: ${coding}\r\n`, '{}'));
      assert.equal(response.statusCode, 415, coding);
      assert.equal(response.headers.get('accept-encoding'), 'gzip, deflate, zstd');
    }
    assert.equal(intake.taken.length, 0);
  });

  test('lengths that two servers could read differently end the connection, and what follows is not read', async () => {
    const smuggled = 'GET /ready HTTP/1.1\r\nHost: x\r\n\r\n';
    for (const [framing, body] of [
      ['Content-Length: 3\r\nContent-Length: 4\r\n', 'abc'],
      ['Content-Length: 3\r\nContent-Length: 3\r\n', 'abc'],
      ['Content-Length: 3\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'],
      ['Transfer-Encoding: gzip, chunked\r\n', '3\r\nabc\r\n0\r\n\r\n'],
      ['Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n', '3\r\nabc\r\n0\r\n\r\n'],
      ['Content-Length: -3\r\n', 'abc'],
      ['Content-Length: +3\r\n', 'abc'],
      ['Content-Length: 0x3\r\n', 'abc'],
      ['Content-Length: 99999999999999999999\r\n', 'abc'],
    ] as const) {
      for (const path of ['/v1/traces', '/live', '/elsewhere']) {
        const connection = await open();
        connection.write(`POST ${path} HTTP/1.1\r\n${HOST}${KEY}${JSON_TYPE}${framing}\r\n${body}${smuggled}`);
        const statusCode = await connection.response().then(
          (response) => response.statusCode,
          () => 'cut',
        );
        assert.ok(statusCode === 400 || statusCode === 'cut', `${framing}: ${statusCode}`);
        await connection.closed;
        await assert.rejects(connection.response(), `${framing}: a second answer`);
      }
    }
    assert.equal(intake.taken.length, 0);
    assertNothingHeld();
  });

  test('a head that is too long is 431, one of 15 KiB is not', async () => {
    const header = (lengthBytes: number): string => `X-Baggage: ${'b'.repeat(lengthBytes)}\r\n`;
    assert.equal((await sendRaw(acceptor.port, post(KEY + PROTOBUF + header(20_000), 'x'))).statusCode, 431);
    assert.equal((await sendRaw(acceptor.port, post(KEY + PROTOBUF + header(15_000), 'x'))).statusCode, 200);
  });

  test('bytes that are no HTTP end the connection and nothing else', async () => {
    for (const bytes of [
      '\x16\x03\x01\x02\x00\x01\x00\r\n\r\n',
      'GET http://proxy/ready HTTP/1.1\r\nHost: x\r\n\r\n',
      'GET / HTTP/1.0\r\n\r\n',
    ]) {
      const connection = await open();
      connection.write(bytes);
      await connection.closed;
    }
    assert.equal((await sendRaw(acceptor.port, `GET /live HTTP/1.1\r\n${HOST}\r\n`)).statusCode, 200);
  });
});

describe('overload', () => {
  test('a full pipeline is 503 with Retry-After and RetryInfo', async () => {
    intake.admission = { kind: 'busy', code: 'rings-full', message: 'the backend is behind', retryAfterMs: 1500 };
    const response = await sendRaw(acceptor.port, post(KEY + JSON_TYPE, '{}'));
    assert.equal(response.statusCode, 503);
    assert.equal(response.headers.get('retry-after'), '2');
    assert.deepEqual(JSON.parse(response.body.toString()), {
      code: 14,
      message: 'the backend is behind',
      details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '2s' }],
    });
    assert.equal(counters.total('requests_busy'), 1);
  });

  test('more bytes in flight than allowed are put off, and taken again when there is room', async () => {
    await restart({ maxInflightBytes: MiB });
    intake.hold = true;
    const first = await open();
    first.write(post(KEY + PROTOBUF, Buffer.alloc(700 * KiB)));
    await intake.handed(1);
    const second = await sendRaw(acceptor.port, post(KEY + JSON_TYPE, Buffer.alloc(600 * KiB)));
    assert.equal(second.statusCode, 503);
    assert.equal(second.headers.get('retry-after'), '1');
    intake.taken[0]?.body.settle(intake.admission);
    assert.equal((await first.response()).statusCode, 200);
    intake.hold = false;
    assert.equal((await sendRaw(acceptor.port, post(KEY + PROTOBUF, Buffer.alloc(600 * KiB)))).statusCode, 200);
    assertNothingHeld();
  });

  test('one body larger than the whole budget passes; a second at the same time is put off when it comes to its end', async () => {
    await restart({ maxInflightBytes: 1.5 * MiB });
    intake.hold = true;
    const first = await open();
    first.write(post(KEY + PROTOBUF, Buffer.alloc(MAX_BODY_BYTES)));
    await intake.handed(1);
    const second = await open();
    second.write(
      chunked(
        KEY + JSON_TYPE,
        Array.from({ length: 8 }, () => Buffer.alloc(256 * KiB - 8)),
      ),
    );
    assert.equal((await second.response()).statusCode, 503);
    intake.taken[0]?.body.settle(intake.admission);
    assert.equal((await first.response()).statusCode, 200);
    assertNothingHeld();
  });

  test('an upload that is broken off gives back what it held, before and after it was handed over', async () => {
    const half = await open();
    half.write(
      `POST /v1/traces HTTP/1.1\r\n${HOST}${KEY}${PROTOBUF}Content-Length: 1000000\r\n\r\n${'x'.repeat(400_000)}`,
    );
    while (acceptor.inflightBytes === 0) await new Promise((resolve) => setImmediate(resolve));
    half.destroy();
    while (acceptor.inflightBytes > 0) await new Promise((resolve) => setImmediate(resolve));
    intake.hold = true;
    const whole = await open();
    whole.write(post(KEY + PROTOBUF, 'x'.repeat(1000)));
    await intake.handed(1);
    whole.destroy();
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.ok(acceptor.inflightBytes > 1000, 'the intake still holds it');
    intake.taken[0]?.body.settle(intake.admission);
    assertNothingHeld();
    assert.equal(counters.total('spans_accepted'), 1, 'accepted, though nobody heard');
  });

  test('a defect while handing a body over is 500 for that request, and the next one is served', async () => {
    intake.fault = new Error('a defect');
    const response = await sendRaw(acceptor.port, post(KEY + JSON_TYPE, '{}'));
    assert.equal(response.statusCode, 500);
    assert.deepEqual(rpcStatus(response), { code: 13, message: 'internal error' });
    const requestId = response.headers.get('x-request-id');
    assert.ok(
      log.lines.some(
        ({ level, fields }) => level === 'error' && 'requestId' in fields && fields.requestId === requestId,
      ),
    );
    intake.fault = null;
    assert.equal((await sendRaw(acceptor.port, post(KEY + JSON_TYPE, '{}'))).statusCode, 200);
    assertNothingHeld();
  });
});

describe('health and request ids', () => {
  const get = (path: string): Promise<RawResponse> => sendRaw(acceptor.port, `GET ${path} HTTP/1.1\r\n${HOST}\r\n`);

  test('live and ready need no key', async () => {
    assert.deepEqual(JSON.parse((await get('/live')).body.toString()), { status: 'alive' });
    const ready = await get('/ready');
    assert.equal(ready.statusCode, 200);
    assert.deepEqual(JSON.parse(ready.body.toString()), { status: 'ready' });
    assert.equal((await sendRaw(acceptor.port, post('', '', '/live'))).statusCode, 405);
  });

  test('ready is 503 with reasons while a stage has one', async () => {
    reasons = ['a shipper thread is being replaced'];
    const response = await get('/ready');
    assert.equal(response.statusCode, 503);
    assert.deepEqual(JSON.parse(response.body.toString()), { status: 'unready', reasons });
    assert.equal((await get('/live')).statusCode, 200);
  });

  test('before everything runs, spans are put off and ready says so', async () => {
    acceptor.close();
    acceptor = createAcceptor(
      {
        host: '127.0.0.1',
        port: 0,
        tlsCertFile: null,
        tlsKeyFile: null,
        maxBodyBytes: MiB,
        maxInflightBytes: MiB,
        apiKey: 'k',
        project: null,
        corsAllowOrigins: [],
      },
      { intake, log, clock, counters: counters.row(0), stageReasons: () => [], apps: [] },
    );
    await acceptor.start();
    assert.deepEqual(JSON.parse((await get('/ready')).body.toString()), { status: 'unready', reasons: ['starting'] });
    assert.equal((await sendRaw(acceptor.port, post(JSON_TYPE, '{}'))).statusCode, 503);
    acceptor.ready();
    assert.equal((await sendRaw(acceptor.port, post(JSON_TYPE, '{}'))).statusCode, 200);
  });

  test('ready turns 503 after more than five seconds of nothing but refusals, and back with the first success', async () => {
    const busy: Admission = { kind: 'busy', code: 'rings-full', message: 'full', retryAfterMs: 1 };
    const fine = intake.admission;
    const send = (): Promise<RawResponse> => sendRaw(acceptor.port, post(KEY + JSON_TYPE, '{}'));
    intake.admission = busy;
    await send();
    clock.now += 4000;
    await send();
    assert.equal((await get('/ready')).statusCode, 200);
    clock.now += 2000;
    await send();
    const response = await get('/ready');
    assert.equal(response.statusCode, 503);
    assert.deepEqual(JSON.parse(response.body.toString()).reasons, ['the pipeline has been full for 6 s']);
    intake.admission = fine;
    await send();
    assert.equal((await get('/ready')).statusCode, 200);
    intake.admission = busy;
    await send();
    clock.now += 6000;
    await send();
    assert.equal((await get('/ready')).statusCode, 503);
    clock.now += 11_000;
    assert.equal((await get('/ready')).statusCode, 200, 'nobody has been refused for a while');
  });

  test('a harmless request id is kept, any other is replaced', async () => {
    const ask = async (id: string): Promise<string | undefined> =>
      (await sendRaw(acceptor.port, post(`${KEY}${PROTOBUF}X-Request-Id: ${id}\r\n`, 'x'))).headers.get('x-request-id');
    assert.equal(await ask('abc-123:/='), 'abc-123:/=');
    for (const odd of ['with space', 'a'.repeat(129), '<script>']) {
      const given = await ask(odd);
      assert.notEqual(given, odd);
      assert.match(given ?? '', /^[\w-]{10,}$/);
    }
  });
});

describe('browsers', () => {
  test('allowed origins may ask first and read the answer; others may not', async () => {
    await restart({ corsAllowOrigins: ['https://app.example'] });
    const connection = await open();
    connection.write(
      `OPTIONS /v1/traces HTTP/1.1\r\n${HOST}Origin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n\r\n`,
    );
    const preflight = await connection.response();
    assert.equal(preflight.statusCode, 204);
    assert.equal(preflight.headers.get('access-control-allow-origin'), 'https://app.example');
    assert.equal(preflight.headers.get('access-control-allow-methods'), 'POST');
    assert.ok(preflight.headers.get('access-control-allow-headers')?.includes('x-api-key'));
    connection.write(post(`${KEY}${JSON_TYPE}Origin: https://app.example\r\n`, '{}'));
    const answer = await connection.response();
    assert.equal(answer.headers.get('access-control-allow-origin'), 'https://app.example');
    assert.equal(answer.headers.get('vary'), 'Origin');
    connection.write(post(`${KEY}${JSON_TYPE}Origin: https://evil.example\r\n`, '{}'));
    assert.equal((await connection.response()).headers.get('access-control-allow-origin'), undefined);
  });
});

describe('stop', () => {
  test('what was taken is answered; new requests on old connections are put off; new connections find nobody', async () => {
    intake.hold = true;
    const [taken, old] = [await open(), await open()];
    taken.write(post(KEY + JSON_TYPE, '{}'));
    await intake.handed(1);
    const { port } = acceptor;
    const stopped = acceptor.stop(60_000);
    old.write(`GET /ready HTTP/1.1\r\n${HOST}\r\n`);
    const ready = await old.response();
    assert.equal(ready.statusCode, 503);
    assert.deepEqual(JSON.parse(ready.body.toString()), { status: 'unready', reasons: ['draining'] });
    old.write(post(KEY + JSON_TYPE, '{}'));
    const refused = await old.response();
    assert.equal(refused.statusCode, 503);
    assert.equal(rpcStatus(refused).message, 'the proxy is draining');
    await old.closed;
    await assert.rejects(openRaw(port));
    let over = false;
    void stopped.then(() => (over = true));
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(over, false, 'one request still waits for its answer');
    intake.taken[0]?.body.settle(intake.admission);
    assert.equal((await taken.response()).statusCode, 200);
    await stopped;
    await acceptor.stop(1000);
  });

  test('a port that is taken is one clear line', async () => {
    const second = createAcceptor(
      {
        host: '127.0.0.1',
        port: acceptor.port,
        tlsCertFile: null,
        tlsKeyFile: null,
        maxBodyBytes: MiB,
        maxInflightBytes: MiB,
        apiKey: null,
        project: null,
        corsAllowOrigins: [],
      },
      { intake, log, counters: counters.row(0), stageReasons: () => [], apps: [] },
    );
    await assert.rejects(
      second.start(),
      /^Error: cannot listen on 127\.0\.0\.1 port \d+: another process listens there \(EADDRINUSE\)/,
    );
    second.close();
  });
});

describe('TLS', () => {
  const file = (name: string): string => fileURLToPath(new URL(`../fixtures/tls/${name}.pem`, import.meta.url));

  test('with a certificate and its key the port speaks HTTPS', async () => {
    await restart({ tlsCertFile: file('certificate'), tlsKeyFile: file('key') });
    const asked = request({
      host: '127.0.0.1',
      port: acceptor.port,
      path: '/v1/traces',
      method: 'POST',
      ca: await readFile(file('certificate')),
      agent: false,
      headers: { 'Content-Type': 'application/json', 'X-API-Key': 'key-one' },
    });
    asked.end(Buffer.alloc(700 * KiB, ' '));
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    assert.equal(answer.statusCode, 200);
    answer.resume();
    assert.equal(intake.taken[0]?.bytes.length, 700 * KiB);
  });

  test('files that are no certificate and key are one clear line', async () => {
    await assert.rejects(
      restart({ tlsCertFile: file('key'), tlsKeyFile: file('key') }),
      /^Error: TLS_CERT_FILE .*key\.pem and TLS_KEY_FILE .*key\.pem are not a PEM certificate and its private key$/,
    );
  });
});

describe('mounted apps', () => {
  /** Claims /app; answers by what `answer` says. */
  function mount(answer: HttpApp['handle'], maxBodyBytes = 1000): HttpApp {
    return { claims: (path) => path.startsWith('/app'), maxBodyBytes, handle: answer };
  }

  test('get owned values and answer with status, headers and body', async () => {
    let seen: HttpRequest | null = null;
    await restart({}, [
      mount((request) => {
        seen = request;
        return { status: 201, headers: { 'Content-Type': 'text/plain', 'X-Own': 'yes' }, body: 'größe' };
      }),
    ]);
    const response = await sendRaw(
      acceptor.port,
      `PUT /app/a%2Fb?x=%zz HTTP/1.1\r\n${HOST}X-Two: 1\r\nX-Two: 2\r\nX-Request-Id: abc\r\nContent-Length: 4\r\n\r\nbody`,
    );
    assert.equal(response.statusCode, 201);
    assert.equal(response.body.toString(), 'größe');
    assert.equal(response.headers.get('x-own'), 'yes');
    assert.equal(response.headers.get('x-request-id'), 'abc');
    const request = seen as HttpRequest | null;
    assert.deepEqual(
      [request?.method, request?.path, request?.query, request?.header('x-two'), request?.header('none')],
      ['PUT', '/app/a%2Fb', 'x=%zz', '1, 2', ''],
    );
    assert.equal(Buffer.from(request?.body ?? []).toString(), 'body');
    assert.equal(request?.remoteAddress, '127.0.0.1');
    assertNothingHeld();
  });

  test('bodies over the app’s limit are 413, declared or chunked; exceptions and unsafe headers are 500', async () => {
    await restart({}, [
      mount(({ query }) => {
        if (query === 'throw') throw new Error('a defect');
        return { status: 200, headers: { 'X-Own': query === 'split' ? 'a\r\nSet-Cookie: b' : 'fine' }, body: 'ok' };
      }),
    ]);
    const send = async (path: string, body: Buffer): Promise<RawResponse> =>
      sendRaw(acceptor.port, post('', body, path));
    assert.equal((await send('/app', Buffer.alloc(1000))).statusCode, 200);
    const large = await send('/app', Buffer.alloc(1001));
    assert.equal(large.statusCode, 413);
    assert.deepEqual(JSON.parse(large.body.toString()), { detail: 'the request body is too large' });
    const connection = await open();
    connection.write(
      chunked('', [Buffer.alloc(600), Buffer.alloc(600)])
        .toString('latin1')
        .replace('/v1/traces', '/app'),
    );
    assert.equal((await connection.response()).statusCode, 413);
    assert.equal((await send('/app?throw', Buffer.alloc(1))).statusCode, 500);
    assert.equal((await send('/app?split', Buffer.alloc(1))).statusCode, 500);
    assert.equal((await send('/app', Buffer.alloc(1))).statusCode, 200);
    assertNothingHeld();
  });

  test('streams arrive in order and whole at a reader that pauses, and the app is told when there is room again', async () => {
    const total = 10 * MiB;
    const counts = { refused: 0, drained: 0, mostBufferedBytes: 0 };
    await restart({}, [
      mount(() => ({
        status: 200,
        headers: { 'Content-Type': 'application/octet-stream' },
        stream: (sink) => {
          let written = 0;
          const fill = (): void => {
            while (written < total) {
              const piece = Buffer.alloc(Math.min(100_000, total - written), written % 251);
              written += piece.length;
              const room = sink.write(piece);
              counts.mostBufferedBytes = Math.max(counts.mostBufferedBytes, sink.bufferedBytes);
              if (!room) {
                counts.refused++;
                return;
              }
            }
            sink.end();
          };
          sink.onDrain(() => {
            counts.drained++;
            fill();
          });
          fill();
        },
      })),
    ]);
    const connection = await open();
    connection.socket.pause();
    connection.write(`GET /app HTTP/1.1\r\n${HOST}\r\n`);
    while (counts.refused === 0) await new Promise((resolve) => setImmediate(resolve));
    connection.socket.resume();
    const response = await connection.response();
    assert.equal(response.body.length, total);
    for (let at = 0; at < total; at += 100_000) assert.equal(response.body[at], at % 251);
    assert.ok(counts.refused > 0 && counts.drained > 0, JSON.stringify(counts));
    assert.ok(counts.mostBufferedBytes < MiB, JSON.stringify(counts));
    connection.write(`GET /live HTTP/1.1\r\n${HOST}\r\n`);
    assert.equal((await connection.response()).statusCode, 200, 'the connection is reusable');
  });

  test('a client that leaves ends the stream and aborts the signal; an aborted stream is cut', async () => {
    const sinks: HttpSink[] = [];
    let signal: AbortSignal | null = null;
    await restart({}, [
      mount((request) => {
        signal = request.signal;
        return { status: 200, stream: (sink) => void (sinks.push(sink), sink.write('event: one\n\n')) };
      }),
    ]);
    const leaving = await open();
    leaving.write(`GET /app HTTP/1.1\r\n${HOST}\r\n`);
    while (sinks.length < 1) await new Promise((resolve) => setImmediate(resolve));
    const aborted = new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve()));
    leaving.destroy();
    await aborted;
    assert.equal(sinks[0]?.closed, true);
    assert.equal(sinks[0]?.write('more'), false);
    const cut = await open();
    cut.write(`GET /app HTTP/1.1\r\n${HOST}\r\n`);
    while (sinks.length < 2) await new Promise((resolve) => setImmediate(resolve));
    sinks[1]?.abort();
    await cut.closed;
    assert.equal(sinks[1]?.closed, true);
  });

  test('HEAD is answered without the body, 204 without a length', async () => {
    await restart({}, [mount(({ method }) => (method === 'HEAD' ? { status: 200, body: 'four' } : { status: 204 }))]);
    const connection = await open();
    connection.write(`HEAD /app HTTP/1.1\r\n${HOST}\r\n`);
    assert.equal((await connection.response({ head: true })).headers.get('content-length'), '4');
    connection.write(`GET /app HTTP/1.1\r\n${HOST}\r\n`);
    assert.equal((await connection.response()).statusCode, 204);
  });
});
