/**
 * The process under strain: its main thread stands still, its heap is nearly full, signals come under load and in an outage.
 * Group 12 of the cases (cases.test.ts); connections and descriptors are in connections.test.ts.
 */
import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MiB } from '../../src/core/units.ts';
import { startCountingBackend, type CountingBackend } from '../flow/countingbackend.ts';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { killAll, lastLine, newFolder, ready, run } from '../program.ts';
import { startProgram, type Program } from './program.ts';

const STALL_MS = 5000;

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  await killAll();
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(
  environment: Record<string, string> = {},
): Promise<{ backend: CountingBackend; program: Program }> {
  const backend = await startCountingBackend();
  cleanups.push(() => backend.close());
  const program = await startProgram({ SERVICE_ENDPOINT: backend.url, DEPLOYMENT_API: 'off', ...environment });
  cleanups.push(() => program.stop());
  return { backend, program };
}

/** Sends `count` requests of three spans, `lanes` at a time; returns how many spans were acknowledged. */
async function load(url: string, count: number, lanes: number): Promise<number> {
  let left = count;
  let acceptedCount = 0;
  const lane = async (): Promise<void> => {
    while (left-- > 0) {
      const { spans } = makeTrace(3, 1);
      const { status } = await postJson(url, jsonRequest(spans));
      assert.ok(status === 200 || status === 503, `${status}`);
      if (status === 200) acceptedCount += spans.length;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return acceptedCount;
}

describe('12: the main thread stands still', () => {
  test('for five seconds: what was acknowledged arrives meanwhile, what came meanwhile is answered after, nothing dies', async () => {
    const { backend, program } = await start({
      STALL_MS: `${STALL_MS}`,
      NODE_OPTIONS: `--import ${new URL('stalling.ts', import.meta.url).href}`,
    });
    const before = await load(program.url, 20, 4);
    process.kill(program.pid, 'SIGUSR2');
    // Uploading threads need nobody.
    await backend.until(() => backend.runs.length === before);
    const during = await load(program.url, 40, 20);
    await backend.until(() => backend.runs.length === before + during);
    const { sum } = await program.until(
      (seen) => seen.sum('collector_proxy_event_loop_delay_minute_max_seconds') > (STALL_MS / 1000) * 0.9,
    );
    assert.equal(during, 120);
    for (const counter of ['decode_workers_lost', 'ship_workers_lost', 'requests_refused']) {
      assert.equal(sum(`collector_proxy_${counter}_total`), 0, counter);
    }
    assert.equal((await fetch(`http://127.0.0.1:${program.port}/ready`)).status, 200);
  });
});

describe('12: the heap is nearly full', () => {
  test('with little more than the main thread needs at rest it takes load, large bodies, many spans and scrapes', async () => {
    const idle = await start();
    const restBytes = (await idle.program.metrics()).sum('collector_proxy_heap_used_bytes');
    assert.equal(await idle.program.stop(), 0);
    const limitMib = Math.ceil(restBytes / MiB) + 12;
    const { backend, program } = await start({ NODE_OPTIONS: `--max-old-space-size=${limitMib}` });
    let acceptedCount = await load(program.url, 1500, 30);
    const { spans: wide } = makeTrace(2, 10_000);
    assert.equal((await postJson(program.url, jsonRequest(wide))).status, 200);
    acceptedCount += wide.length;
    const [span] = makeTrace(1, 1).spans;
    const large = jsonRequest([{ ...(span ?? assert.fail()), attributes: { 'input.value': 'x'.repeat(20 * MiB) } }]);
    assert.equal((await postJson(program.url, large)).status, 200);
    acceptedCount++;
    await Promise.all(Array.from({ length: 100 }, () => program.metrics()));
    await backend.until(() => backend.runs.length >= acceptedCount);
    assert.equal(program.exitCode, null, program.output().slice(-2000));
    assert.equal(await program.stop(), 0, program.output().slice(-2000));
  });
});

describe('12: signals', () => {
  // SIGHUP: nothing is read again, so that another configuration is a restart; that it must not cost a span either.
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) {
    test(`${signal} under load in an outage: what was acknowledged waits in the spool, and the next process delivers it`, async () => {
      const backend = await startCountingBackend();
      cleanups.push(() => backend.close());
      backend.reply = () => ({ status: 503 });
      const environment = {
        SERVICE_ENDPOINT: backend.url,
        SERVICE_API_KEY: 'k',
        DATA_DIR: newFolder(),
        BATCH_SIZE: '50',
      };
      const first = run([], environment);
      const url = `${await ready(first)}/v1/traces`;
      let acceptedCount = 0;
      let isOver = false;
      const senders = Array.from({ length: 4 }, async () => {
        while (!isOver) {
          const { spans } = makeTrace(3, 3);
          const answer = await postJson(url, jsonRequest(spans)).catch(() => null);
          if (answer?.status === 200) acceptedCount += spans.length;
          else await sleep(5);
        }
      });
      while (acceptedCount < 1000) await sleep(5);
      first.process.kill(signal);
      assert.equal(await first.exited, 0);
      isOver = true;
      await Promise.all(senders);
      const last = lastLine(first);
      assert.equal(last['reason'], signal);
      assert.deepEqual(
        [last['acceptedCount'], last['spooledCount'], last['lostCount']],
        [acceptedCount, acceptedCount, 0],
      );

      backend.reply = () => ({ status: 202 });
      // With another configuration.
      const second = run([], { ...environment, BATCH_SIZE: '20', SHIP_SHARDS: '2' });
      await ready(second);
      await backend.until(() => backend.runs.length >= acceptedCount);
      second.process.kill(signal);
      assert.equal(await second.exited, 0);
      assert.equal(new Set(backend.runs.map(({ id }) => id)).size, acceptedCount);
    });
  }
});
