/**
 * The log: one JSON object a line on standard output, by pino. Lines are buffered and written asynchronously; a reader
 * that does not keep up costs log lines, never a request. `flush` writes what is buffered, for the end of the process.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import type { Log } from '../core/log.ts';
import { MiB, SECOND_MS } from '../core/units.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent';

export interface OwnedLog extends Log {
  /** Writes out everything, in order; waits a while for a reader that does not keep up. */
  flush(): Promise<void>;
}

/** Buffered at most; beyond it lines are dropped. */
const MAX_BUFFERED_BYTES = MiB;
/** What a flush gives to the lines that are on their way. */
const FLUSH_MS = 5 * SECOND_MS;
const STRUCK_OUT = '********';
/** Second line of defence: no caller passes these, and if one does they do not come out. */
const SECRET_FIELDS = ['apiKey', 'x-api-key', 'authorization', 'Authorization', 'X-API-Key', 'secret', 'password'];

/** Shorter ones would strike out half of the log, and are none. */
const MIN_SECRET_CHARS = 6;

/**
 * `descriptor`: of an open file; standard output by default. `secrets`: the operator's, which never leave, in whatever field
 * or text they may have got (an error of a foreign library, say).
 */
export function createLog(level: LogLevel, descriptor = 1, secrets: readonly string[] = []): OwnedLog {
  // As they stand in a line, that is in JSON.
  const written = secrets
    .filter(({ length }) => length >= MIN_SECRET_CHARS)
    .map((secret) => JSON.stringify(secret).slice(1, -1));
  const output = pino.destination({ dest: descriptor, sync: false, maxLength: MAX_BUFFERED_BYTES });
  /** Lines are on their way, written by a thread of the pool. */
  let isWriting = false;
  output.on('drain', () => (isWriting = false));
  // Whoever read the log has gone (a closed pipe): no reason to stop serving, and nobody left to tell.
  output.on('error', () => (isWriting = false));
  const logger = pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      hooks: {
        streamWrite: (line) => {
          isWriting = true;
          return written.reduce((text, secret) => text.replaceAll(secret, STRUCK_OUT), line);
        },
      },
      redact: { paths: SECRET_FIELDS.flatMap((name) => [`["${name}"]`, `*["${name}"]`]), censor: STRUCK_OUT },
    },
    output,
  );
  const flush = async (): Promise<void> => {
    if (isWriting) {
      // Written from here, what waits behind them could come before them.
      const drained = new Promise<void>((resolve) => output.once('drain', resolve).once('error', () => resolve()));
      await Promise.race([drained, sleep(FLUSH_MS, undefined, { ref: false })]);
    }
    output.flushSync();
  };
  return { ...wrap(logger), flush };
}

function wrap(logger: pino.Logger): Log {
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
    child: (fields) => wrap(logger.child(fields)),
  };
}
