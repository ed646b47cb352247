/** The console's owner: tells it who may come in and what this process has to show. */
import { version } from './cli.ts';
import type { Config } from './config.ts';
import { createConsole } from './console/console.ts';
import type { HttpApp } from './core/http.ts';
import type { Log } from './core/log.ts';
import type { OwnedDeployment } from './deployment.ts';
import { createAccess, type AccessSettings } from './deploy/access.ts';

export interface ConsolePageLinks {
  /** Null: not served. */
  readonly deployment: OwnedDeployment | null;
  readonly log: Log;
  /** Whether an edit of the page's sources shows on its next reload. */
  readonly watchSources: boolean;
}

export function ownConsole(config: Config, { deployment, log, watchSources }: ConsolePageLinks): HttpApp {
  const access = createAccess({ ...deploymentRule(config), trustedOrigins: () => false });
  return createConsole({
    refusalOf: (request) => access.check(request),
    facts: () => ({
      version: version(),
      traces: config.endpoint === 'embedded',
      endpoint: config.endpoint,
      secure: config.tlsCertFile !== null,
      deployment:
        deployment === null
          ? null
          : {
              port: config.deploymentPort === null ? null : deployment.port,
              prefix: deployment.prefix,
              graph_ids: deployment.graphIds,
            },
    }),
    log,
    watchSources,
  });
}

/** Who may use the deployment API may see what was traced. */
export function deploymentRule(config: Config): Pick<AccessSettings, 'apiKeys' | 'auth'> {
  return { apiKeys: config.deploymentApiKeys, auth: config.deploymentAuth };
}
