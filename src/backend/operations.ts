/** The queries that api.ts specifies, for `/openapi.json`; a test holds them against the routes. Uploads and faults stay inside. */
import type { DescribedOperation, QueryParameter } from '../core/operation.ts';
import { RUN_TYPES, STATUSES } from './record.ts';

const NUMBER = { type: 'number', minimum: 0 };
const listOf = (values: readonly string[]): object => ({ type: 'array', items: { type: 'string', enum: values } });

const TENANT: QueryParameter = { name: 'tenant', description: 'Only of this tenant.' };
const FILTER: readonly QueryParameter[] = [
  TENANT,
  {
    name: 'project',
    description: 'In any of these projects.',
    schema: { type: 'array', items: { type: 'string' } },
  },
  { name: 'trace', description: 'Id of a trace.', schema: { type: 'string', format: 'uuid' } },
  { name: 'status', description: 'Any of these; of traces, that of the root.', schema: listOf(STATUSES) },
  { name: 'run_type', description: 'Any of these; of traces, that of any run.', schema: listOf(RUN_TYPES) },
  { name: 'name', description: 'The whole name.' },
  { name: 'since', description: 'Started then or later: RFC 3339, or milliseconds since the epoch.' },
  { name: 'until', description: 'Started before: RFC 3339, or milliseconds since the epoch.' },
  { name: 'text', description: 'Words that all occur, or begin one that does, in name, inputs, outputs or metadata.' },
  { name: 'min_duration_ms', description: 'Took so long or longer.', schema: NUMBER },
  { name: 'max_duration_ms', description: 'Took so long or less.', schema: NUMBER },
  { name: 'error', description: '`true`, `false`, or text that an error contains.' },
];
const PAGE: readonly QueryParameter[] = [
  { name: 'limit', description: 'Items in the answer.', schema: { type: 'integer', minimum: 1, maximum: 1000 } },
  { name: 'cursor', description: '`next_cursor` of the page before.' },
];

export const BACKEND_OPERATIONS: readonly DescribedOperation[] = [
  query('/api/traces', 'Traces, the newest start first', 'a page: `items` and `next_cursor`', [...FILTER, ...PAGE]),
  query('/api/traces/:trace_id', 'One trace with all its runs', 'the trace, its runs, and what is wrong with them', [
    TENANT,
    {
      name: 'format',
      description: '`flat`: parents before their children; `tree`: nested.',
      schema: { type: 'string', enum: ['flat', 'tree'] },
    },
  ]),
  query('/api/runs', 'Runs, the newest start first', 'a page: `items` and `next_cursor`', [
    ...FILTER,
    { name: 'parent', description: 'Id of the parent run.', schema: { type: 'string', format: 'uuid' } },
    ...PAGE,
  ]),
  query('/api/runs/:run_id', 'One run with inputs, outputs and metadata', 'the run', [TENANT]),
  query('/api/runs/:run_id/attachments/:name', 'An attachment of a run', 'its bytes', [TENANT]),
  query('/api/projects', 'Projects with the number of their traces', '`items`', [TENANT]),
  query('/api/stats', 'Counts, tokens, cost and latencies, in all and over time', 'the counts', [
    ...FILTER,
    {
      name: 'buckets',
      description: 'Intervals of time, at most.',
      schema: { type: 'integer', minimum: 1, maximum: 500 },
    },
  ]),
  query('/api/uploads', 'The last thousand uploads', '`items`, newest first', []),
  query('/api/events', 'Traces as they arrive or change', 'server-sent events `ready`, `traces` and `reset`', FILTER),
];

function query(
  pattern: string,
  summary: string,
  answer: string,
  parameters: readonly QueryParameter[],
): DescribedOperation {
  return { method: 'GET', pattern, tag: 'Traces', summary, answer, query: parameters };
}
