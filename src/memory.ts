/** What the process may hold at most, by the configuration: the sum that `--check` prints and that an outage must not exceed. */
import type { Config } from './config.ts';
import { MiB } from './core/units.ts';
import { showSize } from './variables.ts';
import { SPOOL_INDEX_RATIO } from './upload/spool/file.ts';

export interface MemoryShare {
  readonly what: string;
  readonly bytes: number;
}

/** Threads, code, the deployment API and the console at rest (RSS of an idle service on Linux, rounded up). */
const PROCESS_BYTES = 192 * MiB;
/** Of each decode thread and each shipper: what its own work takes for a moment. */
const THREAD_BYTES = 24 * MiB;
/** Open batches of one shipper, and the buffers kept for the next: see upload/batcher.ts. */
const OPEN_BUFFERS = 6;
const MIN_OPEN_BYTES = 8 * MiB;
/** 524 288 of them: see service.ts. */
const REMEMBERED_BYTES = 32 * MiB;
/** Read ahead from disk, and on the way there: see upload/spool/spool.ts. */
const SPOOL_BUFFER_BYTES = 12 * MiB;

export function memoryShares(config: Config): MemoryShare[] {
  const { decodeThreads, shipShards } = config;
  return [
    { what: 'the process at rest', bytes: PROCESS_BYTES },
    { what: 'its threads at work', bytes: THREAD_BYTES * (decodeThreads + shipShards) },
    { what: 'bodies in flight (MAX_INFLIGHT_BYTES)', bytes: config.maxInflightBytes },
    { what: 'rings (RING_BYTES each)', bytes: decodeThreads * shipShards * config.ringBytes },
    { what: 'waiting spans (PARK_MAX_BYTES)', bytes: config.parkMaxBytes },
    { what: 'remembered spans', bytes: REMEMBERED_BYTES },
    {
      what: 'open batches (MAX_BUFFER_BYTES)',
      bytes: shipShards * Math.max(MIN_OPEN_BYTES, OPEN_BUFFERS * config.maxBufferBytes),
    },
    { what: 'batches and uploads (HELD_MAX_BYTES)', bytes: config.heldMaxBytes },
    ...(config.spoolMaxBytes === 0
      ? []
      : [
          {
            what: 'the spool (SPOOL_MAX_BYTES / 64, reading ahead)',
            bytes: Math.ceil(config.spoolMaxBytes / SPOOL_INDEX_RATIO) + shipShards * SPOOL_BUFFER_BYTES,
          },
        ]),
  ];
}

export function memoryBudgetBytes(config: Config): number {
  return memoryShares(config).reduce((sum, { bytes }) => sum + bytes, 0);
}

export function memoryText(config: Config): string {
  const size = (bytes: number): string => showSize(Math.ceil(bytes / MiB) * MiB);
  const total = Math.ceil(memoryBudgetBytes(config) / MiB);
  return [
    `memory at most ${total}MiB:`,
    ...memoryShares(config).map(({ what, bytes }) => `  ${size(bytes).padStart(8)}  ${what}`),
    '  and one body at a time may go beyond its share, up to MAX_BODY_BYTES',
    '',
  ].join('\n');
}
