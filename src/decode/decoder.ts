/**
 * The contract between a decode thread and the translation: one decompressed request body in, one record per span out.
 * A decoder keeps nothing between calls but reusable memory; it belongs to one thread.
 */
import { hashBytes } from '../core/record.ts';
import type { RecordSink } from '../core/record.ts';
import { Conversion } from '../translate/conversion.ts';
import { loadConverter } from '../translate/converter.ts';
import { Kernel, SLACK_BYTES } from '../translate/kernel/kernel.ts';
import type { Shared } from '../translate/metadata.ts';
import { SpanView } from '../translate/spanview.ts';
import { Translator } from '../translate/translator.ts';
import type { RequestContext, SpanProblem } from '../translate/translator.ts';
import { RegionFull, Writer } from '../translate/writer.ts';
import { JsonTranscoder } from './json.ts';
import { RequestWalk } from './request.ts';

export interface DecodeRequest {
  /** The decompressed body; only read, and only during the call. */
  readonly source: Uint8Array;
  readonly encoding: 'protobuf' | 'json';
  /** UTF-8 bytes of the API key that these spans are uploaded with. */
  readonly apiKey: Uint8Array;
  /** Project from the request's header, else SERVICE_PROJECT; null lets the span's attribute, then `default`, decide. */
  readonly project: string | null;
  /** When the request arrived, microseconds since the Unix epoch: stands in for a span that has no time at all. */
  readonly receivedUs: number;
  /** Number of the body in durable mode, else 0; copied into every record. */
  readonly sourceNumber: number;
}

export type DecodeOutcome =
  | {
      kind: 'decoded';
      acceptedCount: number;
      /** Spans that were invalid one by one. */
      rejectedCount: number;
      /** Says what was wrong with them, and what the converter failed for; empty when nothing was. */
      message: string;
      /** Of the first accepted span that CONVERTER_MODULE failed for, why: for the log. Absent when there is none. */
      converterFailure?: string;
    }
  | { kind: 'malformed'; message: string }
  /** The sink refused a record: stop, answer busy. Records put before stay put; spans are idempotent. */
  | { kind: 'full' };

/** Plain and cloneable: it travels in `workerData`. */
export interface DecoderSettings {
  /** Copy attributes that no convention knows into the metadata (GENERIC_OTEL_ENABLED). */
  readonly genericAttributes: boolean;
  /** `trace`: a root run's id is the trace id; `span`: its padded span id. */
  readonly rootRunId: 'trace' | 'span';
  /** Absolute path of CONVERTER_MODULE, or null. */
  readonly converterModule: string | null;
}

export interface Decoder {
  decode(request: DecodeRequest, sink: RecordSink): DecodeOutcome;
}

/** Room for the protobuf form of a JSON body, in bytes per byte; doubled and tried again where it is not enough. */
const TRANSCODE_RATIO = 3;
const TRANSCODE_BYTES = 4096;
const MAX_TRANSCODE_RATIO = 12;

