/**
 * Metrics and deployment API on ports of their own take the attacks on requests no worse than the main port does: group 7 of
 * the cases (cases.test.ts).
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openRaw, sendRaw } from '../flow/rawhttp.ts';
import { startProgram, type Program } from './program.ts';

const PATHS: Readonly<Record<string, readonly string[]>> = {
  metricsPort: ['/metrics', '/', '/v1/traces', '/metrics/x'],
  deployment: [
    '/threads',
    '/assistants/search',
    '/runs',
    '/ok',
    '/info',
    '/docs',
    '/openapi.json',
    '/',
    '/store/items',
  ],
};
const TAILS = [
  '/%',
  '/%zz',
  '/%00',
  '/..%2f..%2fetc%2fpasswd',
  '/../../etc/passwd',
  '?a=%zz&b=%',
  '//',
  '/\\',
  '?',
  '/%ff',
];
const SMUGGLED = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n';

let program: Program;
const ports = new Map<string, number>();

before(async () => {
  program = await startProgram({ SERVICE_ENDPOINT: 'http://127.0.0.1:9', METRICS_PORT: '0', DEPLOYMENT_PORT: '0' });
  const [, metricsPort] = /"metricsPort":(\d+)/.exec(program.output()) ?? [];
  const [, deployment] = /"deployment":\{"port":(\d+)/.exec(program.output()) ?? [];
  ports.set('metricsPort', Number(metricsPort)).set('deployment', Number(deployment));
});

after(async () => {
  assert.equal(await program.stop(), 0, program.output().slice(-2000));
  assert.ok(!/"level":"error"/.test(program.output()), program.output().slice(-2000));
});

async function statusOf(port: number, bytes: string): Promise<number | 'cut'> {
  return sendRaw(port, Buffer.from(bytes, 'latin1')).then(
    ({ statusCode }) => statusCode,
    () => 'cut' as const,
  );
}

for (const [name, paths] of Object.entries(PATHS)) {
  test(`${name}: malformed targets and methods get an answer that is no defect`, async () => {
    const port = ports.get(name) ?? assert.fail();
    assert.notEqual(port, program.port);
    for (const path of paths.flatMap((start) => [start, ...TAILS.map((tail) => start + tail)])) {
      for (const method of ['GET', 'POST', 'DELETE', 'BREW']) {
        const head = `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}`;
        const status = await statusOf(port, head);
        assert.ok(status !== 'cut' && (status < 500 || status === 503), `${method} ${path}: ${status}`);
      }
    }
  });

  test(`${name}: ends that two readers would see in two places end the connection; heads too large are 431`, async () => {
    const port = ports.get(name) ?? assert.fail();
    for (const path of paths) {
      for (const headers of [
        'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n',
        'Content-Length: 2\r\nContent-Length: 3\r\n',
        'Transfer-Encoding: xchunked\r\n',
        'Content-Length: +2\r\n',
      ]) {
        const connection = await openRaw(port);
        connection.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n0\r\n\r\n${SMUGGLED}`);
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
      }
      const long = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nX-Long: ${'x'.repeat(60_000)}\r\n\r\n`;
      const status = await statusOf(port, long);
      assert.ok(status === 431 || status === 'cut', `${path}: ${status}`);
    }
  });

  test(`${name}: odd headers are no defect, and split no answer`, async () => {
    const port = ports.get(name) ?? assert.fail();
    for (const path of paths) {
      for (const headers of [
        'X-API-Key: %0d%0aX-Injected: stolen',
        'Origin: http://x%0d%0aX-Injected: stolen',
        'X-Request-Id: %0d%0aX-Injected: stolen',
        'Accept: application/openmetrics-text;q=nonsense;;,,',
        'X-Forwarded-For: \xff, %00',
        `Cookie: ${'a=b;'.repeat(1000)}`,
      ]) {
        const head = `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}\r\n\r\n`;
        const { statusCode, headers: answered } = await sendRaw(port, Buffer.from(head, 'latin1'));
        assert.ok(statusCode < 500 || statusCode === 503, `${path} ${headers.slice(0, 60)}: ${statusCode}`);
        assert.ok(!answered.has('x-injected'));
      }
    }
  });
}
