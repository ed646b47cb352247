/**
 * The demo's services: each a tracer provider of the official SDK with an official exporter, JSON or protobuf, one span a
 * request or batched. Spans get the times that the workload tells, so that nothing has to be waited for.
 */
import { context, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  SimpleSpanProcessor,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';

export interface ServiceChoice {
  readonly name: string;
  readonly encoding: 'json' | 'protobuf';
  /** Batched: several spans a request. Otherwise each span is a request of its own, sent when it ends: children first. */
  readonly batched: boolean;
}

export interface Work {
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes?: Readonly<Record<string, unknown>>;
  readonly kind?: SpanKind;
  /** What was thrown. */
  readonly error?: Error;
  /** What it called; may belong to other services. */
  readonly steps?: readonly { readonly service: Service; readonly work: Work }[];
}

export interface Service {
  readonly name: string;
  readonly encoding: 'json' | 'protobuf';
  /** Records the work and everything below it, each span ended after its children. Returns the trace id. */
  run(work: Work, parent?: Span): string;
  /** Sends what is batched and closes the exporter. */
  finish(): Promise<void>;
  /** Spans handed to the exporter, and what the exporter said went wrong. */
  readonly exportedCount: number;
  readonly requestCount: number;
  readonly failures: readonly string[];
}

const TIMEOUT_MS = 10_000;

export function createService(choice: ServiceChoice, tracesUrl: string, headers: Record<string, string>): Service {
  const settings = { url: tracesUrl, headers, timeoutMillis: TIMEOUT_MS };
  const exporter = choice.encoding === 'json' ? new JsonExporter(settings) : new ProtobufExporter(settings);
  const failures: string[] = [];
  let exportedCount = 0;
  let requestCount = 0;
  const counting: SpanExporter = {
    export: (spans, done) => {
      requestCount++;
      exporter.export(spans, (result) => {
        if (result.error === undefined) exportedCount += spans.length;
        else failures.push(`${choice.name}: ${result.error.message}`);
        // The failure is told by the demo itself, once.
        done({ code: 0 });
      });
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: () => exporter.forceFlush(),
  };
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({ 'service.name': choice.name, 'service.version': '1.4.2' }),
    spanProcessors: [choice.batched ? new BatchSpanProcessor(counting) : new SimpleSpanProcessor(counting)],
  });
  const tracer = provider.getTracer('demo-agent');

  const run = (work: Work, parent?: Span): string => {
    const above = parent === undefined ? context.active() : trace.setSpan(context.active(), parent);
    const attributes = Object.fromEntries(
      Object.entries(work.attributes ?? {}).map(([name, value]) => [name, textual(value)]),
    );
    const kind = work.kind ?? SpanKind.INTERNAL;
    const span = tracer.startSpan(work.name, { startTime: work.startMs, kind, attributes }, above);
    for (const { service, work: step } of work.steps ?? []) service.run(step, span);
    if (work.error !== undefined) {
      span.recordException(work.error, work.endMs);
      span.setStatus({ code: SpanStatusCode.ERROR, message: work.error.message });
    }
    span.end(work.endMs);
    return span.spanContext().traceId;
  };
  return {
    name: choice.name,
    encoding: choice.encoding,
    run,
    finish: async () => {
      await provider.forceFlush();
      await provider.shutdown();
    },
    get exportedCount() {
      return exportedCount;
    },
    get requestCount() {
      return requestCount;
    },
    failures,
  };
}

/** Attributes hold plain values and lists of them; structured content travels as JSON text. */
function textual(value: unknown): string | number | boolean | string[] {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') return value;
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return value;
  return JSON.stringify(value);
}
