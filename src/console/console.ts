/**
 * The console: an {@link HttpApp} with one page at `/` and everything it loads. In: GET and HEAD. Out: the page, its files, and
 * `GET /api/console`, which says what this process has to show. The page holds no data: it reads what any client can
 * read, over the endpoints of `/openapi.json`, with the visitor's own key. Failure of the bundle is answered 500 with its
 * reason and tried again at the next request; ingestion never waits for it. Nothing to stop.
 */
import type { HttpApp, HttpRequest, HttpResponse } from '../core/http.ts';
import type { Log } from '../core/log.ts';
import { ASSET_PREFIX, makeBundle, type Asset, type Bundle } from './bundle.ts';
import type { ConsoleFacts } from './facts.ts';

export interface ConsoleLinks {
  /** The deployment API's rule: null lets the request in. */
  readonly refusalOf: (request: HttpRequest) => AccessRefusal | null;
  readonly facts: () => ConsoleFacts;
  readonly log: Log;
  /** Whether sources may change while the process runs: the page is made anew when they did. */
  readonly watchSources: boolean;
  readonly makeBundle?: () => Promise<Bundle>;
}

export interface AccessRefusal {
  /** `unauthenticated`: a key would help. */
  readonly kind: 'unauthenticated' | 'forbidden';
  readonly detail: string;
}

export const FACTS_PATH = '/api/console';

/** The browser enforces what the page promises: no foreign code, no inline code, no text that becomes markup, no other host. */
function contentPolicy(deploymentOrigin: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    `connect-src 'self'${deploymentOrigin === '' ? '' : ` ${deploymentOrigin}`}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
}

const COMMON_HEADERS = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
} as const;

export function createConsole(links: ConsoleLinks): HttpApp {
  const make = links.makeBundle ?? makeBundle;
  let bundling: Promise<Bundle> | null = null;
  const bundled = (): Promise<Bundle> => {
    bundling ??= make().catch((error: unknown) => {
      // The next request tries again.
      bundling = null;
      throw error;
    });
    return bundling;
  };
  const refresh = async (): Promise<Bundle> => {
    const known = bundled();
    const bundle = await known;
    if (!links.watchSources || !(await bundle.isStale())) return bundle;
    // Unless another request, which found it stale as well, has it made anew already.
    if (bundling === known) bundling = null;
    return bundled();
  };

  const answer = async (request: HttpRequest): Promise<HttpResponse> => {
    const refusal = links.refusalOf(request);
    if (refusal?.kind === 'forbidden') return text(403, refusal.detail);
    if (request.path === FACTS_PATH) {
      if (refusal !== null) return json(401, { error: refusal.detail }, { 'www-authenticate': 'Bearer' });
      return json(200, links.facts());
    }
    // A browser cannot bring a key before it has a page that asks for one; the page itself is the same for everyone.
    if (request.path.startsWith(ASSET_PREFIX)) {
      const asset = (await bundled()).assets.get(request.path);
      if (asset === undefined) return text(404, 'Not found');
      return send(request, asset, { 'cache-control': 'private, max-age=31536000, immutable' });
    }
    const { page } = await refresh();
    return send(request, page, {
      'cache-control': 'no-cache',
      'content-security-policy': contentPolicy(deploymentOrigin(request, links.facts())),
      'cross-origin-opener-policy': 'same-origin',
      'x-frame-options': 'DENY',
    });
  };

  return {
    maxBodyBytes: 0,
    claims: (path) => path === '/' || path === '/console' || path.startsWith('/console/') || path === FACTS_PATH,
    handle: async (request) => {
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        return { ...text(405, 'Only GET and HEAD'), headers: { ...COMMON_HEADERS, allow: 'GET, HEAD' } };
      }
      return answer(request).catch((error: unknown) => {
        links.log.error({ requestId: request.requestId, err: error }, 'the console could not be put together');
        const reason = error instanceof Error ? error.message : String(error);
        return text(500, `The console could not be put together: ${reason}`);
      });
    },
  };
}

/** Where the deployment API has a port of its own, that origin under the name that this page was asked for by; else empty. */
function deploymentOrigin(request: HttpRequest, { deployment, secure }: ConsoleFacts): string {
  if (deployment === null || deployment.port === null) return '';
  const host = /^(\[[\da-f:.]+\]|[\w.-]+)(?::\d+)?$/i.exec(request.header('host'))?.[1];
  return host === undefined ? '' : `${secure ? 'https' : 'http'}://${host}:${deployment.port}`;
}

function send(request: HttpRequest, asset: Asset, headers: Readonly<Record<string, string>>): HttpResponse {
  const accepted = request.header('accept-encoding');
  const coding = accepts(accepted, 'br') ? 'br' : accepts(accepted, 'gzip') ? 'gzip' : null;
  const common = { ...COMMON_HEADERS, ...headers, etag: `W/${asset.etag}`, vary: 'Accept-Encoding' };
  // One tag for all codings: the content is what it names, so it is a weak one.
  if (request.header('if-none-match').replace(/^W\//, '') === asset.etag) return { status: 304, headers: common };
  return {
    status: 200,
    headers: {
      ...common,
      'content-type': asset.contentType,
      ...(coding === null ? {} : { 'content-encoding': coding }),
    },
    body: coding === 'br' ? asset.brotli : coding === 'gzip' ? asset.gzip : asset.bytes,
  };
}

function accepts(header: string, coding: string): boolean {
  return header.split(',').some((item) => {
    const [name = '', ...parameters] = item.split(';').map((part) => part.trim().toLowerCase());
    return name === coding && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}

function json(status: number, value: object, headers: Readonly<Record<string, string>> = {}): HttpResponse {
  return {
    status,
    headers: { ...COMMON_HEADERS, 'content-type': 'application/json', 'cache-control': 'no-store', ...headers },
    body: JSON.stringify(value),
  };
}

function text(status: number, words: string): HttpResponse {
  return {
    status,
    headers: { ...COMMON_HEADERS, 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' },
    body: `${words}\n`,
  };
}
