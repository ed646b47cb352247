/** Counts over the traces that pass a filter: totals, latencies, and both over time. See `Stats` in api.ts. */
import type { DatabaseSync } from 'node:sqlite';
import { MS_US, SECOND_US } from '../core/units.ts';
import type { Stats, Status } from './api.ts';
import { type Filter, traceCondition } from './filter.ts';
import { writeRfc3339 } from './moment.ts';

const BOUNDS_MS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000,
] as const;

/** The number of the bucket that a duration falls into. */
const BUCKET_SQL = `CASE ${BOUNDS_MS.map((ms, index) => `WHEN duration_us < ${ms * MS_US} THEN ${index}`).join(' ')} ELSE ${BOUNDS_MS.length} END`;

/** Widths of time buckets that a person can read, in seconds. */
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400];

interface Totals {
  traces: number;
  runs: number | null;
  success: number | null;
  error: number | null;
  pending: number | null;
  failed: number | null;
  tokens: number | null;
  cost: number | null;
  first_us: number | null;
  last_us: number | null;
}

interface Cell {
  slot: number;
  latency: number;
  ended: number;
  traces: number;
  failed: number;
}

export function readStats(database: DatabaseSync, filter: Filter, maxBucketCount: number): Omit<Stats, 'store'> {
  const { sql, values } = traceCondition(filter);
  const totals = database
    .prepare(
      `SELECT count(*) AS traces, sum(run_count) AS runs, sum(status = 'success') AS success,
         sum(status = 'error') AS error, sum(status = 'pending') AS pending, sum(error_count > 0) AS failed,
         sum(total_tokens) AS tokens, sum(cost) AS cost, min(start_us) AS first_us, max(start_us) AS last_us
       FROM traces WHERE ${sql}`,
    )
    .get(...values) as unknown as Totals;
  const firstUs = filter.sinceUs ?? totals.first_us ?? 0;
  const endUs = filter.untilUs ?? (totals.last_us ?? 0) + 1;
  const bucketUs = bucketWidth(endUs - firstUs, maxBucketCount);
  const originUs = Math.floor(firstUs / bucketUs) * bucketUs;
  const cells = database
    .prepare(
      `SELECT CAST((start_us - ?) / ? AS INTEGER) AS slot, ${BUCKET_SQL} AS latency, duration_us IS NOT NULL AS ended,
         count(*) AS traces, sum(error_count > 0) AS failed
       FROM traces WHERE ${sql} GROUP BY 1, 2, 3`,
    )
    .all(originUs, bucketUs, ...values) as unknown as Cell[];

  const counts = emptyCounts();
  const slotCount = totals.traces === 0 ? 0 : Math.ceil((endUs - originUs) / bucketUs);
  const slots = Array.from({ length: slotCount }, () => ({ traces: 0, failed: 0, latency: emptyCounts() }));
  for (const cell of cells) {
    const slot = slots[cell.slot];
    if (slot === undefined) continue;
    slot.traces += cell.traces;
    slot.failed += cell.failed;
    if (cell.ended === 0) continue;
    slot.latency[cell.latency] = (slot.latency[cell.latency] ?? 0) + cell.traces;
    counts[cell.latency] = (counts[cell.latency] ?? 0) + cell.traces;
  }
  const byStatus: Record<Status, number> = {
    success: totals.success ?? 0,
    error: totals.error ?? 0,
    pending: totals.pending ?? 0,
  };
  return {
    trace_count: totals.traces,
    run_count: totals.runs ?? 0,
    by_status: byStatus,
    error_trace_count: totals.failed ?? 0,
    total_tokens: totals.tokens ?? 0,
    total_cost: totals.cost,
    latency: { bounds_ms: BOUNDS_MS, counts },
    time: {
      bucket_ms: bucketUs / MS_US,
      buckets: slots.map((slot, index) => ({
        start_time: writeRfc3339(originUs + index * bucketUs),
        trace_count: slot.traces,
        error_trace_count: slot.failed,
        latency_counts: slot.latency,
      })),
    },
  };
}

/** The smallest readable width that covers the span with so many buckets, plus one for the alignment. */
function bucketWidth(spanUs: number, maxBucketCount: number): number {
  const exactS = Math.max(0, spanUs) / SECOND_US / Math.max(1, maxBucketCount - 1);
  const dayS = STEPS_S.at(-1) ?? 1;
  return (STEPS_S.find((step) => step >= exactS) ?? Math.ceil(exactS / dayS) * dayS) * SECOND_US;
}

function emptyCounts(): number[] {
  return Array.from({ length: BOUNDS_MS.length + 1 }, () => 0);
}
