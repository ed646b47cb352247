/**
 * The error answers of the deployment API: a JSON object with the one key `detail`. Codes are names, and this is the one place
 * that maps them to a status.
 */
import type { HttpBufferedResponse } from '../core/http.ts';

export type ProblemCode =
  | 'malformed'
  | 'unauthenticated'
  | 'forbidden'
  | 'not-found'
  | 'method-not-allowed'
  | 'conflict'
  | 'too-large'
  | 'invalid'
  | 'internal'
  | 'unavailable';

const STATUS: Readonly<Record<ProblemCode, number>> = {
  malformed: 400,
  unauthenticated: 401,
  forbidden: 403,
  'not-found': 404,
  'method-not-allowed': 405,
  conflict: 409,
  'too-large': 413,
  invalid: 422,
  internal: 500,
  unavailable: 503,
};

const CODES = new Map(Object.entries(STATUS).map(([code, status]) => [status, code as ProblemCode]));

/** What an answer with this status says; null when it is no refusal. */
export function codeOf(status: number): ProblemCode | null {
  return CODES.get(status) ?? null;
}

export function problem(
  code: ProblemCode,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): HttpBufferedResponse {
  return {
    status: STATUS[code],
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({
      detail: detail.length > MAX_DETAIL_LENGTH ? `${detail.slice(0, MAX_DETAIL_LENGTH)}…` : detail,
    }),
  };
}

/** Refusals repeat what they refuse, which may be megabytes long. */
const MAX_DETAIL_LENGTH = 2000;
