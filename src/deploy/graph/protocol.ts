/**
 * What the main thread and a graph worker say to each other, both directions in this one file. Everything is plain data;
 * values of graphs cross as JSON text, rendered once in the worker, so that a structured clone copies a string and not a tree.
 * A worker sends its messages in batches, one post per turn of its event loop.
 */
import type { JsonObject, JsonText } from '../store/model.ts';

/** A graph of the configuration file. */
export interface GraphSpec {
  graphId: string;
  /** Absolute path of the module. */
  file: string;
  /** Empty: the default export. */
  exportName: string;
  /** For people; of its default assistant. */
  description?: string;
}

/** Where and how the runs of a worker report themselves as spans; see trace.ts. */
export interface TraceTarget {
  url: string;
  headers: Record<string, string>;
}

export interface GraphWorkerData<Location = unknown> {
  graphs: readonly GraphSpec[];
  /** Folder of the configuration file. */
  folder: string;
  /** Where checkpoints and store items are; opened by workers/graph.ts. */
  location: Location;
  trace: TraceTarget | null;
  /** One Int32 that the worker increments while its event loop turns; the pool reads it. */
  beat: SharedArrayBuffer;
  beatIntervalMs: number;
}

/** One attempt at a run. `key` names it on this port; run ids would be longer. */
export interface RunOrder {
  key: number;
  runId: string;
  threadId: string;
  graphId: string;
  /** From 1. */
  attempt: number;
  /** Just created: it cannot have left a checkpoint yet. Otherwise the worker goes on from its last one, if there is one. */
  isFresh: boolean;
  /** The thread vanishes with the run: the worker removes its checkpoints. */
  temporary: boolean;
  kwargsJson: JsonText;
  /** Somebody may read the events; otherwise only the outcome is sent. */
  listening: boolean;
  /** The events are on record before the checkpoints that follow them. */
  resumable: boolean;
}

export type AbortReason = 'interrupt' | 'rollback' | 'timeout' | 'shutdown';

export type ToWorker =
  | { kind: 'run'; order: RunOrder }
  | { kind: 'abort'; key: number; reason: AbortReason }
  | { kind: 'listen'; key: number }
  /** The events of the run that came before this `settle` are on record, or given up. */
  | { kind: 'settled'; key: number; ticket: number }
  | { kind: 'call'; key: number; call: GraphCall }
  | { kind: 'close' };

export type FromWorker =
  | { kind: 'ready' }
  | { kind: 'unloadable'; failures: LoadFailure[] }
  | { kind: 'event'; key: number; event: string; dataJson: JsonText }
  /** Answered by `settled`. */
  | { kind: 'settle'; key: number; ticket: number }
  | { kind: 'ended'; key: number; end: AttemptEnd; stateCleared: boolean }
  /** Runs whose spans could not be sent. */
  | { kind: 'untraced'; runCount: number; reason: string }
  | { kind: 'answer'; key: number; json: JsonText }
  | { kind: 'refusal'; key: number; code: CallRefusal; message: string };

export interface LoadFailure {
  graphId: string;
  file: string;
  exportName: string;
  reason: string;
}

/** The thread as its last checkpoint has it. */
export interface GraphState {
  /** Null when the thread has no checkpoint. */
  valuesJson: JsonText | null;
  /** `{taskId: [interrupt, …]}`; null when there is none. */
  interruptsJson: JsonText | null;
  hasNext: boolean;
}

/** How one attempt ended. */
export type AttemptEnd =
  | {
      kind: 'success';
      /** What `wait` and `join` answer: the last values, with `__interrupt__` merged in. Null when there were none. */
      resultJson: JsonText | null;
      state: GraphState;
    }
  | { kind: 'error'; errorJson: JsonText; state: GraphState | null }
  | { kind: 'aborted'; reason: AbortReason; state: GraphState | null };

/** Reading and writing a thread's state, and looking at a graph: what needs the loaded graph, yet is no run. */
export type GraphCall =
  | { kind: 'state'; graphId: string; config: CallConfig; subgraphs: boolean }
  | {
      kind: 'history';
      graphId: string;
      config: CallConfig;
      limit: number;
      /** A checkpoint id. */
      before: string | null;
      metadata: JsonObject | null;
    }
  | { kind: 'update'; graphId: string; config: CallConfig; valuesJson: JsonText; asNode: string | null }
  | { kind: 'supersteps'; graphId: string; config: CallConfig; superstepsJson: JsonText }
  | { kind: 'settle'; graphId: string; config: CallConfig }
  | { kind: 'drawing'; graphId: string; config: CallConfig; xray: boolean | number }
  | { kind: 'schemas'; graphId: string; config: CallConfig }
  | { kind: 'subgraphs'; graphId: string; config: CallConfig; namespace: string | null; recurse: boolean };

export interface CallConfig {
  configurable: JsonObject;
  metadata?: JsonObject;
}

/** Why a call was not done. `invalid`: the request names something that the graph does not have or would not take. */
export type CallRefusal = 'graph-missing' | 'invalid' | 'failed' | 'worker-lost' | 'stopped';

/** Answer to `update` and `supersteps`: the new checkpoint, and the thread as it then is. */
export interface UpdateAnswer {
  checkpoint: JsonObject;
  state: GraphState;
}
