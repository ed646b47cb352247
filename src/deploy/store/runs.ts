/** Runs in the control tables: created, claimed, renewed, ended, cancelled, recovered. */
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import { locked } from './database.ts';
import type { ControlDatabase } from './database.ts';
import type { CancelAction, JsonText, Run, RunRef } from './model.ts';
import { prepare } from './prepared.ts';
import type {
  CancelSelector,
  RunCancellation,
  RunClaim,
  RunCreation,
  RunEnding,
  RunOutcome,
  RunRepository,
  StateStore,
} from './repositories.ts';
import { refFrom, runFrom } from './rows.ts';
import type { RunCreator } from './runcreate.ts';
import type { RunEnder, Verdict } from './runend.ts';
import type { ControlTables, RunTable } from './schema.ts';

type On = Kysely<ControlTables>;
/** Thrown inside a transaction to undo it; never leaves this file. */
class Refusal extends Error {
  readonly index: number;
  readonly creation: RunCreation;
  constructor(index: number, creation: RunCreation) {
    super('refused');
    this.index = index;
    this.creation = creation;
  }
}

/** Rows handled in one transaction where a client can name or select any number. */
const CANCEL_COUNT = 1000;
const UNIQUE_VIOLATION = '23505';

export function createRunRepository(
  control: ControlDatabase,
  creator: RunCreator,
  ender: RunEnder,
  state: StateStore,
): RunRepository {
  const { db, engine } = control;
  const transact = <T>(work: (on: On) => Promise<T>): Promise<T> => db.transaction().execute(work);

  const runById = prepare<{ id: string }, RunTable>((slot) =>
    db.selectFrom('deploy_run').selectAll().where('run_id', '=', slot('id')),
  );
  const claimableRunById = prepare<{ id: string }, RunTable>((slot) =>
    locked(engine, db.selectFrom('deploy_run').selectAll().where('run_id', '=', slot('id'))),
  );
  const threadExists = prepare<{ id: string }, { thread_id: string }>((slot) =>
    db.selectFrom('deploy_thread').select('thread_id').where('thread_id', '=', slot('id')),
  );
  const claimNext = prepare<RunClaim & { nowMs: number }, RunTable>((slot) =>
    db
      .updateTable('deploy_run')
      .set({
        status: 'running',
        owner_id: slot('ownerId'),
        lease_until_ms: slot('leaseUntilMs'),
        attempt: sql`attempt + 1`,
        started_ms: sql`coalesce(started_ms, ${slot('nowMs')})`,
        updated_ms: slot('nowMs'),
      })
      .where('run_id', '=', (builder) => {
        const oldest = builder
          .selectFrom('deploy_run as candidate')
          .select('candidate.run_id')
          .where('candidate.status', '=', sql.lit('pending'))
          .where('candidate.not_before_ms', '<=', slot('nowMs'))
          .where((where) =>
            where.not(
              where.exists(
                where
                  .selectFrom('deploy_run as other')
                  .select('other.run_id')
                  .whereRef('other.thread_id', '=', 'candidate.thread_id')
                  .where('other.status', '=', sql.lit('running')),
              ),
            ),
          )
          .orderBy('candidate.run_id')
          .limit(sql.lit(1));
        return engine === 'postgres' ? oldest.forUpdate().skipLocked() : oldest;
      })
      .returningAll(),
  );
  const nextDue = prepare<{ nowMs: number }, { due: number | null }>((slot) =>
    db
      .selectFrom('deploy_run')
      .select((builder) => builder.fn.min('not_before_ms').as('due'))
      .where('status', '=', sql.lit('pending'))
      .where('not_before_ms', '>', slot('nowMs')),
  );
  const requeue = prepare<{ id: string; attempt: number; nowMs: number }, never>((slot) =>
    db
      .updateTable('deploy_run')
      .set({
        status: 'pending',
        owner_id: null,
        lease_until_ms: null,
        attempt: slot('attempt'),
        updated_ms: slot('nowMs'),
      })
      .where('run_id', '=', slot('id')),
  );

  /** Reads a run with its thread locked, so that what is decided from the row still holds when it is written. */
  const lockedRun = async (on: On, runId: string): Promise<RunTable | null> => {
    const [first] = (await runById(on, { id: runId })).rows;
    if (first === undefined || engine === 'sqlite') return first ?? null;
    await ender.lockThread(on, first.thread_id);
    // Claims lock the run alone: one that is under way is waited for, so that a run is not taken for a pending one any more.
    return (await claimableRunById(on, { id: runId })).rows[0] ?? null;
  };

  const claimOne = async (claim: RunClaim, nowMs: number): Promise<RunTable | null> => {
    for (;;) {
      try {
        return (await claimNext(db, { ...claim, nowMs })).rows[0] ?? null;
      } catch (error) {
        // Another process claimed an older run of this thread in the same instant: look again.
        if ((error as { code?: unknown }).code !== UNIQUE_VIOLATION) throw error;
      }
    }
  };

  const release = async (
    on: On,
    row: RunTable,
    s: { maxAttempts: number; countAttempt: boolean; errorJson: JsonText; nowMs: number },
  ): Promise<{ kind: 'requeued' } | Extract<RunEnding, { kind: 'ended' }>> => {
    const common = { state: null, stateCleared: false, nowMs: s.nowMs };
    if (row.cancel_action !== null) {
      const rolledBack = row.cancel_action === 'rollback';
      return ender.end(on, row, { status: 'interrupted', rolledBack, errorJson: null, ...common });
    }
    if (s.countAttempt && row.attempt >= s.maxAttempts) {
      return ender.end(on, row, { status: 'error', rolledBack: false, errorJson: s.errorJson, ...common });
    }
    await requeue(on, { id: row.run_id, attempt: s.countAttempt ? row.attempt : row.attempt - 1, nowMs: s.nowMs });
    await control.notify(on, { kind: 'run-pending' });
    return { kind: 'requeued' };
  };

  /** The next runs behind `after` that are meant; their ids. */
  const cancelSome = async (
    on: On,
    s: { selector: CancelSelector; after: string | null; action: CancelAction; nowMs: number; result: RunCancellation },
  ): Promise<string[]> => {
    const { action, nowMs, result } = s;
    const found = await selectForCancel(on, s.selector, s.after);
    for (const { run_id: runId } of found) {
      const row = await lockedRun(on, runId);
      if (row === null) continue;
      if (row.status === 'pending') {
        const ending = await ender.endPending(on, row, action, nowMs);
        result.displaced.push(refFrom(row));
        result.deliveriesQueued ||= ending.deliveryQueued;
      } else if (row.status === 'running') {
        const effective = row.cancel_action === 'rollback' ? 'rollback' : action;
        await on
          .updateTable('deploy_run')
          .set({ cancel_action: effective, updated_ms: nowMs })
          .where('run_id', '=', runId)
          .execute();
        await control.notify(on, { kind: 'run-cancel', runId, action: effective });
        result.stopping.push({ ref: refFrom(row), action: effective });
      } else result.ended.push(refFrom(row));
    }
    return found.map((row) => row.run_id);
  };

  return {
    create: (run) => transact((on) => creator.create(on, run)),

    createBatch: async (runs) => {
      try {
        const creations = await transact(async (on) => {
          const made: RunCreation[] = [];
          for (const [index, run] of runs.entries()) {
            const creation = await creator.create(on, run);
            if (creation.kind !== 'created') throw new Refusal(index, creation);
            made.push(creation);
          }
          return made;
        });
        return { kind: 'created', creations };
      } catch (error) {
        if (error instanceof Refusal) return { kind: 'refused', index: error.index, creation: error.creation };
        throw error;
      }
    },

    claimOldest: async (claim, count, nowMs) => {
      const runs: Run[] = [];
      while (runs.length < count) {
        const row = await claimOne(claim, nowMs);
        if (row === null) return { runs, nextDueMs: (await nextDue(db, { nowMs })).rows[0]?.due ?? null };
        runs.push(runFrom(row));
      }
      return { runs, nextDueMs: null };
    },

    renew: async (ownerId, runIds, leaseUntilMs) => {
      if (runIds.length === 0) return { lost: [], cancelled: [] };
      const rows = await db
        .updateTable('deploy_run')
        .set({ lease_until_ms: leaseUntilMs })
        .where('owner_id', '=', ownerId)
        .where('status', '=', 'running')
        .where('run_id', 'in', runIds)
        .returning(['run_id', 'cancel_action'])
        .execute();
      const held = new Set(rows.map((row) => row.run_id));
      return {
        lost: runIds.filter((runId) => !held.has(runId)),
        cancelled: rows.flatMap((row) =>
          row.cancel_action === null ? [] : [{ runId: row.run_id, action: row.cancel_action as CancelAction }],
        ),
      };
    },

    finish: (end) =>
      transact(async (on): Promise<RunEnding> => {
        const row = await lockedRun(on, end.runId);
        if (row === null || row.status !== 'running' || row.owner_id !== end.ownerId) {
          // Removed under the run: what its worker has written since must not outlive the run, or its thread.
          if (row === null && !end.stateCleared) {
            const isThreadLeft = (await threadExists(on, { id: end.threadId })).rows.length > 0;
            if (isThreadLeft) await state.deleteRun(end.threadId, end.runId, on);
            else await state.deleteThread(end.threadId, on);
          }
          return { kind: 'lost' };
        }
        return ender.end(on, row, {
          ...verdictOf(end.outcome, row.cancel_action === 'rollback'),
          state: end.state,
          stateCleared: end.stateCleared,
          nowMs: end.nowMs,
        });
      }),

    release: (runId, ownerId, s) =>
      transact(async (on): Promise<{ kind: 'requeued' } | RunEnding> => {
        const row = await lockedRun(on, runId);
        if (row === null || row.status !== 'running' || row.owner_id !== ownerId) return { kind: 'lost' };
        return release(on, row, s);
      }),

    recover: async (s) => {
      let query = db.selectFrom('deploy_run').select('run_id').where('status', '=', 'running');
      if (!s.all) query = query.where('lease_until_ms', '<', s.nowMs);
      const candidates = await query.orderBy('run_id').execute();
      const ended: { ref: RunRef; ending: RunEnding }[] = [];
      let requeuedCount = 0;
      for (const { run_id: runId } of candidates) {
        await transact(async (on) => {
          const row = await lockedRun(on, runId);
          const expired = row !== null && (s.all || (row.lease_until_ms ?? 0) < s.nowMs);
          if (row === null || row.status !== 'running' || !expired) return;
          const result = await release(on, row, { ...s, countAttempt: true });
          if (result.kind === 'requeued') requeuedCount += 1;
          else ended.push({ ref: refFrom(row), ending: result });
        });
      }
      return { requeuedCount, ended };
    },

    cancel: async (selector, action, nowMs) => {
      const result: RunCancellation = {
        missing: [],
        ended: [],
        displaced: [],
        stopping: [],
        deliveriesQueued: false,
      };
      const known = new Set<string>();
      for (let last: string | null = null; ;) {
        const found: string[] = await transact((on) =>
          cancelSome(on, { selector, after: last, action, nowMs, result }),
        );
        for (const runId of found) known.add(runId);
        last = found.at(-1) ?? null;
        if (found.length < CANCEL_COUNT) break;
      }
      if (selector.kind === 'ids') result.missing = selector.runIds.filter((runId) => !known.has(runId));
      return result;
    },

    get: async (runId) => {
      const [row] = (await runById(db, { id: runId })).rows;
      return row === undefined ? null : runFrom(row);
    },

    list: async (threadId, filter, page) => {
      let query = db.selectFrom('deploy_run').selectAll().where('thread_id', '=', threadId);
      if (filter.status !== undefined) query = query.where('status', '=', filter.status);
      const rows = await query.orderBy('run_id', 'desc').limit(page.limit).offset(page.offset).execute();
      return rows.map(runFrom);
    },

    delete: (threadId, runId) =>
      transact(async (on) => {
        const row = await lockedRun(on, runId);
        if (row === null || row.thread_id !== threadId) return 'missing';
        if (row.status === 'pending' || row.status === 'running') return 'active';
        await on.deleteFrom('deploy_run_event').where('run_id', '=', runId).execute();
        await on.deleteFrom('deploy_run').where('run_id', '=', runId).execute();
        return 'deleted';
      }),

    countByStatus: async () => {
      const rows = await db
        .selectFrom('deploy_run')
        .select((builder) => ['status', builder.fn.countAll<number>().as('count')])
        .where('status', 'in', ['pending', 'running'])
        .groupBy('status')
        .execute();
      const counts = { pending: 0, running: 0 };
      for (const row of rows) counts[row.status as 'pending' | 'running'] = row.count;
      return counts;
    },
  };
}

function selectForCancel(on: On, selector: CancelSelector, after: string | null): Promise<Pick<RunTable, 'run_id'>[]> {
  let query = on.selectFrom('deploy_run').select('run_id').orderBy('run_id').limit(CANCEL_COUNT);
  if (after !== null) query = query.where('run_id', '>', after);
  if (selector.threadId !== null) query = query.where('thread_id', '=', selector.threadId);
  if (selector.kind === 'status') return query.where('status', 'in', selector.statuses).execute();
  if (selector.runIds.length === 0) return Promise.resolve([]);
  return query.where('run_id', 'in', selector.runIds).execute();
}

/** A rollback asked for while the run was finishing still counts: whoever asked was told that it would vanish. */
function verdictOf(outcome: RunOutcome, rollback: boolean): Pick<Verdict, 'status' | 'rolledBack' | 'errorJson'> {
  switch (outcome.kind) {
    case 'success':
      return { status: 'success', rolledBack: rollback, errorJson: null };
    case 'cancelled':
      return { status: 'interrupted', rolledBack: rollback, errorJson: null };
    case 'error':
    case 'timeout':
      return { status: outcome.kind, rolledBack: rollback, errorJson: outcome.errorJson };
  }
}
