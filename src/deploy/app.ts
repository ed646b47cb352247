/**
 * The deployment API. In: settings. Out: one {@link HttpApp} and a lifecycle. With graphs configured, everything is there when
 * `start` resolves; without, neither database nor graph machinery is loaded before the first request that needs it.
 */
import { uncounted } from '../core/counters.ts';
import type { HttpApp, HttpRequest, HttpResponse } from '../core/http.ts';
import { MiB } from '../core/units.ts';
import { createAccess } from './access.ts';
import { createApi } from './api.ts';
import { createCors } from './cors.ts';
import type { Machinery } from './machinery.ts';
import { codeOf, problem } from './problem.ts';
import { systemRoutes, type SystemRouteSettings } from './routes/system.ts';
import type { DeploymentSettings } from './settings.ts';

export interface Deployment {
  readonly app: HttpApp;
  start(): Promise<void>;
  stop(deadlineMs: number): Promise<void>;
}

export function createDeployment(settings: DeploymentSettings): Deployment {
  let opening: Promise<Machinery> | null = null;
  let stopped: Promise<void> | null = null;
  const opened = (): Promise<Machinery> => {
    opening ??= load(settings).catch((error: unknown) => {
      // The next request tries again.
      opening = null;
      throw error;
    });
    return opening;
  };
  const access = createAccess(settings.access);
  // These need neither database nor graphs; nor does turning somebody away.
  const system = createApi({
    routes: settings.disabled?.includes('meta')
      ? systemRoutes(systemSettings(settings, opened)).filter((route) => route.pattern === '/ok')
      : systemRoutes(systemSettings(settings, opened)),
    access,
    cors: createCors(settings.cors),
    mountPrefix: settings.mountPrefix,
    log: settings.log,
  });
  const answer = async (request: HttpRequest): Promise<HttpResponse> => {
    if (system.claims(request.path)) return system.handle(request);
    if (stopped !== null) return problem('unavailable', 'The server is stopping.');
    if (opening === null && request.method !== 'OPTIONS') {
      const refusal = access.check(request);
      if (refusal !== null) return problem(refusal.kind, refusal.detail);
    }
    const machinery = await opened().catch((error: unknown) => {
      settings.log.error({ requestId: request.requestId, err: error }, 'the deployment API could not be opened');
      return null;
    });
    if (machinery === null) return problem('unavailable', 'The database cannot be opened now; why is in the log.');
    return machinery.app.handle(request);
  };
  const counters = settings.counters ?? uncounted;
  const count = (status: number): void => {
    counters.add('api_requests');
    const code = codeOf(status);
    if (code !== null) counters.add(`api_refused_${code}`);
  };
  return {
    app: {
      maxBodyBytes: 32 * MiB,
      claims: (path) => claims(path, settings.mountPrefix),
      handle: async (request) => {
        const response = await answer(request);
        count(response.status);
        return response;
      },
      turnedAway: count,
    },
    start: async () => {
      if (settings.graphs.length > 0) await opened();
    },
    stop: (deadlineMs) =>
      (stopped ??=
        opening === null
          ? Promise.resolve()
          : opening.then(
              (it) => it.stop(deadlineMs),
              // It never opened: there is nothing to stop.
              () => undefined,
            )),
  };
}

function systemSettings(settings: DeploymentSettings, opened: () => Promise<Machinery>): SystemRouteSettings {
  return {
    version: settings.version ?? '0.0.0',
    graphLibraryVersion: GRAPH_LIBRARY_VERSION,
    mountPrefix: settings.mountPrefix,
    otherOperations: settings.otherOperations ?? [],
    ping: async () => (await opened()).ping(),
  };
}

/** Pinned in package.json; clients ask which library's semantics to expect. */
const GRAPH_LIBRARY_VERSION = '1.4.12';

/** Known without opening anything. */
const FIRST_SEGMENTS = new Set([
  'threads',
  'thread',
  'runs',
  'assistants',
  'store',
  'ok',
  'info',
  'docs',
  'openapi.json',
]);

function claims(path: string, mountPrefix: string): boolean {
  const prefix = mountPrefix.replace(/\/+$/, '');
  if (!path.startsWith(`${prefix}/`)) return false;
  return FIRST_SEGMENTS.has(path.slice(prefix.length + 1).split('/', 1)[0] ?? '');
}

async function load(settings: DeploymentSettings): Promise<Machinery> {
  const { openMachinery } = await import('./machinery.ts');
  return openMachinery(settings);
}
