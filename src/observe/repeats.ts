/**
 * A log that says the same thing once in a while: during an outage every request would otherwise write its line. The
 * first line of a message is written; those that follow within the interval are counted, and at its end the latest of them
 * is written with their count, so that a burst is told even when nothing follows it. Messages and codes are constants of
 * the program, so there are few; were there many, those beyond {@link MAX_KINDS} would be written as they come.
 */
import type { Log } from '../core/log.ts';
import { SECOND_MS } from '../core/units.ts';

export const REPEAT_INTERVAL_MS = 10 * SECOND_MS;
const MAX_KINDS = 1000;

/** Calls back once after so long; must not keep the process alive. */
export type Later = (ms: number, callback: () => void) => void;

const systemLater: Later = (ms, callback) => void setTimeout(callback, ms).unref();

interface Kind {
  suppressedCount: number;
  /** Of the latest line that was held back. */
  fields: object;
}

export function limitRepeats(log: Log, intervalMs = REPEAT_INTERVAL_MS, later: Later = systemLater): Log {
  /** Written within the last interval. */
  const recent = new Map<string, Kind>();
  const limited =
    (write: (fields: object, message: string) => void) =>
    (fields: object, message: string): void => {
      // The code tells apart what shares a message: one kind of refusal must not hide another.
      const name = `${message}\n${codeOf(fields)}`;
      const kind = recent.get(name);
      if (kind !== undefined) {
        kind.suppressedCount++;
        kind.fields = fields;
        return;
      }
      write(fields, message);
      if (recent.size < MAX_KINDS) watch(name, write, message);
    };
  const watch = (name: string, write: (fields: object, message: string) => void, message: string): void => {
    recent.set(name, { suppressedCount: 0, fields: {} });
    later(intervalMs, () => {
      const { suppressedCount = 0, fields = {} } = recent.get(name) ?? {};
      recent.delete(name);
      if (suppressedCount === 0) return;
      write({ ...fields, suppressedCount }, message);
      watch(name, write, message);
    });
  };
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: (fields, message) => log.info(fields, message),
    warn: limited((fields, message) => log.warn(fields, message)),
    error: limited((fields, message) => log.error(fields, message)),
    child: (fields) => limitRepeats(log.child(fields), intervalMs, later),
  };
}

function codeOf(fields: object): string {
  const { code } = fields as { code?: unknown };
  return typeof code === 'string' || typeof code === 'number' ? String(code) : '';
}
