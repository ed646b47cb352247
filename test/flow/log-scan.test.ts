/**
 * No secret leaves the process: the program with recognisable keys everywhere goes through refusals, a backend that errs and
 * repeats the key it was sent, an outage, a database that is not there, and its end; then all that it said is searched.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { jsonRequest, makeTrace, postJson } from './otlp.ts';
import { fixedPort } from './program.ts';

const program = fileURLToPath(new URL('../../src/start.js', import.meta.url));

const OPERATORS = {
  SERVICE_API_KEY: 'lsv2-operators-service-key',
  DEPLOYMENT_API_KEYS: 'first-operators-deployment-key,second-operators-deployment-key',
  WEBHOOK_SECRETS: `whsec_${Buffer.from('operators-webhook-secret-0123456').toString('base64')}`,
};
const DATABASE_PASSWORD = 'operators%2Fdatabase-password';
const SENDERS_KEY = 'lsv2-senders-very-own-key';
const WRONG_KEY = 'wrong-key-\u00e4-with-more';
const SPAN_TEXT = 'words-of-a-user-in-a-span';
const SECRETS = [
  ...Object.values(OPERATORS).flatMap((value) => value.split(',')),
  DATABASE_PASSWORD,
  decodeURIComponent(DATABASE_PASSWORD),
  SENDERS_KEY,
  'wrong-key-',
  SPAN_TEXT,
];

test('no key, password or span content in any log line, answer, metric or check', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'log-scan-'));
  const heard: [source: string, text: string][] = [];
  let status = 500;
  /** Answers with the key that it was sent, in every part of the answer. */
  const backend = createServer((request, response) => {
    const key = String(request.headers['x-api-key'] ?? '');
    request.resume();
    request.on('end', () => {
      response.writeHead(status, { 'x-api-key': key, 'retry-after': '0' });
      response.end(JSON.stringify({ error: `the key ${key} is wrong` }));
    });
  }).listen(0, '127.0.0.1');
  await once(backend, 'listening');
  const deadPort = await fixedPort();

  const environment = {
    PATH: process.env['PATH'],
    HOST: '127.0.0.1',
    HTTP_PORT: '0',
    METRICS_PORT: '0',
    DATA_DIR: folder,
    SERVICE_ENDPOINT: `http://127.0.0.1:${(backend.address() as AddressInfo).port}`,
    DATABASE_URL: `postgres://operator:${DATABASE_PASSWORD}@127.0.0.1:${deadPort}/none`,
    FLUSH_INTERVAL_MS: '10',
    RETRY_BACKOFF_MS: '1',
    MAX_RETRIES: '1',
    MAX_BODY_BYTES: '64KiB',
    SHUTDOWN_DEADLINE_MS: '1000',
    LOG_LEVEL: 'debug',
    ...OPERATORS,
  };
  const run = (words: string[], more: Record<string, string> = {}): ReturnType<typeof spawn> => {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, ...words], {
      env: { ...environment, ...more },
    });
    for (const stream of [child.stdout, child.stderr]) {
      stream
        .setEncoding('utf8')
        .on('data', (text: string) => heard.push([`output of ${words.join(' ') || 'start'}`, text]));
    }
    return child;
  };
  for (const words of [['--check'], ['--help']]) await once(run(words), 'close');
  // All problems are told, and what was written wrongly may be half of a key.
  await once(
    run(['--check'], { SERVICE_API_KEY: `${OPERATORS.SERVICE_API_KEY} \u00e4`, WEBHOOK_SECRETS: 'whsec_wrong-key-' }),
    'close',
  );

  const child = run([]);
  const ended = once(child, 'close');
  let ready: RegExpExecArray | null = null;
  while (ready === null) {
    const output = heard.map(([, text]) => text).join('');
    ready = /"port":(\d+).*"metricsPort":(\d+).*"msg":"ready"/.exec(output);
    assert.equal(child.exitCode, null, output);
    await sleep(20);
  }
  const url = `http://127.0.0.1:${ready[1]}`;
  const metricsUrl = `http://127.0.0.1:${ready[2]}/metrics`;
  const note = async (source: string, response: Response): Promise<Response> => {
    heard.push([source, `${JSON.stringify([...response.headers])} ${await response.clone().text()}`]);
    return response;
  };
  const metric = async (name: RegExp): Promise<number> => {
    const text = await (await note('metrics', await fetch(metricsUrl))).text();
    return [...text.matchAll(name)].reduce((sum, [, value]) => sum + Number(value), 0);
  };
  const spans = (): string =>
    jsonRequest(
      makeTrace(2, 2).spans.map((span) => ({ ...span, name: SPAN_TEXT, attributes: { 'gen_ai.prompt': SPAN_TEXT } })),
    );
  const send = async (headers: Record<string, string>, body = spans()): Promise<number> =>
    (await note('export', await postJson(`${url}/v1/traces`, body, headers))).status;

  // Refusals.
  assert.equal(await send({ 'X-API-Key': `${SENDERS_KEY} ${'x'.repeat(600)}` }), 400);
  assert.equal(await send({ 'X-API-Key': Buffer.from(WRONG_KEY, 'utf8').toString('latin1') }), 400);
  assert.equal(await send({ 'X-API-Key': SENDERS_KEY }, `{"resourceSpans": "${SPAN_TEXT}"`), 400);
  assert.equal(await send({ 'X-API-Key': SENDERS_KEY, 'Content-Type': 'text/plain' }), 415);
  assert.equal(await send({ 'X-API-Key': SENDERS_KEY, 'Content-Encoding': 'br' }), 415);
  assert.equal(await send({ 'X-API-Key': SENDERS_KEY }, SPAN_TEXT.repeat(10_000)), 413);
  const invalid = spans().replace(/"spanId":"[0-9a-f]+"/, '"spanId":"0000000000000000"');
  assert.equal(await send({ 'X-API-Key': SENDERS_KEY }, invalid), 200);

  // Retries, permanent refusals, a refused key, an outage: each with both keys.
  const attempts = /^collector_proxy_upload_attempts_total (\d+)$/gm;
  for (const next of [500, 429, 422, 401, 403, 302, 200, 503]) {
    status = next;
    const before = await metric(attempts);
    assert.equal(await send({}), 200);
    assert.equal(await send({ 'X-API-Key': SENDERS_KEY }), 200);
    while ((await metric(attempts)) < before + 1) await sleep(20);
  }
  backend.closeAllConnections();
  backend.close();
  const unanswered = /^collector_proxy_upload_answers_total\{class="none"\} (\d+)$/gm;
  assert.equal(await send({ 'X-API-Key': `${SENDERS_KEY}-2` }), 200);
  while ((await metric(unanswered)) === 0) await sleep(20);

  // The deployment API: without a key, with a wrong one, and with its database away; figures and configuration.
  for (const path of ['/threads', '/api/pipeline', '/metrics', '/ready', '/openapi.json', '/nowhere']) {
    for (const headers of [{}, { 'x-api-key': SENDERS_KEY }, { 'x-api-key': 'first-operators-deployment-key' }]) {
      await note(path, await fetch(`${url}${path}`, { headers: { ...headers } }));
      const body = { method: 'POST', body: '{}', headers: { ...headers, 'Content-Type': 'application/json' } };
      await note(path, await fetch(`${url}${path}`, body));
    }
  }

  child.kill('SIGTERM');
  await ended;
  const lines = heard.flatMap(([source, text]) => text.split('\n').map((line) => [source, line] as const));
  for (const secret of SECRETS) {
    const found = lines.find(([, line]) => line.includes(secret) || line.includes(encodeURIComponent(secret)));
    assert.equal(found, undefined, `${secret} is in ${found?.join(': ')}`);
  }
  // The search is worth something only if there was something to search.
  const output = heard.map(([, text]) => text).join('\n');
  for (const said of [
    'request refused',
    'request turned away',
    'spans rejected',
    'uploads fail',
    'stopping',
    'requestId',
    '"batch":',
  ]) {
    assert.ok(output.includes(said), `nothing was said of: ${said}\n${output.slice(-3000)}`);
  }
  await rm(folder, { recursive: true });
});
