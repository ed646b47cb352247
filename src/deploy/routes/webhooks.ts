/** What became of a run's webhook. Stays answerable after the run itself is gone. */
import { textAnswer } from '../answer.ts';
import { arrayJson, field, objectJson } from '../fields.ts';
import { problem } from '../problem.ts';
import type { Route } from '../router.ts';
import type { WebhookAttempt, WebhookDelivery } from '../store/model.ts';
import type { DeploymentStore } from '../store/repositories.ts';
import { isoTime } from '../times.ts';

export function webhookRoutes(store: Pick<DeploymentStore, 'webhooks' | 'runs'>): Route[] {
  return [
    {
      method: 'GET',
      pattern: '/runs/:run_id/webhooks',
      handler: async ({ params }) => {
        const runId = params['run_id'] ?? '';
        const deliveries = await store.webhooks.forRun(runId);
        if (deliveries.length === 0 && (await store.runs.get(runId)) === null) {
          return problem('not-found', `Run ${runId} not found`);
        }
        return textAnswer(arrayJson(deliveries.map(({ delivery, attempts }) => deliveryJson(delivery, attempts))));
      },
    },
  ];
}

function deliveryJson(delivery: WebhookDelivery, attempts: readonly WebhookAttempt[]): string {
  return objectJson([
    field('webhook_id', delivery.deliveryId),
    field('run_id', delivery.runId),
    field('thread_id', delivery.threadId),
    field('url', delivery.url),
    field('status', delivery.status),
    field('attempt_count', delivery.attemptCount),
    field('next_attempt_at', delivery.status === 'pending' ? isoTime(delivery.nextAttemptMs) : null),
    field('created_at', isoTime(delivery.createdMs)),
    field('updated_at', isoTime(delivery.updatedMs)),
    field(
      'attempts',
      attempts.map((attempt) => ({
        number: attempt.number,
        started_at: isoTime(attempt.startedMs),
        duration_ms: attempt.durationMs,
        status_code: attempt.statusCode,
        error: attempt.error,
      })),
    ),
  ]);
}
