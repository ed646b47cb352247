/**
 * What the query API speaks: JSON over HTTP, member names as in the run records. All paths are below `/api`; times are
 * RFC 3339 in UTC with six digits; `null` means not known.
 *
 * | Path                                    | Parameters                                     | Answer               |
 * | --------------------------------------- | ---------------------------------------------- | -------------------- |
 * | `GET /api/runs`                         | filter, `parent`, `limit`, `cursor`            | `Page<RunSummary>`   |
 * | `GET /api/runs/{id}`                    | `tenant`                                       | `RunDetail`          |
 * | `GET /api/runs/{id}/attachments/{name}` | `tenant`                                       | the bytes            |
 * | `GET /api/traces`                       | filter, `limit`, `cursor`                      | `Page<TraceSummary>` |
 * | `GET /api/traces/{id}`                  | `tenant`, `format` (`flat`, `tree`)            | `TraceDetail`        |
 * | `GET /api/projects`                     | `tenant`                                       | `{ items: Project[] }` |
 * | `GET /api/stats`                        | filter of traces, `buckets`                    | `Stats`              |
 * | `GET /api/uploads`                      |                                                | `{ items: UploadNote[] }`, newest first |
 * | `GET /api/events`                       | filter of traces                               | server-sent events   |
 * | `GET, POST, DELETE /api/faults`         | body of POST: `FaultRule`                      | `{ items: FaultState[] }` |
 *
 * The filter: `tenant`, `project`, `trace` (an id), `status`, `run_type`, `name`, `since` and `until` (of the start; RFC
 * 3339 or milliseconds since the epoch; `until` is exclusive), `text` (every word must occur, or begin one), `min_duration_ms`,
 * `max_duration_ms`, `error` (`true`, `false`, or text that the error contains). `project`, `status` and `run_type` may be
 * repeated: any of them. A filter of traces asks: `status`, `name`, times and durations of the root; `run_type`, `text` and
 * `error` of any run.
 *
 * Events: `ready` once, then `traces` with a `TraceEvent` whenever traces arrived or changed, at most four a second, and
 * `reset` when the client fell behind and must ask again. A wrong parameter is 400, `{ "error": … }`.
 */

export type Status = 'success' | 'error' | 'pending';

export interface Page<T> {
  readonly items: readonly T[];
  /** For the next page: pass it as `cursor`. Null: this is the last. */
  readonly next_cursor: string | null;
}

export interface RunSummary {
  readonly id: string;
  readonly trace_id: string;
  readonly parent_run_id: string | null;
  readonly tenant: string;
  readonly project: string;
  readonly name: string;
  /** Empty: only an update of the run has arrived. */
  readonly run_type: string;
  readonly status: Status;
  /** The beginning of it. */
  readonly error: string | null;
  readonly start_time: string;
  readonly end_time: string | null;
  readonly duration_ms: number | null;
  readonly prompt_tokens: number | null;
  readonly completion_tokens: number | null;
  readonly total_tokens: number | null;
  readonly total_cost: number | null;
  readonly tags: string | null;
  /** The beginning of the first input. */
  readonly preview: string | null;
  readonly dotted_order: string;
}

export interface RunDetail extends Omit<RunSummary, 'tags'> {
  /** The record as it was sent, without what follows. */
  readonly record: Readonly<Record<string, unknown>>;
  readonly inputs: Readonly<Record<string, unknown>> | null;
  readonly outputs: Readonly<Record<string, unknown>> | null;
  readonly events: readonly Readonly<Record<string, unknown>>[] | null;
  readonly extra: Readonly<Record<string, unknown>> | null;
  /** In full. */
  readonly error: string | null;
  readonly serialized: Readonly<Record<string, unknown>> | null;
  readonly tags: readonly string[];
  readonly attachments: readonly { readonly name: string; readonly media_type: string; readonly size_bytes: number }[];
  readonly feedback: readonly Readonly<Record<string, unknown>>[];
}

