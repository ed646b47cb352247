/**
 * JSON to objects and back for converters, without losing digits: an integer that a double does not hold exactly becomes
 * a bigint, and a bigint is written as the number that it is.
 */

/** An integer that may not be exact, or what looks like one inside of a string; fractions and most ids do not. */
const LONG_INTEGER = /(?:^|[[:,\s])-?\d{16}/;
/** A bigint's making takes more than linear time; what is longer than this nobody counts with. */
const INTEGER = /^-?\d{1,100}$/;
/** Escapes of lone surrogates (of pairs, none are written), and escaped backslashes, so as not to take one for them. */
const ESCAPES = /\\(?:u(d[89a-f][0-9a-f]{2})|.)/g;

// Not in the language's type library yet.
type SourceReviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;
interface ExactJson {
  parse(text: string, reviver: SourceReviver): unknown;
  rawJSON(text: string): unknown;
}
const json = JSON as unknown as ExactJson;

/** With a long integer in it several times slower: a call for every value. */
export function parseExact(text: string): unknown {
  return LONG_INTEGER.test(text) ? json.parse(text, reviveInteger) : JSON.parse(text);
}

/** Throws a TypeError when there is no JSON of the value. */
export function renderExact(value: unknown): string {
  const text = stringify(value);
  if (text === undefined) throw new TypeError(`a ${typeof value} is no JSON`);
  if (!text.includes('\\ud')) return text;
  return text.replace(ESCAPES, (escape, surrogate: string | undefined) =>
    surrogate === undefined ? escape : '\ufffd',
  );
}

/** A call for every value makes it several times slower: first without, which throws where there is a bigint. */
function stringify(value: unknown): string | undefined {
  try {
    return JSON.stringify(value);
  } catch {
    // Whatever else was wrong with it is wrong again.
    return JSON.stringify(value, replaceInteger);
  }
}

function reviveInteger(_key: string, value: unknown, { source }: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value) || source === undefined) return value;
  return INTEGER.test(source) ? BigInt(source) : value;
}

function replaceInteger(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? json.rawJSON(String(value)) : value;
}
