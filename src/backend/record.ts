/** One `post` or `patch` of a run: its fields read and checked, and how an update goes over what is known. */
import { readRfc3339 } from './moment.ts';
import { checkDottedOrder, isUuid } from './order.ts';

export const DOCUMENT_FIELDS = ['inputs', 'outputs', 'events', 'extra', 'error', 'serialized'] as const;
export type DocumentField = (typeof DOCUMENT_FIELDS)[number];

export const RUN_TYPES = ['tool', 'chain', 'llm', 'retriever', 'embedding', 'prompt', 'parser'] as const;
export type RunType = (typeof RUN_TYPES)[number];
export const STATUSES = ['success', 'error', 'pending'] as const;
export type RunStatus = (typeof STATUSES)[number];

export interface JsonText {
  readonly text: string;
  readonly value: unknown;
}

/** Null: not said. */
export interface RunOperation {
  readonly op: 'post' | 'patch';
  readonly id: string;
  readonly traceId: string;
  readonly parentId: string | null;
  readonly dottedOrder: string;
  readonly name: string | null;
  readonly runType: RunType | null;
  readonly status: RunStatus | null;
  readonly startUs: number | null;
  readonly endUs: number | null;
  readonly projectName: string | null;
  readonly projectUuid: string | null;
  readonly tags: string | null;
  /** The record without its documents. */
  readonly record: JsonText;
  readonly documents: RunDocumentTexts;
}

export type RunDocumentTexts = { [field in DocumentField]?: JsonText };
export type JsonObject = Record<string, unknown>;

/** `invalid`: a rule of the tree is broken. `unprocessable`: not what the format says. */
export interface Refusal {
  readonly kind: 'invalid' | 'unprocessable' | 'too-large';
  readonly message: string;
}

/** Carries a refusal out of nested reading to {@link refusable}; it never leaves this folder's readers. */
export class Refused extends Error {
  readonly refusal: Refusal;
  constructor(kind: Refusal['kind'], message: string) {
    super(message);
    this.refusal = { kind, message };
  }
}

export function unprocessable(message: string): never {
  throw new Refused('unprocessable', message);
}

/** Runs a reader; what it refuses becomes a value. */
export function refusable<T>(read: () => T): T | Refusal {
  try {
    return read();
  } catch (error) {
    if (error instanceof Refused) return error.refusal;
    throw error;
  }
}

const TYPES_OF_RUNS: ReadonlySet<unknown> = new Set(RUN_TYPES);
const STATUSES_OF_RUNS: ReadonlySet<unknown> = new Set(STATUSES);

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Reads a record; documents that it carries itself are taken out of it. The caller adds those that come apart. */
export function readRecord(op: 'post' | 'patch', id: string, json: JsonText): RunOperation {
  const { value } = json;
  const where = `run ${id}`;
  if (!isObject(value)) return unprocessable(`${where} must be an object`);
  if (uuidOf(value, 'id', where) !== id) unprocessable(`${where}: id is missing or not the one of the part's name`);
  const documents: RunDocumentTexts = {};
  let rest: JsonObject | null = null;
  for (const field of DOCUMENT_FIELDS) {
    const inline = value[field];
    if (inline === undefined) continue;
    rest ??= { ...value };
    delete rest[field];
    if (inline !== null) {
      documents[field] = checkDocument(field, { text: stringify(inline, where), value: inline }, `${where}: ${field}`);
    }
  }
  const tags = value['tags'] ?? null;
  if (tags !== null && !(Array.isArray(tags) && tags.every((tag) => typeof tag === 'string'))) {
    return unprocessable(`${where}: tags must be an array of strings`);
  }
  uuidOf(value, 'reference_example_id', where);
  return {
    op,
    id,
    traceId: uuidOf(value, 'trace_id', where) ?? unprocessable(`${where}: trace_id is required`),
    parentId: uuidOf(value, 'parent_run_id', where),
    dottedOrder: textOf(value, 'dotted_order', where) ?? unprocessable(`${where}: dotted_order is required`),
    name: textOf(value, 'name', where),
    runType: choiceOf<RunType>(value, 'run_type', TYPES_OF_RUNS, where),
    status: choiceOf<RunStatus>(value, 'status', STATUSES_OF_RUNS, where),
    startUs: timeOf(value, 'start_time', where),
    endUs: timeOf(value, 'end_time', where),
    projectName: textOf(value, 'session_name', where),
    projectUuid: uuidOf(value, 'session_id', where),
    tags: tags === null || tags.length === 0 ? null : tags.join(', '),
    record: rest === null ? json : { text: stringify(rest, where), value: rest },
    documents,
  };
}

