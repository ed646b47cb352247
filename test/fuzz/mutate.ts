/** Changes to inputs. These know bytes only; those that know a format are in wiretree.ts and jsontree.ts. */
import type { Random } from './random.ts';

export interface MutationTools {
  readonly random: Random;
  /** Words of the format and of the code under test. */
  readonly words: readonly Uint8Array[];
  /** Another input that was worth keeping. */
  readonly other: () => Uint8Array;
}

/** Null where it does not apply. */
export type Mutator = (input: Uint8Array, tools: MutationTools) => Uint8Array | null;

const INTERESTING_BYTES = [0, 1, 0x7f, 0x80, 0xff, 0x20, 0x22, 0x2d, 0x30, 0x5b, 0x5c, 0x5d, 0x7b, 0x7d, 0xc0, 0xed];
export const INTERESTING_NUMBERS = [
  ...['0', '-1', '1', '-0', '0.1', '1e309', '-1e309', '1e-400', '127', '128', '255', '256', '65535', '65536'],
  ...['2147483647', '2147483648', '4294967295', '4294967296', '9007199254740991', '9007199254740993'],
  ...['9223372036854775807', '9223372036854775808', '-9223372036854775808', '18446744073709551615'],
  ...['18446744073709551616', '1e999999999', '00', '+1', '.5', '5.', '0x10', 'NaN', '1'.repeat(400)],
];
const MAX_ROUNDS = 5;

/** One to five changes, one on top of the other. */
export function mutate(
  input: Uint8Array,
  mutators: readonly Mutator[],
  tools: MutationTools,
  maxBytes: number,
): Uint8Array {
  const { random } = tools;
  let result = input;
  for (let left = 1 + random.below(MAX_ROUNDS); left > 0; left--) {
    const mutator = mutators.length > 0 && !random.oneIn(3) ? random.pick(mutators) : random.pick(byteMutators);
    result = plain(mutator(result, tools) ?? result);
  }
  return result.length > maxBytes ? result.slice(0, maxBytes) : result;
}

/** Never a Buffer: its `slice` is a view of the same bytes. */
export function plain(bytes: Uint8Array): Uint8Array {
  return Buffer.isBuffer(bytes) ? new Uint8Array(bytes) : bytes;
}

/** `input` with the range [from, to) replaced. */
export function spliced(input: Uint8Array, from: number, to: number, by: Uint8Array): Uint8Array {
  const result = new Uint8Array(input.length - (to - from) + by.length);
  result.set(input.subarray(0, from));
  result.set(by, from);
  result.set(input.subarray(to), from + by.length);
  return result;
}

/** A range of `input`, mostly short. */
function range(input: Uint8Array, { random }: MutationTools): [from: number, to: number] {
  const from = random.below(input.length + 1);
  const most = random.oneIn(4) ? input.length : 16;
  return [from, Math.min(input.length, from + 1 + random.below(Math.max(1, most)))];
}

const NOTHING = new Uint8Array(0);

const byteMutators: readonly Mutator[] = [
  // one bit
  (input, { random }) => changed(input, random.below(input.length || 1), (byte) => byte ^ (1 << random.below(8))),
  // one byte
  (input, { random }) => changed(input, random.below(input.length || 1), () => random.below(256)),
  (input, { random }) => changed(input, random.below(input.length || 1), () => random.pick(INTERESTING_BYTES)),
  // a little more or less, as lengths and counts are off by one
  (input, { random }) => changed(input, random.below(input.length || 1), (byte) => byte + random.below(9) - 4),
  // a few bytes more
  (input, { random }) => {
    const at = random.below(input.length + 1);
    const more = Uint8Array.from({ length: 1 + random.below(4) }, () => random.below(256));
    return spliced(input, at, at, more);
  },
  // a range less, twice, many times, elsewhere
  (input, tools) => spliced(input, ...range(input, tools), NOTHING),
  (input, tools) => {
    const [from, to] = range(input, tools);
    return spliced(input, to, to, input.subarray(from, to));
  },
  (input, tools) => {
    const [from, to] = range(input, tools);
    const times = 2 + tools.random.below(tools.random.oneIn(8) ? 300 : 6);
    const piece = Buffer.from(input.subarray(from, to));
    return spliced(input, to, to, Buffer.concat(Array.from({ length: times }, () => piece)));
  },
  (input, tools) => {
    const [from, to] = range(input, tools);
    const at = tools.random.below(input.length + 1);
    return spliced(input, at, at, input.slice(from, to));
  },
  // a word of the format
  (input, { random, words }) => {
    const at = random.below(input.length + 1);
    return words.length === 0 ? null : spliced(input, at, at, random.pick(words));
  },
  (input, { random, words }) => {
    if (words.length === 0) return null;
    const word = random.pick(words);
    const at = random.below(input.length + 1);
    return spliced(input, at, Math.min(input.length, at + word.length), word);
  },
  // the end cut off
  (input, { random }) => input.slice(0, random.below(input.length + 1)),
  // another's beginning, middle or end
  (input, tools) => {
    const other = tools.other();
    const [from, to] = range(other, tools);
    return spliced(input, ...range(input, tools), other.subarray(from, to));
  },
  (input, tools) => {
    const other = tools.other();
    return spliced(
      input,
      tools.random.below(input.length + 1),
      input.length,
      other.subarray(tools.random.below(other.length + 1)),
    );
  },
  // digits
  (input, { random }) => {
    const isDigit = (at: number): boolean => (input[at] ?? 0) >= 0x30 && (input[at] ?? 0) <= 0x39;
    let from = random.below(input.length + 1);
    while (from < input.length && !isDigit(from)) from++;
    if (from >= input.length) return null;
    let to = from;
    while (isDigit(to)) to++;
    return spliced(input, from, to, Buffer.from(random.pick(INTERESTING_NUMBERS)));
  },
];

function changed(input: Uint8Array, at: number, change: (byte: number) => number): Uint8Array | null {
  if (input.length === 0) return null;
  const result = input.slice();
  result[at] = change(result[at] ?? 0);
  return result;
}
