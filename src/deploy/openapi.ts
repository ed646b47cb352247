/**
 * The description of the API for tools: every operation, and the schema of every body from the very schemas that check them. A test
 * holds the list against the routes.
 */
import { z } from 'zod';
import type { DescribedOperation } from '../core/operation.ts';
import { runRequest } from './request.ts';
import {
  assistantCount,
  assistantCreate,
  assistantLatest,
  assistantPatch,
  assistantSearch,
  assistantVersions,
} from './routes/assistants.ts';
import { cronCount, cronCreate, cronPatch, cronSearch } from './routes/crons.ts';
import { historySearch, stateAt, statePatch, stateUpdate } from './routes/state.ts';
import { bulkCancel } from './routes/stateless.ts';
import { itemDelete, itemPut, itemSearch, namespaceSearch } from './routes/store.ts';
import { threadCount, threadCreate, threadPatch, threadPrune, threadSearch } from './routes/threads.ts';

export interface Operation extends DescribedOperation {
  body?: z.ZodType;
}

export const OPERATIONS: readonly Operation[] = [
  ...group('Assistants', [
    ['POST', '/assistants', 'Create an assistant', 'the assistant', { body: assistantCreate }],
    ['POST', '/assistants/search', 'Search assistants', 'a list of assistants', { body: assistantSearch }],
    ['POST', '/assistants/count', 'Count assistants', 'a number', { body: assistantCount }],
    ['GET', '/assistants/:assistant_id', 'Get an assistant', 'the assistant'],
    [
      'PATCH',
      '/assistants/:assistant_id',
      'Change an assistant: a new version',
      'the assistant',
      { body: assistantPatch },
    ],
    [
      'DELETE',
      '/assistants/:assistant_id',
      'Delete an assistant',
      'nothing',
      { query: ['delete_threads'], status: 204 },
    ],
    ['GET', '/assistants/:assistant_id/graph', 'The graph, for drawing', 'nodes and edges', { query: ['xray'] }],
    ['GET', '/assistants/:assistant_id/schemas', 'Schemas of input, output, state and config', 'JSON schemas'],
    ['GET', '/assistants/:assistant_id/subgraphs', 'Schemas of the subgraphs', 'a map', { query: ['recurse'] }],
    [
      'GET',
      '/assistants/:assistant_id/subgraphs/:namespace',
      'Schemas of one subgraph',
      'a map',
      { query: ['recurse'] },
    ],
    ['POST', '/assistants/:assistant_id/versions', 'Versions, newest first', 'a list', { body: assistantVersions }],
    [
      'POST',
      '/assistants/:assistant_id/latest',
      'Choose the version in use',
      'the assistant',
      { body: assistantLatest },
    ],
  ]),
  ...group('Threads', [
    ['POST', '/threads', 'Create a thread', 'the thread', { body: threadCreate }],
    ['POST', '/threads/search', 'Search threads', 'a list of threads', { body: threadSearch }],
    ['POST', '/threads/count', 'Count threads', 'a number', { body: threadCount }],
    ['POST', '/threads/prune', 'Delete threads, or all but their last state', 'how many', { body: threadPrune }],
    ['GET', '/threads/:thread_id', 'Get a thread', 'the thread', { query: ['include'] }],
    ['PATCH', '/threads/:thread_id', 'Change metadata or time to live', 'the thread', { body: threadPatch }],
    ['DELETE', '/threads/:thread_id', 'Delete a thread with all that is on it', 'nothing', { status: 204 }],
    ['POST', '/threads/:thread_id/copy', 'Copy a thread with its history', 'the new thread'],
    ['GET', '/threads/:thread_id/state', 'The latest state', 'the state', { query: ['subgraphs'] }],
    ['POST', '/threads/:thread_id/state', 'Write to the state', 'the new checkpoint', { body: stateUpdate }],
    [
      'PATCH',
      '/threads/:thread_id/state',
      'Merge metadata into the thread',
      'nothing',
      { body: statePatch, status: 204 },
    ],
    [
      'GET',
      '/threads/:thread_id/state/:checkpoint_id',
      'The state at a checkpoint',
      'the state',
      { query: ['subgraphs'] },
    ],
    ['POST', '/threads/:thread_id/state/checkpoint', 'The state at a checkpoint', 'the state', { body: stateAt }],
    ['GET', '/threads/:thread_id/history', 'States, newest first', 'a list of states', { query: ['limit', 'before'] }],
    ['POST', '/threads/:thread_id/history', 'States, newest first', 'a list of states', { body: historySearch }],
    [
      'GET',
      '/threads/:thread_id/stream',
      'Follow everything on a thread',
      'server-sent events',
      { query: ['stream_mode'] },
    ],
  ]),
  ...group('Runs on a thread', [
    ['POST', '/threads/:thread_id/runs', 'Start a run in the background', 'the run', { body: runRequest }],
    ['POST', '/threads/:thread_id/runs/stream', 'Run and stream', 'server-sent events', { body: runRequest }],
    ['POST', '/threads/:thread_id/runs/wait', 'Run and wait', 'the final values', { body: runRequest }],
    [
      'GET',
      '/threads/:thread_id/runs',
      'List runs',
      'a list of runs',
      { query: ['limit', 'offset', 'status', 'select'] },
    ],
    ['GET', '/threads/:thread_id/runs/:run_id', 'Get a run', 'the run'],
    ['DELETE', '/threads/:thread_id/runs/:run_id', 'Delete a run that has ended', 'nothing', { status: 204 }],
    [
      'GET',
      '/threads/:thread_id/runs/:run_id/join',
      'Wait for a run',
      'the final values',
      { query: ['cancel_on_disconnect'] },
    ],
    [
      'GET',
      '/threads/:thread_id/runs/:run_id/stream',
      'Join a run’s stream',
      'server-sent events',
      { query: ['stream_mode', 'cancel_on_disconnect'] },
    ],
    [
      'POST',
      '/threads/:thread_id/runs/:run_id/cancel',
      'Cancel a run',
      'nothing',
      { query: ['wait', 'action'], status: 202 },
    ],
  ]),
  ...group('Stateless runs', [
    ['POST', '/runs', 'Start a run in the background', 'the run', { body: runRequest }],
    ['POST', '/runs/stream', 'Run and stream', 'server-sent events', { body: runRequest }],
    ['POST', '/runs/wait', 'Run and wait', 'the final values', { body: runRequest }],
    ['POST', '/runs/batch', 'Start several runs', 'a list of runs', { body: z.array(runRequest).min(1) }],
    ['POST', '/runs/cancel', 'Cancel several runs', 'nothing', { body: bulkCancel, query: ['action'], status: 204 }],
    ['GET', '/runs/:run_id/join', 'Wait for a run', 'the final values', { query: ['cancel_on_disconnect'] }],
    [
      'GET',
      '/runs/:run_id/stream',
      'Join a run’s stream',
      'server-sent events',
      { query: ['stream_mode', 'cancel_on_disconnect'] },
    ],
    ['GET', '/runs/:run_id/webhooks', 'What became of a run’s webhook', 'deliveries with their attempts'],
  ]),
  ...group('Crons', [
    ['POST', '/threads/:thread_id/runs/crons', 'Create a cron on a thread', 'the cron', { body: cronCreate }],
    ['POST', '/runs/crons', 'Create a cron with a new thread for every firing', 'the cron', { body: cronCreate }],
    ['POST', '/runs/crons/search', 'Search crons', 'a list of crons', { body: cronSearch }],
    ['POST', '/runs/crons/count', 'Count crons', 'a number', { body: cronCount }],
    ['GET', '/runs/crons/:cron_id', 'Get a cron', 'the cron'],
    ['PATCH', '/runs/crons/:cron_id', 'Change a cron', 'the cron', { body: cronPatch }],
    ['DELETE', '/runs/crons/:cron_id', 'Delete a cron', 'nothing', { status: 204 }],
  ]),
  ...group('Store', [
    ['PUT', '/store/items', 'Put an item', 'nothing', { body: itemPut, status: 204 }],
    ['GET', '/store/items', 'Get an item', 'the item, or null', { query: ['namespace', 'key', 'refresh_ttl'] }],
    ['DELETE', '/store/items', 'Delete an item', 'nothing', { body: itemDelete, status: 204 }],
    ['POST', '/store/items/search', 'Search items', 'items', { body: itemSearch }],
    ['POST', '/store/namespaces', 'List namespaces', 'namespaces', { body: namespaceSearch }],
  ]),
  ...group('System', [
    ['GET', '/ok', 'Health', 'ok', { query: ['check_db'] }],
    ['GET', '/info', 'What this server is', 'version and features'],
    ['GET', '/openapi.json', 'This description', 'an OpenAPI document'],
    ['GET', '/docs', 'This description, readable', 'a page'],
  ]),
];

