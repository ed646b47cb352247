/** The oracle: what was acknowledged has arrived, what arrived was sent, and is what was sent. */
import type { BackendReport } from './backend.ts';
import type { SentRequest } from './sender.ts';

export interface Tally {
  readonly requestCount: number;
  readonly acknowledgedRequestCount: number;
  readonly acknowledgedSpanCount: number;
  readonly missingSpanCount: number;
  /** The first of them, in words. */
  readonly missing: readonly string[];
  readonly arrivedSpanCount: number;
  /** Arrived although nobody was told that they were taken: they need not, and may. */
  readonly unacknowledgedArrivedCount: number;
  /** Arrivals beyond the first. */
  readonly repeatedCount: number;
}

const MAX_TOLD = 20;

export function tally(requests: readonly SentRequest[], report: BackendReport): Tally {
  const arrivals = new Map(report.arrivals);
  const missing: string[] = [];
  let missingSpanCount = 0;
  let acknowledgedSpanCount = 0;
  let acknowledgedRequestCount = 0;
  let acknowledgedArrivedCount = 0;
  for (const { traceNumber, spans, acknowledgedMs } of requests) {
    if (acknowledgedMs === null) continue;
    acknowledgedRequestCount++;
    acknowledgedSpanCount += spans.length;
    const counts = arrivals.get(traceNumber);
    const absent = spans.filter((index) => (counts?.[index] ?? 0) === 0);
    acknowledgedArrivedCount += spans.length - absent.length;
    missingSpanCount += absent.length;
    if (absent.length === 0 || missing.length >= MAX_TOLD) continue;
    const place = `spans ${absent.slice(0, 10).join()} of ${spans.length} sent together`;
    missing.push(`trace ${traceNumber}, ${place}, acknowledged at ${(acknowledgedMs / 1000).toFixed(3)} s`);
  }
  let arrivedSpanCount = 0;
  let arrivalCount = 0;
  for (const counts of arrivals.values()) {
    for (const count of counts) {
      if (count > 0) arrivedSpanCount++;
      arrivalCount += count;
    }
  }
  return {
    requestCount: requests.length,
    acknowledgedRequestCount,
    acknowledgedSpanCount,
    missingSpanCount,
    missing,
    arrivedSpanCount,
    unacknowledgedArrivedCount: arrivedSpanCount - acknowledgedArrivedCount,
    repeatedCount: arrivalCount - arrivedSpanCount,
  };
}
