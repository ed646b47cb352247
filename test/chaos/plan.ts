/** What is done to the proxy and when, drawn from a seed before anything begins: the same seed, the same plan. */
import { createRandom, type Random } from '../../bench/random.ts';
import { SECOND_MS } from '../../src/core/units.ts';
import { MOODS, type Mood } from './backend.ts';
import { LINES, type Line } from './relay.ts';

export type Deed =
  /** `kill -9`, and a new process after a pause. */
  | { readonly kind: 'kill'; readonly pauseMs: number }
  /** SIGTERM, and a new process when it has ended. */
  | { readonly kind: 'restart' }
  /** SIGSTOP for so long; half of the time killed while it sleeps. */
  | { readonly kind: 'freeze'; readonly forMs: number; readonly thenKill: boolean }
  | { readonly kind: 'line'; readonly line: Line; readonly forMs: number }
  | { readonly kind: 'mood'; readonly mood: Mood; readonly forMs: number }
  | { readonly kind: 'disk'; readonly forMs: number };

export interface PlannedDeed {
  /** Since the start of the run, at the earliest: those of one track wait for each other. */
  readonly atMs: number;
  readonly deed: Deed;
}

/** Three hands at work at once, each doing one thing after the other. */
export interface Plan {
  readonly process: readonly PlannedDeed[];
  readonly backend: readonly PlannedDeed[];
  readonly disk: readonly PlannedDeed[];
}

/** Load before the first deed, and calm before the end. */
const LEAD_MS = 3 * SECOND_MS;

export function drawPlan(seed: number, durationMs: number): Plan {
  const track = (salt: number, gapMs: [number, number], draw: (random: Random) => [Deed, number]): PlannedDeed[] => {
    const random = createRandom(seed ^ salt);
    const deeds: PlannedDeed[] = [];
    let atMs = LEAD_MS + random.between(0, gapMs[0]);
    for (;;) {
      const [deed, tookMs] = draw(random);
      if (atMs + tookMs > durationMs - LEAD_MS) return deeds;
      deeds.push({ atMs, deed });
      atMs += tookMs + random.between(...gapMs);
    }
  };
  return {
    process: track(0x11, [2 * SECOND_MS, 12 * SECOND_MS], (random) => {
      const kind = random.pick(['kill', 'kill', 'kill', 'restart', 'freeze'] as const);
      if (kind === 'kill') {
        const pauseMs = random.between(0, 2 * SECOND_MS);
        return [{ kind, pauseMs }, pauseMs];
      }
      if (kind === 'restart') return [{ kind }, 2 * SECOND_MS];
      const forMs = random.between(200, 8 * SECOND_MS);
      return [{ kind, forMs, thenKill: random.chance(0.5) }, forMs];
    }),
    backend: track(0x22, [SECOND_MS, 8 * SECOND_MS], (random) => {
      const forMs = random.between(500, 12 * SECOND_MS);
      if (random.chance(0.35)) return [{ kind: 'line', line: random.pick(LINES.slice(1)), forMs }, forMs];
      return [{ kind: 'mood', mood: random.pick(MOODS.slice(1)), forMs }, forMs];
    }),
    disk: track(0x33, [15 * SECOND_MS, 45 * SECOND_MS], (random) => {
      const forMs = random.between(SECOND_MS, 8 * SECOND_MS);
      return [{ kind: 'disk', forMs }, forMs];
    }),
  };
}

export function describe(deed: Deed): string {
  switch (deed.kind) {
    case 'kill':
      return `kill -9, back after ${deed.pauseMs} ms`;
    case 'restart':
      return 'SIGTERM and a new start';
    case 'freeze':
      return `SIGSTOP for ${deed.forMs} ms${deed.thenKill ? ', killed in its sleep' : ''}`;
    case 'line':
      return `line to the backend ${deed.line} for ${deed.forMs} ms`;
    case 'mood':
      return `backend: ${deed.mood} for ${deed.forMs} ms`;
    case 'disk':
      return `disk full for ${deed.forMs} ms`;
  }
}
