/**
 * The embedded store, in a thread of its own: SQLite answers synchronously, and a search over many threads or the copying of its
 * write-ahead log would hold up every socket of the main thread. Comes in: calls of the repositories. Goes out: messages, answered in
 * the order in which the store is done. What waits is bounded by the requests that wait for it. When the thread dies, calls in
 * progress fail (what they asked for may have happened) and the next call opens a new one. On stop, calls in progress end first.
 */
import { Worker } from 'node:worker_threads';
import type { Log } from '../../core/log.ts';
import { SECOND_MS } from '../../core/units.ts';
import { STORE_METHODS } from './messages.ts';
import type { RepositoryName, StoreAnswer, StoreCall, StoreThreadData } from './messages.ts';
import type { DeploymentStore } from './repositories.ts';

export interface RemoteStoreSettings {
  workerUrl: URL;
  data: StoreThreadData;
  log: Log;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

interface Link {
  readonly worker: Worker;
  readonly waiting: Map<number, Waiting>;
  readonly exited: Promise<void>;
}

/** The store has nothing to wait for but itself. */
const STOP_MS = 5 * SECOND_MS;

export async function openRemoteStore(settings: RemoteStoreSettings): Promise<DeploymentStore> {
  let link: Promise<Link> | null = null;
  let stopped: Promise<void> | null = null;
  let callCount = 0;

  const open = (): Promise<Link> => {
    const opening = spawn(settings, () => {
      if (link === opening) link = null;
      if (stopped === null) settings.log.error({}, 'the store’s thread has died');
    });
    opening.catch(() => {
      if (link === opening) link = null;
    });
    return opening;
  };

  const call = async (repository: RepositoryName, method: string, args: unknown[]): Promise<unknown> => {
    if (stopped !== null) throw new Error('The store is closed.');
    const { worker, waiting } = await (link ??= open());
    const id = ++callCount;
    return new Promise((resolve, reject) => {
      waiting.set(id, { resolve, reject });
      worker.postMessage({ kind: 'call', id, repository, method, args } satisfies StoreCall);
    });
  };

  const repository = <N extends RepositoryName>(name: N): Record<string, (...args: unknown[]) => Promise<unknown>> =>
    Object.fromEntries(
      Object.keys(STORE_METHODS[name]).map((method) => [method, (...args: unknown[]) => call(name, method, args)]),
    );

  // The table of methods is checked against the interfaces where it stands.
  const repositories = Object.fromEntries(
    (Object.keys(STORE_METHODS) as RepositoryName[]).map((name) => [name, repository(name)]),
  ) as unknown as Pick<
    DeploymentStore,
    'assistants' | 'threads' | 'runs' | 'events' | 'crons' | 'webhooks' | 'state'
  > & {
    items: DeploymentStore['state']['items'];
    store: Pick<DeploymentStore, 'ping'>;
  };
  link = open();
  await link;

  const { items, store, state, ...others } = repositories;
  return {
    engine: 'sqlite',
    ...others,
    state: { ...state, items },
    ping: () => store.ping(),
    // One process alone opens these files.
    onForeignChange: () => () => undefined,
    stop: () =>
      (stopped ??= (async () => {
        const last = await link?.catch(() => null);
        if (!last) return;
        last.worker.postMessage({ kind: 'stop' } satisfies StoreCall);
        const timer = setTimeout(() => void last.worker.terminate(), STOP_MS);
        await last.exited;
        clearTimeout(timer);
      })()),
  };
}

/** Resolves when the databases are open; rejects with why they cannot be. */
function spawn(settings: RemoteStoreSettings, onExit: () => void): Promise<Link> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(settings.workerUrl, { workerData: settings.data, name: 'store', env: {} });
    const waiting = new Map<number, Waiting>();
    let failure: Error | null = null;
    const exited = new Promise<void>((ended) => {
      worker.once('exit', () => {
        const lost = failure ?? new Error('The store’s thread ended.');
        reject(lost);
        for (const one of waiting.values()) one.reject(lost);
        waiting.clear();
        onExit();
        ended();
      });
    });
    worker.on('error', (error) => {
      failure = error instanceof Error ? error : new Error(String(error));
    });
    worker.on('message', (answer: StoreAnswer) => {
      if (answer.kind === 'open') return resolve({ worker, waiting, exited });
      const one = waiting.get(answer.id);
      waiting.delete(answer.id);
      if (answer.kind === 'value') one?.resolve(answer.value);
      else one?.reject(Object.assign(new Error(answer.message), { code: answer.code }));
    });
  });
}