export interface TraceSummary {
  readonly trace_id: string;
  readonly tenant: string;
  readonly project: string;
  /** False: the root run is not here yet; name, type, status, times and preview come from the runs that are. */
  readonly root_arrived: boolean;
  readonly name: string;
  readonly run_type: string;
  readonly status: Status;
  readonly error: string | null;
  readonly start_time: string;
  readonly end_time: string | null;
  readonly duration_ms: number | null;
  readonly run_count: number;
  readonly error_count: number;
  readonly run_types: readonly string[];
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly total_cost: number | null;
  readonly preview: string | null;
}

/** A run within its trace; what it shares with the trace is left out. */
export interface TraceRun extends Omit<
  RunSummary,
  'trace_id' | 'tenant' | 'project' | 'dotted_order' | 'preview' | 'tags'
> {
  /** 0 for a root. */
  readonly depth: number;
  /** Names a parent that has not arrived. */
  readonly orphan: boolean;
}

export interface TraceNode extends TraceRun {
  readonly children: readonly TraceNode[];
}

export interface TraceDetail {
  readonly trace: TraceSummary;
  /** `format=flat`: every run, each parent before its children, siblings by start time. */
  readonly runs?: readonly TraceRun[];
  /** `format=tree`: the roots and orphans. */
  readonly roots?: readonly TraceNode[];
  /** Runs that are not shown because there are more than an answer may have. */
  readonly omitted_run_count: number;
  /** Ids of runs whose `dotted_order` does not continue the one of their parent; empty when uploads are right. */
  readonly misplaced_run_ids: readonly string[];
}

export interface Project {
  readonly tenant: string;
  readonly name: string;
  readonly id: string;
  readonly trace_count: number;
  readonly last_start_time: string | null;
}

export interface Stats {
  readonly trace_count: number;
  readonly run_count: number;
  /** Traces by the status of their root. */
  readonly by_status: Readonly<Record<Status, number>>;
  /** Traces that contain a failed run. */
  readonly error_trace_count: number;
  readonly total_tokens: number;
  readonly total_cost: number | null;
  /** Of traces that have ended; bucket `n` counts those from `bounds_ms[n - 1]` to below `bounds_ms[n]`. */
  readonly latency: { readonly bounds_ms: readonly number[]; readonly counts: readonly number[] };
  /** The same over time; empty when no trace matches. */
  readonly time: {
    readonly bucket_ms: number;
    readonly buckets: readonly {
      readonly start_time: string;
      readonly trace_count: number;
      readonly error_trace_count: number;
      readonly latency_counts: readonly number[];
    }[];
  };
  /** Of everything, whatever the filter. */
  readonly store: {
    readonly trace_count: number;
    readonly run_count: number;
    readonly used_bytes: number;
    readonly pruned_trace_count: number;
  };
}

/** One upload, as the log of the last thousand keeps it. */
export interface UploadNote {
  readonly received_at: string;
  readonly status: number;
  /** Null: the key was not accepted. */
  readonly tenant: string | null;
  readonly content_encoding: string;
  readonly wire_bytes: number;
  readonly body_bytes: number;
  readonly post_count: number;
  readonly patch_count: number;
  /** Why it was refused. */
  readonly error: string | null;
  readonly fault: boolean;
}

/** The data of an event `traces`. */
export interface TraceEvent {
  readonly traces: readonly TraceSummary[];
  /** Traces that changed and do not pass the filter, any more or at all. */
  readonly unmatched_trace_ids: readonly string[];
  /** Changed as well, and left out because one event holds 200. */
  readonly omitted_count: number;
}

/** Something that uploads run into, in the order in which the rules were set. */
export interface FaultRule {
  /** Answer with this status; absent: as usual. */
  readonly status?: number;
  /** The answer's body; absent: an error text. */
  readonly body?: string;
  /** Value of the header, as it stands. */
  readonly retry_after?: string;
  /** Wait so long first. */
  readonly delay_ms?: number;
  /** Cut the connection instead of answering. */
  readonly reset?: boolean;
  /** `before` (the default): nothing is stored. `after`: everything is, and only the answer is wrong. */
  readonly when?: 'before' | 'after';
  /** Only uploads with this API key. */
  readonly key?: string;
  /** So many uploads; absent: until cleared. */
  readonly count?: number;
}

/** `key` is not told again. */
export interface FaultState extends Omit<FaultRule, 'key'> {
  readonly hit_count: number;
  readonly remaining_count: number | null;
}
