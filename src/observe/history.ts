/**
 * The figures of the last minutes: one column a figure, one row a sample, in a fixed piece of memory. In: samples, each
 * with the same figures as the first. When full: the oldest row makes room.
 */
import type { PipelineHistory, PipelineSample } from '../core/pipeline.ts';

export interface History {
  add(sample: PipelineSample): void;
  /** The samples since `sinceMs`; of the series only those whose name `wanted` takes. */
  read(sinceMs: number, wanted: (series: string) => boolean): PipelineHistory;
}

export function createHistory(rowCount: number): History {
  /** Column → series; known with the first sample. */
  let names: readonly string[] = [];
  let rows = new Float64Array(0);
  const times = new Float64Array(rowCount);
  let addedCount = 0;
  return {
    add: (sample) => {
      const figures = flatten(sample);
      if (addedCount === 0) {
        names = figures.map(([name]) => name);
        rows = new Float64Array(rowCount * names.length);
      }
      const row = addedCount++ % rowCount;
      times[row] = sample.atMs;
      for (const [column, [, value]] of figures.entries()) rows[row * names.length + column] = value;
    },
    read: (sinceMs, wanted) => {
      const oldest = Math.max(0, addedCount - rowCount);
      const chosen: number[] = [];
      for (let n = oldest; n < addedCount; n++) if ((times[n % rowCount] ?? 0) >= sinceMs) chosen.push(n % rowCount);
      const series: Record<string, number[]> = {};
      for (const [column, name] of names.entries()) {
        if (wanted(name)) series[name] = chosen.map((row) => rows[row * names.length + column] ?? 0);
      }
      return { atMs: chosen.map((row) => times[row] ?? 0), series };
    },
  };
}

function flatten(sample: PipelineSample): [name: string, value: number][] {
  return [
    ...Object.entries(sample.counters).map(([name, value]): [string, number] => [`counters.${name}`, value]),
    ...Object.entries(sample.gauges).map(([name, value]): [string, number] => [`gauges.${name}`, value]),
    ...Object.entries(sample.histograms).flatMap(([name, { counts, sum }]): [string, number][] => [
      [`histograms.${name}.sum`, sum],
      ...counts.map((count, bucket): [string, number] => [`histograms.${name}.${bucket}`, count]),
    ]),
  ];
}
