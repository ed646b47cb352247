/** Crons in the wire's spelling. */
import { field, objectJson } from './fields.ts';
import type { Cron } from './store/model.ts';
import { isoTime, isoTimeOrNull } from './times.ts';

export function cronJson(cron: Cron, select: readonly string[] | null = null): string {
  return objectJson(
    [
      field('cron_id', cron.cronId),
      field('assistant_id', cron.assistantId),
      field('thread_id', cron.threadId),
      field('on_run_completed', cron.threadId === null ? cron.onRunCompleted : null),
      field('schedule', cron.schedule),
      field('timezone', cron.timezone),
      field('enabled', cron.enabled),
      field('end_time', isoTimeOrNull(cron.endMs)),
      field('next_run_date', isoTimeOrNull(cron.nextRunMs)),
      field('user_id', null),
      field('metadata', cron.metadata),
      field('payload', cron.payload),
      field('created_at', isoTime(cron.createdMs)),
      field('updated_at', isoTime(cron.updatedMs)),
    ],
    select,
  );
}
