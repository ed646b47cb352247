/**
 * One client that follows a thread: what its runs emit, that they begin and end, its new states. In: the events of runs as they come,
 * and for a client that comes back what it has missed, as far as it is kept. Out: events with ids, to its reader. While it
 * replays, what comes meanwhile is held, up to the limit of a slow reader; beyond that the client is cut.
 *
 * An id is a moment and what happened then: `<ms>-<seq>` for an event of a run, `<ms>-start`, `<ms>-state` and `<ms>-done` for what
 * the thread itself tells. Runs of a thread follow one another, so the order of moments is the order of events.
 */
import type { FollowReader } from './liveruns.ts';
import type { JsonText, Run, RunEvent } from './store/model.ts';
import type { DeploymentStore } from './store/repositories.ts';
import { MAX_SEQ } from './stream.ts';
import type { StreamEvent, StreamReader } from './streamreader.ts';
import { encodeEvent } from './streamreader.ts';

export const FOLLOW_MODES = ['run_modes', 'lifecycle', 'state_update'] as const;
export type FollowMode = (typeof FOLLOW_MODES)[number];

export interface ThreadFollowerSettings {
  reader: StreamReader;
  modes: ReadonlySet<FollowMode>;
  maxHeldBytes: number;
}

export interface ThreadFollower extends FollowReader {
  /** Sends what came after the event with this id, then what was held meanwhile. Call it at once after construction. */
  replay(source: ReplaySource, threadId: string, lastEventId: string): Promise<void>;
}

export interface ReplaySource {
  store: Pick<DeploymentStore, 'runs' | 'events' | 'threads'>;
  /** Resolves when the events so far of the runs that execute here are in the store. */
  settled(threadId: string): Promise<void>;
}

/** Where a client left off. */
interface Position {
  id: string;
  ms: number;
  /** Null: not an event of a run. */
  seq: number | null;
}

type What = 'start' | 'state' | 'done';

const RUN_PAGE_COUNT = 100;
/** A client that has missed more runs than these starts with the oldest of them. */
const MAX_RUN_COUNT = 1000;
const EVENT_PAGE_COUNT = 200;
const BEGINNING: Position = { id: '', ms: -1, seq: null };

export function createThreadFollower(settings: ThreadFollowerSettings): ThreadFollower {
  const { reader, modes } = settings;
  /** Null while nothing is replayed. */
  let held: { key: string; seq: number | null; text: string }[] | null = null;
  let heldBytes = 0;
  /** What the replay has sent: the last event of each run, and its beginning and end. */
  const sentSeqs = new Map<string, number>();
  const sentMarks = new Set<string>();

  const give = (runId: string, mark: What | number, text: string): void => {
    if (held === null) return reader.write(text);
    heldBytes += text.length;
    if (heldBytes > settings.maxHeldBytes) return reader.cut();
    if (typeof mark === 'number') held.push({ key: runId, seq: mark, text });
    else held.push({ key: markKey(runId, mark), seq: null, text });
  };

  const wants = (what: What): boolean =>
    what === 'state'
      ? modes.has('state_update')
      : modes.has('lifecycle') || (what === 'done' && modes.has('run_modes'));

  const release = (): void => {
    const waiting = held ?? [];
    held = null;
    for (const { key, seq, text } of waiting) {
      const isSent = seq === null ? sentMarks.has(key) : seq <= (sentSeqs.get(key) ?? -1);
      if (!isSent) reader.write(text);
    }
  };

  const replayEvents = async (source: ReplaySource, run: Run, isMissed: (row: RunEvent) => boolean): Promise<void> => {
    for (let cursor = -1; ;) {
      const rows = await source.store.events.after(run.runId, cursor, EVENT_PAGE_COUNT);
      for (const row of rows) {
        cursor = row.seq;
        if (!isMissed(row)) continue;
        await reader.room();
        if (!reader.isOpen) return;
        reader.write(encodeEvent(row.event, row.dataJson, row.eventId));
      }
      if (cursor >= 0) sentSeqs.set(run.runId, cursor);
      if (rows.length < EVENT_PAGE_COUNT) return;
    }
  };

  const mark = (run: Run, what: What, ms: number, valuesJson: JsonText | null = null): void => {
    sentMarks.add(markKey(run.runId, what));
    if (wants(what)) reader.write(markText(run.runId, what, ms, valuesJson));
  };

  const replayAll = async (source: ReplaySource, threadId: string, since: Position): Promise<void> => {
    const runs = await missedRuns(source, threadId, since);
    const place = await placeOf(source, runs, since);
    const thread = await source.store.threads.get(threadId);
    const lastEnded = runs.findLast((run) => run.endedMs !== null);
    for (const [index, run] of runs.entries()) {
      if (!reader.isOpen) return;
      const { startedMs, endedMs } = run;
      if (startedMs === null) continue;
      if (isAfter(startedMs, 'start', since)) mark(run, 'start', startedMs);
      if (modes.has('run_modes') && index >= place) {
        const isMissed = (row: RunEvent): boolean =>
          index === place ? row.seq > (since.seq ?? -1) : place >= 0 || msOf(row.eventId) >= since.ms;
        await replayEvents(source, run, isMissed);
      }
      if (endedMs === null || !isAfter(endedMs, 'done', since)) continue;
      if (run === lastEnded && thread !== null && thread.valuesJson !== null)
        mark(run, 'state', endedMs, thread.valuesJson);
      mark(run, 'done', endedMs);
    }
  };

  return {
    runEvent: (runId, event: StreamEvent) => {
      if (modes.has('run_modes')) give(runId, event.seq, event.text);
    },
    runStarted: (runId, ms) => {
      if (wants('start')) give(runId, 'start', markText(runId, 'start', ms, null));
    },
    runEnded: (runId, ms, valuesJson) => {
      if (wants('state') && valuesJson !== null) give(runId, 'state', markText(runId, 'state', ms, valuesJson));
      if (wants('done')) give(runId, 'done', markText(runId, 'done', ms, null));
    },
    replay: async (source, threadId, lastEventId) => {
      held = [];
      await source.settled(threadId);
      await replayAll(source, threadId, positionOf(lastEventId));
      release();
    },
  };
}

