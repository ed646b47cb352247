/** A batch on its way, with what has been tried. It has one owner at a time: a lane, the shelf, or an attempt. */
import type { Batch } from './batch.ts';

/** Something that may be kept on the shelf although it is out of the shelf's hands. */
export interface Kept {
  /** Where the shelf that gave it out keeps it; the shelf's own. */
  slot: object | null;
  /** What it was split from, when that is kept somewhere. */
  origin: Origin | null;
}

/** A batch that was split: it is settled when its parts are. */
export interface Origin extends Kept {
  openParts: number;
}

export interface Parcel extends Kept {
  /** Replaced only by the same runs in another encoding, or by a run cut short. */
  batch: Batch;
  /** Attempts since it was sealed or split off. */
  attemptCount: number;
  /** Not to be tried again before. */
  dueMs: number;
  /** An earlier attempt may have arrived: a 409 then means delivered. */
  repeated: boolean;
  /** Its single run has been cut short once. */
  truncated: boolean;
  /** How it came to be attempted: `shelved` and `probe` get one attempt and go back to the shelf. */
  role: 'fresh' | 'shelved' | 'probe';
  /** The shelf has it, or had it until now. */
  onShelf: boolean;
  /** Successes of its lane when it was first tried: more since then mean that the trouble is its own. */
  lanesSuccesses: number;
}

export function createParcel(batch: Batch): Parcel {
  return {
    batch,
    attemptCount: 0,
    dueMs: 0,
    repeated: false,
    truncated: false,
    role: 'fresh',
    onShelf: false,
    lanesSuccesses: 0,
    slot: null,
    origin: null,
  };
}

/** The parts of a parcel. Where it is kept, it stays so until they are settled. */
export function partsOf({ slot, origin }: Parcel, batches: readonly Batch[]): Parcel[] {
  const isKept = slot !== null || origin !== null;
  const common: Origin | null = isKept ? { slot, origin, openParts: batches.length } : null;
  return batches.map((batch) => ({ ...createParcel(batch), origin: common }));
}

/** What it was split from need not be kept for its sake any more. `settle` hears of what thereby is settled. */
export function leaveOrigin(part: Kept, settle: (kept: Kept) => void): void {
  const { origin } = part;
  part.origin = null;
  if (origin === null || --origin.openParts > 0) return;
  settle(origin);
  leaveOrigin(origin, settle);
}
