/**
 * Counters and histograms of all threads in one piece of shared memory: one row a thread, one column a figure. Each row has
 * a single writer, so plain loads and stores are enough (aligned 64-bit accesses do not tear on the platforms we run on);
 * readers sum the column and may be an instant behind.
 */
import { bucketOf, HISTOGRAM_NAMES, HISTOGRAMS, type HistogramName, type HistogramTotals } from './histograms.ts';
import { Fault } from './outcome.ts';

/**
 * Name → what is counted, for people: it is the help text of the metric. Order is the memory layout. A line here is all
 * that a new counter needs: `observe/` makes `collector_proxy_<name>_total` of it, or, for the families at its head, one
 * labelled metric (`dropped_…` by reason, `busy_…`, `refused_…` and `api_refused_…` by code, `uploads_…` by class of status,
 * `ended_…` by status of the graph run).
 */
export const COUNTERS = {
  // accept
  requests: 'Export requests whose head was read.',
  requests_refused: 'Export requests that were refused for good.',
  requests_busy: 'Export requests that were told to come back.',
  request_bytes: 'Bytes of export bodies as they were sent.',
  spans_accepted: 'Spans that were acknowledged.', // in the rings (or on disk)
  spans_invalid: 'Spans that were reported as rejected in a partial success.',
  refused_malformed: 'body or header that cannot be read',
  refused_unauthenticated: 'no API key',
  refused_forbidden: 'API key that is not allowed',
  'refused_not-found': 'unknown path',
  'refused_method-not-allowed': 'method other than POST',
  'refused_body-too-large': 'body over MAX_BODY_BYTES',
  'refused_unsupported-media-type': 'unknown Content-Type',
  'refused_unsupported-coding': 'unknown Content-Encoding',
  refused_internal: 'a defect of the proxy',
  'refused_set-aside': 'body that two decode threads died of',
  'busy_in-flight-limit': 'too many bytes between sockets and rings',
  'busy_rings-full': 'the pipeline behind is full',
  busy_starting: 'not started yet',
  busy_draining: 'shutting down',
  'busy_worker-lost': 'the decode thread died with the request in its hands',
  'busy_storage-unavailable': 'the journal cannot be written',
  'busy_journal-full': 'the journal has reached JOURNAL_MAX_BYTES',
  spans_put_off: 'Spans that were decoded already, of bodies that were then told to come back.',
  // decode
  decode_tasks: 'Tasks that decode threads did.',
  decode_bodies: 'Bodies in those tasks.',
  decode_bytes: 'Bytes of bodies after decompression.',
  records_written: 'Records that were put into the rings.',
  records_unacknowledged: 'Of these: of bodies that were then put off, so that their spans will come once more.',
  record_bytes: 'Bytes of records in the rings.',
  oversize_records: 'Records too large for a ring, sent by message.',
  ring_full_waits: 'Waits for room in a ring.',
  bodies_set_aside: 'Bodies that decode threads, or whole processes, died of, kept as dead letters.',
  // journal
  journal_bodies: 'Bodies that were written to the journal and flushed.',
  journal_bytes: 'Bytes of these, with what is written beside them.',
  journal_commits: 'Flushes of the journal; one serves all bodies that wait for it.',
  journal_failures: 'Writes, flushes, reads and removals of the journal that failed.',
  journal_segments_foreign: 'Segments of the journal that another version wrote, and that are left alone.',
  journal_bodies_damaged: 'Places in the journal that were damaged when it was read.',
  journal_bodies_replayed: 'Bodies of the journal that were decoded again.',
  journal_bodies_lost:
    'Bodies of the journal that could not be decoded again, nor kept as dead letters for want of room.',
  spans_replayed: 'Spans of these; they are accepted spans whose delivery is not known.',
  spans_reclaimed: 'Spans that a dead shipper had in memory, and that are taken from the journal again.',
  // assemble
  records_read: 'Records that shippers took, or that were lost on their way to one that died.',
  oversize_records_read: 'Records too large for a ring that shippers took.',
  runs_parked: 'Runs that had to wait for an ancestor.',
  runs_orphaned: 'Runs that left under a placeholder root.',
  times_clamped: 'Runs whose start was moved behind their parent’s.',
  // upload
  runs_batched: 'Runs that were put into a batch.',
  batches_sealed: 'Batches that were closed.',
  batches_sealed_full: 'Of these: because they were full.',
  batches_sealed_late: 'Of these: because FLUSH_INTERVAL_MS had passed.',
  batch_bytes: 'Bytes of batches before compression.',
  batch_compressed_bytes: 'Bytes of batches after compression.',
  upload_attempts: 'Attempts to upload a batch.',
  upload_retries: 'Attempts beyond the first of their batch.',
  upload_failures: 'Attempts without success.',
  upload_failed_runs: 'Runs in attempts without success; most of them are delivered later.',
  uploads_2xx: 'taken',
  uploads_3xx: 'redirects, which are not followed',
  uploads_4xx: 'refused',
  uploads_5xx: 'failed in the backend',
  uploads_none: 'no answer: not connected, cut off or too slow',
  runs_delivered: 'Runs that the backend has.',
  runs_delivered_again: 'Of these: the backend had them already (409).',
  batches_split: 'Batches that were halved to find what the backend refuses.',
  runs_spooled: 'Runs that were written to the spool.',
  runs_replayed: 'Runs that were taken from the spool again.',
  runs_inherited: 'Runs that an earlier process had left in the spool, and dead letters to be sent again.',
  spool_failures: 'Writes to the spool or the dead letters, and reads of them, that failed.',
  spool_records_damaged: 'Records in the spool that were torn or damaged when it was opened.',
  spool_segments_foreign: 'Segments in the spool that another version wrote, and that are left alone.',
  runs_dead_lettered: 'Runs that the backend refuses for good.',
  dead_letters_removed: 'Runs among the dead letters that were removed at a limit of the spool.',
  spans_held_at_exit: 'Spans that were neither delivered nor spooled at the end.',
  // every loss, by DropCode
  'dropped_converter-dropped': 'CONVERTER_MODULE returned null',
  'dropped_converter-failed': 'CONVERTER_MODULE failed for this span',
  dropped_filtered: 'FILTER_NON_GENAI',
  dropped_duplicate: 'span that was seen a moment ago',
  'dropped_rejected-by-backend': 'refused by the backend for good',
  dropped_oversize: 'too large for the backend, even when cut',
  'dropped_shutdown-deadline': 'not delivered when the process had to end',
  'dropped_spool-full': 'no room to hold it any longer, oldest first',
  'dropped_spool-expired': 'older than the spool keeps',
  'dropped_spool-damaged': 'damaged in the spool',
  'dropped_spool-purged': 'purged from the spool by command',
  'dropped_worker-lost': 'died with the thread that had it',
  // threads
  decode_workers_lost: 'Decode threads that died and were replaced.',
  ship_workers_lost: 'Uploading threads that died and were replaced.',
  // deployment API
  api_requests: 'Requests to the deployment API.',
  api_refused_malformed: 'body or path that cannot be read',
  api_refused_unauthenticated: 'no API key, or a wrong one',
  api_refused_forbidden: 'from another machine or page, while there are no API keys',
  'api_refused_not-found': 'no such path, assistant, thread, run or cron',
  'api_refused_method-not-allowed': 'method that the path does not have',
  api_refused_conflict: 'against what is there or in flight',
  'api_refused_too-large': 'body over 32 MiB',
  api_refused_invalid: 'field that is not as it must be',
  api_refused_internal: 'a defect of the deployment API, or its store failed',
  api_refused_unavailable: 'stopping, full, or a graph thread was lost',
  graph_attempts: 'Attempts at graph runs that were started.',
  graph_attempts_lost: 'Of these: ended with their thread.',
  graph_runs_ended: 'Graph runs that reached a final status, whichever.',
  ended_success: 'done',
  ended_error: 'failed',
  ended_timeout: 'took too long',
  ended_interrupted: 'interrupted by a client, or waiting for a human',
  graph_runs_failed: 'Of these: error or timeout.',
  graph_results_discarded: 'Ends of graph runs that had been deleted or taken over by another process meanwhile.',
  graph_workers_lost: 'Graph threads that died and were replaced.',
  graph_runs_untraced: 'Graph runs whose spans could not be sent.',
  stream_readers_cut: 'Readers of run streams that were cut for reading too slowly.',
  stream_events_lost: 'Events of resumable streams that could not be kept for replay.',
  crons_fired: 'Due times of crons that were taken up.',
  crons_fired_without_run: 'Of these: no run could be made.',
  webhooks_refused: 'URLs of webhooks that the policy refused.',
  webhooks_switched_off: 'Webhooks that were asked for while http.disable_webhooks is set.',
  webhook_attempts: 'Attempts to deliver a webhook.',
  webhooks_delivered: 'Webhooks that were delivered.',
  webhooks_failed: 'Webhooks that were given up.',
} as const;

