/** Attribute values: what an OTLP value is in JSON, attributes as a map, and `J`, the reading of documents. */
import type { AnyValue, Pair } from './otlp.ts';
import { asDocument, isObject, Num, readDocument, Rendered, type Json, type JsonObject } from './json.ts';

const MAX_NESTING = 32;

/** Undefined: the attribute counts as unset. */
export function valueOf(value: AnyValue, depth = 0): Json | undefined {
  switch (value.kind) {
    case 'unset':
      return undefined;
    case 'string':
      return value.value;
    case 'bool':
      return value.value;
    case 'int': {
      const safe = value.value >= -BigInt(Number.MAX_SAFE_INTEGER) && value.value <= BigInt(Number.MAX_SAFE_INTEGER);
      return safe ? new Num(value.value.toString()) : new Rendered(value.value.toString());
    }
    case 'double':
      return Number.isFinite(value.value) ? new Num(String(value.value)) : undefined;
    case 'bytes':
      return new Rendered(Buffer.from(value.value).toString('base64'));
    case 'array': {
      if (depth >= MAX_NESTING) throw new TooDeep();
      return value.value.map((item) => valueOf(item, depth + 1) ?? null);
    }
    case 'kvlist': {
      if (depth >= MAX_NESTING) throw new TooDeep();
      return mapOf(value.value, depth + 1);
    }
  }
}

class TooDeep extends Error {}

function mapOf(pairs: readonly Pair[], depth: number): JsonObject {
  const map: JsonObject = new Map();
  for (const [key, value] of pairs) {
    const set = valueOf(value, depth);
    if (set === undefined) continue;
    map.delete(key);
    map.set(key, set);
  }
  return map;
}

/** The attributes that are set; of equal keys the last. */
export class Attributes {
  readonly map: ReadonlyMap<string, Json>;

  constructor(pairs: readonly Pair[]) {
    const map = new Map<string, Json>();
    for (const [key, value] of pairs) {
      if (key === '') continue;
      try {
        const set = valueOf(value);
        if (set !== undefined) map.set(key, set);
      } catch (error) {
        if (!(error instanceof TooDeep)) throw error;
      }
    }
    this.map = map;
  }

  /** Set, whatever it is: for questions of presence. */
  has(key: string): boolean {
    return this.map.has(key);
  }
  hasPrefix(prefix: string): boolean {
    return this.keys(prefix).length > 0;
  }
  /** The keys that start so and go on. */
  keys(prefix: string): string[] {
    return [...this.map.keys()].filter((key) => key.startsWith(prefix) && key.length > prefix.length);
  }
  /** As it is, empty strings included. */
  raw(key: string): Json | undefined {
    return this.map.get(key);
  }
  /** The first that is set and no empty string. */
  first(...keys: string[]): Json | undefined {
    return keys.map((key) => this.map.get(key)).find((value) => value !== undefined && !isEmpty(value));
  }
  /** The first non-empty string. */
  string(...keys: string[]): string | undefined {
    return keys.map((key) => this.map.get(key)).find((value) => typeof value === 'string' && value !== '') as
      string | undefined;
  }
}

function isEmpty(value: Json): boolean {
  return value === '';
}

export type Document = { kind: 'text'; text: string } | { kind: 'json'; value: Json };

/** `J`: a JSON document where there is one, else the text; undefined when absent. */
export function J(value: Json | undefined): Document | undefined {
  if (value === undefined || isEmpty(value)) return undefined;
  if (typeof value === 'string') {
    const trimmed = trim(value);
    if (trimmed === '' || trimmed === 'null') return undefined;
    const parsed = /^[{["]/.test(trimmed) ? readDocument(value) : undefined;
    return parsed === undefined ? { kind: 'text', text: value } : { kind: 'json', value: parsed };
  }
  if (Array.isArray(value) || isObject(value)) {
    return { kind: 'json', value: asDocument(value) };
  }
  return { kind: 'json', value };
}

/** What `J` gives, as JSON: text is a string then. */
export function JValue(value: Json | undefined): Json | undefined {
  const document = J(value);
  return document?.kind === 'text' ? document.text : document?.value;
}
export function JArray(value: Json | undefined): Json[] | undefined {
  const found = JValue(value);
  return Array.isArray(found) ? found : undefined;
}
export function JObject(value: Json | undefined): JsonObject | undefined {
  const found = JValue(value);
  return isObject(found) ? found : undefined;
}

export function trim(text: string): string {
  return text.replace(/^[ \t\n\r]+|[ \t\n\r]+$/g, '');
}

export function nonEmptyString(value: Json | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** A named member; JSON null counts as absent. */
export function memberOf(parent: JsonObject, ...names: string[]): Json | undefined {
  return names.map((name) => parent.get(name)).find((value) => value !== undefined && value !== null);
}

/**
 * An indexed family: `prefix.<index>.<rest>` → index → rest → value, sorted by index. An index is canonical decimal of at
 * most nine digits.
 */
export function family(attributes: ReadonlyMap<string, Json>, prefix: string): Map<string, Json>[] {
  const found = new Map<number, Map<string, Json>>();
  for (const [key, value] of attributes) {
    const match = key.startsWith(prefix) ? /^(0|[1-9]\d{0,8})(?:\.([^]*))?$/.exec(key.slice(prefix.length)) : null;
    if (match === null) continue;
    const index = Number(match[1]);
    const members = found.get(index) ?? new Map<string, Json>();
    members.set(match[2] ?? '', value);
    found.set(index, members);
  }
  return [...found].sort(([a], [b]) => a - b).map(([, members]) => members);
}

const UUID = /^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$/;

/** Lower case, or undefined when it is no dashed UUID. */
export function uuidOf(value: Json | undefined): string | undefined {
  return typeof value === 'string' && UUID.test(value) ? value.toLowerCase() : undefined;
}

export function microseconds(ns: bigint): number {
  return Number(ns / 1000n);
}

/** RFC 3339, UTC, six digits. */
export function timestamp(us: number): string {
  const seconds = Math.floor(us / 1e6);
  const rest = us - seconds * 1e6;
  return `${new Date(seconds * 1000).toISOString().slice(0, -5)}.${String(rest).padStart(6, '0')}Z`;
}
