/**
 * The stores that tests run on: SQLite always (as it is, and behind its thread where asked for), PostgreSQL where DATABASE_URL_TEST names a server on which databases may be made.
 * Each store is a database of its own and is gone afterwards.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'node:test';
import pg from 'pg';
import type { Clock } from '../src/core/lifecycle.ts';
import { systemClock } from '../src/core/lifecycle.ts';
import { silentLog } from '../src/core/log.ts';
import { createIdSource } from '../src/deploy/ids.ts';
import type { IdSource } from '../src/deploy/ids.ts';
import type { StoreLocation } from '../src/deploy/store/location.ts';
import { openDeploymentStore } from '../src/deploy/store/open.ts';
import { openRemoteStore } from '../src/deploy/store/remote.ts';
import type { DeploymentStore } from '../src/deploy/store/repositories.ts';

export interface TestDatabase {
  readonly location: StoreLocation;
  readonly ids: IdSource;
  /** Opens the store; once more on the same data after `stop`. */
  open(s?: { instanceId?: string; webhooksDisabled?: boolean; clock?: Clock }): Promise<DeploymentStore>;
  remove(): Promise<void>;
}

export interface TestEngine {
  readonly name: 'sqlite' | 'postgres';
  create(): Promise<TestDatabase>;
}

const STORE_WORKER = new URL('../workers/store.ts', import.meta.url);
const server = process.env['DATABASE_URL_TEST'] ?? '';

export function describeOnEachEngine(
  title: string,
  suite: (engine: TestEngine) => void,
  s: { alsoThreaded?: boolean } = {},
): void {
  describe(`${title} (SQLite)`, () => suite({ name: 'sqlite', create: () => createSqlite(false) }));
  if (s.alsoThreaded === true) {
    describe(`${title} (SQLite in its thread)`, () => suite({ name: 'sqlite', create: () => createSqlite(true) }));
  }
  if (server === '') {
    console.warn(`DATABASE_URL_TEST is not set: NOT TESTED ON POSTGRESQL: ${title}`);
    describe(`${title} (PostgreSQL)`, { skip: 'DATABASE_URL_TEST is not set' }, () => undefined);
    return;
  }
  describe(`${title} (PostgreSQL)`, () => suite({ name: 'postgres', create: createPostgres }));
}

function database(location: StoreLocation, remove: () => Promise<void>, isThreaded = false): TestDatabase {
  const ids = createIdSource(systemClock);
  return {
    location,
    ids,
    open: (s = {}) => {
      const data = { location, instanceId: s.instanceId ?? 'here', webhooksDisabled: s.webhooksDisabled ?? false };
      return isThreaded
        ? openRemoteStore({ workerUrl: STORE_WORKER, data, log: silentLog })
        : openDeploymentStore({ ...data, ids, clock: s.clock ?? systemClock, log: silentLog });
    },
    remove,
  };
}

async function createSqlite(isThreaded: boolean): Promise<TestDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'deploy-'));
  const location: StoreLocation = { engine: 'sqlite', folder, synchronous: 'normal' };
  return database(location, () => rm(folder, { recursive: true }), isThreaded);
}

async function createPostgres(): Promise<TestDatabase> {
  const name = `deploy_${randomBytes(8).toString('hex')}`;
  const onServer = async (statement: string): Promise<void> => {
    const client = new pg.Client({ connectionString: server });
    await client.connect();
    await client.query(statement);
    await client.end();
  };
  await onServer(`create database ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return database({ engine: 'postgres', url: url.href, poolSize: 8 }, () =>
    onServer(`drop database ${name} with (force)`),
  );
}