type Row = [
  method: Operation['method'],
  pattern: string,
  summary: string,
  answer: string,
  more?: Pick<Operation, 'body' | 'query' | 'status'>,
];

function group(tag: string, rows: readonly Row[]): Operation[] {
  return rows.map(([method, pattern, summary, answer, more]) => ({ method, pattern, tag, summary, answer, ...more }));
}

export interface OpenApiDocument {
  openapi: string;
  info: { title: string; version: string; description: string };
  servers: { url: string }[];
  paths: Record<string, Record<string, object>>;
  components: object;
  security: object[];
}

export interface DocumentSettings {
  version: string;
  mountPrefix: string;
  /** What else this process serves, whatever the prefix. */
  otherOperations?: readonly DescribedOperation[];
}

export function openApiDocument(s: DocumentSettings): OpenApiDocument {
  const paths: OpenApiDocument['paths'] = {};
  for (const operation of OPERATIONS) {
    const path = operation.pattern.replaceAll(/:(\w+)/g, '{$1}');
    (paths[path] ??= {})[operation.method.toLowerCase()] = describe(operation);
  }
  for (const operation of s.otherOperations ?? []) {
    const path = operation.pattern.replaceAll(/:(\w+)/g, '{$1}');
    // The prefix is the deployment API's alone.
    const servers = s.mountPrefix === '' ? {} : { servers: [{ url: '/' }] };
    (paths[path] ??= {})[operation.method.toLowerCase()] = { ...describe(operation), ...servers };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Deployment API',
      version: s.version,
      description: 'Assistants, threads, runs, crons, webhooks and the long-term store of the graphs deployed here.',
    },
    servers: [{ url: s.mountPrefix === '' ? '/' : s.mountPrefix }],
    paths,
    components: {
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        bearer: { type: 'http', scheme: 'bearer' },
      },
      schemas: {
        Problem: { type: 'object', required: ['detail'], properties: { detail: { type: 'string' } } },
      },
    },
    security: [{ apiKey: [] }, { bearer: [] }, {}],
  };
}

