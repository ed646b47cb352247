/** Timestamps of a run's events: RFC 3339, UTC, six digits. */
import type { Writer } from './writer.ts';

const SECOND_US = 1_000_000;
/** Last microsecond of the year 9999, beyond which the format has no name for a year. */
const MAX_SECONDS = 253_402_300_799;

/** Writes a quoted timestamp. */
export function writeTime(us: number, out: Writer): void {
  const seconds = Math.min(Math.floor(us / SECOND_US), MAX_SECONDS);
  const rest = Math.min(Math.max(us - seconds * SECOND_US, 0), SECOND_US - 1);
  const date = new Date(seconds * 1000).toISOString().slice(0, 19);
  out.text(`"${date}.${String(rest).padStart(6, '0')}Z"`);
}
