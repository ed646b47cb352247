/** Records through the real assembler: runs with their place in the tree, for the vectors that are about trees. */
import { Assembler, type AssemblerSettings } from '../../src/assemble/assembler.ts';
import { ASSEMBLER_SETTINGS, CounterList, makeRecord, RunCollector, windowOf } from '../unit/assemble/fakes.ts';
import { compact } from './json.ts';
import type { RecordView } from './record.ts';

/** Each delivery is one window; with `expired` the time to live passes after the last. */
export function runsOf(
  deliveries: readonly (readonly RecordView[])[],
  settings: Partial<AssemblerSettings> = {},
  expired = false,
): RunCollector {
  const sink = new RunCollector();
  const all = { ...ASSEMBLER_SETTINGS, ...settings };
  const assembler = new Assembler(all, sink, new CounterList());
  for (const records of deliveries) assembler.take(windowOf(records.map(binaryOf)), 0);
  if (expired) assembler.sweep(all.spanTtlMs + 1);
  return sink;
}

function binaryOf(record: RecordView): Buffer {
  const { overrides, flags } = record;
  return makeRecord({
    trace: record.traceId,
    span: record.spanId,
    parent: record.parentSpanId,
    startUs: record.startUs,
    endUs: record.endUs,
    forcedRoot: flags.forcedRoot,
    genAi: flags.genAi,
    ...(overrides.runId === undefined ? {} : { runId: overrides.runId }),
    ...(overrides.parentRunId === undefined ? {} : { parentRunId: overrides.parentRunId }),
    ...(overrides.traceId === undefined ? {} : { traceId: overrides.traceId }),
    ...(overrides.dottedOrder === undefined ? {} : { order: overrides.dottedOrder }),
    parts: { Head: compact(record.head).slice(1, -1) },
  });
}
