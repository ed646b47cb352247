/**
 * Requests that say one thing to one reader and another to the next, to every part of the program at once: group 7 of the
 * cases (cases.test.ts). The program is `dev`: everything that it can serve is there.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { openRaw, sendRawOrCut } from '../flow/rawhttp.ts';
import { OPERATIONS } from '../../src/deploy/openapi.ts';
import { startProgram, type Program } from './program.ts';

const ID = '00000000-0000-4000-8000-000000000000';
const ENDPOINTS = [
  ...[
    '/v1/traces',
    '/live',
    '/ready',
    '/metrics',
    '/console',
    '/console/assets/x',
    '/',
    '/docs',
    '/openapi.json',
    '/ok',
  ],
  ...['/info', '/api/traces', '/api/runs', '/api/pipeline', '/api/console', '/api/events', '/nothing/here'],
  ...new Set(OPERATIONS.map(({ pattern }) => pattern.replace(/:\w+_id/g, ID).replace(/:\w+\*?/g, 'x'))),
];
/** Behind an endpoint. */
const MALFORMED = [
  '/%',
  '/%zz',
  '/%00',
  '/%c0%af',
  '/..%2f..%2fetc%2fpasswd',
  '/../../etc/passwd',
  '/%2e%2e/',
  '?a=%zz&b=%',
  '?',
  '//',
  '/\\',
  '?__proto__[a]=1&constructor=1',
  '/%ff%fe',
  '?limit=1e309&offset=-1&filter={',
];

let program: Program;

before(async () => {
  program = await startProgram({ SERVICE_ENDPOINT: 'embedded' }, { words: ['dev'] });
});

after(async () => {
  assert.equal(await program.stop(), 0, program.output().slice(-2000));
  assert.ok(!/configured-key|stolen/.test(program.output()), 'no key stands in the log');
});

afterEach(async () => {
  assert.equal(program.exitCode, null);
  assert.equal((await postJson(program.url, jsonRequest(makeTrace(2, 2).spans))).status, 200);
  await program.idle();
});

/** The status of the answer; `cut` when the connection ends without one. */
async function statusOf(bytes: string): Promise<number | 'cut'> {
  return (await sendRawOrCut(program.port, bytes))?.statusCode ?? 'cut';
}

const LANE_COUNT = 16;
/** Where many of the connections are silent until the server closes them, after ten seconds. */
const SILENT_LANE_COUNT = 500;

/** So many at a time. */
async function inLanes<Item>(
  items: readonly Item[],
  work: (item: Item) => Promise<void>,
  laneCount = LANE_COUNT,
): Promise<void> {
  const waiting = [...items];
  const lane = async (): Promise<void> => {
    for (let item = waiting.pop(); item !== undefined; item = waiting.pop()) await work(item);
  };
  await Promise.all(Array.from({ length: laneCount }, lane));
}

describe('7: URIs', () => {
  test('malformed escapes, dots, slashes and queries on every endpoint and method get an answer that is no defect', async () => {
    const asks = ENDPOINTS.flatMap((endpoint) =>
      MALFORMED.flatMap((tail) => ['GET', 'POST', 'DELETE'].map((method) => [method, `${endpoint}${tail}`] as const)),
    );
    assert.ok(asks.length > 2000);
    const defects: string[] = [];
    await inLanes(asks, async ([method, path]) => {
      const status = await statusOf(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}`);
      // What needs a graph says that it has none; nothing else is our fault.
      if (status === 'cut' || (status >= 500 && status !== 503)) defects.push(`${method} ${path}: ${status}`);
    });
    assert.deepEqual(defects, []);
    assert.ok(!/"level":"error"/.test(program.output()), program.output().slice(-2000));
  });

  test('an escaped slash stays inside its parameter, and dots lead nowhere', async () => {
    for (const [path, status] of [
      [`/threads/${ID}%2Fruns`, 422],
      [`/threads%2F${ID}`, 404],
      ['/threads/../threads/search', 404],
      ['/v1/traces/../../metrics', 404],
      ['/v1%2Ftraces', 404],
      ['/%6d%65trics', 404],
      ['/metrics%20', 404],
      ['/api/x/%2e%2e/faults', 404],
      ['/api/x/../faults', 404],
      ['/api/%2e%2e/info', 404],
      ['/api/%66aults', 404],
      ['/api/é', 404],
      ['/api/runs?text=é', 200],
    ] as const) {
      assert.equal(await statusOf(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`), status, path);
    }
  });

  test('targets in absolute form, as authority, or none at all are cut or refused, never forwarded', async () => {
    const lines = [
      'GET http://127.0.0.1:1/metrics HTTP/1.1',
      'GET https://elsewhere/v1/traces HTTP/1.1',
      'CONNECT 127.0.0.1:1 HTTP/1.1',
      'OPTIONS * HTTP/1.1',
      'GET  HTTP/1.1',
      'GET /metrics',
      'GET /metrics HTTP/0.9',
      'GET /metrics HTTP/2.0',
      'PRI * HTTP/2.0',
      `GET /${'a'.repeat(100_000)} HTTP/1.1`,
    ];
    await Promise.all(
      lines.map(async (line) => {
        const status = await statusOf(`${line}\r\nHost: localhost\r\n\r\n`);
        assert.ok(status === 'cut' || (status >= 400 && status < 600), `${line.slice(0, 40)}: ${status}`);
      }),
    );
  });
});

