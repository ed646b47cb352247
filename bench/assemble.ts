/**
 * What does a shipper do with 100 typical records, and what would it cost otherwise? `npx node bench/assemble.ts
 * [--corpus typical|llm|many-attributes] [--json FILE]`; one thread, warm-up half a second a case. Records lie in shared
 * memory as in a ring, children before parents, windows as a request fills them; every round is new traces, with as many
 * spans remembered as by default.
 *
 * What was decided by it (two cores of an EPYC, shared with heavy other work, so about twice what a quiet machine needs;
 * Node 22.23; µs CPU per 100 records of 1.7 kB):
 * - A window is registered as a whole before anything leaves it: 90. Taking record by record parks most children: 240.
 * - Bytes go straight into the body: 140 on top. By way of strings and objects: 810 on top.
 * - Records are copied out of shared memory with Buffer.copy: 15 on top, against 75 with Uint8Array.set.
 * - Ids are looked up in typed arrays: 13, against 40 to 60 in a Map by strings.
 * - zstd level 1 with a context of our own: 370 on top; level 3: 480; node:zlib, a context a call: 460.
 */
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Bench } from 'tinybench';
import { Assembler } from '../src/assemble/assembler.ts';
import { SlotIndex } from '../src/assemble/slots.ts';
import { createCounterTable } from '../src/core/counters.ts';
import { systemClock } from '../src/core/lifecycle.ts';
import { PART_COUNT, Part, RecordOffset } from '../src/core/record.ts';
import type { RecordView } from '../src/core/recordview.ts';
import type { RunSink, Tenant } from '../src/core/run.ts';
import { createDecoder } from '../src/decode/decoder.ts';
import { Batcher } from '../src/upload/batcher.ts';
import { createCodec } from '../src/upload/compress.ts';
import type { Codec } from '../src/upload/compress.ts';
import { UploadLimits } from '../src/upload/limits.ts';
import { MultipartWriter } from '../src/upload/multipart.ts';
import { SHIP_DEFAULTS } from '../src/upload/settings.ts';
import { CORPUS_NAMES, createCorpus } from './corpus.ts';
import type { CorpusName } from './corpus.ts';
import { threadTimeMs } from './procfs.ts';
import { describeMachine, figure, renderTable } from './report.ts';

const { values } = parseArgs({ options: { corpus: { type: 'string' }, json: { type: 'string' } } });
const corpusName: CorpusName = CORPUS_NAMES.find((name) => name === values.corpus) ?? 'typical';

interface Window {
  readonly count: number;
  readonly bytes: Buffer[];
  readonly offset: Int32Array;
}

/** One window a request, all in one piece of shared memory. */
function loadWindows(): Window[] {
  const decoder = createDecoder({
    genericAttributes: false,
    rootRunId: 'trace',
    converterModule: null,
  });
  const windows: Buffer[][] = [];
  for (const { protobuf } of createCorpus(corpusName).requests) {
    const records: Buffer[] = [];
    const apiKey = Buffer.from('lsv2_pt_0123456789abcdef0123456789abcdef_0123456789');
    const outcome = decoder.decode(
      { source: protobuf, encoding: 'protobuf', apiKey, project: 'bench', receivedUs: 0, sourceNumber: 0 },
      {
        put: (bytes, offset, lengthBytes) => {
          records.push(Buffer.from(bytes.subarray(offset, offset + lengthBytes)));
          return true;
        },
      },
    );
    if (outcome.kind !== 'decoded') throw new Error(outcome.kind);
    windows.push(records);
  }
  const totalBytes = windows.flat().reduce((sum, record) => sum + record.length, 0);
  const memory = Buffer.from(new SharedArrayBuffer(totalBytes));
  let at = 0;
  return windows.map((records) => {
    const offset = Int32Array.from(records, (record) => {
      record.copy(memory, at);
      at += record.length;
      return at - record.length;
    });
    return { count: records.length, bytes: records.map(() => memory), offset };
  });
}

const windows = loadWindows();
const records = windows[0]?.count ?? 0;
let turn = 0;

/** The next request of the corpus, with traces that were never seen. */
function nextWindow(): Window {
  const window = windows[turn++ % windows.length] as Window;
  for (let i = 0; i < window.count; i++) {
    window.bytes[i]?.writeUInt32LE(turn, (window.offset[i] ?? 0) + RecordOffset.TraceId);
  }
  return window;
}

const counters = createCounterTable(1).row(0);
const noCodec: Codec = {
  implementation: 'node:zlib',
  encode: (plain) => plain.subarray(0, 1),
  release: () => undefined,
  decode: (body) => body,
};
const nothing: RunSink = { put: () => undefined };

function batcher(codec: Codec): RunSink {
  return new Batcher(SHIP_DEFAULTS, new UploadLimits(SHIP_DEFAULTS), codec, () => undefined, counters, systemClock);
}

/** Whole records copied into a reused buffer, out of shared memory. */
function copier(copy: (target: Buffer, source: Buffer, from: number, to: number) => void): RunSink {
  const target = Buffer.alloc(1 << 24);
  return { put: (_, record) => copy(target, record.bytes, record.offset, record.offset + record.totalBytes) };
}

