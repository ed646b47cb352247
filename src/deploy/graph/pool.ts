/**
 * The graph workers of this process. In: runs and calls. Out: what they yield. It owns the threads: replaces one that died,
 * reports what was lost with it, and gives a run that may have killed its thread one of its own to try again, so that it takes
 * nobody with it. The queue asks `freeCount` before it claims; what is given beyond waits in order. On stop the threads
 * are closed, by the deadline if need be.
 */
import type { AbortReason, GraphCall, LoadFailure, RunOrder } from './protocol.ts';
import { GraphThread, type CallResult, type RunListener, type ThreadSettings } from './thread.ts';

export interface PoolSettings extends ThreadSettings {
  threadCount: number;
  runsPerThread: number;
  /** Most threads besides for runs that are tried alone. */
  spareCount: number;
  loadTimeoutMs: number;
  callTimeoutMs: number;
}

export interface GraphPool {
  start(): Promise<void>;
  stop(deadlineMs: number): Promise<void>;
  /** Runs that could start at once. */
  readonly freeCount: number;
  /** Called when `freeCount` may have grown for another reason than a run's end. */
  onFree(listener: () => void): void;
  run(order: Omit<RunOrder, 'key'>, alone: boolean, listener: RunListener): PoolRun;
  call(call: GraphCall): Promise<CallResult>;
}

export interface PoolRun {
  abort(reason: AbortReason): void;
  /** From now on the events are wanted. */
  listen(): void;
}

/** Graphs that cannot be loaded stop the start. */
export class GraphLoadError extends Error {
  override readonly name = 'GraphLoadError';
}

const RESPAWN_DELAY_MS = { first: 250, most: 30_000 };

interface Waiting {
  order: RunOrder;
  listener: RunListener;
  aborted: AbortReason | null;
  thread: GraphThread | null;
}

