/**
 * A converter at work: one span and its record in, the record that its run becomes out. The parts are parsed, handed over
 * and written again; a JSON part that comes back as it was is copied byte for byte, so that what a converter leaves alone
 * costs no digit of precision.
 *
 * A span that makes no run (null, or a failure) still becomes a record, without a run in it and flagged: the assembler
 * has to know its place, because its children hang on its parent instead.
 */
import { inspect } from 'node:util';
import { alignRecord, Part, PART_COUNT, RECORD_HEADER_BYTES, RecordFlag, RecordOffset } from '../core/record.ts';
import { RecordView } from '../core/recordview.ts';
import type { Converter, ConverterRun, ConverterSpan } from './converter.ts';
import { parseExact, renderExact } from './exactjson.ts';
import { checkRun } from './runcheck.ts';

/** As large as the largest Span message. */
const MAX_RECORD_BYTES = 64 * 1024 * 1024;
const ATTACHMENT_HEAD_BYTES = 8;
/** Of an exception's stack, for the log. */
const MAX_REASON_CHARACTERS = 2000;

/** Parts that hold one JSON text: the member that they are, and how it begins. */
const JSON_PARTS = [
  [Part.Inputs, 'inputs', '{'],
  [Part.Outputs, 'outputs', '{'],
  [Part.Events, 'events', '['],
  [Part.Extra, 'extra', '{'],
  [Part.Error, 'error', '"'],
  [Part.Serialized, 'serialized', '{'],
] as const;

export class Conversion {
  readonly #convert: Converter;
  readonly #view = new RecordView();
  /** Why the last span failed, for the log; null when it did not. */
  failure: string | null = null;

  constructor(convert: Converter) {
    this.#convert = convert;
  }

  /** A record of its own memory: the one at `offset` of `bytes`, with the run that the converter makes of it. */
  run(span: ConverterSpan, bytes: Uint8Array, offset: number): Buffer {
    this.failure = null;
    const view = this.#view;
    view.open(bytes, offset);
    view.readParts();
    try {
      const parts = this.#runParts(span);
      return parts === null ? this.#withdrawn(RecordFlag.ConverterDropped) : this.#record(parts, 0);
    } catch (error) {
      // Whatever it is: it happened in the converter, or over what the converter returned.
      this.failure = inspect(error, { depth: 1 }).slice(0, MAX_REASON_CHARACTERS);
      return this.#withdrawn(RecordFlag.ConverterFailed);
    } finally {
      view.close();
    }
  }

