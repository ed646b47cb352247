/** How long to wait before trying again. */
import { SECOND_MS } from '../core/units.ts';

export const MAX_BACKOFF_MS = 30 * SECOND_MS;

/** Full jitter: anywhere from nothing to the base doubled `retry` times, so that clients do not come back in step. */
export function backoffMs(baseMs: number, retry: number, random: () => number): number {
  return random() * Math.min(MAX_BACKOFF_MS, baseMs * 2 ** retry);
}

/** Between two probes of a tenant whose uploads fail: doubles up to the same bound; at least half of it is waited. */
export function probeIntervalMs(failures: number, random: () => number): number {
  return (0.5 + random() / 2) * Math.min(MAX_BACKOFF_MS, SECOND_MS * 2 ** failures);
}
