/** `/ready` says the truth, with a reason, and takes it back by itself: the disk, the spool and the journal in trouble. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Service } from '../../src/service.ts';
import { mountSmallDisk } from '../chaos/disk.ts';
import { startCountingBackend, type CountingBackend } from '../flow/countingbackend.ts';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { startService, tracesUrl } from '../flow/pipelinehost.ts';

const cleanups: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function ownFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'ready-'));
  cleanups.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function start(environment: Record<string, string>): Promise<{ backend: CountingBackend; service: Service }> {
  const backend = await startCountingBackend();
  cleanups.push(() => backend.close());
  const service = await startService({
    SERVICE_ENDPOINT: backend.url,
    DEPLOYMENT_API: 'off',
    MAX_RETRIES: '0',
    MAX_BODY_BYTES: '1MiB',
    MAX_BUFFER_BYTES: '256KiB',
    ...environment,
  });
  cleanups.push(async () => {
    backend.reply = () => ({ status: 202 });
    await service.stop(5000);
  });
  return { backend, service };
}

async function reasons({ port }: Service): Promise<string[]> {
  const response = await fetch(`http://127.0.0.1:${port}/ready`);
  const body = (await response.json()) as { status: string; reasons?: string[] };
  assert.equal(response.status, body.status === 'ready' ? 200 : 503);
  return body.reasons ?? [];
}

/** Ends by the test's own deadline. */
async function untilReady(service: Service): Promise<void> {
  while ((await reasons(service)).length > 0) await sleep(50);
}

/** Four large spans that do not compress; returns the status. */
async function sendLarge(service: Service): Promise<number> {
  const spans = Array.from({ length: 4 }, () => ({
    ...(makeTrace(1, 1).spans[0] ?? assert.fail()),
    attributes: { 'gen_ai.prompt': randomBytes(30_000).toString('base64') },
  }));
  return (await postJson(tracesUrl(service), jsonRequest(spans))).status;
}

/** Sends until a reason is given that matches. Every answer is 200 or 503. */
async function loadUntil(service: Service, pattern: RegExp): Promise<string> {
  for (;;) {
    const status = await sendLarge(service);
    assert.ok(status === 200 || status === 503, String(status));
    const found = (await reasons(service)).find((reason) => pattern.test(reason));
    if (found !== undefined) return found;
  }
}

test('a spool folder that cannot be used is a reason until it can', async () => {
  const folder = await ownFolder();
  const inTheWay = join(folder, 'file');
  await writeFile(inTheWay, '');
  const { service } = await start({ SPOOL_DIR: join(inTheWay, 'spool') });
  assert.deepEqual(await reasons(service), [`spool_unwritable: ENOTDIR for ${join(inTheWay, 'spool')}`]);
  // Spans are taken all the same: they wait in memory.
  assert.equal((await postJson(tracesUrl(service), jsonRequest(makeTrace(1, 1).spans))).status, 200);
  await unlink(inTheWay);
  await untilReady(service);
});

test('a full spool is a reason until there is room again', async () => {
  const { backend, service } = await start({ SPOOL_MAX_BYTES: '2MiB', HELD_MAX_BYTES: '1MiB' });
  backend.reply = () => ({ status: 503 });
  assert.match(await loadUntil(service, /spool/), /^spool_full: at SPOOL_MAX_BYTES/);
  backend.reply = () => ({ status: 202 });
  await untilReady(service);
});

test('a full journal is a reason, and no request is acknowledged, until there is room again', async () => {
  const { backend, service } = await start({
    DURABLE_ACK: 'true',
    JOURNAL_MAX_BYTES: '16MiB',
    SPOOL_MAX_BYTES: '0',
    HELD_MAX_BYTES: '64MiB',
  });
  backend.reply = () => ({ status: 503 });
  assert.match(await loadUntil(service, /journal/), /^journal_full: \d+ of 16777216 bytes are in use$/);
  assert.equal(await sendLarge(service), 503);
  backend.reply = () => ({ status: 202 });
  await untilReady(service);
  assert.equal((await postJson(tracesUrl(service), jsonRequest(makeTrace(1, 1).spans))).status, 200);
});

test('a full disk is a reason, and no request is acknowledged, until there is room again', async (context) => {
  const folder = await ownFolder();
  const disk = mountSmallDisk(folder, 64);
  if (typeof disk === 'string') return context.skip(`no small disk can be mounted here: ${disk}`);
  cleanups.push(() => disk.unmount());
  const { service } = await start({ DURABLE_ACK: 'true', DATA_DIR: folder });
  assert.equal((await postJson(tracesUrl(service), jsonRequest(makeTrace(1, 1).spans))).status, 200);
  disk.fill();
  assert.match(await loadUntil(service, /journal/), /^journal_unwritable: ENOSPC/);
  assert.equal((await postJson(tracesUrl(service), jsonRequest(makeTrace(1, 1).spans))).status, 503);
  disk.free();
  await untilReady(service);
  assert.equal((await postJson(tracesUrl(service), jsonRequest(makeTrace(1, 1).spans))).status, 200);
});

test('where no decode thread lives long enough there is a reason, and 503, until one can start again', async () => {
  const folder = await ownFolder();
  const broken = join(folder, 'broken');
  const converter = join(folder, 'converter.ts');
  await writeFile(
    converter,
    `import { existsSync } from 'node:fs';
    if (existsSync(${JSON.stringify(broken)})) process.exit(4);
    export default (span: { name: string }, run: object): object => {
      if (span.name === 'exit') process.exit(3);
      return run;
    };`,
  );
  const { backend, service } = await start({ CONVERTER_MODULE: converter, DECODE_THREADS: '1' });
  const sendSpan = async (name: string): Promise<number> => {
    const spans = makeTrace(1, 1).spans.map((span) => ({ ...span, name }));
    return (await postJson(tracesUrl(service), jsonRequest(spans))).status;
  };
  assert.equal(await sendSpan('harmless'), 200);
  await writeFile(broken, '');
  assert.equal(await sendSpan('exit'), 503);
  for (let n = 0; n < 3; n++) assert.equal(await sendSpan('harmless'), 503);
  assert.match(
    (await reasons(service)).join(),
    /^no decode thread is alive$|^decode threads die: the last \d tasks were lost$/,
  );
  await unlink(broken);
  while ((await sendSpan('harmless')) !== 200) await sleep(20);
  await untilReady(service);
  await backend.until(() => backend.runs.length === 2);
});
