/** Cross-origin headers: what a browser must be told for the published clients to work in it. */
import type { HttpRequest } from '../core/http.ts';

export interface CorsSettings {
  allowOrigins: readonly string[];
  allowOriginRegex: string | null;
  allowMethods: readonly string[];
  allowHeaders: readonly string[];
  allowCredentials: boolean;
  exposeHeaders: readonly string[];
  maxAgeSec: number;
}

export const defaultCors: CorsSettings = {
  allowOrigins: ['*'],
  allowOriginRegex: null,
  allowMethods: ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
  allowHeaders: ['*'],
  allowCredentials: false,
  exposeHeaders: [],
  maxAgeSec: 600,
};

export interface Cors {
  /** Headers for the answer to a request; empty for one that is not cross-origin. */
  headers(request: Pick<HttpRequest, 'header'>): Record<string, string>;
  /** Headers for the answer to a preflight. */
  preflight(request: Pick<HttpRequest, 'header'>): Record<string, string>;
  allows(origin: string): boolean;
}

/** Without these exposed a page can neither rejoin a run nor page through a search, nor hear what it asked for in vain. */
const ALWAYS_EXPOSED = [
  'Content-Location',
  'Location',
  'X-Pagination-Total',
  'X-Pagination-Next',
  'X-Request-Id',
  'Warning',
];

export function createCors(settings: CorsSettings): Cors {
  const everyone = settings.allowOrigins.includes('*');
  const origins = new Set(settings.allowOrigins);
  const pattern = settings.allowOriginRegex === null ? null : new RegExp(`^(?:${settings.allowOriginRegex})$`);
  const exposed = [...new Set([...ALWAYS_EXPOSED, ...settings.exposeHeaders])].join(', ');
  const allows = (origin: string): boolean => everyone || origins.has(origin) || (pattern?.test(origin) ?? false);

  const headers = (request: Pick<HttpRequest, 'header'>): Record<string, string> => {
    const origin = request.header('origin');
    if (origin === '' || !allows(origin)) return {};
    // Credentials and `*` exclude each other, so the origin is named then.
    const named = !everyone || settings.allowCredentials;
    return {
      'access-control-allow-origin': named ? origin : '*',
      'access-control-expose-headers': exposed,
      ...(named ? { vary: 'Origin' } : {}),
      ...(settings.allowCredentials ? { 'access-control-allow-credentials': 'true' } : {}),
    };
  };
  return {
    allows,
    headers,
    preflight: (request) => {
      const base = headers(request);
      if (base['access-control-allow-origin'] === undefined) return base;
      const wanted = request.header('access-control-request-headers');
      // `*` does not cover Authorization, and means itself when credentials are on: echo what is asked for.
      const allowed = settings.allowHeaders.includes('*') && wanted !== '' ? wanted : settings.allowHeaders.join(', ');
      return {
        ...base,
        'access-control-allow-methods': settings.allowMethods.join(', '),
        'access-control-allow-headers': allowed,
        'access-control-max-age': String(settings.maxAgeSec),
      };
    },
  };
}
