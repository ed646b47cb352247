/** Undoes the `Content-Encoding` of an upload, never beyond a bound: a few bytes must not become gigabytes. */
import { gunzipSync, zstdDecompressSync } from 'node:zlib';
import { KiB } from '../core/units.ts';

export type InflateOutcome =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'too-large' }
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'broken'; readonly message: string };

/** One step of output; the default of 16 KiB costs 2.7 times as long for 120 kB. */
const CHUNK_BYTES = 256 * KiB;
/** Each frame costs tens of microseconds, however empty. */
const MAX_FRAME_COUNT = 1000;

/** `coding` as in the header; empty and `identity` mean plain. */
export function inflate(body: Uint8Array, coding: string, maxBytes: number): InflateOutcome {
  const name = coding.trim().toLowerCase();
  if (name === '' || name === 'identity') {
    return body.byteLength > maxBytes ? { kind: 'too-large' } : { kind: 'bytes', bytes: body };
  }
  const undo = name === 'zstd' ? unzstd : name === 'gzip' || name === 'x-gzip' ? gunzip : null;
  if (undo === null) return { kind: 'unsupported' };
  // An empty stream decompresses to nothing without complaint; no encoder makes one.
  if (body.byteLength === 0) return { kind: 'broken', message: `${name}: no data` };
  try {
    return undo(body, maxBytes);
  } catch (error) {
    const { code, message } = error as { code?: string; message: string };
    return code === 'ERR_BUFFER_TOO_LARGE' ? { kind: 'too-large' } : { kind: 'broken', message: `${name}: ${message}` };
  }
}

function gunzip(body: Uint8Array, maxBytes: number): InflateOutcome {
  return { kind: 'bytes', bytes: gunzipSync(body, { maxOutputLength: maxBytes, chunkSize: CHUNK_BYTES }) };
}

/**
 * Node's function stops after the first frame, and takes a frame that is cut short for a whole one: the reader of the
 * result notices that the end is missing.
 */
function unzstd(body: Uint8Array, maxBytes: number): InflateOutcome {
  const frames: Uint8Array[] = [];
  let outputBytes = 0;
  for (let at = 0; at < body.byteLength;) {
    if (frames.length === MAX_FRAME_COUNT) {
      return { kind: 'broken', message: `zstd: more than ${MAX_FRAME_COUNT} frames` };
    }
    const room = maxBytes - outputBytes;
    if (room <= 0) return { kind: 'too-large' };
    const options = { maxOutputLength: room, chunkSize: CHUNK_BYTES, info: true };
    // With `info` the result is an object, which the type declarations do not know.
    const { buffer, engine } = zstdDecompressSync(body.subarray(at), options) as unknown as {
      buffer: Uint8Array;
      engine: { bytesWritten: number };
    };
    frames.push(buffer);
    outputBytes += buffer.byteLength;
    at += engine.bytesWritten;
    if (engine.bytesWritten === 0) return { kind: 'broken', message: 'zstd: no frame' };
  }
  const [only] = frames;
  return { kind: 'bytes', bytes: frames.length === 1 && only !== undefined ? only : Buffer.concat(frames) };
}
