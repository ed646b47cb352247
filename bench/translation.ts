/**
 * Part 1: translation on one thread, against the obvious way. One process a corpus, so that no corpus shapes the
 * machine code of another. Both ways take turns in short rounds within that process; the ratio is the median over the
 * rounds, so slow drift of a shared machine hits both alike. Times are CPU times of the measuring thread (what the
 * collector does on V8's helper threads is not in them, to the obvious way's advantage).
 *
 * What is counted: from the decompressed request body to the translated bytes, copied out once (as into a ring).
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { PerformanceObserver } from 'node:perf_hooks';
import { setImmediate as yieldToEvents } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { createDecoder, type Decoder, type DecoderSettings } from '../src/decode/decoder.ts';
import { compareOutputs, type Agreement } from './agreement.ts';
import { CORPUS_NAMES, createCorpus, type Corpus, type CorpusName } from './corpus.ts';
import { obviousFromJson, obviousFromProtobuf } from './obvious.ts';
import { threadTimeMs } from './procfs.ts';
import { figure, median, quantile, renderTable } from './report.ts';
import { loadSchema } from './schema.ts';

export interface TranslationSettings {
  readonly corpora: readonly CorpusName[];
  readonly roundCount: number;
  readonly roundMs: number;
  /** Spans translated for the heap figures. */
  readonly heapSpanCount: number;
}

export const FULL_TRANSLATION: TranslationSettings = {
  corpora: CORPUS_NAMES,
  roundCount: 25,
  roundMs: 120,
  heapSpanCount: 1_000_000,
};
export const QUICK_TRANSLATION: TranslationSettings = {
  corpora: CORPUS_NAMES,
  roundCount: 7,
  roundMs: 80,
  heapSpanCount: 50_000,
};

export interface Speed {
  readonly usPer100Spans: number;
  readonly megabytesPerSec: number;
  readonly spansPerSec: number;
}

export interface Comparison {
  readonly ours: Speed;
  readonly obvious: Speed;
  /** Median over the rounds of obvious time / our time, with its quartiles. */
  readonly ratio: number;
  readonly ratioLow: number;
  readonly ratioHigh: number;
}

export interface HeapFigures {
  readonly spanCount: number;
  /** V8 heap still in use afterwards, per span, both ends taken after a full collection. */
  readonly retainedBytesPerSpan: number;
  /** Allocated on the V8 heap, kept or not. */
  readonly allocatedBytesPerSpan: number;
  readonly allocatedBytesPerAttribute: number;
  readonly collectionCount: number;
  readonly collectionMs: number;
}

export interface CorpusResult {
  readonly corpus: CorpusName;
  readonly bytesPerSpan: number;
  readonly attributesPerSpan: number;
  readonly agreement: Agreement;
  readonly protobuf: Comparison;
  readonly json: Comparison;
  readonly heap: HeapFigures;
  readonly obviousHeap: HeapFigures;
}

/** Until V8 has settled: ours is the larger code, and slows down once more as rarer branches are met. */
const WARM_UP_MS = 1000;

const DECODER_SETTINGS: DecoderSettings = { genericAttributes: false, rootRunId: 'trace', converterModule: null };

export async function measureTranslation(settings: TranslationSettings): Promise<CorpusResult[]> {
  const results: CorpusResult[] = [];
  for (const corpus of settings.corpora) results.push(await measureInProcess(corpus, settings));
  return results;
}

