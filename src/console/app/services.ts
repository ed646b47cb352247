/** What every part of the page may use; made once, handed down by context. */
import { signal, type Signal } from '@preact/signals';
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import type { ConsoleFacts } from '../facts.ts';
import { createClient, type Client } from './api/client.ts';
import { createKeyStore, type KeyStore } from './api/key.ts';
import { createKeyboard, type Keyboard } from './shell/keyboard.ts';
import { createRouter, type Router } from './shell/router.ts';
import { createToasts, type Toasts } from './shell/toasts.tsx';

export interface Services {
  /** What this process serves on the page's own origin: `/api/…`. */
  readonly api: Client;
  /** The deployment API, wherever it is served: paths as in `/openapi.json`. */
  readonly deployment: Client;
  readonly key: KeyStore;
  /** Null until the process has told. */
  readonly facts: Signal<ConsoleFacts | null>;
  readonly router: Router;
  readonly keyboard: Keyboard;
  readonly toasts: Toasts;
}

export function createServices(): Services {
  const key = createKeyStore();
  const facts = signal<ConsoleFacts | null>(null);
  const deploymentBase = (): string => {
    const served = facts.peek()?.deployment ?? null;
    if (served === null) return '';
    const origin = served.port === null ? '' : `${location.protocol}//${location.hostname}:${served.port}`;
    return `${origin}${served.prefix.replace(/\/+$/, '')}`;
  };
  return {
    api: createClient({ key, base: () => '' }),
    deployment: createClient({ key, base: deploymentBase }),
    key,
    facts,
    router: createRouter(),
    keyboard: createKeyboard(),
    toasts: createToasts(),
  };
}

export const ServicesContext = createContext<Services | null>(null);

export function useServices(): Services {
  const services = useContext(ServicesContext);
  if (services === null) throw new Error('a part of the page was drawn outside of it');
  return services;
}
