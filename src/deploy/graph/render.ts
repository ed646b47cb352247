/**
 * JSON text of what graphs produce: messages as flat dicts (`{"type":"ai","content":…}`), never in their constructor form;
 * keys that the library uses internally are left out. Runs in graph workers.
 */
import type { JsonText } from '../store/model.ts';

interface Dictable {
  toDict(): { type: string; data: object };
}

function isDictable(value: object): value is Dictable {
  return 'toDict' in value && typeof value.toDict === 'function';
}

/** `this` is the object that holds the key; `value` has already been through `toJSON`, the raw one has not. */
function replace(this: unknown, key: string, value: unknown): unknown {
  if (key.startsWith('__pregel_')) return undefined;
  if (typeof value === 'bigint') return value.toString();
  if (value === null || typeof value !== 'object') return value;
  const raw = (this as Record<string, unknown>)[key];
  if (raw !== null && typeof raw === 'object') {
    if (isDictable(raw)) {
      const { type, data } = raw.toDict();
      return { ...data, type };
    }
    if (isConstructorForm(value)) return value.kwargs;
    if (raw instanceof Error) return { error: raw.name, message: raw.message };
  }
  return value;
}

function isConstructorForm(value: object): value is { kwargs: unknown } {
  return 'lc' in value && 'type' in value && value.type === 'constructor' && 'kwargs' in value;
}

export function render(value: unknown): JsonText {
  try {
    return (JSON.stringify(value, replace) ?? 'null') as JsonText;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return renderCyclic(value);
  }
}

/** Slow path for values that contain themselves: the second occurrence on a path becomes null. */
function renderCyclic(value: unknown): JsonText {
  const path: unknown[] = [];
  return (JSON.stringify(value, function (this: unknown, key: string, item: unknown): unknown {
    while (path.length > 0 && path[path.length - 1] !== this) path.pop();
    if (item !== null && typeof item === 'object') {
      if (path.includes(item)) return null;
      const replaced = replace.call(this, key, item);
      path.push(replaced);
      return replaced;
    }
    return replace.call(this, key, item);
  }) ?? 'null') as JsonText;
}

/** `{"error":"Class","message":"text"}`, the shape of every failure of a run on the wire. */
export function renderError(error: unknown): JsonText {
  if (error instanceof Error || (typeof error === 'object' && error !== null && 'message' in error)) {
    const { name, message } = error as { name?: unknown; message: unknown };
    return JSON.stringify({
      error: typeof name === 'string' && name !== '' ? name : 'Error',
      message: String(message),
    }) as JsonText;
  }
  return JSON.stringify({ error: 'Error', message: typeof error === 'string' ? error : render(error) }) as JsonText;
}
