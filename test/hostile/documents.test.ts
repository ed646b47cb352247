/**
 * Spans that say impossible things, from socket to store: groups 5 and 6 of the cases (cases.test.ts). The embedded
 * backend behind the service is as strict as the hosted one, and it never refuses what comes out of here.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, afterEach, before, describe, test } from 'node:test';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { MiB } from '../../src/core/units.ts';
import { jsonRequest, makeTrace, postJson, uuidOf, type SpanFacts } from '../flow/otlp.ts';
import { startHost, type Host } from '../flow/pipelinehost.ts';
import { attribute, field, spanRequest } from './wire.ts';

const TTL_MS = 400;
const HUGE_BYTES = 100_000_000;
const START_MS = Date.parse('2026-03-04T05:06:07.000Z');

let host: Host;
/** Runs that must be in the store by now. */
let runCount = 0;

before(async () => {
  host = await startHost({ SPAN_TTL: `${TTL_MS}ms`, DEPLOYMENT_API: 'off', GENERIC_OTEL_ENABLED: 'true' });
});

after(() => host.stop());

/** Each test ends with a proof that the service goes on, that every span is accounted for, and nothing was refused. */
afterEach(async () => {
  const { spans } = makeTrace(2, 2);
  assert.equal((await postJson(host.url, jsonRequest(spans))).status, 200);
  await arrived(spans.length);
  const { acceptedCount, deliveredCount, droppedCount } = host.service.account();
  assert.equal(acceptedCount, deliveredCount + droppedCount);
  assert.equal(host.service.counters.total('dropped_rejected-by-backend'), 0);
  assert.equal(host.service.counters.total('decode_workers_lost'), 0);
  assert.equal(Object.getPrototypeOf({}).polluted, undefined);
});

/** Waits until so many runs more are in the store, and has them counted as delivered. */
async function arrived(count: number): Promise<void> {
  runCount += count;
  await host.client.waitForRuns(runCount, { timeoutMs: 90_000 });
  while (host.service.counters.total('runs_delivered') < runCount) await new Promise((done) => setTimeout(done, 10));
}

const hex = (bytes: number): string => randomBytes(bytes).toString('hex');

/** A request of one span, in JSON; `more` is put into the span as it stands. */
function spanJson(more: string, traceId = hex(16), spanId = hex(8)): string {
  const times = '"startTimeUnixNano":"1772600767000000000","endTimeUnixNano":"1772600768000000000"';
  return `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"${traceId}","spanId":"${spanId}","name":"s",${times}${more}}]}]}]}`;
}

async function answered(body: string): Promise<{ status: number; rejectedCount: number; message: string }> {
  const answer = await postJson(host.url, body);
  const { partialSuccess } = (await answer.json()) as {
    partialSuccess?: { rejectedSpans?: string; errorMessage?: string };
  };
  return {
    status: answer.status,
    rejectedCount: Number(partialSuccess?.rejectedSpans ?? 0),
    message: partialSuccess?.errorMessage ?? '',
  };
}

