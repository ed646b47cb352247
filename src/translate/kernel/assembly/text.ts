// UTF-8 and JSON strings, sixteen bytes at a time. Bytes that need a look (quote, backslash, control, non-ASCII) are
// found by three comparisons: as signed bytes, everything below 0x20 is a control character or non-ASCII.
// Reads may run up to 15 bytes past the end of a range and writes up to 15 past the output position: the owner keeps
// that much slack after every region.
import { RESULT_OUT, VALUE_A } from './layout';

const QUOTE: u8 = 0x22;
const BACKSLASH: u8 = 0x5c;

// @ts-ignore: decorator
@inline
function specials(v: v128): i32 {
  return i8x16.bitmask(
    v128.or(
      i8x16.lt_s(v, i8x16.splat(0x20)),
      v128.or(i8x16.eq(v, i8x16.splat(0x22)), i8x16.eq(v, i8x16.splat(0x5c))),
    ),
  );
}

/** As `specials`, for the question alone. */
// @ts-ignore: decorator
@inline
function special(v: v128): v128 {
  return v128.or(
    i8x16.lt_s(v, i8x16.splat(0x20)),
    v128.or(i8x16.eq(v, i8x16.splat(0x22)), i8x16.eq(v, i8x16.splat(0x5c))),
  );
}

/** Copies `len` bytes; both ranges may be read and written up to 15 bytes further. Returns the new output position. */
export function copy(src: usize, len: usize, dst: usize): usize {
  if (len > 512) {
    memory.copy(dst, src, len);
    return dst + len;
  }
  let i: usize = 0;
  while (i < len) {
    v128.store(dst + i, v128.load(src + i));
    i += 16;
  }
  return dst + len;
}

export function equals(p: usize, q: usize, len: usize): bool {
  while (len >= 8) {
    if (load<u64>(p) != load<u64>(q)) return false;
    p += 8;
    q += 8;
    len -= 8;
  }
  if (len == 0) return true;
  const shift: u64 = 64 - (<u64>len << 3);
  return ((load<u64>(p) ^ load<u64>(q)) << shift) == 0;
}

/** A 32-bit hash of a byte range, eight bytes at a time. Used for keys only, always verified by `equals`. */
export function hash(p: usize, len: usize): u32 {
  let h: u64 = <u64>len * 0x9e3779b97f4a7c15;
  while (len >= 8) {
    h = (h ^ load<u64>(p)) * 0x9e3779b97f4a7c15;
    h ^= h >> 32;
    p += 8;
    len -= 8;
  }
  if (len > 0) {
    const shift: u64 = 64 - (<u64>len << 3);
    h = (h ^ (load<u64>(p) << shift)) * 0x9e3779b97f4a7c15;
    h ^= h >> 29;
  }
  return <u32>(h ^ (h >> 32));
}

/**
 * Length of the well-formed UTF-8 sequence that starts with the non-ASCII byte at `p` (2 to 4); when it is ill-formed,
 * minus the number of bytes that one U+FFFD replaces (WHATWG Encoding: maximal subpart).
 */
export function sequence(p: usize, end: usize): i32 {
  const b0 = <u32>load<u8>(p);
  if (b0 < 0xc2 || b0 > 0xf4) return -1;
  const left = end - p;
  if (left < 2) return -1;
  const b1 = <u32>load<u8>(p, 1);
  if (b0 < 0xe0) return (b1 & 0xc0) == 0x80 ? 2 : -1;
  if (b0 < 0xf0) {
    const low: u32 = b0 == 0xe0 ? 0xa0 : 0x80;
    const high: u32 = b0 == 0xed ? 0x9f : 0xbf;
    if (b1 < low || b1 > high) return -1;
    if (left < 3 || (<u32>load<u8>(p, 2) & 0xc0) != 0x80) return -2;
    return 3;
  }
  const low: u32 = b0 == 0xf0 ? 0x90 : 0x80;
  const high: u32 = b0 == 0xf4 ? 0x8f : 0xbf;
  if (b1 < low || b1 > high) return -1;
  if (left < 3 || (<u32>load<u8>(p, 2) & 0xc0) != 0x80) return -2;
  if (left < 4 || (<u32>load<u8>(p, 3) & 0xc0) != 0x80) return -3;
  return 4;
}

// @ts-ignore: decorator
@inline
function replacement(dst: usize): usize {
  store<u16>(dst, 0xbfef);
  store<u8>(dst, 0xbd, 2);
  return dst + 3;
}

