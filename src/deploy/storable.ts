/** What both engines can hold as text. */

const UNSTORABLE_CHARACTERS = /[\0\p{Surrogate}]/u;

/** PostgreSQL holds neither NUL nor, as JSON, half a surrogate pair; so neither engine is given one in a column of its own. */
export function isStorable(value: unknown): boolean {
  if (typeof value === 'string') return !UNSTORABLE_CHARACTERS.test(value);
  if (typeof value !== 'object' || value === null) return true;
  if (Array.isArray(value)) return value.every(isStorable);
  return Object.entries(value).every(([key, entry]) => isStorable(key) && isStorable(entry));
}

export const UNSTORABLE = 'contains a NUL character or an unpaired surrogate';
