/**
 * The tables. `runs` and `traces` hold what lists show and filters ask for; what is long lies in `documents`. Lists go by
 * start time, newest first, and each has one index that alone can answer every filter (`…_scan`): a filter that few rows
 * pass reads 50 bytes a row, not the row. Measured with 100 000 traces: bench/backend.ts.
 */
import type { DatabaseSync } from 'node:sqlite';

const SCHEMA_VERSION = 1;

const TABLES = `
  CREATE TABLE projects (
    project_no INTEGER PRIMARY KEY,
    tenant     TEXT NOT NULL,
    name       TEXT NOT NULL,
    uuid       TEXT NOT NULL,
    UNIQUE (tenant, name)
  );
  CREATE UNIQUE INDEX projects_uuid ON projects (tenant, uuid);

  CREATE TABLE traces (
    trace_no      INTEGER PRIMARY KEY, -- by arrival; never used again
    tenant        TEXT NOT NULL,
    trace_id      TEXT NOT NULL,
    project_no    INTEGER NOT NULL,
    root_run_no   INTEGER,             -- NULL: the root has not arrived, the next five are guesses from other runs
    name          TEXT NOT NULL,
    run_type      TEXT NOT NULL,
    status        TEXT NOT NULL,
    start_us      INTEGER NOT NULL,
    end_us        INTEGER,
    duration_us   INTEGER,
    run_count     INTEGER NOT NULL,
    error_count   INTEGER NOT NULL,    -- runs that failed
    run_types     INTEGER NOT NULL,    -- bit n: contains the n-th of RUN_TYPES
    input_tokens  INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    total_tokens  INTEGER NOT NULL,
    cost          REAL,
    preview       TEXT,
    error         TEXT
  );
  CREATE UNIQUE INDEX traces_id ON traces (trace_id, tenant);
  CREATE INDEX traces_scan ON traces
    (start_us, duration_us, status, error_count, run_types, project_no, run_count, total_tokens, cost);

  CREATE TABLE runs (
    run_no        INTEGER PRIMARY KEY, -- by arrival; never used again
    tenant        TEXT NOT NULL,
    id            TEXT NOT NULL,
    trace_no      INTEGER NOT NULL,
    project_no    INTEGER NOT NULL,
    operations    INTEGER NOT NULL,    -- 1: post received, 2: patch received
    parent_id     TEXT,
    name          TEXT NOT NULL,
    run_type      TEXT NOT NULL,
    status        TEXT NOT NULL,
    start_us      INTEGER NOT NULL,
    end_us        INTEGER,
    duration_us   INTEGER,
    dotted_order  TEXT NOT NULL,
    input_tokens  INTEGER,
    output_tokens INTEGER,
    total_tokens  INTEGER,
    cost          REAL,
    tags          TEXT,
    preview       TEXT,
    error         TEXT
  );
  CREATE UNIQUE INDEX runs_id ON runs (id, tenant);
  CREATE INDEX runs_trace ON runs (trace_no, start_us);
  CREATE INDEX runs_scan ON runs (start_us, duration_us, status, run_type, project_no, trace_no);
  CREATE INDEX runs_name ON runs (name, start_us);

  CREATE TABLE documents (
    run_no INTEGER PRIMARY KEY,
    record NOT NULL, inputs, outputs, events, extra, error, serialized -- JSON text, or zstd of it (see document.ts)
  );

  CREATE TABLE attachments (
    run_no     INTEGER NOT NULL,
    name       TEXT NOT NULL,
    media_type TEXT NOT NULL,
    bytes      BLOB NOT NULL,
    PRIMARY KEY (run_no, name)
  );

  CREATE TABLE feedback (
    feedback_no INTEGER PRIMARY KEY,
    tenant      TEXT NOT NULL,
    id          TEXT NOT NULL,
    run_id      TEXT,
    body        TEXT NOT NULL
  );
  CREATE UNIQUE INDEX feedback_id ON feedback (tenant, id);
  CREATE INDEX feedback_run ON feedback (run_id);

  -- The words of a run; without a copy of the text, and without positions, which no query asks for.
  CREATE VIRTUAL TABLE run_text USING fts5
    (text, content = '', contentless_delete = 1, detail = none, tokenize = 'unicode61 remove_diacritics 2');
`;

/** Came after the tables, and is made where it is missing: what an error says is asked of the few runs that failed. */
const LATER_INDEXES = `CREATE INDEX IF NOT EXISTS runs_failed ON runs (error, trace_no) WHERE status = 'error';`;

/**
 * Prepares an open database. Pages of 8 KiB and a checkpoint each 32 MiB of log: 100 000 runs of 1.7 kB are written in
 * 2.4 s instead of 3.7 s with SQLite's defaults. NORMAL: a crash of the process loses nothing that was acknowledged, a
 * crash of the machine may lose the last moments, and neither damages the file.
 */
export function prepareDatabase(database: DatabaseSync): void {
  database.exec(`
    PRAGMA page_size = 8192;
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    PRAGMA wal_autocheckpoint = 4000;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA cache_size = -65536;
    PRAGMA temp_store = MEMORY;
    PRAGMA busy_timeout = 5000;
  `);
  const version = readNumber(database, 'PRAGMA user_version');
  if (version === SCHEMA_VERSION) {
    database.exec(LATER_INDEXES);
    return;
  }
  if (version > SCHEMA_VERSION) {
    throw new Error(`the file was written by a newer release (schema ${version}, this one knows ${SCHEMA_VERSION})`);
  }
  if (readNumber(database, 'SELECT count(*) FROM sqlite_schema') > 0) {
    throw new Error('the file is a SQLite database of something else');
  }
  database.exec(`BEGIN IMMEDIATE; ${TABLES} ${LATER_INDEXES} PRAGMA user_version = ${SCHEMA_VERSION}; COMMIT;`);
}

/** The first column of the first row; 0 when there is none. */
export function readNumber(database: DatabaseSync, sql: string): number {
  const row = database.prepare(sql).get();
  return row === undefined ? 0 : Number(Object.values(row)[0] ?? 0);
}
