/** Versions of both schemas. A released migration never changes; the next one is appended. */
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';
import { Migrator } from 'kysely/migration';

export type Engine = 'sqlite' | 'postgres';

/** What the engines call the same thing. `C` collation makes text sort by bytes, as SQLite does. */
function words(engine: Engine): { ms: string; json: string; bytes: string; text: string } {
  return engine === 'sqlite'
    ? { ms: 'integer', json: 'text', bytes: 'blob', text: 'text' }
    : { ms: 'bigint', json: 'jsonb', bytes: 'bytea', text: 'text collate "C"' };
}

/** Brings the schema up to date; throws what stopped it. Two processes that start together take turns (advisory lock). */
export async function migrate<T>(db: Kysely<T>, engine: Engine, which: 'control' | 'state'): Promise<void> {
  const migrator = new Migrator({
    db: db as Kysely<unknown>,
    provider: {
      getMigrations: () => Promise.resolve(which === 'control' ? controlMigrations(engine) : stateMigrations(engine)),
    },
    migrationTableName: `deploy_${which}_migration`,
    migrationLockTableName: `deploy_${which}_migration_lock`,
  });
  const { error } = await migrator.migrateToLatest();
  if (error !== undefined) throw new Error(`The ${which} schema could not be brought up to date.`, { cause: error });
}

function controlMigrations(engine: Engine): Record<string, Migration> {
  const { ms, json, text } = words(engine);
  return {
    '0001-tables': statements(
      `create table deploy_assistant (
        assistant_id ${text} primary key, graph_id ${text} not null, name ${text} not null, description text,
        version integer not null, config ${json} not null, context ${json} not null, metadata ${json} not null,
        created_ms ${ms} not null, updated_ms ${ms} not null)`,
      `create index deploy_assistant_graph on deploy_assistant (graph_id)`,
      `create table deploy_assistant_version (
        assistant_id ${text} not null references deploy_assistant (assistant_id) on delete cascade,
        version integer not null, graph_id ${text} not null, name ${text} not null, description text,
        config ${json} not null, context ${json} not null, metadata ${json} not null, created_ms ${ms} not null,
        primary key (assistant_id, version))`,

      `create table deploy_thread (
        thread_id ${text} primary key, status ${text} not null, metadata ${json} not null, config ${json} not null,
        values_json text, interrupts_json text, error_json text, has_next integer not null, temporary integer not null,
        created_ms ${ms} not null, updated_ms ${ms} not null, state_updated_ms ${ms},
        ttl_strategy text, ttl_ms ${ms}, expires_ms ${ms})`,
      `create index deploy_thread_updated on deploy_thread (updated_ms)`,
      `create index deploy_thread_created on deploy_thread (created_ms)`,
      `create index deploy_thread_expires on deploy_thread (expires_ms) where expires_ms is not null`,

      `create table deploy_run (
        run_id ${text} primary key,
        thread_id ${text} not null references deploy_thread (thread_id) on delete cascade,
        assistant_id ${text} not null, graph_id ${text} not null, status ${text} not null, multitask ${text} not null,
        metadata ${json} not null, kwargs text not null, webhook text, temporary integer not null, resumable integer not null,
        attempt integer not null, not_before_ms ${ms} not null, cancel_action text, owner_id text, lease_until_ms ${ms},
        created_ms ${ms} not null, updated_ms ${ms} not null, started_ms ${ms}, ended_ms ${ms}, error_json text)`,
      `create index deploy_run_thread on deploy_run (thread_id, run_id)`,
      `create index deploy_run_pending on deploy_run (run_id) where status = 'pending'`,
      `create index deploy_run_inflight on deploy_run (thread_id) where status in ('pending', 'running')`,
      // At most one running run on a thread, whoever claims.
      `create unique index deploy_run_running on deploy_run (thread_id) where status = 'running'`,
      // Outlive their run where it was temporary: its stream is replayed until they expire.
      `create table deploy_run_event (
        run_id ${text} not null,
        seq integer not null, event_id text not null, event text not null, data text not null, expires_ms ${ms} not null,
        primary key (run_id, seq))`,
      `create index deploy_run_event_expires on deploy_run_event (expires_ms)`,

      `create table deploy_cron (
        cron_id ${text} primary key,
        assistant_id ${text} not null references deploy_assistant (assistant_id) on delete cascade,
        thread_id ${text} references deploy_thread (thread_id) on delete cascade,
        schedule text not null, timezone text, enabled integer not null, on_run_completed text not null,
        end_ms ${ms}, next_run_ms ${ms}, metadata ${json} not null, payload text not null,
        created_ms ${ms} not null, updated_ms ${ms} not null)`,
      `create index deploy_cron_next on deploy_cron (next_run_ms) where next_run_ms is not null`,
      `create index deploy_cron_assistant on deploy_cron (assistant_id)`,
      `create index deploy_cron_thread on deploy_cron (thread_id)`,

      // Outlives its run: a temporary or deleted run still has deliveries to make and to account for.
      `create table deploy_delivery (
        delivery_id ${text} primary key, run_id ${text} not null, thread_id ${text} not null, url text not null,
        origin text not null,
        payload text not null, status ${text} not null, attempt_count integer not null, next_attempt_ms ${ms} not null,
        created_ms ${ms} not null, updated_ms ${ms} not null)`,
      `create index deploy_delivery_run on deploy_delivery (run_id)`,
      `create index deploy_delivery_due on deploy_delivery (next_attempt_ms) where status = 'pending'`,
      `create table deploy_attempt (
        delivery_id ${text} not null references deploy_delivery (delivery_id) on delete cascade,
        number integer not null, started_ms ${ms} not null, duration_ms ${ms} not null, status_code integer, error text,
        primary key (delivery_id, number))`,
      ...(engine === 'sqlite' ? [] : [...SAFE_JSONB, ...CONTROL_GIN]),
    ),
    '0002-run-reader': statements(`alter table deploy_run add column reader_id ${text}`),
  };
}

