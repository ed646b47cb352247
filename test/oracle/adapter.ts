/** The byte translator behind the judge's interface: its records, parsed back into plain objects. */
import { Part, PART_COUNT, RECORD_HEADER_BYTES, RecordFlag, RecordOffset } from '../../src/core/record.ts';
import { createDecoder, type DecodeRequest, type Decoder } from '../../src/decode/decoder.ts';
import { isObject, readOutput, type Json, type JsonObject } from './json.ts';
import type { RecordView, Translation } from './record.ts';
import type { TranslateSettings } from './translate.ts';

const KEY = Buffer.from('key-of-the-test');

export class MalformedBody extends Error {}

/** Throws MalformedBody when the body is refused, and fails on output that is no clean JSON. */
export function translateWithDecoder(
  body: Uint8Array,
  encoding: 'protobuf' | 'json',
  settings: TranslateSettings,
): Translation {
  const decoder = createDecoder({
    genericAttributes: settings.genericAttributes,
    rootRunId: 'trace',
    converterModule: null,
  });
  return decodeBody(decoder, body, encoding, settings);
}

/** The same with a decoder that lives longer: it must not keep anything from one body to the next. */
export function decodeBody(
  decoder: Decoder,
  body: Uint8Array,
  encoding: 'protobuf' | 'json',
  settings: TranslateSettings,
): Translation {
  const records: RecordView[] = [];
  const request: DecodeRequest = {
    source: body,
    encoding,
    apiKey: KEY,
    project: settings.project,
    receivedUs: settings.receivedUs,
    sourceNumber: 0,
  };
  const outcome = decoder.decode(request, {
    put(bytes, offset, lengthBytes) {
      records.push(readRecord(Buffer.from(bytes.subarray(offset, offset + lengthBytes))));
      return true;
    },
  });
  if (outcome.kind === 'malformed') throw new MalformedBody(outcome.message);
  if (outcome.kind === 'full') throw new Error('full, though the sink took everything');
  if (outcome.acceptedCount !== records.length) throw new Error('acceptedCount is not the number of records');
  return { records, rejectedCount: outcome.rejectedCount };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function readRecord(record: Buffer): RecordView {
  if (record.readUInt32LE(RecordOffset.TotalBytes) !== record.length) throw new Error('record length');
  let position = RECORD_HEADER_BYTES;
  const parts = Array.from({ length: PART_COUNT }, (_, part) => {
    const lengthBytes = record.readUInt32LE(RecordOffset.PartLengths + 4 * part);
    position += lengthBytes;
    return record.subarray(position - lengthBytes, position);
  });
  if (position > record.length || record.length - position >= 8) throw new Error('parts do not fill the record');
  const part = (index: number): Buffer => parts[index] ?? Buffer.alloc(0);
  if (!part(Part.Key).equals(KEY)) throw new Error('key');

  const json = (index: number): Json | undefined => {
    const text = utf8.decode(part(index));
    return text === '' ? undefined : readOutput(text);
  };
  const objectPart = (index: number): JsonObject | undefined => {
    const value = json(index);
    if (value !== undefined && !isObject(value)) throw new Error(`part ${index} is no object`);
    return value;
  };
  const head = readOutput(`{${utf8.decode(part(Part.Head))}}`);
  if (!isObject(head)) throw new Error('head');
  const inputs = objectPart(Part.Inputs);
  const outputs = objectPart(Part.Outputs);
  const events = json(Part.Events);
  if (events !== undefined && !Array.isArray(events)) throw new Error('events is no array');
  const extra = objectPart(Part.Extra);
  const error = json(Part.Error);
  if (error !== undefined && typeof error !== 'string') throw new Error('error is no string');
  const serialized = objectPart(Part.Serialized);
  const attachments = readAttachments(part(Part.Attachments));

  const flags = record.readUInt32LE(RecordOffset.Flags);
  const has = (flag: number): boolean => (flags & flag) !== 0;
  const hex = (offset: number, lengthBytes: number): string => record.toString('hex', offset, offset + lengthBytes);
  const notEnded = has(RecordFlag.NotEnded);
  return {
    traceId: hex(RecordOffset.TraceId, 16),
    spanId: hex(RecordOffset.SpanId, 8),
    parentSpanId: has(RecordFlag.HasParent) ? hex(RecordOffset.ParentSpanId, 8) : null,
    startUs: record.readDoubleLE(RecordOffset.StartUs),
    endUs: notEnded ? null : record.readDoubleLE(RecordOffset.EndUs),
    flags: { forcedRoot: has(RecordFlag.ForcedRoot), notEnded, genAi: has(RecordFlag.GenAi) },
    overrides: readOverrides(part(Part.Overrides), has),
    head,
    ...(inputs === undefined ? {} : { inputs }),
    ...(outputs === undefined ? {} : { outputs }),
    ...(events === undefined ? {} : { events }),
    ...(extra === undefined ? {} : { extra }),
    ...(error === undefined ? {} : { error }),
    ...(serialized === undefined ? {} : { serialized }),
    ...(attachments.length === 0 ? {} : { attachments }),
  };
}

function readOverrides(part: Buffer, has: (flag: number) => boolean): RecordView['overrides'] {
  let at = 0;
  const uuid = (flag: number): string | undefined => {
    if (!has(flag)) return undefined;
    const hex = part.toString('hex', at, (at += 16));
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  };
  const runId = uuid(RecordFlag.HasRunId);
  const parentRunId = uuid(RecordFlag.HasParentRunId);
  const traceId = uuid(RecordFlag.HasTraceId);
  const dottedOrder = has(RecordFlag.HasDottedOrder) ? part.toString('utf8', at) : undefined;
  return {
    ...(runId === undefined ? {} : { runId }),
    ...(parentRunId === undefined ? {} : { parentRunId }),
    ...(traceId === undefined ? {} : { traceId }),
    ...(dottedOrder === undefined ? {} : { dottedOrder }),
  };
}

function readAttachments(part: Buffer): NonNullable<RecordView['attachments']> {
  const found: NonNullable<RecordView['attachments']> = [];
  let at = 0;
  const take = (lengthBytes: number): Buffer => {
    if (at + lengthBytes > part.length) throw new Error('attachment beyond its part');
    return part.subarray(at, (at += lengthBytes));
  };
  while (at < part.length) {
    const lengths = take(8);
    const name = utf8.decode(take(lengths.readUInt16LE(0)));
    const mimeType = utf8.decode(take(lengths.readUInt16LE(2)));
    found.push({ name, mimeType, base64: take(lengths.readUInt32LE(4)).toString('base64') });
  }
  return found;
}
