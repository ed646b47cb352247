/**
 * Applications that send: official exporters, protobuf and JSON, plain and gzipped. Keeps account of what was acknowledged;
 * what was not is sent again a few times, as applications do.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT_CONTEXT, trace as traceApi, TraceFlags, type Tracer } from '@opentelemetry/api';
import { OTLPTraceExporter as JsonExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base';
import { keyOf } from './check.ts';
import { traceOf } from './workload.ts';

/** The fate of one request's spans. */
export interface SentRequest {
  readonly traceNumber: number;
  /** Indices of its spans. */
  readonly spans: readonly number[];
  /** Since the start of the run; null: never. */
  readonly acknowledgedMs: number | null;
}

export interface SenderSettings {
  readonly seed: number;
  readonly url: string;
  /** Sends the traces `first`, `first + step`, … */
  readonly first: number;
  readonly step: number;
  readonly encoding: 'protobuf' | 'json';
  readonly gzip: boolean;
  readonly pauseMs: number;
  readonly nowMs: () => number;
}

export interface Sender {
  readonly requests: readonly SentRequest[];
  /** Attempts to export, of which an exporter makes several requests. */
  readonly failedCount: number;
  readonly nextTrace: number;
  /** Resolves when the last exporter has its answer. */
  stop(): Promise<void>;
}

const EXPORT_TIMEOUT_MS = 4000;
const MAX_ATTEMPTS = 3;

export function startSender(settings: SenderSettings): Sender {
  const requests: SentRequest[] = [];
  const exporters = new Map<string, SpanExporter>();
  const exporterFor = (apiKey: string): SpanExporter => {
    let exporter = exporters.get(apiKey);
    if (exporter === undefined) {
      const Exporter = settings.encoding === 'json' ? JsonExporter : ProtobufExporter;
      type Options = NonNullable<ConstructorParameters<typeof Exporter>[0]>;
      exporter = new Exporter({
        url: settings.url,
        headers: { 'X-API-Key': apiKey },
        timeoutMillis: EXPORT_TIMEOUT_MS,
        compression: (settings.gzip ? 'gzip' : 'none') as NonNullable<Options['compression']>,
      });
      exporters.set(apiKey, exporter);
    }
    return exporter;
  };
  let isStopping = false;
  let failedCount = 0;
  let number = settings.first;
  const factory = createSpanFactory(settings.seed);

  const run = async (): Promise<void> => {
    for (; !isStopping; number += settings.step) {
      const trace = traceOf(settings.seed, number);
      const exporter = exporterFor(keyOf(number));
      for (const spans of trace.requests) {
        const readable = factory(number, spans);
        let isAcknowledged = false;
        for (let attempt = 0; attempt < MAX_ATTEMPTS && !isAcknowledged; attempt++) {
          if (attempt > 0 && isStopping) break;
          isAcknowledged = await send(exporter, readable);
          if (!isAcknowledged) failedCount++;
          await sleep(settings.pauseMs);
        }
        requests.push({
          traceNumber: number,
          spans,
          acknowledgedMs: isAcknowledged ? settings.nowMs() : null,
        });
      }
    }
    for (const exporter of exporters.values()) await exporter.shutdown();
  };
  const running = run();
  return {
    requests,
    get failedCount() {
      return failedCount;
    },
    get nextTrace() {
      return number;
    },
    stop: async () => {
      isStopping = true;
      await running;
    },
  };
}

/** Whether all of it was acknowledged: the exporter says success for a 200, and every span of ours is valid. */
function send(exporter: SpanExporter, spans: ReadableSpan[]): Promise<boolean> {
  return new Promise((resolve) => exporter.export(spans, ({ code }) => resolve(Number(code) === 0)));
}

/** Spans as the SDK makes them, with the ids and times of the workload. */
function createSpanFactory(seed: number): (traceNumber: number, indices: readonly number[]) => ReadableSpan[] {
  const finished = new InMemorySpanExporter();
  let nextSpanId = '';
  let nextTraceId = '';
  const provider = new BasicTracerProvider({
    idGenerator: { generateSpanId: () => nextSpanId, generateTraceId: () => nextTraceId },
    spanProcessors: [new SimpleSpanProcessor(finished)],
    resource: resourceFromAttributes({ 'service.name': 'chaos' }),
    spanLimits: { attributeValueLengthLimit: Infinity },
  });
  const tracer: Tracer = provider.getTracer('chaos');
  return (traceNumber, indices) => {
    const { traceId, spans } = traceOf(seed, traceNumber);
    nextTraceId = traceId;
    finished.reset();
    for (const index of indices) {
      const span = spans[index];
      if (span === undefined) throw new Error(`span ${index} of ${spans.length}`);
      const parent = spans[span.parent];
      const context =
        parent === undefined
          ? ROOT_CONTEXT
          : traceApi.setSpanContext(ROOT_CONTEXT, { traceId, spanId: parent.spanId, traceFlags: TraceFlags.SAMPLED });
      nextSpanId = span.spanId;
      const attributes = {
        'gen_ai.operation.name': 'chat',
        'gen_ai.prompt': JSON.stringify([{ role: 'user', content: span.question }]),
        'gen_ai.completion': JSON.stringify([{ role: 'assistant', content: span.answer }]),
        ...span.attributes,
      };
      tracer.startSpan(span.name, { startTime: new Date(span.startMs), attributes }, context).end(new Date(span.endMs));
    }
    return finished.getFinishedSpans();
  };
}
