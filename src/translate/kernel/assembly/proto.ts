// Scans OTLP messages in place. Nothing is decoded: every known attribute's place is noted in a table, everything else
// is validated and passed over. The owner declares keys, prefixes and table addresses once (configure).
import {
  EVENT_GIVEN,
  EVENT_NAME_LEN,
  EVENT_NAME_OFF,
  EVENT_TIME_US,
  LINK_SPAN_LEN,
  LINK_SPAN_OFF,
  LINK_TRACE_LEN,
  LINK_TRACE_OFF,
  MAX_PROTO_NESTING,
  MAX_VALUE_NESTING,
  MEMBER_KEY_LEN,
  MEMBER_KEY_OFF,
  SPAN_END_US,
  SPAN_GIVEN,
  SPAN_GROUPS,
  SPAN_EVENTS,
  SPAN_ID_LEN,
  SPAN_ID_OFF,
  SPAN_INDEXED,
  SPAN_KIND,
  SPAN_LINKS,
  SPAN_MARKS,
  SPAN_NAME_LEN,
  SPAN_NAME_OFF,
  SPAN_PARENT_LEN,
  SPAN_PARENT_OFF,
  SPAN_PREFIXED,
  SPAN_START_US,
  SPAN_STATUS_CODE,
  SPAN_STATUS_LEN,
  SPAN_STATUS_OFF,
  SPAN_TRACE_LEN,
  SPAN_TRACE_OFF,
  SPAN_TRACE_STATE_LEN,
  SPAN_TRACE_STATE_OFF,
  VALUE_A,
  VALUE_B,
  VALUE_TYPE,
} from './layout';
import { equals, hash } from './text';

// value types
const ABSENT: i32 = 0;
const STRING: i32 = 1;
const BOOL: i32 = 2;
const INT: i32 = 3;
const DOUBLE: i32 = 4;
const ARRAY: i32 = 5;
const KVLIST: i32 = 6;
const BYTES: i32 = 7;

// wire types
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;
const FIXED32: u32 = 5;

// ---- cursor: one field at a time --------------------------------------------------------------------------------

let cursor: usize = 0;
let field: u32 = 0;
let wire: u32 = 0;
/** Varint and fixed values. */
let bits: u64 = 0;
/** Length-delimited values. */
let start: usize = 0;
let stop: usize = 0;

// @ts-ignore: decorator
@inline
function varint(end: usize): bool {
  let p = cursor;
  if (p >= end) return false;
  let b = <u64>load<u8>(p++);
  if (b < 0x80) {
    bits = b;
    cursor = p;
    return true;
  }
  let result = b & 0x7f;
  let shift: u64 = 7;
  while (p < end) {
    b = <u64>load<u8>(p++);
    result |= (b & 0x7f) << shift;
    if (b < 0x80) {
      bits = result;
      cursor = p;
      return true;
    }
    shift += 7;
    if (shift > 63) return false;
  }
  return false;
}

/** Reads the next field's tag and value. False: malformed (the caller checks for the end before). */
function next(end: usize): bool {
  if (!varint(end)) return false;
  if (bits > 0xffffffff) return false;
  const tag = <u32>bits;
  field = tag >> 3;
  wire = tag & 7;
  if (field == 0) return false;
  if (wire == LENGTH) {
    if (!varint(end)) return false;
    if (bits > <u64>(end - cursor)) return false;
    start = cursor;
    stop = cursor + <usize>bits;
    cursor = stop;
    return true;
  }
  if (wire == VARINT) return varint(end);
  if (wire == FIXED64) {
    if (end - cursor < 8) return false;
    bits = load<u64>(cursor);
    cursor += 8;
    return true;
  }
  if (wire == FIXED32) {
    if (end - cursor < 4) return false;
    bits = <u64>load<u32>(cursor);
    cursor += 4;
    return true;
  }
  return false; // groups and reserved wire types
}

// ---- the generic face, for the request's outer messages ---------------------------------------------------------

/**
 * Reads one field at `p`. Returns the address after it, or 0 when malformed. VALUE_TYPE holds field << 3 | wire type,
 * VALUE_A and VALUE_B the address range of a length-delimited value, or the low and high word of another.
 */
export function readField(p: usize, end: usize): usize {
  cursor = p;
  if (!next(end)) return 0;
  store<u32>(VALUE_TYPE, (field << 3) | wire);
  if (wire == LENGTH) {
    store<u32>(VALUE_A, <u32>start);
    store<u32>(VALUE_B, <u32>stop);
  } else store<u64>(VALUE_A, bits);
  return cursor;
}