describe('5: JSON', () => {
  const deep = (depth: number, open: string, close: string): string => open.repeat(depth) + close.repeat(depth);

  for (const [title, body] of [
    ['an unknown field nested 100 000 deep', spanJson(`,"x":${deep(100_000, '[', ']')}`)],
    ['objects nested 100 000 deep', `${'{"resourceSpans":'.repeat(100_000)}1${'}'.repeat(100_000)}`],
    [
      'arrays of attributes nested 10 000 deep',
      spanJson(
        `,"attributes":[{"key":"a","value":${'{"arrayValue":{"values":['.repeat(10_000)}${']}}'.repeat(10_000)}}]`,
      ),
    ],
    ['brackets that never close', '['.repeat(500_000)],
    ['half a string', '{"resourceSpans":[{"a":"'],
    ['a number of a million digits, cut', `{"a":${'9'.repeat(1_000_000)}`],
    ['NaN and Infinity', '{"resourceSpans":NaN}'],
    ['comments', '{/**/}'],
    ['UTF-16', Buffer.from(spanJson(''), 'utf16le').toString('latin1')],
  ] as const) {
    test(`${title}: 400, and refused in words`, async () => {
      const before = host.service.counters.total('refused_malformed');
      const answer = await postJson(host.url, body);
      assert.equal(answer.status, 400);
      const { message } = (await answer.json()) as { message: string };
      assert.match(message, /JSON|nested/);
      assert.ok(message.length < 500);
      assert.equal(host.service.counters.total('refused_malformed') - before, 1);
    });
  }

  test('a byte order mark before the document is passed over', async () => {
    assert.deepEqual(await answered(`\ufeff${spanJson('')}`), { status: 200, rejectedCount: 0, message: '' });
    await arrived(1);
  });

  test('of equal keys the last counts, in fields, attributes and documents alike', async () => {
    const traceId = hex(16);
    const attributes = `,"attributes":[{"key":"input.value","value":{"stringValue":"{\\"a\\":1,\\"a\\":2}"}},{"key":"acme","value":{"stringValue":"x"}},{"key":"acme","value":{"stringValue":"y"}}]`;
    await answered(spanJson(`,"name":"first","name":"last"${attributes}`, traceId));
    await arrived(1);
    const run = await host.client.run(uuidOf(Buffer.from(traceId, 'hex')));
    assert.equal(run?.name, 'last');
    assert.deepEqual(run?.inputs, { a: 2 });
    assert.equal(metadataOf(run)['acme'], 'y');
  });

  for (const key of ['__proto__', 'constructor', 'prototype', '__proto__.polluted', 'constructor.prototype.polluted']) {
    test(`${key} is data wherever a key can be: span, attribute, resource, event, metadata, document`, async () => {
      const traceId = hex(16);
      const pair = `{"key":"${key}","value":{"kvlistValue":{"values":[{"key":"${key}","value":{"stringValue":"polluted"}}]}}}`;
      const body = `{"${key}":{"polluted":true},"resourceSpans":[{"${key}":{"polluted":true},"resource":{"attributes":[${pair}]},"scopeSpans":[{"scope":{"name":"${key}","attributes":[${pair}]},"spans":[{"${key}":{"polluted":true},"traceId":"${traceId}","spanId":"${hex(8)}","name":"${key}","startTimeUnixNano":"1772600767000000000","endTimeUnixNano":"1772600768000000000","attributes":[${pair},{"key":"langsmith.metadata.${key}","value":{"stringValue":"m"}},{"key":"input.value","value":{"stringValue":"{\\"${key}\\":{\\"polluted\\":true}}"}}],"events":[{"timeUnixNano":"1772600767000000000","name":"${key}","attributes":[${pair}]}]}]}]}]}`;
      assert.equal((await answered(body)).status, 200);
      await arrived(1);
      const run = await host.client.run(uuidOf(Buffer.from(traceId, 'hex')));
      assert.equal(run?.name, key);
      assert.deepEqual(Object.entries(run?.inputs ?? {}), [[key, { polluted: true }]]);
      assert.ok(Object.entries(metadataOf(run)).some(([name, value]) => name === key && value !== null));
    });
  }

  test('numbers beyond 2^53 keep their digits, as numbers and as strings', async () => {
    const traceId = hex(16);
    const attribute = (name: string, value: string): string => `{"key":"langsmith.metadata.${name}","value":${value}}`;
    await answered(
      spanJson(
        `,"attributes":[${attribute('string', '{"intValue":"9223372036854775807"}')},${attribute('number', '{"intValue":9007199254740993}')},${attribute('beyond', '{"intValue":"18446744073709551616"}')},${attribute('double', '{"doubleValue":1e400}')},{"key":"input.value","value":{"stringValue":"{\\"n\\":12345678901234567890}"}}]`,
        traceId,
      ),
    );
    await arrived(1);
    const url = `${host.client.url}/api/runs/${uuidOf(Buffer.from(traceId, 'hex'))}`;
    const text = await (await fetch(url)).text();
    for (const digits of ['9223372036854775807', '9007199254740993', '12345678901234567890']) {
      assert.ok(text.includes(digits), digits);
    }
  });

  test('lone surrogates and NULs in keys and values come through as text that is text', async () => {
    const traceId = hex(16);
    const attributes = ['\\u0000', '\\ud800', '\\udc00x', 'a\\u0000b']
      .map((odd) => `{"key":"acme.${odd}","value":{"stringValue":"<${odd}>"}}`)
      .join();
    await answered(spanJson(`,"name":"\\u0000\\ud800","attributes":[${attributes}]`, traceId));
    await arrived(1);
    const run = await host.client.run(uuidOf(Buffer.from(traceId, 'hex')));
    assert.match(run?.name ?? '', /\ufffd$/);
    assert.equal(metadataOf(run)['acme.a\u0000b'], '<a\u0000b>');
    assert.equal(metadataOf(run)['acme.\ufffdx'], '<\ufffdx>');
  });

  test('enums by name and by number, known or not, cost nothing', async () => {
    for (const kind of ['3', '"3"', '"SPAN_KIND_CLIENT"', '"SPAN_KIND_NONSENSE"', '-1', '99999999999', '{}', 'null']) {
      assert.equal((await answered(spanJson(`,"kind":${kind},"status":{"code":${kind}}`))).rejectedCount, 0, kind);
      await arrived(1);
    }
  });
});

