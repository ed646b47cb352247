/**
 * Part 4: what a graph that computes costs the applications that send spans. The whole service under a fifth of its maximum load,
 * in turns with and without a graph that keeps its worker's CPU busy all the while; latency from each request's scheduled start.
 */
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { LoadResult, LoadSettings } from './generator.ts';
import { figure, median, renderTable } from './report.ts';
import {
  benchFile,
  FULL_SERVICE,
  runGenerator,
  startProgram,
  startService,
  stopProcess,
  type Subject,
} from './service.ts';

export interface BesideGraphSettings {
  readonly warmUpMs: number;
  /** To find the maximum. */
  readonly maximumMs: number;
  /** Of one round, with or without the graph. */
  readonly phaseMs: number;
  readonly roundCount: number;
}
export const FULL_BESIDE_GRAPH: BesideGraphSettings = {
  warmUpMs: 4_000,
  maximumMs: 8_000,
  phaseMs: 5_000,
  roundCount: 5,
};
export const QUICK_BESIDE_GRAPH: BesideGraphSettings = {
  warmUpMs: 2_000,
  maximumMs: 2_500,
  phaseMs: 5_000,
  roundCount: 1,
};

export interface BesideGraphResults {
  readonly maximumSpansPerSec: number;
  readonly spansPerSec: number;
  /** Milliseconds to the answer, one entry a round. */
  readonly alone: readonly LoadResult['latencyMs'][];
  readonly besideGraph: readonly LoadResult['latencyMs'][];
  /** How late requests left the generator: it shares the machine with what it measures. */
  readonly lateP99Ms: { readonly alone: readonly number[]; readonly besideGraph: readonly number[] };
}

const LOAD_RATIO = 0.2;
/** The graph computes until after the last answer of its round. */
const MARGIN_MS = 500;

export async function measureBesideGraph(settings: BesideGraphSettings): Promise<BesideGraphResults> {
  const sink = await startProgram('sink.ts', []);
  const generator = fork(benchFile('generator.ts'), { execArgv: process.execArgv });
  let service: Subject | null = null;
  let phase = 0;
  try {
    service = await startService(`http://127.0.0.1:${sink.port}`, {
      nodeArgs: [],
      environment: {
        DEPLOYMENT_CONFIG: fileURLToPath(new URL('graphs/langgraph.json', import.meta.url)),
        // The run's own trace is not what is measured.
        DEPLOYMENT_TRACING: 'false',
      },
    });
    const { url } = service;
    const { corpus, encoding, spansPerRequest, connectionCount, headers } = FULL_SERVICE;
    const load = (durationMs: number, spansPerSec: number | null): Promise<LoadResult> => {
      const chain = { url: new URL('/v1/traces', url).href, headers, corpus, encoding, spansPerRequest };
      const order: LoadSettings = { ...chain, connectionCount, phase: ++phase, durationMs, spansPerSec };
      return runGenerator(generator, order);
    };
    await load(settings.warmUpMs, null);
    const maximumSpansPerSec = (await load(settings.maximumMs, null)).spansPerSec;
    const spansPerSec = LOAD_RATIO * maximumSpansPerSec;
    const alone: LoadResult[] = [];
    const besideGraph: LoadResult[] = [];
    for (let round = 0; round < settings.roundCount; round++) {
      alone.push(await load(settings.phaseMs, spansPerSec));
      const computing = await compute(url, settings.phaseMs + MARGIN_MS);
      besideGraph.push(await load(settings.phaseMs, spansPerSec));
      await computing.ended;
    }
    return {
      maximumSpansPerSec,
      spansPerSec,
      alone: alone.map(({ latencyMs }) => latencyMs),
      besideGraph: besideGraph.map(({ latencyMs }) => latencyMs),
      lateP99Ms: {
        alone: alone.map(({ lateP99Ms }) => lateP99Ms),
        besideGraph: besideGraph.map(({ lateP99Ms }) => lateP99Ms),
      },
    };
  } finally {
    await service?.stop();
    generator.disconnect();
    await stopProcess(sink.process);
  }
}

/** Resolves when the graph has begun to compute. */
async function compute(url: string, spinMs: number): Promise<{ ended: Promise<void> }> {
  const response = await fetch(`${url}/runs/stream`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ assistant_id: 'spin', input: { spinMs }, stream_mode: 'updates' }),
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const read = async (until: string): Promise<void> => {
    while (!text.includes(until)) {
      const chunk = await reader?.read();
      if (chunk === undefined || chunk.done) throw new Error(`the graph did not compute: ${response.status} ${text}`);
      text += chunk.value;
    }
  };
  await read('event: metadata');
  return { ended: read('event: updates') };
}

export function renderBesideGraph(results: BesideGraphResults): string {
  const row = (name: string, rounds: readonly LoadResult['latencyMs'][], lateMs: readonly number[]): string[] => [
    name,
    figure(median(rounds.map(({ p50 }) => p50))),
    figure(median(rounds.map(({ p99 }) => p99))),
    rounds.map(({ p99 }) => figure(p99)).join(', '),
    figure(median(lateMs)),
  ];
  const table = renderTable(
    ['', 'ack p50 ms', 'ack p99 ms', 'p99 of each round', 'generator late, p99 ms'],
    [
      row('alone', results.alone, results.lateP99Ms.alone),
      row('beside a graph that computes', results.besideGraph, results.lateP99Ms.besideGraph),
    ],
  );
  const [alone, beside] = [results.alone, results.besideGraph].map((rounds) => median(rounds.map(({ p99 }) => p99)));
  return (
    `${figure(results.spansPerSec)} spans/s, a fifth of ${figure(results.maximumSpansPerSec)}\n\n${table}\n\n` +
    `ack p99 beside the graph / alone: ${((beside ?? Number.NaN) / (alone ?? Number.NaN)).toFixed(2)}`
  );
}
