/** API keys: who uploads. The key itself is never stored, only the name of the tenant it stands for. */
import { createHash } from 'node:crypto';
import type { BackendKey, BackendSettings } from './settings.ts';

export type KeyVerdict =
  { readonly kind: 'tenant'; readonly tenant: string } | { readonly kind: 'unauthenticated' | 'forbidden' };

/** The tenant of a key that no setting names. */
export function tenantOfKey(key: string): string {
  return `key-${createHash('sha256').update(key).digest('hex').slice(0, 12)}`;
}

export function createKeyring(
  settings: Pick<BackendSettings, 'keys' | 'unknownKey'>,
): (key: string | undefined) => KeyVerdict {
  const known = settings.keys === null ? null : new Map(settings.keys.map((entry) => [entry.key, verdictOf(entry)]));
  return (key) => {
    if (key === undefined || key === '') return { kind: 'unauthenticated' };
    if (known === null) return { kind: 'tenant', tenant: tenantOfKey(key) };
    return known.get(key) ?? { kind: settings.unknownKey };
  };
}

function verdictOf(entry: BackendKey): KeyVerdict {
  return entry.refuse === undefined
    ? { kind: 'tenant', tenant: entry.tenant ?? tenantOfKey(entry.key) }
    : { kind: entry.refuse };
}
