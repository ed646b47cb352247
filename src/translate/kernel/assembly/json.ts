// Validates a JSON document (RFC 8259) and notes its structure on a tape: four i32 words a node, in document order.
//   0: type | member or element count << 8 (containers)
//   1: address of the first byte (of a string: its opening quote)
//   2: address after the last byte
//   3: word address (address / 4) of the next sibling: the node after this one's subtree
// A member is a KEY node followed by its value's node.
import {
  DOC_ESCAPED_KEY,
  DOC_LONE_SURROGATE,
  DOC_MAYBE_DUPLICATE,
  DOC_TAPE_FULL,
  KEY_HASHES,
  MAX_COMPARED_KEYS,
  MAX_JSON_DEPTH,
  RESULT_FLAGS,
  RESULT_NODES,
  STACK,
} from './layout';
import { hash, resetText, sawEscape, sawIllFormed, sawLone, stringEnd, clearLone } from './text';

const OBJECT: i32 = 1;
const ARRAY: i32 = 2;
const STRING: i32 = 3;
const NUMBER: i32 = 4;
const TRUE: i32 = 5;
const FALSE: i32 = 6;
const NULL: i32 = 7;
const KEY: i32 = 8;

const NODE_BYTES: usize = 16;

const EXPECT_VALUE: i32 = 0;
const AFTER_VALUE: i32 = 1;
const OBJECT_START: i32 = 2;
const OBJECT_KEY: i32 = 3;
const ARRAY_START: i32 = 4;

/** Not JSON. */
const INVALID: i32 = -1;
/** JSON so far, but with ill-formed UTF-8 in a string. */
const ILL_FORMED: i32 = -2;

// @ts-ignore: decorator
@inline
function isSpace(c: u8): bool {
  return c == 0x20 || c == 0x0a || c == 0x0d || c == 0x09;
}

// @ts-ignore: decorator
@inline
function isDigit(c: u8): bool {
  return c >= 0x30 && c <= 0x39;
}

/** Address after the number at `p`, or 0. */
function numberEnd(p: usize, end: usize): usize {
  if (load<u8>(p) == 0x2d) {
    p += 1;
    if (p >= end) return 0;
  }
  let c = load<u8>(p);
  if (c == 0x30) {
    p += 1;
  } else if (isDigit(c)) {
    do p += 1;
    while (p < end && isDigit(load<u8>(p)));
  } else return 0;
  if (p < end && load<u8>(p) == 0x2e) {
    p += 1;
    if (p >= end || !isDigit(load<u8>(p))) return 0;
    do p += 1;
    while (p < end && isDigit(load<u8>(p)));
  }
  if (p < end && (load<u8>(p) | 0x20) == 0x65) {
    p += 1;
    if (p < end && (load<u8>(p) == 0x2b || load<u8>(p) == 0x2d)) p += 1;
    if (p >= end || !isDigit(load<u8>(p))) return 0;
    do p += 1;
    while (p < end && isDigit(load<u8>(p)));
  }
  return p;
}

let valueEnd: usize = 0;

// @ts-ignore: decorator
@inline
function node(tape: usize, index: i32, type: i32, start: usize, stop: usize, next: i32): void {
  const at = tape + <usize>index * NODE_BYTES;
  store<i32>(at, type);
  store<u32>(at, <u32>start, 4);
  store<u32>(at, <u32>stop, 8);
  store<i32>(at, <i32>(tape >> 2) + (next << 2), 12);
}

/**
 * Parses the value at `p` (leading white space allowed) and stops after it. Returns 0, or INVALID or ILL_FORMED.
 * `maxNodes` bounds the tape; beyond it the document is still validated.
 */