async function measureInProcess(corpus: CorpusName, settings: TranslationSettings): Promise<CorpusResult> {
  const child = spawn(
    process.execPath,
    ['--expose-gc', ...process.execArgv, fileURLToPath(import.meta.url), corpus, JSON.stringify(settings)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  const [exitCode] = (await once(child, 'close')) as [number | null];
  if (exitCode !== 0) throw new Error(`measuring ${corpus} ended with exit code ${exitCode}`);
  return JSON.parse(output) as CorpusResult;
}

export function renderTranslation(results: readonly CorpusResult[]): string {
  const speedRow = (label: string, speed: Speed, ratio: string): string[] => [
    label,
    figure(speed.usPer100Spans),
    figure(speed.megabytesPerSec),
    figure(speed.spansPerSec),
    ratio,
  ];
  const ratioText = (comparison: Comparison): string =>
    `${comparison.ratio.toFixed(2)} (${comparison.ratioLow.toFixed(2)}-${comparison.ratioHigh.toFixed(2)})`;
  const speeds = results.flatMap((result) => [
    speedRow(`${result.corpus}, protobuf`, result.protobuf.ours, ratioText(result.protobuf)),
    speedRow('  the obvious way', result.protobuf.obvious, ''),
    speedRow(`${result.corpus}, JSON`, result.json.ours, ratioText(result.json)),
    speedRow('  the obvious way', result.json.obvious, ''),
  ]);
  const heapRow = (label: string, heap: HeapFigures): string[] => [
    label,
    figure(heap.spanCount),
    figure(heap.retainedBytesPerSpan),
    figure(heap.allocatedBytesPerSpan),
    figure(heap.allocatedBytesPerAttribute),
    figure(heap.collectionCount),
    figure(heap.collectionMs),
  ];
  const heaps = results.flatMap((result) => [
    heapRow(`${result.corpus} (${figure(result.attributesPerSpan)} attributes)`, result.heap),
    heapRow('  the obvious way', result.obviousHeap),
  ]);
  const agreements = results.map((result) => [
    result.corpus,
    figure(result.bytesPerSpan),
    `${result.agreement.equalCount} of ${result.agreement.spanCount}`,
    result.agreement.firstDifference ?? '',
  ]);
  return [
    renderTable(['one thread', 'us/100 spans', 'MB/s in', 'spans/s', 'times obvious (quartiles)'], speeds),
    renderTable(['V8 heap', 'spans', 'kept B/span', 'alloc B/span', 'alloc B/attr', 'GCs', 'GC ms'], heaps),
    renderTable(['same output as the obvious way', 'B/span', 'spans', 'first difference'], agreements),
  ].join('\n\n');
}

// --- in the child process -------------------------------------------------------------------------------------------

/** Translates request `index` of the corpus; returns bytes written, so that nothing can be optimised away. */
type Translate = (index: number) => number;

async function measureCorpus(name: CorpusName, settings: TranslationSettings): Promise<CorpusResult> {
  const corpus = createCorpus(name);
  const schema = loadSchema();
  const decoder = createDecoder(DECODER_SETTINGS);
  const protobufBodies = corpus.requests.map((request) => Buffer.from(request.protobuf));
  const jsonBodies = corpus.requests.map((request) => Buffer.from(request.json));
  const oursProtobuf = ours(decoder, protobufBodies, 'protobuf', true);
  const obviousProtobuf: Translate = (index) =>
    obviousFromProtobuf(schema.request, bodyAt(protobufBodies, index)).length;
  const obviousJson: Translate = (index) => obviousFromJson(bodyAt(jsonBodies, index)).length;
  // In this order: what the JSON bodies do to shared code must not slow down the protobuf figures.
  const protobuf = compare(corpus, corpus.protobufBytes, oursProtobuf, obviousProtobuf, settings);
  const heap = await measureHeap(corpus, ours(decoder, protobufBodies, 'protobuf', false), settings.heapSpanCount);
  const obviousHeap = await measureHeap(corpus, obviousProtobuf, Math.ceil(settings.heapSpanCount / 10));
  const json = compare(corpus, corpus.jsonBytes, ours(decoder, jsonBodies, 'json', true), obviousJson, settings);
  return {
    corpus: name,
    bytesPerSpan: corpus.protobufBytes / corpus.spanCount,
    attributesPerSpan: corpus.attributeCount / corpus.spanCount,
    agreement: compareOutputs(corpus, decoder, schema),
    protobuf,
    json,
    heap,
    obviousHeap,
  };
}

/** With `copied`, every record is copied once more, as the ring does; without, only what the decoder itself allocates shows. */
function ours(decoder: Decoder, bodies: readonly Buffer[], encoding: 'protobuf' | 'json', copied: boolean): Translate {
  const apiKey = Buffer.from('bench-key');
  const target = new Uint8Array(4 * 1024 * 1024);
  let position = 0;
  let written = 0;
  const sink = {
    put: (bytes: Uint8Array, offset: number, lengthBytes: number): boolean => {
      if (copied) {
        if (position + lengthBytes > target.length) position = 0;
        target.set(bytes.subarray(offset, offset + lengthBytes), position);
        position += lengthBytes;
      }
      written += lengthBytes;
      return true;
    },
  };
  return (index) => {
    written = 0;
    const source = bodyAt(bodies, index);
    const request = { source, encoding, apiKey, project: 'default', receivedUs: 1.76e15, sourceNumber: 0 };
    const outcome = decoder.decode(request, sink);
    if (outcome.kind !== 'decoded' || outcome.rejectedCount > 0) {
      throw new Error(`request ${index}: ${JSON.stringify(outcome)}`);
    }
    return written;
  };
}

function bodyAt(bodies: readonly Buffer[], index: number): Buffer {
  const body = bodies[index];
  if (body === undefined) throw new RangeError(`no request ${index}`);
  return body;
}

function compare(
  corpus: Corpus,
  bytes: number,
  our: Translate,
  obvious: Translate,
  settings: TranslationSettings,
): Comparison {
  runFor(corpus, our, WARM_UP_MS);
  runFor(corpus, obvious, WARM_UP_MS);
  const ourUs: number[] = [];
  const obviousUs: number[] = [];
  for (let round = 0; round < settings.roundCount; round++) {
    // Who goes first alternates, so neither always inherits the other's garbage.
    if (round % 2 === 0) ourUs.push(runFor(corpus, our, settings.roundMs));
    obviousUs.push(runFor(corpus, obvious, settings.roundMs));
    if (round % 2 === 1) ourUs.push(runFor(corpus, our, settings.roundMs));
  }
  const ratios = ourUs.map((us, round) => (obviousUs[round] ?? 0) / us);
  const speed = (usPer100Spans: number): Speed => ({
    usPer100Spans,
    megabytesPerSec: ((bytes / corpus.spanCount) * 100) / usPer100Spans,
    spansPerSec: 1e8 / usPer100Spans,
  });
  return {
    ours: speed(median(ourUs)),
    obvious: speed(median(obviousUs)),
    ratio: median(ratios),
    ratioLow: quantile(ratios, 0.25),
    ratioHigh: quantile(ratios, 0.75),
  };
}

/** Whole passes over the corpus for at least `durationMs`; CPU time of this thread, in microseconds per 100 spans. */
function runFor(corpus: Corpus, translate: Translate, durationMs: number): number {
  const startMs = performance.now();
  const startCpuMs = threadTimeMs();
  let passCount = 0;
  do {
    for (let index = 0; index < corpus.requests.length; index++) translate(index);
    passCount++;
  } while (performance.now() - startMs < durationMs);
  return (((threadTimeMs() - startCpuMs) * 1000) / (passCount * corpus.spanCount)) * 100;
}

async function measureHeap(corpus: Corpus, translate: Translate, spanCount: number): Promise<HeapFigures> {
  let collectionCount = 0;
  let collectionMs = 0;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) {
      collectionCount++;
      collectionMs += entry.duration;
    }
  });
  const passCount = Math.ceil(spanCount / corpus.spanCount);
  for (let index = 0; index < corpus.requests.length; index++) translate(index);
  await settle();
  const usedBefore = process.memoryUsage().heapUsed;
  observer.observe({ entryTypes: ['gc'] });
  let allocated = 0;
  let sampled = 0;
  for (let pass = 0; pass < passCount; pass++) {
    for (let index = 0; index < corpus.requests.length; index++) {
      // Reading the heap's size allocates too: the same reading around nothing is subtracted.
      const before = process.memoryUsage().heapUsed;
      const idle = process.memoryUsage().heapUsed;
      translate(index);
      const after = process.memoryUsage().heapUsed;
      const used = after - idle - (idle - before);
      // Negative when a collection fell in between: that request says nothing.
      if (idle < before || after < idle) continue;
      allocated += used;
      sampled += corpus.requests[index]?.spanCount ?? 0;
    }
    if (pass % 16 === 0) await yieldToEvents();
  }
  await yieldToEvents();
  observer.disconnect();
  await settle();
  const usedAfter = process.memoryUsage().heapUsed;
  const spans = passCount * corpus.spanCount;
  return {
    spanCount: spans,
    retainedBytesPerSpan: (usedAfter - usedBefore) / spans,
    allocatedBytesPerSpan: allocated / sampled,
    allocatedBytesPerAttribute: (allocated / sampled) * (corpus.spanCount / corpus.attributeCount),
    collectionCount,
    collectionMs,
  };
}

async function settle(): Promise<void> {
  for (let i = 0; i < 3; i++) {
    globalThis.gc?.();
    await yieldToEvents();
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { positionals } = parseArgs({ allowPositionals: true });
  const name = CORPUS_NAMES.find((candidate) => candidate === positionals[0]);
  if (name === undefined) throw new Error(`usage: translation.ts <${CORPUS_NAMES.join('|')}> <settings as JSON>`);
  const settings = JSON.parse(positionals[1] ?? JSON.stringify(FULL_TRANSLATION)) as TranslationSettings;
  process.stdout.write(JSON.stringify(await measureCorpus(name, settings)));
}
