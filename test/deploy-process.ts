/** A deployment in a process of its own, for tests that kill it (see deploy-child.ts). Told where its data is; reports its URL; ends with its parent. */
import type { StoreLocation } from '../src/deploy/store/location.ts';
import { FIXTURE_GRAPHS, specs, startServer } from './deploy-server.ts';

const folder = process.argv[2];
const store = process.env['STORE_LOCATION'];
if (folder === undefined || store === undefined) throw new Error('usage: STORE_LOCATION=JSON deploy-process.ts FOLDER');
const server = await startServer({
  folder,
  graphs: specs(FIXTURE_GRAPHS, 'steps', 'misbehave'),
  // On PostgreSQL the runs of a killed process come back when their lease has passed.
  limits: { leaseMs: 1000 },
  settings: { location: JSON.parse(store) as StoreLocation, webhooks: { allowPrivate: true, attemptMs: 1000 } },
});
process.send?.({ url: server.url });
process.once('message', () => {
  void server.close({ keep: true, deadlineMs: 2500 }).then(() => process.disconnect());
});
process.once('disconnect', () => process.exit());