// @ts-ignore: decorator
@inline
function hexDigit(value: u32): u8 {
  return <u8>(value < 10 ? 0x30 + value : 0x57 + value);
}

/** Writes the content of a JSON string (no quotes) for UTF-8 bytes; at most six bytes for one. Returns the position. */
export function escape(src: usize, len: usize, dst: usize): usize {
  const end = src + len;
  while (src < end) {
    const v = v128.load(src);
    v128.store(dst, v);
    const left = end - src;
    let mask = specials(v);
    if (left < 16) mask |= 1 << (<i32>left);
    if (mask == 0) {
      src += 16;
      dst += 16;
      while (src + 32 <= end) {
        const first = v128.load(src);
        const second = v128.load(src, 16);
        v128.store(dst, first);
        v128.store(dst, second, 16);
        if (v128.any_true(v128.or(special(first), special(second)))) break;
        src += 32;
        dst += 32;
      }
      continue;
    }
    const run = <usize>ctz(mask);
    src += run;
    dst += run;
    if (src >= end) break;
    let c = load<u8>(src);
    if (c >= 0x80) {
      do {
        const length = sequence(src, end);
        if (length > 0) {
          store<u32>(dst, load<u32>(src));
          src += length;
          dst += length;
        } else {
          dst = replacement(dst);
          src += -length;
        }
        if (src >= end) break;
        c = load<u8>(src);
      } while (c >= 0x80);
      continue;
    }
    src += 1;
    store<u8>(dst, BACKSLASH);
    if (c == QUOTE || c == BACKSLASH) {
      store<u8>(dst, c, 1);
      dst += 2;
      continue;
    }
    let short: u8 = 0;
    if (c == 0x0a) short = 0x6e;
    else if (c == 0x09) short = 0x74;
    else if (c == 0x0d) short = 0x72;
    else if (c == 0x08) short = 0x62;
    else if (c == 0x0c) short = 0x66;
    if (short != 0) {
      store<u8>(dst, short, 1);
      dst += 2;
    } else {
      store<u32>(dst, 0x30303075, 1);
      store<u8>(dst, hexDigit(c >> 4), 4);
      store<u8>(dst, hexDigit(c & 15), 5);
      dst += 6;
    }
  }
  return dst;
}

/** Copies UTF-8 bytes, ill-formed sequences replaced by U+FFFD; at most three bytes for one. */
export function sanitize(src: usize, len: usize, dst: usize): usize {
  const end = src + len;
  while (src < end) {
    const v = v128.load(src);
    v128.store(dst, v);
    const left = end - src;
    let mask = i8x16.bitmask(v);
    if (left < 16) mask |= 1 << (<i32>left);
    if (mask == 0) {
      src += 16;
      dst += 16;
      continue;
    }
    const run = <usize>ctz(mask);
    src += run;
    dst += run;
    while (src < end && load<u8>(src) >= 0x80) {
      const length = sequence(src, end);
      if (length > 0) {
        store<u32>(dst, load<u32>(src));
        src += length;
        dst += length;
      } else {
        dst = replacement(dst);
        src += -length;
      }
    }
  }
  return dst;
}

/** Whether the range is well-formed UTF-8. */
export function wellFormed(p: usize, len: usize): bool {
  const end = p + len;
  while (p < end) {
    const left = end - p;
    let mask = i8x16.bitmask(v128.load(p));
    if (left < 16) mask |= 1 << (<i32>left);
    if (mask == 0) {
      p += 16;
      continue;
    }
    p += <usize>ctz(mask);
    while (p < end && load<u8>(p) >= 0x80) {
      const length = sequence(p, end);
      if (length < 0) return false;
      p += length;
    }
  }
  return true;
}

function hexValue(c: u32): i32 {
  if (c >= 0x30 && c <= 0x39) return c - 0x30;
  c |= 0x20;
  if (c >= 0x61 && c <= 0x66) return c - 0x57;
  return -1;
}

/** The four hex digits at `p`, or -1. */
function hex4(p: usize, end: usize): i32 {
  if (p + 4 > end) return -1;
  const a = hexValue(load<u8>(p));
  const b = hexValue(load<u8>(p, 1));
  const c = hexValue(load<u8>(p, 2));
  const d = hexValue(load<u8>(p, 3));
  if ((a | b | c | d) < 0) return -1;
  return (a << 12) | (b << 8) | (c << 4) | d;
}

export let sawEscape: bool = false;
export let sawIllFormed: bool = false;
/** A surrogate escape without its other half. */
export let sawLone: bool = false;

/**
 * Validates the content of a JSON string from `p` (after its opening quote). Returns the address of the closing quote,
 * or 0.
 */
