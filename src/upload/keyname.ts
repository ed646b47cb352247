/** What an API key is called where people look: the same in every log, listing and process, and no way back to the key. */
import { createHash } from 'node:crypto';

/** Eight hexadecimal digits. */
export function keyName(apiKey: string): string {
  return createHash('sha256').update(apiKey).digest('hex').slice(0, 8);
}
