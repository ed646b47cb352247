/** The body of a webhook call: the run, its state and its error. Pure; the time of sending is added at each attempt. */
import type { JsonText } from '../store/model.ts';
import { isoTime } from '../times.ts';

export interface EndedRun {
  runId: string;
  threadId: string;
  assistantId: string;
  status: string;
  multitask: string;
  createdMs: number;
  startedMs: number | null;
  endedMs: number;
  metadataJson: string;
  kwargsJson: string;
  /** Null for a run without lasting state. */
  valuesJson: string | null;
  errorJson: string | null;
}

export function webhookPayload(run: EndedRun): JsonText {
  const head = JSON.stringify({
    run_id: run.runId,
    thread_id: run.threadId,
    assistant_id: run.assistantId,
    status: run.status,
    multitask_strategy: run.multitask,
    created_at: isoTime(run.createdMs),
    updated_at: isoTime(run.endedMs),
    run_started_at: run.startedMs === null ? null : isoTime(run.startedMs),
    run_ended_at: isoTime(run.endedMs),
  });
  const values = run.valuesJson === null ? '' : `,"values":${run.valuesJson}`;
  const parts = `"metadata":${run.metadataJson},"kwargs":${run.kwargsJson}${values},"error":${run.errorJson ?? 'null'}`;
  return `${head.slice(0, -1)},${parts}}` as JsonText;
}

/** The body of one attempt. */
export function stampedPayload(payload: JsonText, sentMs: number): string {
  return `${payload.slice(0, -1)},"webhook_sent_at":"${isoTime(sentMs)}"}`;
}
