/** The visitor's key: kept for this tab and its reloads, sent as `x-api-key`, never put into a link or a log. */
import { signal, type Signal } from '@preact/signals';

export interface KeyStore {
  /** Empty: none. */
  readonly value: Signal<string>;
  /** Whether the process refused what was sent: the sign-in page is due. */
  readonly wanted: Signal<boolean>;
  set(key: string): void;
  clear(): void;
}

const NAME = 'collector-proxy-key';

export function createKeyStore(): KeyStore {
  const value = signal(sessionStorage.getItem(NAME) ?? '');
  const wanted = signal(false);
  return {
    value,
    wanted,
    set: (key) => {
      sessionStorage.setItem(NAME, key);
      value.value = key;
      wanted.value = false;
    },
    clear: () => {
      sessionStorage.removeItem(NAME);
      value.value = '';
    },
  };
}
