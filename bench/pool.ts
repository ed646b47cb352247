/**
 * What does the way from the acceptor into the rings and back cost for one request, decoding left out? Bodies are handed
 * in as a server does it: in each turn of the event loop as many as were answered before. The decoder copies the body
 * into one record; another thread empties the rings. `npx node bench/pool.ts [--json FILE]`; warm-up: a fifth more.
 *
 * Two cores of an EPYC, shared with other work, Node 22.23, one thread: a lone small request costs 45 to 60 µs of CPU
 * (waking two threads), one of 8 at a time 5 to 7 µs, of 64 2 to 3 µs, of 512 1.1 to 1.5 µs. A body of 168 kB costs 35 µs
 * in a buffer of its own and 50 µs through the slab (memcpy: twelve times 2 µs each way, and a task of its own).
 * Objects instead of binary descriptors in a task added 0.9 µs a body. Piscina's `atomics: 'sync'` made no difference.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { createCounterTable } from '../src/core/counters.ts';
import type { IntakeBody } from '../src/core/intake.ts';
import { silentLog } from '../src/core/log.ts';
import { KiB, MiB } from '../src/core/units.ts';
import { createDecodePool } from '../src/decode/pool.ts';
import { counterRow } from '../src/decode/task.ts';
import { createRingSet } from '../src/ring/layout.ts';
import { describeMachine, figure, quantile, renderTable } from './report.ts';

const { values } = parseArgs({ options: { json: { type: 'string' }, threads: { type: 'string', default: '1' } } });
const threadCount = Number(values.threads);
const rings = createRingSet({ producerCount: threadCount, shardCount: 1, ringBytes: 8 * MiB });
const counters = createCounterTable(counterRow(1, threadCount));
const pool = createDecodePool(
  {
    threadCount,
    workerUrl: new URL('./poolworker.ts', import.meta.url),
    maxTaskBytes: 256 * KiB,
    maxHeldBytes: 256 * MiB,
    thread: {
      rings,
      counters: counters.shared,
      decoder: { genericAttributes: false, rootRunId: 'trace', converterModule: null },
      maxBodyBytes: 64 * MiB,
      ringWaitMs: 1000,
      bodyWaitMs: 1000,
      maxOversizeBytes: 64 * MiB,
    },
  },
  { forwardOversize: () => undefined, setAside: () => Promise.resolve(), counters: counters.row(0), log: silentLog },
);
await pool.start();
const drain = new Worker(new URL('./ringdrain.ts', import.meta.url), { workerData: rings });

interface Figures {
  bodyBytes: number;
  owned: boolean;
  concurrency: number;
  bodiesPerSec: number;
  cpuUsPerBody: number;
  bodiesPerTask: number;
  latencyMs: { p50: number; p99: number };
}

/** `concurrency` senders, each with its next body as soon as the last was answered. */
async function measure(bodyBytes: number, concurrency: number, bodyCount: number, owned: boolean): Promise<Figures> {
  const bytes = new Uint8Array(bodyBytes).fill(65);
  const latenciesMs: number[] = [];
  let left = 0;
  let refused = 0;
  let waiting = 0;
  const run = (count: number): Promise<void> =>
    new Promise((resolve) => {
      left = count;
      let open = concurrency;
      let isOver = false;
      const turn = (): void => {
        while (!isOver && open > 0 && left > 0) {
          open--;
          left--;
          waiting++;
          const startMs = performance.now();
          const body: IntakeBody = {
            encoding: 'protobuf',
            coding: 'identity',
            apiKey: 'lsv2_pt_0123456789abcdef0123456789abcdef_0123456789',
            project: null,
            receivedUs: 1.76e15,
            sourceNumber: 0,
            settle: (admission) => {
              if (admission.kind !== 'accepted') refused++;
              latenciesMs.push(performance.now() - startMs);
              open++;
              waiting--;
              if (left > 0 && open === 1) setImmediate(turn);
              if (left > 0 || waiting > 0) return;
              isOver = true;
              resolve();
            },
          };
          if (owned) pool.submitOwned(body, bytes.buffer.slice(0), bodyBytes);
          else pool.submit(body, bytes);
        }
      };
      turn();
    });
  await run(bodyCount / 5);
  latenciesMs.length = 0;
  const tasksBefore = counters.total('decode_tasks');
  const cpuBefore = process.cpuUsage();
  const startMs = performance.now();
  await run(bodyCount);
  const tookMs = performance.now() - startMs;
  const { user, system } = process.cpuUsage(cpuBefore);
  if (refused > 0) throw new Error(`${refused} bodies were not accepted`);
  return {
    bodyBytes,
    owned,
    concurrency,
    bodiesPerSec: (bodyCount * 1000) / tookMs,
    cpuUsPerBody: (user + system) / bodyCount,
    bodiesPerTask: bodyCount / (counters.total('decode_tasks') - tasksBefore),
    latencyMs: { p50: quantile(latenciesMs, 0.5), p99: quantile(latenciesMs, 0.99) },
  };
}

const figures: Figures[] = [];
for (const [bodyBytes, concurrency, bodyCount, owned] of [
  [1700, 1, 20_000, false],
  [1700, 8, 60_000, false],
  [1700, 64, 200_000, false],
  [1700, 512, 200_000, false],
  [168_000, 1, 5000, true],
  [168_000, 64, 20_000, true],
  [168_000, 64, 20_000, false],
] as const) {
  figures.push(await measure(bodyBytes, concurrency, bodyCount, owned));
}
console.log(
  renderTable(
    ['body bytes', 'own buffer', 'senders', 'bodies/s', 'CPU µs/body', 'bodies/task', 'p50 ms', 'p99 ms'],
    figures.map((f) => [
      figure(f.bodyBytes),
      f.owned ? 'yes' : 'no',
      figure(f.concurrency),
      figure(f.bodiesPerSec),
      figure(f.cpuUsPerBody),
      figure(f.bodiesPerTask),
      figure(f.latencyMs.p50),
      figure(f.latencyMs.p99),
    ]),
  ),
);
if (values.json !== undefined) {
  writeFileSync(values.json, JSON.stringify({ machine: describeMachine(), figures }, null, 2) + '\n');
}
await Promise.all([pool.stop(1000), drain.terminate()]);
