/** Assistants and their versions. */
import { z } from 'zod';
import type { HttpResponse } from '../../core/http.ts';
import type { Clock } from '../../core/lifecycle.ts';
import { emptyAnswer, jsonAnswer, textAnswer } from '../answer.ts';
import { assistantJson, assistantVersionJson } from '../assistantrecord.ts';
import { queryBoolean, readBody } from '../body.ts';
import { arrayJson } from '../fields.ts';
import { assistantIdOf } from '../ids.ts';
import type { IdSource } from '../ids.ts';
import { present } from '../present.ts';
import { problem } from '../problem.ts';
import { jsonObject, metadataObject, plainText } from '../request.ts';
import type { Route, RouteContext } from '../router.ts';
import { pageFields, pageOf, paginationHeaders, selectField, sortOrder } from '../search.ts';
import type { AssistantFilter, AssistantSortKey, DeploymentStore } from '../store/repositories.ts';
import type { DeleteThread } from './threads.ts';

export interface AssistantRouteSettings {
  store: Pick<DeploymentStore, 'assistants' | 'threads'>;
  graphIds: ReadonlySet<string>;
  deleteThread: DeleteThread;
  ids: IdSource;
  clock: Clock;
}

const config = metadataObject.refine(
  ({ configurable }) => configurable === undefined || jsonObject.nullish().safeParse(configurable).success,
  { path: ['configurable'], message: 'expected an object' },
);
export const assistantCreate = z.looseObject({
  graph_id: plainText.min(1),
  assistant_id: z.guid().nullish(),
  config: config.nullish(),
  context: metadataObject.nullish(),
  metadata: metadataObject.nullish(),
  if_exists: z.enum(['raise', 'do_nothing']).nullish(),
  name: plainText.nullish(),
  description: plainText.nullish(),
});
export const assistantPatch = z.looseObject({
  graph_id: plainText.min(1).nullish(),
  config: config.nullish(),
  context: metadataObject.nullish(),
  metadata: metadataObject.nullish(),
  name: plainText.nullish(),
  description: plainText.nullish(),
});
const filterFields = {
  metadata: metadataObject.nullish(),
  graph_id: plainText.nullish(),
  name: plainText.nullish(),
};
const SORT_KEYS = {
  assistant_id: 'assistantId',
  graph_id: 'graphId',
  name: 'name',
  created_at: 'createdMs',
  updated_at: 'updatedMs',
} as const satisfies Record<string, AssistantSortKey>;
export const assistantSearch = z.looseObject({
  ...filterFields,
  ...pageFields,
  sort_by: z.enum(Object.keys(SORT_KEYS) as (keyof typeof SORT_KEYS)[]).nullish(),
  sort_order: sortOrder,
  select: selectField,
});
export const assistantCount = z.looseObject(filterFields);
export const assistantVersions = z.looseObject({ metadata: metadataObject.nullish(), ...pageFields });
/** What a database's integer holds. */
const MAX_VERSION = 2 ** 31 - 1;
export const assistantLatest = z.looseObject({ version: z.int().min(1).max(MAX_VERSION).nullish() });

/** Threads removed in one step when an assistant goes with its threads. */
const DELETE_COUNT = 100;

