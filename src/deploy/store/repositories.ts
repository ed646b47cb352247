/**
 * What the store can do, whatever the engine. Each method is atomic: what must not be seen half done is one method and one
 * transaction inside. Expected refusals are values (`kind`), never exceptions and never status codes. Arguments and results
 * are plain data. A method that needs the time takes it, so that tests own the clock.
 */
import type { Kysely } from 'kysely';
import type {
  Assistant,
  CancelAction,
  Cron,
  DeliveryStatus,
  Found,
  JsonObject,
  JsonText,
  MultitaskStrategy,
  Page,
  Run,
  RunEvent,
  RunRef,
  RunStatus,
  SortOrder,
  StoreItem,
  Thread,
  ThreadStatus,
  ThreadTtl,
  WebhookAttempt,
  WebhookDelivery,
} from './model.ts';
import type { ControlTables } from './schema.ts';

/**
 * The control tables. Checkpoints and store items live in {@link StateStore}, which graph workers write to as well. Opened (and
 * its schema brought up to date) by open.ts.
 */
export interface DeploymentStore {
  readonly engine: 'sqlite' | 'postgres';
  readonly assistants: AssistantRepository;
  readonly threads: ThreadRepository;
  readonly runs: RunRepository;
  readonly events: RunEventRepository;
  readonly crons: CronRepository;
  readonly webhooks: WebhookRepository;
  readonly state: StateStore;
  /** Throws when the database does not answer. */
  ping(): Promise<void>;
  /**
   * Calls back when *another* process may have queued runs, changed a run's fate or ended one (PostgreSQL: NOTIFY). What this
   * process does itself is not echoed. Returns the way to unsubscribe. Never calls on SQLite.
   */
  onForeignChange(listener: (change: ForeignChange) => void): () => void;
  stop(): Promise<void>;
}

export type ForeignChange =
  | { kind: 'run-pending' }
  | { kind: 'run-cancel'; runId: string; action: CancelAction }
  | { kind: 'run-ended'; runId: string }
  /** There are new events of the run on record. */
  | { kind: 'run-events'; runId: string }
  /** Notifications may have been missed. */
  | { kind: 'gap' };

// ---------------------------------------------------------------------------------------------------- assistants

export interface NewAssistant {
  assistantId: string;
  graphId: string;
  name: string;
  description: string | null;
  config: JsonObject;
  context: JsonObject;
  metadata: JsonObject;
  ifExists: 'raise' | 'do_nothing';
  nowMs: number;
}
/** Absent fields stay; metadata is merged, the others replace. */
export interface AssistantPatch {
  graphId?: string;
  name?: string;
  description?: string | null;
  config?: JsonObject;
  context?: JsonObject;
  metadata?: JsonObject;
}
export interface AssistantFilter {
  metadata?: JsonObject;
  graphId?: string;
  /** Case-insensitive substring. */
  name?: string;
  /** Default assistants of other graphs than these are left out: of graphs that were served once. */
  servedGraphIds?: readonly string[];
}
export type AssistantSortKey = 'assistantId' | 'graphId' | 'name' | 'createdMs' | 'updatedMs';

export interface AssistantRepository {
  create(assistant: NewAssistant): Promise<{ kind: 'created' | 'existing'; assistant: Assistant } | { kind: 'exists' }>;
  /** Makes sure that the default assistant of each graph is there, with this config; never touches a user's changes. */
  ensureDefaults(defaults: readonly NewAssistant[]): Promise<void>;
  get(assistantId: string): Promise<Assistant | null>;
  /** A new version, even for an empty patch. */
  patch(assistantId: string, patch: AssistantPatch, nowMs: number): Promise<Assistant | null>;
  /** With all versions and its crons. With `deleteThreads` also returns the ids of threads that belong to it. */
  delete(assistantId: string): Promise<boolean>;
  search(
    filter: AssistantFilter,
    page: Page,
    sort: { by: AssistantSortKey; order: SortOrder },
  ): Promise<Found<Assistant>>;
  count(filter: AssistantFilter): Promise<number>;
  /** Newest first; null when the assistant does not exist. */
  versions(assistantId: string, metadata: JsonObject | null, page: Page): Promise<Assistant[] | null>;
  setLatest(assistantId: string, version: number, nowMs: number): Promise<Assistant | null>;
}

// ------------------------------------------------------------------------------------------------------- threads

