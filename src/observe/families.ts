/**
 * The registry as metric families under names of our own, `collector_proxy_…`: every counter, gauge and histogram there is,
 * so that a new one shows without a line here. Names for collector dashboards are in otelcol.ts.
 */
import { COUNTERS, type CounterName } from '../core/counters.ts';
import { HISTOGRAM_NAMES, HISTOGRAMS } from '../core/histograms.ts';
import type { Figures } from '../core/pipeline.ts';
import { SECOND_MS } from '../core/units.ts';
import type { Family } from './exposition.ts';
import type { Figurebook } from './figures.ts';

const PREFIX = 'collector_proxy_';

/** Counters that are one metric: all whose name begins so, told apart by a label. */
const labelled = [
  { beginning: 'dropped_', name: 'spans_dropped', label: 'reason', help: 'Acknowledged spans that make no run.' },
  { beginning: 'refused_', name: 'requests_refused', label: 'code', help: COUNTERS.requests_refused },
  { beginning: 'busy_', name: 'requests_busy', label: 'code', help: COUNTERS.requests_busy },
  { beginning: 'uploads_', name: 'upload_answers', label: 'class', help: 'Answers to attempts of uploads.' },
  {
    beginning: 'api_refused_',
    name: 'api_requests_refused',
    label: 'code',
    help: 'Requests to the deployment API that were refused.',
  },
  { beginning: 'ended_', name: 'graph_runs_ended', label: 'status', help: COUNTERS.graph_runs_ended },
] as const;
/** Sums of the above, which the reader can form. */
const sums: ReadonlySet<string> = new Set<CounterName>(['requests_refused', 'requests_busy', 'graph_runs_ended']);

export function ownFamilies(figures: Figurebook): Family[] {
  const counters = figures.counters();
  return [
    ...counterFamilies(counters),
    heldFamily(counters, figures.gauges()),
    ...gaugeFamilies(figures),
    ...limitFamilies(figures.limits),
    ...histogramFamilies(figures),
  ];
}

function counterFamilies(counters: Figures): Family[] {
  const families: Family[] = labelled.map(({ beginning, name, label, help }) => ({
    type: 'counter',
    name: PREFIX + name,
    help,
    samples: Object.entries(counters)
      .filter(([counter]) => counter.startsWith(beginning))
      .map(([counter, value]) => ({ labels: { [label]: counter.slice(beginning.length) }, value })),
  }));
  for (const [counter, help] of Object.entries(COUNTERS)) {
    if (sums.has(counter) || labelled.some(({ beginning }) => counter.startsWith(beginning))) continue;
    const samples = [{ labels: {}, value: counters[counter] ?? 0 }];
    families.push({ type: 'counter', name: PREFIX + counter, help, samples });
  }
  return families;
}

/**
 * Where the spans are that are neither delivered nor dropped. With it the law can be seen, in a moment of rest exactly:
 * accepted + unacknowledged + inherited = delivered + dropped + held.
 */
function heldFamily(counters: Figures, gauges: Figures): Family {
  const inRings =
    (counters['records_written'] ?? 0) + (counters['oversize_records'] ?? 0) - (counters['records_read'] ?? 0);
  const places = {
    rings: Math.max(0, inRings),
    waiting: gauges['parkedRecords'] ?? 0,
    batches: gauges['openRuns'] ?? 0,
    // What is in the spool counts as held, also while it is on its way from there.
    uploads: Math.max(0, (gauges['heldRuns'] ?? 0) - (gauges['spooledRuns'] ?? 0)),
    spool: gauges['spooledRuns'] ?? 0,
  };
  return {
    type: 'gauge',
    name: `${PREFIX}spans_held`,
    help: 'Acknowledged spans that are neither delivered nor dropped, by where they are.',
    samples: Object.entries(places).map(([place, value]) => ({ labels: { place }, value })),
  };
}

function gaugeFamilies(figures: Figurebook): Family[] {
  const gauges = figures.gauges();
  const shards = figures.shards();
  return Object.entries(figures.gaugeMeanings).map(([gauge, help]) => {
    const isOfShards = figures.shardGaugeNames.has(gauge);
    const { name, value } = inBaseUnit(gauge, isOfShards);
    return {
      type: 'gauge',
      name,
      help,
      samples: isOfShards
        ? shards.map((shard, index) => ({ labels: { shard: String(index) }, value: value(shard[gauge] ?? 0) }))
        : [{ labels: {}, value: value(gauges[gauge] ?? 0) }],
    };
  });
}

function limitFamilies(limits: Figures): Family[] {
  return Object.entries(limits).map(([gauge, limit]) => {
    const { name, value } = inBaseUnit(gauge, false);
    const help = `What ${name} can reach, over all shards.`;
    return { type: 'gauge', name: `${name}_limit`, help, samples: [{ labels: {}, value: value(limit) }] };
  });
}

function histogramFamilies(figures: Figurebook): Family[] {
  const totals = figures.histograms();
  return HISTOGRAM_NAMES.map((histogram) => {
    const { meaning, bounds } = HISTOGRAMS[histogram];
    const { counts = [], sum = 0 } = totals[histogram] ?? {};
    const samples = [{ labels: {}, bounds, counts, sum }];
    return { type: 'histogram', name: PREFIX + histogram, help: meaning, samples };
  });
}

/** `heldBytes` → `…held_bytes`; milliseconds become seconds, those of shards, which are Unix times, `…_timestamp_seconds`. */
function inBaseUnit(gauge: string, isOfShards: boolean): { name: string; value: (value: number) => number } {
  const isTime = gauge.endsWith('Ms');
  const words = (isTime ? gauge.slice(0, -2) : gauge).replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const unit = isTime ? (isOfShards ? '_timestamp_seconds' : '_seconds') : '';
  return { name: PREFIX + words + unit, value: isTime ? (ms) => ms / SECOND_MS : (value) => value };
}
