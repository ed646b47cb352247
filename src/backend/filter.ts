/** The filter of a query: read from the parameters of a request, written as a condition in SQL. See api.ts. */
import { MS_US } from '../core/units.ts';
import { readRfc3339 } from './moment.ts';
import { isUuid } from './order.ts';
import { RUN_TYPES, STATUSES } from './record.ts';
import { textQueryOf } from './textindex.ts';
import { runTypeBit } from './tracebook.ts';

export interface Filter {
  tenant?: string;
  projects?: readonly string[];
  traceId?: string;
  parentId?: string;
  statuses?: readonly string[];
  runTypes?: readonly string[];
  name?: string;
  sinceUs?: number;
  untilUs?: number;
  text?: string;
  /** Where to look for the text: only among runs with these numbers, both ends included. */
  textRange?: readonly [number, number];
  minDurationUs?: number;
  maxDurationUs?: number;
  error?: string;
}

/** A wrong parameter; the message is for the client. */
export class BadQuery extends Error {}

const FILTER_NAMES = [
  'tenant',
  'project',
  'trace',
  'status',
  'run_type',
  'name',
  'since',
  'until',
  'text',
  'min_duration_ms',
  'max_duration_ms',
  'error',
] as const;

const MAX_VALUE_COUNT = 100;

/** Reads the filter; `others` are the parameters that the path knows besides. Throws {@link BadQuery}. */
export function readFilter(params: URLSearchParams, others: readonly string[]): Filter {
  checkNames(params, [...FILTER_NAMES, ...others]);
  const filter: Filter = {};
  const tenant = readText(params, 'tenant');
  if (tenant !== undefined) filter.tenant = tenant;
  const name = readText(params, 'name');
  if (name !== undefined) filter.name = name;
  const projects = readList(params, 'project');
  if (projects !== undefined) filter.projects = projects;
  const statuses = readList(params, 'status', STATUSES);
  if (statuses !== undefined) filter.statuses = statuses;
  const runTypes = readList(params, 'run_type', RUN_TYPES);
  if (runTypes !== undefined) filter.runTypes = runTypes;
  const traceId = readUuid(params, 'trace');
  if (traceId !== undefined) filter.traceId = traceId;
  const parentId = others.includes('parent') ? readUuid(params, 'parent') : undefined;
  if (parentId !== undefined) filter.parentId = parentId;
  const since = readTime(params, 'since');
  if (since !== undefined) filter.sinceUs = since;
  const until = readTime(params, 'until');
  if (until !== undefined) filter.untilUs = until;
  const min = readNumberParam(params, 'min_duration_ms');
  if (min !== undefined) filter.minDurationUs = min * MS_US;
  const max = readNumberParam(params, 'max_duration_ms');
  if (max !== undefined) filter.maxDurationUs = max * MS_US;
  const error = readText(params, 'error');
  if (error !== undefined) filter.error = error;
  const text = readText(params, 'text');
  if (text !== undefined) {
    if (textQueryOf(text) === null) throw new BadQuery('text: no word in it');
    filter.text = text;
  }
  return filter;
}

/** A parameter that is not known is a typing error that would otherwise show too much. */
export function checkNames(params: URLSearchParams, known: readonly string[]): void {
  for (const name of params.keys()) {
    if (!known.includes(name)) throw new BadQuery(`unknown parameter "${name}"; known here: ${known.join(', ')}`);
  }
}

export function readText(params: URLSearchParams, name: string): string | undefined {
  const value = params.get(name);
  return value === null || value === '' ? undefined : value;
}

function readList(params: URLSearchParams, name: string, known?: readonly string[]): string[] | undefined {
  const values = params.getAll(name).filter((value) => value !== '');
  if (values.length === 0) return undefined;
  if (values.length > MAX_VALUE_COUNT) throw new BadQuery(`${name}: more than ${MAX_VALUE_COUNT} values`);
  const wrong = known === undefined ? undefined : values.find((value) => !known.includes(value));
  if (wrong !== undefined) throw new BadQuery(`${name}: "${wrong}" is none of ${known?.join(', ') ?? ''}`);
  return values;
}

function readUuid(params: URLSearchParams, name: string): string | undefined {
  const value = readText(params, name)?.toLowerCase();
  if (value !== undefined && !isUuid(value)) throw new BadQuery(`${name}: not a UUID`);
  return value;
}

