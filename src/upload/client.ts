/**
 * The backend over HTTP; the home of the HTTP client. One attempt at a time is all it knows: no retries, no redirects,
 * answers read up to a bound. Errors of the client library become values here and nowhere else.
 */
import type { Dispatcher } from 'undici';
import type { LookupFunction } from 'node:net';
import { SECOND_MS } from '../core/units.ts';
import type { Batch } from './batch.ts';
import { Connections } from './connections.ts';
import type { ConnectionSettings } from './connections.ts';
import { exchange } from './exchange.ts';
import { readInfo } from './limits.ts';
import type { BackendInfo } from './limits.ts';

export type Answer =
  | { kind: 'answered'; status: number; retryAfterMs: number | null; text: string }
  /** `sent`: the backend may have taken the request all the same. */
  | { kind: 'failed'; sent: boolean; reason: string }
  /** No request can be made of this, now or later: an API key that is no header value. */
  | { kind: 'unsendable'; reason: string };

export interface Backend {
  /** Never rejects. */
  upload(batch: Batch, signal: AbortSignal): Promise<Answer>;
  /** What the backend says of itself; null when it cannot be asked now. Never rejects. */
  info(signal: AbortSignal): Promise<BackendInfo | null>;
  close(): Promise<void>;
}

export interface ClientSettings extends ConnectionSettings {
  readonly endpoint: string;
  readonly attemptTimeoutMs: number;
}

const USER_AGENT = 'collector-proxy';
/** One day: whoever asks for more is asked again tomorrow. */
const MAX_RETRY_AFTER_MS = 24 * 3600 * SECOND_MS;
/** The request has not left: no connection, or no trust in it. */
const NOT_SENT = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'EADDRNOTAVAIL',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'CERT_NOT_YET_VALID',
  'CERT_REVOKED',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  // It speaks no TLS, or none of ours.
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
  'ERR_SSL_UNSUPPORTED_PROTOCOL',
]);
const UNSENDABLE = new Set(['UND_ERR_INVALID_ARG', 'ERR_INVALID_CHAR']);

/** `lookup`: of names, instead of the system's. */
export function openBackend(settings: ClientSettings, lookup?: LookupFunction): Backend {
  const base = new URL(settings.endpoint);
  const basePath = base.pathname.replace(/\/+$/, '');
  const connections = new Connections(base.origin, settings, lookup);

  const ask = async (options: Dispatcher.DispatchOptions, signal: AbortSignal): Promise<Answer> => {
    try {
      const { status, retryAfter, text } = await exchange(
        connections.current(),
        options,
        settings.attemptTimeoutMs,
        signal,
      );
      return {
        kind: 'answered',
        status,
        retryAfterMs: retryAfter === null ? null : parseRetryAfter(retryAfter, Date.now()),
        text,
      };
    } catch (error) {
      const code = codeOf(error);
      if (UNSENDABLE.has(code)) return { kind: 'unsendable', reason: code };
      return { kind: 'failed', sent: !NOT_SENT.has(code), reason: code };
    }
  };

  return {
    upload(batch, signal) {
      const headers: Record<string, string> = {
        'X-API-Key': batch.tenant.apiKey,
        'Content-Type': `multipart/form-data; boundary=${batch.boundary}`,
        'Content-Length': String(batch.body.length),
        'X-Pre-Compressed-Size': String(batch.plainBytes),
        'X-Post-Compressed-Size': String(batch.body.length),
        Accept: 'application/json',
        'User-Agent': USER_AGENT,
      };
      if (batch.coding !== 'identity') headers['Content-Encoding'] = batch.coding;
      return ask({ method: 'POST', path: `${basePath}/runs/multipart`, headers, body: batch.body }, signal);
    },

    async info(signal) {
      const headers = { Accept: 'application/json', 'User-Agent': USER_AGENT };
      const answer = await ask({ method: 'GET', path: `${basePath}/info`, headers }, signal);
      if (answer.kind !== 'answered') return null;
      // An old or self-made backend need not know /info: then the settings stand.
      if (answer.status >= 400 && answer.status < 500) return readInfo(null);
      if (answer.status !== 200) return null;
      try {
        return readInfo(JSON.parse(answer.text));
      } catch {
        return readInfo(null); // something else answers on this path: as if it were not there
      }
    },

    close: () => connections.destroy(),
  };
}

/** Milliseconds from `nowMs`; null if it is neither seconds nor a date. */
export function parseRetryAfter(value: string, nowMs: number): number | null {
  const text = value.trim();
  const waitMs = /^\d+$/.test(text) ? Number(text) * SECOND_MS : Date.parse(text) - nowMs;
  return Number.isNaN(waitMs) ? null : Math.min(Math.max(0, waitMs), MAX_RETRY_AFTER_MS);
}

function codeOf(error: unknown): string {
  const { code, name, cause } = error as { code?: unknown; name?: unknown; cause?: unknown };
  if (typeof code === 'string') return code;
  if (cause !== undefined && cause !== null) return codeOf(cause);
  return typeof name === 'string' ? name : 'unknown';
}
