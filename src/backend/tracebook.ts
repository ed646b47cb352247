/**
 * The traces that one transaction touches: read once, changed in memory, written once. Sums are kept by difference, so
 * that a trace of 25 000 runs costs no more than one of two.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite';
import { durationBetween } from './moment.ts';
import { RUN_TYPES } from './record.ts';
import type { RunRow } from './row.ts';

interface TraceRow {
  trace_no: number;
  tenant: string;
  trace_id: string;
  project_no: number;
  root_run_no: number | null;
  name: string;
  run_type: string;
  status: string;
  start_us: number;
  end_us: number | null;
  duration_us: number | null;
  run_count: number;
  error_count: number;
  run_types: number;
  input_tokens: number;
  output_tokens: number;
  total_tokens: number;
  cost: number | null;
  preview: string | null;
  error: string | null;
}

const COLUMNS = [
  'tenant',
  'trace_id',
  'project_no',
  'root_run_no',
  'name',
  'run_type',
  'status',
  'start_us',
  'end_us',
  'duration_us',
  'run_count',
  'error_count',
  'run_types',
  'input_tokens',
  'output_tokens',
  'total_tokens',
  'cost',
  'preview',
  'error',
  'trace_no',
] as const satisfies readonly (keyof TraceRow)[];

const TYPE_BITS: ReadonlyMap<string, number> = new Map(RUN_TYPES.map((type, index) => [type, 1 << index]));

/** The bit of a run type in `traces.run_types`. */
export function runTypeBit(runType: string): number {
  return TYPE_BITS.get(runType) ?? 0;
}

export function runTypesOf(bits: number): string[] {
  return RUN_TYPES.filter((type) => (bits & runTypeBit(type)) !== 0);
}

export class TraceBook {
  readonly #select: StatementSync;
  readonly #insert: StatementSync;
  readonly #update: StatementSync;
  readonly #open = new Map<string, { row: TraceRow; isNew: boolean }>();
  #nextTraceNo: number;

  constructor(database: DatabaseSync, nextTraceNo: number) {
    this.#nextTraceNo = nextTraceNo;
    this.#select = database.prepare('SELECT * FROM traces WHERE trace_id = ? AND tenant = ?');
    const names = COLUMNS.join(', ');
    this.#insert = database.prepare(`INSERT INTO traces (${names}) VALUES (${COLUMNS.map(() => '?').join(', ')})`);
    const assignments = COLUMNS.filter((name) => name !== 'trace_no').map((name) => `${name} = ?`);
    this.#update = database.prepare(`UPDATE traces SET ${assignments.join(', ')} WHERE trace_no = ?`);
  }

  /** The trace's number; a trace not seen before gets the next one. */
  open(tenant: string, traceId: string): number {
    const known = this.#open.get(traceId);
    if (known !== undefined) return known.row.trace_no;
    const stored = this.#select.get(traceId, tenant) as TraceRow | undefined;
    const row = stored ?? emptyTrace(this.#nextTraceNo++, tenant, traceId);
    this.#open.set(traceId, { row, isNew: stored === undefined });
    return row.trace_no;
  }

  /** Counts a run in; `before` is the same run as it was, when it is known already. */
  count(traceId: string, run: RunRow, before: RunRow | null): void {
    const trace = this.#open.get(traceId)?.row;
    if (trace === undefined) return;
    const first = trace.run_count === 0;
    if (before === null) trace.run_count++;
    trace.error_count += failed(run) - failed(before);
    trace.run_types |= runTypeBit(run.runType);
    trace.input_tokens += (run.inputTokens ?? 0) - (before?.inputTokens ?? 0);
    trace.output_tokens += (run.outputTokens ?? 0) - (before?.outputTokens ?? 0);
    trace.total_tokens += (run.totalTokens ?? 0) - (before?.totalTokens ?? 0);
    if (run.cost !== null || (before?.cost ?? null) !== null) {
      trace.cost = (trace.cost ?? 0) + (run.cost ?? 0) - (before?.cost ?? 0);
    }
    if (run.id === traceId) {
      trace.root_run_no = run.runNo;
      trace.project_no = run.projectNo;
      trace.name = run.name;
      trace.run_type = run.runType;
      trace.status = run.status;
      trace.start_us = run.startUs;
      trace.end_us = run.endUs;
      trace.duration_us = run.durationUs;
      trace.preview = run.preview;
      trace.error = run.error;
    } else if (trace.root_run_no === null) {
      if (first) {
        trace.project_no = run.projectNo;
        trace.name = run.name;
        trace.run_type = run.runType;
        trace.start_us = run.startUs;
      }
      trace.preview ??= run.preview;
      trace.error ??= run.error;
      trace.start_us = Math.min(trace.start_us, run.startUs);
      if (run.endUs !== null) trace.end_us = Math.max(trace.end_us ?? run.endUs, run.endUs);
      trace.duration_us = durationBetween(trace.start_us, trace.end_us);
    }
  }

  /** Writes everything that was counted; returns the numbers of the traces, and how many of them are new. */
  save(): { traceNos: number[]; newCount: number } {
    const traceNos: number[] = [];
    let newCount = 0;
    for (const { row, isNew } of this.#open.values()) {
      (isNew ? this.#insert : this.#update).run(...COLUMNS.map((name) => row[name]));
      traceNos.push(row.trace_no);
      if (isNew) newCount++;
    }
    return { traceNos, newCount };
  }

  /** Forgets the open traces, for the next transaction. `nextTraceNo` takes numbers back that were not saved. */
  close(nextTraceNo: number): void {
    this.#open.clear();
    this.#nextTraceNo = nextTraceNo;
  }

  get nextTraceNo(): number {
    return this.#nextTraceNo;
  }
}

function failed(run: RunRow | null): number {
  return run?.status === 'error' ? 1 : 0;
}

function emptyTrace(traceNo: number, tenant: string, traceId: string): TraceRow {
  return {
    trace_no: traceNo,
    tenant,
    trace_id: traceId,
    project_no: 0,
    root_run_no: null,
    name: '',
    run_type: '',
    status: 'pending',
    start_us: 0,
    end_us: null,
    duration_us: null,
    run_count: 0,
    error_count: 0,
    run_types: 0,
    input_tokens: 0,
    output_tokens: 0,
    total_tokens: 0,
    cost: null,
    preview: null,
    error: null,
  };
}
