/**
 * The runs that somebody in this process executes, waits for or reads. In: who is interested, and that a run has ended. Out: results
 * to waiters, events to readers. An entry lives as long as somebody needs it and no longer.
 */
import type { Log } from '../core/log.ts';
import type { PoolRun } from './graph/pool.ts';
import type { CancelAction, JsonText, Run } from './store/model.ts';
import { RunStream, type RunStreamSettings, type ThreadReader } from './stream.ts';

/** What `wait` and `join` answer; `stored`: to be read from the store; `stopped`: the server ends before the run does. */
export type RunResult = { kind: 'result'; json: JsonText } | { kind: 'stored' } | { kind: 'stopped' };

/** A run as those who watch it see it. */
export interface LiveRun {
  readonly stream: RunStream;
  readonly ended: Promise<RunResult>;
}

/** A reader of everything that happens on a thread. */
export interface FollowReader extends ThreadReader {
  runStarted(runId: string, startedMs: number): void;
  runEnded(runId: string, endedMs: number, valuesJson: JsonText | null): void;
}

export interface Live extends LiveRun {
  readonly runId: string;
  /** While it does not execute here: what whoever watches it said, which nobody has checked. */
  threadId: string;
  resolve(result: RunResult): void;
  watcherCount: number;
  /** Set while it executes here. */
  run: Run | null;
  attempt: PoolRun | null;
  cancelAction: CancelAction | null;
  timeout: NodeJS.Timeout | null;
  isTimedOut: boolean;
}

export interface RunKey {
  runId: string;
  threadId: string;
  resumable: boolean;
}

export interface LiveRuns {
  find(runId: string): Live | undefined;
  open(run: RunKey): Live;
  /** Drops the entry when nobody needs it. */
  forget(live: Live): void;
  /** Waiters first learn the result, then streams end: both find the run's end on record. */
  conclude(live: Live, result: RunResult): void;
  /** The run has ended without having executed here. */
  concludeElsewhere(runId: string): void;
  /** Runs that somebody here waits for or reads, while they do not execute here. */
  elsewhere(): readonly Live[];
  watch(run: RunKey): LiveRun;
  unwatch(live: LiveRun): void;
  followersOf(threadId: string): ReadonlySet<FollowReader>;
  follow(threadId: string, reader: FollowReader): void;
  unfollow(threadId: string, reader: FollowReader): void;
  /** Resolves when the events so far of what executes on the thread are in the store. */
  settled(threadId: string): Promise<void>;
  /** Tells whoever is left that the server stops. */
  stop(): Promise<void>;
}

const NOBODY: ReadonlySet<FollowReader> = new Set();

export function createLiveRuns(streams: RunStreamSettings, log: Log): LiveRuns {
  const lives = new Map<string, Live>();
  const followers = new Map<string, Set<FollowReader>>();
  const closings = new Set<Promise<void>>();

  const followersOf = (threadId: string): ReadonlySet<FollowReader> => followers.get(threadId) ?? NOBODY;

  const open = (run: RunKey): Live => {
    const known = lives.get(run.runId);
    if (known !== undefined) {
      // Opened by somebody who joined before anything was known of the run.
      if (run.resumable) known.stream.keepEvents();
      return known;
    }
    let resolve: (result: RunResult) => void = () => undefined;
    const ended = new Promise<RunResult>((settle) => (resolve = settle));
    const live: Live = {
      runId: run.runId,
      threadId: run.threadId,
      stream: new RunStream(
        streams,
        run,
        () => followersOf(live.threadId),
        () => live.attempt?.listen(),
      ),
      ended,
      resolve,
      watcherCount: 0,
      run: null,
      attempt: null,
      cancelAction: null,
      timeout: null,
      isTimedOut: false,
    };
    lives.set(run.runId, live);
    return live;
  };

  const forget = (live: Live): void => {
    if (live.run === null && live.watcherCount === 0 && lives.get(live.runId) === live) lives.delete(live.runId);
  };

  const conclude = (live: Live, result: RunResult): void => {
    lives.delete(live.runId);
    live.resolve(result);
    const closing = live.stream.close().catch((error: unknown) => {
      log.error({ err: error, runId: live.runId }, 'the stream of an ended run could not be completed');
    });
    closings.add(closing);
    void closing.then(() => closings.delete(closing));
  };

  return {
    find: (runId) => lives.get(runId),
    open,
    forget,
    conclude,
    concludeElsewhere: (runId) => {
      const live = lives.get(runId);
      if (live !== undefined && live.run === null) conclude(live, { kind: 'stored' });
    },
    elsewhere: () => [...lives.values()].filter((live) => live.run === null),
    watch: (run) => {
      const live = open(run);
      live.watcherCount++;
      return live;
    },
    unwatch: (watched) => {
      const live = watched as Live;
      live.watcherCount--;
      forget(live);
    },
    followersOf,
    follow: (threadId, reader) => {
      const readers = followers.get(threadId) ?? new Set();
      followers.set(threadId, readers.add(reader));
      for (const live of lives.values()) if (live.threadId === threadId) live.attempt?.listen();
    },
    unfollow: (threadId, reader) => {
      const readers = followers.get(threadId);
      readers?.delete(reader);
      if (readers?.size === 0) followers.delete(threadId);
    },
    settled: async (threadId) => {
      const streams = [...lives.values()].flatMap((live) => (live.threadId === threadId ? [live.stream] : []));
      await Promise.all(streams.map((stream) => stream.settled()));
    },
    stop: async () => {
      for (const live of lives.values()) live.resolve({ kind: 'stopped' });
      await Promise.all([...closings, ...[...lives.values()].map((live) => live.stream.abort())]);
    },
  };
}
