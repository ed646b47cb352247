/**
 * A run as parts of a multipart/form-data body, written as bytes: `post.{id}`, then `.inputs`, `.outputs`, `.events`,
 * `.extra`, `.serialized`, `.error`, then `attachment.{id}.{name}`. Each part has Content-Disposition, Content-Type and
 * Content-Length in this order, as the backend demands. A run's bytes do not depend on where in a body they stand.
 */
import { randomBytes } from 'node:crypto';
import { Part } from '../core/record.ts';
import type { RecordView } from '../core/recordview.ts';
import { ORDER_SEGMENT_BYTES, ORDER_TIME_BYTES, UUID_TEXT_BYTES } from '../core/run.ts';
import { ISO_TIME_BYTES, TimestampWriter } from '../core/timestamp.ts';

const CR = 0x0d;
const LF = 0x0a;
const ZERO = 0x30;
const DASH = 0x2d;
const COLON = 0x3a;
const POINT = 0x2e;
const CLOSE_BRACE = 0x7d;

// The members that depend on the run's place, between the values.
const ID = Buffer.from('{"id":"');
const TRACE_ID = Buffer.from('","trace_id":"');
const PARENT_RUN_ID = Buffer.from('","parent_run_id":"');
const DOTTED_ORDER = Buffer.from('","dotted_order":"');
const START_TIME = Buffer.from('","start_time":"');
const END_TIME = Buffer.from('","end_time":"');
const HEAD = Buffer.from('",');
const ROOT_MEMBERS_BYTES =
  ID.length +
  TRACE_ID.length +
  DOTTED_ORDER.length +
  START_TIME.length +
  2 * UUID_TEXT_BYTES +
  ISO_TIME_BYTES +
  HEAD.length +
  1;
const PARENT_MEMBER_BYTES = PARENT_RUN_ID.length + UUID_TEXT_BYTES;
const END_MEMBER_BYTES = END_TIME.length + ISO_TIME_BYTES;

/** Field parts in the order of the SDKs. */
const FIELDS: readonly (readonly [part: number, name: string])[] = [
  [Part.Inputs, 'inputs'],
  [Part.Outputs, 'outputs'],
  [Part.Events, 'events'],
  [Part.Extra, 'extra'],
  [Part.Serialized, 'serialized'],
  [Part.Error, 'error'],
];
/** Generous for the framing of one part: delimiter, three header lines, up to ten digits. */
const FRAME_BYTES = 320;
/** u16 name length, u16 MIME type length, u32 data length. */
const ATTACHMENT_HEAD_BYTES = 8;

/** The beginning of a part up to the digits of its length, with a hole for the run id. */
interface Opening {
  readonly bytes: Buffer;
  readonly idAt: number;
}

export class MultipartWriter {
  /** Random, so that no payload can contain it by design; the same for all bodies of one writer. */
  readonly boundary: string;
  /** Ends a body. */
  readonly closing: Buffer;
  readonly #post: Opening;
  readonly #fields: readonly (readonly [part: number, opening: Opening])[];
  readonly #attachment: Opening;
  readonly #timestamps = new TimestampWriter();

  constructor(boundary = `collector-proxy-${randomBytes(16).toString('hex')}`) {
    this.boundary = boundary;
    this.closing = Buffer.from(`--${boundary}--\r\n`);
    const opening = (before: string, after: string): Opening => {
      const start = `--${boundary}\r\nContent-Disposition: form-data; name="${before}.`;
      return { bytes: Buffer.from(`${start}${' '.repeat(UUID_TEXT_BYTES)}${after}`), idAt: start.length };
    };
    const json = '"\r\nContent-Type: application/json\r\nContent-Length: ';
    this.#post = opening('post', json);
    this.#fields = FIELDS.map(([part, name]) => [part, opening('post', `.${name}${json}`)]);
    this.#attachment = opening('attachment', '.');
  }

  /** Never less than what {@link write} writes. The record's parts must have been read. */
  boundBytes(record: RecordView, orderBytes: number): number {
    let partCount = 1 + FIELDS.length;
    let at = record.partStart(Part.Attachments);
    const end = at + record.partBytes(Part.Attachments);
    for (; at + ATTACHMENT_HEAD_BYTES <= end; partCount++) at += attachmentBytes(record.bytes, at);
    return record.totalBytes + 2 * orderBytes + partCount * FRAME_BYTES;
  }

  /** Writes the run and returns where it ends. The record's parts must have been read. */
  write(target: Buffer, start: number, record: RecordView, order: Buffer, orderBytes: number, endUs: number): number {
    const { bytes } = record;
    let at = this.#writePost(target, start, record, order, orderBytes, endUs);
    for (const [part, opening] of this.#fields) {
      const lengthBytes = record.partBytes(part);
      if (lengthBytes === 0) continue;
      at = writeOpening(target, at, opening, order, orderBytes);
      at = writeDecimal(target, at, lengthBytes);
      at = writeHeadEnd(target, at);
      const from = record.partStart(part);
      at += bytes.copy(target, at, from, from + lengthBytes);
      at = writeCrlf(target, at);
    }
    if (record.partBytes(Part.Attachments) > 0) at = this.#writeAttachments(target, at, record, order, orderBytes);
    return at;
  }

