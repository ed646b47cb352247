/**
 * One case, judged: a span as protobuf and as JSON, through the plain translator and the byte translator; each must give
 * what the case expects, and all must give the same.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { translateWithDecoder } from './adapter.ts';
import { jsonOf, protobufOf, spanOf, type SpanSpec } from './emit.ts';
import { isObject, type Json, type JsonObject } from './json.ts';
import { textOf, type RecordView, type Translation } from './record.ts';
import { defaultSettings } from './settings.ts';
import { translateBody, type TranslateSettings } from './translate.ts';

/** Only what is named is looked at; `null` means that it must not be there. */
export interface Expected {
  readonly name?: string;
  readonly runType?: string;
  readonly status?: string;
  readonly head?: Readonly<Record<string, unknown>>;
  /** Whole, except for `usage_metadata`, which the usage cases look at by `outputs.usage_metadata`. */
  readonly inputs?: unknown;
  readonly outputs?: unknown;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly params?: Readonly<Record<string, unknown>> | null;
  readonly error?: string | null;
  readonly events?: unknown;
  readonly serialized?: unknown;
  readonly attachments?: unknown;
  readonly record?: Readonly<Partial<Record<keyof RecordView, unknown>>>;
}

export type Translate = (spans: readonly SpanSpec[], settings?: Partial<TranslateSettings>) => Translation;

interface Side {
  readonly title: string;
  readonly translate: Translate;
}

/** Who is judged, in both encodings. */
export const sides: readonly Side[] = [
  side('plain translator, protobuf', 'protobuf', translateBody),
  side('plain translator, JSON', 'json', translateBody),
  side('byte translator, protobuf', 'protobuf', translateWithDecoder),
  side('byte translator, JSON', 'json', translateWithDecoder),
];

function side(title: string, encoding: 'protobuf' | 'json', translate: typeof translateBody): Side {
  return {
    title,
    translate: (specs, settings = {}) => {
      const spans = specs.map(spanOf);
      const body = encoding === 'protobuf' ? protobufOf(spans) : jsonOf(spans);
      return translate(body, encoding, { ...defaultSettings, ...settings });
    },
  };
}

/** A test for one span. */
export function judge(
  title: string,
  spec: SpanSpec,
  expected: Expected,
  settings: Partial<TranslateSettings> = {},
): void {
  test(title, () => {
    const texts = sides.map((one) => {
      const { records } = one.translate([spec], settings);
      assert.equal(records.length, 1, `${one.title}: one record`);
      const [record] = records;
      assert.ok(record);
      check(record, expected, one.title);
      return textOf(record);
    });
    for (const [index, text] of texts.entries()) assert.equal(text, texts[0], sides[index]?.title);
  });
}

function check(record: RecordView, expected: Expected, who: string): void {
  const equal = (actual: unknown, wanted: unknown, what: string): void => {
    const left = actual === undefined ? 'absent' : textOf(actual);
    const right = wanted === null || wanted === undefined ? 'absent' : textOf(wanted);
    assert.equal(left, right, `${who}: ${what}`);
  };
  const members = (actual: Json | undefined, wanted: Readonly<Record<string, unknown>>, what: string): void => {
    const object: JsonObject = isObject(actual) ? actual : new Map();
    for (const [key, value] of Object.entries(wanted)) equal(object.get(key), value, `${what}.${key}`);
  };
  if (expected.name !== undefined) equal(record.head.get('name'), expected.name, 'name');
  if (expected.runType !== undefined) equal(record.head.get('run_type'), expected.runType, 'run type');
  if (expected.status !== undefined) equal(record.head.get('status'), expected.status, 'status');
  if (expected.head !== undefined) members(record.head, expected.head, 'head');
  for (const part of ['inputs', 'outputs', 'events', 'error', 'serialized', 'attachments'] as const) {
    if (Object.hasOwn(expected, part)) equal(record[part], expected[part], part);
  }
  if (expected.metadata !== undefined) members(record.extra?.get('metadata'), expected.metadata, 'metadata');
  const params = record.extra?.get('invocation_params');
  if (expected.params === null) equal(params, null, 'invocation_params');
  else if (expected.params !== undefined) members(params, expected.params, 'invocation_params');
  for (const [key, value] of Object.entries(expected.record ?? {})) {
    assert.equal(textOf(record[key as keyof RecordView]), textOf(value), `${who}: ${key}`);
  }
}