/** A number that is not negative. */
export function readNumberParam(params: URLSearchParams, name: string): number | undefined {
  const text = readText(params, name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new BadQuery(`${name}: not a number from 0`);
  return value;
}

function readTime(params: URLSearchParams, name: string): number | undefined {
  const text = readText(params, name);
  if (text === undefined) return undefined;
  const us = /^\d{1,15}$/.test(text) ? Number(text) * MS_US : readRfc3339(text);
  if (us === null) throw new BadQuery(`${name}: neither RFC 3339 with a zone nor milliseconds since the epoch`);
  return us;
}

export interface Condition {
  /** Without `WHERE`; `1` when nothing is asked. */
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

function runsWithText(text: string, range: Filter['textRange']): Clause {
  const clause = 'SELECT rowid FROM run_text WHERE run_text MATCH ?';
  const query = textQueryOf(text) ?? '';
  return range === undefined ? [clause, query] : [`${clause} AND rowid BETWEEN ? AND ?`, query, ...range];
}

/** Over table `runs`. */
export function runCondition(filter: Filter): Condition {
  const clauses = commonClauses(filter);
  if (filter.traceId !== undefined) {
    clauses.push(['trace_no IN (SELECT trace_no FROM traces WHERE trace_id = ?)', filter.traceId]);
  }
  if (filter.parentId !== undefined) clauses.push(['parent_id = ?', filter.parentId]);
  if (filter.runTypes !== undefined) clauses.push([`run_type IN (${marks(filter.runTypes)})`, ...filter.runTypes]);
  if (filter.text !== undefined) {
    const [sql, ...values] = runsWithText(filter.text, filter.textRange);
    clauses.push([`run_no IN (${sql})`, ...values]);
  }
  if (filter.error === 'true') clauses.push([`status = 'error'`]);
  else if (filter.error === 'false') clauses.push([`status <> 'error'`]);
  else if (filter.error !== undefined) clauses.push([ERROR_CONTAINS, like(filter.error)]);
  return join(clauses);
}

/** Over table `traces`. */
export function traceCondition(filter: Filter): Condition {
  const clauses = commonClauses(filter);
  if (filter.traceId !== undefined) clauses.push(['trace_id = ?', filter.traceId]);
  if (filter.runTypes !== undefined) {
    clauses.push(['run_types & ? <> 0', filter.runTypes.reduce((bits, type) => bits | runTypeBit(type), 0)]);
  }
  if (filter.text !== undefined) {
    const [sql, ...values] = runsWithText(filter.text, filter.textRange);
    clauses.push([`trace_no IN (SELECT trace_no FROM runs WHERE run_no IN (${sql}))`, ...values]);
  }
  if (filter.error === 'true') clauses.push(['error_count > 0']);
  else if (filter.error === 'false') clauses.push(['error_count = 0']);
  else if (filter.error !== undefined) {
    clauses.push([
      `error_count > 0 AND trace_no IN (SELECT trace_no FROM runs WHERE ${ERROR_CONTAINS})`,
      like(filter.error),
    ]);
  }
  return join(clauses);
}

type Clause = [sql: string, ...values: (string | number)[]];

const ERROR_CONTAINS = `status = 'error' AND error LIKE ? ESCAPE '\\'`;

function commonClauses(filter: Filter): Clause[] {
  const clauses: Clause[] = [];
  if (filter.tenant !== undefined || filter.projects !== undefined) {
    const { tenant, projects } = filter;
    const inner: Clause[] = [];
    if (tenant !== undefined) inner.push(['tenant = ?', tenant]);
    if (projects !== undefined) inner.push([`name IN (${marks(projects)})`, ...projects]);
    const { sql, values } = join(inner);
    clauses.push([`project_no IN (SELECT project_no FROM projects WHERE ${sql})`, ...values]);
  }
  if (filter.statuses !== undefined) clauses.push([`status IN (${marks(filter.statuses)})`, ...filter.statuses]);
  if (filter.name !== undefined) clauses.push(['name = ?', filter.name]);
  if (filter.sinceUs !== undefined) clauses.push(['start_us >= ?', filter.sinceUs]);
  if (filter.untilUs !== undefined) clauses.push(['start_us < ?', filter.untilUs]);
  if (filter.minDurationUs !== undefined) clauses.push(['duration_us >= ?', filter.minDurationUs]);
  if (filter.maxDurationUs !== undefined) clauses.push(['duration_us <= ?', filter.maxDurationUs]);
  return clauses;
}

function join(clauses: readonly Clause[]): Condition {
  return {
    sql: clauses.map(([sql]) => `(${sql})`).join(' AND ') || '1',
    values: clauses.flatMap(([, ...values]) => values),
  };
}

function marks(values: readonly unknown[]): string {
  return values.map(() => '?').join(', ');
}

function like(text: string): string {
  return `%${text.replaceAll(/[\\%_]/g, '\\$&')}%`;
}
