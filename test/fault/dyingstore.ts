/** The store's thread, but for one call that ends it in the middle. */
import { parentPort } from 'node:worker_threads';

// First, so that it sees the message before the store does.
parentPort?.on('message', (message: { method?: string }) => {
  if (message.method === 'countByStatus') process.exit(1);
});
await import('../../workers/store.ts');
