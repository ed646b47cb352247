/**
 * Says of every stage how it is, and why, in words for an operator. Made from figures alone, so that it can be checked. What
 * happened counts for a minute; what is so now counts while it is so.
 */
import { bytes, count, duration } from '../../parts/format.ts';
import { namesWith, type View } from './view.ts';

/** From best to worst. */
export const LEVELS = ['idle', 'well', 'degraded', 'full', 'down'] as const;
export type Level = (typeof LEVELS)[number];

export const LEVEL_WORDS: Readonly<Record<Level, string>> = {
  idle: 'Idle',
  well: 'Well',
  degraded: 'Degraded',
  full: 'Full',
  down: 'Down',
};

export interface Judgement {
  readonly level: Level;
  readonly reasons: readonly string[];
}

export const STAGE_IDS = ['accept', 'decode', 'rings', 'assemble', 'batch', 'upload', 'backend', 'spool'] as const;
export type StageId = (typeof STAGE_IDS)[number];

export interface Health {
  readonly overall: Judgement;
  readonly stages: Readonly<Record<StageId, Judgement>>;
}

/** From here a bound is as good as reached: the next body may not fit. */
const FULL_RATIO = 0.9;

/** So many failures within that time, and nothing delivered: the backend is as good as down. */
const SILENT_MS = 15_000;
const SILENT_COUNT = 2;

type Finding = readonly [level: Level, reason: string];

export function judge(view: View): Health {
  const findings: Readonly<Record<StageId, Finding[]>> = {
    accept: [...phase(view), ...turnedAway(view), ...filled(view, 'admittedBytes', 'Bodies under way')],
    decode: [
      ...threads(view),
      ...lost(view, 'decode_workers_lost', 'decode thread'),
      ...happened(
        view,
        'bodies_set_aside',
        'degraded',
        'body set aside: decode threads died of it',
        'bodies set aside',
      ),
    ],
    rings: filled(view, 'backlogBytes', 'Rings'),
    assemble: [
      ...filled(view, 'parkedBytes', 'Memory of waiting spans'),
      ...happened(
        view,
        'runs_orphaned',
        'degraded',
        'run left without its ancestors',
        'runs left without their ancestors',
      ),
    ],
    batch: filled(view, 'heldBytes', 'Memory of closed batches'),
    upload: [...shippers(view), ...lost(view, 'ship_workers_lost', 'uploading thread'), ...retries(view)],
    backend: backend(view),
    spool: spool(view),
  };
  const busy: Readonly<Record<StageId, string>> = {
    accept: 'requests',
    decode: 'decode_bodies',
    rings: 'records_written',
    assemble: 'records_read',
    batch: 'runs_batched',
    upload: 'upload_attempts',
    backend: 'runs_delivered',
    spool: 'runs_spooled',
  };
  const stages = Object.fromEntries(
    STAGE_IDS.map((id) => [id, together(findings[id], view.lately(busy[id]) > 0 ? 'well' : 'idle')]),
  ) as Record<StageId, Judgement>;
  const drops = dropped(view);
  const said = new Set(STAGE_IDS.flatMap((id) => stages[id].reasons));
  const all: Finding[] = [
    ...STAGE_IDS.flatMap((id) => findings[id]),
    ...drops,
    ...view.now.reasons.filter((reason) => !said.has(reason)).map((reason): Finding => ['degraded', sentence(reason)]),
  ];
  return { overall: together(all, STAGE_IDS.some((id) => stages[id].level === 'well') ? 'well' : 'idle'), stages };
}

/** The worst of all, with every reason, the worst first. */
function together(findings: readonly Finding[], otherwise: 'well' | 'idle'): Judgement {
  const sorted = findings.toSorted(([a], [b]) => LEVELS.indexOf(b) - LEVELS.indexOf(a));
  return { level: sorted[0]?.[0] ?? otherwise, reasons: [...new Set(sorted.map(([, reason]) => reason))] };
}

function phase({ now }: View): Finding[] {
  if (now.phase === 'starting') return [['degraded', 'Starting: requests are told to come back']];
  return now.phase === 'draining' ? [['degraded', 'Shutting down: takes no more, delivers what it holds']] : [];
}

/** Requests that were put off or refused, by why. */
function turnedAway(view: View): Finding[] {
  const said = (beginning: string, level: Level, verb: string): Finding[] =>
    namesWith(view.now.counters, beginning).flatMap((name): Finding[] => {
      const lately = view.lately(name);
      const why = view.snapshot.meanings.counters[name] ?? name;
      return lately === 0 ? [] : [[level, `${count(lately)} ${requests(lately)} ${verb} in the last minute: ${why}`]];
    });
  return [...said('busy_', 'full', 'put off'), ...said('refused_', 'degraded', 'refused')];
}

function requests(amount: number): string {
  return amount === 1 ? 'request' : 'requests';
}

