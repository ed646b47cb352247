/**
 * The store's side of its thread. Comes in: calls by message. Goes out: their values or errors. On `stop`, calls in progress end, then
 * the databases close and the thread ends.
 */
import type { MessagePort } from 'node:worker_threads';
import { STORE_METHODS } from './messages.ts';
import type { RepositoryName, StoreAnswer, StoreCall } from './messages.ts';
import type { DeploymentStore } from './repositories.ts';

export function serveStore(port: MessagePort, store: DeploymentStore): void {
  const inProgress = new Set<Promise<void>>();
  const post = (answer: StoreAnswer): void => port.postMessage(answer);

  const targets: Record<RepositoryName, object> = {
    assistants: store.assistants,
    threads: store.threads,
    runs: store.runs,
    events: store.events,
    crons: store.crons,
    webhooks: store.webhooks,
    state: store.state,
    items: store.state.items,
    store,
  };

  const answer = async (call: Extract<StoreCall, { kind: 'call' }>): Promise<void> => {
    try {
      const method = methodOf(targets, call.repository, call.method);
      post({ kind: 'value', id: call.id, value: await method(...call.args) });
    } catch (error) {
      const { message, code } = error as { message?: unknown; code?: unknown };
      post({
        kind: 'error',
        id: call.id,
        message: typeof message === 'string' ? message : 'The store failed.',
        code: typeof code === 'string' ? code : undefined,
      });
    }
  };

  port.on('message', (call: StoreCall) => {
    if (call.kind === 'call') {
      const work = answer(call).finally(() => inProgress.delete(work));
      inProgress.add(work);
      return;
    }
    void Promise.all(inProgress)
      .then(() => store.stop())
      .finally(() => port.close());
  });
  post({ kind: 'open' });
}

function methodOf(
  targets: Record<RepositoryName, object>,
  repository: RepositoryName,
  method: string,
): (...args: unknown[]) => Promise<unknown> {
  if (!Object.hasOwn(STORE_METHODS[repository], method)) throw new Error(`The store has no ${repository}.${method}.`);
  const target = targets[repository] as Record<string, (...args: unknown[]) => Promise<unknown>>;
  return (...args) => target[method]?.(...args) ?? Promise.reject(new Error(`No ${method}.`));
}
