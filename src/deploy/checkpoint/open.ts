/** Opens the state database for a thread of its own: one SQLite connection, or a small pool. The schema is there already. */
import type { StateDatabase } from '../store/database.ts';
import type { StateLocation } from '../store/location.ts';
import type { StateTables } from '../store/schema.ts';

export async function openState(location: StateLocation): Promise<StateDatabase> {
  if (location.engine === 'sqlite') {
    const { openSqlite } = await import('../store/sqlite.ts');
    const { path, synchronous } = location;
    return { engine: 'sqlite', db: openSqlite<StateTables>({ path, synchronous, exclusive: false }) };
  }
  const { createPool, openPostgres } = await import('../store/postgres.ts');
  const pool = createPool(location.url, location.poolSize);
  // A connection that breaks while idle is replaced at the next query; that query reports what is wrong, if anything is.
  pool.on('error', () => undefined);
  return { engine: 'postgres', db: openPostgres<StateTables>(pool) };
}