export function checkDocument(field: DocumentField, document: JsonText, where: string): JsonText {
  const { value } = document;
  if (field === 'error') {
    if (typeof value !== 'string') unprocessable(`${where} must be a string`);
  } else if (field === 'events') {
    if (!Array.isArray(value) || !value.every(isObject)) unprocessable(`${where} must be an array of objects`);
  } else if (!isObject(value)) {
    unprocessable(`${where} must be an object`);
  }
  return document;
}

/** The rules that differ between creating and updating. */
export function checkOperation(operation: RunOperation, startTimeToleranceUs: number): void {
  const { op, id } = operation;
  if (op === 'post') {
    if (operation.name === null || operation.name === '') unprocessable(`run ${id}: name is required`);
    if (operation.runType === null) unprocessable(`run ${id}: run_type is required`);
    if (operation.startUs === null) unprocessable(`run ${id}: start_time is required`);
  }
  const problem = checkDottedOrder({
    dottedOrder: operation.dottedOrder,
    runId: id,
    traceId: operation.traceId,
    // An update need not repeat its parent.
    parentRunId: operation.parentId ?? (op === 'post' ? null : undefined),
    startUs: operation.startUs,
    toleranceUs: startTimeToleranceUs,
  });
  if (problem !== null) throw new Refused('invalid', problem);
}

/** `over` on top of `base`: members that are null or absent leave what is there; documents are replaced as a whole. */
export function mergeOperations(base: RunOperation, over: RunOperation): RunOperation {
  const said = Object.entries(over.record.value as JsonObject).filter(([, value]) => value !== null);
  const value = { ...(base.record.value as JsonObject), ...Object.fromEntries(said) };
  const merged = readRecord(base.op, base.id, { text: stringify(value, `run ${base.id}`), value });
  return { ...merged, documents: { ...base.documents, ...over.documents } };
}

export function textOf(record: JsonObject, name: string, where: string): string | null {
  const value = record[name];
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : unprocessable(`${where}: ${name} must be a string`);
}

export function uuidOf(record: JsonObject, name: string, where: string): string | null {
  const text = textOf(record, name, where);
  if (text === null) return null;
  return isUuid(text) ? text.toLowerCase() : unprocessable(`${where}: ${name} must be a UUID`);
}

export function timeOf(record: JsonObject, name: string, where: string): number | null {
  const text = textOf(record, name, where);
  if (text === null) return null;
  return (
    readRfc3339(text) ??
    unprocessable(`${where}: ${name} "${text.slice(0, 100)}" is not an RFC 3339 time with a zone, from 1685 to 2255`)
  );
}

function choiceOf<T extends string>(
  record: JsonObject,
  name: string,
  choices: ReadonlySet<unknown>,
  where: string,
): T | null {
  const text = textOf(record, name, where);
  if (text === null || choices.has(text)) return text as T | null;
  return unprocessable(`${where}: ${name} must be one of ${[...choices].join(', ')}, not "${text.slice(0, 100)}"`);
}

/** `JSON.stringify` recurses, unlike `JSON.parse`: what came in may be too deep to go out again. */
function stringify(value: unknown, where: string): string {
  try {
    return JSON.stringify(value);
  } catch {
    return unprocessable(`${where}: nested too deeply`);
  }
}
