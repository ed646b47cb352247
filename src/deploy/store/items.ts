/** Items of the long-term store: shared by the API and, through connections of their own, by the graphs. */
import { sql } from 'kysely';
import type { StateDatabase } from './database.ts';
import { matchesItemFilter } from './itemfilter.ts';
import type { JsonObject, JsonText, StoreItem } from './model.ts';
import type { ItemRepository } from './repositories.ts';
import type { ItemTable } from './schema.ts';

/** Rows looked at in one go where a filter has to be applied outside of SQL. */
const SCAN_COUNT = 500;

export function createItemRepository(state: StateDatabase): ItemRepository {
  const { db } = state;
  const alive = (nowMs: number) => sql<boolean>`(expires_ms is null or expires_ms > ${nowMs})`;

  return {
    put: async (item, nowMs) => {
      const expiresMs = item.ttlMs === null ? null : nowMs + item.ttlMs;
      await db
        .insertInto('deploy_item')
        .values({
          path: pathOf(item.namespace),
          key: item.key,
          value: item.valueJson,
          created_ms: nowMs,
          updated_ms: nowMs,
          ttl_ms: item.ttlMs,
          expires_ms: expiresMs,
        })
        .onConflict((conflict) =>
          conflict
            .columns(['path', 'key'])
            .doUpdateSet({ value: item.valueJson, updated_ms: nowMs, ttl_ms: item.ttlMs, expires_ms: expiresMs }),
        )
        .execute();
    },

    get: async (namespace, key, refreshTtl, nowMs) => {
      const path = pathOf(namespace);
      const row = await db
        .selectFrom('deploy_item')
        .selectAll()
        .where('path', '=', path)
        .where('key', '=', key)
        .where(alive(nowMs))
        .executeTakeFirst();
      if (row === undefined) return null;
      if (refreshTtl && row.ttl_ms !== null) {
        await db
          .updateTable('deploy_item')
          .set({ expires_ms: nowMs + row.ttl_ms })
          .where('path', '=', path)
          .where('key', '=', key)
          .execute();
      }
      return itemFrom(row);
    },

    delete: async (namespace, key) => {
      const result = await db
        .deleteFrom('deploy_item')
        .where('path', '=', pathOf(namespace))
        .where('key', '=', key)
        .executeTakeFirst();
      return result.numDeletedRows > 0n;
    },

    search: async (search, page, nowMs) => {
      let query = db
        .selectFrom('deploy_item')
        .selectAll()
        .where(alive(nowMs))
        .orderBy('updated_ms', 'desc')
        .orderBy('path')
        .orderBy('key');
      const range = prefixRange(search.namespacePrefix);
      if (range !== null) query = query.where('path', '>=', range.from).where('path', '<', range.until);
      if (search.filter === null || Object.keys(search.filter).length === 0) {
        const rows = await query.limit(page.limit).offset(page.offset).execute();
        return rows.map((row) => ({ item: itemFrom(row), score: null }));
      }
      const found: StoreItem[] = [];
      for (let offset = 0; found.length < page.offset + page.limit; offset += SCAN_COUNT) {
        const rows = await query.limit(SCAN_COUNT).offset(offset).execute();
        for (const row of rows) if (matchesItemFilter(parsedValue(row.value), search.filter)) found.push(itemFrom(row));
        if (rows.length < SCAN_COUNT) break;
      }
      return found.slice(page.offset, page.offset + page.limit).map((item) => ({ item, score: null }));
    },

    namespaces: async (search, page, nowMs) => {
      const { prefix, suffix, maxDepth } = search;
      // A wildcard label ends what the index can narrow down.
      const wildcard = prefix?.indexOf('*') ?? -1;
      const range = prefixRange(prefix === null ? [] : wildcard < 0 ? prefix : prefix.slice(0, wildcard));
      const seen = new Set<string>();
      let after = '';
      for (;;) {
        let query = db
          .selectFrom('deploy_item')
          .select('path')
          .distinct()
          .where('path', '>', after)
          .where(alive(nowMs));
        if (range !== null) query = query.where('path', '>=', range.from).where('path', '<', range.until);
        const rows = await query.orderBy('path').limit(SCAN_COUNT).execute();
        for (const { path } of rows) {
          after = path;
          const labels = labelsOf(path);
          if (prefix !== null && !matches(labels.slice(0, prefix.length), prefix)) continue;
          if (suffix !== null && !matches(labels.slice(Math.max(0, labels.length - suffix.length)), suffix)) continue;
          seen.add(pathOf(maxDepth === null ? labels : labels.slice(0, maxDepth)));
        }
        // Shortening keeps the order, so that the first ones found are the first ones.
        if (rows.length < SCAN_COUNT || seen.size > page.offset + page.limit) break;
      }
      return [...seen].slice(page.offset, page.offset + page.limit).map(labelsOf);
    },

    deleteExpired: async (nowMs) => {
      const result = await db.deleteFrom('deploy_item').where('expires_ms', '<=', nowMs).executeTakeFirst();
      return Number(result.numDeletedRows);
    },
  };
}

function pathOf(namespace: readonly string[]): string {
  return namespace.map((label) => `${label}.`).join('');
}

function labelsOf(path: string): string[] {
  return path === '' ? [] : path.slice(0, -1).split('.');
}

/** Every path below a prefix; `/` is the character after the full stop. Null: all of them. */
function prefixRange(prefix: readonly string[]): { from: string; until: string } | null {
  if (prefix.length === 0) return null;
  const from = pathOf(prefix);
  return { from, until: `${from.slice(0, -1)}/` };
}

function matches(labels: readonly string[], pattern: readonly string[]): boolean {
  return (
    labels.length === pattern.length && pattern.every((wanted, index) => wanted === '*' || wanted === labels[index])
  );
}

function parsedValue(text: string): JsonObject {
  const value: unknown = JSON.parse(text);
  return typeof value === 'object' && value !== null ? (value as JsonObject) : {};
}

function itemFrom(row: ItemTable): StoreItem {
  return {
    namespace: labelsOf(row.path),
    key: row.key,
    valueJson: row.value as JsonText,
    createdMs: row.created_ms,
    updatedMs: row.updated_ms,
  };
}
