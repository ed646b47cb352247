/** Quantiles of a distribution that is kept in buckets. */

/**
 * Within its bucket a value is taken to lie in proportion; beyond the last bound there is no telling, so that bound itself is
 * the answer. Null when nothing was counted.
 */
export function quantile(bounds: readonly number[], counts: readonly number[], ratio: number): number | null {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let left = ratio * total;
  for (const [bucket, count] of counts.entries()) {
    if (count === 0) continue;
    if (left > count && bucket < counts.length - 1) {
      left -= count;
      continue;
    }
    const low = bounds[bucket - 1] ?? 0;
    const high = bounds[bucket];
    return high === undefined ? low : low + (high - low) * Math.min(1, left / count);
  }
  return bounds.at(-1) ?? null;
}
