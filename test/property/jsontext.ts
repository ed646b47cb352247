/** JSON as emitters may really write it: duplicate keys, odd numbers, escapes, white space, cut off. */
import fc from 'fast-check';

import { BROKEN } from '../oracle/emit.ts';

/** A document before it is written; members are pairs, so that keys can repeat. */
export type Tree =
  | null
  | boolean
  | string
  | { readonly number: string }
  | { readonly array: readonly Tree[] }
  | { readonly object: readonly (readonly [string, Tree])[] };

export const dangerousKeys = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'length', ''];

export const text: fc.Arbitrary<string> = fc.oneof(
  { weight: 6, arbitrary: fc.string({ maxLength: 12 }) },
  { weight: 3, arbitrary: fc.string({ unit: 'grapheme', maxLength: 8 }) },
  {
    weight: 3,
    arbitrary: fc.constantFrom(
      'hello',
      'null',
      ' ',
      '6',
      'true',
      '"',
      '{',
      '[]',
      '{}',
      'a"b\\c\n\t\u0000\u001f\u007f\u2028',
      '\ufeffbom',
      `x${BROKEN}y`,
      BROKEN,
      '\ud83d\ude00',
      "{'a': 1}",
      ' {"a":1} ',
    ),
  },
);

const numberText: fc.Arbitrary<string> = fc.oneof(
  fc.integer().map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => JSON.stringify(n)),
  fc.constantFrom('0', '-0', '1.0', '1e400', '-1E+5', '9007199254740993', '18446744073709551616', '0.1', '1e-7', '2e2'),
);

export const key: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('a', 'b', 'role', 'content', 'type', 'text', 'id', 'name', 'metadata') },
  { weight: 2, arbitrary: fc.constantFrom(...dangerousKeys) },
  { weight: 2, arbitrary: text },
);

export const tree: fc.Arbitrary<Tree> = fc.letrec<{ tree: Tree; leaf: Tree }>((tie) => ({
  leaf: fc.oneof(
    fc.constantFrom<Tree>(null, true, false),
    text,
    numberText.map((number) => ({ number })),
  ),
  tree: fc.oneof(
    { maxDepth: 4, depthIdentifier: 'json' },
    tie('leaf'),
    fc.array(tie('tree'), { maxLength: 4, depthIdentifier: 'json' }).map((array) => ({ array })),
    fc.array(fc.tuple(key, tie('tree')), { maxLength: 4, depthIdentifier: 'json' }).map((object) => ({ object })),
  ),
})).tree;

export const objectTree: fc.Arbitrary<Tree> = fc
  .array(fc.tuple(key, tree), { maxLength: 5 })
  .map((object) => ({ object }));

export interface Style {
  readonly space: string;
  /** Every character of a string as `\uXXXX`: 0 never, 1 the non-ASCII ones, 2 all. */
  readonly escape: 0 | 1 | 2;
}

export const style: fc.Arbitrary<Style> = fc.record({
  space: fc.constantFrom('', '', '', ' ', '\n\t', '\r\n '),
  escape: fc.constantFrom<0 | 1 | 2>(0, 0, 0, 1, 2),
});

export function write(value: Tree, how: Style): string {
  const { space } = how;
  if (value === null || typeof value === 'boolean') return String(value);
  if (typeof value === 'string') return writeString(value, how);
  if ('number' in value) return value.number;
  if ('array' in value)
    return `[${space}${value.array.map((item) => write(item, how)).join(`${space},${space}`)}${space}]`;
  const members = value.object.map(
    ([name, member]) => `${writeString(name, how)}${space}:${space}${write(member, how)}`,
  );
  return `{${space}${members.join(`${space},${space}`)}${space}}`;
}

function writeString(value: string, how: Style): string {
  // A slash may be escaped too, and some writers do.
  const plain = JSON.stringify(value).replaceAll('/', how.space === '' ? '/' : '\\/');
  if (how.escape === 0) return plain;
  const limit = how.escape === 1 ? 0x7f : -1;
  const units = Array.from({ length: value.length }, (_, i) => {
    const unit = value.charCodeAt(i);
    return unit > limit ? `\\u${unit.toString(16).padStart(4, '0')}` : JSON.stringify(value[i]).slice(1, -1);
  });
  return `"${units.join('')}"`;
}

/** How a document may arrive in a string attribute. */
export function documentText(of: fc.Arbitrary<Tree>): fc.Arbitrary<string> {
  return fc
    .tuple(of, style, fc.nat(), fc.nat({ max: 19 }))
    .map(([value, how, cut, damage]) => {
      const whole = write(value, how);
      switch (damage) {
        case 0:
          return whole.slice(0, cut % (whole.length + 1));
        case 1:
          return ` \n${whole}\t`;
        case 2:
          return `${whole}x`;
        case 3:
          return whole.replace(/"/, '"\\ud800');
        case 4:
          return '['.repeat(cut % 3 === 0 ? 511 : 513) + ']'.repeat(cut % 3 === 0 ? 511 : 513);
        default:
          return whole;
      }
    })
    .map((document) => Buffer.from(document).toString());
}
