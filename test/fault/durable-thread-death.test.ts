/**
 * The whole program with DURABLE_ACK, and uploading threads that die with acknowledged spans inside: every one of these
 * arrives, what cannot be taken meanwhile is answered 503, and the readiness and the figures say so.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { startCountingBackend, type CountingBackend } from '../flow/countingbackend.ts';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { startProgram, type Program } from '../flow/program.ts';
import { scrape } from '../metrics.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

interface Rig {
  readonly folder: string;
  readonly backend: CountingBackend;
  readonly program: Program;
  /** Names of spans that were acknowledged. */
  readonly acknowledged: Set<string>;
  /** Sends a trace whose spans have names of their own; returns the status. */
  send(): Promise<number>;
  reasons(): Promise<string>;
  figure(name: string, labels?: Record<string, string>): Promise<number>;
}

const RING_BYTES = 64 << 10;

async function start(folder: string, backend: CountingBackend, environment: Record<string, string>): Promise<Rig> {
  const program = await startProgram({
    SERVICE_ENDPOINT: backend.url,
    DURABLE_ACK: 'true',
    DATA_DIR: folder,
    SPOOL_MAX_BYTES: '16MiB',
    DECODE_THREADS: '1',
    SHIP_SHARDS: '1',
    SPAN_TTL: '2s',
    // What hangs is tried again soon, and as often as it takes: nothing goes to the spool.
    UPLOAD_TIMEOUT_MS: '2s',
    MAX_RETRIES: '100',
    // Taken as long as there is room in shared memory, also while nobody reads it: it is soon full.
    RING_BYTES: String(RING_BYTES),
    ...environment,
  });
  cleanUps.push(() => program.kill('SIGKILL'));
  const base = `http://127.0.0.1:${program.port}`;
  const acknowledged = new Set<string>();
  let count = 0;
  return {
    folder,
    backend,
    program,
    acknowledged,
    async send() {
      const name = `trace ${count++}`;
      const { spans } = makeTrace(2, 2);
      // Every other trace lacks its root: what is there waits in the uploading thread.
      const sent = count % 2 === 0 ? spans.slice(1) : spans;
      // And every fifth brings a span that is too large for a ring.
      const attributes = count % 5 === 0 ? { 'gen_ai.prompt': 'large '.repeat(RING_BYTES / 4) } : {};
      const named = sent.map((span, index) => ({
        ...span,
        name: `${name} ${index}`,
        ...(index === 0 ? { attributes } : {}),
      }));
      const answer = await postJson(`${base}/v1/traces`, jsonRequest(named));
      if (answer.status === 200) for (const span of named) acknowledged.add(span.name);
      if (answer.status === 503) assert.ok(Number(answer.headers.get('retry-after')) >= 1);
      return answer.status;
    },
    reasons: async () => (await fetch(`${base}/ready`)).text(),
    figure: async (name, labels = {}) => (await scrape(`${base}/metrics`)).sum(`collector_proxy_${name}`, labels),
  };
}

async function newFolder(): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'durable-death-'));
  cleanUps.push(() => rmSync(folder, { recursive: true }));
  return folder;
}

async function newBackend(): Promise<CountingBackend> {
  const backend = await startCountingBackend();
  cleanUps.push(() => backend.close());
  return backend;
}

async function until(condition: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 10));
}

/** All that was acknowledged has arrived, and the journal keeps nothing. */
async function assertAllArrive(rig: Rig): Promise<void> {
  const { backend, acknowledged, program, folder } = rig;
  const missing = (): string[] => {
    const arrived = new Set(backend.runs.map(({ run }) => run['name']));
    return [...acknowledged].filter((name) => !arrived.has(name));
  };
  await backend.until(() => missing().length === 0);
  // What arrived before a thread died is decoded again like the rest; a stop would leave it to the next process.
  await until(async () => (await rig.figure('journal_replay_bytes')) === 0);
  assert.equal(await program.kill('SIGTERM'), 0);
  assert.deepEqual(readdirSync(join(folder, 'journal')), ['lock']);
}

for (const order of ['throw', 'hoard']) {
  test(
    `uploading threads that ${order} again and again: 503 and a reason meanwhile, every acknowledged span arrives`,
    { timeout: 240_000 },
    async () => {
      const folder = await newFolder();
      const control = join(folder, 'control');
      const saboteur = join(folder, 'saboteur.mjs');
      writeFileSync(control, '');
      // Loaded by every thread of the program before anything else; the uploading ones obey.
      writeFileSync(
        saboteur,
        `import { readFileSync } from 'node:fs';
      import { isMainThread, workerData } from 'node:worker_threads';
      if (!isMainThread && workerData?.shard !== undefined) {
        setInterval(() => {
          const order = readFileSync(${JSON.stringify(control)}, 'utf8');
          if (order === 'throw') throw new Error('as the test says');
          const kept = [];
          while (order === 'hoard') kept.push(Array.from({ length: 10_000 }, (_, i) => ({ i })));
        }, 5).unref();
      }`,
      );
      const backend = await newBackend();
      // Uploads are under way for ever: nothing is settled.
      backend.reply = () => null;
      const rig = await start(folder, backend, { NODE_OPTIONS: `--import ${saboteur}` });
      for (let i = 0; i < 20; i++) assert.equal(await rig.send(), 200);

      writeFileSync(control, order);
      const seen = new Set<string>();
      await until(async () => {
        const status = await rig.send();
        assert.ok(status === 200 || status === 503, String(status));
        if (status === 503) seen.add('503');
        if ((await rig.reasons()).includes('the shipper of shard 0 is being replaced')) seen.add('reason');
        return seen.size === 2 && (await rig.figure('ship_workers_lost_total')) >= 2;
      });
      writeFileSync(control, '');
      backend.reply = () => ({ status: 202 });
      await until(async () => (await rig.reasons()).includes('"ready"'));
      await until(async () => (await rig.send()) === 200);
      assert.equal(await rig.figure('spans_dropped_total', { reason: 'worker-lost' }), 0, 'nothing counts as lost');
      assert.equal(rig.program.child.exitCode, null, 'the process lives on');
      await assertAllArrive(rig);
    },
  );
}
