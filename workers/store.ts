/** The thread of the embedded deployment store: opens the databases and serves the main thread. */
import { parentPort, workerData } from 'node:worker_threads';
import { systemClock } from '../src/core/lifecycle.ts';
import { silentLog } from '../src/core/log.ts';
import { Fault } from '../src/core/outcome.ts';
import { createIdSource } from '../src/deploy/ids.ts';
import type { StoreThreadData } from '../src/deploy/store/messages.ts';
import { openDeploymentStore } from '../src/deploy/store/open.ts';
import { serveStore } from '../src/deploy/store/serve.ts';

if (parentPort === null) throw new Fault('workers/store.ts is a worker');
const data = workerData as StoreThreadData;
serveStore(
  parentPort,
  // SQLite has nothing to say in between: errors travel with their calls.
  await openDeploymentStore({ ...data, ids: createIdSource(systemClock), clock: systemClock, log: silentLog }),
);
