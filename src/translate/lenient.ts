/**
 * Python's repr of plain data, for the emitters that write it where JSON was meant (`document.metadata` after the
 * OpenInference specification's own example, token details of the LangSmith Python exporter). Slow, and only tried on
 * text that is not JSON. Returns JSON text, or null.
 */

const MAX_DEPTH = 512;
const WORD = /True|False|None|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const ESCAPES: Readonly<Record<string, string>> = {
  '\\': '\\',
  "'": "'",
  '"': '"',
  n: '\n',
  t: '\t',
  r: '\r',
  b: '\b',
  f: '\f',
};

class NotPython extends Error {}

export function pythonToJson(text: string): string | null {
  const reader = new PythonReader(text);
  try {
    return reader.document();
  } catch (error) {
    if (error instanceof NotPython) return null;
    throw error;
  }
}

class PythonReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): string {
    this.#space();
    if (this.#text[this.#at] !== '{' && this.#text[this.#at] !== '[') throw new NotPython();
    const json = this.#value(1);
    this.#space();
    if (this.#at !== this.#text.length) throw new NotPython();
    return json;
  }

  #space(): void {
    while (' \t\n\r'.includes(this.#text[this.#at] ?? 'x')) this.#at++;
  }

  #take(char: string): boolean {
    this.#space();
    if (this.#text[this.#at] !== char) return false;
    this.#at++;
    return true;
  }

  #value(depth: number): string {
    if (depth > MAX_DEPTH) throw new NotPython();
    this.#space();
    if (this.#take('{')) return this.#dict(depth);
    if (this.#take('[')) return this.#items(']', depth);
    if (this.#take('(')) return this.#items(')', depth);
    const c = this.#text[this.#at];
    if (c === "'" || c === '"') return JSON.stringify(this.#string(c));
    WORD.lastIndex = this.#at;
    const word = WORD.exec(this.#text)?.[0];
    if (word === undefined) throw new NotPython();
    this.#at += word.length;
    if (word === 'True') return 'true';
    if (word === 'False') return 'false';
    return word === 'None' ? 'null' : word;
  }

  #dict(depth: number): string {
    const members = new Map<string, string>();
    while (!this.#take('}')) {
      this.#space();
      const quote = this.#text[this.#at];
      if (quote !== "'" && quote !== '"') throw new NotPython();
      const key = this.#string(quote);
      if (!this.#take(':')) throw new NotPython();
      members.delete(key);
      members.set(key, this.#value(depth + 1));
      if (this.#take(',')) continue;
      if (!this.#take('}')) throw new NotPython();
      break;
    }
    return `{${[...members].map(([key, value]) => `${JSON.stringify(key)}:${value}`).join(',')}}`;
  }

  #items(close: string, depth: number): string {
    const items: string[] = [];
    while (!this.#take(close)) {
      items.push(this.#value(depth + 1));
      if (this.#take(',')) continue;
      if (!this.#take(close)) throw new NotPython();
      break;
    }
    return `[${items.join(',')}]`;
  }

  #string(quote: string): string {
    this.#at++;
    let out = '';
    for (;;) {
      const c = this.#text[this.#at++];
      if (c === undefined || c === '\n' || c === '\r') throw new NotPython();
      if (c === quote) return out.toWellFormed();
      if (c !== '\\') {
        out += c;
        continue;
      }
      const escape = this.#text[this.#at++];
      if (escape === undefined) throw new NotPython();
      const plain = ESCAPES[escape];
      const digits = escape === 'x' ? 2 : escape === 'u' ? 4 : 0;
      const hex = this.#text.slice(this.#at, this.#at + digits);
      if (plain !== undefined) out += plain;
      else if (digits > 0 && hex.length === digits && /^[0-9a-fA-F]+$/.test(hex)) {
        out += String.fromCharCode(parseInt(hex, 16));
        this.#at += digits;
      } else out += `\\${escape}`;
    }
  }
}
