/**
 * JSON for the judge: a strict reader that keeps what `JSON.parse` loses (source text of numbers and of nested values,
 * duplicate keys, `__proto__`), and a canonical text under which equal values are equal strings.
 */

/** A number, kept as text. */
export class Num {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** A JSON string that was no string in the span (bytes, an int64 beyond 2^53): never parsed, never "a string attribute". */
export class Rendered {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type Json = null | boolean | string | Num | Rendered | Json[] | JsonObject;
export type JsonObject = Map<string, Json>;

export interface ReadOptions {
  readonly duplicateKeys: 'last' | 'fail';
  readonly maxDepth: number;
  /** Replace lone surrogates by U+FFFD, or fail on them. */
  readonly loneSurrogates: 'replace' | 'fail';
}

const documentOptions: ReadOptions = { duplicateKeys: 'last', maxDepth: 512, loneSurrogates: 'replace' };
const outputOptions: ReadOptions = { duplicateKeys: 'fail', maxDepth: 10_000, loneSurrogates: 'fail' };

/** The members of every object that was read, also those that a later one of the same name replaced. */
const written = new WeakMap<JsonObject, [key: string, value: Json][]>();

/** In the order in which they were written; those of an object made otherwise are its own. */
export function writtenMembers(object: JsonObject): Iterable<[key: string, value: Json]> {
  return written.get(object) ?? object;
}

/** The source text of every array and object that was read. */
const sources = new WeakMap<object, string>();

/** A document inside an attribute: last of equal keys wins; undefined when it is no JSON. */
export function readDocument(text: string): Json | undefined {
  try {
    return new Reader(text, documentOptions).document();
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** What the proxy writes: one document, no duplicate keys, no lone surrogates; throws otherwise. */
export function readOutput(text: string): Json {
  return new Reader(text, outputOptions).document();
}

/** A request body. */
export function readBody(text: string): Json {
  return new Reader(text, documentOptions).document();
}

class Reader {
  private readonly text: string;
  private readonly options: ReadOptions;
  private at = 0;

  constructor(text: string, options: ReadOptions) {
    this.text = text;
    this.options = options;
  }

  document(): Json {
    this.space();
    const value = this.value(0);
    this.space();
    if (this.at !== this.text.length) this.fail('text after the document');
    return value;
  }

  private fail(what: string): never {
    throw new SyntaxError(`${what} at ${this.at}`);
  }

  private space(): void {
    while (' \t\n\r'.includes(this.text[this.at] ?? 'x')) this.at++;
  }

  private value(depth: number): Json {
    const c = this.text[this.at];
    if (c === '{') return this.object(depth + 1);
    if (c === '[') return this.array(depth + 1);
    if (c === '"') return this.string();
    for (const [word, value] of [
      ['null', null],
      ['true', true],
      ['false', false],
    ] as const) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    const number = /-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
    number.lastIndex = this.at;
    const match = number.exec(this.text);
    if (match === null) this.fail('no value');
    this.at += match[0].length;
    return new Num(match[0]);
  }

  private object(depth: number): JsonObject {
    if (depth > this.options.maxDepth) this.fail('too deep');
    const start = this.at++;
    const object: JsonObject = new Map();
    const members: [key: string, value: Json][] = [];
    written.set(object, members);
    this.space();
    if (this.text[this.at] !== '}') {
      for (;;) {
        this.space();
        if (this.text[this.at] !== '"') this.fail('no key');
        const key = this.string();
        this.space();
        if (this.text[this.at++] !== ':') this.fail('no colon');
        this.space();
        const value = this.value(depth);
        if (object.has(key) && this.options.duplicateKeys === 'fail') this.fail(`duplicate key ${JSON.stringify(key)}`);
        object.delete(key);
        object.set(key, value);
        members.push([key, value]);
        this.space();
        if (this.text[this.at] !== ',') break;
        this.at++;
      }
    }
    if (this.text[this.at++] !== '}') this.fail('object not closed');
    sources.set(object, this.text.slice(start, this.at));
    return object;
  }

  private array(depth: number): Json[] {
    if (depth > this.options.maxDepth) this.fail('too deep');
    const start = this.at++;
    const array: Json[] = [];
    this.space();
    if (this.text[this.at] !== ']') {
      for (;;) {
        this.space();
        array.push(this.value(depth));
        this.space();
        if (this.text[this.at] !== ',') break;
        this.at++;
      }
    }
    if (this.text[this.at++] !== ']') this.fail('array not closed');
    sources.set(array, this.text.slice(start, this.at));
    return array;
  }

  private string(): string {
    this.at++;
    let out = '';
    for (;;) {
      const c = this.text[this.at++];
      if (c === undefined || c < ' ') this.fail('string not closed');
      if (c === '"') break;
      if (c !== '\\') {
        out += c;
        continue;
      }
      const escape = this.text[this.at++] ?? '';
      const plain = { '"': '"', '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }[escape];
      if (plain !== undefined) {
        out += plain;
      } else {
        const hex = this.text.slice(this.at, this.at + 4);
        if (escape !== 'u' || !/^[0-9a-fA-F]{4}$/.test(hex)) this.fail('bad escape');
        out += String.fromCharCode(parseInt(hex, 16));
        this.at += 4;
      }
    }
    const replaced = wellFormed(out);
    if (this.options.loneSurrogates === 'fail' && replaced !== out) this.fail('lone surrogate');
    return replaced;
  }
}

/** Lone surrogates become U+FFFD. */
export function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}

/** The text of a value without white space; what a structured attribute is as a document. */
export function compact(value: Json): string {
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return JSON.stringify(value);
  if (value instanceof Num) return value.text;
  if (value instanceof Rendered) return JSON.stringify(value.text);
  if (Array.isArray(value)) return `[${value.map(compact).join(',')}]`;
  return `{${[...value].map(([key, member]) => `${JSON.stringify(key)}:${compact(member)}`).join(',')}}`;
}

/** A structured value as the document that its compact text is; what was read from a document stays as it is. */
export function asDocument(value: Json[] | JsonObject): Json {
  return sources.has(value) ? value : (readDocument(compact(value)) ?? value);
}

/** A value of a document as a string: strings as they are, everything else as it stood in the source. */
export function slice(value: Json): string {
  if (typeof value === 'string') return value;
  if (value instanceof Rendered) return value.text;
  if (value !== null && typeof value === 'object' && !(value instanceof Num))
    return sources.get(value) ?? compact(value);
  return compact(value);
}

/** Equal values, equal texts: members sorted, numbers by value. */
export function canonical(value: Json, indent = ''): string {
  const inner = `${indent} `;
  if (value instanceof Num) return canonicalNumber(value.text);
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    return `[\n${value.map((item) => inner + canonical(item, inner)).join(',\n')}\n${indent}]`;
  }
  if (value instanceof Map) {
    if (value.size === 0) return '{}';
    const members = [...value].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
    return `{\n${members
      .map(([key, member]) => `${inner}${JSON.stringify(key)}: ${canonical(member, inner)}`)
      .join(',\n')}\n${indent}}`;
  }
  return compact(value);
}

function canonicalNumber(text: string): string {
  if (/^-?\d+$/.test(text)) return BigInt(text).toString();
  const number = Number(text);
  return Number.isFinite(number) ? String(number === 0 ? 0 : number) : text;
}

/** From a plain value in a test; `undefined` members are left out. */
export function fromPlain(value: unknown): Json {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'bigint') return new Num(String(value));
  if (value instanceof Num || value instanceof Rendered || value instanceof Map) return value as Json;
  if (Array.isArray(value)) return value.map(fromPlain);
  return object(...Object.entries(value as object).map(([k, v]): [string, unknown] => [k, v]));
}

/** An object from its members; those that are undefined are left out. */
export function object(...members: [string, unknown][]): JsonObject {
  return new Map(members.filter(([, value]) => value !== undefined).map(([key, value]) => [key, fromPlain(value)]));
}

export function isObject(value: Json | undefined): value is JsonObject {
  return value instanceof Map;
}
