/**
 * `npm run fuzz -- [--minutes N] [--target NAME]… [--seed S] [--runs N] [--keep] [--input FILE]`
 *
 * Fuzzes every target, each in a thread of its own, two at a time, and shares the minutes among them. The law: nothing is
 * thrown past the boundary, nothing takes longer than {@link RUN_LIMIT_MS}, memory stays bounded, and scanner and reference
 * decoder say the same. Exit code 1 when it was broken; then the shortest input found is in `.fuzz/`, to be run again with
 * `--target NAME --input FILE`.
 *
 * Why not @jazzer.js: what matters most here is WebAssembly, and it sees JavaScript only. Both are instrumented here, see
 * instrument.ts.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { GiB, KiB, MINUTE_MS, SECOND_MS } from '../../src/core/units.ts';
import type { Finding } from './engine.ts';
import { SharedReport } from './report.ts';
import { readSeeds, writeSeeds } from './seeds.ts';
import { openTarget, TARGET_NAMES, type TargetName } from './target.ts';
import type { ThreadOutcome, ThreadSettings } from './thread.ts';

/** For one input. A thousand times what the slowest takes, for machines under load. */
const RUN_LIMIT_MS = 30 * SECOND_MS;
/** Of the process, with every thread. */
const MEMORY_LIMIT_BYTES = 2 * GiB;
const HEAP_LIMIT_MIB = 700;
const LOOK_MS = 250;
const TELL_MS = 15 * SECOND_MS;
const MAX_INPUT_BYTES = 64 * 1024;
/** Of the seeds of one target that `--keep` writes. */
const KEPT_BYTES = 12 * KiB;
const LANE_COUNT = Math.min(2, availableParallelism());

interface Result {
  readonly target: TargetName;
  readonly findings: Finding[];
  readonly kept: Uint8Array[];
}

const { values: words } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    target: { type: 'string', multiple: true },
    seed: { type: 'string' },
    runs: { type: 'string' },
    keep: { type: 'boolean', default: false },
    input: { type: 'string' },
  },
});
const targets = (words.target ?? [...TARGET_NAMES]).map((name) => {
  const known = TARGET_NAMES.find((target) => target === name);
  if (known === undefined) throw new Error(`--target must be one of ${TARGET_NAMES.join(', ')}`);
  return known;
});
const minutes = numberOf('--minutes', words.minutes);
const seed = words.seed === undefined ? Date.now() % 0x7fffffff : numberOf('--seed', words.seed);
const maxRuns = words.runs === undefined ? Infinity : numberOf('--runs', words.runs);

if (words.input !== undefined) await replay(words.input);
else process.exitCode = await fuzzAll();

function numberOf(option: string, text: string): number {
  const value = Number(text);
  if (!(value >= 0)) throw new Error(`${option} must be a number`);
  return value;
}

async function replay(file: string): Promise<void> {
  const [name] = targets;
  if (targets.length !== 1 || name === undefined) throw new Error('--input needs one --target');
  const target = await openTarget(name);
  const input = new Uint8Array(readFileSync(file));
  await target.run(input);
  target.check?.(input);
  await target.close?.();
  console.log('the law holds');
}

async function fuzzAll(): Promise<number> {
  const laneCount = Math.min(LANE_COUNT, targets.length);
  const durationMs = (minutes * MINUTE_MS * laneCount) / targets.length;
  console.log(`seed ${seed}, ${targets.length} targets for ${(durationMs / SECOND_MS).toFixed(1)} s each`);
  const waiting = [...targets];
  const results: Result[] = [];
  const lane = async (): Promise<void> => {
    for (let target = waiting.shift(); target !== undefined; target = waiting.shift()) {
      results.push(await fuzzOne(target, durationMs));
    }
  };
  await Promise.all(Array.from({ length: laneCount }, lane));
  let findingCount = 0;
  for (const { target, findings, kept } of results) {
    for (const finding of findings) report(target, finding, ++findingCount);
    if (words.keep) keep(target, kept);
  }
  console.log(findingCount === 0 ? 'the law holds' : `${findingCount} findings, seed ${seed}`);
  return findingCount === 0 ? 0 : 1;
}

async function fuzzOne(target: TargetName, durationMs: number): Promise<Result> {
  const shared = new SharedReport(MAX_INPUT_BYTES);
  const data: ThreadSettings = {
    target,
    seed,
    durationMs,
    maxRuns,
    report: shared.shared,
    keptBytes: words.keep ? KEPT_BYTES : 0,
  };
  const thread = new Worker(new URL('./thread.ts', import.meta.url), {
    workerData: data,
    resourceLimits: { maxOldGenerationSizeMb: HEAP_LIMIT_MIB },
  });
  const startMs = performance.now();
  const tell = (): void => {
    const { runCount, corpusCount, reachedCount, placeCount } = shared.numbers;
    const perSec = Math.round(runCount / Math.max(1, (performance.now() - startMs) / SECOND_MS));
    console.log(
      `${target.padEnd(10)} ${runCount} inputs (${perSec}/s), ${corpusCount} kept, ${reachedCount} of ${placeCount} places reached`,
    );
  };
  const result = await new Promise<Result>((resolveResult) => {
    const fail = (error: string): void =>
      resolveResult({ target, findings: [{ input: shared.input, error }], kept: [] });
    let [turn, turnMs, toldMs] = [-1, performance.now(), performance.now()];
    const look = setInterval(() => {
      const nowMs = performance.now();
      if (shared.turn !== turn) [turn, turnMs] = [shared.turn, nowMs];
      else if (turn > 0 && nowMs - turnMs > RUN_LIMIT_MS && !done) fail(`no end within ${RUN_LIMIT_MS} ms`);
      if (process.memoryUsage.rss() > MEMORY_LIMIT_BYTES) fail(`more than ${MEMORY_LIMIT_BYTES} bytes of memory`);
      if (nowMs - toldMs > TELL_MS) {
        tell();
        toldMs = nowMs;
      }
    }, LOOK_MS);
    let done = false;
    thread.on('message', ({ findings, kept }: ThreadOutcome) => {
      done = true;
      resolveResult({ target, findings, kept });
    });
    thread.on('error', (error: unknown) =>
      fail(error instanceof Error ? (error.stack ?? error.message) : String(error)),
    );
    thread.on('exit', () => {
      clearInterval(look);
      if (!done) fail('the thread ended');
    });
  });
  await thread.terminate();
  tell();
  return result;
}

function report(target: TargetName, { input, error }: Finding, number: number): void {
  mkdirSync('.fuzz', { recursive: true });
  const file = resolve('.fuzz', `${target}-${seed}-${number}`);
  writeFileSync(file, input);
  console.log(
    `\n${target}: ${error}\n  ${input.length} bytes: ${JSON.stringify(Buffer.from(input).toString('latin1'))}`,
  );
  console.log(`  npm run fuzz -- --target ${target} --input ${file}\n`);
}

/** What reached most in few bytes becomes the committed seeds; those that have a title stay. */
function keep(target: TargetName, kept: readonly Uint8Array[]): void {
  const titled = readSeeds('seeds', target).filter(({ title }) => title !== '');
  const known = new Set(titled.map(({ bytes }) => Buffer.from(bytes).toString('base64')));
  const news = kept.filter((bytes) => !known.has(Buffer.from(bytes).toString('base64')));
  writeSeeds(target, [...titled, ...news.map((bytes) => ({ title: '', bytes }))]);
}
