/**
 * Kysely over `node:sqlite`. Comes in: compiled queries of one connection. Goes out: rows. The opening thread owns the connection;
 * nothing else may use it. Kysely hands the single connection to one transaction at a time, so nothing queues here. Calls
 * block the thread: one file, one writer, prepared statements are kept.
 */
import { DatabaseSync } from 'node:sqlite';
import type { SQLInputValue, StatementSync } from 'node:sqlite';
import { CompiledQuery, Kysely, SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler } from 'kysely';
import type { DatabaseConnection, Dialect, Driver, QueryResult } from 'kysely';
import { SECOND_MS } from '../../core/units.ts';
import { jsonTextContains } from './contains.ts';
import { isTransaction } from './transaction.ts';

export interface SqliteSettings {
  path: string;
  synchronous: 'normal' | 'full';
  /** One connection only, whatever the process: no file locks per transaction, and a second process fails at its start. */
  exclusive: boolean;
}

/** Statements kept prepared; more shapes than this come only from searches with many different filters. */
const STATEMENT_COUNT = 200;
/** The write-ahead log is copied into the file when it has so many pages, of 4 KiB each: a page that is written often is copied once. */
const WAL_PAGES = 4000;
/** Pages kept in memory; the library's own 2 MiB are less than the last checkpoints of a hundred busy threads. */
const CACHE_KIB = 16 * 1024;
/** How long a writer waits for another thread's transaction; those take well under a millisecond. */
const BUSY_MS = 10 * SECOND_MS;

export function openSqlite<T>(settings: SqliteSettings): Kysely<T> {
  const dialect: Dialect = {
    createAdapter: () => new TransactionalSqliteAdapter(),
    createDriver: () => new SqliteDriver(settings),
    createIntrospector: (db) => new SqliteIntrospector(db),
    createQueryCompiler: () => new SqliteQueryCompiler(),
  };
  return new Kysely<T>({ dialect });
}

/** The library's own error names neither the file nor what to do. */
function openFile(path: string, timeout: number): DatabaseSync {
  try {
    return new DatabaseSync(path, { timeout });
  } catch (error) {
    throw new Error(`${path} cannot be opened: ${(error as Error).message}; set DATA_DIR`, { cause: error });
  }
}

class TransactionalSqliteAdapter extends SqliteAdapter {
  override get supportsTransactionalDdl(): boolean {
    return true;
  }
}

class SqliteDriver implements Driver {
  readonly #settings: SqliteSettings;
  #database: DatabaseSync | null = null;
  #connection: SqliteConnection | null = null;

  constructor(settings: SqliteSettings) {
    this.#settings = settings;
  }

  // The methods are asynchronous because Kysely's interface is; SQLite itself answers at once.
  init(): Promise<void> {
    const database = openFile(this.#settings.path, this.#settings.exclusive ? 0 : BUSY_MS);
    try {
      // Before the first access, so that the write-ahead log needs no shared memory.
      if (this.#settings.exclusive) database.exec('pragma locking_mode = exclusive; begin exclusive; commit');
    } catch (error) {
      database.close();
      return Promise.reject(
        new Error(
          `${this.#settings.path} cannot be opened for exclusive use: is another process running on this folder?`,
          {
            cause: error,
          },
        ),
      );
    }
    database.exec(`
      pragma journal_mode = wal;
      pragma synchronous = ${this.#settings.synchronous};
      pragma temp_store = memory;
      pragma journal_size_limit = 67108864;
      pragma wal_autocheckpoint = ${WAL_PAGES};
      pragma cache_size = -${CACHE_KIB};
    `);
    registerContains(database);
    this.#database = database;
    this.#connection = new SqliteConnection(database);
    return Promise.resolve();
  }

  acquireConnection(): Promise<DatabaseConnection> {
    if (this.#connection === null) return Promise.reject(new Error('The database is closed.'));
    return Promise.resolve(this.#connection);
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    // Takes the write lock at once: a transaction that read first could not upgrade past another writer.
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('commit'));
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('rollback'));
  }

  releaseConnection(): Promise<void> {
    return Promise.resolve();
  }

  destroy(): Promise<void> {
    this.#database?.close();
    this.#database = null;
    this.#connection = null;
    return Promise.resolve();
  }
}

interface Prepared {
  statement: StatementSync;
  readsRows: boolean;
}

class SqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync;
  /** In order of last use: the first is the one to forget. */
  readonly #statements = new Map<string, Prepared>();

  constructor(database: DatabaseSync) {
    this.#database = database;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    if (!isTransaction(query)) return this.#execute<R>(query);
    // Takes the write lock at once, as above.
    this.#execute(query);
    try {
      for (const statement of query.statements) this.#execute(statement);
      this.#execute(CompiledQuery.raw('commit'));
    } catch (error) {
      if (this.#database.isTransaction) this.#execute(CompiledQuery.raw('rollback'));
      throw error;
    }
    return { rows: [] };
  }

  #execute<R>(query: CompiledQuery): QueryResult<R> {
    const { statement, readsRows } = this.#prepare(query.sql);
    const parameters = query.parameters as SQLInputValue[];
    const [first] = parameters;
    // Node would take an object in first place for a map of named parameters, and bind nothing.
    if (typeof first === 'object' && first !== null && !ArrayBuffer.isView(first)) {
      throw new TypeError('A parameter is an object.');
    }
    if (readsRows) return { rows: statement.all(...parameters) as R[] };
    const { changes } = statement.run(...parameters);
    return { rows: [], numAffectedRows: BigInt(changes) };
  }

  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('Streaming is not supported.');
  }

  #prepare(sql: string): Prepared {
    const known = this.#statements.get(sql);
    if (known !== undefined) {
      this.#statements.delete(sql);
      this.#statements.set(sql, known);
      return known;
    }
    const statement = this.#database.prepare(sql);
    const prepared = { statement, readsRows: statement.columns().length > 0 };
    this.#statements.set(sql, prepared);
    if (this.#statements.size > STATEMENT_COUNT) {
      for (const oldest of this.#statements.keys()) {
        this.#statements.delete(oldest);
        break;
      }
    }
    return prepared;
  }
}

/** `deploy_contains(document, filter)`: PostgreSQL's `@>` for a JSON text, with the filter as a bound parameter. */
function registerContains(database: DatabaseSync): void {
  // A search runs one filter over many rows.
  let lastText = '';
  let lastFilter: unknown = null;
  database.function('deploy_contains', { deterministic: true, directOnly: true }, (document, filter) => {
    if (typeof document !== 'string' || typeof filter !== 'string') return 0;
    if (filter !== lastText) {
      lastFilter = JSON.parse(filter);
      lastText = filter;
    }
    return jsonTextContains(document, lastFilter) ? 1 : 0;
  });
}
