/** Threads in the wire's spelling. Values are spliced in as the text that they are. */
import { extractPaths } from './extract.ts';
import type { ExtractPaths } from './extract.ts';
import { field, objectJson } from './fields.ts';
import type { Field } from './fields.ts';
import { MINUTE_MS } from '../core/units.ts';
import type { Thread } from './store/model.ts';
import { isoTime, isoTimeOrNull } from './times.ts';

export interface ThreadView {
  select?: readonly string[] | null;
  /** Alias to path; the results come as `extracted`. */
  extract?: ExtractPaths | null;
  withTtl?: boolean;
}

export function threadJson(thread: Thread, view: ThreadView = {}): string {
  const fields: Field[] = [
    field('thread_id', thread.threadId),
    field('created_at', isoTime(thread.createdMs)),
    field('updated_at', isoTime(thread.updatedMs)),
    field('state_updated_at', isoTimeOrNull(thread.stateUpdatedMs)),
    field('metadata', thread.metadata),
    field('status', thread.status),
    field('config', thread.config),
    ['values', thread.valuesJson ?? 'null'],
    ['interrupts', thread.interruptsJson ?? '{}'],
    ['error', thread.errorJson ?? 'null'],
  ];
  const shown = view.select ? fields.filter(([name]) => view.select?.includes(name)) : fields;
  if (view.withTtl === true || view.select?.includes('ttl')) shown.push(field('ttl', ttlOf(thread)));
  if (view.extract) shown.push(field('extracted', extractPaths(thread, view.extract)));
  return objectJson(shown);
}

function ttlOf(thread: Thread): object | null {
  if (thread.ttl === null) return null;
  return {
    strategy: thread.ttl.strategy,
    ttl_minutes: thread.ttl.ttlMs / MINUTE_MS,
    expires_at: isoTime(thread.ttl.expiresMs),
  };
}
