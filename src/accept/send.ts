/** Puts a whole response on the wire, in one system call where the socket takes it. */
import type { HttpResponse } from 'uWebSockets.js';
import type { Reply } from './reply.ts';

/**
 * The server closes an idle connection after 8 to 12 seconds (compiled into it). Clients that heed this hint let go of
 * theirs before that, so that no request is sent into a connection that is being closed.
 */
const KEEP_ALIVE = 'timeout=7';

/** Cross-origin headers of this request, or null when it came from no allowed other origin. */
export type OriginHeaders = readonly (readonly [string, string])[] | null;

export interface SendOptions {
  readonly requestId: string;
  readonly origin: OriginHeaders;
  /** The client sends no more on this connection, or must not. */
  readonly close: boolean;
}

export function sendReply(response: HttpResponse, reply: Reply, options: SendOptions): void {
  response.cork(() => {
    response.writeStatus(reply.status).writeHeader('Content-Type', reply.contentType);
    writeCommonHeaders(response, options);
    if (reply.retryAfterSeconds > 0) response.writeHeader('Retry-After', String(reply.retryAfterSeconds));
    for (const [name, value] of reply.headers) response.writeHeader(name, value);
    response.end(reply.body, options.close);
  });
}

export function writeCommonHeaders(response: HttpResponse, options: SendOptions): void {
  response.writeHeader('X-Request-Id', options.requestId);
  if (!options.close) response.writeHeader('Keep-Alive', KEEP_ALIVE);
  if (options.origin !== null) for (const [name, value] of options.origin) response.writeHeader(name, value);
}

/** Ends the answer to a HEAD request. `endWithoutBody(length)` must not be used: the library then ends the process. */
export function endHead(response: HttpResponse, bodyBytes: number): void {
  response.writeHeader('Content-Length', String(bodyBytes)).endWithoutBody();
}
