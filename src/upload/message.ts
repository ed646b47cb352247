/** What the main thread and a shipper thread tell each other. Plain data; `workers/ship.ts` is the thread's side. */
import type { LogLine } from '../core/log.ts';
import type { RingSet } from '../ring/layout.ts';
import type { Poison } from './hand.ts';
import type { Undelivered } from './outbox.ts';
import type { ShipSettings } from './settings.ts';

export interface ShipWorkerData {
  readonly shard: number;
  readonly rings: RingSet;
  /** The counter table's memory, and the row that this thread writes. */
  readonly counters: SharedArrayBuffer;
  readonly counterRow: number;
  /** Made by `createGauges()`; read it with `openGauges`. */
  readonly gauges: SharedArrayBuffer;
  /** Whether the folder of `settings.spool` is this process's already; if not, a message tells. */
  readonly spoolReady: boolean;
  readonly settings: ShipSettings;
  /** Made by `createHand()`. */
  readonly hand: SharedArrayBuffer;
  /** What threads before this one died of. */
  readonly poison: Poison;
}

export type ToShipper =
  /** A record too large for a ring; the buffer is transferred. */
  | { kind: 'oversize'; record: ArrayBuffer }
  /** The spool's folder can be used. */
  | { kind: 'spool-ready' }
  /** Deliver what there is, at most so long. Producers have stopped. A second one ends it at once. */
  | { kind: 'drain'; deadlineMs: number };

export type FromShipper =
  | { kind: 'ready' }
  /** The last message; then the thread ends by itself. Runs that were not delivered are lost, and counted so. */
  | { kind: 'drained'; undelivered: Undelivered }
  /**
   * These records need nobody's memory any more: delivered, on disk in the spool or among the dead letters, or dropped by
   * a rule that is counted. Pairs of a request's number and how many of its records; only with `followSources`.
   */
  | { kind: 'settled'; pairs: Uint32Array }
  | LogLine;