function filled(view: View, gauge: string, what: string): Finding[] {
  const ratio = view.fill(gauge);
  if (ratio === null || ratio < FULL_RATIO) return [];
  const of = `${bytes(view.gauge(gauge))} of ${bytes(view.limit(gauge) ?? 0)}`;
  return [['full', `${what}: ${Math.round(ratio * 100)} % full (${of})`]];
}

function threads(view: View): Finding[] {
  const wanted = view.limit('decodeThreads');
  if (wanted === null || view.now.phase !== 'ready' || view.gauge('decodeThreads') >= wanted) return [];
  const alive = view.gauge('decodeThreads');
  return [[alive === 0 ? 'down' : 'degraded', `${alive} of ${wanted} decode threads are alive`]];
}

function lost(view: View, counter: string, what: string): Finding[] {
  return happened(view, counter, 'degraded', `${what} died and was replaced`, `${what}s died and were replaced`);
}

function happened(view: View, counter: string, level: Level, one: string, many: string): Finding[] {
  const lately = view.lately(counter);
  return lately === 0 ? [] : [[level, `${count(lately)} ${lately === 1 ? one : many} in the last minute`]];
}

function shippers(view: View): Finding[] {
  const wanted = view.limit('reading');
  if (wanted === null || view.now.phase !== 'ready' || view.gauge('reading') >= wanted) return [];
  const standing = wanted - view.gauge('reading');
  const sinceMs = view.gauge('fullSinceMs');
  const since = sinceMs === 0 ? '' : ` since ${ago(view, sinceMs)}`;
  return [['full', `${standing} of ${wanted} shippers ${standing === 1 ? 'takes' : 'take'} no more${since}`]];
}

function retries(view: View): Finding[] {
  const failed = view.lately('upload_failures');
  if (failed === 0) return [];
  const of = view.lately('upload_attempts');
  return [['degraded', `${count(failed)} of ${count(of)} uploads failed in the last minute; they are tried again`]];
}

/** Down for good measure: what fails while nothing gets through, or what the uploading side has given up for now. */
function backend(view: View): Finding[] {
  const down = view.gauge('downTenants');
  const all = Math.max(down, view.gauge('tenants'));
  const isSilent =
    view.lately('upload_failures', SILENT_MS) >= SILENT_COUNT && view.lately('runs_delivered', SILENT_MS) === 0;
  if (!isSilent && down === 0) return [];
  if (!isSilent && down < all) return [['degraded', `Uploads fail for ${down} of ${all} API keys`]];
  const lastMs = view.gauge('lastDeliveredMs');
  const last = lastMs === 0 ? 'nothing was delivered yet' : `last delivered ${ago(view, lastMs)} ago`;
  return [['down', `No upload succeeds (${answers(view)}); ${last}`]];
}

/** What came back lately. */
function answers(view: View): string {
  const said = ['uploads_none', 'uploads_5xx', 'uploads_4xx', 'uploads_3xx'].flatMap((name) => {
    const lately = view.lately(name);
    return lately === 0 ? [] : [`${count(lately)} × ${view.snapshot.meanings.counters[name] ?? name}`];
  });
  return said.length === 0 ? 'waiting to try again' : said.join(', ');
}

const SPOOL_STATES: readonly (readonly [Level, string] | null)[] = [
  null,
  ['full', 'The spool is at its limit'],
  ['full', 'The disk of the spool is full'],
  ['down', 'The spool cannot be written'],
];

/** What has a bound on disk, and what is set aside there. */
function spool(view: View): Finding[] {
  const state = SPOOL_STATES[view.gauge('spoolState')] ?? null;
  const bounded = namesWith(view.now.gauges, 'spool', 'journal').flatMap((name) =>
    filled(view, name, view.snapshot.meanings.gauges[name]?.replace(/\.$/, '') ?? name),
  );
  const shelved = view.gauge('shelvedBatches');
  return [
    ...(state === null ? [] : [state]),
    ...bounded,
    ...(shelved === 0 ? [] : [['degraded', `${count(shelved)} batches wait until the backend answers again`] as const]),
    ...namesWith(view.now.counters, 'spool_fail', 'journal_fail').flatMap((name) =>
      happened(view, name, 'degraded', 'write to disk failed', 'writes to disk failed'),
    ),
  ];
}

/** Losses that somebody asked for are none. */
const INTENDED_DROPS: ReadonlySet<string> = new Set([
  'dropped_filtered',
  'dropped_duplicate',
  'dropped_converter-dropped',
]);

function dropped(view: View): Finding[] {
  return namesWith(view.now.counters, 'dropped_').flatMap((name): Finding[] => {
    const lately = view.lately(name);
    if (lately === 0 || INTENDED_DROPS.has(name)) return [];
    const why = view.snapshot.meanings.counters[name] ?? name;
    return [['degraded', `${count(lately)} ${lately === 1 ? 'span' : 'spans'} dropped in the last minute: ${why}`]];
  });
}

function ago(view: View, atMs: number): string {
  return duration(Math.max(0, Math.round((view.now.atMs - atMs) / 1000) * 1000));
}

function sentence(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
