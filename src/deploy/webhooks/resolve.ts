/** Names to addresses, by the system's resolver, the one that a plain connection would ask. */
import { lookup } from 'node:dns/promises';
import type { Resolver } from './policy.ts';

export const systemResolver: Resolver = {
  resolve: (hostname, signal) =>
    new Promise((resolve, reject) => {
      // The system's resolver cannot be stopped; its late answer is ignored.
      const stop = (): void => reject(new Error('timed out'));
      if (signal.aborted) return stop();
      signal.addEventListener('abort', stop, { once: true });
      lookup(hostname, { all: true })
        .then(resolve, reject)
        .finally(() => signal.removeEventListener('abort', stop));
    }),
};
