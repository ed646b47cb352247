/** What is drawn over time, and from which figures. Figures that this process does not have are left out. */
import { bytes, compact, duration } from '../../parts/format.ts';
import { quantile } from './quantile.ts';
import type { Track } from './track.ts';
import { namesWith, type View } from './view.ts';

export interface ChartSpec {
  readonly id: string;
  readonly title: string;
  readonly meaning: string;
  readonly lines: readonly LineSpec[];
  readonly format: (value: number) => string;
  /** The scale reaches at least this far. */
  readonly reach?: number;
}

export interface LineSpec {
  readonly label: string;
  /** Null where there is nothing to say. */
  readonly valueAt: (row: number) => number | null;
}

/** Rates are smoothed over it: batches leave in bursts. */
const SMOOTH_MS = 3000;
/** Quantiles and means need some values. */
const GATHER_MS = 10_000;

export function chartsOf(view: View, track: Track): ChartSpec[] {
  const { counters, gauges } = view.now;
  const rateOf =
    (...names: readonly string[]) =>
    (row: number): number =>
      names.reduce((sum, name) => sum + (track.rate(`counters.${name}`, SMOOTH_MS, row) ?? 0), 0);
  const gaugeOf = (name: string) => (row: number) => track.column(`gauges.${name}`)[row] ?? null;
  const quantileOf = (histogram: string, ratio: number) => {
    const bounds = view.snapshot.meanings.histograms[histogram]?.bounds ?? [];
    const series = [...bounds, Infinity].map((_, bucket) => `histograms.${histogram}.${bucket}`);
    return (row: number): number | null =>
      quantile(
        bounds,
        series.map((name) => track.growth(name, GATHER_MS, row)),
        ratio,
      );
  };
  const ratioOf = (over: string, under: string) => (row: number) => {
    const [above, below] = [over, under].map((name) => track.growth(`counters.${name}`, GATHER_MS, row));
    return above && below ? above / below : null;
  };
  const known = (lines: readonly (LineSpec & { readonly gauge: string })[]): LineSpec[] =>
    lines.filter(({ gauge }) => gauges[gauge] !== undefined);
  const a = (value: number): string => (value < 10 ? String(Number(value.toFixed(1))) : compact(Math.round(value)));

  return [
    {
      id: 'flow',
      title: 'Spans a second',
      meaning: 'Taken from clients, delivered to the backend, dropped.',
      format: a,
      lines: [
        { label: 'accepted', valueAt: rateOf('spans_accepted') },
        { label: 'delivered', valueAt: rateOf('runs_delivered') },
        { label: 'dropped', valueAt: rateOf(...namesWith(counters, 'dropped_')) },
      ],
    },
    {
      id: 'ack',
      title: 'Time to acknowledge',
      meaning: 'From the head of an export request to its answer.',
      format: (seconds) => duration(seconds * 1000),
      lines: [
        { label: 'p50', valueAt: quantileOf('ack_seconds', 0.5) },
        { label: 'p95', valueAt: quantileOf('ack_seconds', 0.95) },
        { label: 'p99', valueAt: quantileOf('ack_seconds', 0.99) },
      ],
    },
    {
      id: 'fill',
      title: 'Fill',
      meaning: 'How much of each bound is used.',
      format: (percent) => `${a(percent)} %`,
      reach: 100,
      lines: Object.keys(view.snapshot.limits)
        .filter((name) => name.endsWith('Bytes'))
        .map((name) => ({
          label: BOUND_LABELS[name] ?? name,
          valueAt: (row) => (100 * (track.column(`gauges.${name}`)[row] ?? 0)) / (view.limit(name) || 1),
        })),
    },
    {
      id: 'held',
      title: 'Spans held',
      meaning: 'Waiting for an ancestor, in open batches, in closed batches, in the spool.',
      format: a,
      lines: known([
        { gauge: 'parkedRecords', label: 'waiting', valueAt: gaugeOf('parkedRecords') },
        { gauge: 'openRuns', label: 'open', valueAt: gaugeOf('openRuns') },
        { gauge: 'heldRuns', label: 'closed', valueAt: gaugeOf('heldRuns') },
        { gauge: 'spooledRuns', label: 'spool', valueAt: gaugeOf('spooledRuns') },
      ]),
    },
    {
      id: 'trouble',
      title: 'Trouble a second',
      meaning: 'Requests put off and refused, uploads that failed and were tried again.',
      format: a,
      lines: [
        { label: 'put off', valueAt: rateOf('requests_busy') },
        { label: 'refused', valueAt: rateOf('requests_refused') },
        { label: 'failed', valueAt: rateOf('upload_failures') },
        { label: 'retries', valueAt: rateOf('upload_retries') },
      ],
    },
    {
      id: 'uploads',
      title: 'Upload time',
      meaning: 'Of one attempt.',
      format: (seconds) => duration(seconds * 1000),
      lines: [
        { label: 'p50', valueAt: quantileOf('upload_seconds', 0.5) },
        { label: 'p95', valueAt: quantileOf('upload_seconds', 0.95) },
      ],
    },
    {
      id: 'batches',
      title: 'Batches',
      meaning: 'Runs in a batch, and how many times smaller compression makes it.',
      format: a,
      lines: [
        { label: 'runs', valueAt: ratioOf('runs_batched', 'batches_sealed') },
        { label: 'compression', valueAt: ratioOf('batch_bytes', 'batch_compressed_bytes') },
      ],
    },
    {
      id: 'memory',
      title: 'Memory',
      meaning: 'Of the process, and of the main thread’s heap.',
      format: bytes,
      lines: known([
        { gauge: 'rssBytes', label: 'resident', valueAt: gaugeOf('rssBytes') },
        { gauge: 'heapUsedBytes', label: 'heap', valueAt: gaugeOf('heapUsedBytes') },
      ]),
    },
    {
      id: 'cpu',
      title: 'Processor',
      meaning: 'Cores in use by all threads.',
      format: a,
      lines: known([
        {
          gauge: 'cpuMs',
          label: 'cores',
          valueAt: (row) => {
            const perSecond = track.rate('gauges.cpuMs', SMOOTH_MS, row);
            return perSecond === null ? null : perSecond / 1000;
          },
        },
      ]),
    },
  ];
}

const BOUND_LABELS: Readonly<Record<string, string>> = {
  admittedBytes: 'bodies',
  backlogBytes: 'rings',
  parkedBytes: 'waiting',
  heldBytes: 'batches',
  spoolBytes: 'spool',
  journalBytes: 'journal',
};
