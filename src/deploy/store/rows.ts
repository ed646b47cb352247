/** Rows to records, and back where one column holds more than text. */
import type {
  Assistant,
  CancelAction,
  Cron,
  JsonObject,
  JsonText,
  Run,
  RunRef,
  Thread,
  ThreadTtl,
  WebhookDelivery,
} from './model.ts';
import type {
  AssistantTable,
  AssistantVersionTable,
  CronTable,
  DeliveryTable,
  RunTable,
  ThreadTable,
} from './schema.ts';

/** Our own columns, written by `JSON.stringify`. */
export function parsed(text: string): JsonObject {
  return text === '{}' ? {} : (JSON.parse(text) as JsonObject);
}

export function assistantFrom(row: AssistantTable): Assistant {
  return {
    assistantId: row.assistant_id,
    graphId: row.graph_id,
    name: row.name,
    description: row.description,
    version: row.version,
    config: parsed(row.config),
    context: parsed(row.context),
    metadata: parsed(row.metadata),
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
  };
}

export function assistantFromVersion(row: AssistantVersionTable): Assistant {
  return assistantFrom({ ...row, updated_ms: row.created_ms });
}

export function threadFrom(row: ThreadTable): Thread {
  return {
    threadId: row.thread_id,
    status: row.status as Thread['status'],
    metadata: parsed(row.metadata),
    config: parsed(row.config),
    valuesJson: row.values_json as JsonText | null,
    interruptsJson: row.interrupts_json as JsonText | null,
    errorJson: row.error_json as JsonText | null,
    temporary: row.temporary === 1,
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
    stateUpdatedMs: row.state_updated_ms,
    ttl:
      row.ttl_ms === null || row.expires_ms === null
        ? null
        : {
            strategy: row.ttl_strategy as ThreadTtl['strategy'],
            ttlMs: row.ttl_ms,
            expiresMs: row.expires_ms,
          },
  };
}

export function runFrom(row: RunTable): Run {
  return {
    runId: row.run_id,
    threadId: row.thread_id,
    assistantId: row.assistant_id,
    graphId: row.graph_id,
    status: row.status as Run['status'],
    multitask: row.multitask as Run['multitask'],
    metadata: parsed(row.metadata),
    kwargsJson: row.kwargs as JsonText,
    webhook: row.webhook,
    temporary: row.temporary === 1,
    resumable: row.resumable === 1,
    readerId: row.reader_id,
    attempt: row.attempt,
    notBeforeMs: row.not_before_ms,
    cancelAction: row.cancel_action as CancelAction | null,
    ownerId: row.owner_id,
    leaseUntilMs: row.lease_until_ms,
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
    startedMs: row.started_ms,
    endedMs: row.ended_ms,
    errorJson: row.error_json as JsonText | null,
  };
}

export function refFrom(row: Pick<RunTable, 'run_id' | 'thread_id' | 'owner_id'>): RunRef {
  return { runId: row.run_id, threadId: row.thread_id, ownerId: row.owner_id };
}

export function cronFrom(row: CronTable): Cron {
  return {
    cronId: row.cron_id,
    assistantId: row.assistant_id,
    threadId: row.thread_id,
    schedule: row.schedule,
    timezone: row.timezone,
    enabled: row.enabled === 1,
    onRunCompleted: row.on_run_completed as Cron['onRunCompleted'],
    endMs: row.end_ms,
    nextRunMs: row.next_run_ms,
    metadata: parsed(row.metadata),
    payload: parsed(row.payload),
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
  };
}

export function deliveryFrom(row: DeliveryTable): WebhookDelivery {
  return {
    deliveryId: row.delivery_id,
    runId: row.run_id,
    threadId: row.thread_id,
    url: row.url,
    origin: row.origin,
    payloadJson: row.payload as JsonText,
    status: row.status as WebhookDelivery['status'],
    attemptCount: row.attempt_count,
    nextAttemptMs: row.next_attempt_ms,
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
  };
}
