/**
 * The byte translator against the plain one on random spans. `TRANSLATION_RUNS` sets how many, `TRANSLATION_SEED` repeats.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';

import { createDecoder } from '../../src/decode/decoder.ts';
import { decodeBody, MalformedBody } from '../oracle/adapter.ts';
import { jsonOf, protobufOf } from '../oracle/emit.ts';
import { defaultSettings } from '../oracle/settings.ts';
import { readDocument } from '../oracle/json.ts';
import { textOf, type Translation } from '../oracle/record.ts';
import { translateBody, type TranslateSettings } from '../oracle/translate.ts';
import { documentText, style, tree, write, type Tree } from './jsontext.ts';
import { span } from './spangen.ts';

const numRuns = Number(process.env['TRANSLATION_RUNS'] ?? 300);
const seed = process.env['TRANSLATION_SEED'];
/** Shrinking a whole span can take very long; what it has found by then tells enough. */
const limitMs = Math.max(20_000, 20 * numRuns);
const parameters = { numRuns, interruptAfterTimeLimit: limitMs, ...(seed === undefined ? {} : { seed: Number(seed) }) };

/** Fails as `fc.assert` does, and when the time limit left next to nothing tried. */
function holds<Values>(property: fc.IProperty<Values>): void {
  const details = fc.check(property, parameters);
  if (details.failed) throw new Error(fc.defaultReportMessage(details));
  assert.ok(details.numRuns >= numRuns / 10, `only ${details.numRuns} of ${numRuns} were tried in ${limitMs} ms`);
}

const decoders = [false, true].map((genericAttributes) =>
  createDecoder({ genericAttributes, rootRunId: 'trace', converterModule: null }),
);

const settings: fc.Arbitrary<TranslateSettings> = fc.record({
  genericAttributes: fc.boolean(),
  project: fc.constantFrom(null, null, 'of the request'),
  receivedUs: fc.constant(defaultSettings.receivedUs),
});

/** The decoders live through the whole file: nothing of one body may be left in the next. */
function decode(body: Uint8Array, encoding: 'protobuf' | 'json', how: TranslateSettings): Translation {
  const decoder = decoders[how.genericAttributes ? 1 : 0];
  assert.ok(decoder);
  return decodeBody(decoder, body, encoding, how);
}

function same(actual: Translation, expected: Translation): void {
  assert.equal(actual.rejectedCount, expected.rejectedCount);
  assert.equal(textOf(actual.records), textOf(expected.records));
}

test('the judge reads JSON as JSON.parse does, and refuses what it refuses', () => {
  holds(
    fc.property(fc.oneof(documentText(tree), fc.json(), fc.string()), (text) => {
      const mine = readDocument(text);
      let parsed: unknown;
      try {
        parsed = JSON.parse(text);
      } catch {
        parsed = undefined;
      }
      const deep = text.includes('['.repeat(513));
      assert.equal(mine === undefined, parsed === undefined || deep);
    }),
  );
});

test('a span in JSON is the same span', () => {
  holds(
    fc.property(fc.array(span, { minLength: 1, maxLength: 3 }), settings, (spans, how) => {
      same(translateBody(jsonOf(spans), 'json', how), translateBody(protobufOf(spans), 'protobuf', how));
    }),
  );
});

test('protobuf spans: the byte translator says what the plain one says, in clean JSON', () => {
  holds(
    fc.property(fc.array(span, { minLength: 1, maxLength: 3 }), settings, (spans, how) => {
      const body = protobufOf(spans);
      same(decode(body, 'protobuf', how), translateBody(body, 'protobuf', how));
    }),
  );
});

test('JSON spans: the byte translator says what the plain one says', () => {
  holds(
    fc.property(fc.array(span, { minLength: 1, maxLength: 3 }), settings, (spans, how) => {
      const body = jsonOf(spans);
      same(decode(body, 'json', how), translateBody(body, 'json', how));
    }),
  );
});

test('JSON bodies with anything in any place: both refuse, or both say the same', () => {
  holds(
    fc.property(
      span,
      fc.array(fc.tuple(fc.nat(), documentText(tree)), { minLength: 1, maxLength: 3 }),
      (one, edits) => {
        let text = Buffer.from(jsonOf([one])).toString();
        for (const [place, value] of edits) text = replaceValue(text, place, value);
        const body = Buffer.from(text);
        const attempt = (run: () => Translation): string => {
          try {
            const { records, rejectedCount } = run();
            return textOf({ rejectedCount, records });
          } catch (error) {
            if (error instanceof SyntaxError || error instanceof MalformedBody) return 'malformed';
            throw error;
          }
        };
        assert.equal(
          attempt(() => decode(body, 'json', defaultSettings)),
          attempt(() => translateBody(body, 'json', defaultSettings)),
        );
      },
    ),
  );
});

test('JSON spans with escapes and white space anywhere are the same spans', () => {
  holds(
    fc.property(fc.array(span, { minLength: 1, maxLength: 2 }), style, (spans, how) => {
      const plain = Buffer.from(jsonOf(spans)).toString();
      const body = Buffer.from(write(treeOf(JSON.parse(plain)), how));
      const expected = translateBody(Buffer.from(plain), 'json', defaultSettings);
      same(translateBody(body, 'json', defaultSettings), expected);
      same(decode(body, 'json', defaultSettings), expected);
    }),
  );
});

function treeOf(value: unknown): Tree {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'number') return { number: JSON.stringify(value) };
  if (Array.isArray(value)) return { array: value.map(treeOf) };
  return { object: Object.entries(value as object).map(([name, member]) => [name, treeOf(member)] as const) };
}

/** Puts something else where the n-th value of the text stands. */
function replaceValue(text: string, place: number, value: string): string {
  const starts = [
    ...text.matchAll(/(?<=":)(?:"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|\[\]|\{\})/g),
  ];
  const found = starts[place % Math.max(1, starts.length)];
  if (found === undefined) return text;
  return text.slice(0, found.index) + value + text.slice(found.index + found[0].length);
}

test('protobuf bytes with damage are refused or decoded, never anything else', () => {
  holds(
    fc.property(
      span,
      fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { maxLength: 4 }),
      fc.nat(),
      (one, edits, cut) => {
        const body = Buffer.from(protobufOf([one]));
        for (const [place, value] of edits) body[place % body.length] = value;
        const damaged = cut % 3 === 0 ? body.subarray(0, cut % body.length) : body;
        try {
          decode(damaged, 'protobuf', defaultSettings);
        } catch (error) {
          if (!(error instanceof MalformedBody)) throw error;
        }
      },
    ),
  );
});
