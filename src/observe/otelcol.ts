/**
 * The figures under the names that dashboards for the OpenTelemetry Collector query: those of its own Prometheus endpoint
 * as it comes, which puts neither `_total` nor a unit behind them
 * (https://opentelemetry.io/docs/collector/internal-telemetry/). What we have nothing to say about is left out.
 */
import { DROP_COUNTER_NAMES } from '../core/counters.ts';
import { HISTOGRAMS, type HistogramName } from '../core/histograms.ts';
import { SECOND_MS } from '../core/units.ts';
import type { Family, Labels } from './exposition.ts';
import type { Figurebook } from './figures.ts';

const RECEIVER: Labels = { receiver: 'otlp', transport: 'http' };
const PROCESSOR: Labels = { processor: 'batch' };
const EXPORTER: Labels = { exporter: 'runs' };
const QUEUE: Labels = { exporter: 'runs', data_type: 'traces' };

/** Spans that the operator or the sender wants dropped are no loss. */
const WANTED_DROPS = new Set(['dropped_converter-dropped', 'dropped_filtered', 'dropped_duplicate']);
const LOSS_NAMES = DROP_COUNTER_NAMES.filter((name) => !WANTED_DROPS.has(name));

export function otelcolFamilies(figures: Figurebook, service: Labels): Family[] {
  const counters = figures.counters();
  const gauges = figures.gauges();
  const histograms = figures.histograms();
  const count = (name: string): number => counters[name] ?? 0;
  const gauge = (name: string): number => gauges[name] ?? 0;
  const single =
    (type: 'plain-counter' | 'gauge') =>
    (name: string, help: string, labels: Labels, value: number): Family => ({
      type,
      name: `otelcol_${name}`,
      help,
      samples: [{ labels: { ...labels, ...service }, value }],
    });
  const counter = single('plain-counter');
  const level = single('gauge');
  const distribution = (name: string, help: string, labels: Labels, histogram: HistogramName): Family => {
    const { counts = [], sum = 0 } = histograms[histogram] ?? {};
    const { bounds } = HISTOGRAMS[histogram];
    const samples = [{ labels: { ...labels, ...service }, bounds, counts, sum }];
    return { type: 'histogram', name: `otelcol_${name}`, help, samples };
  };
  const items = { ...PROCESSOR, otel_signal: 'traces' };
  const seconds = (ms: number): number => ms / SECOND_MS;

  return [
    counter('receiver_accepted_spans', 'Spans that were acknowledged.', RECEIVER, count('spans_accepted')),
    counter(
      'receiver_refused_spans',
      'Spans that were rejected one by one, and those already decoded of bodies that were put off.',
      RECEIVER,
      count('spans_invalid') + count('spans_put_off'),
    ),
    counter('processor_incoming_items', 'Spans that assembly took.', items, count('records_read')),
    counter('processor_outgoing_items', 'Runs that were put into a batch.', items, count('runs_batched')),
    counter(
      'processor_dropped_spans',
      'Acknowledged spans that were lost, whyever; what filters and converters leave out is none.',
      PROCESSOR,
      LOSS_NAMES.reduce((sum, name) => sum + count(name), 0),
    ),
    distribution('processor_batch_batch_send_size', 'Runs in a batch.', PROCESSOR, 'batch_runs'),
    distribution(
      'processor_batch_batch_send_size_bytes',
      'Bytes of a batch before compression.',
      PROCESSOR,
      'batch_size_bytes',
    ),
    counter(
      'processor_batch_batch_size_trigger_send',
      'Batches closed because they were full.',
      PROCESSOR,
      count('batches_sealed_full'),
    ),
    counter(
      'processor_batch_timeout_trigger_send',
      'Batches closed because their time was over.',
      PROCESSOR,
      count('batches_sealed_late'),
    ),
    level('processor_batch_metadata_cardinality', 'API keys in use.', PROCESSOR, gauge('tenants')),
    counter('exporter_sent_spans', 'Runs that the backend has.', EXPORTER, count('runs_delivered')),
    counter(
      'exporter_send_failed_spans',
      'Runs in failed attempts to upload; most of them are delivered later.',
      EXPORTER,
      count('upload_failed_runs'),
    ),
    counter(
      'exporter_enqueue_failed_spans',
      'Runs that were dropped since nothing could hold them any longer.',
      EXPORTER,
      count('dropped_spool-full'),
    ),
    level(
      'exporter_queue_size',
      'Bytes of compressed batches in memory and in the spool.',
      QUEUE,
      gauge('heldBytes') + gauge('spoolBytes'),
    ),
    level(
      'exporter_queue_capacity',
      'Bytes that memory and spool take.',
      QUEUE,
      (figures.limits['heldBytes'] ?? 0) + (figures.limits['spoolBytes'] ?? 0),
    ),
    level('exporter_in_flight_requests', 'Uploads in flight.', EXPORTER, gauge('inFlightUploads')),
    counter('process_uptime', 'Age of the process in seconds.', {}, seconds(gauge('uptimeMs'))),
    counter('process_cpu_seconds', 'CPU time, user and system, in seconds.', {}, seconds(gauge('cpuMs'))),
    level('process_memory_rss', 'Resident memory in bytes.', {}, gauge('rssBytes')),
    level('process_runtime_heap_alloc_bytes', 'JavaScript heap in use by the main thread.', {}, gauge('heapUsedBytes')),
    level(
      'process_runtime_total_sys_memory_bytes',
      'JavaScript heap reserved by the main thread, and its buffers.',
      {},
      gauge('heapTotalBytes') + gauge('externalBytes'),
    ),
  ];
}
