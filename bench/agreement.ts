/** Checks that what is timed does the same work: each record of ours against the obvious way's run, compared as JSON. */
import { isDeepStrictEqual } from 'node:util';

import { PART_COUNT, Part, RECORD_HEADER_BYTES, RecordOffset } from '../src/core/record.ts';
import type { Decoder } from '../src/decode/decoder.ts';
import type { Corpus } from './corpus.ts';
import { runsFromProtobuf, type ObviousRun } from './obvious.ts';
import type { OtlpSchema } from './schema.ts';

export interface Agreement {
  readonly spanCount: number;
  readonly equalCount: number;
  /** Span name and field, ours, theirs; null when all are equal. */
  readonly firstDifference: string | null;
}

export function compareOutputs(corpus: Corpus, decoder: Decoder, schema: OtlpSchema): Agreement {
  let spanCount = 0;
  let equalCount = 0;
  let firstDifference: string | null = null;
  const apiKey = Buffer.from('bench-key');
  for (const request of corpus.requests) {
    const body = Buffer.from(request.protobuf);
    const runs = runsFromProtobuf(schema.request, body, 'default');
    const records: Record<string, unknown>[] = [];
    decoder.decode(
      { source: body, encoding: 'protobuf', apiKey, project: 'default', receivedUs: 1.76e15, sourceNumber: 0 },
      {
        put: (bytes, offset, lengthBytes) => {
          records.push(readRecord(Buffer.from(bytes.subarray(offset, offset + lengthBytes))));
          return true;
        },
      },
    );
    for (const [index, run] of runs.entries()) {
      spanCount++;
      const difference = differenceOf(records[index] ?? {}, run);
      if (difference === null) equalCount++;
      else firstDifference ??= `${run.name}: ${difference}`;
    }
  }
  return { spanCount, equalCount, firstDifference };
}

function readRecord(record: Buffer): Record<string, unknown> {
  let position = RECORD_HEADER_BYTES;
  const parts = Array.from({ length: PART_COUNT }, (_, part) => {
    const lengthBytes = record.readUInt32LE(RecordOffset.PartLengths + 4 * part);
    position += lengthBytes;
    return record.toString('utf8', position - lengthBytes, position);
  });
  const json = (part: number): unknown => {
    const text = parts[part] ?? '';
    return text === '' ? undefined : (JSON.parse(text) as unknown);
  };
  const hex = (offset: number, lengthBytes: number): string => record.toString('hex', offset, offset + lengthBytes);
  const parent = hex(RecordOffset.ParentSpanId, 8);
  return {
    ...(JSON.parse(`{${parts[Part.Head]}}`) as object),
    traceId: hex(RecordOffset.TraceId, 16),
    spanId: hex(RecordOffset.SpanId, 8),
    parentSpanId: parent === '0'.repeat(16) ? null : parent,
    startUs: record.readDoubleLE(RecordOffset.StartUs),
    endUs: record.readDoubleLE(RecordOffset.EndUs),
    inputs: json(Part.Inputs),
    outputs: json(Part.Outputs),
    events: json(Part.Events),
    extra: json(Part.Extra),
    error: json(Part.Error),
  };
}

const FIELDS = [
  'traceId',
  'spanId',
  'parentSpanId',
  'startUs',
  'endUs',
  'name',
  'run_type',
  'status',
  'session_name',
  'error',
  'tags',
  'inputs',
  'outputs',
  'events',
] as const satisfies readonly (keyof ObviousRun)[];

function differenceOf(ours: Record<string, unknown>, run: ObviousRun): string | null {
  for (const field of FIELDS) {
    if (!isDeepStrictEqual(ours[field], run[field]))
      return `${field}: ${excerpt(ours[field])} / ${excerpt(run[field])}`;
  }
  const extra = (ours['extra'] ?? {}) as Record<string, Record<string, unknown> | undefined>;
  for (const part of ['metadata', 'invocation_params'] as const) {
    const our = extra[part] ?? {};
    const their = run.extra[part] ?? {};
    for (const key of new Set([...Object.keys(our), ...Object.keys(their)])) {
      if (!isDeepStrictEqual(our[key], their[key])) {
        return `extra.${part}.${key}: ${excerpt(our[key])} / ${excerpt(their[key])}`;
      }
    }
  }
  return null;
}

function excerpt(value: unknown): string {
  return (JSON.stringify(value) ?? 'absent').slice(0, 60);
}
