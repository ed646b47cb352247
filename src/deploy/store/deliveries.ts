/** Webhook deliveries and their attempts. They outlive the runs they tell of. */
import { sql } from 'kysely';
import type { ControlDatabase } from './database.ts';
import type { WebhookAttempt, WebhookDelivery } from './model.ts';
import type { WebhookRepository } from './repositories.ts';
import { deliveryFrom } from './rows.ts';

export function createWebhookRepository(control: ControlDatabase): WebhookRepository {
  const { db, engine } = control;
  return {
    claimDue: async (nowMs, leaseUntilMs, limit, exceptOrigins) => {
      const others = exceptOrigins.length === 0 ? [''] : exceptOrigins;
      // The claim is the next attempt pushed out: if the claimer dies, the delivery is simply due again.
      const rows = await db
        .updateTable('deploy_delivery')
        .set({ next_attempt_ms: leaseUntilMs, updated_ms: nowMs })
        .where('delivery_id', 'in', (builder) => {
          const due = builder
            .selectFrom('deploy_delivery')
            .select('delivery_id')
            .where('status', '=', sql.lit('pending'))
            .where('next_attempt_ms', '<=', nowMs)
            .where('origin', 'not in', others)
            .orderBy('next_attempt_ms')
            .limit(limit);
          return engine === 'postgres' ? due.forUpdate().skipLocked() : due;
        })
        .returningAll()
        .execute();
      const next = await db
        .selectFrom('deploy_delivery')
        .select((builder) => builder.fn.min('next_attempt_ms').as('due'))
        .where('status', '=', sql.lit('pending'))
        .where('origin', 'not in', others)
        .executeTakeFirst();
      return { due: rows.map(deliveryFrom), nextDueMs: (next?.due as number | null | undefined) ?? null };
    },

    defer: async (deliveryIds, untilMs) => {
      if (deliveryIds.length === 0) return;
      await db
        .updateTable('deploy_delivery')
        .set({ next_attempt_ms: untilMs })
        .where('delivery_id', 'in', deliveryIds)
        .where('status', '=', 'pending')
        .execute();
    },

    recordAttempt: (deliveryId, attempt, next) =>
      db.transaction().execute(async (on) => {
        const endedMs = attempt.startedMs + attempt.durationMs;
        await on
          .updateTable('deploy_delivery')
          .set({
            status: next.status,
            attempt_count: attempt.number,
            next_attempt_ms: next.nextAttemptMs,
            updated_ms: endedMs,
          })
          .where('delivery_id', '=', deliveryId)
          .execute();
        // A lost lease may have had the same number recorded by someone else: the first account stands.
        await on
          .insertInto('deploy_attempt')
          .values({
            delivery_id: deliveryId,
            number: attempt.number,
            started_ms: attempt.startedMs,
            duration_ms: attempt.durationMs,
            status_code: attempt.statusCode,
            error: attempt.error,
          })
          .onConflict((conflict) => conflict.columns(['delivery_id', 'number']).doNothing())
          .execute();
      }),

    forRun: async (runId) => {
      // One statement, so that a delivery and its attempts are of one moment.
      const rows = await db
        .selectFrom('deploy_delivery')
        .leftJoin('deploy_attempt', 'deploy_attempt.delivery_id', 'deploy_delivery.delivery_id')
        .selectAll('deploy_delivery')
        .select(['number', 'started_ms', 'duration_ms', 'status_code', 'error'])
        .where('run_id', '=', runId)
        .orderBy('deploy_delivery.delivery_id')
        .orderBy('number')
        .execute();
      const found = new Map<string, { delivery: WebhookDelivery; attempts: WebhookAttempt[] }>();
      for (const row of rows) {
        const entry = found.get(row.delivery_id) ?? { delivery: deliveryFrom(row), attempts: [] };
        found.set(row.delivery_id, entry);
        if (row.number === null) continue;
        entry.attempts.push({
          number: row.number,
          startedMs: row.started_ms ?? 0,
          durationMs: row.duration_ms ?? 0,
          statusCode: row.status_code,
          error: row.error,
        });
      }
      return [...found.values()];
    },

    deleteEndedBefore: async (ms) => {
      const result = await db
        .deleteFrom('deploy_delivery')
        .where('status', '!=', 'pending')
        .where('updated_ms', '<', ms)
        .executeTakeFirst();
      return Number(result.numDeletedRows);
    },
  };
}
