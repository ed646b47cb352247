/**
 * Microseconds since the epoch as text, in the two spellings of the run format. The calendar part is kept from one call
 * to the next: spans come in the order of time, so most calls only write six digits.
 */
import { DAY_MS, SECOND_MS, SECOND_US } from './units.ts';

/** `2026-08-22T10:15:30.250000Z` */
export const ISO_TIME_BYTES = 27;

const ZERO = 0x30;
const DAY_SECONDS = DAY_MS / SECOND_MS;

export class TimestampWriter {
  #second = -1;
  #day = -1;
  /** `YYYYMMDDTHHMMSS` of `#second`. */
  readonly #compact = Buffer.from('19700101T000000');
  /** `YYYY-MM-DDTHH:MM:SS.` of `#second`. */
  readonly #iso = Buffer.from('1970-01-01T00:00:00.');

  /** Writes `YYYYMMDDTHHMMSSffffffZ`, 22 bytes. */
  writeCompact(target: Buffer, at: number, timeUs: number): void {
    const second = Math.floor(timeUs / SECOND_US);
    if (second !== this.#second) this.#turn(second);
    this.#compact.copy(target, at);
    writeDigits(target, at + 15, timeUs - second * SECOND_US, 6);
    target[at + 21] = 0x5a;
  }

  /** Writes `YYYY-MM-DDTHH:MM:SS.ffffffZ`, 27 bytes. */
  writeIso(target: Buffer, at: number, timeUs: number): void {
    const second = Math.floor(timeUs / SECOND_US);
    if (second !== this.#second) this.#turn(second);
    this.#iso.copy(target, at);
    writeDigits(target, at + 20, timeUs - second * SECOND_US, 6);
    target[at + 26] = 0x5a;
  }

  #turn(second: number): void {
    const day = Math.floor(second / DAY_SECONDS);
    if (day !== this.#day) this.#turnDay(day);
    const inDay = second - day * DAY_SECONDS;
    const minute = Math.floor(inDay / 60);
    const [compact, iso] = [this.#compact, this.#iso];
    writeDigits(compact, 9, Math.floor(minute / 60), 2);
    writeDigits(compact, 11, minute % 60, 2);
    writeDigits(compact, 13, inDay % 60, 2);
    compact.copy(iso, 11, 9, 11);
    compact.copy(iso, 14, 11, 13);
    compact.copy(iso, 17, 13, 15);
    this.#second = second;
  }

  #turnDay(day: number): void {
    const date = new Date(day * DAY_MS);
    const [compact, iso] = [this.#compact, this.#iso];
    writeDigits(compact, 0, date.getUTCFullYear(), 4);
    writeDigits(compact, 4, date.getUTCMonth() + 1, 2);
    writeDigits(compact, 6, date.getUTCDate(), 2);
    compact.copy(iso, 0, 0, 4);
    compact.copy(iso, 5, 4, 6);
    compact.copy(iso, 8, 6, 8);
    this.#day = day;
  }
}

/** The microseconds of a text that {@link TimestampWriter.writeCompact} could have written; NaN if it could not. */
export function parseCompact(text: string): number {
  const match = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)(\d{6})Z$/.exec(text);
  if (match === null) return Number.NaN;
  const [, year, month, day, hour, minute, second, fraction] = match;
  const secondMs = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
  return secondMs >= 0 ? secondMs * 1000 + Number(fraction) : Number.NaN;
}

function writeDigits(target: Buffer, at: number, value: number, count: number): void {
  let rest = value;
  for (let i = at + count - 1; i >= at; i--) {
    const tens = Math.floor(rest / 10);
    target[i] = ZERO + (rest - tens * 10);
    rest = tens;
  }
}