function describe(operation: Operation): object {
  const names = [...operation.pattern.matchAll(/:(\w+)/g)].map((match) => match[1] ?? '');
  const problem = { content: { 'application/json': { schema: { $ref: '#/components/schemas/Problem' } } } };
  return {
    tags: [operation.tag],
    summary: operation.summary,
    parameters: [
      ...names.map((name) => ({ name, in: 'path', required: true, schema: { type: 'string' } })),
      ...(operation.query ?? []).map((parameter) => ({
        ...(typeof parameter === 'string' ? { name: parameter } : parameter),
        in: 'query',
        required: false,
        schema: (typeof parameter === 'string' ? undefined : parameter.schema) ?? { type: 'string' },
      })),
    ],
    ...(operation.body === undefined
      ? {}
      : { requestBody: { content: { 'application/json': { schema: schemaOf(operation.body) } } } }),
    responses: {
      [operation.status ?? 200]: { description: operation.answer },
      '4XX': { description: 'What is wrong with the request', ...problem },
    },
  };
}

/** Values that JSON Schema cannot tell from any other (an input is any JSON) come out as such. */
function schemaOf(body: z.ZodType): object {
  const { $schema: _, ...schema } = z.toJSONSchema(body, { unrepresentable: 'any', io: 'input' });
  return schema;
}
