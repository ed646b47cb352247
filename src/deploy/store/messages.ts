/** What the main thread and the store's thread say to each other. */
import type { StoreLocation } from './location.ts';
import type {
  AssistantRepository,
  CronRepository,
  DeploymentStore,
  ItemRepository,
  RunEventRepository,
  RunRepository,
  StateStore,
  ThreadRepository,
  WebhookRepository,
} from './repositories.ts';

export interface StoreThreadData {
  location: StoreLocation;
  instanceId: string;
  webhooksDisabled: boolean;
}

export type StoreCall =
  { kind: 'call'; id: number; repository: RepositoryName; method: string; args: unknown[] } | { kind: 'stop' };

export type StoreAnswer =
  | { kind: 'open' }
  | { kind: 'value'; id: number; value: unknown }
  | { kind: 'error'; id: number; message: string; code: string | undefined };

interface Repositories {
  assistants: AssistantRepository;
  threads: ThreadRepository;
  runs: RunRepository;
  events: RunEventRepository;
  crons: CronRepository;
  webhooks: WebhookRepository;
  state: Omit<StateStore, 'items'>;
  items: ItemRepository;
  store: Pick<DeploymentStore, 'ping'>;
}
export type RepositoryName = keyof Repositories;

/** Every method of every repository: a missing or a wrong one is a type error. */
export const STORE_METHODS: { [N in RepositoryName]: Record<keyof Repositories[N], true> } = {
  assistants: {
    create: true,
    ensureDefaults: true,
    get: true,
    patch: true,
    delete: true,
    search: true,
    count: true,
    versions: true,
    setLatest: true,
  },
  threads: {
    create: true,
    get: true,
    patch: true,
    delete: true,
    copy: true,
    search: true,
    count: true,
    setState: true,
    isBusy: true,
    bind: true,
    expired: true,
  },
  runs: {
    create: true,
    createBatch: true,
    claimOldest: true,
    renew: true,
    finish: true,
    release: true,
    recover: true,
    cancel: true,
    get: true,
    list: true,
    delete: true,
    countByStatus: true,
  },
  events: { append: true, after: true, lastSeq: true, result: true, expireAt: true, deleteExpired: true },
  crons: { create: true, get: true, patch: true, delete: true, search: true, count: true, fireDue: true },
  webhooks: { claimDue: true, defer: true, recordAttempt: true, forRun: true, deleteEndedBefore: true },
  state: { deleteThread: true, deleteRun: true, copyThread: true, keepLatest: true },
  items: { put: true, get: true, delete: true, search: true, namespaces: true, deleteExpired: true },
  store: { ping: true },
};