// ---- values -----------------------------------------------------------------------------------------------------

let valueType: i32 = ABSENT;
/** String, array, kvlist, bytes: address and length. Bool, int, double: low and high word. */
let valueA: u32 = 0;
let valueB: u32 = 0;

// @ts-ignore: decorator
@inline
function ranged(type: i32): void {
  valueType = type;
  valueA = <u32>start;
  valueB = <u32>(stop - start);
}

// @ts-ignore: decorator
@inline
function inlined(type: i32): void {
  valueType = type;
  valueA = <u32>bits;
  valueB = <u32>(bits >> 32);
}

/** Reads an AnyValue into valueType, valueA, valueB; a later member of the oneof replaces an earlier one. */
function anyValue(p: usize, end: usize, depth: i32): bool {
  const outer = cursor;
  cursor = p;
  while (cursor < end) {
    if (!next(end)) return false;
    if (field == 1 && wire == LENGTH) ranged(STRING);
    else if (field == 3 && wire == VARINT) inlined(INT);
    else if (field == 4 && wire == FIXED64) inlined(DOUBLE);
    else if (field == 2 && wire == VARINT) {
      bits = bits != 0 ? 1 : 0;
      inlined(BOOL);
    } else if (field == 5 && wire == LENGTH) {
      const s = start;
      const e = stop;
      if (!arrayValue(s, e, depth + 1)) return false;
      start = s;
      stop = e;
      ranged(ARRAY);
    } else if (field == 6 && wire == LENGTH) {
      const s = start;
      const e = stop;
      if (!kvlistValue(s, e, depth + 1)) return false;
      start = s;
      stop = e;
      ranged(KVLIST);
    } else if (field == 7 && wire == LENGTH) ranged(BYTES);
    else if (field == 8 && wire == VARINT) valueType = ABSENT;
  }
  cursor = outer;
  return true;
}

/** Set when an array or kvlist nests deeper than values may: the attribute then counts as unset. */
let tooDeep: bool = false;

function arrayValue(p: usize, end: usize, depth: i32): bool {
  if (depth > MAX_PROTO_NESTING) return false;
  if (depth > MAX_VALUE_NESTING) tooDeep = true;
  const outer = cursor;
  cursor = p;
  while (cursor < end) {
    if (!next(end)) return false;
    if (field == 1 && wire == LENGTH && !anyValue(start, stop, depth)) return false;
  }
  cursor = outer;
  return true;
}

function kvlistValue(p: usize, end: usize, depth: i32): bool {
  if (depth > MAX_PROTO_NESTING) return false;
  if (depth > MAX_VALUE_NESTING) tooDeep = true;
  const outer = cursor;
  cursor = p;
  while (cursor < end) {
    if (!next(end)) return false;
    if (field == 1 && wire == LENGTH && !keyValue(start, stop, depth)) return false;
  }
  cursor = outer;
  return true;
}

let keyOff: usize = 0;
let keyLen: usize = 0;

/** Reads a KeyValue: key into keyOff and keyLen, value as anyValue does. */
function keyValue(p: usize, end: usize, depth: i32): bool {
  const outer = cursor;
  cursor = p;
  let off: usize = p;
  let len: usize = 0;
  valueType = ABSENT;
  let type: i32 = ABSENT;
  let a: u32 = 0;
  let b: u32 = 0;
  while (cursor < end) {
    if (!next(end)) return false;
    if (wire != LENGTH) continue;
    if (field == 1) {
      off = start;
      len = stop - start;
    } else if (field == 2) {
      valueType = type;
      valueA = a;
      valueB = b;
      if (!anyValue(start, stop, depth)) return false;
      type = valueType;
      a = valueA;
      b = valueB;
    }
  }
  cursor = outer;
  keyOff = off;
  keyLen = len;
  valueType = type;
  valueA = a;
  valueB = b;
  return true;
}

function publishValue(): void {
  store<i32>(VALUE_TYPE, valueType);
  store<u32>(VALUE_A, valueA);
  store<u32>(VALUE_B, valueB);
}

/**
 * Walks the elements of an ArrayValue (validated before): reads the element at `p` into VALUE_* and returns the address
 * after it, or 0 when there is none.
 */
export function nextElement(p: usize, end: usize): usize {
  cursor = p;
  while (cursor < end) {
    if (!next(end)) return 0;
    if (field == 1 && wire == LENGTH) {
      const after = cursor;
      valueType = ABSENT;
      anyValue(start, stop, 0);
      publishValue();
      return after;
    }
  }
  return 0;
}