function value(p: usize, end: usize, tape: usize, maxNodes: i32, maxDepth: i32): i32 {
  let nodes: i32 = 0;
  let flags: i32 = 0;
  let depth: i32 = 0;
  let state: i32 = EXPECT_VALUE;
  resetText();
  clearLone();
  while (true) {
    while (p < end && isSpace(load<u8>(p))) p += 1;
    if (p >= end) return INVALID;
    const c = load<u8>(p);
    if (state == AFTER_VALUE) {
      // inside a container, for depth > 0
      const frame = STACK + (<usize>depth << 4);
      const kind = load<i32>(frame, 4);
      if (c == 0x2c) {
        p += 1;
        state = kind == OBJECT ? OBJECT_KEY : EXPECT_VALUE;
        continue;
      }
      if (c != (kind == OBJECT ? 0x7d : 0x5d)) return INVALID;
      p += 1;
      const index = load<i32>(frame);
      if (index < maxNodes) {
        const at = tape + <usize>index * NODE_BYTES;
        store<i32>(at, kind | (load<i32>(frame, 8) << 8));
        store<u32>(at, <u32>p, 8);
        store<i32>(at, <i32>(tape >> 2) + (nodes << 2), 12);
      }
      depth -= 1;
      if (depth == 0) break;
      continue;
    }
    if (state == OBJECT_START || state == OBJECT_KEY) {
      const frame = STACK + (<usize>depth << 4);
      if (c == 0x7d && state == OBJECT_START) {
        state = AFTER_VALUE;
        continue;
      }
      if (c != 0x22) return INVALID;
      const start = p + 1;
      resetText();
      const close = stringEnd(start, end);
      if (close == 0) return sawIllFormed ? ILL_FORMED : INVALID;
      if (sawEscape) flags |= DOC_ESCAPED_KEY;
      const length = close - start;
      const count = load<i32>(frame, 8);
      const h = hash(start, length);
      const hashes = KEY_HASHES + <usize>depth * (MAX_COMPARED_KEYS << 2);
      if (count < MAX_COMPARED_KEYS) {
        for (let i: usize = hashes, stop = hashes + (<usize>count << 2); i < stop; i += 4) {
          if (load<u32>(i) == h) flags |= DOC_MAYBE_DUPLICATE;
        }
        store<u32>(hashes + (<usize>count << 2), h);
      } else flags |= DOC_MAYBE_DUPLICATE;
      store<i32>(frame, count + 1, 8);
      if (nodes < maxNodes) node(tape, nodes, KEY, p, close + 1, nodes + 1);
      nodes += 1;
      p = close + 1;
      while (p < end && isSpace(load<u8>(p))) p += 1;
      if (p >= end || load<u8>(p) != 0x3a) return INVALID;
      p += 1;
      state = EXPECT_VALUE;
      continue;
    }
    if (state == ARRAY_START && c == 0x5d) {
      state = AFTER_VALUE;
      continue;
    }
    // a value
    if (depth > 0) {
      const frame = STACK + (<usize>depth << 4);
      if (load<i32>(frame, 4) == ARRAY) store<i32>(frame, load<i32>(frame, 8) + 1, 8);
    }
    if (c == 0x7b || c == 0x5b) {
      depth += 1;
      if (depth > maxDepth) return INVALID;
      const frame = STACK + (<usize>depth << 4);
      const kind = c == 0x7b ? OBJECT : ARRAY;
      store<i32>(frame, nodes);
      store<i32>(frame, kind, 4);
      store<i32>(frame, 0, 8);
      if (nodes < maxNodes) node(tape, nodes, kind, p, p, nodes + 1);
      nodes += 1;
      p += 1;
      state = c == 0x7b ? OBJECT_START : ARRAY_START;
      continue;
    }
    const start = p;
    let type: i32 = 0;
    if (c == 0x22) {
      const close = stringEnd(p + 1, end);
      if (close == 0) return sawIllFormed ? ILL_FORMED : INVALID;
      p = close + 1;
      type = STRING;
    } else if (c == 0x2d || isDigit(c)) {
      p = numberEnd(p, end);
      if (p == 0) return INVALID;
      type = NUMBER;
    } else if (c == 0x74) {
      if (p + 4 > end || load<u32>(p) != 0x65757274) return INVALID;
      p += 4;
      type = TRUE;
    } else if (c == 0x66) {
      if (p + 5 > end || load<u32>(p, 1) != 0x65736c61) return INVALID;
      p += 5;
      type = FALSE;
    } else if (c == 0x6e) {
      if (p + 4 > end || load<u32>(p) != 0x6c6c756e) return INVALID;
      p += 4;
      type = NULL;
    } else return INVALID;
    if (nodes < maxNodes) node(tape, nodes, type, start, p, nodes + 1);
    nodes += 1;
    if (depth == 0) break;
    state = AFTER_VALUE;
  }
  if (nodes > maxNodes) flags |= DOC_TAPE_FULL;
  if (sawLone) flags |= DOC_LONE_SURROGATE;
  store<i32>(RESULT_FLAGS, flags);
  store<i32>(RESULT_NODES, nodes);
  valueEnd = p;
  return 0;
}

/** A whole document: nothing but white space around the value. Returns 0, -1 not JSON, -2 ill-formed UTF-8. */
export function parse(p: usize, end: usize, tape: usize, maxNodes: i32): i32 {
  const code = value(p, end, tape, maxNodes, MAX_JSON_DEPTH);
  if (code != 0) return code;
  p = valueEnd;
  while (p < end && isSpace(load<u8>(p))) p += 1;
  return p == end ? 0 : INVALID;
}

/** Address after the value at `p`, which stands `depth` containers deep in its document; 0 when it is not JSON. */
export function skip(p: usize, end: usize, depth: i32): usize {
  const code = value(p, end, 0, 0, MAX_JSON_DEPTH - depth);
  return code == 0 ? valueEnd : 0;
}

/** Address of the first byte from `p` that is not white space (or `end`). */
export function skipSpace(p: usize, end: usize): usize {
  while (p < end && isSpace(load<u8>(p))) p += 1;
  return p;
}
