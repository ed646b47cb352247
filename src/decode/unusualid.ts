/** Ids of traces and spans in OTLP/JSON that are not written as the specification says, in hex. */
import { base64 } from '../translate/base64.ts';

/** An id that no span has: wherever it is looked at, its length gives it away. */
export const NO_ID = new Uint8Array(1);

/** The bytes of an id of `count` bytes, by the length of its text; `NO_ID` when it is none. */
export function unusualId(text: string, count: number): Uint8Array {
  if (text.length === 2 * count) return /^[0-9a-f]*$/i.test(text) ? Buffer.from(text, 'hex') : NO_ID;
  if (count === 16 && text.length === 36 && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) {
    return Buffer.from(text.replaceAll('-', ''), 'hex');
  }
  const bytes = base64(text);
  if (bytes === null) return NO_ID;
  if (bytes.length === count) return bytes;
  if (text.length === 4 * Math.ceil((2 * count) / 3)) {
    const hex = Buffer.from(bytes).toString('latin1');
    if (hex.length === 2 * count && /^[0-9a-f]*$/i.test(hex)) return Buffer.from(hex, 'hex');
  }
  return NO_ID;
}
