/**
 * The deployment API as one {@link HttpApp}. Comes in: any request whose path is ours. Goes out: exactly one answer, also for a
 * path, a key, an escape or a handler that is at fault. Order: preflight, access, route, handler. Holds nothing itself.
 */
import type { HttpApp, HttpRequest, HttpResponse } from '../core/http.ts';
import type { Log } from '../core/log.ts';
import { MiB } from '../core/units.ts';
import type { Access } from './access.ts';
import type { Cors } from './cors.ts';
import { problem } from './problem.ts';
import { createRouter } from './router.ts';
import type { Route } from './router.ts';

export interface ApiSettings {
  routes: readonly Route[];
  access: Access;
  cors: Cors;
  mountPrefix: string;
  maxBodyBytes?: number;
  log: Log;
}

export function createApi(settings: ApiSettings): HttpApp {
  const { access, cors, log } = settings;
  const router = createRouter(settings.routes, settings.mountPrefix);

  const answer = async (request: HttpRequest): Promise<HttpResponse> => {
    const refusal = access.check(request);
    if (refusal !== null) {
      const challenge = refusal.kind === 'unauthenticated' ? { 'www-authenticate': 'Bearer' } : {};
      return problem(refusal.kind, refusal.detail, challenge);
    }
    const match = router.match(request.method, request.path);
    switch (match.kind) {
      case 'not-found':
        return problem('not-found', 'Not found');
      case 'method-not-allowed':
        return problem('method-not-allowed', 'Method not allowed', { allow: match.allowed.join(', ') });
      case 'malformed':
        return problem('malformed', match.detail);
      case 'invalid':
        return problem('invalid', match.detail);
      case 'found':
        return match.handler({ request, params: match.params, query: new URLSearchParams(request.query) });
    }
  };

  return {
    maxBodyBytes: settings.maxBodyBytes ?? 32 * MiB,
    claims: (path) => router.claims(path),
    handle: async (request) => {
      if (request.method === 'OPTIONS' && request.header('access-control-request-method') !== '') {
        return { status: 204, headers: cors.preflight(request) };
      }
      const response = await answer(request).catch((error: unknown) => {
        // The text of the error stays here: it may hold what a client must not see.
        log.error(
          { requestId: request.requestId, method: request.method, err: error },
          'deployment API request failed',
        );
        return problem('internal', 'Internal server error', { 'x-request-id': request.requestId });
      });
      const extra = cors.headers(request);
      return Object.keys(extra).length === 0 ? response : { ...response, headers: { ...response.headers, ...extra } };
    },
  };
}