export type CounterName = keyof typeof COUNTERS;

export const COUNTER_NAMES = Object.keys(COUNTERS) as readonly CounterName[];

/** One a kind of loss. */
export const DROP_COUNTER_NAMES = COUNTER_NAMES.filter((name) => name.startsWith('dropped_'));

/** Where one thread counts. */
export interface Counters {
  add(name: CounterName, amount?: number): void;
  /** One more value of a histogram; allocates nothing. */
  observe(name: HistogramName, value: number): void;
}

/** For those who do not want to know. */
export const uncounted: Counters = { add: () => undefined, observe: () => undefined };

/** A view of the whole table: hand `shared` to other threads and open it there. */
export interface CounterTable {
  readonly shared: SharedArrayBuffer;
  readonly rowCount: number;
  /** The row `row` as a writer; each row must have one thread writing it. */
  row(row: number): Counters;
  /** Sum over all rows. */
  total(name: CounterName): number;
  /** Of one row. */
  value(row: number, name: CounterName): number;
  /** All sums. */
  totals(): Record<CounterName, number>;
  /** Of all rows together. */
  histogram(name: HistogramName): HistogramTotals;
}

const columnOf = new Map<string, number>(COUNTER_NAMES.map((name, index) => [name, index]));
/** Of a histogram: one word a bucket (the last is for all beyond the bounds), then the sum of all values. */
const histogramColumnOf = new Map<string, number>();
/** Rows are padded to whole cache lines so that two writers never share one. */
const ROW_WORDS = Math.ceil(layOutHistograms(COUNTER_NAMES.length) / 8) * 8;

