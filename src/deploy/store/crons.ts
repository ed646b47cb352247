/** Crons: their rows, and the claim that turns a due one into a run. */
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import type { IdSource } from '../ids.ts';
import { newRun, runRequest } from '../request.ts';
import { nextFireMs } from '../schedule.ts';
import { contains } from './contains.ts';
import { locked } from './database.ts';
import type { ControlDatabase } from './database.ts';
import type { Cron } from './model.ts';
import type { CronFilter, CronFiring, CronRepository, CronSortKey, NewCron, NewRun } from './repositories.ts';
import { cronFrom, parsed } from './rows.ts';
import type { RunCreator } from './runcreate.ts';
import type { ControlTables, CronTable } from './schema.ts';

/** The engines disagree on where null sorts: here it comes after every time. */
const SORT_EXPRESSIONS: Record<CronSortKey, string> = {
  cronId: 'cron_id',
  assistantId: 'assistant_id',
  threadId: `coalesce(thread_id, 'z')`,
  nextRunMs: 'coalesce(next_run_ms, 9007199254740991)',
  endMs: 'coalesce(end_ms, 9007199254740991)',
  createdMs: 'created_ms',
  updatedMs: 'updated_ms',
};

export interface CronStoreSettings {
  ids: IdSource;
  /** Webhooks are switched off: fired runs carry none. */
  webhooksDisabled: boolean;
}