/** As nextElement, for the members of a KeyValueList or any message whose repeated field `number` is a KeyValue. */
export function nextMember(p: usize, end: usize, number: u32): usize {
  cursor = p;
  while (cursor < end) {
    if (!next(end)) return 0;
    if (field == number && wire == LENGTH) {
      const after = cursor;
      tooDeep = false;
      keyValue(start, stop, 0);
      if (tooDeep) valueType = ABSENT;
      publishValue();
      store<u32>(MEMBER_KEY_OFF, <u32>keyOff);
      store<u32>(MEMBER_KEY_LEN, <u32>keyLen);
      return after;
    }
  }
  return 0;
}

// ---- known keys -------------------------------------------------------------------------------------------------

// Key table: open addressing, 16 bytes an entry: u32 hash, i32 (id | marks << 12 | indexed << 30) + 1 (0: free),
// u32 address, u32 length. Marks are the owner's: all marks of a span's attributes are or-ed together.
let tableBase: usize = 0;
let tableMask: u32 = 0;
// Prefix list: 16 bytes an entry: u32 address, u32 length, i32 id (-1: only marks), i32 marks << 12; and 256 bytes, one
// for each value of a key's first byte: whether any prefix starts with it.
let prefixBase: usize = 0;
let prefixCount: i32 = 0;
let prefixStarts: usize = 0;
// Attribute table: 16 bytes a key id: u32 generation, i32 type, u32 a, u32 b.
let attributes: usize = 0;
let generation: u32 = 0;
// Lists of one span: 32 bytes an indexed entry (key id, index, second index, type, a, b), 24 bytes a prefixed
// entry (prefix id, key address, key length, type, a, b).
let indexedBase: usize = 0;
let indexedMax: i32 = 0;
let indexedCount: i32 = 0;
let prefixedBase: usize = 0;
let prefixedMax: i32 = 0;
let prefixedCount: i32 = 0;
let marks: i32 = 0;
// u32 for each key id: the groups of the owner's tables that the key is in; or-ed like marks.
let groupBase: usize = 0;
let groups: u32 = 0;
let scratch: usize = 0;
/** Longest key with indices that is looked at; a longer one is of no known convention. */
const MAX_INDEXED_KEY: usize = 120;

export function configureKeys(
  base: usize,
  mask: u32,
  prefixes: usize,
  count: i32,
  starts: usize,
  groupTable: usize,
  scratchBase: usize,
): void {
  tableBase = base;
  tableMask = mask;
  prefixBase = prefixes;
  prefixCount = count;
  prefixStarts = starts;
  groupBase = groupTable;
  scratch = scratchBase;
}

export function configureLists(indexed: usize, maxIndexed: i32, prefixed: usize, maxPrefixed: i32): void {
  indexedBase = indexed;
  indexedMax = maxIndexed;
  prefixedBase = prefixed;
  prefixedMax = maxPrefixed;
}

/** Id of a known key, or -1. Bit 30 of the result marks an indexed key. */
function lookup(p: usize, len: usize): i32 {
  const h = hash(p, len);
  let slot = h & tableMask;
  while (true) {
    const entry = tableBase + (<usize>slot << 4);
    const id = load<i32>(entry, 4);
    if (id == 0) return -1;
    if (load<u32>(entry) == h && <usize>load<u32>(entry, 12) == len && equals(<usize>load<u32>(entry, 8), p, len))
      return id - 1;
    slot = (slot + 1) & tableMask;
  }
}

let index0: u32 = 0;
let index1: u32 = 0;

/** Looks up a key whose segments of digits count as indices: a.12.b is found as a.#.b with index 12. */
function lookupIndexed(p: usize, len: usize): i32 {
  if (len > MAX_INDEXED_KEY) return -1;
  let out = scratch;
  const end = p + len;
  let found = 0;
  index0 = 0;
  index1 = 0;
  let segment = true; // at the start of a segment
  while (p < end) {
    let c = load<u8>(p);
    if (segment && c >= 0x30 && c <= 0x39) {
      let q = p;
      let number: u32 = 0;
      do {
        number = number * 10 + (c - 0x30);
        q += 1;
        c = q < end ? load<u8>(q) : 0x2e;
      } while (c >= 0x30 && c <= 0x39 && q - p < 9);
      if (c == 0x2e && (q - p == 1 || load<u8>(p) != 0x30)) {
        if (found == 0) index0 = number;
        else if (found == 1) index1 = number;
        else return -1;
        found += 1;
        store<u8>(out++, 0x23);
        p = q;
        segment = false;
        continue;
      }
      c = load<u8>(p);
    }
    segment = c == 0x2e;
    store<u8>(out++, c);
    p += 1;
  }
  if (found == 0) return -1;
  return lookup(scratch, out - scratch);
}