/** Returns the column behind the last. */
function layOutHistograms(firstColumn: number): number {
  let column = firstColumn;
  for (const name of HISTOGRAM_NAMES) {
    histogramColumnOf.set(name, column);
    column += HISTOGRAMS[name].bounds.length + 2;
  }
  return column;
}

export function createCounterTable(rowCount: number): CounterTable {
  return openCounterTable(new SharedArrayBuffer(rowCount * ROW_WORDS * Float64Array.BYTES_PER_ELEMENT));
}

export function openCounterTable(shared: SharedArrayBuffer): CounterTable {
  const words = new Float64Array(shared);
  const rowCount = words.length / ROW_WORDS;
  const sumOf = (column: number): number => {
    let sum = 0;
    for (let row = 0; row < rowCount; row++) sum += words[row * ROW_WORDS + column] ?? 0;
    return sum;
  };
  const total = (name: CounterName): number => sumOf(columnOf.get(name) ?? 0);
  return {
    shared,
    rowCount,
    row: (row) => {
      if (!(row >= 0 && row < rowCount)) throw new Fault(`counter row ${row} of ${rowCount}`);
      const base = row * ROW_WORDS;
      return {
        add: (name, amount = 1) => {
          const word = base + (columnOf.get(name) ?? 0);
          words[word] = (words[word] ?? 0) + amount;
        },
        observe: (name, value) => {
          const { bounds } = HISTOGRAMS[name];
          const first = base + (histogramColumnOf.get(name) ?? 0);
          const bucket = first + bucketOf(bounds, value);
          words[bucket] = (words[bucket] ?? 0) + 1;
          const sum = first + bounds.length + 1;
          words[sum] = (words[sum] ?? 0) + value;
        },
      };
    },
    total,
    value: (row, name) => words[row * ROW_WORDS + (columnOf.get(name) ?? 0)] ?? 0,
    totals: () => Object.fromEntries(COUNTER_NAMES.map((name) => [name, total(name)])) as Record<CounterName, number>,
    histogram: (name) => {
      const { bounds } = HISTOGRAMS[name];
      const first = histogramColumnOf.get(name) ?? 0;
      const counts = Array.from({ length: bounds.length + 1 }, (_, bucket) => sumOf(first + bucket));
      return { counts, sum: sumOf(first + bounds.length + 1) };
    },
  };
}
