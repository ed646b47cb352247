/**
 * Part 2: the whole service, over real sockets. The service, the load generator and the counting sink are processes of
 * their own; what is charged to the service is what the operating system charged to its process, all threads included.
 *
 * The phases, each ended by waiting until the sink has every acknowledged span: warm-up; closed loop, which finds the
 * maximum; open loop at half and at four fifths of it, with latency counted from the scheduled start of a request. The
 * service and the baseline take turns phase by phase, so that a drift of the machine hits both alike.
 */
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import type { CorpusName } from './corpus.ts';
import type { GeneratorMessage, LoadResult, LoadSettings } from './generator.ts';
import { meterProcess, type ProcessMeter } from './procfs.ts';
import { figure, renderTable } from './report.ts';
import type { SinkReport } from './sink.ts';

/** `durable` is the service with DURABLE_ACK, its journal on the disk that holds the system's temporary files. */
export const SUBJECT_NAMES = ['service', 'durable', 'baseline'] as const;
export type SubjectName = (typeof SUBJECT_NAMES)[number];

export interface ServiceSettings {
  readonly corpus: CorpusName;
  readonly encoding: 'protobuf' | 'json';
  readonly spansPerRequest: number;
  readonly connectionCount: number;
  readonly warmUpMs: number;
  readonly phaseMs: number;
  /** Variables for the service, on top of what the bench sets; an operator's way to try other settings. */
  readonly environment: Readonly<Record<string, string>>;
  /** Node's own flags for the service, such as those of a profiler. */
  readonly nodeArgs: readonly string[];
  /** Where the sink listens; 0 for any port. A collector that is measured by `target` must be told. */
  readonly sinkPort: number;
  /** A collector that runs already, instead of the service and the baseline. */
  readonly target: { readonly url: string; readonly pid: number } | null;
  readonly subjects: readonly SubjectName[];
  readonly headers: Readonly<Record<string, string>>;
}

export const FULL_SERVICE: ServiceSettings = {
  corpus: 'typical',
  encoding: 'protobuf',
  spansPerRequest: 100,
  connectionCount: 32,
  warmUpMs: 8_000,
  phaseMs: 20_000,
  environment: {},
  nodeArgs: [],
  sinkPort: 0,
  target: null,
  subjects: SUBJECT_NAMES,
  headers: { 'X-API-Key': 'bench-key' },
};
export const QUICK_SERVICE: ServiceSettings = { ...FULL_SERVICE, warmUpMs: 2_000, phaseMs: 2_500 };

export interface PhaseResult {
  readonly phase: string;
  readonly load: LoadResult;
  readonly cpuSecPerMillionSpans: number;
  /** Cores busy on average, of the measured process, of the generator and of the sink. */
  readonly cores: number;
  readonly generatorCores: number;
  readonly sinkCores: number;
  readonly egressBytesPerSpan: number;
  readonly uploadsPer1000Spans: number;
  /** Acknowledged spans that the sink never got. */
  readonly missingCount: number;
  readonly repeatedCount: number;
  readonly threads: readonly { readonly name: string; readonly cpuSecPerMillionSpans: number }[];
}

export interface SubjectResult {
  readonly subject: string;
  readonly phases: readonly PhaseResult[];
  readonly peakRssBytes: number;
}

