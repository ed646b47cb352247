/** Which distributions are kept, and in which buckets. The counts lie in the counter table (counters.ts). */

export interface HistogramShape {
  /** For people: the help text of the metric. */
  readonly meaning: string;
  /** Upper bounds of the buckets, each included, ascending; what is beyond the last has a bucket of its own. */
  readonly bounds: readonly number[];
}

const SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const BYTES = [256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864];

/** The unit stands at the end of the name. A line here is all that a new histogram needs: see COUNTERS. */
export const HISTOGRAMS = {
  ack_seconds: { meaning: 'Time from the head of an accepted export request to its answer.', bounds: SECONDS },
  body_size_bytes: { meaning: 'Export bodies as they were sent.', bounds: BYTES },
  journal_commit_seconds: {
    meaning: 'Time from handing bodies to the journal until they are on disk.',
    bounds: SECONDS,
  },
  decode_task_seconds: { meaning: 'Time that a decode thread took for one task.', bounds: SECONDS },
  batch_runs: { meaning: 'Runs in a batch.', bounds: [1, 2, 5, 10, 25, 50, 75, 100, 250, 500, 1000, 5000, 10_000] },
  batch_size_bytes: { meaning: 'Batches before compression.', bounds: BYTES },
  upload_seconds: { meaning: 'Time that one attempt of an upload took.', bounds: SECONDS },
} as const satisfies Record<string, HistogramShape>;

export type HistogramName = keyof typeof HISTOGRAMS;

export const HISTOGRAM_NAMES = Object.keys(HISTOGRAMS) as readonly HistogramName[];

/** Since the start of the process. */
export interface HistogramTotals {
  /** Values in each bucket alone (not cumulated); one more than there are bounds. */
  readonly counts: readonly number[];
  /** Of all values. */
  readonly sum: number;
}

/** The bucket of a value. */
export function bucketOf(bounds: readonly number[], value: number): number {
  let bucket = 0;
  while (bucket < bounds.length && value > (bounds[bucket] ?? 0)) bucket++;
  return bucket;
}
