/** The histogram of latencies: percentiles from it, and the rectangle of it that a person dragged. */
import type { Stats } from '../../../../backend/api.ts';

/** The latency that a share of traces stays below, within its bucket on a logarithmic scale; null without any. */
export function percentile({ bounds_ms: bounds, counts }: Stats['latency'], share: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let before = 0;
  for (const [index, count] of counts.entries()) {
    if (count > 0 && before + count >= share * total) {
      const [low, high] = edges(bounds, index);
      const within = (share * total - before) / count;
      return low * (high / low) ** Math.max(0, within);
    }
    before += count;
  }
  return null;
}

/** Of bucket `index`, in milliseconds; the outer ones get an end, for a scale to have one. */
export function edges(bounds: readonly number[], index: number): [low: number, high: number] {
  const low = bounds[index - 1] ?? (bounds[0] ?? 1) / 2;
  return [low, bounds[index] ?? low * 2];
}

export interface DraggedRange {
  readonly since: string;
  readonly until: string;
  readonly min_duration_ms: string;
  readonly max_duration_ms: string;
}

/**
 * Parameters of a filter for what was dragged over: times in seconds, heights in buckets (2.4 lies within the third).
 * Without heights only the time counts.
 */
export function rangeOf(
  bounds: readonly number[],
  [fromS, toS]: readonly [number, number],
  heights: readonly [number, number] | null,
): DraggedRange {
  const low = heights === null ? undefined : bounds[Math.floor(Math.max(0, heights[0])) - 1];
  const high = heights === null ? undefined : bounds[Math.ceil(heights[1]) - 1];
  return {
    since: String(Math.max(0, Math.floor(fromS * 1000))),
    until: String(Math.max(0, Math.ceil(toS * 1000))),
    min_duration_ms: low === undefined ? '' : String(low),
    max_duration_ms: high === undefined ? '' : String(high),
  };
}