function stateMigrations(engine: Engine): Record<string, Migration> {
  const { ms, bytes, text } = words(engine);
  return {
    '0001-tables': statements(
      `create table deploy_checkpoint (
        thread_id ${text} not null, checkpoint_ns ${text} not null, checkpoint_id ${text} not null, parent_id text,
        run_id ${text}, type text not null, checkpoint ${bytes} not null, holders text not null,
        delta_type text not null, delta ${bytes} not null, metadata_type text not null, metadata text not null,
        primary key (thread_id, checkpoint_ns, checkpoint_id))`,
      `create table deploy_write (
        thread_id ${text} not null, checkpoint_ns ${text} not null, checkpoint_id ${text} not null, task_id ${text} not null,
        idx integer not null, channel text not null, type text not null, value ${bytes} not null,
        run_id ${text} not null,
        primary key (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, run_id))`,
      `create table deploy_item (
        path ${text} not null, key ${text} not null, value text not null,
        created_ms ${ms} not null, updated_ms ${ms} not null, ttl_ms ${ms}, expires_ms ${ms},
        primary key (path, key))`,
      `create index deploy_item_expires on deploy_item (expires_ms) where expires_ms is not null`,
      ...(engine === 'sqlite' ? [] : SAFE_JSONB),
    ),
  };
}

/** Text to jsonb where the text may be anything: null instead of an error. */
const SAFE_JSONB = [
  `create or replace function deploy_jsonb(document text) returns jsonb language plpgsql immutable as $$
     begin return document::jsonb; exception when others then return null; end $$`,
];
const CONTROL_GIN = [
  `create index deploy_thread_metadata on deploy_thread using gin (metadata jsonb_path_ops)`,
  `create index deploy_assistant_metadata on deploy_assistant using gin (metadata jsonb_path_ops)`,
];

function statements(...list: readonly string[]): Migration {
  return {
    up: async (db) => {
      for (const statement of list) await sql.raw(statement).execute(db);
    },
  };
}
