/** The figures of the pipeline (app.ts), for `/openapi.json`. */
import type { DescribedOperation } from '../core/operation.ts';
import { HISTORY_SECONDS } from './pipeline.ts';

export const PIPELINE_OPERATIONS: readonly DescribedOperation[] = [
  {
    method: 'GET',
    pattern: '/api/pipeline',
    tag: 'Pipeline',
    summary: 'The figures of every stage now',
    answer: 'counters and gauges with their meanings',
  },
  {
    method: 'GET',
    pattern: '/api/pipeline/history',
    tag: 'Pipeline',
    summary: 'The figures of the last minutes, one a second',
    answer: 'a list for each series',
    query: [
      {
        name: 'seconds',
        description: 'How far back.',
        schema: { type: 'number', exclusiveMinimum: 0, maximum: HISTORY_SECONDS },
      },
      { name: 'series', description: 'Names, or beginnings of names with `*`, separated by commas.' },
    ],
  },
  {
    method: 'GET',
    pattern: '/api/pipeline/events',
    tag: 'Pipeline',
    summary: 'The figures as they change',
    answer: 'server-sent events, one a second',
  },
  {
    method: 'GET',
    pattern: '/api/config',
    tag: 'Pipeline',
    summary: 'The configuration in effect',
    answer: 'every variable with its value, where that came from, and its meaning; secrets are masked',
  },
];