export function createPool(settings: PoolSettings): GraphPool {
  const { log } = settings;
  const threads = new Set<GraphThread>();
  const spares = new Set<GraphThread>();
  /** Runs to be tried alone, in order, until a spare thread is free. */
  const waiting: Waiting[] = [];
  const respawns = new Set<NodeJS.Timeout>();
  let nextKey = 1;
  let stopping = false;
  let respawnDelayMs = RESPAWN_DELAY_MS.first;
  let announceFree: () => void = () => undefined;

  const birthOf = async (thread: GraphThread): Promise<Awaited<GraphThread['born']>> => {
    const timer = setTimeout(
      () => thread.end(`The graphs took more than ${settings.loadTimeoutMs} ms to load.`, null),
      settings.loadTimeoutMs,
    );
    const birth = await thread.born;
    clearTimeout(timer);
    return birth;
  };

  const spawn = async (): Promise<void> => {
    const thread = new GraphThread(settings, () => undefined);
    threads.add(thread);
    const birth = await birthOf(thread);
    if (birth.kind === 'unloadable') {
      threads.delete(thread);
      thread.end('unloadable', null);
      throw new GraphLoadError(failuresText(birth.failures));
    }
    if (birth.kind === 'gone') {
      threads.delete(thread);
      throw new GraphLoadError(`The graphs could not be loaded. ${birth.reason}`);
    }
    void thread.gone.then(() => replace(thread));
  };

  const replace = (thread: GraphThread): void => {
    if (!threads.delete(thread) || stopping) return;
    settings.counters.add('graph_workers_lost');
    log.warn({}, 'graph worker lost; starting another');
    respawn();
  };

  const respawn = (): void => {
    spawn().then(
      () => {
        respawnDelayMs = RESPAWN_DELAY_MS.first;
        announceFree();
      },
      (error: unknown) => {
        if (stopping) return;
        log.error({ err: error, retryMs: respawnDelayMs }, 'graph worker could not be started');
        const timer = setTimeout(() => {
          respawns.delete(timer);
          respawn();
        }, respawnDelayMs);
        respawns.add(timer);
        respawnDelayMs = Math.min(2 * respawnDelayMs, RESPAWN_DELAY_MS.most);
      },
    );
  };

  // ------------------------------------------------------------------------------------------------ spare threads

  const spareFor = (accepts: (thread: GraphThread) => boolean): GraphThread | null => {
    for (const spare of spares) {
      if ((spare.state === 'loading' || spare.state === 'ready') && accepts(spare)) return spare;
    }
    if (spares.size >= settings.spareCount) return null;
    const spare = new GraphThread(settings, serveWaiting);
    spares.add(spare);
    void birthOf(spare).then((birth) => {
      if (birth.kind === 'unloadable') spare.end('The graphs could not be loaded.', null);
    });
    void spare.gone.then(() => {
      spares.delete(spare);
      if (!stopping) serveWaiting();
    });
    return spare;
  };

  const serveWaiting = (): void => {
    while (waiting.length > 0) {
      const spare = spareFor((thread) => thread.runCount === 0);
      if (spare === null) return;
      const next = waiting.shift();
      if (next === undefined) return;
      next.thread = spare;
      spare.run(next.order, next.listener);
      if (next.aborted !== null) spare.abort(next.order.key, next.aborted);
    }
    for (const spare of spares) if (!spare.isBusy && spare.state === 'ready') void spare.close(1000);
    announceFree();
  };

  const runAlone = (order: RunOrder, listener: RunListener): PoolRun => {
    const entry: Waiting = { order, listener, aborted: null, thread: null };
    waiting.push(entry);
    serveWaiting();
    return {
      abort: (reason) => {
        if (entry.thread !== null) return entry.thread.abort(order.key, reason);
        const index = waiting.indexOf(entry);
        if (index < 0) return;
        waiting.splice(index, 1);
        listener.ended({ kind: 'aborted', reason, state: null }, false);
      },
      listen: () => {
        if (entry.thread === null) order.listening = true;
        else entry.thread.listen(order.key);
      },
    };
  };

  // ---------------------------------------------------------------------------------------------------------- calls

  const leastBusy = (accepts: (thread: GraphThread) => boolean): GraphThread | null => {
    let best: GraphThread | null = null;
    for (const thread of threads)
      if (thread.state === 'ready' && accepts(thread) && (best === null || thread.runCount < best.runCount))
        best = thread;
    return best;
  };

  const callOn = async (thread: GraphThread, call: GraphCall): Promise<CallResult> => {
    const result = await thread.call(nextKey++, call);
    if (spares.has(thread)) serveWaiting();
    return result;
  };

  const callOnce = async (call: GraphCall): Promise<CallResult> => {
    const thread = leastBusy((candidate) => !candidate.isSilent) ?? spareFor(() => true) ?? leastBusy(() => true);
    if (thread === null) return { kind: 'refusal', code: 'worker-lost', message: 'No graph worker is available.' };
    const timers: NodeJS.Timeout[] = [];
    const timeout = new Promise<CallResult>((resolve) => {
      const refusal = { kind: 'refusal', code: 'failed', message: 'The graph did not answer in time.' } as const;
      timers.push(setTimeout(() => resolve(refusal), settings.callTimeoutMs));
    });
    // A thread that is busy computing would keep the reader waiting: a second one is asked as well.
    const { beatCount } = thread;
    const elsewhere = new Promise<CallResult>((resolve) => {
      const ask = (): void => {
        const other = thread.beatCount === beatCount ? spareFor((spare) => spare !== thread) : null;
        if (other !== null) void callOn(other, call).then(resolve);
      };
      if (isRead(call) && !spares.has(thread)) timers.push(setTimeout(ask, 2 * settings.data.beatIntervalMs));
    });
    const result = await Promise.race([callOn(thread, call), elsewhere, timeout]);
    for (const timer of timers) clearTimeout(timer);
    return result;
  };

  return {
    start: async () => {
      await Promise.all(Array.from({ length: settings.threadCount }, spawn));
    },
    stop: async (deadlineMs) => {
      stopping = true;
      for (const timer of respawns) clearTimeout(timer);
      await Promise.all([...threads, ...spares].map((thread) => thread.close(deadlineMs)));
      threads.clear();
    },
    get freeCount() {
      // While runs wait for a thread of their own, no more are taken in, so that these stay few.
      if (stopping || waiting.length >= settings.runsPerThread) return 0;
      let count = 0;
      for (const thread of threads) if (thread.state === 'ready') count += settings.runsPerThread - thread.runCount;
      return count;
    },
    onFree: (listener) => (announceFree = listener),
    run: (unnamed, alone, listener) => {
      const order: RunOrder = { ...unnamed, key: nextKey++ };
      const thread = alone ? null : leastBusy((candidate) => candidate.runCount < settings.runsPerThread);
      if (thread === null) return runAlone(order, listener);
      thread.run(order, listener);
      return {
        abort: (reason) => thread.abort(order.key, reason),
        listen: () => thread.listen(order.key),
      };
    },
    call: async (call) => {
      if (stopping) return { kind: 'refusal', code: 'stopped', message: 'The server is stopping.' };
      const result = await callOnce(call);
      return result.kind === 'refusal' && result.code === 'worker-lost' && isRead(call) ? callOnce(call) : result;
    },
  };
}

/** Reads may be repeated; an update that died with its thread may or may not have been written. */
function isRead(call: GraphCall): boolean {
  return call.kind !== 'update' && call.kind !== 'supersteps';
}

function failuresText(failures: readonly LoadFailure[]): string {
  const lines = failures.map(
    ({ graphId, file, exportName, reason }) =>
      `graph "${graphId}" (${file}, export ${exportName === '' ? 'default' : exportName}): ${reason}`,
  );
  return `Graphs could not be loaded:\n${lines.join('\n')}`;
}
