/**
 * Where the ids of each span lie in an encoded request, and the numbers that the load generator writes there. Every span
 * that is sent has a number of its own, readable from the ids alone, whatever a collector makes of the rest:
 *
 *     trace id   u32 phase, u32 number of the trace's root span, 8 bytes drawn from these two
 *     span id    u32 phase, u32 number
 *
 * A run's UUID is the trace id for a root and the padded span id otherwise, so the sink finds the number again in both.
 */

export interface SpanOffsets {
  readonly traceId: number;
  readonly spanId: number;
  /** -1 for a root. */
  readonly parentSpanId: number;
}

/** Ids in a protobuf request: offsets of the 16 and 8 bytes. */
export function scanProtobuf(body: Uint8Array): SpanOffsets[] {
  const found: SpanOffsets[] = [];
  eachField(body, 0, body.length, (resourceField, resourceStart, resourceEnd) => {
    if (resourceField !== 1) return;
    eachField(body, resourceStart, resourceEnd, (scopeField, scopeStart, scopeEnd) => {
      if (scopeField !== 2) return;
      eachField(body, scopeStart, scopeEnd, (spanField, spanStart, spanEnd) => {
        if (spanField !== 2) return;
        let traceId = -1;
        let spanId = -1;
        let parentSpanId = -1;
        eachField(body, spanStart, spanEnd, (field, start, end) => {
          if (field === 1 && end - start === 16) traceId = start;
          else if (field === 2 && end - start === 8) spanId = start;
          else if (field === 4 && end - start === 8) parentSpanId = start;
        });
        found.push({ traceId, spanId, parentSpanId });
      });
    });
  });
  return found;
}

/** Ids in a JSON request as the corpora write it: offsets of the 32 and 16 hexadecimal digits. */
export function scanJson(body: Uint8Array): SpanOffsets[] {
  const text = Buffer.from(body).toString('latin1');
  return Array.from(
    text.matchAll(/\{"traceId":"[0-9a-f]{32}","spanId":"[0-9a-f]{16}"(,"parentSpanId":"[0-9a-f]{16}")?/g),
    (match) => ({
      traceId: match.index + 12,
      spanId: match.index + 12 + 32 + 12,
      parentSpanId: match[1] === undefined ? -1 : match.index + 12 + 32 + 12 + 16 + 18,
    }),
  );
}

type FieldVisitor = (field: number, start: number, end: number) => void;

/** Visits the length-delimited fields of a message; others are skipped. */
function eachField(body: Uint8Array, start: number, end: number, visit: FieldVisitor): void {
  let position = start;
  const varint = (): number => {
    let value = 0;
    for (let factor = 1; ; factor *= 128) {
      const byte = body[position++] ?? 0;
      value += (byte & 0x7f) * factor;
      if (byte < 0x80) return value;
    }
  };
  while (position < end) {
    const tag = varint();
    switch (tag & 7) {
      case 0:
        varint();
        break;
      case 1:
        position += 8;
        break;
      case 2: {
        const length = varint();
        visit(tag >>> 3, position, position + length);
        position += length;
        break;
      }
      case 5:
        position += 4;
        break;
      default:
        throw new Error(`wire type ${tag & 7} at ${position}`);
    }
  }
}

/** The last eight bytes of a trace id: collectors spread traces over their threads by them, so they must look random. */
export function scramble(phase: number, rootNumber: number): number {
  let mixed = Math.imul(rootNumber ^ (phase << 7), 0x9e3779b1);
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b);
  return (mixed ^ (mixed >>> 13)) >>> 0;
}
