/**
 * The wire scanner's reading of any bytes, by the letter of the protobuf encoding and the rules below: what protobufjs must
 * be given so that both read the same. Where no rule applies that is the body as it is.
 *
 * Stricter than protobufjs:
 * - a group is refused, also where nobody knows its field;
 * - a varint of more than ten bytes is refused, also where nobody knows its field;
 * - a value in more than {@link MAX_NESTING} arrays and lists of pairs is refused.
 *
 * Laxer, or merely different:
 * - tags and lengths may be written in up to ten bytes; bits beyond the 64th are lost;
 * - of several resources of one ResourceSpans the last counts, and the others are not looked into;
 * - spans of instrumentation libraries are not looked into where there are spans of scopes;
 * - of several members of one value the last counts, whole: arrays and lists are not put together;
 * - an attribute that has a value in more than {@link MAX_KEPT_NESTING} arrays and lists is unset, although a later member
 *   took that value's place.
 */
export type Reading =
  /** The encoding is broken: every decoder refuses it. */
  | { readonly kind: 'malformed' }
  /** By a rule of the scanner's own. */
  | { readonly kind: 'refused' }
  /** What protobufjs must read as the scanner reads the body. */
  | { readonly kind: 'request'; readonly body: Uint8Array };

export const MAX_NESTING = 48;
export const MAX_KEPT_NESTING = 32;

const VARINT = 0;
const FIXED64 = 1;
const LENGTH = 2;
const GROUP = 3;
const FIXED32 = 5;
const MAX_VARINT_BYTES = 10;
const MAX_TAG = 0xffffffffn;

interface Field {
  readonly number: number;
  readonly wire: number;
  /** The value on the wire; of what has a length, without it. */
  readonly bytes: Uint8Array;
}

class Malformed extends Error {}
class Refused extends Error {}

export function canonicalRequest(body: Uint8Array): Reading {
  try {
    return { kind: 'request', body: message(body, { 1: resourceSpans }) };
  } catch (error) {
    if (error instanceof Malformed) return { kind: 'malformed' };
    if (error instanceof Refused) return { kind: 'refused' };
    throw error;
  }
}

type Rewrite = (bytes: Uint8Array) => Uint8Array;

/** The same message, fields of these numbers with a length rewritten. */
function message(bytes: Uint8Array, rewrites: Readonly<Record<number, Rewrite>>): Uint8Array {
  return written(readFields(bytes).map((field) => rewritten(field, rewrites)));
}

function rewritten(field: Field, rewrites: Readonly<Record<number, Rewrite>>): Field {
  const rewrite = field.wire === LENGTH ? rewrites[field.number] : undefined;
  return rewrite === undefined ? field : { ...field, bytes: rewrite(field.bytes) };
}

const RESOURCE = 1;
const SCOPE_SPANS = 2;
const LIBRARY_SPANS = 1000;

function resourceSpans(bytes: Uint8Array): Uint8Array {
  const fields = readFields(bytes);
  const has = (number: number) => (field: Field) => field.number === number && field.wire === LENGTH;
  const last = fields.findLast(has(RESOURCE));
  const scoped = fields.some(has(SCOPE_SPANS));
  const counts = (field: Field): boolean =>
    !(has(RESOURCE)(field) && field !== last) && !(scoped && has(LIBRARY_SPANS)(field));
  const resource: Rewrite = (inner) => message(inner, { 1: attribute });
  return written(
    fields.filter(counts).map((field) => rewritten(field, { 1: resource, 2: scopeSpans, [LIBRARY_SPANS]: scopeSpans })),
  );
}

function scopeSpans(bytes: Uint8Array): Uint8Array {
  return message(bytes, { 1: (scope) => message(scope, { 3: attribute }), 2: span });
}

function span(bytes: Uint8Array): Uint8Array {
  return message(bytes, {
    9: attribute,
    11: (event) => message(event, { 3: attribute }),
    13: (link) => message(link, { 4: attribute }),
    15: (status) => message(status, {}),
  });
}

/** Deepest nesting within the attribute at hand, members that do not count included. */
interface Depth {
  deepest: number;
}

const VALUE = 2;

function attribute(bytes: Uint8Array): Uint8Array {
  const depth: Depth = { deepest: 0 };
  const pair = keyValue(bytes, 0, depth);
  if (depth.deepest <= MAX_KEPT_NESTING) return pair;
  return written(readFields(pair).filter(({ number, wire }) => number !== VALUE || wire !== LENGTH));
}

