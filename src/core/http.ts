/**
 * HTTP as the stages behind the acceptor see it (deployment API, console, metrics): no server framework, no sockets.
 * `accept/` owns the server and mounts one {@link HttpApp} after another; the first that claims a path gets the request.
 */

export interface HttpRequest {
  /** Upper-case. */
  readonly method: string;
  /** As on the wire: percent-escapes not decoded, without the query. */
  readonly path: string;
  /** As on the wire, without the `?`; empty when absent. */
  readonly query: string;
  /** Value of a header by its lower-case name; empty when absent. */
  header(name: string): string;
  /** All headers, names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  /** Textual IP address of the peer of this connection (not of a forwarding header). */
  readonly remoteAddress: string;
  readonly requestId: string;
  /** The whole body, owned by the receiver. */
  readonly body: Uint8Array;
  /** Aborted when the client goes away before the response was ended. */
  readonly signal: AbortSignal;
}

export type HttpResponse = HttpBufferedResponse | HttpStreamedResponse;

export interface HttpBufferedResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** The head is sent at once, then `stream` writes; it may go on after returning, until it calls `end` or `abort`. */
export interface HttpStreamedResponse {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  stream(sink: HttpSink): void;
}

export interface HttpSink {
  /** Queues a chunk. False means that the socket is behind: see `bufferedBytes`, `onDrain`. Ignored once closed. */
  write(chunk: string | Uint8Array): boolean;
  /** Bytes written but not yet taken by the socket. */
  readonly bufferedBytes: number;
  /** Calls back whenever the socket has taken everything. */
  onDrain(callback: () => void): void;
  /** Ends the response cleanly. */
  end(): void;
  /** Cuts the connection, so that the client sees an unfinished response. */
  abort(): void;
  readonly closed: boolean;
}

export interface HttpApp {
  /** Whether this app answers for the path, whatever the method. */
  claims(path: string): boolean;
  /** Largest body accepted; beyond it the acceptor answers 413. */
  readonly maxBodyBytes: number;
  /** Also while the process starts and drains; others are answered 503 then. */
  readonly servesAlways?: boolean;
  handle(request: HttpRequest): Promise<HttpResponse> | HttpResponse;
  /** Told of requests that it did not get to answer, by the status that they were answered with. */
  turnedAway?(status: number): void;
}
