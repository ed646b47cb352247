/**
 * Ends a run inside a transaction: run row, thread row, webhook row. Every way in which a run can end comes through here, so that
 * status, thread and delivery never disagree. On SQLite, where they are in a file of their own, checkpoints of what vanishes are removed
 * first: a crash in between leaves a row that is ended again, never a row-less history.
 */
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import { SECOND_MS } from '../../core/units.ts';
import type { IdSource } from '../ids.ts';
import { resultJson } from '../runresult.ts';
import { webhookPayload } from '../webhooks/payload.ts';
import { locked } from './database.ts';
import type { ControlDatabase } from './database.ts';
import { RESULT_SEQ } from './events.ts';
import type { CancelAction, JsonText, RunStatus, ThreadStatus } from './model.ts';
import { prepare } from './prepared.ts';
import type { RunEnding, StateStore, ThreadStateSnapshot } from './repositories.ts';
import { runFrom } from './rows.ts';
import type { ControlTables, DeliveryTable, RunEventTable, RunTable, ThreadTable } from './schema.ts';

export type Ended = Extract<RunEnding, { kind: 'ended' }>;

export interface Verdict {
  status: Exclude<RunStatus, 'pending' | 'running'>;
  /** The run and all it wrote vanish. */
  rolledBack: boolean;
  errorJson: JsonText | null;
  state: ThreadStateSnapshot | null;
  stateCleared: boolean;
  nowMs: number;
}

export interface RunEnder {
  /** The row must be pending or running and, on PostgreSQL, the thread locked by this transaction. */
  end(on: Kysely<ControlTables>, row: RunTable, verdict: Verdict): Promise<Ended>;
  endPending(on: Kysely<ControlTables>, row: RunTable, action: CancelAction, nowMs: number): Promise<Ended>;
  lockThread(on: Kysely<ControlTables>, threadId: string): Promise<void>;
}

type ThreadFields = Pick<
  ThreadTable,
  'thread_id' | 'status' | 'values_json' | 'interrupts_json' | 'has_next' | 'error_json' | 'updated_ms'
>;

/** Whoever waits for the run hears of its end at once; after the loss of its connection for that, within a few seconds. */
const RESULT_TTL_MS = 60 * SECOND_MS;

