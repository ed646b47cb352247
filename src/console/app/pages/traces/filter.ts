/** What the list is narrowed to: read from the page's address, so that a link shows the same, and written as parameters of the queries. */
import type { Query } from '../../api/client.ts';

export interface TraceFilter {
  readonly text: string;
  readonly projects: readonly string[];
  readonly statuses: readonly string[];
  readonly runTypes: readonly string[];
  /** `true`, `false`, or words of an error; empty: whatever. */
  readonly error: string;
  readonly minMs: string;
  readonly maxMs: string;
  /** One of {@link RANGES}; empty: all, or from `since` to `until`. */
  readonly last: string;
  /** Milliseconds since the epoch, as text. */
  readonly since: string;
  readonly until: string;
}

/** Names in the address, which are those of the query API but for `last`. */
export const PARAM_NAMES = [
  'text',
  'project',
  'status',
  'run_type',
  'error',
  'min_duration_ms',
  'max_duration_ms',
  'last',
  'since',
  'until',
] as const;

export const RANGES: Readonly<Record<string, { readonly label: string; readonly ms: number }>> = {
  '5m': { label: 'Last 5 minutes', ms: 300_000 },
  '15m': { label: 'Last 15 minutes', ms: 900_000 },
  '1h': { label: 'Last hour', ms: 3_600_000 },
  '6h': { label: 'Last 6 hours', ms: 21_600_000 },
  '24h': { label: 'Last 24 hours', ms: 86_400_000 },
  '7d': { label: 'Last 7 days', ms: 604_800_000 },
};

export const STATUSES = ['success', 'error', 'pending'] as const;
export const RUN_TYPES = ['llm', 'tool', 'retriever', 'chain', 'embedding', 'prompt', 'parser'] as const;

export function readFilter(params: URLSearchParams): TraceFilter {
  const one = (name: string): string => params.get(name) ?? '';
  return {
    text: one('text'),
    projects: params.getAll('project'),
    statuses: params.getAll('status'),
    runTypes: params.getAll('run_type'),
    error: one('error'),
    minMs: one('min_duration_ms'),
    maxMs: one('max_duration_ms'),
    last: one('last') in RANGES ? one('last') : '',
    since: one('since'),
    until: one('until'),
  };
}

export function isNarrowed(params: URLSearchParams): boolean {
  return PARAM_NAMES.some((name) => params.has(name));
}

/** Text without a word is none to the API: it is left out, as is what a half-typed number would be refused for. */
export function queryOf(filter: TraceFilter, nowMs: number): Query {
  const range = RANGES[filter.last];
  return {
    text: /[\p{L}\p{N}\p{M}\p{Co}]/u.test(filter.text) ? filter.text : '',
    project: filter.projects,
    status: filter.statuses,
    run_type: filter.runTypes,
    error: filter.error,
    min_duration_ms: filter.minMs,
    max_duration_ms: filter.maxMs,
    since: range === undefined ? filter.since : String(nowMs - range.ms),
    until: filter.until,
  };
}
