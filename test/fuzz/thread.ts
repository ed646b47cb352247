/** A thread that fuzzes one target. What it is told comes in `workerData`, what it has found goes out as one message. */
import { parentPort, workerData } from 'node:worker_threads';
import { Coverage } from './coverage.ts';
import { distil, fuzz, type Outcome } from './engine.ts';
import { instrument } from './instrument.ts';
import { SharedReport } from './report.ts';
import { readSeeds } from './seeds.ts';
import { openTarget, type TargetName } from './target.ts';

export interface ThreadSettings {
  readonly target: TargetName;
  readonly seed: number;
  /** Whichever is reached first ends the run. */
  readonly durationMs: number;
  readonly maxRuns: number;
  readonly report: SharedArrayBuffer;
  /** Of the inputs to report as worth keeping; 0 reports none. */
  readonly keptBytes: number;
}

export interface ThreadOutcome extends Outcome {
  readonly kept: Uint8Array[];
}

process.setSourceMapsEnabled(true);
const settings = workerData as ThreadSettings;
const report = new SharedReport(settings.report);
const coverage = new Coverage();
const words = new Set<string>();
instrument(coverage, words);
const target = await openTarget(settings.target);
const endMs = performance.now() + settings.durationMs;
let corpusCount = 0;

const outcome = await fuzz({
  target,
  coverage,
  seeds: [...readSeeds('found', settings.target), ...readSeeds('seeds', settings.target)].map(({ bytes }) => bytes),
  words,
  seed: settings.seed,
  onRun: (input) => report.began(input),
  isOver: (runCount, keptCount) => {
    if (runCount % 256 === 0 || keptCount !== corpusCount) {
      corpusCount = keptCount;
      report.tell({ runCount, corpusCount, reachedCount: coverage.reachedCount, placeCount: coverage.placeCount });
    }
    return runCount >= settings.maxRuns || performance.now() >= endMs;
  },
});
report.tell({
  runCount: outcome.runCount,
  corpusCount: outcome.corpus.length,
  reachedCount: coverage.reachedCount,
  placeCount: coverage.placeCount,
});
const kept = settings.keptBytes > 0 ? await distil(outcome.corpus, target, coverage, settings.keptBytes) : [];
await target.close?.();
parentPort?.postMessage({ ...outcome, kept } satisfies ThreadOutcome);
