/**
 * Traces of graph runs, as spans to an OTLP endpoint (our own proxy, when tracing is on). In: what the graph library calls back
 * about a run. Out: one request per batch of finished runs, JSON. The run's id is the trace's id, and thus the id of the root run
 * in the backend. It never slows a run down: spans are sent after its end; while the endpoint is slow, finished runs gather up to
 * a limit, then the oldest are dropped and counted. On close what is left is sent once.
 */
import { BaseTracer, type Run as TracedRun } from '@langchain/core/tracers/base';
import { createHash } from 'node:crypto';
import type { TraceTarget } from './protocol.ts';
import { render } from './render.ts';

export interface TraceSender {
  /** Callbacks for one run; a tracer serves one run and its children. */
  tracer(run: { runId: string; threadId: string }): BaseTracer;
  close(): Promise<void>;
}

const MAX_WAITING_BYTES = 16 * 1024 * 1024;
const MAX_REQUEST_BYTES = 4 * 1024 * 1024;
const SEND_TIMEOUT_MS = 10_000;

/** `onLost` hears how many runs went untraced, and why. */
export function createTraceSender(
  target: TraceTarget,
  onLost: (runCount: number, reason: string) => void,
): TraceSender {
  let waiting: TracedSpans[] = [];
  let waitingBytes = 0;
  let sending: Promise<void> | null = null;

  /** The next runs of one project, as many as fit into a request. */
  const take = (): TracedSpans[] => {
    const batch: TracedSpans[] = [];
    let bytes = 0;
    for (let next = waiting[0]; next !== undefined; next = waiting[0]) {
      const [first] = batch;
      if (first !== undefined && (first.project !== next.project || bytes + next.json.length > MAX_REQUEST_BYTES))
        break;
      bytes += next.json.length;
      batch.push(next);
      waiting.shift();
    }
    waitingBytes -= bytes;
    return batch;
  };

  const send = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = take();
      try {
        const response = await fetch(target.url, {
          method: 'POST',
          headers: {
            'content-type': 'application/json',
            ...target.headers,
            ...projectHeader(batch[0]?.project ?? null),
          },
          body: `{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"deployment"}}]},"scopeSpans":[{"scope":{"name":"collector-proxy.deployment"},"spans":[${batch.map(({ json }) => json).join(',')}]}]}]}`,
          signal: AbortSignal.timeout(SEND_TIMEOUT_MS),
        });
        await response.body?.cancel();
        if (!response.ok) onLost(batch.length, `the endpoint answered ${response.status}`);
      } catch (error) {
        onLost(batch.length, error instanceof Error ? error.message : String(error));
      }
    }
    sending = null;
  };

  const offer = (spans: TracedSpans): void => {
    waiting.push(spans);
    waitingBytes += spans.json.length;
    let droppedCount = 0;
    while (waitingBytes > MAX_WAITING_BYTES && waiting.length > 1) {
      waitingBytes -= waiting.shift()?.json.length ?? 0;
      droppedCount++;
    }
    if (droppedCount > 0) onLost(droppedCount, 'the endpoint is too slow');
    sending ??= send();
  };

  return {
    tracer: (run) => new SpanTracer(run.threadId, offer),
    close: async () => {
      await sending;
      waiting = [];
    },
  };
}

/** The spans of one run, rendered. */
interface TracedSpans {
  json: string;
  /** Null: the one that the proxy is configured with. */
  project: string | null;
}

/** Header values are bytes. */
function projectHeader(project: string | null): Record<string, string> {
  return project === null ? {} : { 'service-project': Buffer.from(project).toString('latin1') };
}

class SpanTracer extends BaseTracer {
  override readonly name = 'span_tracer';
  readonly #threadId: string;
  readonly #offer: (spans: TracedSpans) => void;

  constructor(threadId: string, offer: (spans: TracedSpans) => void) {
    super();
    this.#threadId = threadId;
    this.#offer = offer;
  }

  protected override async persistRun(run: TracedRun): Promise<void> {
    const spans: string[] = [];
    collect(spans, run, run.id, null, this.#threadId);
    const project = metadataOf(run)['langsmith_project'];
    this.#offer({ json: spans.join(','), project: typeof project === 'string' ? project : null });
  }
}

/** Steps that the library hides from traces are left out; what they called moves up to their parent. */
function collect(spans: string[], run: TracedRun, rootId: string, parentId: string | null, threadId: string): void {
  const isHidden = parentId !== null && run.tags?.includes('langsmith:hidden') === true;
  if (!isHidden) spans.push(spanOf(run, rootId, parentId, threadId));
  for (const child of run.child_runs) collect(spans, child, rootId, isHidden ? parentId : run.id, threadId);
}

function spanOf(run: TracedRun, rootId: string, parentId: string | null, threadId: string): string {
  const attributes: string[] = [];
  const text = (key: string, value: string): void =>
    void attributes.push(`{"key":${JSON.stringify(key)},"value":{"stringValue":${JSON.stringify(value)}}}`);
  text('langsmith.span.kind', run.run_type);
  text('langsmith.trace.name', run.name);
  text('gen_ai.prompt', render(run.inputs));
  if (run.outputs !== undefined) text('gen_ai.completion', render(run.outputs));
  if (run.tags !== undefined && run.tags.length > 0) text('langsmith.span.tags', run.tags.join(','));
  const metadata = metadataOf(run);
  const exampleId = metadata['langsmith_example_id'];
  if (parentId === null && typeof exampleId === 'string') text('langsmith.reference_example_id', exampleId);
  const model = metadata['ls_model_name'];
  if (typeof model === 'string') text('gen_ai.request.model', model);
  for (const [key, value] of Object.entries({ ...metadata, run_id: rootId, thread_id: threadId }))
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
      text(`langsmith.metadata.${key}`, String(value));
  const usage = usageOf(run);
  if (usage !== null) text('langsmith.usage_metadata', render(usage));
  const parent = parentId === null ? '' : `"parentSpanId":"${spanId(parentId)}",`;
  const failure = run.error === undefined ? null : JSON.stringify(run.error);
  const status = failure === null ? '{"code":1}' : `{"code":2,"message":${failure}}`;
  const end = nanos(run.end_time ?? Date.now());
  const events =
    failure === null
      ? ''
      : `,"events":[{"name":"exception","timeUnixNano":"${end}","attributes":[{"key":"exception.message","value":{"stringValue":${failure}}}]}]`;
  return (
    `{"traceId":"${rootId.replaceAll('-', '')}","spanId":"${spanId(run.id)}",${parent}"name":${JSON.stringify(run.name)},` +
    `"kind":1,"startTimeUnixNano":"${nanos(run.start_time)}","endTimeUnixNano":"${end}",` +
    `"attributes":[${attributes.join(',')}],"status":${status}${events}}`
  );
}

function metadataOf(run: TracedRun): Record<string, unknown> {
  return (run.extra?.['metadata'] ?? {}) as Record<string, unknown>;
}

/** UUIDv7s of one moment share their beginning, v4s are random all over: the hash is good for both. */
function spanId(runId: string): string {
  return createHash('sha1').update(runId).digest('hex').slice(0, 16);
}

function nanos(ms: number): string {
  return `${Math.floor(ms)}000000`;
}

function usageOf(run: TracedRun): unknown {
  if (run.run_type !== 'llm') return null;
  const generations = run.outputs?.['generations'] as { message?: { usage_metadata?: unknown } }[][] | undefined;
  return generations?.[0]?.[0]?.message?.usage_metadata ?? null;
}