export function lookupKey(p: usize, len: usize): i32 {
  return lookup(p, len);
}

const INDEXED_BIT: i32 = 1 << 30;
const MARK_BITS: i32 = 0x0ffff000;
const KEY_BITS: i32 = 0xfff;

/** Writes an entry of the list of prefixed attributes. */
// @ts-ignore: decorator
@inline
function listed(at: usize, prefix: i32, skipped: usize): void {
  store<i32>(at, prefix);
  store<u32>(at, <u32>(keyOff + skipped), 4);
  store<u32>(at, <u32>(keyLen - skipped), 8);
  store<i32>(at, valueType, 12);
  store<u32>(at, valueA, 16);
  store<u32>(at, valueB, 20);
}

/**
 * Notes the attribute held by keyOff, keyLen, valueType, valueA, valueB; one that is unset (no value, NaN, infinite,
 * nested too deeply) or has an empty key is passed over. False: more of them than the lists take.
 */
function note(): bool {
  if (valueType == ABSENT || tooDeep || keyLen == 0) return true;
  if (valueType == DOUBLE && (valueB & 0x7ff00000) == 0x7ff00000) return true;
  const id = lookup(keyOff, keyLen);
  if (id >= 0 && (id & INDEXED_BIT) == 0) {
    marks |= id;
    groups |= load<u32>(groupBase + (<usize>(id & KEY_BITS) << 2));
    const entry = attributes + (<usize>(id & KEY_BITS) << 4);
    store<u32>(entry, generation);
    store<i32>(entry, valueType, 4);
    store<u32>(entry, valueA, 8);
    store<u32>(entry, valueB, 12);
    return true;
  }
  let prefix = -1;
  let prefixLength: usize = 0;
  if (load<u8>(prefixStarts + <usize>load<u8>(keyOff)) != 0) {
    for (let i = 0; i < prefixCount; i++) {
      const entry = prefixBase + (<usize>i << 4);
      const length = <usize>load<u32>(entry, 4);
      if (keyLen < length || !equals(<usize>load<u32>(entry), keyOff, length)) continue;
      marks |= load<i32>(entry, 12);
      if (prefix < 0 && load<i32>(entry, 8) >= 0) {
        prefix = load<i32>(entry, 8);
        prefixLength = length;
      }
    }
    if (prefix >= 0) {
      if (keyLen == prefixLength) return true;
      if (prefixedCount >= prefixedMax) return false;
      listed(prefixedBase + <usize>prefixedCount * 24, prefix, prefixLength);
      prefixedCount += 1;
      return true;
    }
  }
  const indexed = lookupIndexed(keyOff, keyLen);
  if (indexed >= 0 && (indexed & INDEXED_BIT) != 0) {
    marks |= indexed;
    if (indexedCount >= indexedMax) return false;
    const at = indexedBase + (<usize>indexedCount << 5);
    store<i32>(at, indexed & KEY_BITS);
    store<u32>(at, index0, 4);
    store<u32>(at, index1, 8);
    store<i32>(at, valueType, 12);
    store<u32>(at, valueA, 16);
    store<u32>(at, valueB, 20);
    indexedCount += 1;
    return true;
  }
  return true;
}

// ---- spans ------------------------------------------------------------------------------------------------------

// @ts-ignore: decorator
@inline
function range(at: usize): void {
  store<u32>(at, <u32>start);
  store<u32>(at, <u32>(stop - start), 4);
}

/** Nanoseconds to microseconds, truncated; exact below 2^53. */
// @ts-ignore: decorator
@inline
function microseconds(): f64 {
  return <f64>(bits / 1000);
}

/** Results of scanSpan and scanEvent. */
const OK: i32 = 0;
const MALFORMED: i32 = 1;
const TOO_MANY: i32 = 2;

/**
 * Scans a Span message: fields into SPAN_*, attributes into the table at `attributeTable` under `stamp`, and validates
 * everything below. Returns 0, 1 malformed, 2 more attributes than the lists take.
 */
