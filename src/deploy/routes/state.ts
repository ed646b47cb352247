/** A thread's state: read, written and listed through the thread's graph, in a graph worker. */
import { z } from 'zod';
import type { HttpResponse } from '../../core/http.ts';
import type { Clock } from '../../core/lifecycle.ts';
import { emptyAnswer, textAnswer } from '../answer.ts';
import { issuesText, queryBoolean, queryInteger, queryText, readBody } from '../body.ts';
import { keyText } from '../bounds.ts';
import type { GraphPool } from '../graph/pool.ts';
import type { CallConfig, GraphCall, UpdateAnswer } from '../graph/protocol.ts';
import type { CallResult } from '../graph/thread.ts';
import { problem } from '../problem.ts';
import { checkpointFields, jsonValue, metadataObject, plainText } from '../request.ts';
import type { Route } from '../router.ts';
import type { Runs } from '../runs.ts';
import type { JsonObject, JsonText, Thread } from '../store/model.ts';
import type { DeploymentStore } from '../store/repositories.ts';

export interface StateRouteSettings {
  store: DeploymentStore;
  runs: Runs;
  pool: GraphPool;
  clock: Clock;
}

const NO_STATE = JSON.stringify({
  values: {},
  next: [],
  tasks: [],
  metadata: null,
  created_at: null,
  checkpoint: null,
  parent_checkpoint: null,
  interrupts: [],
  checkpoint_id: null,
  parent_checkpoint_id: null,
});

const checkpointReference = z.looseObject(checkpointFields);
type CheckpointReference = z.output<typeof checkpointReference>;

export const stateAt = z.looseObject({ checkpoint: checkpointReference, subgraphs: z.boolean().nullish() });
export const stateUpdate = z.looseObject({
  values: jsonValue.nullish(),
  as_node: plainText.nullish(),
  checkpoint: checkpointReference.nullish(),
  checkpoint_id: keyText.nullish(),
});
export const statePatch = z.looseObject({ metadata: metadataObject });
export const historySearch = z.looseObject({
  limit: z.int().min(1).max(1000).nullish(),
  // A checkpoint's id, a reference to one, or a whole config around it.
  before: z
    .union([
      keyText,
      checkpointReference.extend({ checkpoint_id: keyText }),
      z.looseObject({ configurable: checkpointReference.extend({ checkpoint_id: keyText }) }),
    ])
    .nullish(),
  metadata: metadataObject.nullish(),
  checkpoint: checkpointReference.nullish(),
});

