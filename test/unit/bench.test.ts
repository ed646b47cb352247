import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createArrivals } from '../../bench/arrivals.ts';
import { buildChain, writeIds, type Template } from '../../bench/chain.ts';
import { CORPUS_NAMES, createCorpus } from '../../bench/corpus.ts';
import { runsFromJson, runsFromProtobuf } from '../../bench/obvious.ts';
import { figure, quantile, renderTable } from '../../bench/report.ts';
import { loadSchema } from '../../bench/schema.ts';
import { scanJson, scanProtobuf } from '../../bench/spanids.ts';

const small = { requestCount: 2, spansPerRequest: 30 };
const schema = loadSchema();

for (const name of CORPUS_NAMES) {
  test(`the ${name} corpus is the same bytes every time, and says the same as protobuf and as JSON`, () => {
    const corpus = createCorpus(name, small);
    assert.deepEqual(createCorpus(name, small), corpus);
    for (const request of corpus.requests) {
      const fromProtobuf = runsFromProtobuf(schema.request, Buffer.from(request.protobuf), 'p');
      assert.equal(fromProtobuf.length, request.spanCount);
      assert.deepEqual(runsFromJson(Buffer.from(request.json), 'p'), fromProtobuf);
    }
  });

  test(`every parent in the ${name} corpus is in it, comes after its children, and no child starts before it`, () => {
    const runs = createCorpus(name, small).requests.flatMap((request) =>
      runsFromProtobuf(schema.request, Buffer.from(request.protobuf), 'p'),
    );
    const order = new Map(runs.map((run, index) => [run.traceId + run.spanId, index]));
    for (const [index, run] of runs.entries()) {
      if (run.parentSpanId === null) continue;
      const parentIndex = order.get(run.traceId + run.parentSpanId) ?? -1;
      assert.ok(parentIndex > index, `${run.name} at ${index}, its parent at ${parentIndex}`);
      assert.ok(run.startUs >= (runs[parentIndex]?.startUs ?? Infinity));
    }
  });
}

test('typical spans are 1 to 2 kB with a mean of about 1.7 kB, LLM-sized ones 5 to 100 kB', () => {
  const typical = createCorpus('typical');
  const meanBytes = typical.protobufBytes / typical.spanCount;
  assert.ok(meanBytes > 1600 && meanBytes < 1800, `${meanBytes}`);
  const llm = createCorpus('llm');
  const llmMeanBytes = llm.protobufBytes / llm.spanCount;
  assert.ok(llmMeanBytes > 20_000 && llmMeanBytes < 50_000, `${llmMeanBytes}`);
});

test('a chain sent twice carries each span number once, and its parents and roots stay who they were', () => {
  for (const encoding of ['protobuf', 'json'] as const) {
    const chain = buildChain({
      url: 'http://127.0.0.1:1/v1/traces',
      headers: {},
      corpus: 'typical',
      encoding,
      spansPerRequest: 25,
    });
    const numbers: number[] = [];
    for (const firstNumber of [1, 1 + chain.spanCount]) {
      const spans = chain.templates.flatMap((template) => writtenSpans(template, encoding, firstNumber));
      const bySpanId = new Map(spans.map((span) => [span.spanId, span]));
      for (const span of spans) {
        assert.equal(span.spanId.slice(0, 8), '00000007');
        assert.equal(span.traceId.slice(0, 8), '00000007');
        numbers.push(Number.parseInt(span.spanId.slice(8), 16));
        let root = span;
        while (root.parentSpanId !== null) {
          const parent = bySpanId.get(root.parentSpanId);
          assert.ok(parent !== undefined && parent.traceId === span.traceId);
          root = parent;
        }
        assert.equal(span.traceId.slice(8, 16), root.spanId.slice(8));
      }
    }
    assert.deepEqual(
      numbers.sort((a, b) => a - b),
      Array.from({ length: 2 * chain.spanCount }, (_, index) => index + 1),
    );
  }
});

/** The ids of a request as it would go out, read back independently of how they were written. */
function writtenSpans(
  template: Template,
  encoding: 'protobuf' | 'json',
  firstNumber: number,
): { traceId: string; spanId: string; parentSpanId: string | null }[] {
  const bytes = Buffer.from(template.bytes);
  writeIds(template, bytes, encoding, 7, firstNumber);
  const body = bytes.subarray(bytes.length - template.bodyBytes);
  const runs = encoding === 'json' ? runsFromJson(body, 'p') : runsFromProtobuf(schema.request, Buffer.from(body), 'p');
  assert.equal(runs.length, template.spanCount);
  return runs;
}

test('ids are found where they are, in both encodings', () => {
  const request = createCorpus('many-attributes', small).requests[0];
  assert.ok(request !== undefined);
  const json = Buffer.from(request.json);
  const protobuf = Buffer.from(request.protobuf);
  const fromJson = scanJson(json).map((span) => ({
    traceId: json.toString('latin1', span.traceId, span.traceId + 32),
    spanId: json.toString('latin1', span.spanId, span.spanId + 16),
    parentSpanId: span.parentSpanId < 0 ? '' : json.toString('latin1', span.parentSpanId, span.parentSpanId + 16),
  }));
  const fromProtobuf = scanProtobuf(protobuf).map((span) => ({
    traceId: protobuf.toString('hex', span.traceId, span.traceId + 16),
    spanId: protobuf.toString('hex', span.spanId, span.spanId + 8),
    parentSpanId: span.parentSpanId < 0 ? '' : protobuf.toString('hex', span.parentSpanId, span.parentSpanId + 8),
  }));
  assert.equal(fromJson.length, request.spanCount);
  assert.deepEqual(fromJson, fromProtobuf);
});

test('arrivals tell once from twice, far beyond the first size of the bitmap', () => {
  const arrivals = createArrivals();
  for (const number of [1, 2, 3, 2, 40_000_000, 40_000_000]) arrivals.add(number);
  assert.deepEqual(arrivals.counts(), { arrivedCount: 4, repeatedCount: 2 });
});

test('a figure has three significant digits and a quantile is one of the values', () => {
  assert.deepEqual([0.01234, 1.234, 12.34, 123.4, 12_345, 0, Number.NaN].map(figure), [
    '0.0123',
    '1.23',
    '12.3',
    '123',
    '12,345',
    '0',
    '-',
  ]);
  assert.equal(quantile([5, 1, 3, 2, 4], 0.5), 3);
  assert.equal(quantile([5, 1, 3, 2, 4], 1), 5);
  assert.equal(renderTable(['a', 'b'], [['x', '10']]), 'a   b\n-  --\nx  10');
});
