/** Records made to order, and a sink that reads back what the assembler said about them. */
import { COUNTER_NAMES } from '../../../src/core/counters.ts';
import type { CounterName, Counters } from '../../../src/core/counters.ts';
import {
  PART_COUNT,
  Part,
  RECORD_HEADER_BYTES,
  RecordFlag,
  RecordOffset,
  alignRecord,
  hashBytes,
} from '../../../src/core/record.ts';
import type { RecordView } from '../../../src/core/recordview.ts';
import type { RunSink, Tenant } from '../../../src/core/run.ts';
import type { AssemblerSettings, Records } from '../../../src/assemble/assembler.ts';

export const TRACE = '5b8efff798038103d269b633813fc60c';
export const TRACE_UUID = '5b8efff7-9803-8103-d269-b633813fc60c';
export const SPAN = 'eee19b7ec3c1b174';
export const START_US = 1747675155185223;

export interface SpanSketch {
  key?: string;
  trace?: string;
  span?: string;
  parent?: string | null;
  startUs?: number;
  /** Null: has not ended. */
  endUs?: number | null;
  forcedRoot?: boolean;
  genAi?: boolean;
  /** The converter made no run of it. */
  noRun?: 'dropped' | 'failed';
  source?: number;
  runId?: string;
  parentRunId?: string;
  traceId?: string;
  order?: string;
  parts?: Partial<Record<Exclude<keyof typeof Part, 'Key' | 'Overrides'>, string | Uint8Array>>;
}

export function makeRecord(sketch: SpanSketch): Buffer {
  const startUs = sketch.startUs ?? START_US;
  const endUs = sketch.endUs === undefined ? startUs + 1000 : sketch.endUs;
  let flags = 0;
  if (typeof sketch.parent === 'string') flags |= RecordFlag.HasParent;
  if (sketch.forcedRoot === true) flags |= RecordFlag.ForcedRoot;
  if (endUs === null) flags |= RecordFlag.NotEnded;
  if (sketch.genAi !== false) flags |= RecordFlag.GenAi;
  if (sketch.noRun === 'dropped') flags |= RecordFlag.ConverterDropped;
  if (sketch.noRun === 'failed') flags |= RecordFlag.ConverterFailed;
  const overrides: Buffer[] = [];
  const give = (id: string | undefined, flag: number): void => {
    if (id === undefined) return;
    flags |= flag;
    overrides.push(Buffer.from(id.replaceAll('-', ''), 'hex'));
  };
  give(sketch.runId, RecordFlag.HasRunId);
  give(sketch.parentRunId, RecordFlag.HasParentRunId);
  give(sketch.traceId, RecordFlag.HasTraceId);
  if (sketch.order !== undefined) {
    flags |= RecordFlag.HasDottedOrder;
    overrides.push(Buffer.from(sketch.order));
  }
  const key = Buffer.from(sketch.key ?? 'key-one');
  const parts: Buffer[] = Array.from({ length: PART_COUNT }, () => Buffer.alloc(0));
  parts[Part.Key] = key;
  parts[Part.Overrides] = Buffer.concat(overrides);
  parts[Part.Head] = Buffer.from(`"name":"${sketch.span ?? SPAN}","run_type":"chain"`);
  for (const [name, value] of Object.entries(sketch.parts ?? {})) {
    parts[Part[name as keyof typeof Part]] = Buffer.from(value as string);
  }
  const header = Buffer.alloc(RECORD_HEADER_BYTES);
  const length = parts.reduce((sum, part) => sum + part.length, RECORD_HEADER_BYTES);
  header.writeUInt32LE(alignRecord(length), RecordOffset.TotalBytes);
  header.writeUInt32LE(flags, RecordOffset.Flags);
  header.write(sketch.trace ?? TRACE, RecordOffset.TraceId, 'hex');
  header.write(sketch.span ?? SPAN, RecordOffset.SpanId, 'hex');
  if (typeof sketch.parent === 'string') header.write(sketch.parent, RecordOffset.ParentSpanId, 'hex');
  header.writeDoubleLE(startUs, RecordOffset.StartUs);
  header.writeDoubleLE(endUs ?? 0, RecordOffset.EndUs);
  header.writeUInt32LE(hashBytes(key, 0, key.length), RecordOffset.KeyHash);
  header.writeUInt32LE(sketch.source ?? 0, RecordOffset.Source);
  parts.forEach((part, index) => header.writeUInt32LE(part.length, RecordOffset.PartLengths + 4 * index));
  return Buffer.concat([header, ...parts], alignRecord(length));
}

/** As a ring's reader would show them: all in one piece of memory. */
export function windowOf(records: readonly Buffer[]): Records {
  const memory = Buffer.from(new SharedArrayBuffer(records.reduce((sum, record) => sum + record.length, 0)));
  let at = 0;
  const offset = records.map((record) => {
    record.copy(memory, at);
    at += record.length;
    return at - record.length;
  });
  return { count: records.length, bytes: records.map(() => memory), offset };
}

export function sketchWindow(...sketches: SpanSketch[]): Records {
  return windowOf(sketches.map(makeRecord));
}

export interface SeenRun {
  readonly key: string;
  /** The `name` given by {@link makeRecord}: the span id in hex. */
  readonly span: string;
  readonly order: string;
  readonly id: string;
  readonly traceId: string;
  readonly parentId: string | null;
  readonly startText: string;
  readonly endUs: number;
  readonly record: Buffer;
}

export class RunCollector implements RunSink {
  readonly runs: SeenRun[] = [];

  put(tenant: Tenant, record: RecordView, order: Buffer, orderBytes: number, endUs: number): void {
    const text = order.toString('latin1', 0, orderBytes);
    const segments = text.split('.');
    record.readParts();
    const head = record.bytes.toString('utf8', record.partStart(Part.Head), record.partStart(Part.Inputs));
    this.runs.push({
      key: tenant.apiKey,
      span: (JSON.parse(`{${head}}`) as { name: string }).name,
      order: text,
      id: text.slice(-36),
      traceId: text.slice(22, 58),
      parentId: segments.at(-2)?.slice(22) ?? null,
      startText: segments.at(-1)?.slice(0, 22) ?? '',
      endUs,
      record: Buffer.from(record.bytes.subarray(record.offset, record.offset + record.totalBytes)),
    });
  }

  /** The only run of this span. */
  of(span: string): SeenRun {
    const found = this.runs.filter((run) => run.span === span);
    if (found.length !== 1 || found[0] === undefined) throw new Error(`${found.length} runs of span ${span}`);
    return found[0];
  }
}

export class CounterList implements Counters {
  readonly values = new Map<CounterName, number>(COUNTER_NAMES.map((name) => [name, 0]));

  add(name: CounterName, amount = 1): void {
    this.values.set(name, this.of(name) + amount);
  }

  observe(): void {
    // Nobody asks for distributions here.
  }

  of(name: CounterName): number {
    return this.values.get(name) ?? 0;
  }
}

export const ASSEMBLER_SETTINGS: AssemblerSettings = {
  rootRunId: 'trace',
  filterNonGenAi: false,
  spanTtlMs: 1000,
  parkBytes: 1024 * 1024,
  rememberedSpanCount: 100_000,
  tenantCount: 100,
};
