/** Who is shown what this process knows: an app behind the deployment API's rule of access. */
import type { HttpApp } from './core/http.ts';
import { createAccess } from './deploy/access.ts';

/** For whoever sits at this machine, whatever is configured. */
export function localOnly(app: HttpApp): HttpApp {
  return guarded(app, { apiKeys: [], auth: 'keys' }, 'runs are shown to this machine only, without a proxy in between');
}

/** For whoever may use the deployment API: this machine only without keys, with keys whoever has one. */
export function guarded(
  app: HttpApp,
  rule: { readonly apiKeys: readonly string[]; readonly auth: 'keys' | 'none' },
  message?: string,
): HttpApp {
  const access = createAccess({ apiKeys: [...rule.apiKeys], auth: rule.auth, trustedOrigins: () => false });
  return {
    maxBodyBytes: app.maxBodyBytes,
    servesAlways: app.servesAlways ?? false,
    claims: (path) => app.claims(path),
    handle: (request) => {
      const refusal = access.check(request);
      if (refusal === null) return app.handle(request);
      return {
        status: refusal.kind === 'unauthenticated' ? 401 : 403,
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ error: message ?? refusal.detail }),
      };
    },
  };
}
