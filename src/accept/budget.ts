/**
 * Bytes between the sockets and the rings, bounded. Bodies up to {@link RESERVED_BYTES} are charged whole when their head
 * arrives, so that whoever was let in can finish; longer ones are charged as they come, so that a length that is only
 * declared holds nothing back. When the limit is reached, one long body at a time may go on past it (its excess is not
 * counted), else a body near the limit could never pass under load: memory stays below limit + one largest body.
 */
import { MiB } from '../core/units.ts';

export const RESERVED_BYTES = MiB;
/** What a request costs besides its body: objects, headers, bookkeeping. Makes a flood of tiny bodies count too. */
export const REQUEST_OVERHEAD_BYTES = 1024;

/** Whoever holds a charge; identity only. */
export type ChargeOwner = object;

export interface Budget {
  readonly usedBytes: number;
  /** Charges `bytes`; false and nothing charged when they do not fit. */
  take(bytes: number): boolean;
  /** As `take`, for a body that is already under way: may become the one that goes past the limit. */
  grow(owner: ChargeOwner, bytes: number): boolean;
  /** Gives back what `take` and `grow` charged. */
  give(owner: ChargeOwner, bytes: number): void;
}

export function createBudget(limitBytes: number): Budget {
  let usedBytes = 0;
  let overdrawer: ChargeOwner | null = null;
  let overdrawnBytes = 0;
  const take = (bytes: number): boolean => {
    if (usedBytes + bytes > limitBytes) return false;
    usedBytes += bytes;
    return true;
  };
  return {
    get usedBytes() {
      return usedBytes + overdrawnBytes;
    },
    take,
    grow: (owner, bytes) => {
      if (overdrawer !== owner && take(bytes)) return true;
      if (overdrawer !== null && overdrawer !== owner) return false;
      overdrawer = owner;
      overdrawnBytes += bytes;
      return true;
    },
    give: (owner, bytes) => {
      if (overdrawer === owner) {
        usedBytes -= bytes - overdrawnBytes;
        overdrawer = null;
        overdrawnBytes = 0;
      } else {
        usedBytes -= bytes;
      }
    },
  };
}
