/** From an exporter's socket to the backend's store, everything real: HTTP, threads, rings, zstd, SQLite. */
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { gzipSync, deflateSync, zstdCompressSync } from 'node:zlib';
import { SpanStatusCode, type Span, type Tracer } from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { trace, context, ROOT_CONTEXT } from '@opentelemetry/api';
import type { TraceNode } from '../../src/backend/api.ts';
import { createBackendClient } from '../../src/backend/client.ts';
import { startBackend } from '../../src/backend/owner.ts';
import { jsonRequest, makeTrace, postJson, uuidOf, type SpanFacts } from './otlp.ts';
import { fixedPort } from './program.ts';
import { startHost, startService, tracesUrl, type Host } from './pipelinehost.ts';

const hosts: Host[] = [];

async function host(...parameters: Parameters<typeof startHost>): Promise<Host> {
  const started = await startHost(...parameters);
  hosts.push(started);
  return started;
}

afterEach(async () => {
  for (const each of hosts.splice(0)) await each.stop();
});

/** `name(child, child(grandchild))`, children by name. */
function shape(node: TraceNode): string {
  const children = node.children.map(shape).sort();
  return children.length === 0 ? node.name : `${node.name}(${children.join(', ')})`;
}

/** An agent's run as an instrumented application makes it; ends children before parents. */
function agentWorkload(tracer: Tracer): string {
  const child = (name: string, parent: Span): Span => tracer.startSpan(name, {}, trace.setSpan(ROOT_CONTEXT, parent));
  const root = tracer.startSpan('agent', {}, ROOT_CONTEXT);
  const llm = child('chat', root);
  llm.setAttribute('gen_ai.operation.name', 'chat');
  llm.setAttribute('gen_ai.prompt', '[{"role":"user","content":"weather?"}]');
  llm.setAttribute('gen_ai.completion', '[{"role":"assistant","content":"asking"}]');
  llm.setAttribute('gen_ai.usage.input_tokens', 12);
  llm.setAttribute('gen_ai.usage.output_tokens', 3);
  const tool = child('get_weather', llm);
  tool.setStatus({ code: SpanStatusCode.ERROR, message: 'no such town' });
  tool.end();
  llm.end();
  const retriever = child('search', root);
  retriever.end();
  root.end();
  return root.spanContext().traceId;
}

for (const [name, Exporter] of [
  ['JSON', JsonExporter],
  ['protobuf', ProtobufExporter],
] as const) {
  for (const batched of [true, false]) {
    test(`the official ${name} exporter, ${batched ? 'all spans in one request' : 'one request a span, children first'}: one tree arrives`, async () => {
      const { client, url } = await host();
      const exporter = new Exporter({ url, headers: { 'Service-Project': 'agents' } });
      const processor = batched ? new BatchSpanProcessor(exporter) : new SimpleSpanProcessor(exporter);
      const provider = new BasicTracerProvider({
        resource: resourceFromAttributes({ 'service.name': 'shop' }),
        spanProcessors: [processor],
      });
      const traceId = context.with(ROOT_CONTEXT, () => agentWorkload(provider.getTracer('test')));
      await provider.shutdown();
      await client.waitForRuns(4);
      const tree = await client.tree(uuidOf(Buffer.from(traceId, 'hex')));
      assert.deepEqual(tree?.roots.map(shape), ['agent(chat(get_weather), search)']);
      assert.deepEqual(tree?.misplaced_run_ids, []);
      assert.equal(tree?.trace.project, 'agents');
      assert.equal(tree?.trace.total_tokens, 15);
      assert.equal(tree?.trace.error_count, 1);
      const failed = (await client.allRuns({ name: 'get_weather' }))[0];
      assert.equal(failed?.status, 'error');
    });
  }
}

test('a trace in shuffled order over many requests and connections arrives as its tree', async () => {
  const { client, url } = await host();
  const traces = Array.from({ length: 20 }, () => makeTrace(5, 3));
  const spans = traces.flatMap((each) => each.spans);
  for (let i = spans.length - 1; i > 0; i--) {
    const j = (i * 7919) % (i + 1);
    [spans[i], spans[j]] = [spans[j] as SpanFacts, spans[i] as SpanFacts];
  }
  const requests: SpanFacts[][] = [];
  for (let at = 0; at < spans.length; at += 4) requests.push(spans.slice(at, at + 4));
  const answers = await Promise.all(requests.map((each) => postJson(url, jsonRequest(each))));
  assert.ok(answers.every(({ status }) => status === 200));
  await client.waitForRuns(spans.length);
  for (const { traceId, spans: own } of traces) {
    const tree = await client.tree(uuidOf(traceId));
    assert.deepEqual(tree?.misplaced_run_ids, []);
    assert.equal(tree?.roots.length, 1);
    assert.equal(tree?.trace.run_count, own.length);
    for (const run of await client.allRuns({ trace: uuidOf(traceId) })) {
      const span = own.find(({ name }) => name === run.name);
      const parentId = span?.parentSpanId;
      const isBelowRoot = parentId !== undefined && parentId === own[0]?.spanId;
      const expected = parentId === undefined ? null : isBelowRoot ? uuidOf(traceId) : uuidOf(parentId);
      assert.equal(run.parent_run_id, expected, run.name);
    }
  }
});

