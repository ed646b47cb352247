/**
 * The records of the deployment API as the code sees them. Wire spelling (snake_case, ISO times) stops at `routes/`, column
 * spelling at the repositories. Every record is plain data that a structured clone carries unchanged, so that the store can
 * sit in another thread than its callers.
 */

export type JsonValue = string | number | boolean | null | JsonValue[] | JsonObject;
export interface JsonObject {
  [key: string]: JsonValue;
}

declare const jsonText: unique symbol;
/**
 * One valid JSON document as text. State values and run inputs can be megabytes: they travel from the graph worker to the
 * database and from there to the client without being parsed in between.
 */
export type JsonText = string & { readonly [jsonText]: true };

export type SortOrder = 'asc' | 'desc';

export interface Page {
  limit: number;
  offset: number;
}

/** One page of a search and how many rows there are without `limit` and `offset`. */
export interface Found<T> {
  rows: T[];
  totalCount: number;
}

export interface Assistant {
  assistantId: string;
  graphId: string;
  name: string;
  description: string | null;
  version: number;
  config: JsonObject;
  context: JsonObject;
  metadata: JsonObject;
  createdMs: number;
  /** Of the version for a row of `versions`, else of the assistant. */
  updatedMs: number;
}

export type ThreadStatus = 'idle' | 'busy' | 'interrupted' | 'error';

export interface Thread {
  threadId: string;
  status: ThreadStatus;
  metadata: JsonObject;
  config: JsonObject;
  /** State values after the last run; null before the first. */
  valuesJson: JsonText | null;
  /** Map of task id to its interrupts. */
  interruptsJson: JsonText | null;
  /** `{error, message}` of the last run that failed. */
  errorJson: JsonText | null;
  /** Hidden from searches and removed with its run: the thread of a stateless run. */
  temporary: boolean;
  createdMs: number;
  updatedMs: number;
  stateUpdatedMs: number | null;
  ttl: ThreadTtl | null;
}

export interface ThreadTtl {
  strategy: 'delete' | 'keep_latest';
  ttlMs: number;
  expiresMs: number;
}

export type RunStatus = 'pending' | 'running' | 'success' | 'error' | 'timeout' | 'interrupted';
export type MultitaskStrategy = 'reject' | 'interrupt' | 'rollback' | 'enqueue';
/** How an in-flight run is stopped: keep the record, or remove it with everything that it wrote. */
export type CancelAction = 'interrupt' | 'rollback';

export interface Run {
  /** UUIDv7: sorts by creation. */
  runId: string;
  threadId: string;
  assistantId: string;
  graphId: string;
  status: RunStatus;
  multitask: MultitaskStrategy;
  metadata: JsonObject;
  /** What the graph worker runs and the client sees as `kwargs`: see compose.ts. */
  kwargsJson: JsonText;
  webhook: string | null;
  /** Stateless with `on_completion=delete`: the run and its thread vanish when it ends. */
  temporary: boolean;
  /** Its events are kept for replay. */
  resumable: boolean;
  /** The process in which a client reads the run live: another one that executes it leaves the events where they are found. */
  readerId: string | null;
  /** 1 while the first attempt runs; 0 before. */
  attempt: number;
  /** Not claimed before this moment (`after_seconds`). */
  notBeforeMs: number;
  /** Set while a running run is asked to stop. */
  cancelAction: CancelAction | null;
  /** The queue instance that runs it, and until when that is believed without news. */
  ownerId: string | null;
  leaseUntilMs: number | null;
  createdMs: number;
  updatedMs: number;
  startedMs: number | null;
  endedMs: number | null;
  /** `{error, message}`. */
  errorJson: JsonText | null;
}

/** Enough to address a run. */
export interface RunRef {
  runId: string;
  threadId: string;
  ownerId: string | null;
}

/** An event of a resumable run, kept for replay. */
export interface RunEvent {
  seq: number;
  /** SSE id and event name as sent. */
  eventId: string;
  event: string;
  dataJson: JsonText;
}

export interface Cron {
  cronId: string;
  assistantId: string;
  threadId: string | null;
  schedule: string;
  timezone: string | null;
  enabled: boolean;
  onRunCompleted: 'delete' | 'keep';
  endMs: number | null;
  /** Null when disabled or expired. */
  nextRunMs: number | null;
  metadata: JsonObject;
  /** The run request that every firing repeats, as the client sees it in `payload`. */
  payload: JsonObject;
  createdMs: number;
  updatedMs: number;
}

/** `pending` waits for `nextAttemptMs`; `delivered` and `failed` are final. */
export type DeliveryStatus = 'pending' | 'delivered' | 'failed';

export interface WebhookDelivery {
  deliveryId: string;
  runId: string;
  threadId: string;
  url: string;
  /** Of the URL. */
  origin: string;
  /** The body but for `webhook_sent_at`. */
  payloadJson: JsonText;
  status: DeliveryStatus;
  attemptCount: number;
  nextAttemptMs: number;
  createdMs: number;
  updatedMs: number;
}

export interface WebhookAttempt {
  number: number;
  startedMs: number;
  durationMs: number;
  /** Null when no answer came. */
  statusCode: number | null;
  /** Why it did not count as delivered; null when it did. Never contains the URL. */
  error: string | null;
}

export interface StoreItem {
  namespace: string[];
  key: string;
  valueJson: JsonText;
  createdMs: number;
  updatedMs: number;
}
