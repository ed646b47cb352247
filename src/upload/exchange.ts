/**
 * One request and its answer, on the HTTP client's own callbacks: no stream, no promise a step, and one timer that ends
 * with it. By way of `pool.request` and `AbortSignal.timeout` every upload left a stream, two signals and their weak
 * references behind for as long as the timeout: three thousand at a time at a hundred uploads a second.
 */
import type { Dispatcher } from 'undici';
import { KiB } from '../core/units.ts';

export interface Received {
  readonly status: number;
  /** As sent; null without one. */
  readonly retryAfter: string | null;
  /** At most {@link MAX_ANSWER_BYTES}. */
  readonly text: string;
}

/** Of an answer; what comes after it is cut off with the connection. */
const MAX_ANSWER_BYTES = 64 * KiB;

/**
 * Resolves with the answer as soon as its status is known and its body has ended, was cut off or broke off: the status
 * alone decides. Rejects with what hindered it before: the client's error, a TimeoutError after `timeoutMs`, an
 * AbortError when `signal` says so.
 */
export function exchange(
  dispatcher: Pick<Dispatcher, 'dispatch'>,
  options: Dispatcher.DispatchOptions,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    let controller: Dispatcher.DispatchController | null = null;
    let status = 0;
    let retryAfter: string | null = null;
    const chunks: Buffer[] = [];
    let lengthBytes = 0;
    let isOver = false;

    const end = (error: Error | null): void => {
      if (isOver) return;
      isOver = true;
      clearTimeout(timer);
      signal.removeEventListener('abort', onAbort);
      if (status === 0) reject(error ?? new Error('no status'));
      else resolve({ status, retryAfter, text: Buffer.concat(chunks).toString('utf8', 0, MAX_ANSWER_BYTES) });
    };
    const cut = (error: Error): void => {
      end(error);
      controller?.abort(error);
    };
    const onAbort = (): void => cut(new DOMException('cut off', 'AbortError'));
    const timer = setTimeout(() => cut(new DOMException('no answer in time', 'TimeoutError')), timeoutMs);
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) {
      onAbort();
      return;
    }

    dispatcher.dispatch(options, {
      onRequestStart(started) {
        controller = started;
        // It was cut off while it waited for a connection.
        if (isOver) started.abort(new DOMException('cut off', 'AbortError'));
      },
      onResponseStart(_controller, statusCode, headers) {
        if (statusCode < 200) return; // informational: the answer is still to come
        status = statusCode;
        const value = headers['retry-after'];
        retryAfter = typeof value === 'string' ? value : null;
      },
      onResponseData(_controller, chunk) {
        if (isOver) return;
        chunks.push(chunk);
        lengthBytes += chunk.length;
        if (lengthBytes >= MAX_ANSWER_BYTES) cut(new Error('a longer answer than is read'));
      },
      onResponseEnd: () => end(null),
      onResponseError: (_controller, error) => end(error),
    });
  });
}
