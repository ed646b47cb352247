/** Reads of the store for the query API: lists by page, one run, one trace, projects. See api.ts for the answers. */
import type { DatabaseSync } from 'node:sqlite';
import type { Page, Project, RunSummary, TraceDetail, TraceSummary } from './api.ts';
import { type Packed, unpackDocument } from './document.ts';
import { BadQuery, type Condition, type Filter, runCondition, traceCondition } from './filter.ts';
import { writeRfc3339 } from './moment.ts';
import {
  presentRun,
  presentTrace,
  type RunListRow,
  TRACE_RUN_COLUMNS,
  type TraceListRow,
  type TraceRunRow,
} from './present.ts';
import { DOCUMENT_FIELDS, isObject } from './record.ts';
import { flatten, nest } from './tree.ts';

export interface PageRequest {
  readonly limit: number;
  readonly cursor?: string;
}

/** Runs in one answer about a trace; more than the hosted backend takes for a whole trace. */
const MAX_TRACE_RUN_COUNT = 50_000;
/** `JSON.stringify` recurses. */
const MAX_NESTED_DEPTH = 1000;
const MAX_MISPLACED_COUNT = 100;
const MAX_PROJECT_COUNT = 10_000;

const RUN_LIST = `
  SELECT r.*, t.trace_id, p.name AS project FROM runs r
  JOIN traces t USING (trace_no) JOIN projects p ON p.project_no = r.project_no`;
const TRACE_LIST = 'SELECT t.*, p.name AS project FROM traces t JOIN projects p USING (project_no)';

export function listRuns(database: DatabaseSync, filter: Filter, page: PageRequest): Page<RunSummary> {
  const { sql, values, limit } = pageQuery('runs', 'run_no', runCondition(filter), page);
  const rows = database
    .prepare(`${RUN_LIST} WHERE r.run_no IN (${sql}) ORDER BY r.start_us DESC, r.run_no DESC`)
    .all(...values) as unknown as RunListRow[];
  return pageOf(rows, limit, presentRun, (row) => row.run_no);
}

export function listTraces(database: DatabaseSync, filter: Filter, page: PageRequest): Page<TraceSummary> {
  const { sql, values, limit } = pageQuery('traces', 'trace_no', traceCondition(filter), page);
  const rows = database
    .prepare(`${TRACE_LIST} WHERE t.trace_no IN (${sql}) ORDER BY t.start_us DESC, t.trace_no DESC`)
    .all(...values) as unknown as TraceListRow[];
  return pageOf(rows, limit, presentTrace, (row) => row.trace_no);
}

/** Of the traces with these numbers: those that pass the filter, and the ids of the others. */
export function matchTraces(
  database: DatabaseSync,
  filter: Filter,
  traceNos: readonly number[],
): { matched: TraceSummary[]; unmatchedIds: string[] } {
  const numbers = JSON.stringify(traceNos);
  let narrowed = filter;
  if (filter.text !== undefined) {
    // The runs of traces that just changed lie close together; the whole index would be read for a common word.
    const ends = database
      .prepare(
        'SELECT min(run_no) AS low, max(run_no) AS high FROM runs WHERE trace_no IN (SELECT value FROM json_each(?))',
      )
      .get(numbers) as { low: number | null; high: number | null };
    narrowed = { ...filter, textRange: [ends.low ?? 0, ends.high ?? 0] };
  }
  const condition = traceCondition(narrowed);
  const matching = database
    .prepare(`SELECT trace_no FROM traces WHERE trace_no IN (SELECT value FROM json_each(?)) AND ${condition.sql}`)
    .all(numbers, ...condition.values) as { trace_no: number }[];
  const passed = new Set(matching.map((row) => row.trace_no));
  const rows = database
    .prepare(
      `${TRACE_LIST} WHERE t.trace_no IN (SELECT value FROM json_each(?)) ORDER BY t.start_us DESC, t.trace_no DESC`,
    )
    .all(numbers) as unknown as TraceListRow[];
  return {
    matched: rows.filter((row) => passed.has(row.trace_no)).map(presentTrace),
    unmatchedIds: rows.filter((row) => !passed.has(row.trace_no)).map((row) => row.trace_id),
  };
}

/** The JSON text of a `RunDetail`; documents go out as the bytes that came in, numbers of any size included. */
export function readRun(database: DatabaseSync, id: string, tenant: string | undefined): string | null {
  const row = database
    .prepare(
      `${RUN_LIST} WHERE r.id = ?${tenant === undefined ? '' : ' AND r.tenant = ?'} ORDER BY r.run_no DESC LIMIT 1`,
    )
    .get(id, ...(tenant === undefined ? [] : [tenant])) as RunListRow | undefined;
  if (row === undefined) return null;
  const stored = database.prepare('SELECT * FROM documents WHERE run_no = ?').get(row.run_no) as Record<string, Packed>;
  const record = unpackDocument(stored['record'] ?? null) ?? '{}';
  const parsed: unknown = JSON.parse(record);
  const { error: _preview, tags: _tags, ...summary } = presentRun(row);
  const attachments = database
    .prepare('SELECT name, media_type, length(bytes) AS size_bytes FROM attachments WHERE run_no = ? ORDER BY name')
    .all(row.run_no);
  const feedback = database
    .prepare('SELECT body FROM feedback WHERE run_id = ? AND tenant = ? ORDER BY feedback_no LIMIT 1000')
    .all(id, row.tenant) as { body: string }[];
  const members = [
    `"tags":${JSON.stringify((isObject(parsed) ? parsed['tags'] : null) ?? [])}`,
    `"attachments":${JSON.stringify(attachments)}`,
    `"feedback":[${feedback.map(({ body }) => body).join(',')}]`,
    `"record":${record}`,
    ...DOCUMENT_FIELDS.map((field) => `"${field}":${unpackDocument(stored[field] ?? null) ?? 'null'}`),
  ];
  return `${JSON.stringify(summary).slice(0, -1)},${members.join(',')}}`;
}