  /** The parts of the run that the converter made; null when it dropped the span. */
  #runParts(span: ConverterSpan): Buffer[] | null {
    const { run, rendered } = this.#defaultRun();
    const { session_name: projectName, session_id: projectId } = run;
    const result: unknown = this.#convert(span, run);
    if (result === null) return null;
    const made = checkRun(result);
    const parts = this.#sameParts();
    parts[Part.Head] = Buffer.from(renderHead(made, projectName ?? null, projectId ?? null));
    for (const [part, member, beginning] of JSON_PARTS) {
      const value = made[member] ?? null;
      const text = value === null ? '' : renderExact(value);
      // An object may have a mind of its own: toJSON.
      if (text !== '' && !text.startsWith(beginning)) throw new TypeError(`${member} is ${text.slice(0, 100)} as JSON`);
      if (text !== (rendered[part] ?? '')) parts[part] = Buffer.from(text);
    }
    parts[Part.Attachments] = renderAttachments(made.attachments ?? {});
    return parts;
  }

  #partOf(part: number): Buffer {
    const start = this.#view.partStart(part);
    return this.#view.bytes.subarray(start, start + this.#view.partBytes(part));
  }

  #sameParts(): Buffer[] {
    return Array.from({ length: PART_COUNT }, (_, part) => this.#partOf(part));
  }

  /** The run of the record, and what its JSON parts look like when rendered from it. */
  #defaultRun(): { run: ConverterRun; rendered: string[] } {
    const run = parseExact(`{${this.#partOf(Part.Head).toString()}}`) as ConverterRun;
    const rendered: string[] = [];
    for (const [part, member] of JSON_PARTS) {
      const text = this.#partOf(part).toString();
      if (text === '') continue;
      const value = parseExact(text);
      Object.assign(run, { [member]: value });
      rendered[part] = renderExact(value);
    }
    const attachments = readAttachments(this.#partOf(Part.Attachments));
    if (attachments !== null) run.attachments = attachments;
    return { run, rendered };
  }

  /** Only the span's place. */
  #withdrawn(flag: number): Buffer {
    const none = Buffer.alloc(0);
    const parts = this.#sameParts().map((bytes, part) => (part === Part.Key || part === Part.Overrides ? bytes : none));
    return this.#record(parts, flag);
  }

  /** The record's header over other parts. */
  #record(parts: readonly Buffer[], flag: number): Buffer {
    const view = this.#view;
    const lengthBytes = parts.reduce((sum, part) => sum + part.length, RECORD_HEADER_BYTES);
    if (lengthBytes > MAX_RECORD_BYTES) throw new RangeError(`a run of ${lengthBytes} bytes is too large`);
    const header = Buffer.from(view.bytes.subarray(view.offset, view.offset + RECORD_HEADER_BYTES));
    header.writeUInt32LE(alignRecord(lengthBytes), RecordOffset.TotalBytes);
    header.writeUInt32LE((view.flags | flag) >>> 0, RecordOffset.Flags);
    for (const [part, bytes] of parts.entries()) {
      header.writeUInt32LE(bytes.length, RecordOffset.PartLengths + 4 * part);
    }
    // Filled up with zeros.
    return Buffer.concat([header, ...parts], alignRecord(lengthBytes));
  }
}

/** The members of the run's own record, without braces. */
function renderHead(run: ConverterRun, projectName: string | null, projectId: string | null): string {
  const { name, run_type, status, tags, reference_example_id } = run;
  const example = reference_example_id ?? null;
  const head = {
    name,
    run_type,
    status,
    ...projectOf(run, projectName, projectId),
    ...(tags && tags.length > 0 ? { tags } : {}),
    ...(example === null ? {} : { reference_example_id: example }),
  };
  return renderExact(head).slice(1, -1);
}

/** The backend takes a project's name or its id, not both. */
function projectOf(run: ConverterRun, projectName: string | null, projectId: string | null): object {
  const name = run.session_name ?? null;
  const id = run.session_id ?? null;
  if (name === null && id === null) {
    return projectId === null ? { session_name: projectName ?? 'default' } : { session_id: projectId };
  }
  return id !== null && (name === null || id !== projectId) ? { session_id: id } : { session_name: name };
}

function readAttachments(part: Buffer): NonNullable<ConverterRun['attachments']> | null {
  if (part.length === 0) return null;
  const found = Object.create(null) as NonNullable<ConverterRun['attachments']>;
  let at = 0;
  while (at < part.length) {
    const nameAt = at + ATTACHMENT_HEAD_BYTES;
    const typeAt = nameAt + part.readUInt16LE(at);
    const dataAt = typeAt + part.readUInt16LE(at + 2);
    const end = dataAt + part.readUInt32LE(at + 4);
    // A copy: the converter may keep it.
    found[part.toString('utf8', nameAt, typeAt)] = [
      part.toString('utf8', typeAt, dataAt),
      new Uint8Array(part.subarray(dataAt, end)),
    ];
    at = end;
  }
  return found;
}

function renderAttachments(attachments: NonNullable<ConverterRun['attachments']>): Buffer {
  const pieces: Uint8Array[] = [];
  for (const [name, [mimeType, data]] of Object.entries(attachments)) {
    const nameBytes = Buffer.from(name);
    const typeBytes = Buffer.from(mimeType);
    const lengths = Buffer.alloc(ATTACHMENT_HEAD_BYTES);
    lengths.writeUInt16LE(nameBytes.length, 0);
    lengths.writeUInt16LE(typeBytes.length, 2);
    lengths.writeUInt32LE(data.length, 4);
    pieces.push(lengths, nameBytes, typeBytes, data);
  }
  return Buffer.concat(pieces);
}