export function createRunEnder(control: ControlDatabase, state: StateStore, ids: IdSource): RunEnder {
  const { db, engine } = control;
  const deleteRun = prepare<{ id: string }, never>((slot) =>
    db.deleteFrom('deploy_run').where('run_id', '=', slot('id')),
  );
  const deleteEvents = prepare<{ id: string }, never>((slot) =>
    db.deleteFrom('deploy_run_event').where('run_id', '=', slot('id')),
  );
  const deleteThread = prepare<{ id: string }, never>((slot) =>
    db.deleteFrom('deploy_thread').where('thread_id', '=', slot('id')),
  );
  const updateRun = prepare<{ id: string; status: string; errorJson: string | null; nowMs: number }, RunTable>((slot) =>
    db
      .updateTable('deploy_run')
      .set({
        status: slot('status'),
        error_json: slot('errorJson'),
        updated_ms: slot('nowMs'),
        ended_ms: slot('nowMs'),
        owner_id: null,
        lease_until_ms: null,
      })
      .where('run_id', '=', slot('id')),
  );
  const threadAfter = prepare<{ id: string }, { has_next: number; pending: number }>((slot) =>
    db
      .selectFrom('deploy_thread')
      .select(['has_next'])
      .select((builder) =>
        builder
          .selectFrom('deploy_run')
          .select(builder.fn.countAll<number>().as('count'))
          .where('thread_id', '=', slot('id'))
          .where('status', 'in', [sql.lit('pending'), sql.lit('running')])
          .as('pending'),
      )
      .where('thread_id', '=', slot('id')),
  );
  const updateStatus = prepare<Pick<ThreadFields, 'thread_id' | 'status' | 'error_json' | 'updated_ms'>, never>(
    (slot) =>
      db
        .updateTable('deploy_thread')
        .set({
          status: slot('status'),
          error_json: slot('error_json'),
          updated_ms: slot('updated_ms'),
          expires_ms: sql`ttl_ms + ${slot('updated_ms')}`,
        })
        .where('thread_id', '=', slot('thread_id')),
  );
  const updateState = prepare<ThreadFields, never>((slot) =>
    db
      .updateTable('deploy_thread')
      .set({
        status: slot('status'),
        values_json: slot('values_json'),
        interrupts_json: slot('interrupts_json'),
        has_next: slot('has_next'),
        error_json: slot('error_json'),
        updated_ms: slot('updated_ms'),
        state_updated_ms: slot('updated_ms'),
        expires_ms: sql`ttl_ms + ${slot('updated_ms')}`,
      })
      .where('thread_id', '=', slot('thread_id')),
  );
  const insertDelivery = prepare<DeliveryTable, never>((slot) =>
    db.insertInto('deploy_delivery').values({
      delivery_id: slot('delivery_id'),
      run_id: slot('run_id'),
      thread_id: slot('thread_id'),
      url: slot('url'),
      origin: slot('origin'),
      payload: slot('payload'),
      status: 'pending',
      attempt_count: 0,
      next_attempt_ms: slot('next_attempt_ms'),
      created_ms: slot('created_ms'),
      updated_ms: slot('updated_ms'),
    }),
  );
  const insertResult = prepare<Pick<RunEventTable, 'run_id' | 'data' | 'expires_ms'>, never>((slot) =>
    db
      .insertInto('deploy_run_event')
      .values({
        run_id: slot('run_id'),
        seq: RESULT_SEQ,
        event_id: '',
        event: '',
        data: slot('data'),
        expires_ms: slot('expires_ms'),
      })
      .onConflict((conflict) => conflict.doNothing()),
  );
  const lock = prepare<{ id: string }, { thread_id: string }>((slot) =>
    locked(engine, db.selectFrom('deploy_thread').select('thread_id').where('thread_id', '=', slot('id'))),
  );

  const queueDelivery = async (on: Kysely<ControlTables>, row: RunTable, verdict: Verdict): Promise<boolean> => {
    // A rolled-back run never happened: nobody is told.
    if (row.webhook === null || verdict.rolledBack) return false;
    const payload = webhookPayload({
      runId: row.run_id,
      threadId: row.thread_id,
      assistantId: row.assistant_id,
      status: verdict.status,
      multitask: row.multitask,
      createdMs: row.created_ms,
      startedMs: row.started_ms,
      endedMs: verdict.nowMs,
      metadataJson: row.metadata,
      kwargsJson: row.kwargs,
      valuesJson: row.temporary === 1 ? null : (verdict.state?.valuesJson ?? null),
      errorJson: verdict.errorJson,
    });
    await insertDelivery(on, {
      delivery_id: ids.next(),
      run_id: row.run_id,
      thread_id: row.thread_id,
      url: row.webhook,
      origin: URL.parse(row.webhook)?.origin ?? '',
      payload,
      status: 'pending',
      attempt_count: 0,
      next_attempt_ms: verdict.nowMs,
      created_ms: verdict.nowMs,
      updated_ms: verdict.nowMs,
    });
    return true;
  };

  /** Of a temporary run, for whoever waits for it in another process; on SQLite there is none. */
  const keepResult = async (on: Kysely<ControlTables>, row: RunTable, verdict: Verdict): Promise<void> => {
    if (engine === 'sqlite' || verdict.rolledBack) return;
    const data = resultJson(verdict.errorJson, verdict.state);
    if (data === null) return;
    await insertResult(on, { run_id: row.run_id, data, expires_ms: verdict.nowMs + RESULT_TTL_MS });
  };

  const settleThread = async (
    on: Kysely<ControlTables>,
    row: RunTable,
    verdict: Verdict,
  ): Promise<{ status: ThreadStatus; morePending: boolean } | null> => {
    const [after] = (await threadAfter(on, { id: row.thread_id })).rows;
    if (after === undefined) return null;
    const hasNext = verdict.state === null || verdict.rolledBack ? after.has_next === 1 : verdict.state.hasNext;
    const morePending = after.pending > 0;
    const status = threadStatus(verdict, hasNext, morePending);
    const common = {
      thread_id: row.thread_id,
      status,
      error_json: verdict.rolledBack ? null : verdict.errorJson,
      updated_ms: verdict.nowMs,
    };
    if (verdict.state === null || verdict.rolledBack) await updateStatus(on, common);
    else {
      await updateState(on, {
        ...common,
        values_json: verdict.state.valuesJson,
        interrupts_json: verdict.state.interruptsJson,
        has_next: verdict.state.hasNext ? 1 : 0,
      });
    }
    return { status, morePending };
  };

  const end = async (on: Kysely<ControlTables>, row: RunTable, verdict: Verdict): Promise<Ended> => {
    const { status, rolledBack, nowMs } = verdict;
    // A run that was never claimed has written nothing.
    if (!verdict.stateCleared && row.attempt > 0) {
      if (row.temporary === 1) await state.deleteThread(row.thread_id, on);
      else if (rolledBack) await state.deleteRun(row.thread_id, row.run_id, on);
    }
    const deliveryQueued = await queueDelivery(on, row, verdict);
    await control.notify(on, { kind: 'run-ended', runId: row.run_id });
    const ended = { kind: 'ended', status, rolledBack, deliveryQueued } as const;
    if (row.temporary === 1) {
      await keepResult(on, row, verdict);
      await deleteThread(on, { id: row.thread_id });
      return { ...ended, run: null, threadStatus: null, morePending: false };
    }
    if (rolledBack) {
      await deleteEvents(on, { id: row.run_id });
      await deleteRun(on, { id: row.run_id });
    } else await updateRun(on, { id: row.run_id, status, errorJson: verdict.errorJson, nowMs });
    const thread = await settleThread(on, row, verdict);
    const run = rolledBack
      ? null
      : runFrom({
          ...row,
          status,
          error_json: verdict.errorJson,
          updated_ms: nowMs,
          ended_ms: nowMs,
          owner_id: null,
          lease_until_ms: null,
        });
    return { ...ended, run, threadStatus: thread?.status ?? null, morePending: thread?.morePending ?? false };
  };

  return {
    end,
    endPending: (on, row, action, nowMs) =>
      end(on, row, {
        status: 'interrupted',
        rolledBack: action === 'rollback',
        errorJson: null,
        state: null,
        stateCleared: false,
        nowMs,
      }),
    lockThread: async (on, threadId) => {
      // On SQLite the transaction itself is the lock.
      if (engine === 'postgres') await lock(on, { id: threadId });
    },
  };
}

function threadStatus(verdict: Verdict, hasNext: boolean, morePending: boolean): ThreadStatus {
  if (morePending) return 'busy';
  if (verdict.rolledBack) return hasNext ? 'interrupted' : 'idle';
  switch (verdict.status) {
    case 'error':
    case 'timeout':
      return 'error';
    // Stopped on request: free for the next run, whatever was left to do.
    case 'interrupted':
      return 'idle';
    case 'success':
      return hasNext ? 'interrupted' : 'idle';
  }
}
