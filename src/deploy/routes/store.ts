/** Items of the long-term store. */
import { z } from 'zod';
import type { Clock } from '../../core/lifecycle.ts';
import { emptyAnswer, jsonAnswer, textAnswer } from '../answer.ts';
import { queryBoolean, readBody } from '../body.ts';
import { isKeySized, listOf, MAX_KEY_BYTES, ttlMinutes, ttlMsOf } from '../bounds.ts';
import { arrayJson, field, objectJson } from '../fields.ts';
import { problem } from '../problem.ts';
import { jsonObject, metadataObject, nameList, plainText } from '../request.ts';
import type { Route } from '../router.ts';
import { pageFields, pageOf } from '../search.ts';
import { unknownOperator } from '../store/itemfilter.ts';
import type { JsonText, StoreItem } from '../store/model.ts';
import type { ItemRepository } from '../store/repositories.ts';
import { isoTime } from '../times.ts';

export interface StoreRouteSettings {
  items: ItemRepository;
  clock: Clock;
  /** `store.ttl` of the configuration file. */
  ttl: { defaultMs: number | null; refreshOnRead: boolean };
}

const label = plainText.min(1).refine((text) => !text.includes('.'), 'a label contains no full stop');
const MAX_LABEL_COUNT = 100;
const namespace = listOf(label, { max: MAX_LABEL_COUNT });
const wildcardNamespace = listOf(z.union([z.literal('*'), label]), { max: MAX_LABEL_COUNT });
export const itemPut = z
  .looseObject({
    namespace: listOf(label, { min: 1, max: MAX_LABEL_COUNT }),
    key: plainText.min(1),
    value: jsonObject,
    index: z.union([z.literal(false), nameList]).nullish(),
    ttl: ttlMinutes.nullish(),
  })
  .refine(({ namespace: labels, key }) => isKeySized([...labels, key].join('.')), {
    path: ['key'],
    message: `is longer, with its namespace, than ${MAX_KEY_BYTES} bytes`,
  });
export const itemDelete = z.looseObject({ namespace, key: plainText });
export const itemSearch = z
  .looseObject({
    namespace_prefix: namespace.nullish(),
    filter: metadataObject.nullish(),
    query: z.string().nullish(),
    refresh_ttl: z.boolean().nullish(),
    ...pageFields,
  })
  .superRefine((body, context) => {
    const unknown = body.filter ? unknownOperator(body.filter) : null;
    if (unknown === null) return;
    context.addIssue({ code: 'custom', path: ['filter'], message: `there is no operator ${unknown}` });
  });
export const namespaceSearch = z.looseObject({
  prefix: wildcardNamespace.nullish(),
  suffix: wildcardNamespace.nullish(),
  max_depth: z.int().min(1).nullish(),
  ...pageFields,
});

const DEFAULT_NAMESPACE_COUNT = 100;

export function storeRoutes(settings: StoreRouteSettings): Route[] {
  const { items, clock } = settings;

  const put: Route['handler'] = async ({ request }) => {
    const body = readBody(request, itemPut);
    if (!body.ok) return body.response;
    const { ttl } = body.value;
    await items.put(
      {
        namespace: body.value.namespace,
        key: body.value.key,
        valueJson: JSON.stringify(body.value.value) as JsonText,
        ttlMs: typeof ttl === 'number' ? ttlMsOf(ttl) : settings.ttl.defaultMs,
      },
      clock.nowMs(),
    );
    return emptyAnswer;
  };

  const get: Route['handler'] = async ({ query }) => {
    const place = z
      .object({ namespace, key: plainText.min(1) })
      .safeParse({ namespace: namespaceOf(query), key: query.get('key') ?? '' });
    const refresh = queryBoolean(query, 'refresh_ttl', settings.ttl.refreshOnRead);
    if (!place.success) return problem('invalid', 'namespace and key: expected labels without full stops, and a key');
    if (refresh === null) return problem('invalid', 'refresh_ttl: must be true or false');
    const item = await items.get(place.data.namespace, place.data.key, refresh, clock.nowMs());
    return textAnswer(item === null ? 'null' : itemJson(item, null));
  };

  const search: Route['handler'] = async ({ request }) => {
    const body = readBody(request, itemSearch);
    if (!body.ok) return body.response;
    const found = await items.search(
      {
        namespacePrefix: body.value.namespace_prefix ?? [],
        filter: body.value.filter ?? null,
        query: body.value.query ?? null,
      },
      pageOf(body.value),
      clock.nowMs(),
    );
    return textAnswer(objectJson([['items', arrayJson(found.map(({ item, score }) => itemJson(item, score)))]]));
  };

  return [
    { method: 'PUT', pattern: '/store/items', handler: put },
    { method: 'GET', pattern: '/store/items', handler: get },
    {
      method: 'DELETE',
      pattern: '/store/items',
      handler: async ({ request }) => {
        const body = readBody(request, itemDelete);
        if (!body.ok) return body.response;
        await items.delete(body.value.namespace, body.value.key);
        return emptyAnswer;
      },
    },
    { method: 'POST', pattern: '/store/items/search', handler: search },
    {
      method: 'POST',
      pattern: '/store/namespaces',
      handler: async ({ request }) => {
        const body = readBody(request, namespaceSearch);
        if (!body.ok) return body.response;
        const found = await items.namespaces(
          {
            prefix: body.value.prefix ?? null,
            suffix: body.value.suffix ?? null,
            maxDepth: body.value.max_depth ?? null,
          },
          pageOf(body.value, DEFAULT_NAMESPACE_COUNT),
          clock.nowMs(),
        );
        return jsonAnswer({ namespaces: found });
      },
    },
  ];
}

/** `a.b` (both clients), repeated, or a JSON array. */
function namespaceOf(query: URLSearchParams): string[] {
  const all = query.getAll('namespace');
  const [only = ''] = all;
  if (all.length > 1) return all;
  if (only.startsWith('[')) {
    try {
      const parsed: unknown = JSON.parse(only);
      if (Array.isArray(parsed)) return parsed.map(String);
    } catch {
      // Not JSON: a label that begins with a bracket.
    }
  }
  return only === '' ? [] : only.split('.');
}

function itemJson(item: StoreItem, score: number | null): string {
  return objectJson([
    field('namespace', item.namespace),
    field('key', item.key),
    ['value', item.valueJson],
    field('created_at', isoTime(item.createdMs)),
    field('updated_at', isoTime(item.updatedMs)),
    ...(score === null ? [] : [field('score', score)]),
  ]);
}
