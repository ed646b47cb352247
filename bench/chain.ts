/**
 * What a connection of the load generator sends: the requests of one corpus in order, encoded once, with the places of
 * all ids known, so that a request costs a few hundred stores and one write.
 */
import { createCorpus, type CorpusName } from './corpus.ts';
import { scanJson, scanProtobuf, scramble } from './spanids.ts';

export interface ChainSettings {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly corpus: CorpusName;
  readonly encoding: 'protobuf' | 'json';
  readonly spansPerRequest: number;
}

/** Shorter than the corpora as they come: that keeps memory, and the completion of begun chains, short. */
const REQUESTS_PER_CHAIN = 4;

/** One request of the chain: head and body in one buffer, and where the ids go. */
export interface Template {
  readonly bytes: Buffer;
  readonly bodyBytes: number;
  readonly spanCount: number;
  /** For each id to write: offset, which id, index in the chain of the span (or of the trace's root) it names. */
  readonly offsets: Int32Array;
  readonly kinds: Uint8Array;
  readonly indexes: Int32Array;
}

const TRACE_ID = 0;
const SPAN_ID = 1;

export interface Chain {
  readonly templates: readonly Template[];
  readonly spanCount: number;
}

export function buildChain(settings: ChainSettings): Chain {
  const corpus = createCorpus(settings.corpus, {
    requestCount: REQUESTS_PER_CHAIN,
    spansPerRequest: settings.spansPerRequest,
  });
  const url = new URL(settings.url);
  const isJson = settings.encoding === 'json';
  const located = corpus.requests.map((request) => {
    const body = isJson ? request.json : request.protobuf;
    return { body, spans: isJson ? scanJson(body) : scanProtobuf(body) };
  });
  const idText = (body: Uint8Array, offset: number, lengthBytes: number): string =>
    Buffer.from(body.subarray(offset, offset + lengthBytes * (isJson ? 2 : 1))).toString(isJson ? 'latin1' : 'hex');
  // Numbers within the chain: a span by its id, a trace by its root's.
  const indexOfSpan = new Map<string, number>();
  const indexOfRoot = new Map<string, number>();
  let spanCount = 0;
  for (const { body, spans } of located) {
    for (const span of spans) {
      indexOfSpan.set(idText(body, span.spanId, 8), spanCount);
      if (span.parentSpanId < 0) indexOfRoot.set(idText(body, span.traceId, 16), spanCount);
      spanCount++;
    }
  }
  const known = (index: number | undefined): number => {
    if (index === undefined) throw new Error('a chain must hold every root and every parent that it names');
    return index;
  };
  const templates = located.map(({ body, spans }, requestIndex): Template => {
    const head = Buffer.from(
      [
        `POST ${url.pathname === '/' ? '/v1/traces' : url.pathname} HTTP/1.1`,
        `Host: ${url.host}`,
        `Content-Type: ${isJson ? 'application/json' : 'application/x-protobuf'}`,
        `Content-Length: ${body.length}`,
        ...Object.entries(settings.headers).map(([name, value]) => `${name}: ${value}`),
        '',
        '',
      ].join('\r\n'),
    );
    const ids = spans.flatMap((span) => [
      { offset: span.traceId, kind: TRACE_ID, index: known(indexOfRoot.get(idText(body, span.traceId, 16))) },
      { offset: span.spanId, kind: SPAN_ID, index: known(indexOfSpan.get(idText(body, span.spanId, 8))) },
      ...(span.parentSpanId < 0
        ? []
        : [
            {
              offset: span.parentSpanId,
              kind: SPAN_ID,
              index: known(indexOfSpan.get(idText(body, span.parentSpanId, 8))),
            },
          ]),
    ]);
    return {
      bytes: Buffer.concat([head, body]),
      bodyBytes: body.length,
      spanCount: corpus.requests[requestIndex]?.spanCount ?? 0,
      offsets: Int32Array.from(ids, (id) => id.offset + head.length),
      kinds: Uint8Array.from(ids, (id) => id.kind),
      indexes: Int32Array.from(ids, (id) => id.index),
    };
  });
  return { templates, spanCount };
}

export function writeIds(
  template: Template,
  bytes: Buffer,
  encoding: ChainSettings['encoding'],
  phase: number,
  firstNumber: number,
): void {
  const write = encoding === 'json' ? writeHex : writeBinary;
  const width = encoding === 'json' ? 8 : 4;
  for (let i = 0; i < template.offsets.length; i++) {
    const offset = template.offsets[i] ?? 0;
    const number = firstNumber + (template.indexes[i] ?? 0);
    write(bytes, offset, phase);
    write(bytes, offset + width, number);
    if (template.kinds[i] === TRACE_ID) {
      const drawn = scramble(phase, number);
      write(bytes, offset + 2 * width, drawn);
      write(bytes, offset + 3 * width, Math.imul(drawn, 0x27d4eb2f) >>> 0);
    }
  }
}

function writeBinary(bytes: Buffer, offset: number, value: number): void {
  bytes[offset] = value >>> 24;
  bytes[offset + 1] = value >>> 16;
  bytes[offset + 2] = value >>> 8;
  bytes[offset + 3] = value;
}

function writeHex(bytes: Buffer, offset: number, value: number): void {
  for (let i = 0; i < 8; i++) {
    const digit = (value >>> (28 - 4 * i)) & 15;
    bytes[offset + i] = digit < 10 ? 0x30 + digit : 0x57 + digit;
  }
}
