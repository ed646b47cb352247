/** Identifiers of the deployment API. */
import { createHash, randomBytes } from 'node:crypto';
import type { Clock } from '../core/lifecycle.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Published namespace of the default assistants; it is not the RFC's URL namespace, which ends its first group in b811. */
const ASSISTANT_NAMESPACE = Buffer.from('6ba7b8219dad11d180b400c04fd430c8', 'hex');

/** Any version, any case: clients mint v4, v5 and v7. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

/** The id of the assistant that every configured graph has from the start (UUIDv5). */
export function defaultAssistantId(graphId: string): string {
  const hash = createHash('sha1').update(ASSISTANT_NAMESPACE).update(graphId, 'utf8').digest().subarray(0, 16);
  hash.writeUInt8((hash.readUInt8(6) & 0x0f) | 0x50, 6);
  hash.writeUInt8((hash.readUInt8(8) & 0x3f) | 0x80, 8);
  return uuidText(hash);
}

/** What a default assistant is known by. */
export const DEFAULT_ASSISTANT_METADATA = { created_by: 'system' };

/** What requests name as an assistant: its id, or a graph, which stands for its default assistant. */
export function assistantIdOf(given: string): string {
  return isUuid(given) ? given.toLowerCase() : defaultAssistantId(given);
}

/** Makes UUIDv7s that sort by creation, also within one millisecond and when the clock steps back. */
export interface IdSource {
  next(): string;
}

export function createIdSource(clock: Pick<Clock, 'nowMs'>): IdSource {
  let lastMs = 0;
  /** The 12 bits behind the time count up within a millisecond; 2048 random starting points leave room to count. */
  let sequence = 0;
  return {
    next: () => {
      const bytes = randomBytes(16);
      const nowMs = clock.nowMs();
      if (nowMs > lastMs) {
        lastMs = nowMs;
        sequence = bytes.readUInt16BE(6) & 0x7ff;
      } else if (++sequence > 0xfff) {
        lastMs += 1;
        sequence = 0;
      }
      bytes.writeUIntBE(lastMs, 0, 6);
      bytes.writeUInt16BE(0x7000 | sequence, 6);
      bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
      return uuidText(bytes);
    },
  };
}

function uuidText(bytes: Buffer): string {
  const hex = bytes.toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}
