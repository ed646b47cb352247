/** The bench measures with what is tested here: generator, counting sink and baseline, as the processes that they are. */
import assert from 'node:assert/strict';
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import type { GeneratorMessage, LoadResult, LoadSettings } from '../../bench/generator.ts';
import type { SinkReport } from '../../bench/sink.ts';

const QUIET = ['--disable-warning=ExperimentalWarning'];
const children: ChildProcess[] = [];

after(async () => {
  await Promise.all(
    children.map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }),
  );
});

function benchFile(name: string): string {
  return fileURLToPath(new URL(`../../bench/${name}`, import.meta.url));
}

async function start(file: string, ...args: string[]): Promise<{ child: ChildProcess; url: string }> {
  const child = spawn(process.execPath, [...QUIET, benchFile(file), ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  const [port] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
  return { child, url: `http://127.0.0.1:${port}` };
}

async function load(settings: Partial<LoadSettings> & { url: string }): Promise<LoadResult> {
  const child = fork(benchFile('generator.ts'), { execArgv: QUIET });
  children.push(child);
  child.send({
    headers: { 'X-API-Key': 'key' },
    corpus: 'typical',
    encoding: 'protobuf',
    spansPerRequest: 20,
    connectionCount: 3,
    phase: 1,
    durationMs: 200,
    spansPerSec: null,
    ...settings,
  } satisfies LoadSettings);
  const [message] = (await once(child, 'message')) as [GeneratorMessage];
  child.disconnect();
  assert.equal(message.kind, 'result', JSON.stringify(message));
  return message.result;
}

async function arrived(sinkUrl: string, phase: number, spanCount: number): Promise<SinkReport> {
  for (;;) {
    const response = await fetch(`${sinkUrl}/bench/arrivals?phase=${phase}`);
    const report = (await response.json()) as SinkReport;
    if (report.arrivals.arrivedCount >= spanCount) return report;
    await sleep(20);
  }
}

test('through the baseline, every acknowledged span arrives at the sink once, from protobuf and from JSON', async () => {
  const sink = await start('sink.ts');
  const baseline = await start('baseline.ts', '--endpoint', sink.url, '--flush-interval-ms', '50');
  for (const [phase, encoding] of [
    [1, 'protobuf'],
    [2, 'json'],
  ] as const) {
    const result = await load({ url: `${baseline.url}/v1/traces`, phase, encoding });
    assert.ok(result.ackedSpanCount > 0);
    assert.equal(result.ackedSpanCount, result.sentSpanCount);
    const report = await arrived(sink.url, phase, result.ackedSpanCount);
    assert.deepEqual(report.arrivals, { arrivedCount: result.ackedSpanCount, repeatedCount: 0 });
    assert.equal(report.totals.foreignCount, 0);
  }
});

test('sent straight to the sink as OTLP, spans are counted too, at the rate that was asked for', async () => {
  const sink = await start('sink.ts');
  const result = await load({ url: `${sink.url}/v1/traces`, phase: 3, spansPerSec: 2000, durationMs: 500 });
  const report = await arrived(sink.url, 3, result.ackedSpanCount);
  assert.deepEqual(report.arrivals, { arrivedCount: result.ackedSpanCount, repeatedCount: 0 });
  // Half a second at 2000 a second, and whole chains of 80 spans to their end on at most three connections.
  assert.ok(result.ackedSpanCount >= 1000 && result.ackedSpanCount <= 1000 + 20 + 3 * 80, `${result.ackedSpanCount}`);
  assert.ok(result.latencyMs.p50 > 0 && result.latencyMs.p50 <= result.latencyMs.p999);
});

test('the sink tells a span that came twice', async () => {
  const sink = await start('sink.ts');
  const first = await load({ url: `${sink.url}/v1/traces`, phase: 4, spansPerSec: 400 });
  const second = await load({ url: `${sink.url}/v1/traces`, phase: 4, spansPerSec: 400 });
  const report = await arrived(sink.url, 4, Math.max(first.ackedSpanCount, second.ackedSpanCount));
  assert.equal(report.arrivals.repeatedCount, Math.min(first.ackedSpanCount, second.ackedSpanCount));
});