/** The same body by way of strings and objects: as one would write it without counting. */
function stringSink(): RunSink {
  const { boundary } = new MultipartWriter();
  let parts: string[] = [];
  let runCount = 0;
  const text = (record: RecordView, part: number): string =>
    record.bytes.toString('utf8', record.partStart(part), record.partStart(part) + record.partBytes(part));
  const add = (name: string, body: string): void => {
    parts.push(
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}\r\n`,
    );
  };
  return {
    put(_: Tenant, record, order, orderBytes, endUs) {
      record.readParts();
      const dotted = order.toString('latin1', 0, orderBytes);
      const id = dotted.slice(-36);
      const run = {
        id,
        trace_id: dotted.slice(22, 58),
        parent_run_id: dotted.split('.').at(-2)?.slice(22),
        dotted_order: dotted,
        end_time: new Date(endUs / 1000).toISOString(),
        ...(JSON.parse(`{${text(record, Part.Head)}}`) as object),
      };
      add(`post.${id}`, JSON.stringify(run));
      for (let part: number = Part.Inputs; part < PART_COUNT - 1; part++) {
        if (record.partBytes(part) > 0) add(`post.${id}.${part}`, text(record, part));
      }
      if (++runCount < 100) return;
      Buffer.from(parts.join('') + `--${boundary}--\r\n`);
      parts = [];
      runCount = 0;
    },
  };
}

/** Requests an iteration; the clock is this thread's CPU time, which costs too much to read after every request. */
const REQUESTS = 16;
const bench = new Bench({ time: 1500, warmupTime: 500, now: threadTimeMs });
function addLoop(name: string, pass: () => void): void {
  bench.add(name, () => {
    for (let i = 0; i < REQUESTS; i++) pass();
  });
}
function addCase(name: string, sink: RunSink, cut: (window: Window) => readonly Window[] = (window) => [window]): void {
  const assembler = new Assembler(SHIP_DEFAULTS, sink, counters);
  addLoop(name, () => {
    for (const window of cut(nextWindow())) assembler.take(window, 0);
    assembler.flush();
  });
}
const oneByOne = ({ count, bytes, offset }: Window): Window[] =>
  Array.from({ length: count }, (_, i) => ({
    count: 1,
    bytes: [bytes[i] as Buffer],
    offset: offset.subarray(i, i + 1),
  }));

addLoop('(new trace ids, part of every case)', () => void nextWindow());
addCase('assemble', nothing);
addCase('assemble, one record a window: most are parked', nothing, oneByOne);
addCase(
  'assemble, copy records with Buffer.copy',
  copier((target, source, from, to) => void source.copy(target, 1, from, to)),
);
addCase(
  'assemble, copy records with Uint8Array.set',
  copier((target, source, from, to) => target.set(source.subarray(from, to), 1)),
);
addCase('assemble, batch', batcher(noCodec));
addCase('assemble, batch by strings and objects', stringSink());
addCase('assemble, batch, compress (zstd-napi, level 1)', batcher(createCodec(1)));
addCase('assemble, batch, compress (zstd-napi, level 3)', batcher(createCodec(3)));
addCase('assemble, batch, compress (node:zlib, level 1)', batcher(createCodec(1, null)));

// Ids alone: each record's span is looked up, made, and the oldest removed.
const KEPT = 65_536;
{
  const index = new SlotIndex(3, 12, KEPT);
  const kept = new Int32Array(KEPT).fill(-1);
  let next = 0;
  addLoop('ids in the slot index', () => {
    const { count, bytes, offset } = nextWindow();
    for (let i = 0; i < count; i++) {
      const memory = bytes[i] as Buffer;
      const at = offset[i] ?? 0;
      index.probe[0] = turn;
      index.probe[1] = memory.readInt32LE(at + RecordOffset.SpanId);
      index.probe[2] = memory.readInt32LE(at + RecordOffset.SpanId + 4);
      const place = next++ & (KEPT - 1);
      const old = kept[place] ?? -1;
      if (old >= 0) index.remove(old);
      const slot = index.intern();
      kept[place] = index.added ? slot : -1;
    }
  });
}
{
  const map = new Map<string, number>();
  const kept: string[] = [];
  let next = 0;
  addLoop('ids in a Map by latin1 string', () => {
    const { count, bytes, offset } = nextWindow();
    for (let i = 0; i < count; i++) {
      const memory = bytes[i] as Buffer;
      const at = offset[i] ?? 0;
      const key = memory.toString('latin1', at + RecordOffset.TraceId, at + RecordOffset.SpanId + 8);
      const place = next++ & (KEPT - 1);
      const old = kept[place];
      if (old !== undefined) map.delete(old);
      map.set(key, place);
      kept[place] = key;
    }
  });
}

await bench.run();

const rows: string[][] = [];
const figures: object[] = [];
for (const task of bench.tasks) {
  const { result } = task;
  if (!('latency' in result)) throw new Error(`${task.name}: ${result.state}`);
  const us = (result.latency.p50 * 1000 * 100) / (REQUESTS * records);
  rows.push([task.name, figure(us)]);
  figures.push({ name: task.name, usPer100: us });
}
process.stdout.write(`${renderTable(['case', 'µs per 100 records'], rows)}\n`);
if (values.json !== undefined) {
  writeFileSync(values.json, JSON.stringify({ machine: describeMachine(), corpus: corpusName, figures }, null, 2));
}
