/**
 * Connections that stay open while a run executes: event streams, and answers that wait for a run's end. In: a watched run. Out: a
 * streamed response. Each owns its watch and gives it up when the response ends or the client goes.
 */
import type { HttpRequest, HttpSink, HttpStreamedResponse } from '../../core/http.ts';
import type { Log } from '../../core/log.ts';
import type { RunResult } from '../liveruns.ts';
import type { Pulse } from '../pulse.ts';
import type { JsonText } from '../store/model.ts';
import type { ReaderSettings, StreamReader } from '../streamreader.ts';

/** `maxBufferedBytes`: a reader that is further behind is cut. `log`: a connection that is cut has nobody else to tell why. */
export interface ConnectionSettings extends ReaderSettings {
  /** Beats soon after a connection has opened, so that its head need not wait for the run; short runs are over by then. */
  opening: Pulse;
  log: Log;
}

/** Where clients find the run again. `Content-Location` is parsed for the run's id: nothing may follow it. */
export interface RunLocation {
  run: string;
  rejoin: string;
}

export function locationOf(run: { runId: string; threadId: string | null }, rejoin: 'stream' | 'join'): RunLocation {
  const path = run.threadId === null ? `/runs/${run.runId}` : `/threads/${run.threadId}/runs/${run.runId}`;
  return { run: path, rejoin: `${path}/${rejoin}` };
}

export function locationHeaders(location: RunLocation): Record<string, string> {
  return { 'content-location': location.run, location: location.rejoin };
}

export function eventStream(
  request: HttpRequest,
  reader: StreamReader,
  headers: Record<string, string>,
  onDisconnect: () => void,
): HttpStreamedResponse {
  const gone = (): void => {
    if (reader.detach()) onDisconnect();
  };
  if (request.signal.aborted) gone();
  else request.signal.addEventListener('abort', gone, { once: true });
  return {
    status: 200,
    headers: {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
      ...headers,
    },
    stream: (sink) => reader.attach(sink),
  };
}

export interface Awaited {
  ended: Promise<RunResult>;
  /** Reads the result from the store; null is sent as it is. */
  stored(): Promise<JsonText | null>;
  /** Called once, whatever happens. */
  done(): void;
  onDisconnect(): void;
}

/** The head goes out after a moment, newlines keep the connection alive, the result comes last. */
export function awaitedResult(
  request: HttpRequest,
  settings: ConnectionSettings,
  awaited: Awaited,
  headers: Record<string, string>,
): HttpStreamedResponse {
  let isOpen = true;
  let sink: HttpSink | null = null;
  const keepAlive = (): void => void sink?.write('\n');
  // The head goes out with the first byte.
  const open = (): void => {
    settings.opening.leave(open);
    keepAlive();
  };
  const close = (): boolean => {
    if (!isOpen) return false;
    isOpen = false;
    settings.pulse.leave(keepAlive);
    settings.opening.leave(open);
    awaited.done();
    return true;
  };
  const gone = (): void => {
    if (close()) awaited.onDisconnect();
  };
  if (request.signal.aborted) gone();
  else request.signal.addEventListener('abort', gone, { once: true });

  const send = async (to: HttpSink): Promise<void> => {
    const result = await awaited.ended;
    if (!isOpen) return;
    if (result.kind === 'stopped') {
      close();
      to.abort();
      return;
    }
    const json = result.kind === 'result' ? result.json : await awaited.stored();
    if (!close()) return;
    to.write(json ?? 'null');
    to.end();
  };

  return {
    status: 200,
    headers: { 'content-type': 'application/json', ...headers },
    stream: (given) => {
      sink = given;
      if (isOpen) settings.pulse.join(keepAlive);
      if (isOpen) settings.opening.join(open);
      send(given).catch((error: unknown) => {
        settings.log.error({ err: error }, 'the result of a run could not be read; the waiting connection is cut');
        // The head is out: a broken connection is the only way left to say that there is no answer.
        close();
        given.abort();
      });
    },
  };
}
