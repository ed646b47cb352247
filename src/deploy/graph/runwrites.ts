/**
 * Ends a run's writing with the run. The graph library saves in the background and, when a run is aborted, leaves what is under way to
 * itself: a checkpoint that lands after a rollback would bring the run back, one that lands after an interrupt would stand among
 * those of the next run. In: the saver's calls. Out: they are made, or go nowhere because their run has ended. Runs in graph
 * workers; holds the writes under way of open runs, and the ids of the last runs that were closed.
 */
import type { RunnableConfig } from '@langchain/core/runnables';
import type { BaseCheckpointSaver } from '@langchain/langgraph-checkpoint';

export interface RunWrites {
  watch<T extends BaseCheckpointSaver>(saver: T): T;
  open(runId: string): void;
  /** What the run still brings goes nowhere, as nobody is left to hear of it; resolves when what it has under way is committed or has failed. */
  close(runId: string): Promise<void>;
}

/** What is late comes within moments. */
const REMEMBERED_COUNT = 1000;

export function createRunWrites(): RunWrites {
  const underWay = new Map<string, Set<Promise<unknown>>>();
  const closed = new Set<string>();

  const made = <T>(config: RunnableConfig, write: () => Promise<T>, nothing: T): Promise<T> => {
    const runId: unknown = config.configurable?.['run_id'];
    if (typeof runId !== 'string') return write();
    if (closed.has(runId)) return Promise.resolve(nothing);
    const writes = underWay.get(runId);
    if (writes === undefined) return write();
    const work = write();
    writes.add(work);
    const done = (): void => void writes.delete(work);
    work.then(done, done);
    return work;
  };

  return {
    watch: (saver) => {
      const put = saver.put.bind(saver);
      const putWrites = saver.putWrites.bind(saver);
      saver.put = (config, ...rest) => made(config, () => put(config, ...rest), config);
      saver.putWrites = (config, ...rest) => made(config, () => putWrites(config, ...rest), undefined);
      return saver;
    },
    open: (runId) => {
      closed.delete(runId);
      underWay.set(runId, new Set());
    },
    close: async (runId) => {
      const writes = underWay.get(runId) ?? new Set();
      underWay.delete(runId);
      closed.add(runId);
      for (const oldest of closed) {
        if (closed.size <= REMEMBERED_COUNT) break;
        closed.delete(oldest);
      }
      await Promise.allSettled(writes);
    },
  };
}
