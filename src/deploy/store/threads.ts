/** Threads in the control tables; their checkpoints follow in the state database. */
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import { contains } from './contains.ts';
import { locked } from './database.ts';
import type { ControlDatabase } from './database.ts';
import type { JsonObject, ThreadTtl } from './model.ts';
import type { StateStore, ThreadFilter, ThreadRepository, ThreadSortKey } from './repositories.ts';
import { parsed, refFrom, threadFrom } from './rows.ts';
import type { ControlTables, ThreadTable } from './schema.ts';

const SORT_EXPRESSIONS: Record<ThreadSortKey, string> = {
  threadId: 'thread_id',
  status: 'status',
  createdMs: 'created_ms',
  updatedMs: 'updated_ms',
  // The engines disagree on where null sorts.
  stateUpdatedMs: 'coalesce(state_updated_ms, created_ms)',
};

export function createThreadRepository(control: ControlDatabase, state: StateStore): ThreadRepository {
  const { db, engine } = control;

  const lockRow = (on: Kysely<ControlTables>, threadId: string): Promise<ThreadTable | undefined> =>
    locked(engine, on.selectFrom('deploy_thread').selectAll().where('thread_id', '=', threadId)).executeTakeFirst();

  const inFlight = (on: Kysely<ControlTables>, threadId: string) =>
    on
      .selectFrom('deploy_run')
      .select(['run_id', 'thread_id', 'owner_id', 'status'])
      .where('thread_id', '=', threadId)
      .where('status', 'in', [sql.lit('pending'), sql.lit('running')])
      .execute();

  const filtered = (filter: ThreadFilter) => {
    // The threads of stateless runs are nobody's conversation.
    let query = db.selectFrom('deploy_thread').where('temporary', '=', 0);
    if (filter.ids !== undefined) {
      query = filter.ids.length === 0 ? query.where(sql.lit(false)) : query.where('thread_id', 'in', filter.ids);
    }
    if (filter.status !== undefined) query = query.where('status', '=', filter.status);
    if (filter.metadata !== undefined) query = query.where(contains(engine, sql.ref('metadata'), filter.metadata));
    if (filter.values !== undefined) {
      query = query.where(contains(engine, sql.ref('values_json'), filter.values, 'text'));
    }
    return query;
  };

  const count = async (filter: ThreadFilter): Promise<number> => {
    const row = await filtered(filter)
      .select((builder) => builder.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    return row.count;
  };

  return {
    create: (thread) =>
      db.transaction().execute(async (on) => {
        const row: ThreadTable = {
          thread_id: thread.threadId,
          status: 'idle',
          metadata: JSON.stringify(thread.metadata),
          config: '{}',
          values_json: null,
          interrupts_json: null,
          error_json: null,
          has_next: 0,
          temporary: 0,
          created_ms: thread.nowMs,
          updated_ms: thread.nowMs,
          state_updated_ms: null,
          ...ttlColumns(thread.ttl),
        };
        const result = await on
          .insertInto('deploy_thread')
          .values(row)
          .onConflict((conflict) => conflict.column('thread_id').doNothing())
          .executeTakeFirst();
        if (result.numInsertedOrUpdatedRows !== 0n) return { kind: 'created', thread: threadFrom(row) };
        if (thread.ifExists === 'raise') return { kind: 'exists' };
        const existing = await lockRow(on, thread.threadId);
        return existing === undefined ? { kind: 'exists' } : { kind: 'existing', thread: threadFrom(existing) };
      }),

    get: async (threadId) => {
      const row = await db.selectFrom('deploy_thread').selectAll().where('thread_id', '=', threadId).executeTakeFirst();
      return row === undefined ? null : threadFrom(row);
    },

    patch: (threadId, metadata, ttl, nowMs) =>
      db.transaction().execute(async (on) => {
        const row = await lockRow(on, threadId);
        if (row === undefined) return null;
        const next: ThreadTable = {
          ...row,
          metadata: merged(row.metadata, metadata),
          updated_ms: nowMs,
          ...(ttl === undefined ? {} : ttlColumns(ttl)),
        };
        const { thread_id: id, ...columns } = next;
        await on.updateTable('deploy_thread').set(columns).where('thread_id', '=', id).execute();
        return threadFrom(next);
      }),

    delete: (threadId) =>
      db.transaction().execute(async (on) => {
        const row = await lockRow(on, threadId);
        if (row === undefined) return { kind: 'missing' };
        const left = await inFlight(on, threadId);
        // First, so that a thread made anew under this id can never find an old history.
        await state.deleteThread(threadId, on);
        await on
          .deleteFrom('deploy_run_event')
          .where('run_id', 'in', on.selectFrom('deploy_run').select('run_id').where('thread_id', '=', threadId))
          .execute();
        await on.deleteFrom('deploy_thread').where('thread_id', '=', threadId).execute();
        for (const run of left) {
          await control.notify(on, { kind: 'run-cancel', runId: run.run_id, action: 'rollback' });
          await control.notify(on, { kind: 'run-ended', runId: run.run_id });
        }
        return { kind: 'deleted', inFlight: left.map(refFrom) };
      }),

    copy: (threadId, newThreadId, nowMs) =>
      db.transaction().execute(async (on) => {
        const row = await lockRow(on, threadId);
        if (row === undefined) return null;
        const copy: ThreadTable = {
          ...row,
          thread_id: newThreadId,
          status: row.has_next === 1 ? 'interrupted' : 'idle',
          error_json: null,
          temporary: 0,
          created_ms: nowMs,
          updated_ms: nowMs,
          expires_ms: row.ttl_ms === null ? null : nowMs + row.ttl_ms,
        };
        await state.copyThread(threadId, newThreadId, on);
        await on.insertInto('deploy_thread').values(copy).execute();
        return threadFrom(copy);
      }),

    search: async (filter, page, sort) => {
      const order = sql.raw(SORT_EXPRESSIONS[sort.by]);
      if (filter.metadata === undefined && filter.values === undefined) {
        const rows = await filtered(filter)
          .selectAll()
          .orderBy(order, sort.order)
          .orderBy('thread_id', sort.order)
          .limit(page.limit)
          .offset(page.offset)
          .execute();
        return { rows: rows.map(threadFrom), totalCount: await count(filter) };
      }
      // Looks into every document once, for the page and for the count.
      const found = await filtered(filter)
        .select('thread_id')
        .orderBy(order, sort.order)
        .orderBy('thread_id', sort.order)
        .execute();
      const ids = found.slice(page.offset, page.offset + page.limit).map((row) => row.thread_id);
      if (ids.length === 0) return { rows: [], totalCount: found.length };
      const rows = await db.selectFrom('deploy_thread').selectAll().where('thread_id', 'in', ids).execute();
      const byId = new Map(rows.map((row) => [row.thread_id, row]));
      return {
        rows: ids.flatMap((id) => byId.get(id) ?? []).map(threadFrom),
        totalCount: found.length,
      };
    },

    count,

    setState: (threadId, snapshot, nowMs) =>
      db.transaction().execute(async (on) => {
        const row = await lockRow(on, threadId);
        if (row === undefined) return 'missing';
        if ((await inFlight(on, threadId)).length > 0) return 'busy';
        await on
          .updateTable('deploy_thread')
          .set({
            status: snapshot.hasNext ? 'interrupted' : 'idle',
            values_json: snapshot.valuesJson,
            interrupts_json: snapshot.interruptsJson,
            has_next: snapshot.hasNext ? 1 : 0,
            error_json: null,
            updated_ms: nowMs,
            state_updated_ms: nowMs,
          })
          .where('thread_id', '=', threadId)
          .execute();
        return 'set';
      }),

    isBusy: async (threadId) => (await inFlight(db, threadId)).length > 0,

    bind: (threadId, graphId, assistantId) =>
      db.transaction().execute(async (on) => {
        const row = await lockRow(on, threadId);
        if (row === undefined || parsed(row.metadata)['graph_id'] !== undefined) return;
        const metadata = merged(row.metadata, { graph_id: graphId, assistant_id: assistantId });
        await on.updateTable('deploy_thread').set({ metadata }).where('thread_id', '=', threadId).execute();
      }),

    expired: async (nowMs, limit) => {
      const rows = await db
        .selectFrom('deploy_thread')
        .select(['thread_id', 'ttl_strategy'])
        .where('expires_ms', '<=', nowMs)
        .where((where) =>
          where.not(
            where.exists(
              where
                .selectFrom('deploy_run')
                .select('run_id')
                .whereRef('deploy_run.thread_id', '=', 'deploy_thread.thread_id')
                .where('status', 'in', [sql.lit('pending'), sql.lit('running')]),
            ),
          ),
        )
        .orderBy('expires_ms')
        .limit(limit)
        .execute();
      return rows.map((row) => ({
        threadId: row.thread_id,
        strategy: (row.ttl_strategy ?? 'delete') as ThreadTtl['strategy'],
      }));
    },
  };
}

function ttlColumns(ttl: ThreadTtl | null): Pick<ThreadTable, 'ttl_strategy' | 'ttl_ms' | 'expires_ms'> {
  return { ttl_strategy: ttl?.strategy ?? null, ttl_ms: ttl?.ttlMs ?? null, expires_ms: ttl?.expiresMs ?? null };
}

function merged(text: string, patch: JsonObject): string {
  return JSON.stringify({ ...parsed(text), ...patch });
}
