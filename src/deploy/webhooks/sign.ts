/**
 * Standard Webhooks: id, time and HMAC-SHA256 of a message, so that a receiver can tell that it is from us, is recent, and is not one
 * that it had before.
 */
import { createHmac } from 'node:crypto';

export interface SigningKey {
  readonly bytes: Buffer;
}

const PREFIX = 'whsec_';
/** The standard's bounds. */
const MIN_KEY_BYTES = 24;
const MAX_KEY_BYTES = 64;

/** `whsec_` and base64; null when it is not that. */
export function signingKey(secret: string): SigningKey | null {
  const encoded = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  if (!/^[A-Za-z0-9+/]+={0,2}$/.test(encoded)) return null;
  const bytes = Buffer.from(encoded, 'base64');
  return bytes.length >= MIN_KEY_BYTES && bytes.length <= MAX_KEY_BYTES ? { bytes } : null;
}

/** Headers of one attempt. Several keys sign side by side while one is being replaced. */
export function signatureHeaders(
  keys: readonly SigningKey[],
  message: { id: string; sentMs: number; body: string },
): Record<string, string> {
  const seconds = Math.floor(message.sentMs / 1000);
  const headers: Record<string, string> = { 'webhook-id': message.id, 'webhook-timestamp': String(seconds) };
  if (keys.length === 0) return headers;
  const signed = `${message.id}.${seconds}.${message.body}`;
  headers['webhook-signature'] = keys
    .map((key) => `v1,${createHmac('sha256', key.bytes).update(signed, 'utf8').digest('base64')}`)
    .join(' ');
  return headers;
}