export function readAttachment(
  database: DatabaseSync,
  runId: string,
  name: string,
  tenant: string | undefined,
): { mediaType: string; bytes: Uint8Array } | null {
  const row = database
    .prepare(
      `SELECT media_type, bytes FROM attachments WHERE name = ? AND run_no =
       (SELECT run_no FROM runs WHERE id = ?${tenant === undefined ? '' : ' AND tenant = ?'} ORDER BY run_no DESC LIMIT 1)`,
    )
    .get(name, runId, ...(tenant === undefined ? [] : [tenant])) as
    { media_type: string; bytes: Uint8Array } | undefined;
  return row === undefined ? null : { mediaType: row.media_type, bytes: row.bytes };
}

export function readTrace(
  database: DatabaseSync,
  traceId: string,
  tenant: string | undefined,
  format: 'flat' | 'tree',
): TraceDetail | null {
  const trace = database
    .prepare(
      `${TRACE_LIST} WHERE t.trace_id = ?${tenant === undefined ? '' : ' AND t.tenant = ?'} ORDER BY t.trace_no DESC LIMIT 1`,
    )
    .get(traceId, ...(tenant === undefined ? [] : [tenant])) as TraceListRow | undefined;
  if (trace === undefined) return null;
  const rows = database
    .prepare(
      `SELECT ${TRACE_RUN_COLUMNS} FROM runs WHERE trace_no = ? ORDER BY start_us, id LIMIT ${MAX_TRACE_RUN_COUNT}`,
    )
    .all(trace.trace_no) as unknown as TraceRunRow[];
  const misplaced = database
    .prepare(
      `SELECT r.id FROM runs r JOIN runs p ON p.id = r.parent_id AND p.tenant = r.tenant
       WHERE r.trace_no = ? AND substr(r.dotted_order, 1, length(p.dotted_order) + 1) <> p.dotted_order || '.'
       LIMIT ${MAX_MISPLACED_COUNT}`,
    )
    .all(trace.trace_no) as { id: string }[];
  const runs = flatten(rows);
  const shared = {
    trace: presentTrace(trace),
    omitted_run_count: trace.run_count - rows.length,
    misplaced_run_ids: misplaced.map(({ id }) => id),
  };
  if (format === 'flat') return { ...shared, runs };
  if (runs.some((run) => run.depth > MAX_NESTED_DEPTH)) {
    throw new BadQuery(`format: the tree is deeper than ${MAX_NESTED_DEPTH}; ask for flat`);
  }
  return { ...shared, roots: nest(runs) };
}

export function listProjects(database: DatabaseSync, tenant: string | undefined): Project[] {
  const rows = database
    .prepare(
      `SELECT p.tenant, p.name, p.uuid, t.trace_count, t.last_us FROM projects p
       LEFT JOIN (SELECT project_no, count(*) AS trace_count, max(start_us) AS last_us FROM traces GROUP BY project_no) t
         USING (project_no)
       ${tenant === undefined ? '' : 'WHERE p.tenant = ?'} ORDER BY p.tenant, p.name LIMIT ${MAX_PROJECT_COUNT}`,
    )
    .all(...(tenant === undefined ? [] : [tenant])) as {
    tenant: string;
    name: string;
    uuid: string;
    trace_count: number | null;
    last_us: number | null;
  }[];
  return rows.map((row) => ({
    tenant: row.tenant,
    name: row.name,
    id: row.uuid,
    trace_count: row.trace_count ?? 0,
    last_start_time: row.last_us === null ? null : writeRfc3339(row.last_us),
  }));
}

/** The numbers of one page's rows, newest start first, and one more to see whether there is another page. */
function pageQuery(
  table: 'runs' | 'traces',
  number: 'run_no' | 'trace_no',
  condition: Condition,
  page: PageRequest,
): { sql: string; values: (string | number)[]; limit: number } {
  const after = page.cursor === undefined ? null : readCursor(page.cursor);
  const keyset = after === null ? '' : ` AND (start_us, ${number}) < (?, ?)`;
  return {
    sql: `SELECT ${number} FROM ${table} WHERE ${condition.sql}${keyset} ORDER BY start_us DESC, ${number} DESC LIMIT ?`,
    values: [...condition.values, ...(after ?? []), page.limit + 1],
    limit: page.limit,
  };
}

function readCursor(cursor: string): [number, number] {
  const match = /^(-?\d{1,16})_(\d{1,16})$/.exec(cursor);
  if (match === null) throw new BadQuery('cursor: not one that this API gave out');
  return [Number(match[1]), Number(match[2])];
}

function pageOf<Row extends { readonly start_us: number }, Item>(
  rows: readonly Row[],
  limit: number,
  present: (row: Row) => Item,
  numberOf: (row: Row) => number,
): Page<Item> {
  const shown = rows.slice(0, limit);
  const last = rows.length > limit ? shown.at(-1) : undefined;
  return {
    items: shown.map(present),
    next_cursor: last === undefined ? null : `${last.start_us}_${numberOf(last)}`,
  };
}