export function createDecoder(settings: DecoderSettings): Decoder {
  const kernel = new Kernel();
  const translator = new Translator(kernel, settings);
  const transcoded = new Writer(kernel);
  const transcoder = new JsonTranscoder(kernel, transcoded);
  const walk = new RequestWalk(kernel);
  const spanView = new SpanView(kernel);
  const conversion = settings.converterModule === null ? null : new Conversion(loadConverter(settings.converterModule));
  const encoder = new TextEncoder();
  const context: RequestContext = {
    keyAt: 0,
    keyLength: 0,
    keyHash: 0,
    project: { at: 0, length: -1 },
    receivedUs: 0,
    sourceNumber: 0,
  };

  // The request at hand; fields rather than captured variables, so that no closure is made per request.
  let sink: RecordSink | null = null;
  let free = 0;
  let acceptedCount = 0;
  let full = false;
  let malformed = false;
  let encoding: DecodeRequest['encoding'] = 'protobuf';
  let project: string | null = null;
  let failedCount = 0;
  let failure = '';
  const problems = new Map<SpanProblem, number>();

  const align = (at: number): number => (at + SLACK_BYTES + 15) & -16;

  function place(bytes: Uint8Array): number {
    const at = free;
    kernel.reserve(at + bytes.length);
    kernel.u8.set(bytes, at);
    free = align(at + bytes.length);
    return at;
  }

  function begin(request: DecodeRequest): void {
    free = align(kernel.staticEnd);
    translator.begin();
    acceptedCount = 0;
    full = false;
    malformed = false;
    encoding = request.encoding;
    project = request.project;
    failedCount = 0;
    failure = '';
    problems.clear();
    context.keyAt = place(request.apiKey);
    context.keyLength = request.apiKey.length;
    context.keyHash = hashBytes(request.apiKey, 0, request.apiKey.length);
    if (request.project === null) context.project.length = -1;
    else {
      const name = encoder.encode(request.project);
      context.project.at = place(name);
      context.project.length = name.length;
    }
    context.receivedUs = request.receivedUs;
    context.sourceNumber = request.sourceNumber;
  }

  /** Writes the protobuf form behind the body; its end, or what is wrong with the body. */
  function transcode(at: number, end: number): number | string {
    for (let ratio = TRANSCODE_RATIO; ratio <= MAX_TRANSCODE_RATIO; ratio *= 2) {
      const lengthBytes = (end - at) * ratio + TRANSCODE_BYTES;
      kernel.reserve(free + lengthBytes);
      transcoded.place(free, lengthBytes);
      try {
        const problem = transcoder.transcode(at, end);
        return problem ?? transcoded.pos;
      } catch (error) {
        if (!(error instanceof RegionFull)) throw error;
      }
    }
    return 'the body expands too much';
  }

  /** The record that the converter makes of the one made last. */
  function convert(by: Conversion, at: number, end: number, { resourceAt, resourceEnd }: Shared): Buffer {
    const { scopeAt, scopeEnd } = walk;
    const span = spanView.read(at, end, { resourceAt, resourceEnd, scopeAt, scopeEnd }, project);
    const record = by.run(span, kernel.u8, translator.recordAt);
    if (by.failure !== null && failedCount++ === 0) failure = by.failure;
    return record;
  }

  function put(at: number, end: number, shared: Shared): boolean {
    if (sink === null) return false;
    if (conversion === null) return sink.put(kernel.u8, translator.recordAt, translator.recordBytes);
    const record = convert(conversion, at, end, shared);
    return sink.put(record, 0, record.length);
  }

  const onSpan = (at: number, end: number, shared: Shared): boolean => {
    const problem = translator.translate(at, end, free, context, shared);
    if (problem === 'malformed') {
      malformed = true;
      return false;
    }
    if (problem !== null) {
      problems.set(problem, (problems.get(problem) ?? 0) + 1);
      return true;
    }
    if (!put(at, end, shared)) {
      full = true;
      return false;
    }
    acceptedCount++;
    return true;
  };

  function outcome(): DecodeOutcome {
    // What was written here of JSON is well-formed, as far as it goes.
    if (malformed) {
      return { kind: 'malformed', message: encoding === 'json' ? 'values nested too deeply' : 'malformed protobuf' };
    }
    if (full) return { kind: 'full' };
    let rejectedCount = 0;
    const parts: string[] = [];
    for (const [problem, count] of problems) {
      rejectedCount += count;
      parts.push(`${count} ${count === 1 ? 'span' : 'spans'}: ${problem}`);
    }
    if (failedCount > 0)
      parts.push(`${failedCount} ${failedCount === 1 ? 'span' : 'spans'}: converter failed, dropped`);
    const decoded = { kind: 'decoded', acceptedCount, rejectedCount, message: parts.join('; ') } as const;
    return failedCount === 0 ? decoded : { ...decoded, converterFailure: failure };
  }

  return {
    decode: (request, target) => {
      begin(request);
      sink = target;
      let at = place(request.source);
      let end = at + request.source.length;
      if (request.encoding === 'json') {
        transcoder.base = at;
        const written = transcode(at, end);
        if (typeof written === 'string') return { kind: 'malformed', message: written };
        at = free;
        end = written;
        free = align(end);
      }
      if (walk.walk(at, end, onSpan) === 'malformed') malformed = true;
      sink = null;
      kernel.trim();
      return outcome();
    },
  };
}
