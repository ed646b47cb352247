/**
 * The store of the deployment API. Comes in: calls of the repositories. Goes out: committed rows. The main thread owns it. When the
 * database is behind, callers wait (SQLite: the call itself, PostgreSQL: the pool, bounded). On stop, connections close after
 * the transactions in progress.
 */
import { mkdirSync } from 'node:fs';
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import type { Clock } from '../../core/lifecycle.ts';
import type { Log } from '../../core/log.ts';
import type { IdSource } from '../ids.ts';
import { createAssistantRepository } from './assistants.ts';
import { createCronRepository } from './crons.ts';
import type { ControlDatabase, StateDatabase } from './database.ts';
import { createWebhookRepository } from './deliveries.ts';
import { createRunEventRepository } from './events.ts';
import { createForeignChanges } from './listen.ts';
import { controlPath, stateLocation } from './location.ts';
import type { StoreLocation } from './location.ts';
import { migrate } from './migrations.ts';
import type { DeploymentStore, ForeignChange } from './repositories.ts';
import { createRunCreator } from './runcreate.ts';
import { createRunEnder } from './runend.ts';
import { createRunRepository } from './runs.ts';
import type { ControlTables, StateTables } from './schema.ts';
import { createStateStore } from './state.ts';
import { createThreadRepository } from './threads.ts';

export interface StoreSettings {
  location: StoreLocation;
  ids: IdSource;
  /** Names this process among those that share a PostgreSQL. */
  instanceId: string;
  webhooksDisabled: boolean;
  clock: Clock;
  log: Log;
}

export async function openDeploymentStore(settings: StoreSettings): Promise<DeploymentStore> {
  const listeners = new Set<(change: ForeignChange) => void>();
  const opened = await openDatabases(settings, (change) => {
    for (const listener of listeners) listener(change);
  });
  const { control } = opened;
  const state = createStateStore(opened.state);
  const ender = createRunEnder(control, state, settings.ids);
  const creator = createRunCreator(control, ender);
  let stopped: Promise<void> | null = null;
  return {
    engine: control.engine,
    assistants: createAssistantRepository(control),
    threads: createThreadRepository(control, state),
    runs: createRunRepository(control, creator, ender, state),
    events: createRunEventRepository(control),
    crons: createCronRepository(control, creator, settings),
    webhooks: createWebhookRepository(control),
    state,
    ping: async () => {
      await sql`select 1`.execute(control.db);
    },
    onForeignChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    stop: () => (stopped ??= opened.close()),
  };
}

interface OpenedDatabases {
  control: ControlDatabase;
  state: StateDatabase;
  close(): Promise<void>;
}

async function openDatabases(
  settings: StoreSettings,
  onChange: (change: ForeignChange) => void,
): Promise<OpenedDatabases> {
  const { location } = settings;
  return location.engine === 'sqlite'
    ? openSqliteDatabases(location)
    : openPostgresDatabase(location.url, location.poolSize, settings, onChange);
}

async function openSqliteDatabases(location: StoreLocation & { engine: 'sqlite' }): Promise<OpenedDatabases> {
  const { openSqlite } = await import('./sqlite.ts');
  try {
    // Conversations are nobody else's business.
    mkdirSync(location.folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new Error(`${location.folder} cannot be made: ${reasonOf(error)}; set DATA_DIR`, { cause: error });
  }
  const { synchronous } = location;
  const place = stateLocation(location);
  const control = openSqlite<ControlTables>({ path: controlPath(location.folder), synchronous, exclusive: true });
  const state = openSqlite<StateTables>({
    path: place.engine === 'sqlite' ? place.path : '',
    synchronous,
    exclusive: false,
  });
  const close = async (): Promise<void> => {
    await control.destroy();
    await state.destroy();
  };
  try {
    // Opens the file, so that what is wrong with it is told as such and not as a failed migration.
    await sql`select 1`.execute(control);
    await migrate(control, 'sqlite', 'control');
    await migrate(state, 'sqlite', 'state');
  } catch (error) {
    await close();
    throw error;
  }
  return {
    control: { engine: 'sqlite', db: control, notify: () => Promise.resolve() },
    state: { engine: 'sqlite', db: state },
    close,
  };
}

/** A name with several addresses fails once for each, under an error without words. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.map(reasonOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}

async function openPostgresDatabase(
  url: string,
  poolSize: number,
  settings: StoreSettings,
  onChange: (change: ForeignChange) => void,
): Promise<OpenedDatabases> {
  const { createPool, openPostgres } = await import('./postgres.ts');
  const pool = createPool(url, poolSize);
  pool.on('error', (error) => settings.log.warn({ err: error }, 'idle database connection lost'));
  const db = openPostgres<ControlTables & StateTables>(pool);
  const changes = createForeignChanges({ ...settings, url, onChange });
  const close = async (): Promise<void> => {
    await changes.stop();
    await db.destroy();
  };
  try {
    await sql`select 1`.execute(db).catch((error: unknown) => {
      throw new Error(`DATABASE_URL: PostgreSQL cannot be used: ${reasonOf(error)}`, { cause: error });
    });
    await migrate(db, 'postgres', 'control');
    await migrate(db, 'postgres', 'state');
    await changes.start();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    control: {
      engine: 'postgres',
      db: db as unknown as Kysely<ControlTables>,
      notify: (on, change) => changes.tell(on, change),
    },
    state: { engine: 'postgres', db: db as unknown as Kysely<StateTables> },
    close,
  };
}
