/**
 * Part 3: the deployment API, and what a run costs on top of the graph. One node, durable on SQLite, the server in a process of its
 * own; the floor is the bare `graph.invoke` of the same graph, in this process and on the same cores.
 */
import { randomUUID } from 'node:crypto';
import { fork, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { MemorySaver } from '@langchain/langgraph';
import { Pool } from 'undici';
import { readConfig } from '../src/config.ts';
import { builder, graph } from './graphs/onenode.ts';
import { meterProcess } from './procfs.ts';
import { figure, median, quantile, renderTable } from './report.ts';

export interface DeploySettings {
  warmupCount: number;
  /** Requests of each latency phase, one after the other. */
  requestCount: number;
  clientCount: number;
  /** Of one round of full load; the bare graph and the server take turns. */
  phaseMs: number;
  roundCount: number;
}
export const FULL_DEPLOY: DeploySettings = {
  warmupCount: 300,
  requestCount: 1000,
  clientCount: 100,
  phaseMs: 4000,
  roundCount: 5,
};
export const QUICK_DEPLOY: DeploySettings = {
  warmupCount: 150,
  requestCount: 300,
  clientCount: 100,
  phaseMs: 1500,
  roundCount: 3,
};

export interface DeployResults {
  invokeP50Ms: number;
  invokeP99Ms: number;
  invokesPerSec: number;
  savedInvokesPerSec: number;
  waitP50Ms: number;
  waitP99Ms: number;
  streamFirstP50Ms: number;
  streamFirstP99Ms: number;
  runsPerSec: number;
  loadedWaitP50Ms: number;
  loadedWaitP99Ms: number;
  /** CPU time of this process under full load. */
  invokeCpuMs: number;
  serverCpuMsPerRun: number;
  serverThreads: { name: string; cpuMsPerRun: number }[];
  /** Runs per second against bare invokes per second of the same round, all rounds. */
  throughputRatios: number[];
}

const INPUT = { text: 'hello' };
const HEADERS = { 'content-type': 'application/json' };

export async function measureDeploy(settings: DeploySettings): Promise<DeployResults> {
  const bare = await measureBare(settings);
  const folder = mkdtempSync(join(tmpdir(), 'bench-deploy-'));
  // As many as `npm start` would have here.
  const { graphThreads } = readConfig({}, { coreCount: availableParallelism() }).config;
  const server = fork(join(import.meta.dirname, 'deployserver.ts'), [folder, String(graphThreads)], {
    stdio: 'inherit',
  });
  try {
    const { port } = await new Promise<{ port: number }>((resolve, reject) => {
      server.once('message', (message) => resolve(message as { port: number }));
      server.once('exit', (code) => reject(new Error(`the server exited with ${code}`)));
    });
    return await measureServer(settings, bare, `http://127.0.0.1:${port}`, server);
  } finally {
    const ended = new Promise((resolve) => server.once('exit', resolve));
    server.disconnect();
    await ended;
    rmSync(folder, { recursive: true, force: true });
  }
}

type Bare = Pick<DeployResults, 'invokeP50Ms' | 'invokeP99Ms' | 'savedInvokesPerSec'>;

async function measureBare(settings: DeploySettings): Promise<Bare> {
  for (let i = 0; i < settings.warmupCount; i++) await graph.invoke(INPUT);
  const latencies = await oneByOne(settings.requestCount, () => graph.invoke(INPUT));
  const saved = builder.compile({ checkpointer: new MemorySaver() });
  let threadCount = 0;
  const invokeSaved = (): Promise<unknown> =>
    saved.invoke(INPUT, { configurable: { thread_id: String(++threadCount) } });
  return {
    invokeP50Ms: quantile(latencies, 0.5),
    invokeP99Ms: quantile(latencies, 0.99),
    savedInvokesPerSec: (await together(settings, invokeSaved)).perSec,
  };
}

async function measureServer(
  settings: DeploySettings,
  bare: Bare,
  url: string,
  server: ChildProcess,
): Promise<DeployResults> {
  const pool = new Pool(url, { connections: settings.clientCount });
  const threads = Array.from({ length: settings.clientCount }, () => randomUUID());
  const body = JSON.stringify({ assistant_id: 'onenode', input: INPUT, if_not_exists: 'create' });
  let turn = 0;
  const wait = async (): Promise<void> => {
    const thread = threads[turn++ % threads.length] ?? '';
    const response = await pool.request({
      method: 'POST',
      path: `/threads/${thread}/runs/wait`,
      headers: HEADERS,
      body,
    });
    const text = await response.body.text();
    if (response.statusCode !== 200 || !text.includes('You said')) throw new Error(`${response.statusCode} ${text}`);
  };
  const streamFirst = async (): Promise<void> => {
    const thread = threads[turn++ % threads.length] ?? '';
    const path = `/threads/${thread}/runs/stream`;
    const response = await pool.request({ method: 'POST', path, headers: HEADERS, body });
    // The first event tells the run's id; the rest is read outside of the measured time.
    await new Promise((resolve, reject) => response.body.once('data', resolve).once('error', reject));
    streams.push(response.body.dump().catch(() => undefined));
  };
  const streams: Promise<unknown>[] = [];
  for (let i = 0; i < settings.warmupCount; i++) await wait();
  const waits = await oneByOne(settings.requestCount, wait);
  const firsts = await oneByOne(settings.requestCount, streamFirst);
  await Promise.all(streams);
  // Both are warm for one client by now; many at once take other ways.
  await together(settings, () => graph.invoke(INPUT));
  await together(settings, wait);
  const meter = meterProcess(server.pid ?? 0);
  const loadedMs: number[] = [];
  const invokesPerSec: number[] = [];
  const runsPerSec: number[] = [];
  let cpuSec = 0;
  let invokeCpuMicros = 0;
  let invokeCount = 0;
  const threadsSec = new Map<number, { name: string; cpuSec: number }>();
  const charge = (sign: 1 | -1): void => {
    for (const thread of meter.threads()) {
      const charged = threadsSec.get(thread.threadId)?.cpuSec ?? 0;
      threadsSec.set(thread.threadId, { name: thread.name, cpuSec: charged + sign * thread.cpuSec });
    }
  };
  for (let round = 0; round < settings.roundCount; round++) {
    const ownCpu = process.cpuUsage();
    const invoked = await together(settings, () => graph.invoke(INPUT));
    const { user, system } = process.cpuUsage(ownCpu);
    invokesPerSec.push(invoked.perSec);
    invokeCount += invoked.latencies.length;
    invokeCpuMicros += user + system;
    const cpuBeforeSec = meter.cpuSec();
    charge(-1);
    const loaded = await together(settings, wait);
    cpuSec += meter.cpuSec() - cpuBeforeSec;
    charge(1);
    runsPerSec.push(loaded.perSec);
    loadedMs.push(...loaded.latencies);
  }
  await pool.close();
  return {
    ...bare,
    invokesPerSec: median(invokesPerSec),
    runsPerSec: median(runsPerSec),
    throughputRatios: runsPerSec.map((perSec, round) => perSec / (invokesPerSec[round] ?? Number.NaN)),
    waitP50Ms: quantile(waits, 0.5),
    waitP99Ms: quantile(waits, 0.99),
    streamFirstP50Ms: quantile(firsts, 0.5),
    streamFirstP99Ms: quantile(firsts, 0.99),
    loadedWaitP50Ms: quantile(loadedMs, 0.5),
    loadedWaitP99Ms: quantile(loadedMs, 0.99),
    invokeCpuMs: invokeCpuMicros / 1000 / invokeCount,
    serverCpuMsPerRun: (cpuSec * 1000) / loadedMs.length,
    serverThreads: [...threadsSec.values()]
      .map(({ name, cpuSec: threadSec }) => ({ name, cpuMsPerRun: (threadSec * 1000) / loadedMs.length }))
      .sort((a, b) => b.cpuMsPerRun - a.cpuMsPerRun),
  };
}

async function oneByOne(count: number, work: () => Promise<unknown>): Promise<number[]> {
  const latencies: number[] = [];
  for (let i = 0; i < count; i++) {
    const startMs = performance.now();
    await work();
    latencies.push(performance.now() - startMs);
  }
  return latencies;
}

async function together(
  settings: DeploySettings,
  work: () => Promise<unknown>,
): Promise<{ perSec: number; latencies: number[] }> {
  const latencies: number[] = [];
  const startMs = performance.now();
  const client = async (): Promise<void> => {
    while (performance.now() - startMs < settings.phaseMs) {
      const sentMs = performance.now();
      await work();
      latencies.push(performance.now() - sentMs);
    }
  };
  await Promise.all(Array.from({ length: settings.clientCount }, client));
  return { perSec: latencies.length / ((performance.now() - startMs) / 1000), latencies };
}

export function renderDeploy(results: DeployResults): string {
  const added = results.waitP50Ms - results.invokeP50Ms;
  const threads = results.serverThreads
    .slice(0, 5)
    .map(({ name, cpuMsPerRun }) => `${name} ${figure(cpuMsPerRun)}`)
    .join(', ');
  const shares = results.throughputRatios.map((ratio) => ratio.toFixed(2)).join(', ');
  return renderTable(
    ['', 'bare invoke', 'runs/wait', 'first stream event'],
    [
      ['p50 ms', figure(results.invokeP50Ms), figure(results.waitP50Ms), figure(results.streamFirstP50Ms)],
      ['p99 ms', figure(results.invokeP99Ms), figure(results.waitP99Ms), figure(results.streamFirstP99Ms)],
      ['per second, 100 clients', figure(results.invokesPerSec), figure(results.runsPerSec), ''],
      ['p50 ms, 100 clients', '', figure(results.loadedWaitP50Ms), ''],
      ['p99 ms, 100 clients', '', figure(results.loadedWaitP99Ms), ''],
      ['with a checkpointer in memory, per second', figure(results.savedInvokesPerSec), '', ''],
      ['CPU ms per run', figure(results.invokeCpuMs), figure(results.serverCpuMsPerRun), ''],
      ['added to the bare invoke, p50 ms', '', figure(added), ''],
      ['share of the bare throughput, median', '', figure(median(results.throughputRatios)), ''],
    ],
  ).concat(`\n\nshare of the bare throughput, round by round: ${shares}\nCPU ms per run by thread: ${threads}`);
}