describe('7: framing', () => {
  const smuggled = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n';

  test('a body whose end two readers would see in two places ends the connection, on every endpoint', async () => {
    const framings: [headers: string, body: string][] = [
      ['Content-Length: 4\r\nTransfer-Encoding: chunked\r\n', '0\r\n\r\n'],
      ['Transfer-Encoding: chunked\r\nContent-Length: 4\r\n', '0\r\n\r\n'],
      ['Content-Length: 2\r\nContent-Length: 3\r\n', '{}'],
      ['Content-Length: 2, 2\r\n', '{}'],
      ['Transfer-Encoding: chunked, identity\r\n', '0\r\n\r\n'],
      ['Transfer-Encoding: xchunked\r\n', '0\r\n\r\n'],
      ['Transfer-Encoding:\tchunked\r\nTransfer-Encoding: x\r\n', '0\r\n\r\n'],
      ['Content-Length: +2\r\n', '{}'],
      ['Content-Length: 2 \r\n 2\r\n', '{}'],
    ];
    await inLanes(
      ENDPOINTS.flatMap((path) => framings.map((framing) => [path, ...framing] as const)),
      async ([path, headers, body]) => {
        const connection = await openRaw(program.port);
        connection.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n${body}${smuggled}`);
        const status = await connection.response().then(
          ({ statusCode }) => statusCode,
          () => 'cut' as const,
        );
        assert.ok(status === 'cut' || status === 400, `${path} ${JSON.stringify(headers)}: ${status}`);
        await connection.closed;
        await assert.rejects(
          connection.response(),
          `${path} ${JSON.stringify(headers)}: what was smuggled is answered`,
        );
      },
      SILENT_LANE_COUNT,
    );
  });

  test('requests sent one behind the other without waiting are answered one behind the other', async () => {
    const connection = await openRaw(program.port);
    const paths = ['/live', '/ready', '/nothing', '/metrics', '/ok', '/threads/x', '/live'];
    const expected = [200, 200, 404, 200, 200, 422, 200];
    connection.write(paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`).join(''));
    const seen: number[] = [];
    for (const _path of paths) seen.push((await connection.response()).statusCode);
    assert.deepEqual(seen, expected);
    connection.destroy();
  });
});

