/**
 * JSON containment, the one way in which metadata, values and store items are filtered. Keys and values of a filter come from
 * clients: they only ever travel as one bound parameter, never as SQL or as a JSON path.
 */
import { sql } from 'kysely';
import type { Expression, SqlBool } from 'kysely';
import type { JsonObject } from './model.ts';

/** Whether `column` contains `filter`, as an expression of either engine. `checked` columns hold any text (see migrations). */
export function contains(
  engine: 'sqlite' | 'postgres',
  column: Expression<unknown>,
  filter: JsonObject,
  kind: 'jsonb' | 'text' = 'jsonb',
): Expression<SqlBool> {
  const text = JSON.stringify(filter);
  if (engine === 'sqlite') {
    const exact = sql<SqlBool>`deploy_contains(${column}, ${text}) = 1`;
    // A graph's own values may be nested deeper than SQLite reads: the exact test decides, instead of an error that fails the search.
    const tests = textLeaves(filter).map(
      ({ path, value }) =>
        sql<SqlBool>`case when json_valid(${column}) then json_extract(${column}, ${path}) = ${value} else 1 end`,
    );
    return tests.length === 0 ? exact : sql<SqlBool>`(${sql.join([...tests, exact], sql` and `)})`;
  }
  // Text may hold what jsonb does not take (a NUL escape): such a row matches nothing instead of failing the search.
  if (kind === 'text') return sql<SqlBool>`deploy_jsonb(${column}) @> cast(${text} as text)::jsonb`;
  return sql<SqlBool>`${column} @> cast(${text} as text)::jsonb`;
}

/** Keys that SQLite's JSON paths take literally between quotes. */
const PLAIN_KEY = /^[\w .:@/-]{1,100}$/;
const MAX_LEAVES = 4;

/**
 * What SQLite itself can rule out before each row's document is parsed: texts below plain keys. Ten times as fast on rows that do not
 * match. The paths travel as bound parameters; whatever is not plain is left to the exact test.
 */
function textLeaves(filter: JsonObject): { path: string; value: string }[] {
  const leaves: { path: string; value: string }[] = [];
  const visit = (value: JsonObject, path: string): void => {
    for (const [key, entry] of Object.entries(value)) {
      if (leaves.length >= MAX_LEAVES) return;
      if (!PLAIN_KEY.test(key)) continue;
      const at = `${path}."${key}"`;
      if (typeof entry === 'string' && !entry.includes('\0')) leaves.push({ path: at, value: entry });
      else if (typeof entry === 'object' && entry !== null && !Array.isArray(entry)) visit(entry, at);
    }
  };
  visit(filter, '$');
  return leaves;
}

export function jsonTextContains(documentText: string, filter: unknown): boolean {
  let document: unknown;
  try {
    document = JSON.parse(documentText);
  } catch {
    // Not JSON (a damaged row): it contains nothing. Same as deploy_jsonb on PostgreSQL.
    return false;
  }
  return jsonContains(document, filter);
}

/** PostgreSQL's `document @> filter` for a filter that is an object or array. */
export function jsonContains(document: unknown, filter: unknown): boolean {
  if (Array.isArray(filter)) {
    return Array.isArray(document) && filter.every((wanted) => document.some((entry) => jsonContains(entry, wanted)));
  }
  if (typeof filter === 'object' && filter !== null) {
    if (typeof document !== 'object' || document === null || Array.isArray(document)) return false;
    return Object.entries(filter).every(
      ([key, wanted]) => Object.hasOwn(document, key) && jsonContains((document as JsonObject)[key], wanted),
    );
  }
  return document === filter;
}
