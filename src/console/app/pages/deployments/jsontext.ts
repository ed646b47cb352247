/** JSON that people type: what it says, or where it stops making sense. */
import { parseExactJson } from '../../parts/exactjson.ts';

export type Typed = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly problem: string };

/** `asked`: an object is wanted, or anything goes. */
export function readJson(text: string, asked: 'object' | 'any'): Typed {
  let value: unknown;
  try {
    value = parseExactJson(text);
  } catch (error) {
    return { ok: false, problem: problemOf(text, error instanceof Error ? error.message : String(error)) };
  }
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value);
  if (asked === 'object' && !isObject) return { ok: false, problem: 'An object is wanted: { … }' };
  return { ok: true, value };
}

/** JSON where it is JSON, otherwise the text itself: `yes` needs no quotes. */
export function readAnswer(text: string): unknown {
  const typed = readJson(text, 'any');
  return typed.ok ? typed.value : text;
}

/** Browsers tell the place in their own ways, or not at all; people look for line and column. */
function problemOf(text: string, message: string): string {
  if (text.trim() === '') return 'Empty: JSON is wanted';
  const before = text.slice(0, firstWrong(text)).split('\n');
  return `Line ${before.length}, column ${(before.at(-1)?.length ?? 0) + 1}: ${cleaned(message)}`;
}

/** The length of the longest beginning that could still become JSON. */
function firstWrong(text: string): number {
  let good = 0;
  let bad = text.length + 1;
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (mayGoOn(text.slice(0, middle))) good = middle;
    else bad = middle;
  }
  return good;
}

/** Whether all that is wrong with it is that it ends. */
function mayGoOn(beginning: string): boolean {
  try {
    JSON.parse(beginning);
    return true;
  } catch (error) {
    const message = error instanceof Error ? error.message : '';
    const position = /position (\d+)/.exec(message)?.[1];
    return /end of|unterminated/i.test(message) || Number(position ?? -1) >= beginning.length;
  }
}

function cleaned(message: string): string {
  return message.replace(/ (in JSON )?at (position|line) .*$/, '').replace(/, "[\s\S]*" is not valid JSON$/, '');
}

/** Every field of a schema, empty, for people to fill in. */
export function skeleton(schema: Readonly<Record<string, unknown>> | null): string {
  const properties = schema?.['properties'];
  if (typeof properties !== 'object' || properties === null) return '{}';
  return JSON.stringify(
    Object.fromEntries(Object.entries(properties).map(([name, field]) => [name, emptyOf(field)])),
    null,
    2,
  );
}

function emptyOf(field: unknown): unknown {
  const type = typeof field === 'object' && field !== null ? (field as { type?: unknown }).type : undefined;
  switch (type) {
    case 'number':
    case 'integer':
      return 0;
    case 'boolean':
      return false;
    case 'array':
      return [];
    case 'object':
      return {};
    default:
      return '';
  }
}
