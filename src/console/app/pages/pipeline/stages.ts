/** The boxes of the picture: what each stage does, and the figures that tell how it fares. */
import { bytes, compact, count, duration } from '../../parts/format.ts';
import { amount, perSecond } from './figures.ts';
import type { StageId } from './health.ts';
import { namesWith, type View } from './view.ts';

export interface Stage {
  readonly id: StageId;
  readonly title: string;
  /** Where it runs and what it does. */
  readonly does: string;
  /** Spans a second. */
  readonly rate: number;
  readonly fill: Fill | null;
  readonly facts: readonly Fact[];
}

export interface Fill {
  readonly label: string;
  /** 0 to 1. */
  readonly ratio: number;
  readonly text: string;
}

export type Fact = readonly [label: string, value: string];

export function stagesOf(view: View, endpoint: string): Stage[] {
  const { gauge, rate, total } = view;
  return [
    {
      id: 'accept',
      title: 'Accept',
      does: 'Main thread: sockets, admission, answers.',
      rate: rate('spans_accepted'),
      fill: fillOf(view, 'admittedBytes', 'bodies under way'),
      facts: [
        ['requests', `${perSecond(rate('requests'))}/s`],
        ['ack p50', time(view, 'ack_seconds', 0.5)],
        ['ack p99', time(view, 'ack_seconds', 0.99)],
        ['turned away', lately(view, 'requests_busy', 'requests_refused')],
      ],
    },
    {
      id: 'decode',
      title: 'Decode',
      does: 'A pool of threads: spans to the runs’ JSON.',
      rate: rate('records_written'),
      fill: fillOf(view, 'decodeThreads', 'threads alive', (value) => count(value)),
      facts: [
        ['bodies', `${perSecond(rate('decode_bodies'))}/s`],
        ['waiting', `${compact(gauge('decodingBodies'))} bodies`],
        ['task p95', time(view, 'decode_task_seconds', 0.95)],
        ['restarts', count(total('decode_workers_lost'))],
      ],
    },
    {
      id: 'rings',
      title: 'Rings',
      does: 'Shared memory, one ring a decode thread and shard.',
      rate: rate('records_written'),
      fill: fillOf(view, 'backlogBytes', 'rings'),
      facts: [
        ['records', `${bytes(Math.round(rate('record_bytes')))}/s`],
        ['waits for room', lately(view, 'ring_full_waits')],
        ['too large', lately(view, 'oversize_records')],
      ],
    },
    {
      id: 'assemble',
      title: 'Assemble',
      does: 'Shippers: parents, order, waiting for ancestors.',
      rate: rate('records_read'),
      fill: fillOf(view, 'parkedBytes', 'waiting spans'),
      facts: [
        ['waiting', `${compact(gauge('parkedRecords'))} spans`],
        ['traces known', compact(gauge('rememberedTraces'))],
        ['orphaned', lately(view, 'runs_orphaned')],
      ],
    },
    {
      id: 'batch',
      title: 'Batch, zstd',
      does: 'Shippers: few large batches, zstd.',
      rate: rate('runs_batched'),
      fill: fillOf(view, 'heldBytes', 'batches held'),
      facts: [
        ['runs a batch', mean(view, 'batch_runs')],
        ['compression', compression(view)],
        ['in open batches', `${compact(gauge('openRuns'))} runs`],
        ['closed full', share(view, 'batches_sealed_full', 'batches_sealed')],
      ],
    },
    {
      id: 'upload',
      title: 'Upload',
      does: 'Shippers: attempts, retries, back-off.',
      rate: rate('runs_delivered') + rate('upload_failed_runs'),
      fill: fillOf(view, 'inFlightUploads', 'in flight', (value) => count(value)),
      facts: [
        ['uploads', `${perSecond(rate('upload_attempts'))}/s`],
        ['p95', time(view, 'upload_seconds', 0.95)],
        ['retries', lately(view, 'upload_retries')],
        ['restarts', count(total('ship_workers_lost'))],
      ],
    },
    {
      id: 'backend',
      title: 'Backend',
      does: endpoint,
      rate: rate('runs_delivered'),
      fill: null,
      facts: [
        ['delivered', compact(total('runs_delivered'))],
        [
          'last',
          gauge('lastDeliveredMs') === 0 ? '–' : amount('lastDeliveredMs', gauge('lastDeliveredMs'), view.now.atMs),
        ],
        ['2xx', lately(view, 'uploads_2xx')],
        ['failed', lately(view, 'upload_failures')],
      ],
    },
  ];
}

/** The way beside: what waits on disk, under whatever figures this process has of it. */
export function spoolOf(view: View): Stage {
  const bound = namesWith(view.now.gauges, 'spoolBytes', 'journalBytes').find((name) => view.limit(name) !== null);
  const onDisk = namesWith(view.now.gauges, 'spool', 'journal').filter((name) => !/State$/.test(name));
  return {
    id: 'spool',
    title: 'Spool',
    does: 'Disk: what the backend does not take now, and what it never will.',
    rate: view.rate('runs_spooled'),
    fill: bound === undefined ? null : fillOf(view, bound, 'disk'),
    facts: [
      ['put aside', `${compact(view.gauge('shelvedBatches'))} batches`],
      ['spooled', `${compact(view.total('runs_spooled'))} runs`],
      ['sent again', `${compact(view.total('runs_replayed'))} runs`],
      ['dead letters', `${compact(view.total('runs_dead_lettered'))} runs`],
      ...onDisk.map((name): Fact => [spaced(name), amount(name, view.gauge(name), view.now.atMs)]),
    ],
  };
}

/** `spoolOldestMs` → `spool oldest`. */
function spaced(name: string): string {
  return name
    .replace(/(Bytes|Ms|Ratio)$/, '')
    .replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)
    .replaceAll('_', ' ');
}

function fillOf(view: View, gauge: string, label: string, show: (value: number) => string = bytes): Fill | null {
  const ratio = view.fill(gauge);
  if (ratio === null) return null;
  return { label, ratio: Math.min(1, ratio), text: `${show(view.gauge(gauge))} of ${show(view.limit(gauge) ?? 0)}` };
}

function time(view: View, histogram: string, ratio: number): string {
  const seconds = view.quantile(histogram, ratio);
  return seconds === null ? '–' : duration(seconds * 1000);
}

function mean(view: View, histogram: string): string {
  const value = view.mean(histogram);
  return value === null ? '–' : compact(Number(value.toFixed(value < 10 ? 1 : 0)));
}

function compression(view: View): string {
  const compressed = view.lately('batch_compressed_bytes');
  return compressed === 0 ? '–' : `${(view.lately('batch_bytes') / compressed).toFixed(1)} ×`;
}

function share(view: View, part: string, whole: string): string {
  const of = view.lately(whole);
  return of === 0 ? '–' : `${Math.round((100 * view.lately(part)) / of)} %`;
}

function lately(view: View, ...counters: readonly string[]): string {
  return `${compact(counters.reduce((sum, counter) => sum + view.lately(counter), 0))} /min`;
}
