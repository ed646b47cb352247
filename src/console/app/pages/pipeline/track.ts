/**
 * The figures of the last minutes as columns: loaded once from the history, then one row a sample. Rows are in order of time;
 * a figure that a row lacks is 0. When full the oldest rows go.
 */
import type { PipelineHistory, PipelineSample } from '../../../../core/pipeline.ts';

export interface Track {
  /** Unix time of each row. */
  readonly atMs: readonly number[];
  /** As the history names it: `counters.<name>`, `gauges.<name>`, `histograms.<name>.<bucket>`. */
  column(series: string): readonly number[];
  /** Replaces everything. */
  load(history: PipelineHistory): void;
  /** Ignored unless it is newer than the last row. */
  add(sample: PipelineSample): void;
  /** The newest row that is at least `windowMs` older than `row`, or the first; −1 when there is no row. */
  rowBefore(row: number, windowMs: number): number;
  /** How much a series grew within the `windowMs` up to `row`, the last when it is left out. */
  growth(series: string, windowMs: number, row?: number): number;
  /** The same a second; null where there is no second row to compare with. */
  rate(series: string, windowMs: number, row?: number): number | null;
}

export const MAX_ROW_COUNT = 600;
/** Trimmed in steps: shifting every column at every sample would be waste. */
const SLACK_COUNT = 60;

export function createTrack(): Track {
  let atMs: number[] = [];
  let columns = new Map<string, number[]>();
  const none: readonly number[] = [];

  const columnFor = (series: string): number[] => {
    const known = columns.get(series);
    if (known !== undefined) return known;
    const made = atMs.map(() => 0);
    columns.set(series, made);
    return made;
  };
  const rowBefore = (row: number, windowMs: number): number => {
    const untilMs = (atMs[row] ?? 0) - windowMs;
    let low = 0;
    let high = row;
    // The last row at or before `untilMs`.
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((atMs[middle] ?? 0) <= untilMs) low = middle;
      else high = middle - 1;
    }
    return atMs.length === 0 ? -1 : low;
  };
  const growth = (series: string, windowMs: number, row = atMs.length - 1): number => {
    const column = columns.get(series) ?? none;
    return Math.max(0, (column[row] ?? 0) - (column[rowBefore(row, windowMs)] ?? 0));
  };

  return {
    get atMs() {
      return atMs;
    },
    column: (series) => columns.get(series) ?? none,
    load: (history) => {
      atMs = [...history.atMs];
      columns = new Map(Object.entries(history.series).map(([series, values]) => [series, [...values]]));
    },
    add: (sample) => {
      if (sample.atMs <= (atMs.at(-1) ?? 0)) return;
      const figures = flatten(sample);
      for (const [series] of figures) columnFor(series);
      atMs.push(sample.atMs);
      const row = atMs.length - 1;
      for (const [series, value] of figures) columnFor(series)[row] = value;
      // What was not in the sample keeps all columns equally long.
      for (const column of columns.values()) if (column.length <= row) column.push(0);
      if (atMs.length <= MAX_ROW_COUNT + SLACK_COUNT) return;
      const goneCount = atMs.length - MAX_ROW_COUNT;
      atMs.splice(0, goneCount);
      for (const column of columns.values()) column.splice(0, goneCount);
    },
    rowBefore,
    growth,
    rate: (series, windowMs, row = atMs.length - 1) => {
      const before = rowBefore(row, windowMs);
      const seconds = ((atMs[row] ?? 0) - (atMs[before] ?? 0)) / 1000;
      return seconds > 0 ? growth(series, windowMs, row) / seconds : null;
    },
  };
}

function flatten(sample: PipelineSample): [series: string, value: number][] {
  return [
    ...Object.entries(sample.counters).map(([name, value]): [string, number] => [`counters.${name}`, value]),
    ...Object.entries(sample.gauges).map(([name, value]): [string, number] => [`gauges.${name}`, value]),
    ...Object.entries(sample.histograms).flatMap(([name, { counts, sum }]): [string, number][] => [
      [`histograms.${name}.sum`, sum],
      ...counts.map((count, bucket): [string, number] => [`histograms.${name}.${bucket}`, count]),
    ]),
  ];
}