/** Several values are read as one, one behind the other. */
function keyValue(bytes: Uint8Array, nesting: number, depth: Depth): Uint8Array {
  const fields = readFields(bytes);
  const isValue = ({ number, wire }: Field): boolean => number === VALUE && wire === LENGTH;
  const values = fields.filter(isValue);
  const last = values.at(-1);
  if (last === undefined) return written(fields);
  const value = anyValue(
    values.flatMap((field) => readFields(field.bytes)),
    nesting,
    depth,
  );
  return written(
    fields
      .filter((field) => !isValue(field) || field === last)
      .map((field) => (field === last ? { ...field, bytes: value } : field)),
  );
}

/** Wire types of the members of an AnyValue, by field number. */
const MEMBERS: Readonly<Record<number, number>> = {
  1: LENGTH,
  2: VARINT,
  3: VARINT,
  4: FIXED64,
  5: LENGTH,
  6: LENGTH,
  7: LENGTH,
  8: VARINT,
};
const BOOL = 2;
const ARRAY = 5;
const PAIRS = 6;

function anyValue(fields: readonly Field[], nesting: number, depth: Depth): Uint8Array {
  const read = fields.map((field): Field => {
    if (field.wire === LENGTH && (field.number === ARRAY || field.number === PAIRS)) {
      const inside = nesting + 1;
      if (inside > MAX_NESTING) throw new Refused();
      depth.deepest = Math.max(depth.deepest, inside);
      const element: Rewrite = (bytes) =>
        field.number === ARRAY ? anyValue(readFields(bytes), inside, depth) : keyValue(bytes, inside, depth);
      return { ...field, bytes: message(field.bytes, { 1: element }) };
    }
    // protobufjs looks at all 70 bits.
    if (field.wire === VARINT && field.number === BOOL) {
      return { ...field, bytes: varintOf(varintAt(field.bytes, 0).value === 0n ? 0n : 1n) };
    }
    return field;
  });
  const isMember = ({ number, wire }: Field): boolean => MEMBERS[number] === wire;
  const last = read.findLast(isMember);
  return written(read.filter((field) => !isMember(field) || field === last));
}

// --- the encoding ---------------------------------------------------------------------------------------------------

/** Values are views of the bytes. */
function readFields(bytes: Uint8Array): Field[] {
  const fields: Field[] = [];
  let at = 0;
  while (at < bytes.length) {
    const tag = varintAt(bytes, at);
    at = tag.end;
    if (tag.value < 8n || tag.value > MAX_TAG) throw new Malformed();
    const number = Number(tag.value >> 3n);
    const wire = Number(tag.value & 7n);
    let from = at;
    if (wire === VARINT) at = varintAt(bytes, at).end;
    else if (wire === FIXED64) at += 8;
    else if (wire === FIXED32) at += 4;
    else if (wire === LENGTH) {
      const length = varintAt(bytes, at);
      from = length.end;
      if (length.value > BigInt(bytes.length - from)) throw new Malformed();
      at = from + Number(length.value);
    } else if (wire === GROUP) throw new Refused();
    else throw new Malformed();
    if (at > bytes.length) throw new Malformed();
    fields.push({ number, wire, bytes: bytes.subarray(from, at) });
  }
  return fields;
}

function varintAt(bytes: Uint8Array, from: number): { value: bigint; end: number } {
  let value = 0n;
  for (let at = from; at < bytes.length; at++) {
    if (at - from === MAX_VARINT_BYTES) throw new Refused();
    const byte = bytes[at] ?? 0;
    value |= BigInt(byte & 0x7f) << BigInt(7 * (at - from));
    if (byte < 0x80) return { value: BigInt.asUintN(64, value), end: at + 1 };
  }
  throw new Malformed();
}

function written(fields: readonly Field[]): Uint8Array {
  const pieces: Uint8Array[] = [];
  for (const { number, wire, bytes } of fields) {
    pieces.push(varintOf((BigInt(number) << 3n) | BigInt(wire)));
    if (wire === LENGTH) pieces.push(varintOf(BigInt(bytes.length)));
    pieces.push(bytes);
  }
  return new Uint8Array(Buffer.concat(pieces));
}

function varintOf(value: bigint): Uint8Array {
  const bytes: number[] = [];
  for (let rest = value; ; rest >>= 7n) {
    if (rest < 0x80n) return Uint8Array.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 0x7fn) | 0x80);
  }
}
