/** A deployment with the example graphs, or others, on a port of its own, for tests. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDeployment } from '../src/deploy/app.ts';
import type { DeploymentLimits, DeploymentSettings } from '../src/deploy/settings.ts';
import { defaultCors } from '../src/deploy/cors.ts';
import type { GraphSpec } from '../src/deploy/graph/protocol.ts';
import { silentLog } from '../src/core/log.ts';
import { MiB } from '../src/core/units.ts';
import type { TestEngine } from './deploy-engines.ts';
import { createAppServer } from '../src/accept/appserver.ts';

export const EXAMPLES = join(import.meta.dirname, '../src/deploy/examples');
export const FIXTURE_GRAPHS = join(import.meta.dirname, 'fixtures/graphs');

export interface TestServer {
  readonly url: string;
  readonly folder: string;
  /** Stops the deployment and its HTTP server; the data stays when `keep` is set. */
  close(s?: { keep?: boolean; deadlineMs?: number }): Promise<void>;
}

export interface ServerOptions {
  graphs: readonly GraphSpec[];
  limits?: Partial<DeploymentLimits>;
  folder?: string;
  /** Where the data goes; SQLite in the folder without it. */
  engine?: TestEngine;
  settings?: Partial<DeploymentSettings>;
}

export function specs(folder: string, ...names: string[]): GraphSpec[] {
  return names.map((name) => ({ graphId: name, file: join(folder, `${name}.ts`), exportName: 'graph' }));
}

export async function startServer(options: ServerOptions): Promise<TestServer> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'deploy-')));
  const database = options.engine === undefined ? null : await options.engine.create();
  const deployment = createDeployment({
    graphs: options.graphs,
    folder: EXAMPLES,
    environment: {},
    location: database?.location ?? { engine: 'sqlite', folder, synchronous: 'normal' },
    access: { apiKeys: [], auth: 'none', trustedOrigins: () => true },
    cors: defaultCors,
    mountPrefix: '',
    log: silentLog,
    ...options.settings,
    limits: { heartbeatMs: 1000, abortGraceMs: 1000, ...options.limits },
  });
  await deployment.start();
  const server = createAppServer(
    {
      host: '127.0.0.1',
      port: 0,
      portVariable: 'PORT',
      tlsCertFile: null,
      tlsKeyFile: null,
      maxInflightBytes: 256 * MiB,
      entryPath: '/docs',
    },
    { log: silentLog },
  );
  await server.start();
  server.mount(deployment.app);
  return {
    url: `http://127.0.0.1:${server.port}`,
    folder,
    close: async (s = {}) => {
      await deployment.stop(s.deadlineMs ?? 3000);
      server.close();
      await database?.remove();
      if (s.keep !== true) await rm(folder, { recursive: true, force: true });
    },
  };
}