/** What is measured: a process that takes OTLP at `url`. */
export interface Subject {
  readonly name: string;
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Of the maximum that the closed loop found. */
const OPEN_LOOP_RATIOS = [0.5, 0.8];

const ROOT = new URL('../', import.meta.url);
const READY_MS = 30_000;
const DRAIN_MS = 30_000;
const STOP_MS = 15_000;

export async function measureService(settings: ServiceSettings): Promise<SubjectResult[]> {
  const sink = await startProgram('sink.ts', ['--port', String(settings.sinkPort)]);
  const sinkUrl = `http://127.0.0.1:${sink.port}`;
  const generator = fork(benchFile('generator.ts'), { execArgv: process.execArgv });
  const bench: Bench = { settings, sinkUrl, sinkPid: sink.process.pid ?? 0, generator, phaseCount: 0 };
  const subjects: Subject[] = [];
  try {
    if (settings.target !== null) {
      console.error(`the collector must upload to ${sinkUrl}`);
      subjects.push({ name: 'target', ...settings.target, stop: async () => undefined });
    } else {
      for (const name of settings.subjects) subjects.push(await startSubject(name, sinkUrl, settings));
    }
    return await measureSubjects(bench, subjects);
  } finally {
    for (const subject of subjects) await subject.stop();
    generator.disconnect();
    await stopProcess(sink.process);
  }
}

interface Bench {
  readonly settings: ServiceSettings;
  readonly sinkUrl: string;
  readonly sinkPid: number;
  readonly generator: ChildProcess;
  phaseCount: number;
}

async function measureSubjects(bench: Bench, subjects: readonly Subject[]): Promise<SubjectResult[]> {
  const { warmUpMs, phaseMs } = bench.settings;
  const measured = subjects.map((subject) => ({
    subject,
    meter: meterProcess(subject.pid),
    phases: [] as PhaseResult[],
    maximumPerSec: 0,
  }));
  for (const { subject, meter } of measured) await measurePhase(bench, subject, meter, 'warm-up', warmUpMs, null);
  for (const each of measured) {
    const closed = await measurePhase(bench, each.subject, each.meter, 'closed loop', phaseMs, null);
    each.maximumPerSec = closed.load.spansPerSec;
    each.phases.push(closed);
  }
  for (const ratio of OPEN_LOOP_RATIOS) {
    for (const { subject, meter, phases, maximumPerSec } of measured) {
      const name = `open loop, ${ratio * 100} %`;
      phases.push(await measurePhase(bench, subject, meter, name, phaseMs, maximumPerSec * ratio));
    }
  }
  return measured.map(({ subject, meter, phases }) => ({
    subject: subject.name,
    phases,
    peakRssBytes: meter.peakRssBytes(),
  }));
}

async function measurePhase(
  bench: Bench,
  subject: Subject,
  meter: ProcessMeter,
  name: string,
  durationMs: number,
  spansPerSec: number | null,
): Promise<PhaseResult> {
  const { settings } = bench;
  const phase = ++bench.phaseCount;
  const sinkMeter = meterProcess(bench.sinkPid);
  const generatorMeter = meterProcess(bench.generator.pid ?? 0);
  const sinkBefore = await readSink(bench.sinkUrl, phase);
  const threadsBefore = new Map(meter.threads().map((thread) => [thread.threadId, thread.cpuSec]));
  const before = [meter.cpuSec(), generatorMeter.cpuSec(), sinkMeter.cpuSec()] as const;
  const startMs = performance.now();
  const load = await runGenerator(bench.generator, {
    url: new URL('/v1/traces', subject.url).href,
    headers: settings.headers,
    corpus: settings.corpus,
    encoding: settings.encoding,
    spansPerRequest: settings.spansPerRequest,
    connectionCount: settings.connectionCount,
    phase,
    durationMs,
    spansPerSec,
  });
  const sinkAfter = await drain(bench.sinkUrl, phase, load.ackedSpanCount);
  const after = [meter.cpuSec(), generatorMeter.cpuSec(), sinkMeter.cpuSec()] as const;
  const elapsedSec = (performance.now() - startMs) / 1000;
  const runCount = sinkAfter.totals.runCount - sinkBefore.totals.runCount;
  return {
    phase: name,
    load,
    cpuSecPerMillionSpans: ((after[0] - before[0]) / load.ackedSpanCount) * 1e6,
    cores: (after[0] - before[0]) / elapsedSec,
    generatorCores: (after[1] - before[1]) / elapsedSec,
    sinkCores: (after[2] - before[2]) / elapsedSec,
    egressBytesPerSpan: (sinkAfter.totals.bodyBytes - sinkBefore.totals.bodyBytes) / runCount,
    uploadsPer1000Spans: ((sinkAfter.totals.requestCount - sinkBefore.totals.requestCount) / runCount) * 1000,
    missingCount: load.ackedSpanCount - sinkAfter.arrivals.arrivedCount,
    repeatedCount: sinkAfter.arrivals.repeatedCount,
    threads: meter
      .threads()
      .map(({ threadId, name: threadName, cpuSec }) => ({
        name: `${threadName} ${threadId}`,
        cpuSecPerMillionSpans: ((cpuSec - (threadsBefore.get(threadId) ?? 0)) / load.ackedSpanCount) * 1e6,
      }))
      .sort((a, b) => b.cpuSecPerMillionSpans - a.cpuSecPerMillionSpans),
  };
}

export async function runGenerator(generator: ChildProcess, load: LoadSettings): Promise<LoadResult> {
  const answered = once(generator, 'message') as Promise<[GeneratorMessage]>;
  const ended = once(generator, 'exit').then(() => [{ kind: 'failed', message: 'it ended' }] as [GeneratorMessage]);
  generator.send(load);
  const [message] = await Promise.race([answered, ended]);
  if (message.kind === 'failed') throw new Error(`load generator: ${message.message}`);
  return message.result;
}

/** Waits until as many spans have arrived as were acknowledged, as long as some still arrive. */
export async function drain(
  sinkUrl: string,
  phase: number,
  ackedSpanCount: number,
  patienceMs = DRAIN_MS,
): Promise<SinkReport> {
  let report = await readSink(sinkUrl, phase);
  let progressMs = performance.now();
  while (report.arrivals.arrivedCount < ackedSpanCount && performance.now() - progressMs < patienceMs) {
    await sleep(50);
    const next = await readSink(sinkUrl, phase);
    if (next.arrivals.arrivedCount > report.arrivals.arrivedCount) progressMs = performance.now();
    report = next;
  }
  return report;
}

async function readSink(sinkUrl: string, phase: number): Promise<SinkReport> {
  const response = await fetch(`${sinkUrl}/bench/arrivals?phase=${phase}`);
  return (await response.json()) as SinkReport;
}

// --- processes ------------------------------------------------------------------------------------------------------

async function startSubject(name: SubjectName, sinkUrl: string, settings: ServiceSettings): Promise<Subject> {
  switch (name) {
    case 'service':
      return startService(sinkUrl, settings);
    case 'durable': {
      const environment = { DURABLE_ACK: 'true', ...settings.environment };
      return { ...(await startService(sinkUrl, { ...settings, environment })), name };
    }
    case 'baseline':
      return startBaseline(sinkUrl);
  }
}

export async function startService(
  sinkUrl: string,
  settings: Pick<ServiceSettings, 'nodeArgs' | 'environment'>,
): Promise<Subject> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const dataFolder = mkdtempSync(join(tmpdir(), 'collector-bench-'));
  const child = spawn(process.execPath, [...settings.nodeArgs, ...startArgs()], {
    cwd: fileURLToPath(ROOT),
    // Nothing of the developer's own environment: the figures are those of the defaults.
    env: {
      SERVICE_ENDPOINT: sinkUrl,
      SERVICE_API_KEY: 'bench-key',
      HOST: '127.0.0.1',
      HTTP_PORT: String(port),
      DATA_DIR: dataFolder,
      LOG_LEVEL: 'warn',
      ...settings.environment,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const stop = async (): Promise<void> => {
    await stopProcess(child);
    rmSync(dataFolder, { recursive: true });
  };
  await waitUntilReady(url, child).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return { name: 'service', url, pid: child.pid ?? 0, stop };
}

/** Node's arguments as `npm start` has them. */
function startArgs(): string[] {
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', ROOT), 'utf8')) as { scripts: { start: string } };
  const words = scripts.start.split(' ');
  return words.slice(words.indexOf('node') + 1);
}

async function startBaseline(sinkUrl: string): Promise<Subject> {
  const baseline = await startProgram('baseline.ts', ['--endpoint', sinkUrl]);
  return {
    name: 'baseline',
    url: `http://127.0.0.1:${baseline.port}`,
    pid: baseline.process.pid ?? 0,
    stop: () => stopProcess(baseline.process),
  };
}

/** Starts one of the bench's own servers, which print their port. */
export async function startProgram(
  file: string,
  args: readonly string[],
): Promise<{ process: ChildProcess; port: number }> {
  const child = spawn(process.execPath, [...process.execArgv, benchFile(file), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout });
  const [line] = (await Promise.race([
    once(lines, 'line'),
    once(child, 'exit').then(() => Promise.reject(new Error(`${file} ended before it was listening`))),
  ])) as [string];
  return { process: child, port: Number(line) };
}

async function waitUntilReady(url: string, child: ChildProcess): Promise<void> {
  const deadlineMs = performance.now() + READY_MS;
  while (performance.now() < deadlineMs) {
    if (child.exitCode !== null) throw new Error(`the service ended with exit code ${child.exitCode}`);
    const response = await fetch(`${url}/ready`).catch(() => null);
    if (response?.ok === true) return;
    await sleep(50);
  }
  throw new Error(`the service was not ready within ${READY_MS} ms`);
}

export async function stopProcess(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await exited;
  clearTimeout(timer);
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

export function benchFile(name: string): string {
  return fileURLToPath(new URL(name, import.meta.url));
}

// --- report ---------------------------------------------------------------------------------------------------------

export function renderService(results: readonly SubjectResult[]): string {
  const rows = results.flatMap(({ subject, phases }) =>
    phases.map((phase) => [
      `${subject}, ${phase.phase}`,
      figure(phase.load.spansPerSec),
      figure(phase.cpuSecPerMillionSpans),
      figure(phase.cores),
      `${figure(phase.load.latencyMs.p50)} / ${figure(phase.load.latencyMs.p99)} / ${figure(phase.load.latencyMs.p999)}`,
      figure(phase.egressBytesPerSpan),
      figure(phase.uploadsPer1000Spans),
      `${figure(phase.load.refusedCount)} / ${figure(phase.load.brokenConnectionCount)}`,
      arrivalText(phase),
    ]),
  );
  const table = renderTable(
    [
      '',
      'spans/s',
      'CPU-s/M spans',
      'cores',
      'ack p50/p99/p99.9 ms',
      'egress B/span',
      'uploads/1k',
      'refused/broken',
      'arrived',
    ],
    rows,
  );
  const lines = results.map(
    ({ subject, peakRssBytes, phases }) =>
      `${subject}: peak RSS ${figure(peakRssBytes / 1024 ** 2)} MiB; beside it the load generator took ` +
      `${phases.map((phase) => figure(phase.generatorCores)).join(', ')} and the sink ` +
      `${phases.map((phase) => figure(phase.sinkCores)).join(', ')} cores`,
  );
  return [table, lines.join('\n'), ...renderRatios(results)].join('\n\n');
}

/** Whether each span that was sent has arrived, once. */
export function isComplete({ missingCount, repeatedCount, load }: PhaseResult): boolean {
  return missingCount === 0 && repeatedCount === 0 && load.failedCount === 0;
}

function arrivalText({ missingCount, repeatedCount, load }: PhaseResult): string {
  const problems = [
    missingCount === 0 ? '' : `${missingCount} missing`,
    repeatedCount === 0 ? '' : `${repeatedCount} repeated`,
    load.failedCount === 0 ? '' : `${load.failedCount} requests failed`,
  ].filter((text) => text !== '');
  return problems.length === 0 ? `each of ${figure(load.ackedSpanCount)} once` : problems.join(', ');
}

function renderRatios(results: readonly SubjectResult[]): string[] {
  const service = results.find(({ subject }) => subject === 'service');
  const baseline = results.find(({ subject }) => subject === 'baseline');
  if (service === undefined || baseline === undefined) return [];
  const ratios = service.phases.map((phase, index) => {
    const ratio = (baseline.phases[index]?.cpuSecPerMillionSpans ?? Number.NaN) / phase.cpuSecPerMillionSpans;
    return `${ratio.toFixed(2)} (${phase.phase})`;
  });
  const speed = (service.phases[0]?.load.spansPerSec ?? 0) / (baseline.phases[0]?.load.spansPerSec ?? Number.NaN);
  return [
    `CPU-seconds per span, baseline / service: ${ratios.join(', ')}`,
    `maximum spans/s, service / baseline: ${speed.toFixed(2)}`,
  ];
}
