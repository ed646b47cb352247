/**
 * Serves an {@link HttpApp} (deployment API, console, metrics): gathers the body, calls the app, writes its response.
 * The app sees owned values only, never the server's objects. Its exceptions become a 500; the process goes on.
 */
import { STATUS_CODES } from 'node:http';
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import type { HttpApp, HttpRequest as AppRequest, HttpResponse as AppResponse } from '../core/http.ts';
import type { Log } from '../core/log.ts';
import { REQUEST_OVERHEAD_BYTES, type Budget } from './budget.ts';
import { endHead, writeCommonHeaders } from './send.ts';
import { createSink, type OwnedSink } from './sink.ts';

export interface MountContext {
  readonly budget: Budget;
  readonly log: Log;
  /** Told when a request came to its end, or turned into a stream (which its app ends). */
  readonly finished: () => void;
}

const UNSAFE_HEADER = /[\r\n\0]/;
const NO_BODY_STATUS = new Set([204, 304]);

/** Called from within the server's request handler. */
export function serve(
  context: MountContext,
  app: HttpApp,
  response: HttpResponse,
  request: HttpRequest,
  requestId: string,
): void {
  const exchange = new Exchange(context, app, response, requestId);
  exchange.begin(request);
}

class Exchange {
  readonly #context: MountContext;
  readonly #app: HttpApp;
  readonly #requestId: string;
  /** Null once answered, or once the client has gone. */
  #response: HttpResponse | null;
  readonly #abort = new AbortController();
  readonly #pieces: Uint8Array[] = [];
  #receivedBytes = 0;
  #chargedBytes = 0;
  #sink: OwnedSink | null = null;
  #head: Omit<AppRequest, 'body'> | null = null;

  constructor(context: MountContext, app: HttpApp, response: HttpResponse, requestId: string) {
    this.#context = context;
    this.#app = app;
    this.#response = response;
    this.#requestId = requestId;
  }

  begin(request: HttpRequest): void {
    const response = this.#response;
    if (response === null) return;
    const headers = new Map<string, string>();
    request.forEach((name, value) => {
      const before = headers.get(name);
      headers.set(name, before === undefined ? value : `${before}, ${value}`);
    });
    this.#head = {
      method: request.getCaseSensitiveMethod().toUpperCase(),
      path: request.getUrl(),
      // The typings say string; without a query it is undefined.
      query: request.getQuery() ?? '',
      header: (name) => headers.get(name) ?? '',
      headers,
      remoteAddress: addressText(response.getRemoteAddress()),
      requestId: this.#requestId,
      signal: this.#abort.signal,
    };
    response.onAborted(() => this.#lost());
    const declaredBytes = Number(headers.get('content-length') ?? 0);
    if (!(declaredBytes <= this.#app.maxBodyBytes)) return this.#fail(413, 'the request body is too large');
    if (!this.#charge(REQUEST_OVERHEAD_BYTES)) return this.#busy();
    response.onData((chunk, isLast) => {
      if (this.#response === null) return;
      this.#receivedBytes += chunk.byteLength;
      if (this.#receivedBytes > this.#app.maxBodyBytes) return this.#fail(413, 'the request body is too large');
      if (!this.#charge(chunk.byteLength)) return this.#busy();
      // The server takes its buffer back when this returns.
      if (chunk.byteLength > 0) this.#pieces.push(new Uint8Array(chunk.slice(0)));
      if (isLast) void this.#handle();
    });
  }

  /** Never rejects. */
  async #handle(): Promise<void> {
    if (this.#head === null) return;
    const [only] = this.#pieces;
    const body = this.#pieces.length === 1 && only !== undefined ? only : Buffer.concat(this.#pieces);
    this.#pieces.length = 0;
    try {
      this.#answer(await this.#app.handle({ ...this.#head, body }));
    } catch (error) {
      this.#context.log.error(
        { requestId: this.#requestId, path: this.#head.path, err: error },
        'request handling failed',
      );
      this.#fail(500, 'internal error');
    }
  }

  #answer(answer: AppResponse): void {
    const response = this.#response;
    const streamed = 'stream' in answer;
    if (response === null) {
      // The client has gone. A stream must still be told, since its app holds something for it.
      if (streamed) answer.stream(goneSink);
      return;
    }
    for (const [name, value] of Object.entries(answer.headers ?? {})) {
      if (UNSAFE_HEADER.test(name) || UNSAFE_HEADER.test(value))
        throw new Error(`unsafe response header ${JSON.stringify(name)}`);
    }
    const head = (): void => {
      response.writeStatus(`${answer.status} ${STATUS_CODES[answer.status] ?? 'Unknown'}`);
      for (const [name, value] of Object.entries(answer.headers ?? {})) {
        if (name.toLowerCase() !== 'content-length') response.writeHeader(name, value);
      }
      writeCommonHeaders(response, { requestId: this.#requestId, origin: null, close: false });
    };
    if (streamed) {
      response.cork(head);
      const sink = createSink(response, () => {
        this.#sink = null;
        this.#response = null;
      });
      this.#sink = sink;
      this.#release();
      answer.stream(sink);
      return;
    }
    this.#response = null;
    const body = answer.body ?? '';
    response.cork(() => {
      head();
      if (NO_BODY_STATUS.has(answer.status)) response.endWithoutBody();
      else if (this.#head?.method === 'HEAD') endHead(response, Buffer.byteLength(body));
      else response.end(body);
    });
    this.#release();
  }

  #charge(bytes: number): boolean {
    if (!this.#context.budget.grow(this, bytes)) return false;
    this.#chargedBytes += bytes;
    return true;
  }

  /** Ends this exchange as far as the acceptor's bounds go; a stream may go on. */
  #release(): void {
    if (this.#chargedBytes >= 0) {
      this.#context.budget.give(this, this.#chargedBytes);
      this.#chargedBytes = -1;
      this.#context.finished();
    }
  }

  #busy(): void {
    this.#fail(503, 'too many bytes are in flight', { 'Retry-After': '1' });
  }

  #fail(status: number, detail: string, headers: Record<string, string> = {}): void {
    if (this.#sink !== null) return this.#sink.abort();
    this.#pieces.length = 0;
    this.#app.turnedAway?.(status);
    this.#answer({
      status,
      headers: { 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify({ detail }),
    });
  }

  #lost(): void {
    this.#response = null;
    this.#pieces.length = 0;
    this.#sink?.lost();
    this.#release();
    this.#abort.abort();
  }
}

const goneSink: OwnedSink = {
  write: () => false,
  bufferedBytes: 0,
  onDrain: () => undefined,
  end: () => undefined,
  abort: () => undefined,
  closed: true,
  lost: () => undefined,
};

/** IPv4 in dotted form, also when it came through an IPv6 socket; IPv6 in its usual short form. */
export function addressText(binary: ArrayBuffer): string {
  const bytes = new Uint8Array(binary);
  if (bytes.length === 4) return bytes.join('.');
  if (bytes.length !== 16) return '';
  const mapped = bytes.subarray(0, 10).every((byte) => byte === 0) && bytes[10] === 0xff && bytes[11] === 0xff;
  if (mapped) return bytes.subarray(12).join('.');
  const groups = Array.from({ length: 8 }, (_, i) =>
    (((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0)).toString(16),
  );
  // The URL parser knows how to shorten an address.
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}
