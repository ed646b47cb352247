/**
 * The registry: everything that this process counts and holds, read at the moment of asking. Counters and histograms come
 * from the table that all threads write; gauges from whoever holds something, who hands in a reader for each.
 */
import { COUNTERS, type CounterTable } from '../core/counters.ts';
import { HISTOGRAM_NAMES, type HistogramTotals } from '../core/histograms.ts';
import type { Figures } from '../core/pipeline.ts';

/** Something that can be read now. The unit stands at the end of its name: `…Bytes`, `…Ms`, `…Ratio`, or none for counts. */
export interface GaugeReader {
  readonly name: string;
  /** For people. */
  readonly meaning: string;
  /** Also called while the process starts and ends. */
  read(): number;
  /** What it can reach, where it has a bound. */
  readonly limit?: number;
}

/** Gauges that exist once a shard, under the same names. Of these, `…Ms` are Unix times. */
export interface ShardGauges {
  readonly names: readonly string[];
  readonly meanings: Readonly<Record<string, string>>;
  /** Limits of all shards together. */
  readonly limits: Figures;
  /** One reader a shard; empty before the start. */
  shards(): readonly { get(name: string): number }[];
}

export interface Figurebook {
  counters(): Figures;
  /** Of shards: all together. */
  gauges(): Figures;
  shards(): readonly Figures[];
  histograms(): Readonly<Record<string, HistogramTotals>>;
  readonly limits: Figures;
  readonly gaugeMeanings: Readonly<Record<string, string>>;
  /** Names of gauges that exist once a shard. */
  readonly shardGaugeNames: ReadonlySet<string>;
}

export const COUNTER_MEANINGS: Readonly<Record<string, string>> = COUNTERS;

export function createFigurebook(
  table: CounterTable,
  gauges: readonly GaugeReader[],
  ofShards: ShardGauges,
): Figurebook {
  const shards = (): Figures[] =>
    ofShards.shards().map((shard) => Object.fromEntries(ofShards.names.map((name) => [name, shard.get(name)])));
  return {
    counters: () => table.totals(),
    gauges: () => {
      const all = shards();
      const ofAll = ofShards.names.map((name): [string, number] => {
        const values = all.map((shard) => shard[name] ?? 0);
        return [name, together(name, values)];
      });
      return Object.fromEntries([...ofAll, ...gauges.map((gauge): [string, number] => [gauge.name, gauge.read()])]);
    },
    shards,
    histograms: () => Object.fromEntries(HISTOGRAM_NAMES.map((name) => [name, table.histogram(name)])),
    limits: {
      ...ofShards.limits,
      ...Object.fromEntries(gauges.flatMap(({ name, limit }) => (limit === undefined ? [] : [[name, limit]]))),
    },
    gaugeMeanings: { ...ofShards.meanings, ...Object.fromEntries(gauges.map(({ name, meaning }) => [name, meaning])) },
    shardGaugeNames: new Set(ofShards.names),
  };
}

/** Amounts add up; of times (`…Ms`, 0 for never) the earliest counts, of states (`…State`, 0 for well) the worst. */
function together(name: string, values: readonly number[]): number {
  if (name.endsWith('Ms')) {
    const told = values.filter((value) => value !== 0);
    return told.length === 0 ? 0 : Math.min(...told);
  }
  if (name.endsWith('State')) return Math.max(0, ...values);
  return values.reduce((sum, value) => sum + value, 0);
}
