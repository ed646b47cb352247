/**
 * What a shipper holds right now, for other threads to read: one word a figure, written by the shipper alone with plain
 * stores after every round; a reader may be a round behind.
 */

/** Name → what it says, for people. A line here is all that a new gauge needs: `observe/` shows all of them by shard. */
export const GAUGES = {
  backlogBytes: 'Published in the rings and not read.',
  oversizeBytes: 'Records too large for a ring that are not read.',
  parkedRecords: 'Spans that wait for an ancestor.',
  parkedBytes: 'Memory of spans that wait for an ancestor.',
  rememberedTraces: 'Traces whose spans are remembered.',
  rememberedSpans: 'Spans whose place is remembered.',
  openRuns: 'Runs in batches that are not closed.',
  openBytes: 'Memory of batches that are not closed.',
  heldBatches: 'Closed batches that are not settled: waiting or in flight.',
  heldRuns: 'Runs in closed batches that are not settled.',
  heldBytes: 'Memory of closed batches that are not settled.',
  shelvedBatches: 'Of the closed batches: put aside until the backend answers again.',
  spooledBatches: 'Closed batches in the spool.',
  spooledRuns: 'Runs in the spool.',
  spoolBytes: 'Disk space of the spool.',
  spoolOldestMs: 'Since when the oldest batch in the spool waits, Unix time; 0 while it is empty.',
  spoolState: 'The spool: 0 is well, 1 is at its limit, 2 meets a full disk, 3 cannot be written.',
  inFlightUploads: 'Uploads in flight.',
  inFlightBytes: 'Bytes of uploads in flight.',
  tenants: 'API keys with something to upload, or lately.',
  downTenants: 'Of these: whose uploads fail.',
  reading: '1 while the shipper reads its rings, 0 while it is full.',
  fullSinceMs: 'Since when the shipper has not read, Unix time; 0 while it reads.',
  lastDeliveredMs: 'When it delivered last, Unix time; 0 before the first time.',
} as const;

export type GaugeName = keyof typeof GAUGES;

export const GAUGE_NAMES = Object.keys(GAUGES) as readonly GaugeName[];

export interface Gauges {
  readonly shared: SharedArrayBuffer;
  get(name: GaugeName): number;
  /** The shipper only. */
  set(name: GaugeName, value: number): void;
}

const wordOf = new Map<string, number>(GAUGE_NAMES.map((name, index) => [name, index]));

export function createGauges(): Gauges {
  return openGauges(new SharedArrayBuffer(GAUGE_NAMES.length * Float64Array.BYTES_PER_ELEMENT));
}

export function openGauges(shared: SharedArrayBuffer): Gauges {
  const words = new Float64Array(shared);
  return {
    shared,
    get: (name) => words[wordOf.get(name) ?? 0] ?? 0,
    set: (name, value) => {
      words[wordOf.get(name) ?? 0] = value;
    },
  };
}
