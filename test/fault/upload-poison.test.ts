/**
 * The whole program, and a span that uploading threads die of whenever its batch is taken apart: it is set aside, the
 * threads are replaced, and all others arrive. `/ready` tells of it meanwhile.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DeadBodyFacts } from '../../src/journal/deadbody.ts';
import { startCountingBackend, type CountingBackend } from '../flow/countingbackend.ts';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { startProgram, type Program } from '../flow/program.ts';
import { scrape } from '../metrics.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** Uploading threads die of what holds the word; the backend refuses it, so that they have to look. */
const WORD = 'deadly-to-look-at';

async function start(environment: Record<string, string>): Promise<{
  folder: string;
  backend: CountingBackend;
  program: Program;
}> {
  const folder = mkdtempSync(join(tmpdir(), 'upload-poison-'));
  cleanUps.push(() => rmSync(folder, { recursive: true }));
  const saboteur = join(folder, 'saboteur.mjs');
  writeFileSync(
    saboteur,
    `import { syncBuiltinESMExports } from 'node:module';
    import { isMainThread, workerData } from 'node:worker_threads';
    import zlib from 'node:zlib';
    if (!isMainThread && workerData?.shard !== undefined) {
      const real = zlib.zstdDecompressSync;
      zlib.zstdDecompressSync = (...given) => {
        const plain = real(...given);
        if (plain.includes('${WORD}')) throw new Error('as the test says');
        return plain;
      };
      syncBuiltinESMExports();
    }`,
  );
  const backend = await startCountingBackend();
  cleanUps.push(() => backend.close());
  const program = await startProgram({
    SERVICE_ENDPOINT: backend.url,
    DATA_DIR: folder,
    DECODE_THREADS: '1',
    SHIP_SHARDS: '1',
    NODE_OPTIONS: `--import ${saboteur}`,
    ...environment,
  });
  cleanUps.push(() => program.kill('SIGKILL'));
  return { folder, backend, program };
}

const isDeadly = (runs: readonly { run: Record<string, unknown> }[]): boolean =>
  runs.some(({ run }) => run['name'] === WORD);

async function send({ port }: Program, name: string): Promise<number> {
  const spans = makeTrace(1, 1).spans.map((span) => ({ ...span, name }));
  return (await postJson(`http://127.0.0.1:${port}/v1/traces`, jsonRequest(spans))).status;
}

async function figure({ port }: Program, name: string, labels: Record<string, string> = {}): Promise<number> {
  return (await scrape(`http://127.0.0.1:${port}/metrics`)).sum(`collector_proxy_${name}`, labels);
}

/** What `/ready` says from now on, until it says again, once something was said, that all is well. */
async function reasonsUntilReady({ port }: Program): Promise<Set<string>> {
  const seen = new Set<string>();
  for (;;) {
    const response = await fetch(`http://127.0.0.1:${port}/ready`);
    const { reasons = [] } = (await response.json()) as { reasons?: string[] };
    for (const reason of reasons) seen.add(reason);
    if (seen.size > 0 && reasons.length === 0) return seen;
    await sleep(5);
  }
}

test('with DURABLE_ACK: its body is a dead letter, and everything else that was acknowledged arrives', async () => {
  const { folder, backend, program } = await start({ DURABLE_ACK: 'true', FLUSH_INTERVAL_MS: '500' });
  backend.reply = (runs) => ({ status: isDeadly(runs) ? 413 : 202 });
  const watched = reasonsUntilReady(program);
  const names = ['a', 'b', WORD, 'c', 'd'];
  assert.deepEqual(await Promise.all(names.map((name) => send(program, name))), [200, 200, 200, 200, 200]);

  const arrived = (): string[] => [...new Set(backend.runs.map(({ run }) => String(run['name'])))].sort();
  await backend.until(() => arrived().length === 4);
  assert.deepEqual(arrived(), ['a', 'b', 'c', 'd']);
  while ((await figure(program, 'bodies_set_aside_total')) === 0) await sleep(20);
  assert.deepEqual([...(await watched)], ['the shipper of shard 0 is being replaced']);
  const deaths = await figure(program, 'ship_workers_lost_total');
  // Among others, and alone twice.
  assert.ok(deaths >= 2 && deaths <= 4, String(deaths));

  // It is over: no thread dies any more, and what comes now goes through.
  assert.equal(await send(program, 'after'), 200);
  await backend.until(() => arrived().includes('after'));
  assert.equal(await program.kill('SIGTERM'), 0);
  const dead = join(folder, 'spool', 'dead');
  const facts = readdirSync(dead).filter((name) => name.endsWith('.json'));
  assert.equal(facts.length, 1);
  const { hash, reason } = JSON.parse(readFileSync(join(dead, facts[0] ?? ''), 'utf8')) as DeadBodyFacts;
  assert.equal(reason, 'two uploading threads died of this body');
  assert.ok(readFileSync(join(dead, `${hash}.body`), 'utf8').includes(WORD));
  assert.deepEqual(readdirSync(join(folder, 'journal')), ['lock']);
});

test('in the spool: its batch is a dead letter, and those behind it are delivered', async () => {
  const { backend, program } = await start({ BATCH_SIZE: '1', MAX_RETRIES: '0' });
  backend.reply = () => ({ status: 503 });
  for (const name of ['a', WORD, 'b']) assert.equal(await send(program, name), 200);
  while ((await figure(program, 'spans_held', { place: 'spool' })) < 3) await sleep(20);

  backend.reply = (runs) => ({ status: isDeadly(runs) ? 413 : 202 });
  // One that was under way when the thread died comes twice.
  const arrived = (): unknown[] => [...new Set(backend.runs.map(({ run }) => run['name']))].sort();
  await backend.until(() => arrived().length === 2);
  assert.deepEqual(arrived(), ['a', 'b']);
  while ((await figure(program, 'runs_dead_lettered_total')) === 0) await sleep(20);
  assert.equal(await figure(program, 'spans_dropped_total', { reason: 'rejected-by-backend' }), 1);
  assert.equal(await figure(program, 'ship_workers_lost_total'), 2);
  assert.equal(await program.kill('SIGTERM'), 0);
  const { msg, droppedCount } = program.lines.at(-1) ?? {};
  assert.deepEqual([msg, droppedCount], ['stopped, everything delivered but what was dropped', 1]);
});