describe('7: headers', () => {
  const body = jsonRequest(makeTrace(1, 1).spans);
  const post = (headers: string): string =>
    `POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;

  test('keys and projects that could become further headers upstream are refused', async () => {
    const cases = [
      ['X-API-Key: a\tb\r\n', 400],
      ['X-API-Key: a\x00b\r\n', 400],
      ['X-API-Key: a\nX-Other: stolen\r\n', 400],
      ['X-API-Key: a\rX-Other: stolen\r\n', 400],
      [`X-API-Key: ${'k'.repeat(4000)}\r\n`, 400],
      ['X-API-Key: kéy\r\n', 400],
      ['X-API-Key: one\r\nX-API-Key: two\r\n', 400],
      ['Service-Project: a\x01b\r\n', 400],
      ['Service-Project: a\nX-API-Key: stolen\r\n', 400],
      [`Service-Project: ${'p'.repeat(600)}\r\n`, 400],
      ['X-API-Key: %0d%0aX-Other:%20stolen\r\n', 200],
      ['Service-Project: %0d%0aX-API-Key: stolen\r\n', 200],
    ] as const;
    await Promise.all(
      cases.map(async ([headers, expected]) => {
        const status = await statusOf(post(headers));
        // The server library answers control characters by cutting the connection.
        const isCut = status === 'cut' && /[\x00-\x1f]/.test(headers.replaceAll('\r\n', ''));
        assert.ok(status === expected || isCut, `${JSON.stringify(headers.slice(0, 60))}: ${status}`);
      }),
    );
  });

  test('odd keys, cookies, origins, ids and types on every endpoint are no defect, and split no answer', async () => {
    const odd = [
      'X-API-Key: a\nX-Other: stolen\r\n',
      'X-API-Key: %0d%0aX-Injected:%20stolen\r\n',
      `Authorization: Bearer ${'k'.repeat(5000)}\r\n`,
      'Authorization: Bearer %0d%0aX-Injected: stolen\r\n',
      'Cookie: a=b; __proto__=c; %0d%0aX-Injected: stolen\r\n',
      'Origin: http://x%0d%0aX-Injected: stolen\r\nAccess-Control-Request-Headers: a\t\r\n',
      'X-Request-Id: %0d%0aX-Injected: stolen\r\n',
      'Last-Event-ID: -1\r\nAccept: text/event-stream, */*;q=nonsense\r\n',
      'Content-Type: multipart/form-data; boundary="\\"\r\nContent-Encoding: gzip, br\r\n',
      'X-Forwarded-For: 127.0.0.1, %00, \xff\r\nX-Forwarded-Host: evil\r\nForwarded: for="\r\n',
      'Range: bytes=0-,-1,9999999999999-\r\nIf-None-Match: "\r\nExpect: 200-ok\r\n',
    ];
    const defects: string[] = [];
    await inLanes(
      ENDPOINTS.flatMap((path) => odd.flatMap((headers) => ['GET', 'POST'].map((method) => [method, path, headers]))),
      async ([method, path, headers]) => {
        const answer = await sendRawOrCut(
          program.port,
          Buffer.from(
            `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}Content-Length: 2\r\n\r\n{}`,
            'latin1',
          ),
        );
        // Control characters in a head cut the connection.
        if (answer === null && /[\x00-\x1f]/.test(headers?.replaceAll('\r\n', '') ?? '')) return;
        const isDefect =
          answer === null ||
          (answer.statusCode >= 500 && answer.statusCode !== 503) ||
          answer.headers.has('x-injected');
        if (isDefect) defects.push(`${method} ${path} ${JSON.stringify(headers)}: ${answer?.statusCode ?? 'cut'}`);
      },
      SILENT_LANE_COUNT,
    );
    assert.deepEqual(defects, []);
  });

  test('request ids, origins and hosts come back as they may or not at all', async () => {
    for (const odd of ['<script>', 'a"b', 'x'.repeat(3000), '%0d%0aSet-Cookie:a=b', '\u0001']) {
      const answer = await sendRawOrCut(
        program.port,
        `GET /live HTTP/1.1\r\nHost: ${odd}\r\nX-Request-Id: ${odd}\r\nOrigin: ${odd}\r\n\r\n`,
      );
      // A control character in the head ends the connection; all else is answered.
      assert.equal(answer === null, odd === '\u0001', odd.slice(0, 60));
      if (answer === null) continue;
      const head = JSON.stringify([...answer.headers]);
      assert.ok(!head.includes('<script>') && !/set-cookie/.test(head), head);
    }
  });

  test('heads beyond their size are 431 on every endpoint, and thousands of headers are no trouble', async () => {
    const heads = [`X-Long: ${'x'.repeat(60_000)}\r\n`, 'X-A: b\r\n'.repeat(5000)];
    await inLanes(
      ENDPOINTS.flatMap((path) => heads.map((more) => [path, more] as const)),
      async ([path, more]) => {
        const status = await statusOf(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n${more}\r\n`);
        assert.ok(status === 431 || status === 'cut', `${path}: ${status}`);
      },
    );
  });
});
