/**
 * What `GET /api/pipeline` and its siblings answer with: the figures of `/metrics` as JSON. Counters and histograms are
 * totals since the start of the process; rates are the reader's, as differences of two samples.
 */
import type { HistogramTotals } from './histograms.ts';

/** `GET /api/pipeline/events` sends one a second, as the data of an event `sample`. */
export interface PipelineSample {
  /** Unix time. */
  readonly atMs: number;
  readonly phase: 'starting' | 'ready' | 'draining';
  /** Why the process is not ready; empty when it is. */
  readonly reasons: readonly string[];
  /** Since the start, by name. */
  readonly counters: Figures;
  /** Now, by name; those of shards summed up. */
  readonly gauges: Figures;
  readonly histograms: Readonly<Record<string, HistogramTotals>>;
}

export type Figures = Readonly<Record<string, number>>;

/** `GET /api/pipeline` */
export interface PipelineSnapshot extends PipelineSample {
  readonly version: string;
  /** When the process started, Unix time. */
  readonly startedMs: number;
  /** What gauges can reach, by the gauge's name; where a gauge has no entry there is no such bound. */
  readonly limits: Figures;
  /** The gauges of each shard. */
  readonly shards: readonly Figures[];
  /** What the figures mean. */
  readonly meanings: {
    readonly counters: Readonly<Record<string, string>>;
    readonly gauges: Readonly<Record<string, string>>;
    readonly histograms: Readonly<Record<string, PipelineHistogramMeaning>>;
  };
}

export interface PipelineHistogramMeaning {
  readonly meaning: string;
  /** Upper bounds of all buckets but the last, which has none. */
  readonly bounds: readonly number[];
}

/** `GET /api/config`: the configuration in effect, as `--check` prints it. */
export interface EffectiveConfig {
  readonly variables: readonly EffectiveVariable[];
  /** Not wrong, but probably not meant. */
  readonly warnings: readonly string[];
}

export interface EffectiveVariable {
  readonly name: string;
  /** For people; secrets are masked. */
  readonly shown: string;
  /** The variable that it came from, `default` where none was set. */
  readonly source: string;
  readonly meaning: string;
}

/** `GET /api/pipeline/history`: the last minutes, oldest first; all arrays have the same length. */
export interface PipelineHistory {
  readonly atMs: readonly number[];
  /** By `counters.<name>`, `gauges.<name>`, `histograms.<name>.sum` and `histograms.<name>.<bucket>`. */
  readonly series: Readonly<Record<string, readonly number[]>>;
}
