/**
 * The last thing tried with a single run that is too large for the backend: attachments and events are left out, and
 * the largest of outputs, inputs and extra is replaced by a marker that says how much there was and how it began; more
 * of them, as long as the run is still more than half as large as the one refused. `extra.metadata` tells. An `extra`
 * that is too large to be parsed for that is replaced in any case.
 */
import { KiB, MiB } from '../core/units.ts';
import { plainBody } from './batch.ts';
import type { Batch } from './batch.ts';
import type { Codec, Coding } from './compress.ts';

/** Kept of a replaced field. */
const PREFIX_BYTES = 4 * KiB;
/**
 * The largest `extra` that is parsed. A JSON text such as `[[],[],[],…]` takes fifteen times its bytes as objects, and where
 * the parser meets the heap's limit, it is the whole process that ends, not the thread.
 */
const MAX_PARSED_BYTES = MiB;
const REPLACEABLE = ['outputs', 'inputs', 'extra'];

interface Field {
  readonly head: string;
  /** `inputs` of `post.{id}.inputs`; empty for the run itself. */
  readonly name: string;
  readonly kind: 'post' | 'attachment';
  body: Buffer;
}

/** The smaller batch; its only run keeps its id. */
export function truncateRun(batch: Batch, codec: Codec, coding: Coding): Batch {
  const plain = plainBody(batch, codec);
  const fields = readFields(plain).filter((field) => field.kind === 'post' && field.name !== 'events');
  const replaced: string[] = [];
  const sizes = (): number => fields.reduce((sum, field) => sum + field.body.length, 0);
  const candidates = fields
    .filter((field) => REPLACEABLE.includes(field.name))
    .sort((a, b) => b.body.length - a.body.length);
  for (const field of candidates) {
    if (replaced.length > 0 && sizes() <= plain.length / 2) break;
    field.body = marker(field.body);
    replaced.push(field.name);
  }
  const extra = candidates.find((field) => field.name === 'extra' && field.body.length > MAX_PARSED_BYTES);
  if (extra !== undefined) {
    extra.body = marker(extra.body);
    replaced.push(extra.name);
  }
  flagExtra(fields, replaced, batch.plainBytes);
  const parts = fields.map((field) =>
    Buffer.concat([Buffer.from(`${field.head}Content-Length: ${field.body.length}\r\n\r\n`), field.body, CRLF]),
  );
  const closing = Buffer.from(`--${batch.boundary}--\r\n`);
  const body = Buffer.concat([...parts, closing]);
  return {
    ...batch,
    coding,
    body: codec.encode(body, coding),
    plainBytes: body.length,
    runStarts: Uint32Array.of(0, body.length - closing.length),
  };
}

const CRLF = Buffer.from('\r\n');

/** Reads what our own writer wrote: each part with the three header lines, the length last. */
function readFields(plain: Buffer): Field[] {
  const fields: Field[] = [];
  for (let at = 0; ;) {
    const headEnd = plain.indexOf('\r\n\r\n', at, 'latin1');
    if (headEnd < 0) return fields;
    const head = plain.toString('latin1', at, headEnd + 2);
    const [, kind, name = ''] = /; name="(post|attachment)\.[^."]*\.?([^"]*)"/.exec(head) ?? [];
    const lengthBytes = Number(/Content-Length: (\d+)/.exec(head)?.[1] ?? 0);
    const from = headEnd + 4;
    fields.push({
      head: head.slice(0, head.indexOf('Content-Length: ')),
      name,
      kind: kind === 'attachment' ? 'attachment' : 'post',
      body: plain.subarray(from, from + lengthBytes),
    });
    at = from + lengthBytes + CRLF.length;
  }
}

function marker(body: Buffer): Buffer {
  // A character cut in two at the end must not become a replacement character.
  const prefix = body.toString('utf8', 0, PREFIX_BYTES).replace(/\ufffd+$/, '');
  return Buffer.from(JSON.stringify({ truncated: true, original_bytes: body.length, prefix }));
}

function flagExtra(fields: Field[], replaced: readonly string[], originalBytes: number): void {
  const extra = fields.find((field) => field.name === 'extra');
  const document = extra === undefined ? {} : objectOf(extra.body);
  const metadata = 'metadata' in document && isObject(document['metadata']) ? document['metadata'] : {};
  document['metadata'] = { ...metadata, truncated_fields: replaced, truncated_from_bytes: originalBytes };
  const body = Buffer.from(JSON.stringify(document));
  if (extra !== undefined) {
    extra.body = body;
    return;
  }
  const post = fields.find((field) => field.name === '');
  if (post === undefined) return;
  const head = post.head.replace(/(name="post\.[^"]*)"/, '$1.extra"');
  fields.splice(1, 0, { head, name: 'extra', kind: 'post', body });
}

function objectOf(body: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body.toString('utf8'));
    return isObject(value) ? value : {};
  } catch {
    return {}; // it would have been refused for this as well; what is left of the run still goes out
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
