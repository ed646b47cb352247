/**
 * The runs, in SQLite. In: checked uploads, each written as one transaction or not at all. Out: the numbers of the traces
 * that changed. Owned by the backend's thread, which is the only one that writes. When full (number of traces, or bytes):
 * the traces that arrived first are deleted in the same transaction, so writing slows down instead of growing. On stop:
 * the log is folded into the file and the file is closed.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type StatementSync } from 'node:sqlite';
import { type Packed, packDocument, unpackDocument } from './document.ts';
import type { Upload } from './intake.ts';
import { createPruner, type Pruner } from './prune.ts';
import {
  DOCUMENT_FIELDS,
  type JsonText,
  mergeOperations,
  readRecord,
  refusable,
  type Refusal,
  type RunDocumentTexts,
  type RunOperation,
} from './record.ts';
import { OPERATION_BIT, rowOf, type RunRow } from './row.ts';
import { prepareDatabase, readNumber } from './schema.ts';
import type { BackendSettings } from './settings.ts';
import { searchTextOf } from './summary.ts';
import { openTextIndex, type TextIndex } from './textindex.ts';
import { TraceBook } from './tracebook.ts';

export type StoreSettings = Pick<BackendSettings, 'file' | 'maxTraceCount' | 'maxStoreBytes' | 'textIndexBytes'>;

export type WriteOutcome =
  | { readonly kind: 'written'; readonly traceNos: readonly number[] }
  /** The same operation on the same run was received before: in an earlier upload, or in this one. */
  | { readonly kind: 'conflict'; readonly runId: string }
  | Refusal;

export interface Store {
  readonly database: DatabaseSync;
  readonly text: TextIndex;
  /** Everything or nothing. */
  write(tenant: string, upload: Upload): WriteOutcome;
  readonly traceCount: number;
  readonly runCount: number;
  readonly prunedTraceCount: number;
  close(): void;
}

const RUN_COLUMNS =
  'run_no, tenant, id, trace_no, project_no, operations, parent_id, name, run_type, status, start_us, end_us, ' +
  'duration_us, dotted_order, input_tokens, output_tokens, total_tokens, cost, tags, preview, error';

/** Feedback may name runs that never come; the oldest goes when there is more. */
const MAX_FEEDBACK_COUNT = 100_000;
/** Names of projects kept at hand. */
const MAX_PROJECT_CACHE_COUNT = 10_000;

export function openStore(settings: StoreSettings): Store {
  const database = openFile(settings.file);
  try {
    prepareDatabase(database);
    return new SqliteStore(database, settings);
  } catch (error) {
    database.close();
    throw error;
  }
}

/** The library's own error names neither the file nor what to do. */
function openFile(file: string): DatabaseSync {
  try {
    if (file !== ':memory:') mkdirSync(dirname(file), { recursive: true });
    return new DatabaseSync(file);
  } catch (error) {
    throw new Error(`${file} cannot be opened: ${(error as Error).message}; set DATA_DIR`, { cause: error });
  }
}

interface StoredRow {
  run_no: number;
  operations: number;
  trace_no: number;
  status: RunRow['status'];
  input_tokens: number | null;
  output_tokens: number | null;
  total_tokens: number | null;
  cost: number | null;
}

class Rollback extends Error {
  readonly outcome: WriteOutcome;
  constructor(outcome: WriteOutcome) {
    super('rolled back');
    this.outcome = outcome;
  }
}

class SqliteStore implements Store {
  readonly database: DatabaseSync;
  readonly text: TextIndex;
  readonly #settings: StoreSettings;
  readonly #pruner: Pruner;
  readonly #traces: TraceBook;
  readonly #projects = new Map<string, number>();
  readonly #statement: Record<
    | 'insertRun'
    | 'updateRun'
    | 'selectRun'
    | 'insertDocuments'
    | 'updateDocuments'
    | 'selectDocuments'
    | 'insertAttachment'
    | 'insertFeedback'
    | 'trimFeedback'
    | 'projectByName'
    | 'projectByUuid'
    | 'insertProject',
    StatementSync
  >;
  #nextRunNo: number;
  #runCount: number;
  #traceCount: number;
  #prunedTraceCount = 0;

