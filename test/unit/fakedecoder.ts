/**
 * A decoder whose bodies say what shall happen. The records it puts are ring test records in a real record's clothes:
 * total length, trace id; the rest is filled with the record's number.
 */
import { existsSync } from 'node:fs';
import type { DecodeOutcome, DecodeRequest, Decoder } from '../../src/decode/decoder.ts';
import { Fault } from '../../src/core/outcome.ts';
import { alignRecord, RECORD_HEADER_BYTES, RecordOffset, type RecordSink } from '../../src/core/record.ts';

export interface ScriptSpan {
  trace: number;
  number: number;
  bytes: number;
}

export interface Script {
  /** One record each. */
  spans?: ScriptSpan[];
  /** After the spans. */
  then?: 'malformed' | 'throw' | 'fault' | 'throw-later' | 'exit' | 'ignore-full' | 'out-of-memory';
  /** Nothing of `then` while this file exists. */
  unlessFile?: string;
  /** Before the spans. */
  busyMs?: number;
  rejectedCount?: number;
  message?: string;
  /** Echoes what the decoder was told, in `message`. */
  echo?: boolean;
}

export function scriptBody(script: Script): Buffer {
  return Buffer.from(JSON.stringify(script));
}

export function fakeRecord(trace: number, number: number, bytes: number): Buffer {
  const record = Buffer.alloc(alignRecord(Math.max(bytes, RECORD_HEADER_BYTES)), number & 0xff);
  record.writeUInt32LE(record.length, RecordOffset.TotalBytes);
  record.fill(0, RecordOffset.TraceId, RecordOffset.TraceId + 16);
  record.writeUInt32LE(trace, RecordOffset.TraceId + 12);
  record.writeUInt32LE(number, RecordOffset.Source);
  return record;
}

export function createFakeDecoder(): Decoder {
  return { decode };
}

function decode(request: DecodeRequest, sink: RecordSink): DecodeOutcome {
  const script = JSON.parse(Buffer.from(request.source).toString()) as Script;
  if (script.busyMs !== undefined) {
    const endMs = performance.now() + script.busyMs;
    while (performance.now() < endMs) continue;
  }
  const spans = script.spans ?? [];
  for (const span of spans) {
    const record = fakeRecord(span.trace, span.number, span.bytes);
    if (!sink.put(record, 0, record.length) && script.then !== 'ignore-full') return { kind: 'full' };
  }
  const isSpared = script.unlessFile !== undefined && existsSync(script.unlessFile);
  switch (isSpared ? undefined : script.then) {
    case 'malformed':
      return { kind: 'malformed', message: 'as the script says' };
    case 'throw':
      throw new TypeError('defect in the decoder');
    case 'fault':
      throw new Fault('broken invariant in the decoder');
    case 'exit':
      process.exit(3);
    case 'throw-later':
      setTimeout(() => {
        throw new Error('thrown outside of any task');
      }, 1);
      break;
    case 'out-of-memory':
      hoard();
      break;
    case 'ignore-full':
    case undefined:
  }
  const { encoding, project, receivedUs, sourceNumber } = request;
  const apiKey = Buffer.from(request.apiKey).toString();
  return {
    kind: 'decoded',
    acceptedCount: spans.length,
    rejectedCount: script.rejectedCount ?? 0,
    message:
      script.echo === true
        ? JSON.stringify({ encoding, apiKey, project, receivedUs, sourceNumber })
        : (script.message ?? ''),
  };
}

function hoard(): void {
  const kept: unknown[] = [];
  while (kept.length < 1e9) kept.push(Array.from({ length: 1000 }, (_, i) => ({ i })));
}