export interface NewThread {
  threadId: string;
  metadata: JsonObject;
  ifExists: 'raise' | 'do_nothing';
  ttl: ThreadTtl | null;
  nowMs: number;
}
export interface ThreadFilter {
  ids?: string[];
  metadata?: JsonObject;
  values?: JsonObject;
  status?: ThreadStatus;
}
export type ThreadSortKey = 'threadId' | 'status' | 'createdMs' | 'updatedMs' | 'stateUpdatedMs';
/** What reading a thread's state back from its graph yields; also used after a state update. */
export interface ThreadStateSnapshot {
  valuesJson: JsonText | null;
  interruptsJson: JsonText | null;
  /** The last checkpoint has something left to do. */
  hasNext: boolean;
}

export interface ThreadRepository {
  create(thread: NewThread): Promise<{ kind: 'created' | 'existing'; thread: Thread } | { kind: 'exists' }>;
  get(threadId: string): Promise<Thread | null>;
  /** Metadata is merged; `ttl` null removes it, undefined leaves it. */
  patch(
    threadId: string,
    metadata: JsonObject,
    ttl: ThreadTtl | null | undefined,
    nowMs: number,
  ): Promise<Thread | null>;
  /** With its runs, events, crons and state. Returns the runs that were pending or running: to be aborted, their joiners told. */
  delete(threadId: string): Promise<{ kind: 'deleted'; inFlight: RunRef[] } | { kind: 'missing' }>;
  /** New thread with the same metadata, config, values and checkpoints; idle. */
  copy(threadId: string, newThreadId: string, nowMs: number): Promise<Thread | null>;
  search(filter: ThreadFilter, page: Page, sort: { by: ThreadSortKey; order: SortOrder }): Promise<Found<Thread>>;
  count(filter: ThreadFilter): Promise<number>;
  /** After a state update outside a run. Refused while a run is pending or running. */
  setState(threadId: string, state: ThreadStateSnapshot, nowMs: number): Promise<'set' | 'busy' | 'missing'>;
  /** Whether a run of the thread is pending or running. */
  isBusy(threadId: string): Promise<boolean>;
  /** Merges keys into the metadata of a thread not yet bound to a graph (`graph_id`, `assistant_id`). */
  bind(threadId: string, graphId: string, assistantId: string): Promise<void>;
  /** Ids of threads whose time to live has passed, oldest first, none with a run in flight. */
  expired(nowMs: number, limit: number): Promise<{ threadId: string; strategy: ThreadTtl['strategy'] }[]>;
}

// ---------------------------------------------------------------------------------------------------------- runs

/**
 * A run to be created. The store resolves assistant and thread, merges (compose.ts: assistant ← thread ← request) and
 * inserts, all in one transaction.
 */
export interface NewRun {
  runId: string;
  /** Id of an assistant, or of a graph. */
  assistantId: string;
  /** Null: stateless, a hidden thread `newThreadId` is made. */
  threadId: string | null;
  newThreadId: string;
  ifThreadMissing: 'reject' | 'create';
  temporary: boolean;
  resumable: boolean;
  /** The process in which a client reads the run live; absent when none does. */
  readerId?: string;
  multitask: MultitaskStrategy;
  notBeforeMs: number;
  /** Already checked against the URL policy; null also when webhooks are switched off. */
  webhook: string | null;
  config: JsonObject;
  context: JsonObject;
  metadata: JsonObject;
  /** Every other key of `kwargs` with its value, as text so that a large input is not copied around: `{"input":…,"command":…}`. */
  restJson: JsonText;
  /**
   * When set and nothing stands in the way, the run is created as already claimed: one transaction less for a queue that has
   * a free place. Otherwise it is pending.
   */
  claim: RunClaim | null;
  nowMs: number;
}
export interface RunClaim {
  ownerId: string;
  leaseUntilMs: number;
}
export type RunCreation =
  | {
      kind: 'created';
      run: Run;
      /** It was created as claimed: `run.status` is `running`. */
      claimed: boolean;
      /** Pending runs that ended at once (`interrupt`) or vanished (`rollback`): joiners of these must be woken. */
      displaced: RunRef[];
      /** Running runs marked with `cancelAction`: their workers must be told. */
      stopping: { ref: RunRef; action: CancelAction }[];
      /** Webhook deliveries were queued for displaced runs. */
      deliveriesQueued: boolean;
    }
  | { kind: 'assistant-missing' }
  | { kind: 'thread-missing' }
  /** `reject`, and a run is in flight. */
  | { kind: 'conflict' };

export type RunOutcome =
  | { kind: 'success' }
  | { kind: 'error' | 'timeout'; errorJson: JsonText }
  /** Stopped by request; whether it is kept or removed follows `cancelAction` of the row (rollback removes). */
  | { kind: 'cancelled' };

