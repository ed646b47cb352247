/** Filters of store searches: equality by key, or the library's comparison operators. Runs over parsed values, never as SQL. */
import { isDeepStrictEqual } from 'node:util';
import type { JsonObject, JsonValue } from './model.ts';

const OPERATORS: Readonly<Record<string, (value: JsonValue | undefined, wanted: JsonValue) => boolean>> = {
  $eq: (value, wanted) => isDeepStrictEqual(value, wanted),
  $ne: (value, wanted) => !isDeepStrictEqual(value, wanted),
  $gt: (value, wanted) => compares(value, wanted, (order) => order > 0),
  $gte: (value, wanted) => compares(value, wanted, (order) => order >= 0),
  $lt: (value, wanted) => compares(value, wanted, (order) => order < 0),
  $lte: (value, wanted) => compares(value, wanted, (order) => order <= 0),
  $in: (value, wanted) => Array.isArray(wanted) && wanted.some((entry) => isDeepStrictEqual(value, entry)),
  $nin: (value, wanted) => Array.isArray(wanted) && !wanted.some((entry) => isDeepStrictEqual(value, entry)),
  $exists: (value, wanted) => (value !== undefined) === (wanted === true),
};

export function matchesItemFilter(value: JsonObject, filter: JsonObject): boolean {
  return Object.entries(filter).every(([key, wanted]) => {
    const found = Object.hasOwn(value, key) ? value[key] : undefined;
    const operators = operatorsOf(wanted);
    if (operators === null) return isDeepStrictEqual(found, wanted);
    return operators.every(([name, operand]) => OPERATORS[name]?.(found, operand) ?? false);
  });
}

/** The name of an operator that does not exist; null when all do. */
export function unknownOperator(filter: JsonObject): string | null {
  for (const wanted of Object.values(filter)) {
    const unknown = operatorsOf(wanted)?.find(([name]) => !Object.hasOwn(OPERATORS, name));
    if (unknown !== undefined) return unknown[0];
  }
  return null;
}

function operatorsOf(wanted: JsonValue): [string, JsonValue][] | null {
  if (typeof wanted !== 'object' || wanted === null || Array.isArray(wanted)) return null;
  const entries = Object.entries(wanted);
  return entries.length > 0 && entries.every(([name]) => name.startsWith('$')) ? entries : null;
}

/** Only numbers with numbers and texts with texts. */
function compares(value: JsonValue | undefined, wanted: JsonValue, test: (order: number) => boolean): boolean {
  if (typeof value === 'number' && typeof wanted === 'number') return test(value - wanted);
  if (typeof value === 'string' && typeof wanted === 'string')
    return test(value < wanted ? -1 : value > wanted ? 1 : 0);
  return false;
}
