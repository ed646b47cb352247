/** Object wrapping: inputs and outputs are objects, whatever an emitter gave. */
import { isObject, object, type JsonObject } from './json.ts';
import type { Document } from './values.ts';

export type Side = 'input' | 'output';

export function wrap(document: Document | undefined, side: Side, runType: string): JsonObject | undefined {
  if (document === undefined) return undefined;
  if (document.kind === 'text') {
    return side === 'output' && runType === 'llm'
      ? object(['messages', [object(['role', 'assistant'], ['content', document.text])]])
      : object([side, document.text]);
  }
  const { value } = document;
  if (value === null || value === '') return undefined;
  if (isObject(value)) return value;
  if (Array.isArray(value) && value.length > 0 && value.every((item) => isObject(item) && item.has('role'))) {
    return object(['messages', value]);
  }
  return object([side, value]);
}
