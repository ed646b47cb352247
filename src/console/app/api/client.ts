/**
 * HTTP as the pages use it: JSON in and out, server-sent events, the visitor's key on every request. A refusal is an
 * {@link ApiError} with the server's own words; 401 also brings the sign-in page up.
 */
import { readEvents, type ServerEvent } from './events.ts';
import type { KeyStore } from './key.ts';

export interface Client {
  get<T>(path: string, options?: RequestOptions): Promise<T>;
  /** The body as it came. */
  text(path: string, options?: RequestOptions): Promise<string>;
  blob(path: string, options?: RequestOptions): Promise<Blob>;
  /** The answer's JSON, or null where it has no body. */
  send<T>(
    method: 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
    options?: RequestOptions,
  ): Promise<T>;
  /** Sends and hands on the head of the answer, then each of its server-sent events; resolves at its end. For runs of a playground. */
  stream(path: string, body: unknown, reader: StreamReader, signal: AbortSignal): Promise<void>;
  /** Follows an endpoint of server-sent events, and connects again whenever it ends, until `signal`. */
  follow(path: string, follower: Follower, signal: AbortSignal): void;
  /** The whole URL of a path, for people to copy. */
  url(path: string): string;
}

export interface StreamReader {
  onHead(headers: Headers): void;
  onEvent(event: ServerEvent): void;
}

export interface RequestOptions {
  readonly query?: Query;
  readonly signal?: AbortSignal;
}

/** Lists become repeated parameters; what is empty or undefined is left out. */
export type Query = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

export interface Follower {
  readonly query?: Query;
  onEvent(event: ServerEvent): void;
  /** `live` after each connect, `waiting` while there is none. */
  onState?(state: 'live' | 'waiting'): void;
}

export class ApiError extends Error {
  /** 0: no answer came. */
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const FIRST_WAIT_MS = 500;
const MAX_WAIT_MS = 10_000;

export function createClient(links: { readonly key: KeyStore; readonly base: () => string }): Client {
  const { key } = links;

  const request = async (
    method: string,
    path: string,
    options: RequestOptions & { body?: unknown; accept?: string },
  ) => {
    const headers: Record<string, string> = { accept: options.accept ?? 'application/json' };
    const sentKey = key.value.peek();
    if (sentKey !== '') headers['x-api-key'] = sentKey;
    if (options.body !== undefined) headers['content-type'] = 'application/json';
    let response: Response;
    try {
      response = await fetch(`${links.base()}${path}${queryText(options.query)}`, {
        method,
        headers,
        cache: 'no-store',
        ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      });
    } catch (error) {
      if (options.signal?.aborted === true) throw error;
      throw new ApiError(0, 'The collector does not answer. Is it running?');
    }
    if (response.ok) return response;
    // What refuses an earlier key says nothing about this one.
    if (response.status === 401 && key.value.peek() === sentKey) key.wanted.value = true;
    throw new ApiError(response.status, await problemText(response));
  };

  const follow = async (path: string, follower: Follower, signal: AbortSignal): Promise<void> => {
    let waitMs = FIRST_WAIT_MS;
    while (!signal.aborted) {
      try {
        const response = await request('GET', path, {
          signal,
          accept: 'text/event-stream',
          ...(follower.query === undefined ? {} : { query: follower.query }),
        });
        follower.onState?.('live');
        waitMs = FIRST_WAIT_MS;
        await readEvents(response, (event) => follower.onEvent(event));
      } catch (error) {
        // Whoever follows sees `waiting`; a wrong key ends it, since only the visitor can help.
        if (error instanceof ApiError && error.status === 401) return;
      }
      if (signal.aborted) return;
      follower.onState?.('waiting');
      await pause(waitMs, signal);
      waitMs = Math.min(MAX_WAIT_MS, waitMs * 2);
    }
  };

  return {
    get: async <T>(path: string, options: RequestOptions = {}) =>
      (await (await request('GET', path, options)).json()) as T,
    text: async (path, options = {}) => (await request('GET', path, options)).text(),
    blob: async (path, options = {}) => (await request('GET', path, { ...options, accept: '*/*' })).blob(),
    send: async <T>(method: string, path: string, body?: unknown, options: RequestOptions = {}) => {
      const text = await (await request(method, path, { ...options, body })).text();
      return (text === '' ? null : JSON.parse(text)) as T;
    },
    stream: async (path, body, reader, signal) => {
      const response = await request('POST', path, { body, signal, accept: 'text/event-stream' });
      reader.onHead(response.headers);
      await readEvents(response, (event) => reader.onEvent(event));
    },
    follow: (path, follower, signal) => void follow(path, follower, signal),
    url: (path) => new URL(`${links.base()}${path}`, location.href).href,
  };
}

export function queryText(query: Query | undefined): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== '') params.append(name, String(each));
    }
  }
  const text = params.toString();
  return text === '' ? '' : `?${text}`;
}

/** The words of the backend (`error`) or of the deployment API (`detail`). */
async function problemText(response: Response): Promise<string> {
  const text = await response.text();
  try {
    const body = JSON.parse(text) as { error?: unknown; detail?: unknown };
    const words = body.error ?? body.detail;
    if (words !== undefined) return typeof words === 'string' ? words : JSON.stringify(words);
  } catch {
    // Not JSON: a proxy in between has words of its own, as they stand below.
  }
  return text.slice(0, 300) || `${response.status} ${response.statusText}`;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true });
  });
}