export function stringEnd(p: usize, end: usize): usize {
  while (p < end) {
    const left = end - p;
    let mask = specials(v128.load(p));
    if (left < 16) mask |= 1 << (<i32>left);
    // Quotes and short escapes one after the other, without looking at the sixteen bytes again.
    let done: usize = 16;
    while (mask != 0) {
      const i = <usize>ctz(mask);
      if (i >= left) return 0;
      const c = load<u8>(p + i);
      if (c == QUOTE) return p + i;
      if (c != BACKSLASH || i + 1 >= left) {
        done = i;
        break;
      }
      const e = load<u8>(p + i, 1);
      if (e != 0x6e && e != QUOTE && e != BACKSLASH && e != 0x74 && e != 0x72 && e != 0x2f && e != 0x62 && e != 0x66) {
        done = i;
        break;
      }
      sawEscape = true;
      if (i == 15) {
        done = 17;
        break;
      }
      mask &= ~(3 << (<i32>i));
    }
    p += done;
    if (mask == 0 || done == 17) {
      // Text comes in runs: after sixteen plain bytes it pays to look at sixty-four.
      if (done == 16) {
          while (
          p + 64 <= end &&
          !v128.any_true(
            v128.or(
              v128.or(special(v128.load(p)), special(v128.load(p, 16))),
              v128.or(special(v128.load(p, 32)), special(v128.load(p, 48))),
            ),
          )
        )
          p += 64;
      }
      continue;
    }
    if (p >= end) return 0;
    let c = load<u8>(p);
    if (c == BACKSLASH) {
      // an escape of four digits, or none at all
      sawEscape = true;
      p += 1;
      if (p >= end || load<u8>(p) != 0x75) return 0;
      const unit = hex4(p + 1, end);
      if (unit < 0) return 0;
      if ((unit & 0xf800) == 0xd800) {
        let paired = false;
        if (unit < 0xdc00 && p + 11 <= end && load<u16>(p, 5) == 0x755c) {
          const low = hex4(p + 7, end);
          if (low < 0) return 0;
          paired = (low & 0xfc00) == 0xdc00;
        }
        if (paired) {
          p += 11;
          continue;
        }
        sawLone = true;
      }
      p += 5;
      continue;
    }
    if (c < 0x20) return 0;
    do {
      const length = sequence(p, end);
      if (length < 0) {
        sawIllFormed = true;
        return 0;
      }
      p += length;
      if (p >= end) return 0;
      c = load<u8>(p);
    } while (c >= 0x80);
  }
  return 0;
}

// @ts-ignore: decorator
@inline
function encode(code: u32, dst: usize): usize {
  if (code < 0x80) {
    store<u8>(dst, <u8>code);
    return dst + 1;
  }
  if (code < 0x800) {
    store<u8>(dst, <u8>(0xc0 | (code >> 6)));
    store<u8>(dst, <u8>(0x80 | (code & 63)), 1);
    return dst + 2;
  }
  if (code < 0x10000) {
    store<u8>(dst, <u8>(0xe0 | (code >> 12)));
    store<u8>(dst, <u8>(0x80 | ((code >> 6) & 63)), 1);
    store<u8>(dst, <u8>(0x80 | (code & 63)), 2);
    return dst + 3;
  }
  store<u8>(dst, <u8>(0xf0 | (code >> 18)));
  store<u8>(dst, <u8>(0x80 | ((code >> 12) & 63)), 1);
  store<u8>(dst, <u8>(0x80 | ((code >> 6) & 63)), 2);
  store<u8>(dst, <u8>(0x80 | (code & 63)), 3);
  return dst + 4;
}

/**
 * Reads the content of a JSON string from `p` (after its opening quote) and writes it as UTF-8 to `dst`: escapes
 * resolved, lone surrogates and ill-formed sequences replaced by U+FFFD; at most three bytes for one. Returns the
 * address of the closing quote, or 0; the output position is in RESULT_OUT.
 */