export function assistantRoutes(settings: AssistantRouteSettings): Route[] {
  const { store, clock } = settings;

  const idOf = (context: RouteContext): string => assistantIdOf(context.params['assistant_id'] ?? '');
  const missing = (context: RouteContext): HttpResponse =>
    problem('not-found', `Assistant ${context.params['assistant_id'] ?? ''} not found`);
  const graphMissing = (graphId: string): HttpResponse =>
    problem(
      'not-found',
      settings.graphIds.size === 0
        ? `Graph ${graphId} not found: no graphs are configured. Set DEPLOYMENT_CONFIG to the path of a langgraph.json.`
        : `Graph ${graphId} not found`,
    );

  const create: Route['handler'] = async ({ request }) => {
    const body = readBody(request, assistantCreate);
    if (!body.ok) return body.response;
    const asked = body.value;
    if (!settings.graphIds.has(asked.graph_id)) return graphMissing(asked.graph_id);
    const created = await store.assistants.create({
      assistantId: asked.assistant_id?.toLowerCase() ?? settings.ids.next(),
      graphId: asked.graph_id,
      name: asked.name ?? 'Untitled',
      description: asked.description ?? null,
      config: asked.config ?? {},
      context: asked.context ?? {},
      metadata: asked.metadata ?? {},
      ifExists: asked.if_exists ?? 'raise',
      nowMs: clock.nowMs(),
    });
    if (created.kind === 'exists') return problem('conflict', `Assistant ${asked.assistant_id ?? ''} already exists`);
    return textAnswer(assistantJson(created.assistant));
  };

  const search: Route['handler'] = async ({ request }) => {
    const body = readBody(request, assistantSearch);
    if (!body.ok) return body.response;
    const page = pageOf(body.value);
    const by = SORT_KEYS[body.value.sort_by ?? 'created_at'];
    const found = await store.assistants.search(filterOf(body.value, settings.graphIds), page, {
      by,
      order: body.value.sort_order ?? 'desc',
    });
    return textAnswer(
      arrayJson(found.rows.map((row) => assistantJson(row, body.value.select ?? null))),
      paginationHeaders(page, found.rows.length, found.totalCount),
    );
  };

  const patch: Route['handler'] = async (context) => {
    const body = readBody(context.request, assistantPatch);
    if (!body.ok) return body.response;
    const { graph_id: graphId, ...rest } = body.value;
    if (typeof graphId === 'string' && !settings.graphIds.has(graphId)) return graphMissing(graphId);
    const patched = await store.assistants.patch(
      idOf(context),
      {
        ...present({
          graphId,
          config: rest.config,
          context: rest.context,
          metadata: rest.metadata,
          name: rest.name,
        }),
        ...(rest.description === undefined ? {} : { description: rest.description }),
      },
      clock.nowMs(),
    );
    return patched === null ? missing(context) : textAnswer(assistantJson(patched));
  };

  const remove: Route['handler'] = async (context) => {
    const withThreads = queryBoolean(context.query, 'delete_threads', false);
    if (withThreads === null) return problem('invalid', 'delete_threads: must be true or false');
    const assistantId = idOf(context);
    if ((await store.assistants.get(assistantId)) === null) return missing(context);
    while (withThreads) {
      const { rows } = await store.threads.search(
        { metadata: { assistant_id: assistantId } },
        { limit: DELETE_COUNT, offset: 0 },
        { by: 'threadId', order: 'asc' },
      );
      for (const thread of rows) await settings.deleteThread(thread.threadId);
      if (rows.length < DELETE_COUNT) break;
    }
    return (await store.assistants.delete(assistantId)) ? emptyAnswer : missing(context);
  };

  const versions: Route['handler'] = async (context) => {
    const body = readBody(context.request, assistantVersions);
    if (!body.ok) return body.response;
    const found = await store.assistants.versions(idOf(context), body.value.metadata ?? null, pageOf(body.value));
    return found === null ? missing(context) : textAnswer(arrayJson(found.map(assistantVersionJson)));
  };

  const latest: Route['handler'] = async (context) => {
    const body = readBody(context.request, assistantLatest);
    if (!body.ok) return body.response;
    const fromQuery = /^\d{1,9}$/.exec(context.query.get('version') ?? '')?.[0];
    const version = body.value.version ?? (fromQuery === undefined ? null : Number(fromQuery));
    if (version === null) return problem('invalid', 'version: expected an integer');
    const assistant = await store.assistants.setLatest(idOf(context), version, clock.nowMs());
    if (assistant !== null) return textAnswer(assistantJson(assistant));
    return problem('not-found', `Assistant ${context.params['assistant_id'] ?? ''} has no version ${version}`);
  };

  return [
    { method: 'POST', pattern: '/assistants', handler: create },
    { method: 'POST', pattern: '/assistants/search', handler: search },
    {
      method: 'POST',
      pattern: '/assistants/count',
      handler: async ({ request }) => {
        const body = readBody(request, assistantCount);
        return body.ok
          ? jsonAnswer(await store.assistants.count(filterOf(body.value, settings.graphIds)))
          : body.response;
      },
    },
    {
      method: 'GET',
      pattern: '/assistants/:assistant_id',
      handler: async (context) => {
        const assistant = await store.assistants.get(idOf(context));
        return assistant === null ? missing(context) : textAnswer(assistantJson(assistant));
      },
    },
    { method: 'PATCH', pattern: '/assistants/:assistant_id', handler: patch },
    { method: 'DELETE', pattern: '/assistants/:assistant_id', handler: remove },
    { method: 'POST', pattern: '/assistants/:assistant_id/versions', handler: versions },
    { method: 'POST', pattern: '/assistants/:assistant_id/latest', handler: latest },
  ];
}

function filterOf(body: z.output<typeof assistantCount>, graphIds: ReadonlySet<string>): AssistantFilter {
  const servedGraphIds = [...graphIds];
  return present({ metadata: body.metadata, graphId: body.graph_id, name: body.name, servedGraphIds });
}
