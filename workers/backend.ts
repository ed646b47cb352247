/** The thread of the embedded backend: settings in, URL out, stop in. The logic is in src/backend/backend.ts. */
import { parentPort, workerData } from 'node:worker_threads';
import { type Backend, createBackend } from '../src/backend/backend.ts';
import type { FromBackend, ToBackend } from '../src/backend/message.ts';
import type { BackendSettings } from '../src/backend/settings.ts';
import { Fault } from '../src/core/outcome.ts';
import type { Log } from '../src/core/log.ts';

if (parentPort === null) throw new Fault('workers/backend.ts runs as a worker thread only');
const port = parentPort;
const tell = (message: FromBackend): void => port.postMessage(message);

function portLog(bindings: object): Log {
  const at =
    (level: 'debug' | 'info' | 'warn' | 'error') =>
    (fields: object, message: string): void =>
      tell({ kind: 'log', level, fields: { ...bindings, ...fields }, message });
  return {
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: (fields) => portLog({ ...bindings, ...fields }),
  };
}

async function run(): Promise<void> {
  const backend: Backend = createBackend(workerData as BackendSettings, portLog({}));
  try {
    const { url } = await backend.start();
    port.once('message', (message: ToBackend) => {
      void backend.stop(message.deadlineMs).finally(() => port.close());
    });
    tell({ kind: 'ready', url });
  } catch (error) {
    await backend.stop(0);
    throw error;
  }
}

await run().catch((error: unknown) => {
  tell({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
});
