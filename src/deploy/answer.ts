/** Successful buffered answers. */
import type { HttpBufferedResponse } from '../core/http.ts';

const JSON_HEADERS: Readonly<Record<string, string>> = { 'content-type': 'application/json' };

/** A value that is rendered here. */
export function jsonAnswer(value: unknown, headers?: Readonly<Record<string, string>>): HttpBufferedResponse {
  return textAnswer(JSON.stringify(value), headers);
}

/** A JSON document that is rendered already. */
export function textAnswer(json: string, headers?: Readonly<Record<string, string>>): HttpBufferedResponse {
  return { status: 200, headers: headers === undefined ? JSON_HEADERS : { ...JSON_HEADERS, ...headers }, body: json };
}

/** Done, nothing to say. The clients parse the body of every other 2xx, so an empty one must be 204 (or 202). */
export const emptyAnswer: HttpBufferedResponse = { status: 204 };
