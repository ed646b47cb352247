/** Export requests made by hand, for what the official exporters would not send. */
import { randomBytes } from 'node:crypto';

export interface SpanFacts {
  readonly traceId: Buffer;
  readonly spanId: Buffer;
  readonly parentSpanId?: Buffer;
  readonly name: string;
  /** Milliseconds since the Unix epoch. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes?: Readonly<Record<string, string>>;
}

export interface Trace {
  readonly traceId: Buffer;
  /** Parents before their children. */
  readonly spans: readonly SpanFacts[];
}

const START_MS = Date.parse('2026-03-04T05:06:07.000Z');

/** A chain of `depth` spans with `breadth - 1` further leaves below each. */
export function makeTrace(depth: number, breadth: number, startMs = START_MS): Trace {
  const traceId = randomBytes(16);
  const spans: SpanFacts[] = [];
  let parent: SpanFacts | null = null;
  for (let level = 0; level < depth; level++) {
    const count: number = level === 0 ? 1 : breadth;
    let next: SpanFacts | null = null;
    for (let n = 0; n < count; n++) {
      const span: SpanFacts = {
        traceId,
        spanId: randomBytes(8),
        ...(parent !== null && { parentSpanId: parent.spanId }),
        name: `level ${level}, number ${n}`,
        startMs: startMs + 10 * level + n,
        endMs: startMs + 1000 - 10 * level,
      };
      spans.push(span);
      next ??= span;
    }
    parent = next;
  }
  return { traceId, spans };
}

/** An OTLP request in JSON. The ids as hex, as the specification has it, or as base64, as many senders do. */
export function jsonRequest(spans: readonly SpanFacts[], ids: 'hex' | 'base64' = 'hex'): string {
  const nanos = (ms: number): string => `${BigInt(ms) * 1_000_000n}`;
  return JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: [{ key: 'service.name', value: { stringValue: 'pipeline-test' } }] },
        scopeSpans: [
          {
            spans: spans.map((span) => ({
              traceId: span.traceId.toString(ids),
              spanId: span.spanId.toString(ids),
              ...(span.parentSpanId !== undefined && { parentSpanId: span.parentSpanId.toString(ids) }),
              name: span.name,
              kind: 1,
              startTimeUnixNano: nanos(span.startMs),
              endTimeUnixNano: nanos(span.endMs),
              attributes: Object.entries(span.attributes ?? {}).map(([key, value]) => ({
                key,
                value: { stringValue: value },
              })),
            })),
          },
        ],
      },
    ],
  });
}

export function postJson(url: string, body: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { method: 'POST', headers: { 'Content-Type': 'application/json', ...headers }, body });
}

/** The id that the run of a trace's root has. */
export function uuidOf(id: Buffer): string {
  const hex = id.toString('hex').padStart(32, '0');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
