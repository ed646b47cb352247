/**
 * How fast do records get from one thread to another? One producer thread, one reader thread that copies every record
 * into a batch, through one ring of 4 MiB. `npx node bench/ring.ts [--json FILE]`; warm-up: one round of each.
 *
 * What was decided by it (two cores of an EPYC, shared with other work, Node 22.23; 1.6 kB records, 100 a publish):
 * - The doorbell moves 5.5 million records/s for 0.18 µs CPU each (one a publish: 3.5 million, 0.30 µs). Polling the tail
 *   on every turn of the event loop reaches 11 million for the same CPU, but burns a whole core when there is nothing to
 *   do: at one record a millisecond 1115 µs CPU a record against 62. The doorbell won.
 * - Using records in place costs 0.18 µs; copying each out of the ring first 0.68 µs (allocation, not the copy). In place
 *   won; that is why a reader releases explicitly.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { Bench } from 'tinybench';
import { KiB, MiB } from '../src/core/units.ts';
import { createRingSet } from '../src/ring/layout.ts';
import { describeMachine, figure, median, renderTable } from './report.ts';
import type { EndResult, Round, Way } from './ringends.ts';

const { values } = parseArgs({ options: { json: { type: 'string' } } });
const file = new URL('./ringends.ts', import.meta.url);
const producer = new Worker(file, { workerData: 'producer' });
const consumer = new Worker(file, { workerData: 'consumer' });

type Case = Omit<Round, 'set'> & { name: string };
const ways: Way[] = ['doorbell', 'copying', 'polling'];
const cases: Case[] = ways.flatMap((way) =>
  [
    { name: 'small requests: 1.6 kB, one a publish', way, recordBytes: 1600, recordCount: 300_000, publishEvery: 1 },
    { name: 'typical: 1.6 kB, 100 a publish', way, recordBytes: 1600, recordCount: 300_000, publishEvery: 100 },
    { name: 'LLM-sized: 64 KiB, 10 a publish', way, recordBytes: 64 * KiB, recordCount: 15_000, publishEvery: 10 },
  ].map((entry) => ({ ...entry, pauseMs: 0 })),
);
for (const way of ['doorbell', 'polling'] as const) {
  cases.push({
    name: 'light load: 1.6 kB, one a millisecond',
    way,
    recordBytes: 1600,
    recordCount: 200,
    publishEvery: 1,
    pauseMs: 1,
  });
}

const rows: string[][] = [];
const figures: object[] = [];
for (const entry of cases) {
  const cpuUs: number[] = [];
  const set = createRingSet({ producerCount: 1, shardCount: 1, ringBytes: 4 * MiB });
  const round: Round = { ...entry, set };
  const bench = new Bench({ time: 0, iterations: 9, warmupTime: 0, warmupIterations: 1 });
  bench.add(entry.name, async () => {
    const done = Promise.all([once(producer, 'message'), once(consumer, 'message')]);
    consumer.postMessage(round);
    producer.postMessage(round);
    const [, [result]] = (await done) as [[EndResult], [EndResult]];
    if (result.bytes !== round.recordCount * round.recordBytes) throw new Error('records are missing');
    cpuUs.push(result.cpuUs);
  });
  await bench.run();
  const [task] = bench.tasks;
  if (task === undefined || !('latency' in task.result)) throw new Error(`${entry.name}: no result`);
  const roundMs = task.result.latency.p50;
  const recordsPerSec = (entry.recordCount * 1000) / roundMs;
  const cpuUsPerRecord = median(cpuUs) / entry.recordCount;
  const megabytesPerSec = (recordsPerSec * entry.recordBytes) / 1e6;
  rows.push([entry.name, entry.way, figure(recordsPerSec), figure(megabytesPerSec), figure(cpuUsPerRecord)]);
  figures.push({ ...entry, recordsPerSec, megabytesPerSec, cpuUsPerRecord });
}
console.log(renderTable(['case', 'way', 'records/s', 'MB/s', 'CPU µs/record'], rows));
if (values.json !== undefined) {
  writeFileSync(values.json, JSON.stringify({ machine: describeMachine(), figures }, null, 2) + '\n');
}
await Promise.all([producer.terminate(), consumer.terminate()]);
