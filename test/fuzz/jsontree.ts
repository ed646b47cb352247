/** Changes to JSON text that mostly leave it JSON: values and members are found by their brackets and moved as wholes. */
import { INTERESTING_NUMBERS, spliced, type Mutator } from './mutate.ts';

type Range = readonly [from: number, to: number];

const ODD_VALUES = [
  ...['null', 'true', 'false', '{}', '[]', '""', '" "', '"\\ud800"', '"\\u0000"', '"\\udc00\\ud800"', '"\u2028"'],
  ...['{"__proto__":{"a":1}}', '{"constructor":{"prototype":{"a":1}}}', '{"a":1,"a":2}', '"*"', '[null]', '[[]]'],
  ...['"2026-01-01T00:00:00Z"', '"9999-12-31T23:59:59.999999999Z"', '"5b8efff798038103d269b633813fc60c"'],
  ...['"eee19b7ec3c1b174"', '"AAAAAAAAAAA="', '"00000000-0000-0000-0000-000000000000"', '{"stringValue":"x"}'],
  ...INTERESTING_NUMBERS,
  ...INTERESTING_NUMBERS.map((number) => `"${number}"`),
];
const WRAPPERS: readonly (readonly [string, string])[] = [
  ['[', ']'],
  ['{"a":', '}'],
  ['{"arrayValue":{"values":[', ']}}'],
  ['{"kvlistValue":{"values":[{"key":"k","value":', '}]}}'],
  [' \n', '\t\r'],
  ['{"__proto__":', '}'],
];

export const jsonMutators: readonly Mutator[] = [
  // a value becomes another
  (input, { random }) => replaced(input, random.pick(valuesOrWhole(input)), random.pick(ODD_VALUES)),
  (input, { random }) => {
    const values = valuesOrWhole(input);
    const [from, to] = random.pick(values);
    return replaced(input, random.pick(values), input.slice(from, to));
  },
  (input, { random, other }) => {
    const source = other();
    const [from, to] = random.pick(valuesOrWhole(source));
    return replaced(input, random.pick(valuesOrWhole(input)), source.slice(from, to));
  },
  // a word becomes a string
  (input, { random, words }) => {
    if (words.length === 0) return null;
    const text = JSON.stringify(Buffer.from(random.pick(words)).toString());
    return replaced(input, random.pick(valuesOrWhole(input)), text);
  },
  // deeper
  (input, { random }) => {
    const [from, to] = random.pick(valuesOrWhole(input));
    const [before, after] = random.pick(WRAPPERS);
    const times = random.oneIn(8) ? 300 : 1;
    const inner = Buffer.from(input.slice(from, to)).toString('latin1');
    const text = before.repeat(times) + inner + after.repeat(times);
    return replaced(input, [from, to], Buffer.from(text, 'latin1'));
  },
  // one more of the same
  (input, { random }) => {
    const [from, to] = random.pick(valuesOrWhole(input));
    const value = input.slice(from, to);
    return spliced(input, to, to, Buffer.concat([Buffer.from(','), value]));
  },
  // a member more
  (input, { random, words }) => {
    const objects = valuesOrWhole(input).filter(([from]) => input[from] === 0x7b);
    if (objects.length === 0) return null;
    const [from, to] = random.pick(objects);
    const key = words.length === 0 ? '"k"' : JSON.stringify(Buffer.from(random.pick(words)).toString());
    const isEmpty = to - from <= 2;
    return spliced(input, from + 1, from + 1, Buffer.from(`${key}:${random.pick(ODD_VALUES)}${isEmpty ? '' : ','}`));
  },
  // letters as escapes
  (input, { random }) => {
    const at = random.below(input.length || 1);
    const byte = input[at] ?? 0x22;
    if (byte < 0x23 || byte > 0x7e || byte === 0x5c) return null;
    return spliced(input, at, at + 1, Buffer.from(`\\u00${byte.toString(16)}`));
  },
];

function replaced(input: Uint8Array, [from, to]: Range, by: string | Uint8Array): Uint8Array {
  return spliced(input, from, to, typeof by === 'string' ? Buffer.from(by) : by);
}

/** Where values and keys lie, never none. */
function valuesOrWhole(input: Uint8Array): Range[] {
  const found = values(input);
  return found.length === 0 ? [[0, input.length]] : found;
}

function values(input: Uint8Array): Range[] {
  const found: Range[] = [];
  const open: number[] = [];
  for (let at = 0; at < input.length; at++) {
    const byte = input[at] ?? 0;
    if (byte === 0x22) {
      const from = at;
      for (at++; at < input.length && input[at] !== 0x22; at++) if (input[at] === 0x5c) at++;
      found.push([from, Math.min(at + 1, input.length)]);
    } else if (byte === 0x7b || byte === 0x5b) open.push(at);
    else if (byte === 0x7d || byte === 0x5d) {
      const from = open.pop();
      if (from !== undefined) found.push([from, at + 1]);
    } else if (isWord(byte)) {
      const from = at;
      while (isWord(input[at + 1] ?? 0)) at++;
      found.push([from, at + 1]);
    }
  }
  return found;
}

/** Of numbers, true, false, null. */
function isWord(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x7a) || '+-.E'.includes(String.fromCharCode(byte));
}