export function scanSpan(p: usize, end: usize, attributeTable: usize, stamp: u32): i32 {
  attributes = attributeTable;
  generation = stamp;
  indexedCount = 0;
  prefixedCount = 0;
  marks = 0;
  groups = 0;
  memory.fill(SPAN_TRACE_OFF, 0, SPAN_END_US + 8 - SPAN_TRACE_OFF);
  store<u64>(SPAN_TRACE_STATE_OFF, 0);
  let events = 0;
  let links = 0;
  let given = 0;
  cursor = p;
  while (cursor < end) {
    if (!next(end)) return MALFORMED;
    if (field == 9 && wire == LENGTH) {
      const after = cursor;
      tooDeep = false;
      if (!keyValue(start, stop, 0)) return MALFORMED;
      if (!note()) return TOO_MANY;
      cursor = after;
      continue;
    }
    if (wire == LENGTH) {
      switch (field) {
        case 1:
          range(SPAN_TRACE_OFF);
          break;
        case 2:
          range(SPAN_ID_OFF);
          break;
        case 3:
          range(SPAN_TRACE_STATE_OFF);
          break;
        case 4:
          range(SPAN_PARENT_OFF);
          break;
        case 5:
          range(SPAN_NAME_OFF);
          break;
        case 11:
          if (!checkAttributes(start, stop, 3)) return MALFORMED;
          events += 1;
          break;
        case 13:
          if (!checkAttributes(start, stop, 4)) return MALFORMED;
          links += 1;
          break;
        case 15: {
          const after = cursor;
          const statusEnd = stop;
          cursor = start;
          while (cursor < statusEnd) {
            if (!next(statusEnd)) return MALFORMED;
            if (field == 2 && wire == LENGTH) range(SPAN_STATUS_OFF);
            else if (field == 3 && wire == VARINT) store<i32>(SPAN_STATUS_CODE, <i32>bits);
          }
          cursor = after;
          break;
        }
      }
    } else if (wire == FIXED64) {
      if (field == 7) {
        store<f64>(SPAN_START_US, microseconds());
        given = bits != 0 ? given | 1 : given & ~1;
      } else if (field == 8) {
        store<f64>(SPAN_END_US, microseconds());
        given = bits != 0 ? given | 2 : given & ~2;
      }
    } else if (field == 6 && wire == VARINT) store<i32>(SPAN_KIND, <i32>bits);
  }
  store<i32>(SPAN_GIVEN, given);
  store<i32>(SPAN_EVENTS, events);
  store<i32>(SPAN_LINKS, links);
  store<i32>(SPAN_INDEXED, indexedCount);
  store<i32>(SPAN_PREFIXED, prefixedCount);
  store<i32>(SPAN_MARKS, marks & MARK_BITS);
  store<u32>(SPAN_GROUPS, groups);
  return OK;
}

/** Validates a message whose repeated field `number` is a KeyValue. */
export function checkAttributes(p: usize, end: usize, number: u32): bool {
  const outer = cursor;
  cursor = p;
  while (cursor < end) {
    if (!next(end)) return false;
    if (field == number && wire == LENGTH && !keyValue(start, stop, 0)) return false;
  }
  cursor = outer;
  return true;
}

/** Scans a Span.Event (validated before): time and name into EVENT_*, attributes into the tables. As scanSpan. */
export function scanEvent(p: usize, end: usize, attributeTable: usize, stamp: u32): i32 {
  attributes = attributeTable;
  generation = stamp;
  indexedCount = 0;
  prefixedCount = 0;
  store<f64>(EVENT_TIME_US, 0);
  store<i32>(EVENT_GIVEN, 0);
  store<u64>(EVENT_NAME_OFF, 0);
  cursor = p;
  while (cursor < end) {
    if (!next(end)) return MALFORMED;
    if (field == 3 && wire == LENGTH) {
      const after = cursor;
      tooDeep = false;
      if (!keyValue(start, stop, 0)) return MALFORMED;
      if (!note()) return TOO_MANY;
      cursor = after;
    } else if (field == 1 && wire == FIXED64) {
      store<f64>(EVENT_TIME_US, microseconds());
      store<i32>(EVENT_GIVEN, bits != 0 ? 1 : 0);
    }
    else if (field == 2 && wire == LENGTH) range(EVENT_NAME_OFF);
  }
  store<i32>(SPAN_INDEXED, indexedCount);
  store<i32>(SPAN_PREFIXED, prefixedCount);
  return OK;
}

/** Scans a Span.Link (validated before): ids into LINK_*. */
export function scanLink(p: usize, end: usize): void {
  store<u64>(LINK_TRACE_OFF, 0);
  store<u64>(LINK_SPAN_OFF, 0);
  cursor = p;
  while (cursor < end) {
    if (!next(end)) return;
    if (wire != LENGTH) continue;
    if (field == 1) range(LINK_TRACE_OFF);
    else if (field == 2) range(LINK_SPAN_OFF);
  }
}
