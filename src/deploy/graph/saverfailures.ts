/**
 * Keeps a failed checkpoint from ending the thread. The graph library saves in the background and looks at the outcome when the
 * run ends; until then the rejection counts as unhandled, which would end the thread with every run in it. Here the saver's own
 * failures are remembered, so that the host can tell them from those of user code. Runs in graph workers.
 */
import type { BaseCheckpointSaver } from '@langchain/langgraph-checkpoint';

export interface SaverFailures {
  watch<T extends BaseCheckpointSaver>(saver: T): T;
  includes(reason: unknown): boolean;
}

export function createSaverFailures(): SaverFailures {
  const failures = new WeakSet();
  const remembered = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      if (typeof error === 'object' && error !== null) failures.add(error);
      throw error;
    });
  return {
    watch: (saver) => {
      const put = saver.put.bind(saver);
      const putWrites = saver.putWrites.bind(saver);
      saver.put = (...args) => remembered(put(...args));
      saver.putWrites = (...args) => remembered(putWrites(...args));
      return saver;
    },
    includes: (reason) => typeof reason === 'object' && reason !== null && failures.has(reason),
  };
}
