/** The deployment API as this page uses it; its answers are as `/openapi.json` has them. */
import type { Client } from '../../api/client.ts';
import type { ServerEvent } from '../../api/events.ts';
import { parseExactJson } from '../../parts/exactjson.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

export interface Assistant {
  readonly assistant_id: string;
  readonly graph_id: string;
  readonly name: string;
  readonly description: string | null;
  readonly version: number;
  readonly config: JsonObject;
  readonly context: JsonObject;
  readonly metadata: JsonObject;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface GraphDrawing {
  readonly nodes: readonly { readonly id: string; readonly type: string; readonly data?: unknown }[];
  readonly edges: readonly {
    readonly source: string;
    readonly target: string;
    readonly conditional?: boolean;
    /** Of a condition: what leads here. */
    readonly data?: unknown;
  }[];
}

export interface Schemas {
  readonly input_schema: JsonObject | null;
  readonly output_schema: JsonObject | null;
  readonly state_schema: JsonObject | null;
  readonly config_schema: JsonObject | null;
}

export type ThreadStatus = 'idle' | 'busy' | 'interrupted' | 'error';

export interface ThreadSummary {
  readonly thread_id: string;
  readonly status: ThreadStatus;
  readonly metadata: JsonObject;
  readonly created_at: string;
  readonly updated_at: string;
}

export interface Interrupt {
  readonly id?: string;
  readonly value: unknown;
}

export interface ThreadState {
  readonly values: unknown;
  readonly next: readonly string[];
  readonly tasks: readonly {
    readonly id: string;
    readonly name: string;
    readonly error: string | null;
    readonly interrupts: readonly Interrupt[];
  }[];
  readonly metadata: JsonObject | null;
  readonly created_at: string | null;
  readonly checkpoint_id: string | null;
  readonly parent_checkpoint_id: string | null;
}

export type RunStatus = 'pending' | 'running' | 'success' | 'error' | 'timeout' | 'interrupted';

export interface Run {
  readonly run_id: string;
  readonly thread_id: string;
  readonly assistant_id: string;
  readonly status: RunStatus;
  readonly created_at: string;
  readonly updated_at: string;
  readonly metadata: JsonObject;
  readonly kwargs: JsonObject;
}

export interface WebhookDelivery {
  readonly webhook_id: string;
  readonly url: string;
  readonly status: string;
  readonly attempt_count: number;
  readonly next_attempt_at: string | null;
  readonly attempts: readonly {
    readonly number: number;
    readonly started_at: string;
    readonly duration_ms: number;
    readonly status_code: number | null;
    readonly error: string | null;
  }[];
}

export interface Cron {
  readonly cron_id: string;
  readonly assistant_id: string;
  readonly thread_id: string | null;
  readonly schedule: string;
  readonly timezone: string | null;
  readonly enabled: boolean;
  readonly end_time: string | null;
  readonly next_run_date: string | null;
  readonly metadata: JsonObject;
  readonly payload: JsonObject;
}

/** Of one search. */
export const PAGE_COUNT = 50;
const THREAD_FIELDS = ['thread_id', 'status', 'metadata', 'created_at', 'updated_at'];

export function createDeployments(client: Client) {
  /** Ids and counts beyond what a double holds stay as they were written. */
  const exact = async <T>(path: string, signal?: AbortSignal): Promise<T> =>
    parseExactJson(await client.text(path, signal === undefined ? {} : { signal })) as T;
  const get = <T>(path: string, signal: AbortSignal): Promise<T> => client.get<T>(path, { signal });
  const part = encodeURIComponent;
  return {
    assistants: (signal: AbortSignal) =>
      client.send<Assistant[]>(
        'POST',
        '/assistants/search',
        { limit: 1000, sort_by: 'name', sort_order: 'asc' },
        { signal },
      ),
    graph: (assistantId: string, xray: boolean, signal: AbortSignal) =>
      get<GraphDrawing>(`/assistants/${part(assistantId)}/graph?xray=${xray}`, signal),
    schemas: (assistantId: string, signal: AbortSignal) =>
      get<Schemas>(`/assistants/${part(assistantId)}/schemas`, signal),
    threads: (search: { readonly status?: ThreadStatus; readonly offset: number }, signal: AbortSignal) =>
      client.send<ThreadSummary[]>(
        'POST',
        '/threads/search',
        { ...search, limit: PAGE_COUNT, select: THREAD_FIELDS, sort_by: 'updated_at', sort_order: 'desc' },
        { signal },
      ),
    thread: (threadId: string, signal: AbortSignal) =>
      exact<ThreadSummary & { readonly error: unknown }>(`/threads/${part(threadId)}`, signal),
    createThread: () => client.send<ThreadSummary>('POST', '/threads', {}),
    copyThread: (threadId: string) => client.send<ThreadSummary>('POST', `/threads/${part(threadId)}/copy`),
    deleteThread: (threadId: string) => client.send<null>('DELETE', `/threads/${part(threadId)}`),
    state: (threadId: string, signal: AbortSignal) => exact<ThreadState>(`/threads/${part(threadId)}/state`, signal),
    stateAt: (threadId: string, checkpointId: string, signal: AbortSignal) =>
      exact<ThreadState>(`/threads/${part(threadId)}/state/${part(checkpointId)}`, signal),
    history: (threadId: string, limit: number, signal: AbortSignal) =>
      exact<ThreadState[]>(`/threads/${part(threadId)}/history?limit=${limit}`, signal),
    fork: (
      threadId: string,
      update: { readonly values: unknown; readonly asNode: string; readonly checkpointId: string },
    ) =>
      client.send<{ checkpoint: { checkpoint_id: string } }>('POST', `/threads/${part(threadId)}/state`, {
        values: update.values,
        checkpoint: { checkpoint_id: update.checkpointId },
        ...(update.asNode === '' ? {} : { as_node: update.asNode }),
      }),
    runs: (threadId: string, signal: AbortSignal) =>
      exact<Run[]>(`/threads/${part(threadId)}/runs?limit=${PAGE_COUNT}`, signal),
    webhooks: (runId: string, signal: AbortSignal) => get<WebhookDelivery[]>(`/runs/${part(runId)}/webhooks`, signal),
    cancelRun: (threadId: string, runId: string) =>
      client.send<null>('POST', `/threads/${part(threadId)}/runs/${part(runId)}/cancel`),
    /** Null thread: none, and the run leaves nothing behind. `onRun` hears of the run's id as soon as there is a run. */
    stream: (
      threadId: string | null,
      request: JsonObject,
      { onRun, onEvent }: { readonly onRun: (runId: string) => void; readonly onEvent: (event: ServerEvent) => void },
      signal: AbortSignal,
    ) =>
      client.stream(
        threadId === null ? '/runs/stream' : `/threads/${part(threadId)}/runs/stream`,
        request,
        {
          // The run's own events come when its turn has come.
          onHead: (headers) => {
            const runId = /\/runs\/([^/]+)$/.exec(headers.get('content-location') ?? '')?.[1];
            if (runId !== undefined) onRun(runId);
          },
          onEvent,
        },
        signal,
      ),
    crons: (signal: AbortSignal) =>
      client.send<Cron[]>('POST', '/runs/crons/search', { limit: 1000, sort_by: 'created_at' }, { signal }),
    enableCron: (cronId: string, enabled: boolean) =>
      client.send<Cron>('PATCH', `/runs/crons/${part(cronId)}`, { enabled }),
    deleteCron: (cronId: string) => client.send<null>('DELETE', `/runs/crons/${part(cronId)}`),
  };
}

export type Deployments = ReturnType<typeof createDeployments>;
