/** Single values picked out of a thread, so that a list of conversations need not carry whole states. */
import { z } from 'zod';
import type { JsonObject, JsonValue, Thread } from './store/model.ts';

export type ExtractPaths = Readonly<Record<string, string>>;

const MAX_ALIASES = 10;
const ROOTS = ['values', 'metadata', 'config', 'interrupts'];
const MAX_PATH_LENGTH = 500;
/** Of what a refusal repeats. */
const SHOWN_LENGTH = 100;

/** What is wrong with the request; null when nothing is. */
function extractIssue(paths: ExtractPaths): string | null {
  const entries = Object.entries(paths);
  if (entries.length > MAX_ALIASES) return `at most ${MAX_ALIASES} paths`;
  for (const [name, path] of entries) {
    const alias = name.slice(0, SHOWN_LENGTH);
    if (typeof path !== 'string') return `${alias}: expected a path like values.messages[-1].content`;
    const steps = stepsOf(path);
    if (steps === null)
      return `${alias}: "${path.slice(0, SHOWN_LENGTH)}" is not a path like values.messages[-1].content`;
    if (!ROOTS.includes(String(steps[0]))) return `${alias}: a path begins with ${ROOTS.join(', ')}`;
  }
  return null;
}

/** Checked as a whole, so that what is wrong is said once. */
export const extractField = z
  .custom<ExtractPaths>(
    (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
    'expected an object',
  )
  .superRefine((paths, context) => {
    const issue = extractIssue(paths);
    if (issue !== null) context.addIssue({ code: 'custom', message: issue });
  });

export function extractPaths(thread: Thread, paths: ExtractPaths): JsonObject {
  const roots: Record<string, () => JsonValue> = {
    values: once(() => parsed(thread.valuesJson)),
    interrupts: once(() => parsed(thread.interruptsJson)),
    metadata: () => thread.metadata,
    config: () => thread.config,
  };
  return Object.fromEntries(
    Object.entries(paths).map(([alias, path]) => {
      const [root, ...steps] = stepsOf(path) ?? [];
      let value: JsonValue = roots[String(root)]?.() ?? null;
      for (const step of steps) value = child(value, step);
      return [alias, value];
    }),
  );
}

function child(value: JsonValue, step: string | number): JsonValue {
  if (typeof value !== 'object' || value === null) return null;
  if (Array.isArray(value)) return typeof step === 'number' ? (value.at(step) ?? null) : null;
  const key = String(step);
  return Object.hasOwn(value, key) ? (value[key] ?? null) : null;
}

/** `values.messages[-1].content` in steps; null when it is none. */
function stepsOf(path: string): (string | number)[] | null {
  if (path === '' || path.length > MAX_PATH_LENGTH) return null;
  const steps: (string | number)[] = [];
  for (const part of path.split('.')) {
    const match = /^([^[\]]*)((?:\[-?\d{1,9}\])*)$/.exec(part);
    if (match === null || part === '') return null;
    const [, name = '', indexes = ''] = match;
    if (name !== '') steps.push(name);
    for (const index of indexes.matchAll(/-?\d+/g)) steps.push(Number(index[0]));
  }
  return steps;
}

function parsed(json: string | null): JsonValue {
  return json === null ? null : (JSON.parse(json) as JsonValue);
}

function once<T>(make: () => T): () => T {
  let made: { value: T } | null = null;
  return () => (made ??= { value: make() }).value;
}
