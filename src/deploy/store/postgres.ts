/**
 * Kysely over `pg`. The pool is owned by the thread that opens it. When every connection is busy, queries wait in the pool; its
 * wait is bounded, and an overrun is an error of that request alone.
 */
import { Kysely, PostgresDialect } from 'kysely';
import pg from 'pg';
import { SECOND_MS } from '../../core/units.ts';

const CONNECT_MS = 10 * SECOND_MS;
/** Numeric ids of PostgreSQL's built-in types. */
const INT8 = 20;
const JSON_TYPES = [114, 3802];

export function createPool(url: string, poolSize: number): pg.Pool {
  const types = new pg.TypeOverrides();
  // Our counts and milliseconds are far below 2^53; JSON is parsed where it is needed, if at all.
  types.setTypeParser(INT8, Number);
  for (const type of JSON_TYPES) types.setTypeParser(type, String);
  const pool = new pg.Pool({
    connectionString: url,
    max: poolSize,
    connectionTimeoutMillis: CONNECT_MS,
    types,
    application_name: 'collector-proxy',
    keepAlive: true,
  });
  return pool;
}

export function openPostgres<T>(pool: pg.Pool): Kysely<T> {
  return new Kysely<T>({ dialect: new PostgresDialect({ pool }) });
}
