/**
 * Request bodies through the decode path and through the reference (protobufjs or a strict JSON reader, then the plain
 * translator): both refuse, or both make the same runs; and what is made is clean JSON. For any bytes: where the scanner is
 * meant to read them otherwise than protobufjs, oracle/canonical.ts has the rule.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { decodeBody, MalformedBody } from '../../oracle/adapter.ts';
import { canonicalRequest, MAX_KEPT_NESTING, MAX_NESTING } from '../../oracle/canonical.ts';
import { jsonOf } from '../../oracle/emit.ts';
import { readBody, type Json } from '../../oracle/json.ts';
import { spansOfProtobuf } from '../../oracle/otlp.ts';
import { textOf, type Translation } from '../../oracle/record.ts';
import { defaultSettings } from '../../oracle/settings.ts';
import { translateBody } from '../../oracle/translate.ts';
import { createDecoder } from '../../../src/decode/decoder.ts';
import type { Mutator } from '../mutate.ts';
import type { Target } from '../target.ts';

const FIXTURES = new URL('../../fixtures/emitters/', import.meta.url);
const MAX_FIXTURE_BYTES = 2500;

export function decodeTarget(encoding: 'protobuf' | 'json', mutators: readonly Mutator[]): Target {
  // They live as long as the fuzzer: nothing of one body may be left in the next.
  const decoder = createDecoder({ genericAttributes: true, rootRunId: 'trace', converterModule: null });
  const settings = { ...defaultSettings, genericAttributes: true };
  const request = { apiKey: new Uint8Array(8), project: null, receivedUs: defaultSettings.receivedUs, sourceNumber: 0 };
  return {
    maxInputBytes: 8192,
    seeds: () => {
      const bodies = fixtures();
      return encoding === 'protobuf' ? bodies : bodies.map((body) => jsonOf(spansOfProtobuf(body)));
    },
    dictionary: [],
    mutators,
    run: (input) => {
      decoder.decode({ ...request, source: input, encoding }, { put: () => true });
    },
    check: (input) => {
      const ours = said(() => decodeBody(decoder, input, encoding, settings), MalformedBody);
      const read = (body: Uint8Array): string => said(() => translateBody(body, encoding, settings), Error);
      if (encoding === 'json') return checkDocument(input, ours, read(input));
      const reading = canonicalRequest(input);
      if (reading.kind !== 'request') assert.equal(ours, 'malformed', `the reading is ${reading.kind}`);
      if (reading.kind === 'malformed') assert.equal(read(input), 'malformed', 'protobufjs takes what is malformed');
      if (reading.kind === 'request') assertSame(ours, read(reading.body));
    },
  };
}

/**
 * A value nests too deeply for the scanner also where a later member takes its place, of which the reference, which reads
 * objects, knows nothing: there no more is asked than that both take the body, or that it is refused for its nesting.
 */
function checkDocument(input: Uint8Array, ours: string, reference: string): void {
  const nesting = reference === 'malformed' ? 0 : nestingOf(readBody(new TextDecoder().decode(input)));
  if (nesting <= MAX_KEPT_NESTING) assertSame(ours, reference);
  else if (nesting <= MAX_NESTING) assert.notEqual(ours, 'malformed');
  else if (ours !== 'malformed') assertSame(ours, reference);
}

/** Most arrays and lists of pairs in each other, wherever they stand. */
function nestingOf(value: Json): number {
  if (Array.isArray(value)) return Math.max(0, ...value.map(nestingOf));
  if (!(value instanceof Map)) return 0;
  const depths = [...value].map(
    ([key, inner]) => nestingOf(inner) + (/^(array|kvlist)_?[vV]alue$/.test(key) && inner instanceof Map ? 1 : 0),
  );
  return Math.max(0, ...depths);
}

function assertSame(ours: string, reference: string): void {
  if (ours !== reference) assert.fail(difference(ours, reference));
}

/** Its runs as text, or that the body is refused. */
function said(translate: () => Translation, refusal: abstract new (...values: never[]) => Error): string {
  try {
    const { records, rejectedCount } = translate();
    return textOf({ rejectedCount, records });
  } catch (error) {
    if (error instanceof refusal) return 'malformed';
    throw error;
  }
}

/** Where the two begin to differ, by the names on the way there: short, and the same for the same defect. */
function difference(ours: string, reference: string): string {
  const [left, right] = [ours, reference].map((text): unknown => (text === 'malformed' ? text : JSON.parse(text)));
  const path: string[] = [];
  let [a, b] = [left, right];
  while (isNode(a) && isNode(b) && Array.isArray(a) === Array.isArray(b)) {
    const key = [...new Set([...Object.keys(a), ...Object.keys(b)])].find(
      (name) => JSON.stringify(Object(a)[name]) !== JSON.stringify(Object(b)[name]),
    );
    if (key === undefined) break;
    path.push(key);
    [a, b] = [a[key], b[key]];
  }
  const said = (value: unknown): string => (JSON.stringify(value) ?? 'absent').slice(0, 300);
  return `differs at ${path.join('.')}: ours "${said(a)}", reference "${said(b)}"`;
}

function isNode(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function fixtures(): Uint8Array[] {
  const folder = fileURLToPath(FIXTURES);
  return readdirSync(folder, { recursive: true })
    .map(String)
    .filter((file) => file.endsWith('.pb'))
    .sort()
    .map((file) => new Uint8Array(readFileSync(`${folder}/${file}`)))
    .filter(({ length }) => length <= MAX_FIXTURE_BYTES);
}
