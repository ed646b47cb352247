/** The pipeline at one moment, with what it did lately: what the picture, the judgement and the tables are made from. */
import type { PipelineSample, PipelineSnapshot } from '../../../../core/pipeline.ts';
import { quantile } from './quantile.ts';
import type { Track } from './track.ts';

/** Long enough for a batch a second to look even. */
export const RATE_WINDOW_MS = 5000;
/** What happened within it is news. */
export const LATELY_MS = 60_000;

export interface View {
  readonly now: PipelineSample;
  readonly snapshot: PipelineSnapshot;
  /** Now; 0 for one that this process does not have. */
  readonly gauge: (name: string) => number;
  readonly hasGauge: (name: string) => boolean;
  readonly limit: (name: string) => number | null;
  /** Of a gauge with a limit, 0 to 1; null without. */
  readonly fill: (name: string) => number | null;
  /** Since the start. */
  readonly total: (counter: string) => number;
  /** A second, over the last seconds. */
  readonly rate: (counter: string) => number;
  /** How much was added within the last minute, or another time. */
  readonly lately: (counter: string, windowMs?: number) => number;
  /** Of a histogram, within the last minute; null when nothing was counted. */
  readonly quantile: (histogram: string, ratio: number) => number | null;
  /** Per second; the mean of a histogram's values within the last minute. */
  readonly mean: (histogram: string) => number | null;
}

export function createView(snapshot: PipelineSnapshot, now: PipelineSample, track: Track): View {
  const gauge = (name: string): number => now.gauges[name] ?? 0;
  const limit = (name: string): number | null => snapshot.limits[name] ?? null;
  const latelyCounts = (histogram: string): number[] =>
    (now.histograms[histogram]?.counts ?? []).map((_, bucket) =>
      track.growth(`histograms.${histogram}.${bucket}`, LATELY_MS),
    );
  return {
    now,
    snapshot,
    gauge,
    hasGauge: (name) => now.gauges[name] !== undefined,
    limit,
    fill: (name) => {
      const bound = limit(name);
      return bound === null || bound === 0 ? null : gauge(name) / bound;
    },
    total: (counter) => now.counters[counter] ?? 0,
    rate: (counter) => track.rate(`counters.${counter}`, RATE_WINDOW_MS) ?? 0,
    lately: (counter, windowMs = LATELY_MS) => track.growth(`counters.${counter}`, windowMs),
    quantile: (histogram, ratio) =>
      quantile(snapshot.meanings.histograms[histogram]?.bounds ?? [], latelyCounts(histogram), ratio),
    mean: (histogram) => {
      const count = latelyCounts(histogram).reduce((sum, each) => sum + each, 0);
      return count === 0 ? null : track.growth(`histograms.${histogram}.sum`, LATELY_MS) / count;
    },
  };
}

/** Names with one of the beginnings, in the order in which the process has them. */
export function namesWith(figures: Readonly<Record<string, number>>, ...beginnings: readonly string[]): string[] {
  return Object.keys(figures).filter((name) => beginnings.some((beginning) => name.startsWith(beginning)));
}