/** Oldest first: those that had not ended before the position. */
async function missedRuns(source: ReplaySource, threadId: string, since: Position): Promise<Run[]> {
  const missed: Run[] = [];
  while (missed.length < MAX_RUN_COUNT) {
    const page = await source.store.runs.list(threadId, {}, { limit: RUN_PAGE_COUNT, offset: missed.length });
    const later = page.filter((run) => run.endedMs === null || run.endedMs >= since.ms);
    missed.push(...later);
    if (later.length < RUN_PAGE_COUNT) break;
  }
  return missed.reverse();
}

/** Index of the run that the position is an event of; −1 when it is of none that is kept. */
async function placeOf(source: ReplaySource, runs: readonly Run[], since: Position): Promise<number> {
  if (since.seq === null) return -1;
  for (const [index, run] of runs.entries()) {
    if (run.startedMs === null || run.startedMs > since.ms) continue;
    const [row] = await source.store.events.after(run.runId, since.seq - 1, 1);
    if (row?.eventId === since.id) return index;
  }
  return -1;
}

/** What cannot be told apart by its moment is sent: better twice than never. */
function isAfter(ms: number, what: What, since: Position): boolean {
  return ms > since.ms || (ms === since.ms && since.id !== `${ms}-${what}`);
}

/** The beginning for anything that is not one of our ids. */
function positionOf(lastEventId: string): Position {
  const [, ms, what] = /^(\d{1,15})-(\d{1,10}|start|state|done)$/.exec(lastEventId) ?? [];
  if (ms === undefined || what === undefined) return BEGINNING;
  const seq = /^\d/.test(what) ? Number(what) : null;
  return seq !== null && seq > MAX_SEQ ? BEGINNING : { id: lastEventId, ms: Number(ms), seq };
}

function msOf(eventId: string): number {
  return Number(eventId.slice(0, eventId.indexOf('-')));
}

function markKey(runId: string, what: What): string {
  return `${runId} ${what}`;
}

function markText(runId: string, what: What, ms: number, valuesJson: JsonText | null): string {
  const id = `${ms}-${what}`;
  if (what === 'state') return encodeEvent('state_update', valuesJson ?? 'null', id);
  return encodeEvent('metadata', JSON.stringify({ run_id: runId, status: `run_${what}` }), id);
}
