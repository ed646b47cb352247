/**
 * Events of resumable runs, so that a stream can be replayed after the process that made it is gone; and the results of runs that leave
 * nothing else.
 */
import type { ControlDatabase } from './database.ts';
import type { JsonText } from './model.ts';
import type { RunEventRepository } from './repositories.ts';

/** Where the result of a run stands: before its events, where nobody who reads these looks. */
export const RESULT_SEQ = -1;

export function createRunEventRepository(control: ControlDatabase): RunEventRepository {
  const { db } = control;
  return {
    append: async (runId, events, expiresMs) => {
      if (events.length === 0) return;
      const rows = events.map((event) => ({
        run_id: runId,
        seq: event.seq,
        event_id: event.eventId,
        event: event.event,
        data: event.dataJson,
        expires_ms: expiresMs,
      }));
      await db
        .insertInto('deploy_run_event')
        .values(rows)
        .onConflict((conflict) => conflict.columns(['run_id', 'seq']).doNothing())
        .execute();
      await control.notify(db, { kind: 'run-events', runId });
    },

    after: async (runId, afterSeq, limit) => {
      const rows = await db
        .selectFrom('deploy_run_event')
        .selectAll()
        .where('run_id', '=', runId)
        .where('seq', '>', afterSeq)
        .orderBy('seq')
        .limit(limit)
        .execute();
      return rows.map((row) => ({
        seq: row.seq,
        eventId: row.event_id,
        event: row.event,
        dataJson: row.data as JsonText,
      }));
    },

    lastSeq: async (runId) => {
      const row = await db
        .selectFrom('deploy_run_event')
        .select((builder) => builder.fn.max('seq').as('seq'))
        .where('run_id', '=', runId)
        .executeTakeFirst();
      // The aggregate of no rows is null, whatever its type says.
      return (row?.seq as number | null | undefined) ?? -1;
    },

    result: async (runId) => {
      const row = await db
        .selectFrom('deploy_run_event')
        .select('data')
        .where('run_id', '=', runId)
        .where('seq', '=', RESULT_SEQ)
        .executeTakeFirst();
      return row === undefined ? null : (row.data as JsonText);
    },

    expireAt: async (runId, expiresMs) => {
      await db.updateTable('deploy_run_event').set({ expires_ms: expiresMs }).where('run_id', '=', runId).execute();
    },

    deleteExpired: async (nowMs) => {
      const result = await db.deleteFrom('deploy_run_event').where('expires_ms', '<=', nowMs).executeTakeFirst();
      return Number(result.numDeletedRows);
    },
  };
}
