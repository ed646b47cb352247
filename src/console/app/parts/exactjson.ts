/** JSON whose numbers stay as they were written: ids and token counts beyond what a double holds are shown in full. */

/** A number that a double does not hold exactly. */
export class ExactNumber {
  readonly #digits: string;
  constructor(digits: string) {
    this.#digits = digits;
  }
  toString(): string {
    return this.#digits;
  }
  /** Goes out with all its digits, where the browser can write them. */
  toJSON(): unknown {
    const { rawJSON } = JSON as { rawJSON?: (text: string) => unknown };
    return rawJSON === undefined ? Number(this.#digits) : rawJSON(this.#digits);
  }
}

interface ReviverContext {
  /** Of a primitive, as written; where the browser tells it. */
  readonly source?: string;
}

export function parseExactJson(text: string): unknown {
  const revive = (_key: string, value: unknown, context?: ReviverContext): unknown => {
    if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
    const source = context?.source;
    return source !== undefined && /^-?\d+$/.test(source) ? new ExactNumber(source) : value;
  };
  return JSON.parse(text, revive) as unknown;
}
