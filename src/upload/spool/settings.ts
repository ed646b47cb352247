/** What the spool of one shipper is made of the operator's wishes. */
import { KiB, MiB } from '../../core/units.ts';
import type { DeadLetterSettings } from './deadletters.ts';
import { deadFolder, inboxFolder, shardFolder } from './home.ts';
import type { SpoolSettings } from './spool.ts';

/** Travels in `workerData`. */
export interface SpoolWishes {
  readonly folder: string;
  /** Of this shard, dead letters included. */
  readonly maxBytes: number;
  /** Of all dead letters. */
  readonly maxDeadBytes: number;
  readonly maxAgeMs: number;
}

/** Of SPOOL_MAX_BYTES, for dead letters. */
export const DEAD_RATIO = 1 / 8;
/** A power cut costs what was spooled within it. */
export const SYNC_INTERVAL_MS = 500;
/** What goes at once when the spool is full is no more than a sixteenth of it. */
const SEGMENTS_PER_LIMIT = 16;
const MIN_SEGMENT_BYTES = 64 * KiB;
const MAX_SEGMENT_BYTES = 64 * MiB;
const DEAD_SEGMENT_BYTES = 4 * MiB;

export function spoolSettings({ folder, maxBytes, maxAgeMs }: SpoolWishes, shard: number): SpoolSettings {
  return {
    folder: shardFolder(folder, shard),
    inbox: shard === 0 ? inboxFolder(folder) : null,
    label: `s${shard}`,
    maxBytes,
    maxAgeMs,
    segmentBytes: within(maxBytes / SEGMENTS_PER_LIMIT, MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES),
    syncIntervalMs: SYNC_INTERVAL_MS,
  };
}

export function deadLetterSettings(wishes: SpoolWishes, shard: number): DeadLetterSettings {
  const { folder, maxDeadBytes, maxAgeMs } = wishes;
  return {
    folder: deadFolder(folder),
    label: `dead${shard}`,
    segmentBytes: within(maxDeadBytes / SEGMENTS_PER_LIMIT, MIN_SEGMENT_BYTES, DEAD_SEGMENT_BYTES),
    syncIntervalMs: SYNC_INTERVAL_MS,
    limits: shard === 0 ? { maxBytes: maxDeadBytes, maxAgeMs } : null,
  };
}

function within(value: number, min: number, max: number): number {
  return Math.min(max, Math.max(min, Math.floor(value)));
}
