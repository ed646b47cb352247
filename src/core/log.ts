/** The logger that stages see; `observe/log.ts` implements it with pino. Keys and payloads never go into a log line. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  child(fields: object): Log;
}

export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
};

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** A line on its way from a worker to the thread that owns the log. */
export interface LogLine {
  readonly kind: 'log';
  readonly level: LogLevel;
  readonly fields: object;
  readonly message: string;
}

/** The log of a thread that has none: every line is handed to `send`. */
export function relayLog(send: (line: LogLine) => void, bindings: object = {}): Log {
  const at =
    (level: LogLevel) =>
    (fields: object, message: string): void =>
      send({ kind: 'log', level, fields: { ...bindings, ...fields }, message });
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => relayLog(send, { ...bindings, ...fields }),
  };
}