test('ids as hex and as base64 are the same ids: a trace sent half and half joins', async () => {
  const { client, url } = await host();
  const { traceId, spans } = makeTrace(4, 2);
  const half = Math.ceil(spans.length / 2);
  assert.equal((await postJson(url, jsonRequest(spans.slice(half), 'base64'))).status, 200);
  assert.equal((await postJson(url, jsonRequest(spans.slice(0, half), 'hex'))).status, 200);
  await client.waitForRuns(spans.length);
  const tree = await client.tree(uuidOf(traceId));
  assert.equal(tree?.trace.run_count, spans.length);
  assert.equal(tree?.roots.length, 1);
});

test('every coding of a body is read; a damaged one is 400 and a bomb is 413', async () => {
  const { client, url } = await host({ MAX_BODY_BYTES: '1MiB' });
  let sentCount = 0;
  for (const [coding, compress] of [
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['zstd', zstdCompressSync],
  ] as const) {
    const { spans } = makeTrace(2, 2);
    const send = async (body: Buffer): Promise<number> =>
      (
        await fetch(url, {
          method: 'POST',
          headers: { 'Content-Type': 'application/json', 'Content-Encoding': coding },
          body: new Uint8Array(body),
        })
      ).status;
    const whole = compress(Buffer.from(jsonRequest(spans)));
    assert.equal(await send(whole), 200, coding);
    sentCount += spans.length;
    assert.equal(await send(whole.subarray(0, whole.length - 9)), 400, `${coding}, cut short`);
    assert.equal(await send(compress(Buffer.alloc(64 * 1024 * 1024))), 413, `${coding}, a bomb`);
  }
  await client.waitForRuns(sentCount);
  assert.equal((await client.stats()).run_count, sentCount);
});

test('an invalid span costs only itself, and the answer says so', async () => {
  const { client, url } = await host();
  const { spans } = makeTrace(2, 2);
  const [first, ...others] = spans as [SpanFacts, ...SpanFacts[]];
  const answer = await postJson(url, jsonRequest([first, { ...first, spanId: Buffer.alloc(8) }, ...others]));
  assert.equal(answer.status, 200);
  const { partialSuccess } = (await answer.json()) as {
    partialSuccess: { rejectedSpans: string; errorMessage: string };
  };
  assert.equal(partialSuccess.rejectedSpans, '1');
  assert.notEqual(partialSuccess.errorMessage, '');
  await client.waitForRuns(spans.length);
  assert.equal((await client.stats()).run_count, spans.length);
});

test('two keys interleaved in the same moment never share an upload or a tenant', async () => {
  const keys = [
    { key: 'key-of-a', tenant: 'a' },
    { key: 'key-of-b', tenant: 'b' },
  ];
  const { client, url } = await host({ SERVICE_API_KEY: 'key-of-a' }, { keys });
  const traces = Array.from({ length: 40 }, (_, n) => ({ tenant: n % 2 === 0 ? 'a' : 'b', ...makeTrace(3, 3) }));
  await Promise.all(
    traces.map(async ({ tenant, spans }) => {
      const facts = spans.map((span) => ({ ...span, name: `of ${tenant}` }));
      // The one tenant by the configured key, the other by the header.
      const headers = tenant === 'a' ? {} : { 'X-API-Key': 'key-of-b' };
      assert.equal((await postJson(url, jsonRequest(facts), headers)).status, 200);
    }),
  );
  const each = traces.reduce((sum, { spans }) => sum + spans.length, 0) / 2;
  await client.waitForRuns(2 * each);
  for (const tenant of ['a', 'b']) {
    const runs = await client.allRuns({ tenant });
    assert.equal(runs.length, each);
    assert.ok(runs.every(({ name }) => name === `of ${tenant}`));
  }
});

test('a span larger than a ring takes arrives whole, beside small ones of its trace', async () => {
  const { client, url } = await host({ RING_BYTES: '64KiB' });
  const { traceId, spans } = makeTrace(3, 2);
  const text = 'größer '.repeat(60_000);
  const [root, ...others] = spans as [SpanFacts, ...SpanFacts[]];
  const large = { ...root, attributes: { 'input.value': text } };
  assert.equal((await postJson(url, jsonRequest([...others, large]))).status, 200);
  await client.waitForRuns(spans.length);
  const tree = await client.tree(uuidOf(traceId));
  assert.equal(tree?.roots.length, 1);
  const run = await client.run(uuidOf(traceId));
  assert.ok(JSON.stringify(run?.inputs).includes(text));
});

