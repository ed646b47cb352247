/** Every figure there is, by the stage that it tells of, with its meaning. Figures that this page does not know come out last. */
import { bytes, compact, count, duration } from '../../parts/format.ts';
import type { StageId } from './health.ts';
import type { View } from './view.ts';

export type Group = StageId | 'losses' | 'deployment' | 'process';

export const GROUP_TITLES: Readonly<Record<Group, string>> = {
  accept: 'Accept',
  decode: 'Decode',
  rings: 'Rings',
  assemble: 'Assemble',
  batch: 'Batch, zstd',
  upload: 'Upload',
  backend: 'Backend',
  spool: 'Spool, journal',
  losses: 'Losses',
  deployment: 'Deployment',
  process: 'Process',
};

/** The first that matches. */
const GROUPS: readonly (readonly [Group, RegExp])[] = [
  ['losses', /^(dropped_|spans_held_at_exit)/],
  ['spool', /^(spool|shelved|journal|dead_letter|runs_(spooled|replayed|inherited|dead_lettered)|spans_re)/],
  ['deployment', /^(api_|graph_|ended_|crons_|webhook|stream_)/],
  ['backend', /^(runs_delivered|uploads_|tenants|downTenants|lastDelivered)/],
  ['upload', /^(upload|ship_|inFlight|reading|fullSince)/],
  ['batch', /^(runs_batched|batch|open|held)/],
  ['assemble', /^(records_read|runs_|times_|parked|remembered)/],
  ['rings', /^(record|oversize|ring|backlog)/],
  ['decode', /^(decod|bodies_)/],
  ['accept', /^(request|spans_|refused_|busy_|admitted|ack_|body_)/],
];

export function groupOf(name: string): Group {
  return GROUPS.find(([, pattern]) => pattern.test(name))?.[0] ?? 'process';
}

export interface Figure {
  readonly name: string;
  readonly group: Group;
  readonly kind: 'counter' | 'gauge';
  readonly meaning: string;
  /** As people read it. */
  readonly value: string;
  /** Of a counter: in the last minute. Of a gauge with a limit: what it can reach. */
  readonly note: string;
  readonly isZero: boolean;
}

export function figuresOf(view: View): Figure[] {
  const { counters: counterMeanings, gauges: gaugeMeanings } = view.snapshot.meanings;
  const counters = Object.entries(view.now.counters).map(([name, value]): Figure => {
    const lately = view.lately(name);
    return {
      name,
      group: groupOf(name),
      kind: 'counter',
      meaning: counterMeanings[name] ?? '',
      value: amount(name, value),
      note: lately === 0 ? '' : `+${amount(name, lately)} in a minute`,
      isZero: value === 0,
    };
  });
  const gauges = Object.entries(view.now.gauges).map(([name, value]): Figure => {
    const limit = view.limit(name);
    return {
      name,
      group: groupOf(name),
      kind: 'gauge',
      meaning: gaugeMeanings[name] ?? '',
      value: amount(name, value, view.now.atMs),
      note: limit === null ? '' : `of ${amount(name, limit)}`,
      isZero: value === 0,
    };
  });
  const order = Object.keys(GROUP_TITLES);
  return [...counters, ...gauges].sort((a, b) => order.indexOf(a.group) - order.indexOf(b.group));
}

/** Later than this is a time of day, not a length of time: 2001. */
const EPOCH_FROM_MS = 1e12;

/** By the unit at the end of the name. */
export function amount(name: string, value: number, nowMs?: number): string {
  if (/bytes$/i.test(name)) return bytes(Math.round(value));
  if (/Ms$/.test(name)) {
    if (nowMs !== undefined && value > EPOCH_FROM_MS) return `${duration(wholeSeconds(nowMs - value))} ago`;
    return duration(value < 1000 ? value : wholeSeconds(value));
  }
  if (/Ratio$/.test(name)) return `${(value * 100).toFixed(1)} %`;
  return Number.isInteger(value) ? count(value) : value.toFixed(2);
}

function wholeSeconds(ms: number): number {
  return Math.max(0, Math.round(ms / 1000) * 1000);
}

/** `12.3K/s`; a dash for none at all. */
export function perSecond(rate: number): string {
  if (rate === 0) return '0';
  return rate < 10 ? rate.toFixed(1) : compact(Math.round(rate));
}
