/**
 * Part outage: the service at full load while the backend is away, then its return. Nothing listens where uploads go; the
 * load is a closed loop. It must not take more memory than `--check` states, and every acknowledged span must arrive
 * once the sink is there, or be counted as dropped: an outage can be longer than what fits `SPOOL_MAX_BYTES`.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { availableParallelism } from 'node:os';
import { readConfig } from '../src/config.ts';
import { MiB, SECOND_MS } from '../src/core/units.ts';
import { memoryBudgetBytes } from '../src/memory.ts';
import type { LoadResult } from './generator.ts';
import { meterProcess } from './procfs.ts';
import { figure } from './report.ts';
import { benchFile, drain, freePort, runGenerator, startProgram, startService, stopProcess } from './service.ts';
import type { ServiceSettings } from './service.ts';

export interface OutageResult {
  readonly outageMs: number;
  readonly load: LoadResult;
  readonly budgetBytes: number;
  /** Highest resident set until the outage ended, and altogether. */
  readonly outagePeakRssBytes: number;
  readonly peakRssBytes: number;
  readonly drainMs: number;
  /** Neither arrived nor counted as dropped. */
  readonly missingCount: number;
  /** By reason, as `/metrics` says it. */
  readonly dropped: Readonly<Record<string, number>>;
  readonly repeatedCount: number;
}

const PHASE = 1;

export async function measureOutage(settings: ServiceSettings, outageMs: number): Promise<OutageResult> {
  const sinkPort = await freePort();
  const sinkUrl = `http://127.0.0.1:${sinkPort}`;
  const generator = fork(benchFile('generator.ts'), { execArgv: process.execArgv });
  const service = await startService(sinkUrl, settings);
  const meter = meterProcess(service.pid);
  try {
    const load = await runGenerator(generator, {
      url: new URL('/v1/traces', service.url).href,
      headers: settings.headers,
      corpus: settings.corpus,
      encoding: settings.encoding,
      spansPerRequest: settings.spansPerRequest,
      connectionCount: settings.connectionCount,
      phase: PHASE,
      durationMs: outageMs,
      spansPerSec: null,
    });
    const outagePeakRssBytes = meter.peakRssBytes();
    const sink = await startProgram('sink.ts', ['--port', String(sinkPort)]);
    const startMs = performance.now();
    const keptCount = load.ackedSpanCount - sum(await readDrops(service.url));
    const { arrivals } = await drain(sinkUrl, PHASE, keptCount, 60 * SECOND_MS);
    const drainMs = performance.now() - startMs;
    await sleep(SECOND_MS);
    const dropped = await readDrops(service.url);
    const result: OutageResult = {
      outageMs,
      load,
      budgetBytes: memoryBudgetBytes(readConfig(settings.environment, { coreCount: availableParallelism() }).config),
      outagePeakRssBytes,
      peakRssBytes: meter.peakRssBytes(),
      drainMs,
      missingCount: load.ackedSpanCount - arrivals.arrivedCount - sum(dropped),
      dropped,
      repeatedCount: arrivals.repeatedCount,
    };
    await stopProcess(sink.process);
    return result;
  } finally {
    await service.stop();
    const ended = once(generator, 'exit');
    generator.disconnect();
    await ended;
  }
}

async function readDrops(serviceUrl: string): Promise<Record<string, number>> {
  const text = await (await fetch(`${serviceUrl}/metrics`)).text();
  const lines = text.matchAll(/^collector_proxy_spans_dropped_total\{reason="([^"]+)"\} (\d+)$/gm);
  return Object.fromEntries(
    [...lines].map(([, reason = '', count]): [string, number] => [reason, Number(count)]).filter(([, n]) => n > 0),
  );
}

function sum(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0);
}

export function isWithinBudget(result: OutageResult): boolean {
  return result.missingCount === 0 && result.load.failedCount === 0 && result.peakRssBytes <= result.budgetBytes;
}

export function renderOutage(result: OutageResult): string {
  const drops = Object.entries(result.dropped).map(
    ([reason, count]) => `${figure(count)} dropped and counted (${reason}), `,
  );
  const mebibytes = (bytes: number): string => `${figure(bytes / MiB)} MiB`;
  return [
    `outage of ${figure(result.outageMs / SECOND_MS)} s at ${figure(result.load.spansPerSec)} spans/s, ` +
      `${figure(result.load.ackedSpanCount)} acknowledged, ${figure(result.load.refusedCount)} requests put off`,
    `peak RSS ${mebibytes(result.outagePeakRssBytes)} during the outage, ${mebibytes(result.peakRssBytes)} with the return; ` +
      `stated budget ${mebibytes(result.budgetBytes)}`,
    `all that was kept delivered ${figure(result.drainMs / SECOND_MS)} s after the return: ${drops.join('')}` +
      `${figure(result.missingCount)} missing, ` +
      `${figure(result.repeatedCount)} came twice`,
  ].join('\n');
}
