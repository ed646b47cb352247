/** Python's repr of plain data, for the emitters that write it where JSON was meant. */
import { Num, readDocument, wellFormed, type Json } from './json.ts';
import { trim } from './values.ts';

/** JSON, else a Python literal; undefined when it is neither. */
export function readLenient(text: string): Json | undefined {
  const json = readDocument(text);
  if (json !== undefined) return json;
  const trimmed = trim(text);
  if (!/^[{[]/.test(trimmed)) return undefined;
  const reader = new PythonReader(trimmed);
  try {
    const value = reader.value(1);
    return reader.atEnd() ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

class PythonReader {
  private readonly text: string;
  private at = 0;

  constructor(text: string) {
    this.text = text;
  }

  atEnd(): boolean {
    this.space();
    return this.at === this.text.length;
  }

  private space(): void {
    while (' \t\n\r'.includes(this.text[this.at] ?? 'x')) this.at++;
  }

  private fail(): never {
    throw new SyntaxError(`no Python literal at ${this.at}`);
  }

  private take(char: string): boolean {
    this.space();
    if (this.text[this.at] !== char) return false;
    this.at++;
    return true;
  }

  value(depth: number): Json {
    if (depth > 512) this.fail();
    this.space();
    if (this.take('{')) return this.dict(depth);
    if (this.take('[')) return this.items(']', depth);
    if (this.take('(')) return this.items(')', depth);
    const c = this.text[this.at];
    if (c === "'" || c === '"') return this.string();
    const word = /True|False|None|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
    word.lastIndex = this.at;
    const match = word.exec(this.text);
    if (match === null) this.fail();
    this.at += match[0].length;
    return match[0] === 'True' ? true : match[0] === 'False' ? false : match[0] === 'None' ? null : new Num(match[0]);
  }

  private dict(depth: number): Json {
    const dict = new Map<string, Json>();
    while (!this.take('}')) {
      this.space();
      const quote = this.text[this.at];
      if (quote !== "'" && quote !== '"') this.fail();
      const key = this.string();
      if (!this.take(':')) this.fail();
      dict.delete(key);
      dict.set(key, this.value(depth + 1));
      if (!this.take(',')) {
        if (!this.take('}')) this.fail();
        break;
      }
    }
    return dict;
  }

  private items(close: string, depth: number): Json {
    const items: Json[] = [];
    while (!this.take(close)) {
      items.push(this.value(depth + 1));
      if (!this.take(',')) {
        if (!this.take(close)) this.fail();
        break;
      }
    }
    return items;
  }

  private string(): string {
    const quote = this.text[this.at++];
    let out = '';
    for (;;) {
      const c = this.text[this.at++];
      if (c === undefined || c === '\n' || c === '\r') this.fail();
      if (c === quote) return wellFormed(out);
      if (c !== '\\') {
        out += c;
        continue;
      }
      const escape = this.text[this.at++] ?? this.fail();
      const plain = { '\\': '\\', "'": "'", '"': '"', n: '\n', t: '\t', r: '\r', b: '\b', f: '\f' }[escape];
      const digits = escape === 'x' ? 2 : escape === 'u' ? 4 : 0;
      const hex = this.text.slice(this.at, this.at + digits);
      if (plain !== undefined) {
        out += plain;
      } else if (digits > 0 && hex.length === digits && /^[0-9a-fA-F]+$/.test(hex)) {
        out += String.fromCharCode(parseInt(hex, 16));
        this.at += digits;
      } else {
        out += `\\${escape}`;
      }
    }
  }
}
