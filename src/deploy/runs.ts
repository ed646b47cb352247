/**
 * The life of runs in this process: created, executed, stopped, ended. In: run requests, and what the graph workers report. Out:
 * ends, to those who wait, and events, to those who read. The rules of multitasking, order and removal are the store's
 * transactions; this file owns what is live: the runs that execute here, their streams, their waiters. It has no limit of its own:
 * pending runs are rows, running ones are bounded by the pool. On stop running runs get until the deadline, then go back into
 * the queue.
 */
import { failed, failure, outcomeOf, resultOf, snapshotOf } from './attemptend.ts';
import type { CounterName, Counters } from '../core/counters.ts';
import type { Clock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import type { GraphPool } from './graph/pool.ts';
import type { AbortReason, AttemptEnd } from './graph/protocol.ts';
import type { Loss } from './graph/thread.ts';
import { createLeases } from './leases.ts';
import { createLiveRuns, type FollowReader, type Live, type LiveRun, type RunKey, type RunResult } from './liveruns.ts';
import { createQueue } from './queue.ts';
import type { CancelAction, JsonText, Run, RunRef, RunStatus } from './store/model.ts';
import type {
  CancelSelector,
  DeploymentStore,
  ForeignChange,
  NewRun,
  RunCancellation,
  RunCreation,
  RunEnding,
} from './store/repositories.ts';

export interface RunsSettings {
  store: DeploymentStore;
  pool: GraphPool;
  clock: Clock;
  log: Log;
  counters: Counters;
  ownerId: string;
  leaseMs: number;
  runTimeoutMs: number;
  maxAttempts: number;
  replayTtlMs: number;
  /** Webhook deliveries are waiting to be sent. */
  onDelivery(): void;
}

export interface Runs {
  start(): Promise<void>;
  stop(deadlineMs: number): Promise<void>;
  create(request: Omit<NewRun, 'claim'>): Promise<RunCreation>;
  createBatch(
    requests: readonly Omit<NewRun, 'claim'>[],
  ): Promise<Awaited<ReturnType<DeploymentStore['runs']['createBatch']>>>;
  /** Takes up what the store created by itself (crons). */
  adopt(creations: readonly RunCreation[]): void;
  cancel(selector: CancelSelector, action: CancelAction): Promise<RunCancellation>;
  /** Ends runs whose rows are gone with their thread. */
  abandon(refs: readonly RunRef[]): void;
  /**
   * A run to watch, whether or not it has started or even exists yet; every call wants one `unwatch`. Watch first, then look
   * the run up: an end in between is then not missed.
   */
  watch(run: RunKey): LiveRun;
  unwatch(live: LiveRun): void;
  followThread(threadId: string, reader: FollowReader): void;
  unfollowThread(threadId: string, reader: FollowReader): void;
  /** Resolves when the events so far of what executes here on the thread are in the store. */
  settledEvents(threadId: string): Promise<void>;
  /** Runs `work` while no run of the thread starts. */
  holdThread<T>(threadId: string, work: () => Promise<T>): Promise<T>;
}

/** The end of the time for shutting down that is kept for runs to leave a checkpoint and return to the queue. */
const SHUTDOWN_SHARE_MS = 2000;
const STORE_RETRY_DELAYS_MS = [250, 1000, 3000];
const ENDED_COUNTERS: Partial<Record<RunStatus, CounterName>> = {
  success: 'ended_success',
  error: 'ended_error',
  timeout: 'ended_timeout',
  interrupted: 'ended_interrupted',
};

export function createRuns(settings: RunsSettings): Runs {
  const { store, pool, clock, log, counters, ownerId } = settings;
  const executing = new Set<Live>();
  /** Watched already, and not yet to be found in the store. */
  const creating = new Set<string>();
  const holds = new Map<string, Promise<unknown>>();
  const timeoutJson = failure('TimeoutError', `The run took longer than ${settings.runTimeoutMs} ms.`);
  const lives = createLiveRuns(
    {
      events: store.events,
      clock,
      log,
      counters,
      replayTtlMs: settings.replayTtlMs,
    },
    log,
  );
  const stopping = new AbortController();
  let unsubscribe: () => void = () => undefined;
  let whenIdle: () => void = () => undefined;

  // ------------------------------------------------------------------------------------------------------ execution

  const execute = (run: Run, isFresh: boolean): void => {
    const live = lives.open(run);
    live.run = run;
    live.threadId = run.threadId;
    live.cancelAction = run.cancelAction;
    executing.add(live);
    leases.keep();
    const held = holds.get(run.threadId);
    const continuesStream = run.resumable && !isFresh;
    if (held === undefined && !continuesStream) return begin(live, run, isFresh);
    const prepare = async (): Promise<number | null> => {
      await held;
      return continuesStream ? store.events.lastSeq(run.runId) : null;
    };
    prepare().then(
      (lastSeq) => {
        if (lastSeq !== null) live.stream.continueAfter(lastSeq, run.attempt > 1);
        begin(live, run, isFresh);
      },
      (error: unknown) => {
        log.error({ err: error, runId: run.runId }, 'the stream of a run could not be continued');
        settle(live, giveBack(live, run, { reason: 'The store did not answer.', suspect: false }));
      },
    );
  };

  const begin = (live: Live, run: Run, isFresh: boolean): void => {
    counters.add('graph_attempts');
    const startedMs = run.startedMs ?? clock.nowMs();
    for (const follower of lives.followersOf(run.threadId)) follower.runStarted(run.runId, startedMs);
    live.stream.append('metadata', JSON.stringify({ run_id: run.runId, attempt: run.attempt }) as JsonText);
    const attempt = pool.run(
      {
        runId: run.runId,
        threadId: run.threadId,
        graphId: run.graphId,
        attempt: run.attempt,
        isFresh,
        temporary: run.temporary,
        kwargsJson: run.kwargsJson,
        resumable: run.resumable,
        listening: run.resumable || live.stream.readerCount > 0 || lives.followersOf(run.threadId).size > 0,
      },
      run.attempt > 1,
      {
        event: (event, dataJson) => live.stream.append(event, dataJson),
        settled: () => live.stream.settled(),
        ended: (end, stateCleared) => settle(live, finish(live, run, end, stateCleared)),
        lost: (loss) => settle(live, giveBack(live, run, loss)),
      },
    );
    live.attempt = attempt;
    live.timeout = setTimeout(() => {
      live.isTimedOut = true;
      attempt.abort('timeout');
    }, settings.runTimeoutMs);
    // Asked to stop between being claimed and being started.
    if (live.cancelAction !== null) attempt.abort(live.cancelAction);
    else if (stopping.signal.aborted) attempt.abort('shutdown');
  };

  /** Until nothing executes any more and every end is on record, at most `ms`. */
  const idle = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      if (executing.size === 0) return resolve();
      const timer = setTimeout(resolve, ms);
      whenIdle = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  const settle = (live: Live, work: Promise<RunResult | 'requeued'>): void => {
    if (live.timeout !== null) clearTimeout(live.timeout);
    live.timeout = null;
    live.attempt = null;
    const leave = (): void => {
      live.run = null;
      executing.delete(live);
      if (executing.size === 0) whenIdle();
    };
    work.then(
      (result) => {
        leave();
        if (result !== 'requeued') return lives.conclude(live, result);
        live.stream.release();
        lives.forget(live);
        queue.wake();
      },
      (error: unknown) => {
        // The row stays as it is; its lease passes, and the run is tried again.
        log.error({ err: error, runId: live.runId }, 'the end of a run could not be recorded');
        leave();
        lives.conclude(live, { kind: 'stored' });
      },
    );
    queue.onFree();
  };

  const finish = async (
    live: Live,
    run: Run,
    end: AttemptEnd,
    stateCleared: boolean,
  ): Promise<RunResult | 'requeued'> => {
    if (end.kind === 'aborted' && end.reason === 'shutdown')
      return giveBack(live, run, { reason: 'The server was stopped.', suspect: false });
    const rolledBack = live.cancelAction === 'rollback';
    if (end.kind === 'aborted' && end.reason === 'timeout' && !rolledBack) live.stream.append('error', timeoutJson);
    // The stream of a run that counts as ended is whole, also after a crash right then.
    await live.stream.settled();
    const ending = await persistently(() =>
      store.runs.finish({
        runId: run.runId,
        threadId: run.threadId,
        ownerId,
        // What was asked to be undone is undone, even if it was quicker than the request.
        outcome: rolledBack ? { kind: 'cancelled' } : outcomeOf(end, timeoutJson),
        state: rolledBack || end.state === null ? null : snapshotOf(end, end.state),
        stateCleared,
        nowMs: clock.nowMs(),
      }),
    );
    return afterEnding(
      live,
      ending,
      rolledBack ? { kind: 'stored' } : resultOf(end, timeoutJson),
      end.state?.valuesJson ?? null,
    );
  };

  const giveBack = async (live: Live, run: Run, loss: Loss): Promise<RunResult | 'requeued'> => {
    counters.add('graph_attempts_lost');
    log.warn({ runId: run.runId, attempt: run.attempt, reason: loss.reason }, 'run lost its graph worker');
    if (live.isTimedOut && loss.suspect)
      return finish(live, run, { kind: 'aborted', reason: 'timeout', state: null }, false);
    await live.stream.settled();
    const errorJson = failure('WorkerLost', `${run.attempt} attempts lost their worker. ${loss.reason}`);
    const ending = await persistently(() =>
      store.runs.release(run.runId, ownerId, {
        maxAttempts: settings.maxAttempts,
        countAttempt: loss.suspect,
        errorJson,
        nowMs: clock.nowMs(),
      }),
    );
    if (ending.kind === 'requeued') return 'requeued';
    if (ending.kind !== 'ended' || ending.status !== 'error')
      return afterEnding(live, ending, { kind: 'stored' }, null);
    live.stream.append('error', errorJson);
    return afterEnding(live, ending, failed(errorJson), null);
  };

  /** A store that fails for a moment must not cost what a run has achieved. */
  const persistently = async <T>(work: () => Promise<T>): Promise<T> => {
    for (const delayMs of STORE_RETRY_DELAYS_MS) {
      try {
        return await work();
      } catch (error) {
        log.warn({ err: error, retryMs: delayMs }, 'the end of a run could not be recorded yet');
        await clock.sleep(delayMs, stopping.signal);
      }
    }
    return work();
  };

  const afterEnding = (live: Live, ending: RunEnding, result: RunResult, valuesJson: JsonText | null): RunResult => {
    if (ending.kind === 'lost') {
      counters.add('graph_results_discarded');
      log.warn({ runId: live.runId }, 'the run was taken over or deleted meanwhile; its result is thrown away');
      return { kind: 'stored' };
    }
    counters.add('graph_runs_ended');
    const counter = ENDED_COUNTERS[ending.status];
    if (counter !== undefined) counters.add(counter);
    if (ending.status === 'error' || ending.status === 'timeout') counters.add('graph_runs_failed');
    if (ending.deliveryQueued) settings.onDelivery();
    if (ending.morePending) queue.wake();
    const endedMs = (ending.kind === 'ended' ? ending.run?.endedMs : null) ?? clock.nowMs();
    for (const follower of lives.followersOf(live.threadId)) follower.runEnded(live.runId, endedMs, valuesJson);
    return result;
  };

  const abort = (live: Live, reason: AbortReason): void => {
    if (reason === 'rollback' || reason === 'interrupt') live.cancelAction ??= reason;
    live.attempt?.abort(reason);
  };

  const abortHere = (runId: string, reason: AbortReason): void => {
    const live = lives.find(runId);
    if (live !== undefined && live.run !== null) abort(live, reason);
  };

  const tellDisplaced = (ended: { displaced: RunRef[]; deliveriesQueued: boolean }): void => {
    for (const ref of ended.displaced) lives.concludeElsewhere(ref.runId);
    if (ended.deliveriesQueued) settings.onDelivery();
  };

  const tellStopping = (stopping: { ref: RunRef; action: CancelAction }[]): void => {
    for (const { ref, action } of stopping) {
      abortHere(ref.runId, action);
    }
  };

  const takeUp = (creation: RunCreation): void => {
    if (creation.kind !== 'created') return;
    tellDisplaced(creation);
    tellStopping(creation.stopping);
    if (creation.claimed) execute(creation.run, true);
    else queue.wake();
  };

  const leases = createLeases({
    runs: store.runs,
    clock,
    log,
    ownerId,
    leaseMs: settings.leaseMs,
    maxAttempts: settings.maxAttempts,
    held: () => [...executing].map((live) => live.runId),
    onLost: (runId) => abortHere(runId, 'interrupt'),
    onCancelled: abortHere,
    onRecovered: (ended) => {
      for (const { ref, ending } of ended) {
        lives.concludeElsewhere(ref.runId);
        if (ending.kind === 'ended' && ending.deliveryQueued) settings.onDelivery();
      }
      queue.wake();
    },
  });

  /** A run that somebody here reads, and that another process may claim, must leave its events where they can be found. */
  const readFrom = (request: { runId: string }): { readerId?: string } => {
    const stream = lives.find(request.runId)?.stream;
    if (store.engine === 'sqlite' || stream === undefined || stream.readerCount === 0) return {};
    stream.expectElsewhere();
    return { readerId: ownerId };
  };

  /** Notifications that were missed say nothing any more: the store knows what has ended. */
  const catchUp = async (): Promise<void> => {
    for (const { runId, stream } of lives.elsewhere()) {
      if (creating.has(runId)) continue;
      const run = await store.runs.get(runId);
      if (run === null || run.endedMs !== null) lives.concludeElsewhere(runId);
      else stream.eventsElsewhere();
    }
  };

  const takeChange = (change: ForeignChange): void => {
    switch (change.kind) {
      case 'run-pending':
        return queue.wake();
      case 'run-ended':
        return lives.concludeElsewhere(change.runId);
      case 'run-events':
        return lives.find(change.runId)?.stream.eventsElsewhere();
      case 'run-cancel':
        return abortHere(change.runId, change.action);
      case 'gap':
        queue.wake();
        return void catchUp().catch((error: unknown) =>
          log.error({ err: error }, 'runs elsewhere could not be looked up'),
        );
    }
  };

  const queue = createQueue({
    runs: store.runs,
    clock,
    log,
    ownerId,
    leaseMs: settings.leaseMs,
    freeCount: () => pool.freeCount,
    execute: (run) => {
      const isReadElsewhere = run.readerId !== null && run.readerId !== ownerId;
      execute({ ...run, resumable: run.resumable || isReadElsewhere }, false);
    },
  });

  return {
    start: async () => {
      pool.onFree(() => queue.onFree());
      unsubscribe = store.onForeignChange(takeChange);
      // A SQLite file has one owner: whatever is running there was ours, and is not any more.
      await leases.start(store.engine === 'sqlite');
    },
    stop: async (deadlineMs) => {
      stopping.abort();
      queue.stop();
      unsubscribe();
      await idle(Math.max(0, deadlineMs - SHUTDOWN_SHARE_MS));
      for (const live of executing) abort(live, 'shutdown');
      await idle(SHUTDOWN_SHARE_MS);
      await lives.stop();
      leases.stop();
    },
    create: async (request) => {
      const claim = queue.reserve();
      creating.add(request.runId);
      try {
        const creation = await store.runs.create({ ...request, ...readFrom(request), claim });
        takeUp(creation);
        return creation;
      } finally {
        creating.delete(request.runId);
        if (claim !== null) queue.release();
      }
    },
    createBatch: async (requests) => {
      const result = await store.runs.createBatch(requests.map((request) => ({ ...request, claim: null })));
      if (result.kind === 'created') for (const creation of result.creations) takeUp(creation);
      return result;
    },
    adopt: (creations) => {
      for (const creation of creations) takeUp(creation);
    },
    cancel: async (selector, action) => {
      const cancellation = await store.runs.cancel(selector, action, clock.nowMs());
      tellDisplaced(cancellation);
      tellStopping(cancellation.stopping);
      return cancellation;
    },
    abandon: (refs) => {
      for (const { runId } of refs) {
        lives.concludeElsewhere(runId);
        abortHere(runId, 'interrupt');
      }
    },
    watch: (run) => lives.watch(run),
    unwatch: (live) => lives.unwatch(live),
    followThread: (threadId, reader) => lives.follow(threadId, reader),
    unfollowThread: (threadId, reader) => lives.unfollow(threadId, reader),
    settledEvents: (threadId) => lives.settled(threadId),
    holdThread: async (threadId, work) => {
      const before = holds.get(threadId) ?? Promise.resolve();
      const mine = before.then(work);
      const settled = mine.then(
        () => undefined,
        () => undefined,
      );
      holds.set(threadId, settled);
      void settled.then(() => {
        if (holds.get(threadId) === settled) holds.delete(threadId);
      });
      return mine;
    },
  };
}
