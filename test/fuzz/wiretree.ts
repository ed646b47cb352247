/** Changes to protobuf bytes that leave the lengths right: read into fields, change fields, write again. */
import { mutate, type MutationTools, type Mutator } from './mutate.ts';
import type { Random } from './random.ts';

interface Field {
  number: number;
  wire: number;
  /** The value as it is on the wire; of what has a length, without it. */
  bytes: Uint8Array;
  /** The value's own fields, once they were asked for; then they count instead. Null where it has none. */
  fields?: Field[] | null;
}

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const FIXED32 = 5;
const INTERESTING_BITS = [
  ...[0n, 1n, 2n, 3n, 5n, 127n, 128n, 0xffn, 0x7fffffffn, 0x80000000n, 0xffffffffn, 0x100000000n, 1747675155185223936n],
  ...[(1n << 53n) + 1n, (1n << 63n) - 1n, 1n << 63n, (1n << 64n) - 1n, 0x7ff0000000000000n, 0x7ff8000000000001n],
];
/** Field numbers of the OTLP trace schema, and some that are none. */
const NUMBERS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 15, 16, 99, 1000, 536_870_911];

export const wireMutators: readonly Mutator[] = [
  (input, tools) => withFields(input, (fields) => drop(place(fields, tools.random), tools.random)),
  (input, tools) => withFields(input, (fields) => repeat(place(fields, tools.random), tools.random)),
  (input, tools) => withFields(input, (fields) => renumber(place(fields, tools.random), tools.random)),
  (input, tools) => withFields(input, (fields) => rewire(place(fields, tools.random), tools.random)),
  (input, tools) => withFields(input, (fields) => refill(place(fields, tools.random), tools)),
  (input, tools) => withFields(input, (fields) => refill(place(fields, tools.random), tools)),
  (input, tools) => withFields(input, (fields) => word(place(fields, tools.random), tools)),
  (input, tools) => withFields(input, (fields) => nest(place(fields, tools.random), tools.random)),
  (input, tools) => withFields(input, (fields) => borrow(place(fields, tools.random), tools)),
];

function withFields(input: Uint8Array, change: (fields: Field[]) => void): Uint8Array | null {
  const fields = readFields(input);
  if (fields === null || fields.length === 0) return null;
  change(fields);
  return writeFields(fields);
}

/** The fields of some message in the tree, never empty. */
function place(fields: Field[], random: Random): Field[] {
  let at = fields;
  // Once in a while not the deepest.
  while (!random.oneIn(5)) {
    let inner: Field[] | null = null;
    for (let tries = 3; tries > 0 && inner === null; tries--) inner = within(random.pick(at));
    if (inner === null) break;
    at = inner;
  }
  return at;
}

/** The fields of a value that is a message, or looks like one. */
function within(field: Field): Field[] | null {
  if (field.fields === undefined) field.fields = field.wire === LENGTH ? readFields(field.bytes) : null;
  return field.fields === null || field.fields.length === 0 ? null : field.fields;
}

function drop(fields: Field[], random: Random): void {
  fields.splice(random.below(fields.length), 1);
}

function repeat(fields: Field[], random: Random): void {
  const field = random.pick(fields);
  const count = random.oneIn(10) ? 100 : 1 + random.below(3);
  fields.splice(random.below(fields.length + 1), 0, ...Array.from({ length: count }, () => structuredClone(field)));
}

function renumber(fields: Field[], random: Random): void {
  random.pick(fields).number = random.pick(NUMBERS);
}

function rewire(fields: Field[], random: Random): void {
  const field = random.pick(fields);
  field.wire = random.below(8);
  field.bytes = valueOf(field.wire, random.pick(INTERESTING_BITS));
  field.fields = null;
}

function refill(fields: Field[], tools: MutationTools): void {
  const field = tools.random.pick(fields);
  field.bytes =
    field.wire === LENGTH || tools.random.oneIn(4)
      ? mutate(payload(field), [], tools, 4096)
      : valueOf(field.wire, tools.random.pick(INTERESTING_BITS));
  field.fields = null;
}

function word(fields: Field[], { random, words }: MutationTools): void {
  const field = random.pick(fields);
  if (words.length === 0 || field.wire !== LENGTH) return;
  field.bytes = random.pick(words);
  field.fields = null;
}

/** As an array or a list of pairs inside a value, up to depths that are not taken. */
function nest(fields: Field[], random: Random): void {
  const field = random.pick(fields);
  if (field.wire !== LENGTH) return;
  const [outer, inner] = random.pick([
    [5, 1],
    [6, 1],
    [1, 1],
    [2, 2],
  ]);
  for (let left = random.oneIn(6) ? 120 : 1 + random.below(3); left > 0; left--) {
    const innermost: Field = { ...field, number: inner ?? 1 };
    field.fields = [{ ...field, number: outer ?? 5, fields: [innermost] }];
  }
}

/** A field of another input. */
function borrow(fields: Field[], { random, other }: MutationTools): void {
  const others = readFields(other());
  if (others === null || others.length === 0) return;
  fields.splice(random.below(fields.length + 1), random.below(2), random.pick(place(others, random)));
}

function payload(field: Field): Uint8Array {
  return field.fields === null || field.fields === undefined ? field.bytes : writeFields(field.fields);
}

/** Null when these bytes are no message. Values are views of them. */
function readFields(bytes: Uint8Array): Field[] | null {
  const fields: Field[] = [];
  let at = 0;
  /** -1 when there is none that fits 53 bits. */
  const varint = (): number => {
    let value = 0;
    for (let shift = 1; at < bytes.length; shift *= 128) {
      const byte = bytes[at++] ?? 0;
      value += (byte & 0x7f) * shift;
      if (value > Number.MAX_SAFE_INTEGER) return -1;
      if (byte < 0x80) return value;
    }
    return -1;
  };
  while (at < bytes.length) {
    const tag = varint();
    if (tag < 8 || tag > 0xffffffff) return null;
    const wire = tag % 8;
    let from = at;
    if (wire === VARINT) while ((bytes[at++] ?? 0) >= 0x80);
    else if (wire === FIXED64) at += 8;
    else if (wire === FIXED32) at += 4;
    else if (wire === LENGTH) {
      const lengthBytes = varint();
      if (lengthBytes < 0) return null;
      from = at;
      at += lengthBytes;
    } else return null;
    if (at > bytes.length) return null;
    fields.push({ number: Math.floor(tag / 8), wire, bytes: bytes.subarray(from, at) });
  }
  return fields;
}

function writeFields(fields: readonly Field[]): Uint8Array {
  const pieces: Uint8Array[] = [];
  for (const field of fields) {
    const bytes = payload(field);
    pieces.push(varintOf((BigInt(field.number) << 3n) | BigInt(field.wire)));
    if (field.wire === LENGTH) pieces.push(varintOf(BigInt(bytes.length)));
    pieces.push(bytes);
  }
  return Buffer.concat(pieces);
}

function valueOf(wire: number, bits: bigint): Uint8Array {
  if (wire !== FIXED64 && wire !== FIXED32) return varintOf(bits);
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigUint64(0, bits, true);
  return bytes.subarray(0, wire === FIXED64 ? 8 : 4);
}

function varintOf(value: bigint): Uint8Array {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>= 7n) {
    if (rest < 0x80n) return Uint8Array.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 0x7fn) | 0x80);
  }
}
