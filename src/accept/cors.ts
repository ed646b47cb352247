/**
 * Browsers that export spans from another origin ask first. Off unless CORS_ALLOW_ORIGINS names origins (or `*`).
 * Header arrays are made once an origin and reused, since the list of allowed origins is fixed.
 */
import type { OriginHeaders } from './send.ts';

const ALLOWED_HEADERS =
  'content-type, content-encoding, x-api-key, service-project, langsmith-project, x-request-id, traceparent, tracestate, baggage';
const PREFLIGHT_SECONDS = 7200;

export interface Cors {
  readonly enabled: boolean;
  /** For the answer to a request with this `Origin`; null when the header is absent or the origin is not allowed. */
  answer(origin: string): OriginHeaders;
  preflight(origin: string): OriginHeaders;
}

export function createCors(allowOrigins: readonly string[]): Cors {
  const any = allowOrigins.includes('*');
  const exposed = ['Access-Control-Expose-Headers', 'X-Request-Id, Retry-After'] as const;
  const headersFor = (origin: string): OriginHeaders => [
    ['Access-Control-Allow-Origin', origin],
    ['Vary', 'Origin'],
    exposed,
  ];
  const anyHeaders: OriginHeaders = [['Access-Control-Allow-Origin', '*'], exposed];
  const known = new Map(allowOrigins.map((origin) => [origin, headersFor(origin)]));
  const answer = (origin: string): OriginHeaders => {
    if (origin === '') return null;
    return any ? anyHeaders : (known.get(origin) ?? null);
  };
  return {
    enabled: allowOrigins.length > 0,
    answer,
    preflight: (origin) => {
      const headers = answer(origin);
      if (headers === null) return null;
      return [
        ...headers,
        ['Access-Control-Allow-Methods', 'POST'],
        ['Access-Control-Allow-Headers', ALLOWED_HEADERS],
        ['Access-Control-Max-Age', String(PREFLIGHT_SECONDS)],
      ];
    },
  };
}