export interface RunEnd {
  runId: string;
  threadId: string;
  ownerId: string;
  outcome: RunOutcome;
  /** Null: leave the thread's values as they are (nothing was committed). */
  state: ThreadStateSnapshot | null;
  /** The graph worker has removed the checkpoints of a temporary or rolled-back run itself. */
  stateCleared: boolean;
  nowMs: number;
}
export type RunEnding =
  | {
      kind: 'ended';
      /** Null: rolled back or temporary, the row is gone. */
      run: Run | null;
      status: RunStatus;
      rolledBack: boolean;
      threadStatus: ThreadStatus | null;
      /** The thread has another pending run: wake the queue. */
      morePending: boolean;
      deliveryQueued: boolean;
    }
  /** The caller no longer owns the run (lease lost, deleted): its result must be thrown away. */
  | { kind: 'lost' };

export interface RunFilter {
  status?: RunStatus;
}

export interface RunRepository {
  create(run: NewRun): Promise<RunCreation>;
  /** All in order in one transaction; on the first refusal nothing is created. */
  createBatch(
    runs: readonly NewRun[],
  ): Promise<{ kind: 'created'; creations: RunCreation[] } | { kind: 'refused'; index: number; creation: RunCreation }>;
  /**
   * Claims the oldest eligible runs, at most `count`: pending, due, nothing running on their threads. When there are fewer it says
   * when the next delayed run becomes due (null: none), so that the queue sets one timer instead of polling.
   */
  claimOldest(claim: RunClaim, count: number, nowMs: number): Promise<{ runs: Run[]; nextDueMs: number | null }>;
  /** Extends the leases; returns those no longer owned, and those that another process asked to cancel. */
  renew(
    ownerId: string,
    runIds: readonly string[],
    leaseUntilMs: number,
  ): Promise<{ lost: string[]; cancelled: { runId: string; action: CancelAction }[] }>;
  /** Ends a run: status, thread, webhook row, removal of temporary or rolled-back rows (their checkpoints first). */
  finish(end: RunEnd): Promise<RunEnding>;
  /**
   * Gives a claimed run back (worker died, shutdown). At `maxAttempts` it ends as `error` with `errorJson` instead; a run with
   * `cancelAction` ends as cancelled. `countAttempt` false when the run was not at fault (shutdown).
   */
  release(
    runId: string,
    ownerId: string,
    s: { maxAttempts: number; countAttempt: boolean; errorJson: JsonText; nowMs: number },
  ): Promise<{ kind: 'requeued' } | RunEnding>;
  /** Releases every running run whose lease has passed (`all`: every running run; SQLite at start-up). Returns what ended. */
  recover(s: {
    all: boolean;
    maxAttempts: number;
    errorJson: JsonText;
    nowMs: number;
  }): Promise<{ requeuedCount: number; ended: { ref: RunRef; ending: RunEnding }[] }>;
  /**
   * Pending runs end at once, running ones are marked. Unknown ids are listed. `selector.threadId` null: any thread.
   */
  cancel(selector: CancelSelector, action: CancelAction, nowMs: number): Promise<RunCancellation>;
  get(runId: string): Promise<Run | null>;
  /** Newest first. */
  list(threadId: string, filter: RunFilter, page: Page): Promise<Run[]>;
  /** Refused while it is in flight. */
  delete(threadId: string, runId: string): Promise<'deleted' | 'missing' | 'active'>;
  countByStatus(): Promise<Record<'pending' | 'running', number>>;
}
export type CancelSelector =
  | { kind: 'ids'; threadId: string | null; runIds: readonly string[] }
  | { kind: 'status'; threadId: string | null; statuses: readonly ('pending' | 'running')[] };
export interface RunCancellation {
  missing: string[];
  /** Found, but already ended. */
  ended: RunRef[];
  /** Were pending; ended or removed now. */
  displaced: RunRef[];
  /** Are running; their workers must be told. */
  stopping: { ref: RunRef; action: CancelAction }[];
  deliveriesQueued: boolean;
}

/** Events of resumable runs, so that a stream can be replayed after the process that made it is gone. */
export interface RunEventRepository {
  append(runId: string, events: readonly RunEvent[], expiresMs: number): Promise<void>;
  /** In order; `afterSeq` −1 for all. */
  after(runId: string, afterSeq: number, limit: number): Promise<RunEvent[]>;
  /** The highest seq kept for a run; −1 when there is none. */
  lastSeq(runId: string): Promise<number>;
  /** What a temporary run that has just ended said to those who wait for it in other processes; null when nothing is kept. */
  result(runId: string): Promise<JsonText | null>;
  /** Sets the expiry of all events of an ended run. */
  expireAt(runId: string, expiresMs: number): Promise<void>;
  deleteExpired(nowMs: number): Promise<number>;
}

// --------------------------------------------------------------------------------------------------------- crons