test('while the backend is down spans are taken; when it is back, all of them are delivered', async () => {
  const port = await fixedPort();
  const first = await startBackend({ port });
  const service = await startService({ SERVICE_ENDPOINT: first.url });
  try {
    await first.stop();
    const traces = Array.from({ length: 30 }, () => makeTrace(3, 2));
    for (const { spans } of traces) assert.equal((await postJson(tracesUrl(service), jsonRequest(spans))).status, 200);
    const count = traces.reduce((sum, { spans }) => sum + spans.length, 0);
    while (service.counters.total('upload_failures') === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal(service.account().deliveredCount, 0);
    const second = await startBackend({ port });
    try {
      await createBackendClient(second.url).waitForRuns(count);
      assert.equal((await createBackendClient(second.url).stats()).run_count, count);
    } finally {
      await service.stop(5000);
      await second.stop();
    }
  } finally {
    await service.stop(0);
  }
});

test('a backend that fails, answers too late and loses answers gets every run exactly once', async () => {
  const { client, url } = await host({ UPLOAD_TIMEOUT_MS: '300', MAX_RETRIES: '10', BATCH_SIZE: '10' });
  await client.addFault({ status: 503, count: 3 });
  await client.addFault({ reset: true, count: 2 });
  await client.addFault({ delay_ms: 1000, count: 1 });
  await client.addFault({ reset: true, when: 'after', count: 2 });
  const traces = Array.from({ length: 20 }, () => makeTrace(3, 3));
  await Promise.all(traces.map(({ spans }) => postJson(url, jsonRequest(spans))));
  const count = traces.reduce((sum, { spans }) => sum + spans.length, 0);
  await client.waitForRuns(count);
  assert.equal((await client.stats()).run_count, count);
});

test('without a spool, a backend that stands still ends in 503 with Retry-After, not in memory; afterwards everything accepted is delivered', async () => {
  const { client, service, url } = await host({
    RING_BYTES: '64KiB',
    HELD_MAX_BYTES: '1MiB',
    MAX_BUFFER_BYTES: '64KiB',
    PARK_MAX_BYTES: '1MiB',
    SPOOL_MAX_BYTES: '0',
  });
  await client.addFault({ status: 503 });
  let acceptedCount = 0;
  let busy: Response | null = null;
  for (let n = 0; busy === null && n < 2000; n++) {
    // Incompressible, so that what is held is reached.
    const spans = makeTrace(2, 2).spans.map((span) => ({
      ...span,
      attributes: { 'input.value': Buffer.from(crypto.getRandomValues(new Uint8Array(6000))).toString('base64') },
    }));
    const answer = await postJson(url, jsonRequest(spans));
    if (answer.status === 200) acceptedCount += spans.length;
    else busy = answer;
  }
  assert.equal(busy?.status, 503);
  assert.match(busy?.headers.get('retry-after') ?? '', /^[123]$/);
  assert.ok(acceptedCount > 0);
  await client.clearFaults();
  await client.waitForRuns(acceptedCount, { timeoutMs: 120_000 });
  assert.equal(service.counters.total('spans_accepted'), acceptedCount);
});

test('stopped under load, everything accepted is delivered, and what came too late was told so', async () => {
  const { client, service, url } = await host();
  let sending = true;
  let acceptedCount = 0;
  let turnedAwayCount = 0;
  const senders = Array.from({ length: 8 }, async () => {
    while (sending) {
      const { spans } = makeTrace(3, 2);
      const answer = await postJson(url, jsonRequest(spans)).catch(() => null);
      if (answer?.status === 200) acceptedCount += spans.length;
      else turnedAwayCount++;
      if (answer === null) return;
      await answer.arrayBuffer();
    }
  });
  while (acceptedCount < 2000) await new Promise((resolve) => setTimeout(resolve, 5));
  const account = await service.stop(60_000);
  sending = false;
  await Promise.all(senders);
  assert.ok(turnedAwayCount > 0);
  assert.equal(account.heldCount, 0);
  assert.equal(account.droppedCount, 0);
  assert.equal(account.acceptedCount, acceptedCount);
  assert.equal(account.acceptedCount, account.deliveredCount + account.droppedCount + account.heldCount);
  assert.equal((await client.stats()).run_count, acceptedCount);
});

test('spans whose parent never came are delivered at the stop, under their trace’s root', async () => {
  const { client, service, url } = await host();
  const { traceId, spans } = makeTrace(3, 2);
  const orphans = spans.slice(1);
  assert.equal((await postJson(url, jsonRequest(orphans))).status, 200);
  const account = await service.stop(60_000);
  assert.deepEqual([account.deliveredCount, account.heldCount], [orphans.length, 0]);
  const tree = await client.trace(uuidOf(traceId));
  assert.equal(tree?.runs.length, orphans.length);
});

test('stopped while the backend is away, the account has every span: accepted = delivered + dropped + held + spooled', async () => {
  const { client, service, url } = await host();
  await client.addFault({ status: 503 });
  const { spans } = makeTrace(4, 3);
  assert.equal((await postJson(url, jsonRequest(spans))).status, 200);
  const account = await service.stop(60_000);
  assert.equal(account.acceptedCount, spans.length);
  assert.equal(account.deliveredCount, 0);
  assert.equal(
    account.acceptedCount,
    account.deliveredCount + account.droppedCount + account.heldCount + account.spooledCount,
  );
  assert.equal(account.spooledCount, spans.length);
});
