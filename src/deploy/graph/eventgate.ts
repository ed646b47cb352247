/**
 * Keeps the history of a run from getting ahead of its stream. In: checkpoints and writes about to be committed. Out: they wait until
 * the events that the run sent before are on record, if its stream can be resumed: after a crash a step that is not repeated has
 * left its events. Runs in graph workers; holds one promise a run. A run that is not announced never waits.
 */
export interface EventGate {
  /** `settle` resolves when what the run has sent so far is on record, or given up. */
  open(runId: string, settle: () => Promise<void>): void;
  close(runId: string): void;
  /** Null: nothing to wait for. */
  passed(runId: string): Promise<void> | null;
}

interface Gate {
  settle(): Promise<void>;
  /** For all that ask in one turn of the event loop. */
  passing: Promise<void> | null;
}

export function createEventGate(): EventGate {
  const gates = new Map<string, Gate>();
  return {
    open: (runId, settle) => void gates.set(runId, { settle, passing: null }),
    close: (runId) => void gates.delete(runId),
    passed: (runId) => {
      const gate = gates.get(runId);
      if (gate === undefined) return null;
      gate.passing ??= nextTurn().then(() => {
        gate.passing = null;
        return gate.settle();
      });
      return gate.passing;
    },
  };
}

/** What the graph has yielded reaches us in microtasks: by the next turn it has been sent. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
