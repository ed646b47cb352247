/** From rows of the database to the objects of the query API. */
import type { RunSummary, TraceRun, TraceSummary } from './api.ts';
import { writeRfc3339 } from './moment.ts';
import { runTypesOf } from './tracebook.ts';
import { MS_US } from '../core/units.ts';

/** Columns of {@link TraceRunRow}. */
export const TRACE_RUN_COLUMNS =
  'id, parent_id, name, run_type, status, error, start_us, end_us, duration_us, input_tokens, output_tokens, ' +
  'total_tokens, cost';

export interface TraceRunRow {
  readonly id: string;
  readonly parent_id: string | null;
  readonly name: string;
  readonly run_type: string;
  readonly status: RunSummary['status'];
  readonly error: string | null;
  readonly start_us: number;
  readonly end_us: number | null;
  readonly duration_us: number | null;
  readonly input_tokens: number | null;
  readonly output_tokens: number | null;
  readonly total_tokens: number | null;
  readonly cost: number | null;
}

/** A row of `runs` joined with its trace and project. */
export interface RunListRow extends TraceRunRow {
  readonly run_no: number;
  readonly tenant: string;
  readonly trace_id: string;
  readonly project: string;
  readonly dotted_order: string;
  readonly tags: string | null;
  readonly preview: string | null;
}

/** A row of `traces` joined with its project. */
export interface TraceListRow {
  readonly trace_no: number;
  readonly trace_id: string;
  readonly tenant: string;
  readonly project: string;
  readonly root_run_no: number | null;
  readonly name: string;
  readonly run_type: string;
  readonly status: TraceSummary['status'];
  readonly error: string | null;
  readonly start_us: number;
  readonly end_us: number | null;
  readonly duration_us: number | null;
  readonly run_count: number;
  readonly error_count: number;
  readonly run_types: number;
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly total_tokens: number;
  readonly cost: number | null;
  readonly preview: string | null;
}

function time(us: number | null): string | null {
  return us === null ? null : writeRfc3339(us);
}

function milliseconds(us: number | null): number | null {
  return us === null ? null : us / MS_US;
}

export function presentRun(row: RunListRow): RunSummary {
  return {
    id: row.id,
    trace_id: row.trace_id,
    parent_run_id: row.parent_id,
    tenant: row.tenant,
    project: row.project,
    name: row.name,
    run_type: row.run_type,
    status: row.status,
    error: row.error,
    start_time: writeRfc3339(row.start_us),
    end_time: time(row.end_us),
    duration_ms: milliseconds(row.duration_us),
    prompt_tokens: row.input_tokens,
    completion_tokens: row.output_tokens,
    total_tokens: row.total_tokens,
    total_cost: row.cost,
    tags: row.tags,
    preview: row.preview,
    dotted_order: row.dotted_order,
  };
}

export function presentTraceRun(row: TraceRunRow, depth: number, orphan: boolean): TraceRun {
  return {
    id: row.id,
    parent_run_id: row.parent_id,
    name: row.name,
    run_type: row.run_type,
    status: row.status,
    error: row.error,
    start_time: writeRfc3339(row.start_us),
    end_time: time(row.end_us),
    duration_ms: milliseconds(row.duration_us),
    prompt_tokens: row.input_tokens,
    completion_tokens: row.output_tokens,
    total_tokens: row.total_tokens,
    total_cost: row.cost,
    depth,
    orphan,
  };
}

export function presentTrace(row: TraceListRow): TraceSummary {
  return {
    trace_id: row.trace_id,
    tenant: row.tenant,
    project: row.project,
    root_arrived: row.root_run_no !== null,
    name: row.name,
    run_type: row.run_type,
    status: row.status,
    error: row.error,
    start_time: writeRfc3339(row.start_us),
    end_time: time(row.end_us),
    duration_ms: milliseconds(row.duration_us),
    run_count: row.run_count,
    error_count: row.error_count,
    run_types: runTypesOf(row.run_types),
    prompt_tokens: row.input_tokens,
    completion_tokens: row.output_tokens,
    total_tokens: row.total_tokens,
    total_cost: row.cost,
    preview: row.preview,
  };
}
