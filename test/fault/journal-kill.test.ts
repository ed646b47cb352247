/**
 * DURABLE_ACK and kill -9 at random instants under load from official exporters: every span that an exporter was told is
 * taken arrives in the end, with what it said.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { ROOT_CONTEXT, trace } from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { BasicTracerProvider, type ReadableSpan, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import { startCountingBackend } from '../flow/countingbackend.ts';
import { fixedPort, startProgram, type Program } from '../flow/program.ts';
import { scrape } from '../metrics.ts';

const cleanUps: (() => Promise<unknown> | void)[] = [];
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

/** Spans as an application makes them: a trace of a root and two children, or a child of a parent that never comes. */
class Application {
  readonly #ended: ReadableSpan[] = [];
  readonly #tracer;
  #count = 0;

  constructor() {
    const keep: SpanProcessor = {
      onStart: () => undefined,
      onEnd: (span) => void this.#ended.push(span),
      forceFlush: () => Promise.resolve(),
      shutdown: () => Promise.resolve(),
    };
    this.#tracer = new BasicTracerProvider({ spanProcessors: [keep] }).getTracer('kill');
  }

  work(): ReadableSpan[] {
    const number = this.#count++;
    const root = this.#tracer.startSpan(`root ${number}`, {}, ROOT_CONTEXT);
    const below = trace.setSpan(ROOT_CONTEXT, root);
    for (let child = 0; child < 2; child++) {
      const span = this.#tracer.startSpan(`child ${number}.${child}`, {}, below);
      span.setAttribute('note', 'x'.repeat(200 + 50 * (number % 20)));
      span.end();
    }
    // Every fifth trace has lost its root: its children wait for it in vain.
    if (number % 5 !== 0) root.end();
    return this.#ended.splice(0);
  }
}

interface Exporter {
  export(spans: ReadableSpan[], told: (result: { code: number }) => void): void;
  shutdown(): Promise<void>;
}

test('what was acknowledged before a kill -9, at whatever instant, arrives', { timeout: 300_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), 'journal-kill-'));
  cleanUps.push(() => rmSync(folder, { recursive: true }));
  const backend = await startCountingBackend();
  cleanUps.push(() => backend.close());
  let uploadCount = 0;
  // Sometimes it fails, sometimes it takes its time: batches are open, in flight and being retried when the kill comes.
  backend.reply = async () => {
    const number = uploadCount++;
    await new Promise((resolve) => setTimeout(resolve, (number * 37) % 60));
    return { status: number % 5 === 4 ? 503 : 202 };
  };
  const environment = {
    SERVICE_ENDPOINT: backend.url,
    DURABLE_ACK: 'true',
    DATA_DIR: folder,
    SPAN_TTL: '1500ms',
    HTTP_PORT: String(await fixedPort()),
  };
  let program: Program = await startProgram(environment);
  cleanUps.push(() => program.kill('SIGKILL'));
  const { port } = program;
  const url = `http://127.0.0.1:${port}/v1/traces`;
  const acknowledged = new Map<string, string>();
  let isOver = false;

  const send = async (exporter: Exporter): Promise<void> => {
    const application = new Application();
    while (!isOver) {
      const spans = [application.work(), application.work()].flat();
      const code = await new Promise<number>((resolve) => exporter.export(spans, (result) => resolve(result.code)));
      if (code === 0) for (const span of spans) acknowledged.set(idOf(span), span.name);
    }
    await exporter.shutdown();
  };
  const options = { url, timeoutMillis: 2000 };
  const sending = [
    send(new ProtobufExporter(options)),
    send(new ProtobufExporter(options)),
    send(new JsonExporter(options)),
    send(new JsonExporter({ ...options, headers: { 'x-api-key': 'another-key' } })),
  ];
  for (let round = 0; round < 6; round++) {
    const before = acknowledged.size;
    while (acknowledged.size < before + 60) await new Promise((resolve) => setTimeout(resolve, 10));
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 100));
    await program.kill('SIGKILL');
    program = await startProgram(environment);
  }
  isOver = true;
  await Promise.all(sending);

  const arrived = new Map<string, string>();
  let seen = 0;
  const missing = (): string[] => {
    for (; seen < backend.runs.length; seen++) {
      const run = backend.runs[seen];
      if (run !== undefined) arrived.set(spanOf(run.run), String(run.run['name']));
    }
    return [...acknowledged.keys()].filter((id) => !arrived.has(id));
  };
  await backend.until(() => missing().length === 0);
  for (const [id, name] of acknowledged) assert.equal(arrived.get(id), name);

  // What had arrived before the last kill is decoded again like the rest; a stop would leave it to the next process.
  const replayBytes = async (): Promise<number> =>
    (await scrape(`http://127.0.0.1:${port}/metrics`)).sum('collector_proxy_journal_replay_bytes');
  while ((await replayBytes()) > 0) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(await program.kill('SIGTERM'), 0);
  assert.deepEqual(
    readdirSync(join(folder, 'journal')).filter((name) => name !== 'lock'),
    [],
    'what is delivered is not kept',
  );
});

/** Trace and span id; a root's run has the trace's id. */
function idOf(span: ReadableSpan): string {
  const { traceId, spanId } = span.spanContext();
  return span.parentSpanContext === undefined ? `${traceId}/root` : `${traceId}/${spanId}`;
}

function spanOf(run: Record<string, unknown>): string {
  const [id, traceId] = [run['id'], run['trace_id']].map((value) => String(value).replaceAll('-', ''));
  return id === traceId ? `${traceId}/root` : `${traceId}/${id?.slice(16)}`;
}
