/** One opened database as the repositories share it. */
import type { Kysely } from 'kysely';
import type { Engine } from './migrations.ts';
import type { ForeignChange } from './repositories.ts';
import type { ControlTables, StateTables } from './schema.ts';

export interface ControlDatabase {
  readonly engine: Engine;
  readonly db: Kysely<ControlTables>;
  /**
   * Tells other processes, when the transaction commits (PostgreSQL; nothing on SQLite, where there is no other process).
   */
  notify(on: Kysely<ControlTables>, change: ForeignChange): Promise<void>;
}

export interface StateDatabase {
  readonly engine: Engine;
  readonly db: Kysely<StateTables>;
}

/**
 * Locks the selected rows until the transaction ends. SQLite has no such clause and needs none: a transaction holds the one write
 * lock from its first statement on.
 */
export function locked<Q extends { forUpdate(): Q }>(engine: Engine, query: Q): Q {
  return engine === 'postgres' ? query.forUpdate() : query;
}