  constructor(database: DatabaseSync, settings: StoreSettings) {
    this.database = database;
    this.#settings = settings;
    this.#runCount = readNumber(database, 'SELECT count(*) FROM runs');
    this.#traceCount = readNumber(database, 'SELECT count(*) FROM traces');
    this.#nextRunNo = readNumber(database, 'SELECT max(run_no) FROM runs') + 1;
    this.#traces = new TraceBook(database, readNumber(database, 'SELECT max(trace_no) FROM traces') + 1);
    this.#pruner = createPruner(database);
    this.text = openTextIndex(database, settings.textIndexBytes);
    const marks = (list: string): string =>
      list
        .split(',')
        .map(() => '?')
        .join(', ');
    const assign = (list: string): string =>
      list
        .split(',')
        .slice(1)
        .map((name) => `${name} = ?`)
        .join(', ');
    const documentColumns = `run_no, record, ${DOCUMENT_FIELDS.join(', ')}`;
    this.#statement = {
      insertRun: database.prepare(
        `INSERT INTO runs (${RUN_COLUMNS}) VALUES (${marks(RUN_COLUMNS)}) ON CONFLICT (id, tenant) DO NOTHING`,
      ),
      updateRun: database.prepare(`UPDATE runs SET ${assign(RUN_COLUMNS)} WHERE run_no = ?`),
      selectRun: database.prepare('SELECT * FROM runs WHERE id = ? AND tenant = ?'),
      insertDocuments: database.prepare(
        `INSERT INTO documents (${documentColumns}) VALUES (${marks(documentColumns)})`,
      ),
      updateDocuments: database.prepare(`UPDATE documents SET ${assign(documentColumns)} WHERE run_no = ?`),
      selectDocuments: database.prepare('SELECT * FROM documents WHERE run_no = ?'),
      insertAttachment: database.prepare(
        'INSERT OR REPLACE INTO attachments (run_no, name, media_type, bytes) VALUES (?, ?, ?, ?)',
      ),
      insertFeedback: database.prepare(
        'INSERT OR REPLACE INTO feedback (tenant, id, run_id, body) VALUES (?, ?, ?, ?) RETURNING feedback_no',
      ),
      trimFeedback: database.prepare('DELETE FROM feedback WHERE feedback_no <= ?'),
      projectByName: database.prepare('SELECT project_no FROM projects WHERE tenant = ? AND name = ?'),
      projectByUuid: database.prepare('SELECT project_no FROM projects WHERE tenant = ? AND uuid = ?'),
      insertProject: database.prepare(
        'INSERT INTO projects (tenant, name, uuid) VALUES (?, ?, ?) ON CONFLICT DO NOTHING RETURNING project_no',
      ),
    };
  }

  get runCount(): number {
    return this.#runCount;
  }

  get traceCount(): number {
    return this.#traceCount;
  }

  get prunedTraceCount(): number {
    return this.#prunedTraceCount;
  }

  write(tenant: string, upload: Upload): WriteOutcome {
    const nextRunNo = this.#nextRunNo;
    const nextTraceNo = this.#traces.nextTraceNo;
    const bounds = { maxTraceCount: this.#settings.maxTraceCount, maxStoreBytes: this.#settings.maxStoreBytes };
    // What is pruned must not be indexed afterwards.
    if (this.#pruner.needed({ traceCount: this.#traceCount + 1, ...bounds })) this.text.flush(Infinity);
    this.text.mark();
    this.database.exec('BEGIN IMMEDIATE');
    try {
      for (const operation of upload.operations) this.#apply(tenant, operation);
      this.#attach(tenant, upload);
      const { traceNos, newCount } = this.#traces.save();
      const newRunCount = this.#nextRunNo - nextRunNo;
      const pruned = this.#pruner.prune({
        traceCount: this.#traceCount + newCount,
        ...bounds,
        // Twice what came in, so that a store that is over its bound gets below it.
        maxRunCount: 2 * upload.operations.length + 10,
      });
      this.database.exec('COMMIT');
      this.#runCount += newRunCount - pruned.runCount;
      this.#traceCount += newCount - pruned.traceCount;
      this.#prunedTraceCount += pruned.traceCount;
      this.#traces.close(this.#traces.nextTraceNo);
      return { kind: 'written', traceNos };
    } catch (error) {
      if (this.database.isTransaction) this.database.exec('ROLLBACK');
      this.#nextRunNo = nextRunNo;
      this.#traces.close(nextTraceNo);
      this.#projects.clear();
      this.text.forget();
      if (error instanceof Rollback) return error.outcome;
      throw error;
    }
  }

  close(): void {
    this.text.flush(Infinity);
    this.database.close();
  }

  #apply(tenant: string, operation: RunOperation): void {
    const traceNo = this.#traces.open(tenant, operation.traceId);
    const row = rowOf(operation, {
      runNo: this.#nextRunNo,
      tenant,
      traceNo,
      projectNo: this.#projectOf(tenant, operation),
      operations: OPERATION_BIT[operation.op],
    });
    if (this.#statement.insertRun.run(...runValues(row)).changes === 0) {
      this.#merge(tenant, operation);
      return;
    }
    this.#nextRunNo++;
    this.#statement.insertDocuments.run(row.runNo, ...documentValues(operation));
    this.#index(operation, row, false);
    this.#traces.count(operation.traceId, row, null);
  }

  /** The run is known: the other of post and patch has come before. */
  #merge(tenant: string, operation: RunOperation): void {
    const stored = this.#statement.selectRun.get(operation.id, tenant) as unknown as StoredRow;
    const bit = OPERATION_BIT[operation.op];
    if ((stored.operations & bit) !== 0) throw new Rollback({ kind: 'conflict', runId: operation.id });
    const known = this.#storedOperation(operation.op === 'patch' ? 'post' : 'patch', operation.id, stored.run_no);
    if (known.traceId !== operation.traceId) {
      const message = `run ${operation.id} belongs to trace ${known.traceId}, not ${operation.traceId}`;
      throw new Rollback({ kind: 'invalid', message });
    }
    const merged = refusable(() =>
      operation.op === 'patch' ? mergeOperations(known, operation) : mergeOperations(operation, known),
    );
    if ('kind' in merged) throw new Rollback(merged);
    const row = rowOf(merged, {
      runNo: stored.run_no,
      tenant,
      traceNo: stored.trace_no,
      projectNo: this.#projectOf(tenant, merged),
      operations: stored.operations | bit,
    });
    const before: RunRow = {
      ...row,
      status: stored.status,
      inputTokens: stored.input_tokens,
      outputTokens: stored.output_tokens,
      totalTokens: stored.total_tokens,
      cost: stored.cost,
    };
    this.#statement.updateRun.run(...runValues(row).slice(1), row.runNo);
    this.#statement.updateDocuments.run(...documentValues(merged), row.runNo);
    this.#index(merged, row, true);
    this.#traces.count(operation.traceId, row, before);
  }

  #storedOperation(op: 'post' | 'patch', id: string, runNo: number): RunOperation {
    const stored = this.#statement.selectDocuments.get(runNo) as Record<string, Packed>;
    const parse = (packed: Packed | undefined): JsonText | undefined => {
      const text = unpackDocument(packed ?? null);
      return text === null ? undefined : { text, value: JSON.parse(text) as unknown };
    };
    const documents: RunDocumentTexts = {};
    for (const field of DOCUMENT_FIELDS) {
      const document = parse(stored[field]);
      if (document !== undefined) documents[field] = document;
    }
    return { ...readRecord(op, id, parse(stored['record']) ?? { text: '', value: null }), documents };
  }

  #index(operation: RunOperation, row: RunRow, known: boolean): void {
    const { textIndexBytes } = this.#settings;
    if (textIndexBytes === 0) return;
    const { inputs, outputs, extra, error } = operation.documents;
    const text = searchTextOf(
      row.name,
      { inputs: inputs?.value, outputs: outputs?.value, extra: extra?.value, error: error?.value },
      row.tags,
      textIndexBytes,
    );
    this.text.offer(row.runNo, text, known);
  }

  #attach(tenant: string, upload: Upload): void {
    for (const { runId, name, mediaType, bytes } of upload.attachments) {
      const run = this.#statement.selectRun.get(runId, tenant) as StoredRow | undefined;
      if (run === undefined) {
        const message = `attachment "${name}" belongs to run ${runId}, which is not known`;
        throw new Rollback({ kind: 'unprocessable', message });
      }
      this.#statement.insertAttachment.run(run.run_no, name, mediaType, bytes);
    }
    for (const { id, runId, text } of upload.feedback) {
      const row = this.#statement.insertFeedback.get(tenant, id, runId, text) as { feedback_no: number };
      this.#statement.trimFeedback.run(row.feedback_no - MAX_FEEDBACK_COUNT);
    }
  }

  #projectOf(tenant: string, { projectName, projectUuid }: RunOperation): number {
    const name = projectName ?? (projectUuid === null ? 'default' : null);
    // No tenant has a line break in its name: the key is the one or the other, never both.
    const key = name === null ? `${tenant}\r${projectUuid}` : `${tenant}\n${name}`;
    const cached = this.#projects.get(key);
    if (cached !== undefined) return cached;
    const { projectByName, projectByUuid, insertProject } = this.#statement;
    const uuid = projectUuid ?? randomUUID();
    const find = (): unknown => (name === null ? projectByUuid.get(tenant, uuid) : projectByName.get(tenant, name));
    // A name that exists under another id, or the reverse: the one that exists wins.
    const row = (find() ?? insertProject.get(tenant, name ?? uuid, uuid) ?? projectByUuid.get(tenant, uuid)) as {
      project_no: number;
    };
    if (this.#projects.size >= MAX_PROJECT_CACHE_COUNT) this.#projects.clear();
    this.#projects.set(key, row.project_no);
    return row.project_no;
  }
}

/** In the order of {@link RUN_COLUMNS}. */
function runValues(row: RunRow): (string | number | null)[] {
  return [
    row.runNo,
    row.tenant,
    row.id,
    row.traceNo,
    row.projectNo,
    row.operations,
    row.parentId,
    row.name,
    row.runType,
    row.status,
    row.startUs,
    row.endUs,
    row.durationUs,
    row.dottedOrder,
    row.inputTokens,
    row.outputTokens,
    row.totalTokens,
    row.cost,
    row.tags,
    row.preview,
    row.error,
  ];
}

function documentValues(operation: RunOperation): Packed[] {
  const { record, documents } = operation;
  return [
    packDocument(record.text),
    packDocument(documents.inputs?.text ?? null),
    packDocument(documents.outputs?.text ?? null),
    packDocument(documents.events?.text ?? null),
    packDocument(documents.extra?.text ?? null),
    packDocument(documents.error?.text ?? null),
    packDocument(documents.serialized?.text ?? null),
  ];
}
