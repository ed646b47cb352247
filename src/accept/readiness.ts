/**
 * Whether this process should be sent traffic. `starting` until everything runs, `draining` from the first signal on;
 * between them ready unless somebody has a reason against it: a stage (a dead worker, say), or that the pipeline has
 * answered nothing but "busy" for a while.
 */
import type { Clock } from '../core/lifecycle.ts';
import { SECOND_MS } from '../core/units.ts';

/** Busy answers without an accepted one in between, for longer than this, make the process unready… */
const ONLY_BUSY_MS = 5 * SECOND_MS;
/** …until none was given for this long: without traffic nothing else would ever say that the trouble is over. */
const FORGET_BUSY_MS = 10 * SECOND_MS;

export type Phase = 'starting' | 'ready' | 'draining';

export interface Readiness {
  readonly phase: Phase;
  enter(phase: Phase): void;
  noteAccepted(): void;
  noteBusy(): void;
  /** Empty when ready. */
  reasons(): string[];
}

export function createReadiness(clock: Clock, stageReasons: () => string[]): Readiness {
  let phase: Phase = 'starting';
  /** First busy answer since the last accepted request; 0: none. */
  let busySinceMs = 0;
  let lastBusyMs = 0;
  return {
    get phase() {
      return phase;
    },
    enter: (next) => {
      phase = next;
    },
    noteAccepted: () => {
      busySinceMs = 0;
    },
    noteBusy: () => {
      const nowMs = clock.nowMs();
      if (busySinceMs === 0 || nowMs - lastBusyMs > FORGET_BUSY_MS) busySinceMs = nowMs;
      lastBusyMs = nowMs;
    },
    reasons: () => {
      if (phase !== 'ready') return [phase];
      const reasons = stageReasons();
      const nowMs = clock.nowMs();
      if (busySinceMs !== 0 && nowMs - lastBusyMs <= FORGET_BUSY_MS && nowMs - busySinceMs > ONLY_BUSY_MS) {
        reasons.push(`the pipeline has been full for ${Math.round((nowMs - busySinceMs) / SECOND_MS)} s`);
      }
      return reasons;
    },
  };
}
