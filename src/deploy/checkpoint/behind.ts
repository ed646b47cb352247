/**
 * The checkpoints of runs that do not wait for them: durability `async`, the library's default, promises no more than that a step is saved
 * while the next one runs. The library saves one checkpoint after the other; here each is taken at once, so that those of one run
 * and of its neighbours share a commit. They are written in order, and nothing of a run is written after something that failed.
 * Before a run ends all of it has been committed, or the run learns what was not.
 */
import type { Write, Writes } from './writes.ts';

/** The writes of one run in progress. */
export interface WritesBehind {
  /** Resolves when all that was written so far is committed; rejects with what failed first. */
  settled(): Promise<void>;
  /** Ends it: what is written from here on is waited for. Resolves when nothing waits; what failed has been told by then, or is not wanted. */
  close(): Promise<void>;
}

interface Behind {
  last: Promise<void>;
  failure: { error: unknown } | null;
}

export class WriteBehind {
  readonly #writes: Writes;
  readonly #runs = new Map<string, Behind>();

  constructor(writes: Writes) {
    this.#writes = writes;
  }

  /** Resolves when it is committed, or at once for a run that does not wait. */
  async write(runId: string, write: Write): Promise<void> {
    const behind = this.#runs.get(runId);
    if (behind === undefined) return this.#writes.write(write, runId);
    if (behind.failure !== null) throw behind.failure.error;
    behind.last = this.#writes.write(write, runId).catch((error: unknown) => {
      behind.failure ??= { error };
    });
  }

  begin(runId: string): WritesBehind {
    const behind: Behind = { last: Promise.resolve(), failure: null };
    this.#runs.set(runId, behind);
    return {
      settled: async () => {
        await behind.last;
        if (behind.failure !== null) throw behind.failure.error;
      },
      close: async () => {
        this.#runs.delete(runId);
        await behind.last;
      },
    };
  }
}
