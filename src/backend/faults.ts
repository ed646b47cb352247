/** Scripted trouble for tests: rules that uploads run into, first match wins. Owned by the backend's thread. */
import type { FaultRule, FaultState } from './api.ts';
import { tenantOfKey } from './keys.ts';

export interface Faults {
  /** Returns what is wrong with the rule, or null after adding it. */
  add(rule: unknown): string | null;
  clear(): void;
  list(): FaultState[];
  /** The rule for an upload with this key, counted as hit. */
  take(key: string): FaultRule | null;
}

const MAX_RULE_COUNT = 1000;

/** Member → the type of its value. */
const MEMBERS: Readonly<Record<string, string>> = {
  status: 'number',
  body: 'string',
  retry_after: 'string',
  delay_ms: 'number',
  reset: 'boolean',
  when: 'string',
  key: 'string',
  count: 'number',
} satisfies Record<keyof FaultRule, string>;

export function createFaults(): Faults {
  /** The key is kept as its fingerprint. */
  let active: { rule: FaultRule; fingerprint: string | null; hitCount: number }[] = [];
  const remaining = (rule: FaultRule, hitCount: number): number | null =>
    rule.count === undefined ? null : rule.count - hitCount;
  return {
    add: (value) => {
      const problem = problemOf(value);
      if (problem !== null) return problem;
      if (active.length >= MAX_RULE_COUNT) return `more than ${MAX_RULE_COUNT} rules`;
      const { key, ...rule } = value as FaultRule;
      active.push({ rule, fingerprint: key === undefined ? null : tenantOfKey(key), hitCount: 0 });
      return null;
    },
    clear: () => {
      active = [];
    },
    list: () =>
      active.map(({ rule, hitCount }) => ({
        ...rule,
        hit_count: hitCount,
        remaining_count: remaining(rule, hitCount),
      })),
    take: (key) => {
      if (active.length === 0) return null;
      const fingerprint = tenantOfKey(key);
      const found = active.find(
        (entry) =>
          (entry.fingerprint ?? fingerprint) === fingerprint && (remaining(entry.rule, entry.hitCount) ?? 1) > 0,
      );
      if (found === undefined) return null;
      found.hitCount++;
      return found.rule;
    },
  };
}

function problemOf(value: unknown): string | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return 'a rule is an object';
  for (const [name, member] of Object.entries(value)) {
    const type = Object.hasOwn(MEMBERS, name) ? MEMBERS[name] : undefined;
    if (type === undefined) return `unknown member "${name}"`;
    if (typeof member !== type) return `${name} must be a ${type}`;
  }
  const { status, when, delay_ms: delayMs, count, retry_after: retryAfter } = value as FaultRule;
  if (status !== undefined && !(Number.isInteger(status) && status >= 200 && status <= 599)) {
    return 'status must be from 200 to 599';
  }
  if (when !== undefined && when !== 'before' && when !== 'after') return 'when must be before or after';
  if (delayMs !== undefined && !(delayMs >= 0 && delayMs <= 600_000)) return 'delay_ms must be from 0 to 600000';
  if (count !== undefined && !(Number.isInteger(count) && count > 0)) return 'count must be a whole number from 1';
  if (retryAfter !== undefined && !/^[\x20-\x7e]*$/.test(retryAfter)) return 'retry_after must be printable';
  return null;
}
