/** Runs in the wire's spelling. `kwargs` is spliced in as the text that it is. */
import type { Run } from './store/model.ts';
import { isoTime } from './times.ts';

/** A run just created is `pending` to its client, even when a worker had a free place for it. */
export function createdRunJson(run: Run): string {
  return runJson({ ...run, status: 'pending' }, null);
}

export function runJson(run: Run, select: readonly string[] | null): string {
  const parts: [string, string][] = [
    ['run_id', JSON.stringify(run.runId)],
    ['thread_id', JSON.stringify(run.threadId)],
    ['assistant_id', JSON.stringify(run.assistantId)],
    ['status', JSON.stringify(run.status)],
    ['multitask_strategy', JSON.stringify(run.multitask)],
    ['created_at', JSON.stringify(isoTime(run.createdMs))],
    ['updated_at', JSON.stringify(isoTime(run.updatedMs))],
    ['metadata', JSON.stringify(run.metadata)],
    ['kwargs', run.kwargsJson],
  ];
  const wanted = select === null ? parts : parts.filter(([name]) => select.includes(name));
  return `{${wanted.map(([name, json]) => `"${name}":${json}`).join(',')}}`;
}

export function runListJson(runs: readonly Run[], select: readonly string[] | null): string {
  return `[${runs.map((run) => runJson(run, select)).join(',')}]`;
}
