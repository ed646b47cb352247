/**
 * Who may use the deployment API. Comes in: the head of a request. Goes out: nothing (served), or why it is refused. Holds only
 * digests of the configured keys.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { BlockList, isIP } from 'node:net';
import type { HttpRequest } from '../core/http.ts';

export interface AccessSettings {
  /** With any, every route wants one of them. */
  apiKeys: readonly string[];
  /** `none`: open to everyone, knowingly. */
  auth: 'keys' | 'none';
  /** Origins that the operator named in the CORS section; `*` when it says so explicitly. */
  trustedOrigins: (origin: string) => boolean;
}

export type AccessRefusal = { kind: 'unauthenticated'; detail: string } | { kind: 'forbidden'; detail: string };

export interface Access {
  check(request: Pick<HttpRequest, 'header' | 'remoteAddress'>): AccessRefusal | null;
}

const KEYS_HINT =
  'Set DEPLOYMENT_API_KEYS to let other machines in, or DEPLOYMENT_AUTH=none to open the API to everyone.';

/** Any of these means that the peer on the socket is a proxy and the client is someone else. */
const FORWARDING_HEADERS = [
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-forwarded-server',
  'x-real-ip',
  'x-client-ip',
  'x-cluster-client-ip',
  'x-original-forwarded-for',
  'cf-connecting-ip',
  'true-client-ip',
  'fastly-client-ip',
  'via',
];

export function createAccess(settings: AccessSettings): Access {
  const digests = settings.apiKeys.map(digest);
  const isLoopback = createLoopbackCheck();
  return {
    check: (request) => {
      if (settings.auth === 'none') return null;
      return digests.length > 0 ? checkKey(request, digests) : checkLocal(request, settings.trustedOrigins, isLoopback);
    },
  };
}

function checkKey(request: Pick<HttpRequest, 'header'>, digests: readonly Buffer[]): AccessRefusal | null {
  const bearer = /^bearer +(.+)$/i.exec(request.header('authorization').trim())?.[1] ?? '';
  // Both count: the published clients send the key of another service that they find in their environment, unasked.
  const offered = [request.header('x-api-key'), bearer].filter((key) => key !== '');
  if (offered.length === 0) {
    return {
      kind: 'unauthenticated',
      detail: 'An API key is required: send it as x-api-key or as Authorization: Bearer.',
    };
  }
  // Digests have one length, and every key is compared, so that the time taken tells nothing about any of them.
  let matches = false;
  for (const key of offered.map(digest)) for (const known of digests) if (timingSafeEqual(known, key)) matches = true;
  return matches ? null : { kind: 'unauthenticated', detail: 'The API key is not valid.' };
}

/**
 * Without keys the machine itself is the boundary: the peer must be on loopback, not be a proxy, and, as a browser on this machine
 * runs the scripts of strangers, neither the Host (DNS rebinding) nor the Origin may be a foreign one.
 */
function checkLocal(
  request: Pick<HttpRequest, 'header' | 'remoteAddress'>,
  trustedOrigins: (origin: string) => boolean,
  isLoopback: LoopbackCheck,
): AccessRefusal | null {
  if (!isLoopback(request.remoteAddress)) {
    return { kind: 'forbidden', detail: `Without API keys only requests from this machine are served. ${KEYS_HINT}` };
  }
  for (const name of FORWARDING_HEADERS) {
    if (request.header(name) === '') continue;
    return { kind: 'forbidden', detail: `Without API keys forwarded requests (${name}) are not served. ${KEYS_HINT}` };
  }
  const host = request.header('host');
  if (host !== '' && !isLoopbackHost(hostnameOf(`http://${host}`), isLoopback)) {
    return { kind: 'forbidden', detail: `Without API keys the Host must be a loopback name. ${KEYS_HINT}` };
  }
  const origin = request.header('origin');
  if (origin !== '' && !isLoopbackHost(hostnameOf(origin), isLoopback) && !trustedOrigins(origin)) {
    return {
      kind: 'forbidden',
      detail: `Without API keys pages from other origins are not served unless http.cors.allow_origins names them. ${KEYS_HINT}`,
    };
  }
  return null;
}

function digest(key: string): Buffer {
  return createHash('sha256').update(key, 'utf8').digest();
}

function hostnameOf(url: string): string {
  return URL.parse(url)?.hostname ?? '';
}

function isLoopbackHost(hostname: string, isLoopback: LoopbackCheck): boolean {
  if (hostname === 'localhost' || hostname.endsWith('.localhost')) return true;
  return isLoopback(hostname.replace(/^\[(.*)\]$/, '$1'));
}

type LoopbackCheck = (address: string) => boolean;

/** Takes every spelling: `::ffff:127.0.0.1`, `0000:…:0001`. */
export function createLoopbackCheck(): LoopbackCheck {
  // A BlockList maps IPv4 in IPv6 by itself.
  const loopback = new BlockList();
  loopback.addSubnet('127.0.0.0', 8, 'ipv4');
  loopback.addAddress('::1', 'ipv6');
  return (address) => {
    const family = isIP(address);
    return family !== 0 && loopback.check(address, family === 4 ? 'ipv4' : 'ipv6');
  };
}
