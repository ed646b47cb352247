/** Threads: everything but their state and their runs. */
import { z } from 'zod';
import type { HttpResponse } from '../../core/http.ts';
import type { Clock } from '../../core/lifecycle.ts';
import { emptyAnswer, jsonAnswer, textAnswer } from '../answer.ts';
import { queryList, readBody } from '../body.ts';
import { listOf, ttlMinutes, ttlMsOf } from '../bounds.ts';
import { extractField } from '../extract.ts';
import { arrayJson } from '../fields.ts';
import type { GraphPool } from '../graph/pool.ts';
import { defaultAssistantId } from '../ids.ts';
import type { IdSource } from '../ids.ts';
import { present } from '../present.ts';
import { problem } from '../problem.ts';
import { command, jsonValue, metadataObject, plainText } from '../request.ts';
import type { Route, RouteContext } from '../router.ts';
import type { Runs } from '../runs.ts';
import { pageFields, pageOf, paginationHeaders, selectField, sortOrder } from '../search.ts';
import type { JsonText, Thread, ThreadTtl } from '../store/model.ts';
import type { DeploymentStore, ThreadFilter, ThreadSortKey } from '../store/repositories.ts';
import { threadJson } from '../threadrecord.ts';
import { configAt, graphOf, recordUpdate, refusalAnswer } from './state.ts';

export interface ThreadRouteSettings {
  store: DeploymentStore;
  runs: Pick<Runs, 'abandon' | 'holdThread'>;
  pool: Pick<GraphPool, 'call'>;
  ids: IdSource;
  clock: Clock;
  /** What a thread gets that asks for no time to live. */
  defaultTtl: { strategy: ThreadTtl['strategy']; ttlMs: number } | null;
}

const ttlField = z.union([
  ttlMinutes,
  z.looseObject({ ttl: ttlMinutes, strategy: z.enum(['delete', 'keep_latest']).nullish() }),
]);
const MAX_SUPERSTEP_COUNT = 10_000;
const MAX_ID_COUNT = 1000;
const stepUpdate = z.looseObject({
  values: jsonValue.nullish(),
  command: command.nullish(),
  as_node: plainText.nullish(),
});
const superstep = z.looseObject({ updates: listOf(stepUpdate, { min: 1, max: MAX_SUPERSTEP_COUNT }) });
export const threadCreate = z
  .looseObject({
    thread_id: z.guid().nullish(),
    metadata: metadataObject.nullish(),
    if_exists: z.enum(['raise', 'do_nothing']).nullish(),
    ttl: ttlField.nullish(),
    supersteps: listOf(superstep, { max: MAX_SUPERSTEP_COUNT }).nullish(),
  })
  .superRefine((body, context) => {
    if (!body.supersteps?.length || typeof body.metadata?.['graph_id'] === 'string') return;
    context.addIssue({ code: 'custom', path: ['metadata', 'graph_id'], message: 'is required with supersteps' });
  });
export const threadPatch = z.looseObject({ metadata: metadataObject.nullish(), ttl: ttlField.nullish() });

const STATUSES = ['idle', 'busy', 'interrupted', 'error'] as const;
const filterFields = {
  metadata: metadataObject.nullish(),
  values: metadataObject.nullish(),
  status: z.enum(STATUSES).nullish(),
  ids: listOf(z.guid(), { max: MAX_ID_COUNT }).nullish(),
};
const SORT_KEYS = {
  thread_id: 'threadId',
  status: 'status',
  created_at: 'createdMs',
  updated_at: 'updatedMs',
  state_updated_at: 'stateUpdatedMs',
} as const satisfies Record<string, ThreadSortKey>;
export const threadSearch = z.looseObject({
  ...filterFields,
  ...pageFields,
  sort_by: z.enum(Object.keys(SORT_KEYS) as (keyof typeof SORT_KEYS)[]).nullish(),
  sort_order: sortOrder,
  select: selectField,
  extract: extractField.nullish(),
});
export const threadCount = z.looseObject(filterFields);
export const threadPrune = z.looseObject({
  thread_ids: listOf(z.guid(), { min: 1, max: MAX_ID_COUNT }),
  strategy: z.enum(['delete', 'keep_latest']).nullish(),
});

export type DeleteThread = (threadId: string) => Promise<boolean>;

/** Removes a thread and stops what runs on it. */
export function createDeleteThread(settings: Pick<ThreadRouteSettings, 'store' | 'runs'>): DeleteThread {
  return async (threadId) => {
    const deletion = await settings.store.threads.delete(threadId);
    if (deletion.kind === 'missing') return false;
    settings.runs.abandon(deletion.inFlight);
    return true;
  };
}

