/** The embedded backend's owner: starts its thread, and starts it again on the same port when it dies by itself. */
import type { Clock, Stage } from './core/lifecycle.ts';
import type { Log } from './core/log.ts';
import { SECOND_MS } from './core/units.ts';
import { startBackend, type RunningBackend } from './backend/owner.ts';

export interface EmbeddedSettings {
  readonly file: string;
  readonly port: number;
}

export interface Embedded extends Stage {
  /** Once started. */
  readonly url: string;
  reasons(): string[];
}

const RESTART_MS = SECOND_MS;

export function createEmbedded(settings: EmbeddedSettings, links: { log: Log; clock: Clock }): Embedded {
  const { log, clock } = links;
  const stopping = new AbortController();
  let url = '';
  let running: RunningBackend | null = null;

  const run = async (port: number): Promise<void> => {
    const backend = await startBackend({ file: settings.file, port, log });
    url = backend.url;
    running = backend;
    void backend.exited.then((reason) => {
      if (running === backend) running = null;
      if (reason !== null) void restart(reason);
    });
  };
  /** Never rejects: tries until it runs or it is time to stop. */
  const restart = async (reason: string): Promise<void> => {
    log.error({ reason }, 'embedded backend lost');
    while (!stopping.signal.aborted && running === null) {
      await clock.sleep(RESTART_MS, stopping.signal);
      if (stopping.signal.aborted) return;
      // Uploads keep going to the URL that they know.
      await run(Number(new URL(url).port)).catch((error: unknown) =>
        log.error({ err: error }, 'embedded backend could not be started again'),
      );
    }
  };

  return {
    get url() {
      return url;
    },
    start: () => (running === null ? run(settings.port) : Promise.resolve()),
    stop: async (deadlineMs) => {
      stopping.abort();
      await running?.stop(deadlineMs);
    },
    reasons: () => (running === null && !stopping.signal.aborted ? ['the embedded backend is being replaced'] : []),
  };
}
