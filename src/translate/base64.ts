/** Base64 as OTLP senders write it: standard or URL alphabet, padded or not, nothing else. */
const ALPHABET = /^[A-Za-z0-9+/_-]*={0,2}$/;

/** The bytes, or null when the text is no base64. */
export function base64(text: string): Uint8Array | null {
  if (!ALPHABET.test(text)) return null;
  const digits = text.replace(/=+$/, '').length;
  if (digits % 4 === 1 || (digits < text.length && text.length % 4 !== 0)) return null;
  return Buffer.from(text, 'base64');
}