describe('6: ids, times and trees', () => {
  for (const [title, traceId, spanId] of [
    ['an empty trace id', '', hex(8)],
    ['an empty span id', hex(16), ''],
    ['a trace id of zeros', '0'.repeat(32), hex(8)],
    ['a span id of zeros', hex(16), '0'.repeat(16)],
    ['a trace id one digit short', hex(16).slice(1), hex(8)],
    ['a trace id one byte long', hex(17), hex(8)],
    ['a span id of a trace', hex(16), hex(16)],
    ['a trace id that is no hex', 'z'.repeat(32), hex(8)],
    ['a trace id of a megabyte', 'a'.repeat(MiB), hex(8)],
    ['a trace id with a quote and a line break', `\\"\\n${hex(15)}`, hex(8)],
  ] as const) {
    test(`${title} rejects that span alone, and says so`, async () => {
      const before = host.service.counters.total('spans_invalid');
      const { status, rejectedCount, message } = await answered(spanJson('', traceId, spanId));
      assert.deepEqual([status, rejectedCount], [200, 1]);
      assert.match(message, /invalid (trace|span) id/);
      assert.equal(host.service.counters.total('spans_invalid') - before, 1);
    });
  }

  test('clock nonsense: times of zero, reversed, negative, of the year 2554, and a child long before its parent', async () => {
    const times = [
      ['"0"', '"0"'],
      ['"1772600768000000000"', '"1"'],
      ['"-5"', '"-1"'],
      ['"18446744073709551615"', '"18446744073709551615"'],
      ['1.5e18', '"soon"'],
      ['"99999999999999999999999"', 'null'],
    ];
    for (const [start, end] of times) {
      const body = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"${hex(16)}","spanId":"${hex(8)}","name":"t","startTimeUnixNano":${start},"endTimeUnixNano":${end}}]}]}]}`;
      assert.deepEqual(await answered(body), { status: 200, rejectedCount: 0, message: '' }, start);
      await arrived(1);
    }
    const { spans } = makeTrace(3, 1);
    const reversed = spans.map((span, i) => ({ ...span, startMs: START_MS - i * 86_400_000, endMs: START_MS }));
    assert.equal((await answered(jsonRequest(reversed))).status, 200);
    await arrived(3);
    assert.ok(host.service.counters.total('times_clamped') >= 2);
  });

  test('a span that is its own parent is a root; a cycle of parents leaves as orphans when its time is up', async () => {
    const [traceId, spanId] = [randomBytes(16), randomBytes(8)];
    const span = { traceId, spanId, name: 'self', startMs: START_MS, endMs: START_MS + 1 };
    await answered(jsonRequest([{ ...span, parentSpanId: spanId }]));
    await arrived(1);
    const ids = Array.from({ length: 5 }, () => randomBytes(8));
    const cycleTrace = randomBytes(16);
    const cycle = ids.map((id, i): SpanFacts => ({
      ...span,
      traceId: cycleTrace,
      spanId: id,
      parentSpanId: ids[(i + 1) % ids.length] ?? id,
      name: `cycle ${i}`,
    }));
    const before = host.service.counters.total('runs_orphaned');
    assert.equal((await answered(jsonRequest(cycle))).status, 200);
    await arrived(cycle.length);
    assert.ok(host.service.counters.total('runs_orphaned') > before);
    const tree = await host.client.tree(uuidOf(cycleTrace));
    assert.deepEqual(tree?.misplaced_run_ids, []);
  });

  test('ten thousand children before their parent, in one trace, hang below it when it comes', async () => {
    const { traceId, spans } = wideTrace(10_000);
    const [root, ...children] = spans as [SpanFacts, ...SpanFacts[]];
    for (let at = 0; at < children.length; at += 2500) {
      assert.equal((await answered(jsonRequest(children.slice(at, at + 2500)))).status, 200);
    }
    assert.equal((await answered(jsonRequest([root]))).status, 200);
    await arrived(spans.length);
    assert.equal((await host.client.trace(uuidOf(traceId)))?.trace.run_count, spans.length);
  });

  test('ten thousand spans of one trace in one request, each the child of the one before', async () => {
    const { traceId, spans } = makeTrace(10_000, 1);
    assert.equal((await answered(jsonRequest([...spans].reverse()))).status, 200);
    await arrived(spans.length);
    assert.equal((await host.client.trace(uuidOf(traceId)))?.trace.run_count, spans.length);
  });

  test('a span that comes again, in the same request and later, arrives once and is counted as a duplicate', async () => {
    const { spans } = makeTrace(3, 2);
    const before = host.service.counters.total('dropped_duplicate');
    assert.equal((await answered(jsonRequest([...spans, ...spans]))).status, 200);
    assert.equal((await answered(jsonRequest(spans))).status, 200);
    await arrived(spans.length);
    while (host.service.counters.total('dropped_duplicate') - before < 2 * spans.length) {
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.equal(host.service.counters.total('dropped_duplicate') - before, 2 * spans.length);
  });

  test('an attribute of 100 MB rejects its span, and its neighbour arrives', async () => {
    const { spans } = makeTrace(2, 1);
    const [big, small] = spans as [SpanFacts, SpanFacts];
    const attributes = { 'input.value': 'x'.repeat(HUGE_BYTES) };
    const { status, rejectedCount, message } = await answered(
      jsonRequest(
        [
          { ...small, parentSpanId: big.parentSpanId as Buffer },
          { ...big, spanId: randomBytes(8), attributes },
        ].map(withoutUndefined),
      ),
    );
    assert.deepEqual([status, rejectedCount], [200, 1]);
    assert.match(message, /too large/);
    await arrived(1);
  });
});

describe('6: the same in protobuf', () => {
  for (const coding of ['identity', 'gzip', 'zstd'] as const) {
    test(`an attribute of 100 MB, ${coding}, rejects its span, and its neighbour arrives`, async () => {
      const huge = spanRequest(attribute('input.value', field(1, Buffer.alloc(HUGE_BYTES, 'x'))));
      const plain = Buffer.concat([huge, spanRequest()]);
      const compress = { identity: (body: Buffer) => body, gzip: gzipSync, zstd: zstdCompressSync }[coding];
      const answer = await fetch(host.url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/x-protobuf', 'Content-Encoding': coding },
        body: new Uint8Array(compress(plain)),
      });
      assert.equal(answer.status, 200);
      assert.match(Buffer.from(await answer.arrayBuffer()).toString('latin1'), /1 span: too large/);
      await arrived(1);
    });
  }
});

/** A root and `count - 1` children of it, the root first. */
function wideTrace(count: number): { traceId: Buffer; spans: SpanFacts[] } {
  const traceId = randomBytes(16);
  const rootId = randomBytes(8);
  const spans = Array.from({ length: count }, (_, i): SpanFacts => {
    const span = {
      traceId,
      spanId: randomBytes(8),
      name: `child ${i}`,
      startMs: START_MS + i,
      endMs: START_MS + i + 1,
    };
    return i === 0 ? { ...span, spanId: rootId, name: 'root' } : { ...span, parentSpanId: rootId };
  });
  return { traceId, spans };
}

function withoutUndefined(span: SpanFacts): SpanFacts {
  const { parentSpanId, ...others } = span;
  return parentSpanId === undefined ? others : { ...others, parentSpanId };
}

function metadataOf(run: { extra?: unknown } | null): Record<string, unknown> {
  const { metadata } = (run?.extra ?? {}) as { metadata?: Record<string, unknown> };
  return metadata ?? {};
}
