/** DURABLE_ACK over restarts of the whole program: other numbers of threads, and a disk that is full. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { startCountingBackend, type CountingBackend } from '../flow/countingbackend.ts';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { startProgram, type Program } from '../flow/program.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

async function setUp(): Promise<{ folder: string; backend: CountingBackend; start: typeof startProgram }> {
  const folder = mkdtempSync(join(tmpdir(), 'journal-restart-'));
  cleanUps.push(() => rmSync(folder, { recursive: true }));
  const backend = await startCountingBackend();
  cleanUps.push(() => backend.close());
  const start = async (environment: Record<string, string>): Promise<Program> => {
    const program = await startProgram({
      SERVICE_ENDPOINT: backend.url,
      DURABLE_ACK: 'true',
      DATA_DIR: folder,
      ...environment,
    });
    cleanUps.push(() => program.kill('SIGKILL'));
    return program;
  };
  return { folder, backend, start };
}

function urlOf(program: Program): string {
  return `http://127.0.0.1:${program.port}/v1/traces`;
}

async function reasonsOf(program: Program): Promise<string> {
  const answer = await fetch(`http://127.0.0.1:${program.port}/ready`);
  return answer.text();
}

async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 20));
}

function segmentsIn(folder: string): string[] {
  return readdirSync(folder).filter((name) => name.endsWith('.journal'));
}

test('what a killed process acknowledged is delivered by one with other numbers of threads, once its parent comes too', async () => {
  const { folder, backend, start } = await setUp();
  backend.reply = () => null;
  const first = await start({ DECODE_THREADS: '1', SHIP_SHARDS: '1' });
  const traces = Array.from({ length: 30 }, () => makeTrace(3, 2));
  for (const { spans } of traces) assert.equal((await postJson(urlOf(first), jsonRequest(spans))).status, 200);
  const late = makeTrace(2, 1);
  const [root, child] = late.spans;
  assert.ok(root !== undefined && child !== undefined);
  assert.equal((await postJson(urlOf(first), jsonRequest([child]))).status, 200);
  await first.kill('SIGKILL');
  assert.equal(segmentsIn(join(folder, 'journal')).length, 1);

  backend.reply = () => ({ status: 202 });
  const second = await start({ DECODE_THREADS: '3', SHIP_SHARDS: '2' });
  await backend.until(() => backend.runs.length === 30 * 5);
  assert.equal((await postJson(urlOf(second), jsonRequest([root]))).status, 200);
  await backend.until(() => backend.runs.length === 30 * 5 + 2);
  assert.equal(new Set(backend.runs.map(({ id }) => id)).size, backend.runs.length, 'each once');
  const arrived = backend.runs.find(
    ({ run }) => run['name'] === child.name && run['trace_id'] === traceOf(late.traceId),
  );
  assert.notEqual(arrived?.run['parent_run_id'], undefined, 'a child of its parent, as if nothing had happened');
  assert.equal(await second.kill('SIGTERM'), 0);
  assert.deepEqual(segmentsIn(join(folder, 'journal')), []);
});

function traceOf(traceId: Buffer): string {
  return traceId.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

test('a full disk: 503 and a readiness reason, no silent 200; with room again all goes on', async (context) => {
  const { folder, backend, start } = await setUp();
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=2m', 'tmpfs', disk]);
  if (mounted.status !== 0) {
    context.skip(`NOT RUN: a small disk cannot be mounted here: ${String(mounted.stderr)}`);
    return;
  }
  cleanUps.push(() => spawnSync('umount', ['-l', disk]));
  const journal = join(disk, 'journal');
  const program = await start({ JOURNAL_DIR: journal });
  const text = 'x'.repeat(50_000);
  const send = async (): Promise<number> => {
    const spans = makeTrace(1, 1).spans.map((span) => ({ ...span, attributes: { text } }));
    const answer = await postJson(urlOf(program), jsonRequest(spans));
    if (answer.status === 503) assert.ok(Number(answer.headers.get('retry-after')) >= 1);
    return answer.status;
  };
  assert.equal(await send(), 200);
  writeFileSync(join(disk, 'hog'), Buffer.alloc(1024 * 1024));
  let acceptedCount = 1;
  let isRefused = false;
  // Delivered all the time, so that there is room again once its segment has gone: then it is filled up once more.
  await until(async () => {
    const status = await send();
    assert.ok(status === 200 || status === 503, String(status));
    if (status === 200) acceptedCount++;
    isRefused ||= status === 503;
    return isRefused && (await reasonsOf(program)).includes('journal_unwritable: ENOSPC');
  });
  rmSync(join(disk, 'hog'));
  await until(async () => !(await reasonsOf(program)).includes('journal_unwritable'));
  await until(async () => (await send()) === 200);
  await backend.until(() => backend.runs.length >= acceptedCount + 1);
  await until(() => segmentsIn(journal).length === 0);
  assert.equal(await program.kill('SIGTERM'), 0);
});
