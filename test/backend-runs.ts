/** Runs as an uploader sends them, right in every respect unless a test says otherwise. */
import { randomUUID } from 'node:crypto';
import { writeRfc3339, writeSegmentTime } from '../src/backend/moment.ts';

export type RunRecord = Record<string, unknown> & { id: string; trace_id: string; dotted_order: string };

export interface RunChoice {
  /** Absent: a root. */
  readonly parent?: RunRecord;
  readonly id?: string;
  readonly startUs?: number;
  readonly durationUs?: number | null;
  readonly fields?: Readonly<Record<string, unknown>>;
}

export const START_US = Date.UTC(2026, 7, 22, 10, 15, 30) * 1000 + 250_001;

export function makeRun({
  parent,
  id = randomUUID(),
  startUs,
  durationUs = 5000,
  fields = {},
}: RunChoice = {}): RunRecord {
  const parentUs = parent === undefined ? START_US : Number(parent['start_us']);
  const us = startUs ?? (parent === undefined ? START_US : parentUs + 1000);
  const order = `${writeSegmentTime(us)}${id}`;
  const run: RunRecord = {
    id,
    trace_id: parent?.trace_id ?? id,
    ...(parent === undefined ? {} : { parent_run_id: parent.id }),
    name: parent === undefined ? 'agent' : 'step',
    run_type: 'chain',
    start_time: writeRfc3339(us),
    ...(durationUs === null ? {} : { end_time: writeRfc3339(us + durationUs) }),
    session_name: 'demo',
    dotted_order: parent === undefined ? order : `${parent.dotted_order}.${order}`,
    ...fields,
  };
  // For children of this one; not part of what is sent.
  Object.defineProperty(run, 'start_us', { value: us, enumerable: false });
  return run;
}
