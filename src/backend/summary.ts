/** What lists show of a run without reading its documents: first input, tokens, cost; and the text that searches find. */
import { KiB } from '../core/units.ts';

/** Parsed documents of one run; `undefined` where it has none. */
export interface RunDocuments {
  readonly inputs?: unknown;
  readonly outputs?: unknown;
  readonly extra?: unknown;
  readonly error?: unknown;
}

export interface RunUsage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  /** Null: not told. */
  readonly cost: number | null;
}

const PREVIEW_LENGTH = 200;
/** Leaves looked at in one document: bounds the work on documents with millions of numbers. */
const MAX_LEAF_COUNT = 4 * KiB;

/** Of one run: the sums over a whole store stay exact, whatever uploaders claim. */
const MAX_TOKEN_COUNT = 1e9;

type JsonObject = Readonly<Record<string, unknown>>;

function asObject(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}

/** SQLite's text ends at a NUL as Node reads it, and a list has no use for line breaks. */
export function oneLine(text: string, maxLength: number): string {
  // Twice the length is enough to fill it after runs of blanks became one.
  return text
    .slice(0, 2 * maxLength)
    .replaceAll(/[\s\0]{2,}|[^\S ]|\0/g, ' ')
    .trim()
    .slice(0, maxLength)
    .replace(/[\ud800-\udbff]$/, '');
}

/** The first thing that was asked: the first user message, else the usual names, else any text. Null: no text at all. */
export function previewOf(inputs: unknown): string | null {
  const object = asObject(inputs);
  if (object === null) return null;
  const text = firstUserMessage(object['messages']) ?? firstNamed(object) ?? leavesOf(inputs, 1)[0];
  return text === undefined ? null : oneLine(text, PREVIEW_LENGTH);
}

function firstNamed(object: JsonObject): string | undefined {
  for (const name of ['input', 'query', 'question', 'prompt', 'text']) {
    const value = object[name];
    if (typeof value === 'string') return value;
    if (Array.isArray(value) && typeof value[0] === 'string') return value[0];
  }
  return undefined;
}

const USER_ROLES = new Set<unknown>(['user', 'human']);

function firstUserMessage(messages: unknown): string | undefined {
  if (!Array.isArray(messages)) return undefined;
  // A list of conversations: chat models take several at once.
  const list: readonly unknown[] = Array.isArray(messages[0]) ? messages[0] : messages;
  let first: string | undefined;
  for (const item of list.slice(0, 100)) {
    const message = asObject(item);
    if (message === null) continue;
    const text = textOf(message['content']) ?? textOf(asObject(message['kwargs'])?.['content']);
    if (text === undefined) continue;
    if (USER_ROLES.has(message['role'] ?? message['type'])) return text;
    first ??= text;
  }
  return first;
}

function textOf(content: unknown): string | undefined {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return undefined;
  for (const block of content.slice(0, 100)) {
    const text = asObject(block)?.['text'];
    if (typeof text === 'string') return text;
  }
  return undefined;
}

/** Token counts and cost where an uploader puts them: beside the outputs, or in the metadata. Null: not told. */
export function usageOf(documents: RunDocuments): RunUsage | null {
  const usage =
    asObject(asObject(documents.outputs)?.['usage_metadata']) ??
    asObject(asObject(asObject(documents.extra)?.['metadata'])?.['usage_metadata']);
  if (usage === null) return null;
  const inputTokens = count(usage['input_tokens']);
  const outputTokens = count(usage['output_tokens']);
  const totalTokens = count(usage['total_tokens'], inputTokens + outputTokens);
  const cost = usage['total_cost'];
  return {
    inputTokens,
    outputTokens,
    totalTokens,
    cost: typeof cost === 'number' && Number.isFinite(cost) ? cost : null,
  };
}

function count(value: unknown, fallback = 0): number {
  return Math.min(
    MAX_TOKEN_COUNT,
    typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : fallback,
  );
}

/** The text that a search should find this run by, at most about `maxLength` characters. */
export function searchTextOf(name: string, documents: RunDocuments, tags: string | null, maxLength: number): string {
  const pieces = [name];
  if (tags !== null) pieces.push(tags);
  if (typeof documents.error === 'string') pieces.push(documents.error.slice(0, maxLength / 4));
  const share = maxLength * (3 / 8);
  pieces.push(headAndTail(leavesOf(documents.inputs, MAX_LEAF_COUNT).join(' '), share));
  pieces.push(headAndTail(leavesOf(documents.outputs, MAX_LEAF_COUNT).join(' '), share));
  pieces.push(
    leavesOf(asObject(documents.extra)?.['metadata'], MAX_LEAF_COUNT)
      .join(' ')
      .slice(0, maxLength / 8),
  );
  return separateIdeographs(pieces.join('\n'));
}

/** A conversation's start says what it is about, its end what is new. */
function headAndTail(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength / 2)} ${text.slice(-maxLength / 2)}`;
}

/**
 * The index cuts text into words at blanks and punctuation, and knows no other cut: scripts that write without blanks
 * become one word a character. Queries are treated alike.
 */
export function separateIdeographs(text: string): string {
  return text.replaceAll(/[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]/g, ' $& ');
}

/** Names of members whose text is not content. */
const STRUCTURE = new Set(['role', 'type', 'id', 'lc']);

/** The string leaves of a JSON value in document order, at most `maxCount`. Not recursive: depth is the sender's choice. */
function leavesOf(value: unknown, maxCount: number): string[] {
  const leaves: string[] = [];
  const open: unknown[] = [value];
  for (let looked = 0; open.length > 0 && looked < 4 * maxCount + 64 && leaves.length < maxCount; looked++) {
    const next = open.pop();
    if (typeof next === 'string') {
      if (next !== '') leaves.push(next);
    } else if (Array.isArray(next)) {
      for (let i = Math.min(next.length, maxCount + 64) - 1; i >= 0; i--) open.push(next[i]);
    } else if (typeof next === 'object' && next !== null) {
      const entries = Object.entries(next);
      for (let i = Math.min(entries.length, maxCount + 64) - 1; i >= 0; i--) {
        const entry = entries[i];
        if (entry !== undefined && !STRUCTURE.has(entry[0])) open.push(entry[1]);
      }
    }
  }
  return leaves;
}
