/**
 * The owner's side of the embedded backend: starts its thread, learns its URL, stops it. When the thread dies by itself,
 * `exited` resolves with the reason; the owner decides. On stop: the thread gets the deadline, then a second, then it is
 * terminated.
 */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { type Log, silentLog } from '../core/log.ts';
import { SECOND_MS } from '../core/units.ts';
import type { FromBackend, ToBackend } from './message.ts';
import { backendSettings, type BackendSettings } from './settings.ts';

export interface RunningBackend {
  /** `http://127.0.0.1:12345`: takes `POST /runs/multipart`, `GET /info`, and the queries of api.ts. */
  readonly url: string;
  /** Finishes requests in progress, `deadlineMs` (2 s) at most, and closes the store. Idempotent. */
  stop(deadlineMs?: number): Promise<void>;
  /** Resolves when the thread has ended: with null after `stop`, else with what happened. */
  readonly exited: Promise<string | null>;
}

const STOP_DEADLINE_MS = 2 * SECOND_MS;
const GRACE_MS = SECOND_MS;

/** Rejects, with the reason, when the backend cannot start (port taken, file unusable). */
export async function startBackend(
  options: Partial<BackendSettings> & { readonly log?: Log } = {},
): Promise<RunningBackend> {
  const { log = silentLog, ...chosen } = options;
  const worker = new Worker(new URL('../../workers/backend.ts', import.meta.url), {
    workerData: backendSettings(chosen),
    name: 'backend',
  });
  let stopping = false;
  let failure: string | null = null;
  const exited = once(worker, 'exit').then(([code]) => (stopping ? null : (failure ?? `thread ended with ${code}`)));
  worker.on('error', (error) => {
    failure = error instanceof Error ? error.message : String(error);
  });

  const ready = new Promise<string>((resolve) => {
    worker.on('message', (message: FromBackend) => {
      switch (message.kind) {
        case 'ready':
          resolve(message.url);
          break;
        case 'failed':
          failure = message.message;
          break;
        case 'log':
          log[message.level](message.fields, message.message);
          break;
      }
    });
  });
  const url = await Promise.race([
    ready,
    exited.then((reason) => {
      throw new Error(`embedded backend: ${reason ?? 'stopped'}`);
    }),
  ]);

  const stop = async (deadlineMs: number): Promise<void> => {
    stopping = true;
    worker.postMessage({ kind: 'stop', deadlineMs } satisfies ToBackend);
    const cut = setTimeout(() => void worker.terminate(), deadlineMs + GRACE_MS);
    await exited;
    clearTimeout(cut);
  };
  let stopped: Promise<void> | null = null;
  return { url, exited, stop: (deadlineMs = STOP_DEADLINE_MS) => (stopped ??= stop(deadlineMs)) };
}
