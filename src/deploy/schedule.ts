/**
 * Cron expressions: five fields, optionally in a time zone. Pure. Across a change of the clocks, a fixed time that does not exist
 * fires right after the gap and one that exists twice fires once; intervals go on by real time.
 */
import { Cron } from 'croner';

export interface Schedule {
  schedule: string;
  /** IANA name; null is UTC. */
  timezone: string | null;
}

const MAX_LENGTH = 200;
/** Digits, names, lists, ranges, steps; none of the extensions that other cron programs lack (L, W, #, ?, macros). */
const FIELD = /^[0-9A-Za-z*,/-]+$/;
const NAMES = /^(?:[0-9*,/-]|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun)+$/i;

export type ScheduleIssue = { field: 'schedule' | 'timezone'; reason: string };

/** What is wrong with a schedule; null when it is fine and fires at least once after `nowMs`. */
export function scheduleIssue(schedule: Schedule, nowMs: number): ScheduleIssue | null {
  const { timezone } = schedule;
  if (timezone !== null && !isTimezone(timezone)) return { field: 'timezone', reason: 'not a known IANA time zone' };
  if (schedule.schedule.length > MAX_LENGTH)
    return { field: 'schedule', reason: `longer than ${MAX_LENGTH} characters` };
  const fields = schedule.schedule.trim().split(/\s+/);
  if (fields.length !== 5) {
    return {
      field: 'schedule',
      reason: `five fields are expected (minute hour day month weekday), not ${fields.length}`,
    };
  }
  const wrong = fields.find((field) => !FIELD.test(field) || !NAMES.test(field));
  if (wrong !== undefined) return { field: 'schedule', reason: `"${wrong}" is not understood` };
  try {
    if (nextFireMs(schedule, nowMs) === null) return { field: 'schedule', reason: 'never fires' };
    return null;
  } catch (error) {
    // The parser's words are the reason; they name the field and the value.
    const text = error instanceof Error ? error.message : String(error);
    return { field: 'schedule', reason: text.replace(/^CronPattern: /, '') };
  }
}

/** The first time after `afterMs`; null when there is none, or none before `endMs`. The schedule must be a valid one. */
export function nextFireMs(schedule: Schedule, afterMs: number, endMs: number | null = null): number | null {
  const job = new Cron(schedule.schedule.trim(), {
    mode: '5-part',
    paused: true,
    timezone: schedule.timezone ?? 'UTC',
  });
  const next = job.nextRun(new Date(afterMs))?.getTime() ?? null;
  if (next === null || (endMs !== null && next > endMs)) return null;
  return next;
}

function isTimezone(name: string): boolean {
  if (name.length > MAX_LENGTH || !/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    // That is how the platform says no.
    return false;
  }
}
