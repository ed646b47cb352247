/**
 * Points in time as whole microseconds since the Unix epoch, and as text. Exact, and readable from the database, are the
 * years 1685 to 2255; what is outside of them is not taken for a time.
 */
import { MS_US, SECOND_US } from '../core/units.ts';

const ZERO = 48;
/** `2026-08-22T10:15:30`, the part of RFC 3339 before fraction and zone. */
const SECONDS_LENGTH = 19;

/** The number that `count` decimal digits at `at` spell, or -1 when one of them is not a digit. */
function digits(text: string, at: number, count: number): number {
  let value = 0;
  for (let i = at; i < at + count; i++) {
    const digit = text.charCodeAt(i) - ZERO;
    if (!(digit >= 0 && digit <= 9)) return -1;
    value = value * 10 + digit;
  }
  return value;
}

/** Milliseconds since the epoch, or null when the calendar or the clock has no such second. */
function utcMs(y: number, mo: number, d: number, h: number, mi: number, s: number): number | null {
  if (y < 0 || mo < 1 || mo > 12 || d < 1 || h < 0 || h > 23 || mi < 0 || mi > 59 || s < 0 || s > 59) return null;
  if (d > 28 && d > new Date(Date.UTC(2000 + (y % 400), mo, 0)).getUTCDate()) return null;
  const ms = Date.UTC(y, mo - 1, d, h, mi, s);
  // Date.UTC reads the years 0 to 99 as 1900 to 1999.
  return y > 99 ? ms : new Date(ms).setUTCFullYear(y);
}

function exact(us: number): number | null {
  return Number.isSafeInteger(us) ? us : null;
}

/**
 * Reads an RFC 3339 timestamp; the zone is required. Digits after the sixth of the fraction are cut off. Null when the
 * text is anything else.
 */
export function readRfc3339(text: string): number | null {
  if (text.length < SECONDS_LENGTH + 1 || text[4] !== '-' || text[7] !== '-' || text[10] !== 'T') return null;
  if (text[13] !== ':' || text[16] !== ':') return null;
  const ms = utcMs(
    digits(text, 0, 4),
    digits(text, 5, 2),
    digits(text, 8, 2),
    digits(text, 11, 2),
    digits(text, 14, 2),
    digits(text, 17, 2),
  );
  if (ms === null) return null;
  let at = SECONDS_LENGTH;
  let micros = 0;
  if (text[at] === '.') {
    const from = ++at;
    let scale = SECOND_US / 10;
    for (; at < text.length; at++) {
      const digit = text.charCodeAt(at) - ZERO;
      if (!(digit >= 0 && digit <= 9)) break;
      micros += digit * scale;
      scale = Math.floor(scale / 10);
    }
    if (at === from) return null;
  }
  const zone = text[at];
  let offsetMinutes = 0;
  if (zone === 'Z') {
    if (at + 1 !== text.length) return null;
  } else {
    if ((zone !== '+' && zone !== '-') || at + 6 !== text.length || text[at + 3] !== ':') return null;
    const hours = digits(text, at + 1, 2);
    const minutes = digits(text, at + 4, 2);
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return null;
    offsetMinutes = (zone === '+' ? 1 : -1) * (hours * 60 + minutes);
  }
  return exact((ms - offsetMinutes * 60_000) * MS_US + micros);
}

/** Reads the time of a `dotted_order` segment without its `Z`: `YYYYMMDDTHHMMSSffffff`. Null when it is not one. */
export function readSegmentTime(text: string): number | null {
  if (text.length !== 21 || text[8] !== 'T') return null;
  const micros = digits(text, 15, 6);
  const ms = utcMs(
    digits(text, 0, 4),
    digits(text, 4, 2),
    digits(text, 6, 2),
    digits(text, 9, 2),
    digits(text, 11, 2),
    digits(text, 13, 2),
  );
  return ms === null || micros < 0 ? null : exact(ms * MS_US + micros);
}

/** From start to end, never negative; null while there is no end. The difference of two exact times need not be exact. */
export function durationBetween(startUs: number, endUs: number | null): number | null {
  return endUs === null ? null : Math.min(Math.max(0, endUs - startUs), Number.MAX_SAFE_INTEGER);
}

/** `2026-08-22T10:15:30.250000Z`: always six digits of fraction. */
export function writeRfc3339(us: number): string {
  const ms = Math.floor(us / MS_US);
  return `${new Date(ms).toISOString().slice(0, -1)}${String(us - ms * MS_US).padStart(3, '0')}Z`;
}

/** The time of a `dotted_order` segment, with its `Z`. */
export function writeSegmentTime(us: number): string {
  return writeRfc3339(us).replaceAll(/[-:.]/g, '');
}

/** The inverse of reading, for people: `2025-12-22 23:43:08.012678`. */
export function writePlain(us: number): string {
  return writeRfc3339(us).replace('T', ' ').slice(0, -1);
}