export function createCronRepository(
  control: ControlDatabase,
  creator: RunCreator,
  settings: CronStoreSettings,
): CronRepository {
  const { db, engine } = control;

  const filtered = (filter: CronFilter) => {
    let query = db.selectFrom('deploy_cron');
    if (filter.assistantId !== undefined) query = query.where('assistant_id', '=', filter.assistantId);
    if (filter.threadId !== undefined) query = query.where('thread_id', '=', filter.threadId);
    if (filter.enabled !== undefined) query = query.where('enabled', '=', filter.enabled ? 1 : 0);
    if (filter.metadata !== undefined) query = query.where(contains(engine, sql.ref('metadata'), filter.metadata));
    return query;
  };

  const count = async (filter: CronFilter): Promise<number> => {
    const row = await filtered(filter)
      .select((builder) => builder.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow();
    return row.count;
  };

  /** Advances one due cron and creates its run, or says that nothing is due. */
  const fireOne = (nowMs: number): Promise<CronFiring | null> =>
    db.transaction().execute(async (on) => {
      const query = on
        .selectFrom('deploy_cron')
        .selectAll()
        .where('next_run_ms', '<=', nowMs)
        .orderBy('next_run_ms')
        .limit(1);
      const row = await (engine === 'postgres' ? query.forUpdate().skipLocked() : query).executeTakeFirst();
      if (row === undefined) return null;
      const plan = planOf(row, nowMs);
      const nextRunMs = plan.kind === 'unfit' ? null : plan.nextRunMs;
      await on
        .updateTable('deploy_cron')
        .set({ next_run_ms: nextRunMs, updated_ms: nowMs })
        .where('cron_id', '=', row.cron_id)
        .execute();
      const cron = cronFrom({ ...row, next_run_ms: nextRunMs });
      if (plan.kind === 'unfit') return { cron, creation: plan };
      // Expired between the ticks.
      if (row.end_ms !== null && (row.next_run_ms ?? 0) > row.end_ms) return { cron, creation: null };
      return { cron, creation: await creator.create(on, plan.run) };
    });

  /**
   * What was stored had been checked, but may have become unfit since: a time zone that is no longer known, a payload of another
   * version. Such a cron stops alone, instead of failing the transaction and with it all that are due after it.
   */
  const planOf = (
    row: CronTable,
    nowMs: number,
  ): { kind: 'fit'; nextRunMs: number | null; run: NewRun } | { kind: 'unfit'; reason: string } => {
    try {
      // Past now, not past the missed tick: however long nothing ran, there is one catch-up.
      const nextRunMs = dueTime({ ...row, enabled: row.enabled === 1 }, nowMs);
      return { kind: 'fit', nextRunMs, run: runOf(cronFrom(row), nowMs) };
    } catch (error) {
      return { kind: 'unfit', reason: error instanceof Error ? error.message : String(error) };
    }
  };

  const runOf = (cron: Cron, nowMs: number) => {
    const request = runRequest.parse({
      ...cron.payload,
      assistant_id: cron.assistantId,
      metadata: { ...cron.metadata, ...parsedObject(cron.payload['metadata']), cron_id: cron.cronId },
      on_completion: cron.onRunCompleted,
      if_not_exists: 'reject',
    });
    return newRun(request, {
      runId: settings.ids.next(),
      newThreadId: settings.ids.next(),
      threadId: cron.threadId,
      webhook: settings.webhooksDisabled ? null : (request.webhook ?? null),
      claim: null,
      nowMs,
    });
  };

  return {
    create: (cron) =>
      db.transaction().execute(async (on) => {
        const missing = await missingParent(on, cron);
        if (missing !== null) return { kind: missing };
        const row: CronTable = {
          cron_id: cron.cronId,
          assistant_id: cron.assistantId,
          thread_id: cron.threadId,
          schedule: cron.schedule,
          timezone: cron.timezone,
          enabled: cron.enabled ? 1 : 0,
          on_run_completed: cron.onRunCompleted,
          end_ms: cron.endMs,
          next_run_ms: dueTime({ ...cron, end_ms: cron.endMs }, cron.nowMs),
          metadata: JSON.stringify(cron.metadata),
          payload: JSON.stringify(cron.payload),
          created_ms: cron.nowMs,
          updated_ms: cron.nowMs,
        };
        await on.insertInto('deploy_cron').values(row).execute();
        return { kind: 'created', cron: cronFrom(row) };
      }),

    get: async (cronId) => {
      const row = await db.selectFrom('deploy_cron').selectAll().where('cron_id', '=', cronId).executeTakeFirst();
      return row === undefined ? null : cronFrom(row);
    },

    patch: (cronId, patch, nowMs) =>
      db.transaction().execute(async (on) => {
        const row = await locked(
          engine,
          on.selectFrom('deploy_cron').selectAll().where('cron_id', '=', cronId),
        ).executeTakeFirst();
        if (row === undefined) return null;
        const next: CronTable = {
          ...row,
          schedule: patch.schedule ?? row.schedule,
          timezone: patch.timezone === undefined ? row.timezone : patch.timezone,
          enabled: patch.enabled === undefined ? row.enabled : patch.enabled ? 1 : 0,
          on_run_completed: patch.onRunCompleted ?? row.on_run_completed,
          end_ms: patch.endMs === undefined ? row.end_ms : patch.endMs,
          metadata: JSON.stringify({ ...parsed(row.metadata), ...patch.metadata }),
          payload: JSON.stringify({ ...parsed(row.payload), ...patch.payload }),
          updated_ms: nowMs,
        };
        next.next_run_ms = dueTime({ ...next, enabled: next.enabled === 1 }, nowMs);
        const { cron_id: id, ...columns } = next;
        await on.updateTable('deploy_cron').set(columns).where('cron_id', '=', id).execute();
        return cronFrom(next);
      }),

    delete: async (cronId) => {
      const result = await db.deleteFrom('deploy_cron').where('cron_id', '=', cronId).executeTakeFirst();
      return result.numDeletedRows > 0n;
    },

    search: async (filter, page, sort) => {
      const rows = await filtered(filter)
        .selectAll()
        .orderBy(sql.raw(SORT_EXPRESSIONS[sort.by]), sort.order)
        .orderBy('cron_id', sort.order)
        .limit(page.limit)
        .offset(page.offset)
        .execute();
      return { rows: rows.map(cronFrom), totalCount: await count(filter) };
    },

    count,

    fireDue: async (nowMs, limit) => {
      const fired: CronFiring[] = [];
      while (fired.length < limit) {
        const firing = await fireOne(nowMs);
        if (firing === null) break;
        fired.push(firing);
      }
      const next = await db
        .selectFrom('deploy_cron')
        .select((builder) => builder.fn.min('next_run_ms').as('due'))
        .where('next_run_ms', 'is not', null)
        .executeTakeFirst();
      return { fired, nextDueMs: next?.due ?? null };
    },
  };
}

async function missingParent(
  on: Kysely<ControlTables>,
  cron: NewCron,
): Promise<'assistant-missing' | 'thread-missing' | null> {
  const assistant = await on
    .selectFrom('deploy_assistant')
    .select('assistant_id')
    .where('assistant_id', '=', cron.assistantId)
    .executeTakeFirst();
  if (assistant === undefined) return 'assistant-missing';
  if (cron.threadId === null) return null;
  const thread = await on
    .selectFrom('deploy_thread')
    .select('thread_id')
    .where('thread_id', '=', cron.threadId)
    .executeTakeFirst();
  return thread === undefined ? 'thread-missing' : null;
}

function dueTime(
  cron: { schedule: string; timezone: string | null; enabled: boolean; end_ms: number | null },
  afterMs: number,
): number | null {
  return cron.enabled ? nextFireMs(cron, afterMs, cron.end_ms) : null;
}

function parsedObject(value: unknown): object {
  return typeof value === 'object' && value !== null ? value : {};
}