export function threadRoutes(settings: ThreadRouteSettings): Route[] {
  const { store, clock } = settings;
  const deleteThread = createDeleteThread(settings);
  const missing = (threadId: string): HttpResponse => problem('not-found', `Thread ${threadId} not found`);
  const idOf = (context: RouteContext): string => context.params['thread_id'] ?? '';

  const ttlOf = (asked: z.output<typeof ttlField>, nowMs: number): ThreadTtl => {
    const ttlMs = ttlMsOf(typeof asked === 'number' ? asked : asked.ttl);
    const strategy = typeof asked === 'number' ? 'delete' : (asked.strategy ?? 'delete');
    return { strategy, ttlMs, expiresMs: nowMs + ttlMs };
  };

  const create: Route['handler'] = async ({ request }) => {
    const body = readBody(request, threadCreate);
    if (!body.ok) return body.response;
    const asked = body.value;
    const nowMs = clock.nowMs();
    const usual = settings.defaultTtl;
    const created = await store.threads.create({
      threadId: asked.thread_id?.toLowerCase() ?? settings.ids.next(),
      metadata: asked.metadata ?? {},
      ifExists: asked.if_exists ?? 'raise',
      ttl: asked.ttl ? ttlOf(asked.ttl, nowMs) : usual && { ...usual, expiresMs: nowMs + usual.ttlMs },
      nowMs,
    });
    if (created.kind === 'exists') return problem('conflict', `Thread ${asked.thread_id ?? ''} already exists`);
    const { thread } = created;
    if (created.kind === 'existing' || !asked.supersteps?.length) return textAnswer(threadJson(thread));
    return replay(thread, asked.supersteps);
  };

  /** Fills a new thread with the state that the supersteps make; without it, there is no thread either. */
  const replay = async (thread: Thread, supersteps: readonly unknown[]): Promise<HttpResponse> => {
    const graphId = graphOf(thread) ?? '';
    const result = await settings.pool.call({
      kind: 'supersteps',
      graphId,
      config: configAt(thread, {}),
      superstepsJson: JSON.stringify(supersteps) as JsonText,
    });
    if (result.kind === 'refusal') {
      await deleteThread(thread.threadId);
      return refusalAnswer(result);
    }
    await store.threads.patch(
      thread.threadId,
      { assistant_id: thread.metadata['assistant_id'] ?? defaultAssistantId(graphId) },
      undefined,
      clock.nowMs(),
    );
    await recordUpdate(settings, thread.threadId, result.json);
    const filled = await store.threads.get(thread.threadId);
    return filled === null ? missing(thread.threadId) : textAnswer(threadJson(filled));
  };

  const search: Route['handler'] = async ({ request }) => {
    const body = readBody(request, threadSearch);
    if (!body.ok) return body.response;
    const page = pageOf(body.value);
    const by = SORT_KEYS[body.value.sort_by ?? 'updated_at'];
    const order = body.value.sort_order ?? 'desc';
    const found = await store.threads.search(filterOf(body.value), page, { by, order });
    const view = { select: body.value.select ?? null, extract: body.value.extract ?? null };
    return textAnswer(
      arrayJson(found.rows.map((thread) => threadJson(thread, view))),
      paginationHeaders(page, found.rows.length, found.totalCount),
    );
  };

  const patch: Route['handler'] = async (context) => {
    const body = readBody(context.request, threadPatch);
    if (!body.ok) return body.response;
    const nowMs = clock.nowMs();
    const ttl = body.value.ttl ? ttlOf(body.value.ttl, nowMs) : undefined;
    const thread = await store.threads.patch(idOf(context), body.value.metadata ?? {}, ttl, nowMs);
    if (thread === null) return missing(idOf(context));
    const minimal = /\breturn=minimal\b/i.test(context.request.header('prefer'));
    return minimal ? emptyAnswer : textAnswer(threadJson(thread));
  };

  const prune: Route['handler'] = async ({ request }) => {
    const body = readBody(request, threadPrune);
    if (!body.ok) return body.response;
    let prunedCount = 0;
    for (const threadId of new Set(body.value.thread_ids.map((id) => id.toLowerCase()))) {
      if (body.value.strategy === 'keep_latest') {
        if (await pruneToLatest(settings, threadId)) prunedCount += 1;
      } else if (await deleteThread(threadId)) prunedCount += 1;
    }
    return jsonAnswer({ pruned_count: prunedCount });
  };

  return [
    { method: 'POST', pattern: '/threads', handler: create },
    { method: 'POST', pattern: '/threads/search', handler: search },
    {
      method: 'POST',
      pattern: '/threads/count',
      handler: async ({ request }) => {
        const body = readBody(request, threadCount);
        return body.ok ? jsonAnswer(await store.threads.count(filterOf(body.value))) : body.response;
      },
    },
    { method: 'POST', pattern: '/threads/prune', handler: prune },
    {
      method: 'GET',
      pattern: '/threads/:thread_id',
      handler: async (context) => {
        const thread = await store.threads.get(idOf(context));
        const withTtl = queryList(context.query, 'include')?.includes('ttl') ?? false;
        return thread === null ? missing(idOf(context)) : textAnswer(threadJson(thread, { withTtl }));
      },
    },
    { method: 'PATCH', pattern: '/threads/:thread_id', handler: patch },
    {
      method: 'DELETE',
      pattern: '/threads/:thread_id',
      handler: async (context) => ((await deleteThread(idOf(context))) ? emptyAnswer : missing(idOf(context))),
    },
    {
      method: 'POST',
      pattern: '/threads/:thread_id/copy',
      handler: async (context) => {
        const copy = await store.threads.copy(idOf(context), settings.ids.next(), clock.nowMs());
        return copy === null ? missing(idOf(context)) : textAnswer(threadJson(copy));
      },
    },
  ];
}

/** Drops a thread's history but for its last state; not while a run writes to it. */
export function pruneToLatest(
  settings: Pick<ThreadRouteSettings, 'store' | 'runs'>,
  threadId: string,
): Promise<boolean> {
  return settings.runs.holdThread(threadId, async () => {
    if ((await settings.store.threads.get(threadId)) === null) return false;
    if (await settings.store.threads.isBusy(threadId)) return false;
    await settings.store.state.keepLatest(threadId);
    return true;
  });
}

function filterOf(body: z.output<typeof threadCount>): ThreadFilter {
  return present({
    metadata: body.metadata,
    values: body.values,
    status: body.status,
    ids: body.ids?.map((id) => id.toLowerCase()),
  });
}
