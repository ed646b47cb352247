/** Damaged and hostile requests on real sockets: whatever comes, the server goes on and holds nothing back. */
import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { test } from 'node:test';
import fc from 'fast-check';
import { createAcceptor } from '../../src/accept/acceptor.ts';
import { createCounterTable } from '../../src/core/counters.ts';
import type { HttpApp } from '../../src/core/http.ts';
import type { Intake, IntakeBody } from '../../src/core/intake.ts';
import { silentLog } from '../../src/core/log.ts';
import type { Admission } from '../../src/core/outcome.ts';
import { KiB, MiB } from '../../src/core/units.ts';
import { sendRaw } from '../flow/rawhttp.ts';

const admissions: Admission[] = [
  { kind: 'accepted', acceptedCount: 1, rejectedCount: 0, message: '' },
  { kind: 'accepted', acceptedCount: 1, rejectedCount: 2, message: 'two were bad' },
  { kind: 'refused', code: 'malformed', message: 'bad' },
  { kind: 'busy', code: 'rings-full', message: 'full', retryAfterMs: 1 },
];

/** Settles in a later turn, each time differently. */
function fickleIntake(): Intake {
  let number = 0;
  const take = (body: IntakeBody): void => {
    const admission = admissions[number++ % admissions.length] as Admission;
    if (number % 3 === 0) setTimeout(() => body.settle(admission), 2);
    else setImmediate(() => body.settle(admission));
  };
  return { submit: take, submitOwned: take };
}

const app: HttpApp = {
  claims: (path) => path.startsWith('/app'),
  maxBodyBytes: 100,
  handle: ({ body, query }) =>
    query.includes('stream')
      ? {
          status: 200,
          stream: (sink) => {
            sink.write('one');
            setImmediate(() => {
              sink.write(body);
              sink.end();
            });
          },
        }
      : { status: 200, body },
};

const method = fc.constantFrom('POST', 'GET', 'HEAD', 'OPTIONS', 'PUT', 'post', 'CONNECT', 'TRACE', '\u0000');
const path = fc.constantFrom(
  '/v1/traces',
  '/v1/traces/v1/traces',
  '/live',
  '/ready',
  '/app',
  '/app?stream',
  '/%zz',
  '*',
  '//',
  '/..',
);
const header = fc.constantFrom(
  'X-API-Key: key',
  'X-API-Key: ',
  'Content-Type: application/json',
  'Content-Type: application/x-protobuf; a=b',
  'Content-Type: ;;',
  'Content-Encoding: gzip',
  'Content-Encoding: gzip, gzip',
  'Content-Length: 5',
  'Content-Length: 5',
  'Content-Length: 100000',
  'Content-Length: 99999999999',
  'Transfer-Encoding: chunked',
  'Transfer-Encoding: identity',
  'Connection: close',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Expect: 100-continue',
  'Service-Project: p\u0001',
  'X-Request-Id: <>',
  'no colon',
  ': no name',
);
const body = fc.oneof(
  fc.constantFrom(
    'hello',
    '',
    '5\r\nhello\r\n0\r\n\r\n',
    'ffffffffffffffff\r\n',
    '5;x=y\r\nhello\r\n0\r\n\r\n',
    '0\r\nT: x\r\n\r\n',
  ),
  fc.string({ unit: 'binary', maxLength: 50 }),
  fc.nat({ max: 400 }).map((kib) => 'x'.repeat(kib * KiB)),
);
const request = fc
  .record({ method, path, headers: fc.array(header, { maxLength: 6 }), body })
  .map(
    (r) =>
      `${r.method} ${r.path} HTTP/1.1\r\nHost: x\r\n${r.headers.map((line) => `${line}\r\n`).join('')}\r\n${r.body}`,
  );
const damage = fc.record({
  at: fc.nat({ max: 300 }),
  what: fc.constantFrom('cut', 'insert', 'drop'),
  byte: fc.nat({ max: 255 }),
});

function damaged(text: string, { at, what, byte }: { at: number; what: string; byte: number }): string {
  if (what === 'cut') return text.slice(0, at);
  return (
    text.slice(0, at) + (what === 'insert' ? String.fromCharCode(byte) : '') + text.slice(what === 'drop' ? at + 1 : at)
  );
}

test('arbitrary requests, whole, damaged, split, pipelined or broken off: the server lives and holds nothing', async () => {
  const acceptor = createAcceptor(
    {
      host: '127.0.0.1',
      port: 0,
      tlsCertFile: null,
      tlsKeyFile: null,
      maxBodyBytes: 300 * KiB,
      maxInflightBytes: MiB,
      apiKey: null,
      project: null,
      corsAllowOrigins: ['*'],
    },
    {
      intake: fickleIntake(),
      counters: createCounterTable(1).row(0),
      log: silentLog,
      stageReasons: () => [],
      apps: [app],
    },
  );
  await acceptor.start();
  acceptor.ready();
  const script = fc.record({
    requests: fc.array(fc.tuple(request, fc.option(damage, { freq: 2 })), { minLength: 1, maxLength: 3 }),
    splitAt: fc.nat({ max: 500 }),
    lingerMs: fc.constantFrom(0, 0, 1, 5),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(script, { minLength: 8, maxLength: 8 }), async (scripts) => {
      await Promise.all(
        scripts.map(async ({ requests, splitAt, lingerMs }) => {
          const bytes = Buffer.from(
            requests.map(([text, harm]) => (harm === null ? text : damaged(text, harm))).join(''),
            'latin1',
          );
          const socket = connect(acceptor.port, '127.0.0.1');
          socket.on('error', () => undefined);
          socket.resume();
          socket.write(bytes.subarray(0, splitAt));
          await new Promise((resolve) => setImmediate(resolve));
          socket.write(bytes.subarray(splitAt));
          await new Promise((resolve) => setTimeout(resolve, lingerMs));
          socket.destroy();
        }),
      );
    }),
    { numRuns: 150, interruptAfterTimeLimit: 15_000 },
  );
  const live = await sendRaw(acceptor.port, 'GET /live HTTP/1.1\r\nHost: x\r\n\r\n');
  assert.equal(live.statusCode, 200);
  while (acceptor.inflightBytes > 0) await new Promise((resolve) => setTimeout(resolve, 5));
  // Would wait for any request that was forgotten.
  await acceptor.stop(60_000);
  acceptor.close();
});
