/** Reads what clients send: JSON bodies against a schema, and the query encodings that the published clients use. */
import type { z } from 'zod';
import type { HttpBufferedResponse, HttpRequest } from '../core/http.ts';
import { problem } from './problem.ts';

export type Read<T> = { ok: true; value: T } | { ok: false; response: HttpBufferedResponse };

/** Deeper documents are refused: recursion over them (merging, rendering, cloning) would overflow the stack. */
const MAX_DEPTH = 200;
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The body as JSON, whatever its label says (clients send `text/plain`, or none); no body at all reads as `{}`. Keys that could
 * reach an object's prototype are refused rather than carried about.
 */
export function readBody<S extends z.ZodType>(request: HttpRequest, schema: S): Read<z.output<S>> {
  let document: unknown = {};
  if (request.body.byteLength > 0) {
    try {
      document = JSON.parse(utf8.decode(request.body));
    } catch {
      return { ok: false, response: problem('malformed', 'The body is not valid JSON in UTF-8.') };
    }
    const objection = objectionTo(document, 0);
    if (objection !== null) {
      const path = objection.path.replace(/^\./, '').slice(0, 200);
      return { ok: false, response: problem('invalid', `${path}: ${objection.reason}`) };
    }
  }
  const result = schema.safeParse(document);
  if (result.success) return { ok: true, value: result.data };
  return { ok: false, response: problem('invalid', issuesText(result.error)) };
}

/** `input.messages[0].role: expected string; …` for the first few issues. */
export function issuesText(error: z.ZodError): string {
  const lines = error.issues.slice(0, 5).map((issue) => {
    const path = issue.path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${String(part)}`)).join('');
    return `${path === '' ? 'body' : path.replace(/^\./, '')}: ${issue.message}`;
  });
  return lines.join('; ');
}

interface Objection {
  path: string;
  reason: string;
}

/** The path is put together only on the way out of a refusal. */
function objectionTo(value: unknown, depth: number): Objection | null {
  if (typeof value !== 'object' || value === null) return null;
  if (depth > MAX_DEPTH) return { path: '', reason: `nested more than ${MAX_DEPTH} levels deep` };
  if (Array.isArray(value)) {
    for (const [index, entry] of value.entries()) {
      const objection = objectionTo(entry, depth + 1);
      if (objection !== null) return { ...objection, path: `[${index}]${objection.path}` };
    }
    return null;
  }
  for (const [key, entry] of Object.entries(value)) {
    if (key === '__proto__') return { path: '.__proto__', reason: 'this key is not accepted' };
    const objection = objectionTo(entry, depth + 1);
    if (objection !== null) return { ...objection, path: `.${key}${objection.path}` };
  }
  return null;
}

/** Null when absent, also as the published Python client has it: a name without a value. */
export function queryText(query: URLSearchParams, name: string): string | null {
  const text = query.get(name);
  return text === '' ? null : text;
}

/** `true/false` and `1/0`; anything else is null, absent is the fallback. */
export function queryBoolean(query: URLSearchParams, name: string, fallback: boolean): boolean | null {
  const text = queryText(query, name);
  if (text === null) return fallback;
  if (text === 'true' || text === 'True' || text === '1') return true;
  if (text === 'false' || text === 'False' || text === '0') return false;
  return null;
}

/** Repeated, comma-joined, or one JSON array as text: all three are in use. Absent or without a value is null. */
export function queryList(query: URLSearchParams, name: string): string[] | null {
  const all = query.getAll(name).filter((entry) => entry !== '');
  if (all.length === 0) return null;
  const [only] = all;
  if (all.length === 1 && only !== undefined && only.startsWith('[')) {
    try {
      const parsed: unknown = JSON.parse(only);
      if (Array.isArray(parsed) && parsed.every((entry) => typeof entry === 'string')) return parsed;
    } catch {
      // Not JSON after all: a plain value that begins with a bracket.
    }
  }
  return all.flatMap((entry) => entry.split(',')).filter((entry) => entry !== '');
}

/** An integer within bounds; null when it is not, the fallback when absent. */
export function queryInteger(
  query: URLSearchParams,
  name: string,
  s: { fallback: number; min: number; max: number },
): number | null {
  const text = queryText(query, name);
  if (text === null) return s.fallback;
  const value = /^-?\d{1,15}$/.test(text) ? Number(text) : NaN;
  return value >= s.min && value <= s.max ? value : null;
}
