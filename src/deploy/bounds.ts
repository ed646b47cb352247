/** Bounds on what clients may say, so that the refusal of a body costs no more than the body did. */
import { z } from 'zod';
import { MINUTE_MS } from '../core/units.ts';
import { isStorable, UNSTORABLE } from './storable.ts';

const SHOWN_ISSUE_COUNT = 5;

/**
 * A list of at most `max` entries that is given up at the first one that is wrong: a schema library goes on, and a million
 * wrong entries in one body become a million complaints, which is more than the memory of the process.
 */
export function listOf<Entry extends z.ZodType>(entry: Entry, s: { min?: number; max: number }) {
  const { min = 0, max } = s;
  return z.preprocess((value: unknown, context) => {
    // What is no list is refused below.
    if (!Array.isArray(value)) return value;
    const entries: readonly unknown[] = value;
    if (entries.length > max) {
      context.addIssue({ code: 'custom', message: `at most ${max} entries, not ${entries.length}` });
      return z.NEVER;
    }
    for (const [index, one] of entries.entries()) {
      const read = entry.safeParse(one);
      if (read.success) continue;
      for (const { path, message } of read.error.issues.slice(0, SHOWN_ISSUE_COUNT)) {
        context.addIssue({ code: 'custom', path: [index, ...path], message });
      }
      return z.NEVER;
    }
    return entries;
  }, z.array(entry).min(min));
}

/** PostgreSQL's indexes hold keys up to 2704 bytes; what else is part of the key needs the rest. */
export const MAX_KEY_BYTES = 2000;

/** Text that becomes part of an index. */
export const keyText = z
  .string()
  .refine(isStorable, UNSTORABLE)
  .refine(isKeySized, `is longer than ${MAX_KEY_BYTES} bytes`);

export function isKeySized(text: string): boolean {
  return text.length <= MAX_KEY_BYTES && Buffer.byteLength(text) <= MAX_KEY_BYTES;
}

/** A hundred years: the end of it is still a date. */
const MAX_TTL_MINUTES = 100 * 366 * 24 * 60;
/** A time to live in minutes, fractions too. */
export const ttlMinutes = z.number().positive().max(MAX_TTL_MINUTES);

/** Whole milliseconds, at least one. */
export function ttlMsOf(minutes: number): number {
  return Math.ceil(minutes * MINUTE_MS);
}
