/**
 * The server half of bench/deploy.ts: a deployment with the bench graphs on the real acceptor's HTTP. Forked, told the folder and
 * how many graph threads.
 */
import { join } from 'node:path';
import { createBudget } from '../src/accept/budget.ts';
import { listen } from '../src/accept/listen.ts';
import { serve } from '../src/accept/mount.ts';
import { silentLog } from '../src/core/log.ts';
import { MiB } from '../src/core/units.ts';
import { createDeployment } from '../src/deploy/app.ts';
import { defaultCors } from '../src/deploy/cors.ts';

const [folder, threads] = process.argv.slice(2);
if (folder === undefined || threads === undefined) throw new Error('usage: deployserver.ts FOLDER THREADS');
const graphs = join(import.meta.dirname, 'graphs');

const deployment = createDeployment({
  graphs: ['onenode', 'spin'].map((name) => ({
    graphId: name,
    file: join(graphs, `${name}.ts`),
    exportName: 'graph',
  })),
  folder: graphs,
  environment: { NODE_ENV: 'production' },
  location: { engine: 'sqlite', folder, synchronous: 'normal' },
  access: { apiKeys: [], auth: 'none', trustedOrigins: () => true },
  cors: defaultCors,
  mountPrefix: '',
  limits: { graphThreadCount: Number(threads) },
  log: silentLog,
});
await deployment.start();
const context = { budget: createBudget(256 * MiB), log: silentLog, finished: () => undefined };
let requestCount = 0;
const listening = await listen({ host: '127.0.0.1', port: 0, tlsCertFile: null, tlsKeyFile: null }, (app) => {
  app.any('/*', (response, request) => serve(context, deployment.app, response, request, String(++requestCount)));
});
process.send?.({ port: listening.port });
process.once('disconnect', () => {
  listening.close();
  void deployment.stop(1000);
});