export interface NewCron {
  cronId: string;
  assistantId: string;
  threadId: string | null;
  schedule: string;
  timezone: string | null;
  enabled: boolean;
  onRunCompleted: 'delete' | 'keep';
  endMs: number | null;
  metadata: JsonObject;
  payload: JsonObject;
  nowMs: number;
}
/** `endMs` null clears. Absent fields stay; metadata and payload are merged. */
export type CronPatch = Partial<
  Pick<Cron, 'schedule' | 'timezone' | 'enabled' | 'onRunCompleted' | 'endMs' | 'metadata' | 'payload'>
>;
export interface CronFilter {
  assistantId?: string;
  threadId?: string;
  enabled?: boolean;
  metadata?: JsonObject;
}
export type CronSortKey = 'cronId' | 'assistantId' | 'threadId' | 'nextRunMs' | 'endMs' | 'createdMs' | 'updatedMs';

export interface CronRepository {
  create(cron: NewCron): Promise<{ kind: 'created'; cron: Cron } | { kind: 'assistant-missing' | 'thread-missing' }>;
  get(cronId: string): Promise<Cron | null>;
  patch(cronId: string, patch: CronPatch, nowMs: number): Promise<Cron | null>;
  delete(cronId: string): Promise<boolean>;
  search(filter: CronFilter, page: Page, sort: { by: CronSortKey; order: SortOrder }): Promise<Found<Cron>>;
  count(filter: CronFilter): Promise<number>;
  /**
   * Fires up to `limit` due crons: in one transaction each, the next due time is advanced past `nowMs` (so that downtime costs at
   * most one catch-up) and the run is created. Two schedulers on one database never fire the same tick twice.
   */
  fireDue(nowMs: number, limit: number): Promise<{ fired: CronFiring[]; nextDueMs: number | null }>;
}
export interface CronFiring {
  cron: Cron;
  /** Null: it had expired. Unfit: no run can be made of it any more, and it does not come due again until it is changed. */
  creation: RunCreation | { kind: 'unfit'; reason: string } | null;
}

// ------------------------------------------------------------------------------------------------------ webhooks

export interface WebhookRepository {
  /**
   * Claims deliveries that are due until `leaseUntilMs`; they become due again when the claimer dies. Those to `exceptOrigins` are
   * left alone, also for when the next one is due.
   */
  claimDue(
    nowMs: number,
    leaseUntilMs: number,
    limit: number,
    exceptOrigins: readonly string[],
  ): Promise<{ due: WebhookDelivery[]; nextDueMs: number | null }>;
  /** Gives claimed deliveries back, due at `untilMs`, without an attempt. */
  defer(deliveryIds: readonly string[], untilMs: number): Promise<void>;
  /** Records one attempt and what comes next. */
  recordAttempt(
    deliveryId: string,
    attempt: WebhookAttempt,
    next: { status: DeliveryStatus; nextAttemptMs: number },
  ): Promise<void>;
  forRun(runId: string): Promise<{ delivery: WebhookDelivery; attempts: WebhookAttempt[] }[]>;
  deleteEndedBefore(ms: number): Promise<number>;
}

// --------------------------------------------------------------------------------------------------------- state

/**
 * Checkpoints and store items: written by graph workers through connections of their own. `within`: the transaction on the control
 * tables that the change belongs to.
 */
export interface StateStore {
  readonly items: ItemRepository;
  deleteThread(threadId: string, within?: Kysely<ControlTables>): Promise<void>;
  /** Removes every checkpoint that the run wrote, so that the thread is as it was before (rollback). */
  deleteRun(threadId: string, runId: string, within?: Kysely<ControlTables>): Promise<void>;
  copyThread(threadId: string, newThreadId: string, within?: Kysely<ControlTables>): Promise<void>;
  /** Keeps only the newest checkpoint of each namespace. */
  keepLatest(threadId: string): Promise<void>;
}

export interface ItemSearch {
  namespacePrefix: string[];
  filter: JsonObject | null;
  query: string | null;
}
export interface NamespaceSearch {
  prefix: string[] | null;
  suffix: string[] | null;
  maxDepth: number | null;
}
export interface ItemRepository {
  put(
    item: { namespace: string[]; key: string; valueJson: JsonText; ttlMs: number | null },
    nowMs: number,
  ): Promise<void>;
  /** Null when absent or expired. `refreshTtl` pushes the expiry out again. */
  get(namespace: string[], key: string, refreshTtl: boolean, nowMs: number): Promise<StoreItem | null>;
  delete(namespace: string[], key: string): Promise<boolean>;
  search(search: ItemSearch, page: Page, nowMs: number): Promise<{ item: StoreItem; score: number | null }[]>;
  namespaces(search: NamespaceSearch, page: Page, nowMs: number): Promise<string[][]>;
  deleteExpired(nowMs: number): Promise<number>;
}
