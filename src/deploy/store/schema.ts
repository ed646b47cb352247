/**
 * Tables and columns, as Kysely sees them. Flags are 0 or 1, times are milliseconds since the epoch, JSON travels as text on both
 * engines (PostgreSQL keeps what is filtered on as jsonb, and sends it as text).
 */

export interface ControlTables {
  deploy_assistant: AssistantTable;
  deploy_assistant_version: AssistantVersionTable;
  deploy_thread: ThreadTable;
  deploy_run: RunTable;
  deploy_run_event: RunEventTable;
  deploy_cron: CronTable;
  deploy_delivery: DeliveryTable;
  deploy_attempt: AttemptTable;
}

export interface StateTables {
  deploy_checkpoint: CheckpointTable;
  deploy_write: WriteTable;
  deploy_item: ItemTable;
}

export interface AssistantTable {
  assistant_id: string;
  graph_id: string;
  name: string;
  description: string | null;
  version: number;
  config: string;
  context: string;
  metadata: string;
  created_ms: number;
  updated_ms: number;
}

export type AssistantVersionTable = Omit<AssistantTable, 'updated_ms'>;

export interface ThreadTable {
  thread_id: string;
  status: string;
  metadata: string;
  config: string;
  values_json: string | null;
  interrupts_json: string | null;
  error_json: string | null;
  /** The last checkpoint has something left to do. */
  has_next: number;
  temporary: number;
  created_ms: number;
  updated_ms: number;
  state_updated_ms: number | null;
  ttl_strategy: string | null;
  ttl_ms: number | null;
  expires_ms: number | null;
}

export interface RunTable {
  run_id: string;
  thread_id: string;
  assistant_id: string;
  graph_id: string;
  status: string;
  multitask: string;
  metadata: string;
  kwargs: string;
  webhook: string | null;
  temporary: number;
  resumable: number;
  reader_id: string | null;
  attempt: number;
  not_before_ms: number;
  cancel_action: string | null;
  owner_id: string | null;
  lease_until_ms: number | null;
  created_ms: number;
  updated_ms: number;
  started_ms: number | null;
  ended_ms: number | null;
  error_json: string | null;
}

export interface RunEventTable {
  run_id: string;
  seq: number;
  event_id: string;
  event: string;
  data: string;
  expires_ms: number;
}

export interface CronTable {
  cron_id: string;
  assistant_id: string;
  thread_id: string | null;
  schedule: string;
  timezone: string | null;
  enabled: number;
  on_run_completed: string;
  end_ms: number | null;
  next_run_ms: number | null;
  metadata: string;
  payload: string;
  created_ms: number;
  updated_ms: number;
}

export interface DeliveryTable {
  delivery_id: string;
  run_id: string;
  thread_id: string;
  url: string;
  /** Of the URL: deliveries to one receiver are limited together. */
  origin: string;
  payload: string;
  status: string;
  attempt_count: number;
  next_attempt_ms: number;
  created_ms: number;
  updated_ms: number;
}

export interface AttemptTable {
  delivery_id: string;
  number: number;
  started_ms: number;
  duration_ms: number;
  status_code: number | null;
  error: string | null;
}

export interface CheckpointTable {
  thread_id: string;
  checkpoint_ns: string;
  checkpoint_id: string;
  parent_id: string | null;
  /** The run that wrote it: what a rollback removes. */
  run_id: string | null;
  type: string;
  /** Without the channels' values. */
  checkpoint: Uint8Array;
  /**
   * Channel to the id of the checkpoint (of the same namespace) whose `delta` holds its value: a step stores what it changed and
   * points at the rest, so that a long conversation is not written anew by every step.
   */
  holders: string;
  delta_type: string;
  delta: Uint8Array;
  metadata_type: string;
  /** JSON text, so that history can be filtered by it. */
  metadata: string;
}

export interface WriteTable {
  thread_id: string;
  checkpoint_ns: string;
  checkpoint_id: string;
  task_id: string;
  idx: number;
  channel: string;
  type: string;
  value: Uint8Array;
  /**
   * The run that wrote it, empty for none. A resumed run writes to the checkpoint of the run that it resumes: of several rows for one
   * place the newest run's counts, and after its rollback the one before is back.
   */
  run_id: string;
}

export interface ItemTable {
  /** Labels, each followed by a full stop (which no label contains): a prefix of the namespace is a prefix of this. */
  path: string;
  key: string;
  value: string;
  created_ms: number;
  updated_ms: number;
  ttl_ms: number | null;
  expires_ms: number | null;
}