  #writePost(
    target: Buffer,
    start: number,
    record: RecordView,
    order: Buffer,
    orderBytes: number,
    endUs: number,
  ): number {
    const isChild = orderBytes > ORDER_SEGMENT_BYTES;
    const hasEnd = !Number.isNaN(endUs);
    const headBytes = record.partBytes(Part.Head);
    const lengthBytes =
      ROOT_MEMBERS_BYTES +
      orderBytes +
      headBytes +
      (isChild ? PARENT_MEMBER_BYTES : 0) +
      (hasEnd ? END_MEMBER_BYTES : 0);
    const idAt = orderBytes - UUID_TEXT_BYTES;
    let at = writeOpening(target, start, this.#post, order, orderBytes);
    at = writeDecimal(target, at, lengthBytes);
    at = writeHeadEnd(target, at);
    at += ID.copy(target, at);
    at += order.copy(target, at, idAt, orderBytes);
    at += TRACE_ID.copy(target, at);
    at += order.copy(target, at, ORDER_TIME_BYTES, ORDER_SEGMENT_BYTES);
    if (isChild) {
      at += PARENT_RUN_ID.copy(target, at);
      const parentEnd = orderBytes - ORDER_SEGMENT_BYTES - 1;
      at += order.copy(target, at, parentEnd - UUID_TEXT_BYTES, parentEnd);
    }
    at += DOTTED_ORDER.copy(target, at);
    at += order.copy(target, at, 0, orderBytes);
    at += START_TIME.copy(target, at);
    at = writeIsoOfCompact(target, at, order, orderBytes - ORDER_SEGMENT_BYTES);
    if (hasEnd) {
      at += END_TIME.copy(target, at);
      this.#timestamps.writeIso(target, at, endUs);
      at += ISO_TIME_BYTES;
    }
    at += HEAD.copy(target, at);
    const headAt = record.partStart(Part.Head);
    at += record.bytes.copy(target, at, headAt, headAt + headBytes);
    target[at++] = CLOSE_BRACE;
    return writeCrlf(target, at);
  }

  #writeAttachments(target: Buffer, start: number, record: RecordView, order: Buffer, orderBytes: number): number {
    const { bytes } = record;
    let at = start;
    let from = record.partStart(Part.Attachments);
    const end = from + record.partBytes(Part.Attachments);
    for (; from + ATTACHMENT_HEAD_BYTES <= end; from += attachmentBytes(bytes, from)) {
      const nameAt = from + ATTACHMENT_HEAD_BYTES;
      const typeAt = nameAt + bytes.readUInt16LE(from);
      const dataAt = typeAt + bytes.readUInt16LE(from + 2);
      const dataBytes = bytes.readUInt32LE(from + 4);
      at = writeOpening(target, at, this.#attachment, order, orderBytes);
      // Both come from the sender: nothing in them may end the line or the quotes, and a name has no dot.
      at += target.write(bytes.toString('latin1', nameAt, typeAt).replace(/[\0-\x1f"\\.\x7f]/g, '_'), at, 'latin1');
      const type = bytes.toString('latin1', typeAt, dataAt).replace(/[^\x20-\x7e]/g, '');
      at += target.write(`"\r\nContent-Type: ${type || 'application/octet-stream'}\r\nContent-Length: `, at, 'latin1');
      at = writeDecimal(target, at, dataBytes);
      at = writeHeadEnd(target, at);
      at += bytes.copy(target, at, dataAt, dataAt + dataBytes);
      at = writeCrlf(target, at);
    }
    return at;
  }
}

function attachmentBytes(bytes: Buffer, at: number): number {
  return ATTACHMENT_HEAD_BYTES + bytes.readUInt16LE(at) + bytes.readUInt16LE(at + 2) + bytes.readUInt32LE(at + 4);
}

function writeOpening(target: Buffer, at: number, opening: Opening, order: Buffer, orderBytes: number): number {
  opening.bytes.copy(target, at);
  order.copy(target, at + opening.idAt, orderBytes - UUID_TEXT_BYTES, orderBytes);
  return at + opening.bytes.length;
}

function writeCrlf(target: Buffer, at: number): number {
  target[at] = CR;
  target[at + 1] = LF;
  return at + 2;
}

function writeHeadEnd(target: Buffer, at: number): number {
  target[at] = CR;
  target[at + 1] = LF;
  target[at + 2] = CR;
  target[at + 3] = LF;
  return at + 4;
}

function writeDecimal(target: Buffer, start: number, value: number): number {
  let digits = 1;
  for (let limit = 10; value >= limit; limit *= 10) digits++;
  let rest = value;
  for (let at = start + digits - 1; at >= start; at--) {
    const tens = Math.floor(rest / 10);
    target[at] = ZERO + (rest - tens * 10);
    rest = tens;
  }
  return start + digits;
}

/** `YYYYMMDDTHHMMSSffffffZ` at `from` becomes `YYYY-MM-DDTHH:MM:SS.ffffffZ`. */
function writeIsoOfCompact(target: Buffer, start: number, order: Buffer, from: number): number {
  let at = start;
  for (let i = 0; i < ORDER_TIME_BYTES; i++) {
    if (i === 4 || i === 6) target[at++] = DASH;
    else if (i === 11 || i === 13) target[at++] = COLON;
    else if (i === 15) target[at++] = POINT;
    target[at++] = order[from + i] ?? 0;
  }
  return at;
}
