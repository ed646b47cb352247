/**
 * Puts the backend's queries on another server: an {@link HttpApp} that claims `/api/` and passes requests on to the
 * backend. In: GET and HEAD. Out: the backend's answer as it streams, live events included; 502 when there is none.
 * Uploads and scripted faults are not passed on. When the client reads slowly: the backend's socket is paused. On stop:
 * `stop()` cuts what is open.
 */
import { Agent, type IncomingMessage, request as httpRequest } from 'node:http';
import type { HttpApp, HttpRequest, HttpResponse, HttpSink } from '../core/http.ts';

export interface ForwardApp extends HttpApp {
  stop(): void;
}

const PREFIX = '/api/';
const PASSED_HEADERS = [
  'content-type',
  'content-disposition',
  'content-security-policy',
  'x-content-type-options',
  'cache-control',
  'retry-after',
  'allow',
] as const;
const MAX_SOCKET_COUNT = 128;
const NOT_IN_A_TARGET = /[^\x21-\x7e]/gu;
const escape = (character: string): string => encodeURIComponent(character.toWellFormed());

export function createForward(backendUrl: string): ForwardApp {
  const agent = new Agent({ keepAlive: true, maxSockets: MAX_SOCKET_COUNT });
  return {
    maxBodyBytes: 0,
    claims: (path) => path.startsWith(PREFIX),
    stop: () => agent.destroy(),
    handle: (request) => {
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        return problem(405, 'only GET and HEAD', { Allow: 'GET, HEAD' });
      }
      if (!isQuery(request.path, backendUrl)) return problem(404, 'not found');
      return forward(agent, backendUrl, request);
    },
  };
}

/**
 * Whether the backend reads the path as it was read here: with dots and escapes, `/api/x/%2e%2e/faults` or `/api/%66aults`
 * would be another one there.
 */
function isQuery(path: string, backendUrl: string): boolean {
  const [kind = ''] = path.slice(PREFIX.length).split('/', 1);
  return /^[a-z]+$/.test(kind) && kind !== 'faults' && new URL(path, backendUrl).pathname === path;
}

function forward(agent: Agent, backendUrl: string, request: HttpRequest): Promise<HttpResponse> {
  const path = `${request.path}${request.query === '' ? '' : `?${request.query.replaceAll(NOT_IN_A_TARGET, escape)}`}`;
  const { hostname, port } = new URL(backendUrl);
  const headers = { Accept: request.header('accept') || '*/*', 'X-Request-Id': request.requestId };
  return new Promise((resolve) => {
    const { method, signal } = request;
    const outgoing = httpRequest({ hostname, port, path, method, agent, headers, signal });
    // Before the answer began: 502. Afterwards the answer's own stream has the error.
    outgoing.on('error', (error) => resolve(problem(502, `the backend does not answer: ${error.message}`)));
    outgoing.on('response', (answer) => {
      const status = answer.statusCode ?? 502;
      const passed = headersOf(answer);
      if (request.method === 'HEAD') {
        answer.resume();
        resolve({ status, headers: passed });
      } else resolve({ status, headers: passed, stream: (sink) => pipe(answer, sink) });
    });
    outgoing.end();
  });
}

function pipe(answer: IncomingMessage, sink: HttpSink): void {
  sink.onDrain(() => answer.resume());
  answer.on('data', (chunk: Uint8Array) => {
    if (sink.closed) answer.destroy();
    else if (!sink.write(chunk)) answer.pause();
  });
  answer.on('end', () => sink.end());
  answer.on('error', () => sink.abort());
}

function headersOf(answer: IncomingMessage): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const name of PASSED_HEADERS) {
    const value = answer.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  return headers;
}

function problem(status: number, message: string, headers: Record<string, string> = {}): HttpResponse {
  return {
    status,
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ error: message }),
  };
}
