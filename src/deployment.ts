/**
 * The deployment API's owner: reads the project's configuration file, fills the stage's settings from the operator's, and mounts it on
 * the proxy's port or on one of its own. With no configuration file it is there without graphs, and loads neither database
 * nor graph library before a request needs them.
 */
import { resolve } from 'node:path';
import { createAppServer, type AppServer } from './accept/appserver.ts';
import { version } from './cli.ts';
import { DEVELOPMENT_KEY, type Config, type Environment } from './config.ts';
import type { Counters } from './core/counters.ts';
import type { HttpApp } from './core/http.ts';
import type { Clock } from './core/lifecycle.ts';
import type { Log } from './core/log.ts';
import type { DescribedOperation } from './core/operation.ts';
import { createDeployment, type Deployment } from './deploy/app.ts';
import type { DeploymentConfig } from './deploy/config.ts';
import type { TraceTarget } from './deploy/graph/protocol.ts';
import { deploymentSettings } from './deploy/settings.ts';
import { signingKey } from './deploy/webhooks/sign.ts';

export interface OwnedDeployment {
  /**
   * Reads the configuration file, and takes the API's paths, or its port where it has one of its own: until `open` has done its work
   * requests are told to come back. Rejects, in words, when the file is wrong.
   */
  listen(): Promise<void>;
  /** Loads the graphs. Rejects, in words, when one of them is wrong. */
  open(): Promise<void>;
  /** No run is begun any more; those under way get until the deadline, then they return to the queue. */
  stop(deadlineMs: number): Promise<void>;
  close(): void;
  /** The port that serves it. */
  readonly port: number;
  /** What stands before every path of it; empty before `listen`, and usually. */
  readonly prefix: string;
  /** Empty before `listen`. */
  readonly graphIds: readonly string[];
}

export interface DeploymentLinks {
  readonly environment: Environment;
  /** Mounts an app on the proxy's port, which answers 503 for it while the process starts. */
  readonly mount: (app: HttpApp) => void;
  /** What this process serves besides, for the description of the API. */
  readonly otherOperations: readonly DescribedOperation[];
  /** Of the proxy, once it listens. */
  readonly proxyPort: () => number;
  readonly counters: Counters;
  readonly log: Log;
  readonly clock: Clock;
}

/** Connections that a process needs: control tables; each graph thread has two more. */
const POOL_SIZE = 10;
/** Of a stop's time, what answers under way on the own port may use once no run is left. */
const ANSWER_SHARE_RATIO = 0.1;

export function ownDeployment(config: Config, links: DeploymentLinks): OwnedDeployment {
  const { log, clock } = links;
  const server: AppServer | null =
    config.deploymentPort === null
      ? null
      : createAppServer(
          {
            host: config.host ?? '',
            port: config.deploymentPort,
            portVariable: 'DEPLOYMENT_PORT',
            entryPath: '/docs',
            tlsCertFile: config.tlsCertFile,
            tlsKeyFile: config.tlsKeyFile,
            maxInflightBytes: config.maxInflightBytes,
          },
          { log, clock },
        );
  let deployment: Deployment | null = null;
  let graphIds: readonly string[] = [];
  let prefix = '';

  return {
    listen: async () => {
      await server?.start();
      const project = config.deploymentConfig === null ? null : await readProject(config.deploymentConfig, links);
      deployment = createDeployment(
        deploymentSettings({
          config: project,
          environment: links.environment,
          location:
            config.databaseUrl === null
              ? { engine: 'sqlite', folder: resolve(config.dataDir ?? '.'), synchronous: 'normal' }
              : { engine: 'postgres', url: config.databaseUrl, poolSize: POOL_SIZE },
          apiKeys: config.deploymentApiKeys,
          auth: config.deploymentAuth,
          webhooks: {
            allowPrivate: config.webhookAllowPrivate,
            // Checked when the environment was read.
            keys: config.webhookSecrets.flatMap((secret) => signingKey(secret) ?? []),
          },
          limits: {
            graphThreadCount: config.graphThreads,
            runsPerThread: config.runsPerThread,
            runTimeoutMs: config.runTimeoutMs,
          },
          traceTarget: () => traceTarget(config, links),
          version: version(),
          otherOperations: links.otherOperations,
          log,
          counters: links.counters,
        }),
      );
      prefix = project?.mountPrefix ?? '';
      graphIds = project?.graphs.map(({ graphId }) => graphId) ?? [];
      // The proxy's port turns requests away by itself until all runs.
      if (server === null) links.mount(deployment.app);
    },
    open: async () => {
      await deployment?.start();
      if (deployment !== null) server?.mount(deployment.app);
    },
    stop: async (deadlineMs) => {
      await deployment?.stop((1 - ANSWER_SHARE_RATIO) * deadlineMs);
      await server?.stop(ANSWER_SHARE_RATIO * deadlineMs);
    },
    close: () => server?.close(),
    get port() {
      return server?.port ?? links.proxyPort();
    },
    get prefix() {
      return prefix;
    },
    get graphIds() {
      return graphIds;
    },
  };
}

async function readProject(path: string, { environment, log }: DeploymentLinks): Promise<DeploymentConfig> {
  // With the schema library behind it: not loaded where there is no file.
  const { readDeploymentConfig } = await import('./deploy/config.ts');
  const reading = await readDeploymentConfig(path, environment);
  if (reading.kind === 'invalid') throw new Error(reading.issues.join('\n'));
  for (const warning of reading.warnings) log.warn({}, warning);
  return reading.config;
}

/** Graph threads send their spans as any application does, to our own port. */
function traceTarget(config: Config, { proxyPort, log }: DeploymentLinks): TraceTarget | null {
  if (!config.deploymentTracing) return null;
  if (config.tlsCertFile !== null) {
    log.warn({}, 'graph runs are not traced: the port speaks TLS, and its certificate is not for this machine');
    return null;
  }
  const isAnonymous = config.apiKey === null;
  if (isAnonymous && config.endpoint !== 'embedded') {
    log.warn({}, 'graph runs are not traced: SERVICE_API_KEY is not set');
    return null;
  }
  return {
    url: `http://${hostOf(config.host)}:${proxyPort()}/v1/traces`,
    headers: isAnonymous ? { 'x-api-key': DEVELOPMENT_KEY } : {},
  };
}

/** An address under which this machine finds its own listener. */
function hostOf(host: string | null): string {
  if (host === null || host === '0.0.0.0' || host === '::') return '127.0.0.1';
  return host.includes(':') ? `[${host}]` : host;
}
