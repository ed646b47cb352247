/** Bodies for tests of the journal, and the chunks that hold their frames. */
import { frameHeadBytes, readFrame, writeFrameHead, type FrameFacts } from '../../../src/journal/frame.ts';
import type { Chunk } from '../../../src/journal/message.ts';

export interface SampleBody extends FrameFacts {
  readonly bytes: Buffer;
}

export function sampleBody(number: number, lengthBytes = 100): SampleBody {
  return {
    encoding: number % 2 === 0 ? 'protobuf' : 'json',
    coding: (['identity', 'gzip', 'deflate', 'zstd'] as const)[number % 4] ?? 'identity',
    apiKey: `key-${number % 3}`,
    project: number % 3 === 0 ? null : `projekt ü ${number}`,
    receivedUs: 1.7e15 + number,
    bytes: Buffer.alloc(lengthBytes, `body ${number} `),
  };
}

/** `apart`: the last body in a buffer of its own. */
export function chunkOf(bodies: readonly SampleBody[], firstIndex = 0, apart = false): Chunk {
  const lengthBytes = bodies.reduce((sum, body) => sum + frameHeadBytes(body) + body.bytes.length, 0);
  const frames = new ArrayBuffer(lengthBytes);
  const view = Buffer.from(frames);
  let at = 0;
  let own: ArrayBuffer | null = null;
  for (const [number, body] of bodies.entries()) {
    at = writeFrameHead(view, at, body, firstIndex + number, body.bytes.length);
    if (apart && number === bodies.length - 1) own = new Uint8Array(body.bytes).buffer;
    else at += body.bytes.copy(view, at);
  }
  return { frames, usedBytes: at, body: own, bodyBytes: own?.byteLength ?? 0 };
}

export function bodiesIn(chunk: Chunk): (SampleBody & { index: number })[] {
  const bytes = Buffer.from(chunk.frames, 0, chunk.usedBytes);
  const bodies: (SampleBody & { index: number })[] = [];
  for (let at = 0; at < chunk.usedBytes;) {
    const { bodyAt, bodyBytes, ...facts } = readFrame(bytes, at);
    const isApart = chunk.body !== null && bodyAt === chunk.usedBytes;
    const own = isApart ? Buffer.from(chunk.body, 0, bodyBytes) : bytes.subarray(bodyAt, bodyAt + bodyBytes);
    bodies.push({ ...facts, bytes: own });
    at = bodyAt + (isApart ? 0 : bodyBytes);
  }
  return bodies;
}
