/**
 * Creates a run inside a transaction: resolves assistant and thread, applies the multitask strategy to what is in flight, inserts.
 * The route of a request and the firing of a cron both end here. The thread's row is the lock: on PostgreSQL it is taken first.
 */
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import { composeRun } from '../compose.ts';
import { assistantIdOf } from '../ids.ts';
import { locked } from './database.ts';
import type { ControlDatabase } from './database.ts';
import type { CancelAction, RunRef } from './model.ts';
import { prepare } from './prepared.ts';
import type { NewRun, RunCreation } from './repositories.ts';
import { assistantFrom, parsed, refFrom, runFrom } from './rows.ts';
import type { RunEnder } from './runend.ts';
import type { AssistantTable, ControlTables, RunTable, ThreadTable } from './schema.ts';

export interface RunCreator {
  create(on: Kysely<ControlTables>, run: NewRun): Promise<RunCreation>;
}

export function createRunCreator(control: ControlDatabase, ender: RunEnder): RunCreator {
  const { db, engine } = control;
  const assistantById = prepare<{ id: string }, AssistantTable>((slot) =>
    db.selectFrom('deploy_assistant').selectAll().where('assistant_id', '=', slot('id')),
  );
  const threadById = prepare<{ id: string }, ThreadTable>((slot) =>
    locked(engine, db.selectFrom('deploy_thread').selectAll().where('thread_id', '=', slot('id'))),
  );
  /** Locked, as a claim locks no thread: what is pending here is not being claimed. */
  const inFlightOf = prepare<{ id: string }, RunTable>((slot) =>
    locked(
      engine,
      db
        .selectFrom('deploy_run')
        .selectAll()
        .where('thread_id', '=', slot('id'))
        // Literals, so that the partial index is recognised.
        .where('status', 'in', [sql.lit('pending'), sql.lit('running')])
        .orderBy('run_id'),
    ),
  );
  const insertThread = prepare<ThreadTable, never>((slot) =>
    db
      .insertInto('deploy_thread')
      .onConflict((conflict) => conflict.column('thread_id').doNothing())
      .values({
        thread_id: slot('thread_id'),
        status: slot('status'),
        metadata: slot('metadata'),
        config: slot('config'),
        values_json: null,
        interrupts_json: null,
        error_json: null,
        has_next: 0,
        temporary: slot('temporary'),
        created_ms: slot('created_ms'),
        updated_ms: slot('updated_ms'),
        state_updated_ms: null,
        ttl_strategy: null,
        ttl_ms: null,
        expires_ms: null,
      }),
  );
  const occupyThread = prepare<{ id: string; metadata: string; nowMs: number }, never>((slot) =>
    db
      .updateTable('deploy_thread')
      .set({ status: 'busy', metadata: slot('metadata'), updated_ms: slot('nowMs') })
      .where('thread_id', '=', slot('id')),
  );
  const insertRun = prepare<RunTable, never>((slot) => {
    const columns = Object.keys(RUN_COLUMNS) as (keyof RunTable)[];
    return db
      .insertInto('deploy_run')
      .values(Object.fromEntries(columns.map((column) => [column, slot(column)])) as unknown as RunTable);
  });
  const markCancelled = prepare<{ id: string; action: CancelAction; nowMs: number }, never>((slot) =>
    db
      .updateTable('deploy_run')
      .set({ cancel_action: slot('action'), updated_ms: slot('nowMs') })
      .where('run_id', '=', slot('id')),
  );

  /** The thread to run on, made where that is asked for; null when it is missing. */
  const resolveThread = async (
    on: Kysely<ControlTables>,
    run: NewRun,
    assistant: AssistantTable,
  ): Promise<{ row: ThreadTable; fresh: boolean } | null> => {
    if (run.threadId !== null) {
      const [row] = (await threadById(on, { id: run.threadId })).rows;
      if (row !== undefined) return { row, fresh: false };
      if (run.ifThreadMissing === 'reject') return null;
    }
    const origin = { graph_id: assistant.graph_id, assistant_id: assistant.assistant_id };
    const row: ThreadTable = {
      thread_id: run.threadId ?? run.newThreadId,
      status: 'busy',
      metadata: JSON.stringify(run.threadId === null ? origin : { ...run.metadata, ...origin }),
      config: '{}',
      values_json: null,
      interrupts_json: null,
      error_json: null,
      has_next: 0,
      temporary: run.temporary ? 1 : 0,
      created_ms: run.nowMs,
      updated_ms: run.nowMs,
      state_updated_ms: null,
      ttl_strategy: null,
      ttl_ms: null,
      expires_ms: null,
    };
    const inserted = await insertThread(on, row);
    if ((inserted.numAffectedRows ?? 1n) > 0n) return { row, fresh: true };
    // Made by somebody else since it was looked for: the one that is there counts.
    const [existing] = (await threadById(on, { id: row.thread_id })).rows;
    return existing === undefined ? null : { row: existing, fresh: false };
  };

  return {
    create: async (on, run) => {
      const [assistant] = (await assistantById(on, { id: assistantIdOf(run.assistantId) })).rows;
      if (assistant === undefined) return { kind: 'assistant-missing' };
      const thread = await resolveThread(on, run, assistant);
      if (thread === null) return { kind: 'thread-missing' };

      const inFlight = thread.fresh ? [] : (await inFlightOf(on, { id: thread.row.thread_id })).rows;
      if (run.multitask === 'reject' && inFlight.length > 0) return { kind: 'conflict' };
      const displaced: RunRef[] = [];
      const stopping: { ref: RunRef; action: CancelAction }[] = [];
      let deliveriesQueued = false;
      if (run.multitask === 'interrupt' || run.multitask === 'rollback') {
        for (const row of inFlight) {
          if (row.status === 'pending') {
            const ending = await ender.endPending(on, row, run.multitask, run.nowMs);
            displaced.push(refFrom(row));
            deliveriesQueued ||= ending.deliveryQueued;
            continue;
          }
          // A rollback that was asked for stays one.
          const action = row.cancel_action === 'rollback' ? 'rollback' : run.multitask;
          if (row.cancel_action !== action) await markCancelled(on, { id: row.run_id, action, nowMs: run.nowMs });
          await control.notify(on, { kind: 'run-cancel', runId: row.run_id, action });
          stopping.push({ ref: refFrom(row), action });
        }
      }

      const waitsFor = inFlight.length - displaced.length;
      const claim = waitsFor === 0 && run.notBeforeMs <= run.nowMs ? run.claim : null;
      const threadMetadata = parsed(thread.row.metadata);
      const composed = composeRun(run, assistantFrom(assistant), {
        threadId: thread.row.thread_id,
        config: parsed(thread.row.config),
        metadata: threadMetadata,
      });
      const row: RunTable = {
        run_id: run.runId,
        thread_id: thread.row.thread_id,
        assistant_id: assistant.assistant_id,
        graph_id: assistant.graph_id,
        status: claim === null ? 'pending' : 'running',
        multitask: run.multitask,
        metadata: JSON.stringify(composed.metadata),
        kwargs: composed.kwargsJson,
        webhook: run.webhook,
        temporary: run.temporary ? 1 : 0,
        resumable: run.resumable ? 1 : 0,
        reader_id: run.readerId ?? null,
        attempt: claim === null ? 0 : 1,
        not_before_ms: run.notBeforeMs,
        cancel_action: null,
        owner_id: claim?.ownerId ?? null,
        lease_until_ms: claim?.leaseUntilMs ?? null,
        created_ms: run.nowMs,
        updated_ms: run.nowMs,
        started_ms: claim === null ? null : run.nowMs,
        ended_ms: null,
        error_json: null,
      };
      await insertRun(on, row);
      if (!thread.fresh) {
        // A client that made the thread for a graph has named the graph alone.
        const bound = threadMetadata['graph_id'] !== undefined && threadMetadata['assistant_id'] !== undefined;
        const origin = { graph_id: assistant.graph_id, assistant_id: assistant.assistant_id };
        const metadata = bound ? thread.row.metadata : JSON.stringify({ ...threadMetadata, ...origin });
        await occupyThread(on, { id: thread.row.thread_id, metadata, nowMs: run.nowMs });
      }
      if (claim === null) await control.notify(on, { kind: 'run-pending' });
      return { kind: 'created', run: runFrom(row), claimed: claim !== null, displaced, stopping, deliveriesQueued };
    },
  };
}

/** Every column, so that forgetting one is a type error. */
const RUN_COLUMNS: Record<keyof RunTable, true> = {
  run_id: true,
  thread_id: true,
  assistant_id: true,
  graph_id: true,
  status: true,
  multitask: true,
  metadata: true,
  kwargs: true,
  webhook: true,
  temporary: true,
  resumable: true,
  reader_id: true,
  attempt: true,
  not_before_ms: true,
  cancel_action: true,
  owner_id: true,
  lease_until_ms: true,
  created_ms: true,
  updated_ms: true,
  started_ms: true,
  ended_ms: true,
  error_json: true,
};
