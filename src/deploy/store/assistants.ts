/** Assistants and their versions. */
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import { DEFAULT_ASSISTANT_METADATA } from '../ids.ts';
import { contains } from './contains.ts';
import { locked } from './database.ts';
import type { ControlDatabase } from './database.ts';
import type { JsonObject } from './model.ts';
import type { AssistantFilter, AssistantRepository, AssistantSortKey, NewAssistant } from './repositories.ts';
import { assistantFrom, assistantFromVersion, parsed } from './rows.ts';
import type { AssistantTable, ControlTables } from './schema.ts';

const SORT_COLUMNS: Record<AssistantSortKey, keyof AssistantTable> = {
  assistantId: 'assistant_id',
  graphId: 'graph_id',
  name: 'name',
  createdMs: 'created_ms',
  updatedMs: 'updated_ms',
};

export function createAssistantRepository(control: ControlDatabase): AssistantRepository {
  const { db, engine } = control;

  const insert = async (on: Kysely<ControlTables>, assistant: NewAssistant): Promise<AssistantTable | null> => {
    const row: AssistantTable = {
      assistant_id: assistant.assistantId,
      graph_id: assistant.graphId,
      name: assistant.name,
      description: assistant.description,
      version: 1,
      config: JSON.stringify(assistant.config),
      context: JSON.stringify(assistant.context),
      metadata: JSON.stringify(assistant.metadata),
      created_ms: assistant.nowMs,
      updated_ms: assistant.nowMs,
    };
    const result = await on
      .insertInto('deploy_assistant')
      .values(row)
      .onConflict((conflict) => conflict.column('assistant_id').doNothing())
      .executeTakeFirst();
    if (result.numInsertedOrUpdatedRows === 0n) return null;
    await insertVersion(on, row, assistant.nowMs);
    return row;
  };

  const filtered = (filter: AssistantFilter) => {
    let query = db.selectFrom('deploy_assistant');
    if (filter.graphId !== undefined) query = query.where('graph_id', '=', filter.graphId);
    if (filter.name !== undefined) {
      // Searched for as it stands: no pattern characters.
      const position =
        engine === 'sqlite'
          ? sql<number>`instr(lower(name), lower(${filter.name}))`
          : sql<number>`strpos(lower(name), lower(${filter.name}))`;
      query = query.where(position, '>', 0);
    }
    if (filter.metadata !== undefined) query = query.where(contains(engine, sql.ref('metadata'), filter.metadata));
    const { servedGraphIds: served } = filter;
    if (served !== undefined) {
      const isDefault = contains(engine, sql.ref('metadata'), DEFAULT_ASSISTANT_METADATA);
      query = query.where((builder) =>
        builder.or([builder.not(isDefault), ...(served.length === 0 ? [] : [builder('graph_id', 'in', served)])]),
      );
    }
    return query;
  };

  const count = async (filter: AssistantFilter): Promise<number> => {
    const row = await filtered(filter)
      .select((builder) => builder.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    return row.count;
  };

  /** Writes the assistant's next state as a version of its own. */
  const replace = async (on: Kysely<ControlTables>, row: AssistantTable): Promise<void> => {
    const { assistant_id: id, ...columns } = row;
    await on.updateTable('deploy_assistant').set(columns).where('assistant_id', '=', id).execute();
  };

  const lockRow = (on: Kysely<ControlTables>, assistantId: string): Promise<AssistantTable | undefined> =>
    locked(
      engine,
      on.selectFrom('deploy_assistant').selectAll().where('assistant_id', '=', assistantId),
    ).executeTakeFirst();

  return {
    create: (assistant) =>
      db.transaction().execute(async (on) => {
        const made = await insert(on, assistant);
        if (made !== null) return { kind: 'created', assistant: assistantFrom(made) };
        if (assistant.ifExists === 'raise') return { kind: 'exists' };
        const existing = await lockRow(on, assistant.assistantId);
        return existing === undefined ? { kind: 'exists' } : { kind: 'existing', assistant: assistantFrom(existing) };
      }),

    ensureDefaults: (defaults) =>
      db.transaction().execute(async (on) => {
        for (const assistant of defaults) await insert(on, assistant);
      }),

    get: async (assistantId) => {
      const row = await db
        .selectFrom('deploy_assistant')
        .selectAll()
        .where('assistant_id', '=', assistantId)
        .executeTakeFirst();
      return row === undefined ? null : assistantFrom(row);
    },

    patch: (assistantId, patch, nowMs) =>
      db.transaction().execute(async (on) => {
        const row = await lockRow(on, assistantId);
        if (row === undefined) return null;
        const newest = await on
          .selectFrom('deploy_assistant_version')
          .select((builder) => builder.fn.max('version').as('version'))
          .where('assistant_id', '=', assistantId)
          .executeTakeFirst();
        const next: AssistantTable = {
          ...row,
          graph_id: patch.graphId ?? row.graph_id,
          name: patch.name ?? row.name,
          description: patch.description === undefined ? row.description : patch.description,
          config: patch.config === undefined ? row.config : JSON.stringify(patch.config),
          context: patch.context === undefined ? row.context : JSON.stringify(patch.context),
          metadata: patch.metadata === undefined ? row.metadata : merged(row.metadata, patch.metadata),
          version: (newest?.version ?? row.version) + 1,
          updated_ms: nowMs,
        };
        await replace(on, next);
        await insertVersion(on, next, nowMs);
        return assistantFrom(next);
      }),

    delete: async (assistantId) => {
      const result = await db.deleteFrom('deploy_assistant').where('assistant_id', '=', assistantId).executeTakeFirst();
      return result.numDeletedRows > 0n;
    },

    search: async (filter, page, sort) => {
      const rows = await filtered(filter)
        .selectAll()
        .orderBy(SORT_COLUMNS[sort.by], sort.order)
        .orderBy('assistant_id', sort.order)
        .limit(page.limit)
        .offset(page.offset)
        .execute();
      return { rows: rows.map(assistantFrom), totalCount: await count(filter) };
    },

    count,

    versions: async (assistantId, metadata, page) => {
      let query = db.selectFrom('deploy_assistant_version').selectAll().where('assistant_id', '=', assistantId);
      if (metadata !== null) query = query.where(contains(engine, sql.ref('metadata'), metadata));
      const rows = await query.orderBy('version', 'desc').limit(page.limit).offset(page.offset).execute();
      if (rows.length > 0) return rows.map(assistantFromVersion);
      const exists = await db
        .selectFrom('deploy_assistant')
        .select('assistant_id')
        .where('assistant_id', '=', assistantId)
        .executeTakeFirst();
      return exists === undefined ? null : [];
    },

    setLatest: (assistantId, version, nowMs) =>
      db.transaction().execute(async (on) => {
        const row = await lockRow(on, assistantId);
        const chosen = await on
          .selectFrom('deploy_assistant_version')
          .selectAll()
          .where('assistant_id', '=', assistantId)
          .where('version', '=', version)
          .executeTakeFirst();
        if (row === undefined || chosen === undefined) return null;
        const next: AssistantTable = { ...chosen, created_ms: row.created_ms, updated_ms: nowMs };
        await replace(on, next);
        return assistantFrom(next);
      }),
  };
}

async function insertVersion(on: Kysely<ControlTables>, row: AssistantTable, nowMs: number): Promise<void> {
  const { updated_ms: _, ...columns } = row;
  await on
    .insertInto('deploy_assistant_version')
    .values({ ...columns, created_ms: nowMs })
    .execute();
}

function merged(text: string, patch: JsonObject): string {
  return JSON.stringify({ ...parsed(text), ...patch });
}