export function stateRoutes(settings: StateRouteSettings): Route[] {
  const { store, runs, pool, clock } = settings;

  const withThread = async (
    threadId: string,
    handle: (thread: Thread, graphId: string | null) => Promise<HttpResponse>,
  ): Promise<HttpResponse> => {
    const thread = await store.threads.get(threadId);
    return thread === null ? problem('not-found', `Thread ${threadId} not found`) : handle(thread, graphOf(thread));
  };

  const answer = async (call: GraphCall): Promise<HttpResponse> => {
    const result = await pool.call(call);
    return result.kind === 'answer' ? textAnswer(result.json) : refusalAnswer(result);
  };

  const read = (threadId: string, at: CheckpointReference, subgraphs: boolean): Promise<HttpResponse> =>
    withThread(threadId, async (thread, graphId) =>
      graphId === null
        ? textAnswer(NO_STATE)
        : answer({ kind: 'state', graphId, config: configAt(thread, at), subgraphs }),
    );

  const subgraphsOf = (query: URLSearchParams): boolean | null => queryBoolean(query, 'subgraphs', false);
  const subgraphsInvalid = problem('invalid', 'subgraphs: must be true or false');

  const history = (threadId: string, search: z.output<typeof historySearch>): Promise<HttpResponse> =>
    withThread(threadId, async (thread, graphId) =>
      graphId === null
        ? textAnswer('[]')
        : answer({
            kind: 'history',
            graphId,
            config: configAt(thread, search.checkpoint ?? {}),
            limit: search.limit ?? 10,
            before: checkpointIdOf(search.before ?? null),
            metadata: search.metadata ?? null,
          }),
    );

  const update = (threadId: string, body: z.output<typeof stateUpdate>): Promise<HttpResponse> =>
    // No run of the thread starts while its state is written; one that is there already refuses the update.
    runs.holdThread(threadId, () =>
      withThread(threadId, async (thread, graphId) => {
        if (graphId === null) return problem('malformed', `Thread ${threadId} has no graph ID`);
        if (await store.threads.isBusy(threadId)) return problem('conflict', 'Thread is busy');
        const at = { ...body.checkpoint };
        if (typeof body.checkpoint_id === 'string') at.checkpoint_id ??= body.checkpoint_id;
        const result = await pool.call({
          kind: 'update',
          graphId,
          config: configAt(thread, at),
          valuesJson: JSON.stringify(body.values ?? null) as JsonText,
          asNode: body.as_node ?? null,
        });
        if (result.kind === 'refusal') return refusalAnswer(result);
        const { checkpoint } = await recordUpdate(settings, threadId, result.json);
        return textAnswer(JSON.stringify({ checkpoint }));
      }),
    );

  const patch = (threadId: string, metadata: JsonObject): Promise<HttpResponse> =>
    withThread(threadId, async () => {
      await store.threads.patch(threadId, metadata, undefined, clock.nowMs());
      return emptyAnswer;
    });

  return [
    {
      method: 'GET',
      pattern: '/threads/:thread_id/state',
      handler: ({ params, query }) => {
        const subgraphs = subgraphsOf(query);
        return subgraphs === null ? subgraphsInvalid : read(params['thread_id'] ?? '', {}, subgraphs);
      },
    },
    {
      method: 'GET',
      pattern: '/threads/:thread_id/state/:checkpoint_id',
      handler: ({ params, query }) => {
        const subgraphs = subgraphsOf(query);
        if (subgraphs === null) return subgraphsInvalid;
        const checkpointId = keyText.safeParse(params['checkpoint_id'] ?? '');
        if (!checkpointId.success) return problem('invalid', `checkpoint_id: ${issuesText(checkpointId.error)}`);
        return read(params['thread_id'] ?? '', { checkpoint_id: checkpointId.data }, subgraphs);
      },
    },
    {
      method: 'POST',
      pattern: '/threads/:thread_id/state/checkpoint',
      handler: ({ request, params }) => {
        const body = readBody(request, stateAt);
        if (!body.ok) return body.response;
        return read(params['thread_id'] ?? '', body.value.checkpoint, body.value.subgraphs ?? false);
      },
    },
    {
      method: 'POST',
      pattern: '/threads/:thread_id/state',
      handler: ({ request, params }) => {
        const body = readBody(request, stateUpdate);
        return body.ok ? update(params['thread_id'] ?? '', body.value) : body.response;
      },
    },
    {
      method: 'PATCH',
      pattern: '/threads/:thread_id/state',
      handler: ({ request, params }) => {
        const body = readBody(request, statePatch);
        return body.ok ? patch(params['thread_id'] ?? '', body.value.metadata) : body.response;
      },
    },
    {
      method: 'GET',
      pattern: '/threads/:thread_id/history',
      handler: ({ params, query }) => {
        const limit = queryInteger(query, 'limit', { fallback: 10, min: 1, max: 1000 });
        if (limit === null) return problem('invalid', 'limit: must be an integer from 1 to 1000');
        const before = keyText.nullable().safeParse(queryText(query, 'before'));
        if (!before.success) return problem('invalid', `before: ${issuesText(before.error)}`);
        return history(params['thread_id'] ?? '', { limit, before: before.data });
      },
    },
    {
      method: 'POST',
      pattern: '/threads/:thread_id/history',
      handler: ({ request, params }) => {
        const body = readBody(request, historySearch);
        return body.ok ? history(params['thread_id'] ?? '', body.value) : body.response;
      },
    },
  ];
}

/** Takes an update's answer into the thread's row; the new checkpoint. */
export async function recordUpdate(
  settings: Pick<StateRouteSettings, 'store' | 'clock'>,
  threadId: string,
  json: JsonText,
): Promise<UpdateAnswer> {
  const answer = JSON.parse(json) as UpdateAnswer;
  await settings.store.threads.setState(threadId, answer.state, settings.clock.nowMs());
  return answer;
}

export function refusalAnswer(refusal: Extract<CallResult, { kind: 'refusal' }>): HttpResponse {
  switch (refusal.code) {
    case 'graph-missing':
      return problem('not-found', refusal.message);
    case 'invalid':
      return problem('invalid', refusal.message);
    case 'failed':
      return problem('internal', refusal.message);
    case 'worker-lost':
    case 'stopped':
      return problem('unavailable', refusal.message);
  }
}

export function graphOf(thread: Thread): string | null {
  const graphId = thread.metadata['graph_id'];
  return typeof graphId === 'string' ? graphId : null;
}

function graphKeys(thread: Thread): JsonObject {
  const { graph_id: graphId, assistant_id: assistantId } = thread.metadata;
  return {
    ...(typeof graphId === 'string' ? { graph_id: graphId } : {}),
    ...(typeof assistantId === 'string' ? { assistant_id: assistantId } : {}),
  };
}

export function configAt(thread: Thread, at: CheckpointReference): CallConfig {
  const own = thread.config['configurable'];
  return {
    configurable: {
      ...(typeof own === 'object' && own !== null && !Array.isArray(own) ? own : {}),
      // Also lands in the metadata of a checkpoint that an update writes.
      ...graphKeys(thread),
      thread_id: thread.threadId,
      checkpoint_ns: at.checkpoint_ns ?? '',
      ...(typeof at.checkpoint_id === 'string' ? { checkpoint_id: at.checkpoint_id } : {}),
      ...(at.checkpoint_map ? { checkpoint_map: at.checkpoint_map } : {}),
    },
  };
}

function checkpointIdOf(before: z.output<typeof historySearch>['before'] | null): string | null {
  if (typeof before === 'string') return before === '' ? null : before;
  if (before === null || before === undefined) return null;
  const id =
    'configurable' in before ? (before.configurable as { checkpoint_id: string }).checkpoint_id : before.checkpoint_id;
  return typeof id === 'string' ? id : null;
}
