/**
 * One attempt to deliver a webhook; the home of the HTTP client that makes it. Connects to the very address that was checked, follows
 * no redirect, reads no more of an answer than a few kilobytes. Never rejects: every way to fail is a value.
 */
import { Client } from 'undici';
import { KiB, SECOND_MS } from '../../core/units.ts';
import type { WebhookPolicy } from './policy.ts';

export type AttemptOutcome =
  | { kind: 'delivered'; statusCode: number }
  | { kind: 'failed'; statusCode: number | null; error: string; retryAfterMs: number | null }
  /** Trying again cannot help: against the policy, or the receiver says that it is gone. */
  | { kind: 'final'; statusCode: number | null; error: string };

export interface AttemptRequest {
  url: string;
  headers: Record<string, string>;
  body: string;
  signal: AbortSignal;
}

const CONNECT_MS = 5 * SECOND_MS;
const ANSWER_BYTES = 16 * KiB;
const GONE = 410;

export async function attemptWebhook(policy: WebhookPolicy, request: AttemptRequest): Promise<AttemptOutcome> {
  const verdict = policy.checkUrl(request.url);
  if (verdict.kind === 'refused') return { kind: 'final', statusCode: null, error: verdict.reason };
  const { url } = verdict;
  const target = await policy.checkTarget(url, request.signal);
  if (target.kind === 'refused') return { kind: 'final', statusCode: null, error: target.reason };
  if (target.kind === 'unresolved') return failed(target.reason);

  const { address, family } = target;
  const client = new Client(url.origin, {
    pipelining: 1,
    connect: {
      timeout: CONNECT_MS,
      // Pinned: what the name resolves to a moment later is of no concern.
      lookup: (_hostname, options, callback) => {
        if (options.all) callback(null, [{ address, family }]);
        else callback(null, address, family);
      },
    },
  });
  try {
    const response = await client.request({
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers: request.headers,
      body: request.body,
      signal: request.signal,
    });
    const { statusCode } = response;
    const retryAfter = response.headers['retry-after'];
    // The status is the answer; what comes after it, or does not, changes nothing.
    await response.body.dump({ limit: ANSWER_BYTES, signal: request.signal }).catch(() => undefined);
    if (statusCode >= 200 && statusCode < 300) return { kind: 'delivered', statusCode };
    if (statusCode === GONE) return { kind: 'final', statusCode, error: 'the receiver is gone' };
    const error = statusCode >= 300 && statusCode < 400 ? 'redirects are not followed' : `answered ${statusCode}`;
    return { kind: 'failed', statusCode, error, retryAfterMs: retryAfterMs(retryAfter) };
  } catch (error) {
    return failed(reasonOf(error, request.signal));
  } finally {
    // Also cuts an answer that does not end.
    await client.destroy();
  }
}

function failed(error: string): AttemptOutcome {
  return { kind: 'failed', statusCode: null, error, retryAfterMs: null };
}

/** A code rather than a message: messages of the client may repeat the URL, and with it a secret. */
function reasonOf(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return 'timed out';
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : 'the connection failed';
}

function retryAfterMs(header: string | string[] | undefined): number | null {
  const text = typeof header === 'string' ? header.trim() : '';
  if (/^\d{1,6}$/.test(text)) return Number(text) * SECOND_MS;
  return null;
}