export function unescape(p: usize, end: usize, dst: usize): usize {
  while (p < end) {
    const v = v128.load(p);
    v128.store(dst, v);
    const left = end - p;
    let mask = specials(v);
    if (left < 16) mask |= 1 << (<i32>left);
    if (mask == 0) {
      p += 16;
      dst += 16;
      continue;
    }
    const run = <usize>ctz(mask);
    p += run;
    dst += run;
    if (p >= end) return 0;
    let c = load<u8>(p);
    if (c == QUOTE) {
      store<u32>(RESULT_OUT, <u32>dst);
      return p;
    }
    if (c == BACKSLASH) {
      if (p + 1 >= end) return 0;
      c = load<u8>(p, 1);
      p += 2;
      if (c == 0x75) {
        const unit = hex4(p, end);
        if (unit < 0) return 0;
        p += 4;
        let code = <u32>unit;
        if ((unit & 0xf800) == 0xd800) {
          code = 0xfffd;
          if (unit < 0xdc00 && p + 6 <= end && load<u16>(p) == 0x755c) {
            const low = hex4(p + 2, end);
            if (low < 0) return 0;
            if ((low & 0xfc00) == 0xdc00) {
              code = 0x10000 + ((<u32>unit & 0x3ff) << 10) + (<u32>low & 0x3ff);
              p += 6;
            }
          }
        }
        dst = encode(code, dst);
        continue;
      }
      let plain: u8 = 0;
      if (c == QUOTE || c == BACKSLASH || c == 0x2f) plain = c;
      else if (c == 0x6e) plain = 0x0a;
      else if (c == 0x74) plain = 0x09;
      else if (c == 0x72) plain = 0x0d;
      else if (c == 0x62) plain = 0x08;
      else if (c == 0x66) plain = 0x0c;
      else return 0;
      store<u8>(dst, plain);
      dst += 1;
      continue;
    }
    if (c < 0x20) return 0;
    do {
      const length = sequence(p, end);
      if (length > 0) {
        store<u32>(dst, load<u32>(p));
        p += length;
        dst += length;
      } else {
        dst = replacement(dst);
        p += -length;
      }
      if (p >= end) return 0;
      c = load<u8>(p);
    } while (c >= 0x80);
  }
  return 0;
}

export function clearLone(): void {
  sawLone = false;
}

export function resetText(): void {
  sawEscape = false;
  sawIllFormed = false;
}

/** Writes the signed 64-bit integer of two words in decimal; at most twenty bytes. */
export function decimal(low: u32, high: u32, dst: usize): usize {
  let magnitude: u64 = (<u64>high << 32) | <u64>low;
  const value = <i64>magnitude;
  if (value < 0) {
    store<u8>(dst, 0x2d);
    dst += 1;
    magnitude = 0 - magnitude;
  }
  let digits: usize = 1;
  let bound: u64 = 10;
  while (digits < 20 && magnitude >= bound) {
    digits += 1;
    bound *= 10;
    if (digits == 20) break;
  }
  let p = dst + digits;
  do {
    p -= 1;
    store<u8>(p, <u8>(0x30 + (magnitude % 10)));
    magnitude /= 10;
  } while (p > dst);
  return dst + digits;
}

/**
 * Reads a decimal integer that fills the range: an optional minus, then digits. Returns 1 when it fits a signed 64-bit
 * integer, 2 when it fits only an unsigned one, 0 otherwise; its bits are in VALUE_A (low) and VALUE_B (high).
 */
export function integer(p: usize, len: usize): i32 {
  const end = p + len;
  let negative = false;
  if (p < end && load<u8>(p) == 0x2d) {
    negative = true;
    p += 1;
  }
  if (p >= end || end - p > 20) return 0;
  let value: u64 = 0;
  while (p < end) {
    const digit = <u64>load<u8>(p) - 0x30;
    if (digit > 9) return 0;
    if (value > 1844674407370955161 || (value == 1844674407370955161 && digit > 5)) return 0;
    value = value * 10 + digit;
    p += 1;
  }
  if (negative) {
    if (value > 0x8000000000000000) return 0;
    store<u64>(VALUE_A, 0 - value);
    return 1;
  }
  store<u64>(VALUE_A, value);
  return value <= 0x7fffffffffffffff ? 1 : 2;
}

/** Decodes `count` bytes from hex digits. Returns whether all were digits. */
export function hexBytes(p: usize, count: usize, dst: usize): bool {
  for (let i: usize = 0; i < count; i++) {
    const high = hexValue(load<u8>(p + 2 * i));
    const low = hexValue(load<u8>(p + 2 * i, 1));
    if ((high | low) < 0) return false;
    store<u8>(dst + i, <u8>((high << 4) | low));
  }
  return true;
}

/** Writes `count` bytes as lower-case hex digits. */
export function hexText(p: usize, count: usize, dst: usize): usize {
  for (let i: usize = 0; i < count; i++) {
    const b = <u32>load<u8>(p + i);
    store<u8>(dst, hexDigit(b >> 4));
    store<u8>(dst, hexDigit(b & 15), 1);
    dst += 2;
  }
  return dst;
}
