/** Answers of the backend's HTTP face. The one place that maps outcomes to statuses. */
import type { ServerResponse } from 'node:http';

export type ProblemKind =
  | 'invalid'
  | 'unprocessable'
  | 'conflict'
  | 'too-large'
  | 'unsupported-coding'
  | 'unauthenticated'
  | 'forbidden'
  | 'not-found'
  | 'method-not-allowed'
  | 'misdirected'
  | 'busy'
  | 'internal';

/** Status, and how the hosted backend begins the text of such an error. */
const PROBLEMS: Readonly<Record<ProblemKind, readonly [status: number, prefix: string]>> = {
  invalid: [400, 'Bad request'],
  unauthenticated: [401, 'Unauthorized'],
  forbidden: [403, 'Forbidden'],
  'not-found': [404, 'Not found'],
  'method-not-allowed': [405, 'Method not allowed'],
  conflict: [409, 'Conflict: payload already received'],
  'too-large': [413, 'Payload too large'],
  'unsupported-coding': [415, 'Unsupported media type'],
  misdirected: [421, 'Misdirected request'],
  unprocessable: [422, 'Unprocessable entity'],
  internal: [500, 'Internal server error'],
  busy: [503, 'Service unavailable'],
};

export function statusOf(kind: ProblemKind): number {
  return PROBLEMS[kind][0];
}

export function problemText(kind: ProblemKind, message: string): string {
  const prefix = PROBLEMS[kind][1];
  return JSON.stringify({ error: message === '' ? prefix : `${prefix}: ${message}` });
}

export function sendJson(
  response: ServerResponse,
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Content-Length': String(Buffer.byteLength(text)),
    'Cache-Control': 'no-store',
    'X-Content-Type-Options': 'nosniff',
    ...headers,
  });
  response.end(text);
}

export function sendProblem(
  response: ServerResponse,
  kind: ProblemKind,
  message: string,
  headers: Readonly<Record<string, string>> = {},
): void {
  sendJson(response, statusOf(kind), problemText(kind, message), headers);
}
