/**
 * A streamed response on one socket: what an app writes, in order, as HTTP chunks.
 *
 * The server library says that the socket is behind only with the *next* write, tells nothing when it has caught up,
 * and, once a writable handler is set, moves its own backlog only when that handler writes or corks. Hence: chunks queue
 * here, in JavaScript, where they can be counted, and go out in pieces. After a stall the first piece is a single byte:
 * its result says whether the library's backlog is empty. A reader that takes nothing for 10 s is cut by the library.
 */
import type { HttpResponse } from 'uWebSockets.js';
import type { HttpSink } from '../core/http.ts';
import { KiB } from '../core/units.ts';

const PIECE_BYTES = 64 * KiB;
/** Written chunks are let go of in groups, since each removal moves the rest of the queue. */
const FORGET_COUNT = 256;

export interface OwnedSink extends HttpSink {
  /** The connection has gone; the response must not be touched any more. */
  lost(): void;
}

export function createSink(response: HttpResponse, finished: () => void): OwnedSink {
  const queue: Uint8Array[] = [];
  /** Index of the first queued chunk, and how far it has been written. */
  let queueHead = 0;
  let headOffset = 0;
  let queuedBytes = 0;
  /** Handed to the library since it was last known to hold nothing. */
  let handedBytes = 0;
  /** The library holds nothing, as far as its last answer told. */
  let clean = true;
  /** It holds something and will call back. */
  let waiting = false;
  let ending = false;
  let closed = false;
  let drained: () => void = () => undefined;

  const close = (): void => {
    closed = true;
    queue.length = 0;
    queuedBytes = 0;
    handedBytes = 0;
    finished();
  };
  const writePiece = (): void => {
    const chunk = queue[queueHead];
    if (chunk === undefined) return;
    const piece = chunk.subarray(headOffset, headOffset + (clean ? PIECE_BYTES : 1));
    let taken = true;
    response.cork(() => {
      taken = response.write(piece);
    });
    queuedBytes -= piece.byteLength;
    headOffset += piece.byteLength;
    if (headOffset === chunk.byteLength) {
      queueHead++;
      headOffset = 0;
      if (queueHead === queue.length || queueHead === FORGET_COUNT) {
        queue.splice(0, queueHead);
        queueHead = 0;
      }
    }
    clean = taken;
    waiting = !taken;
    handedBytes = taken ? piece.byteLength : handedBytes + piece.byteLength;
  };
  const pump = (): void => {
    while (!closed && !waiting && queuedBytes > 0) writePiece();
    if (ending && !closed && queuedBytes === 0) {
      response.cork(() => response.end());
      close();
    }
  };

  response.onWritable(() => {
    if (closed) return true;
    // An empty cork makes the library send what it holds.
    response.cork(() => undefined);
    waiting = false;
    clean = false;
    pump();
    if (!waiting && !closed) drained();
    return true;
  });

  return {
    write: (chunk) => {
      if (closed || ending) return false;
      const bytes = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
      if (bytes.byteLength > 0) {
        queue.push(bytes);
        queuedBytes += bytes.byteLength;
        pump();
      }
      return !waiting;
    },
    get bufferedBytes() {
      return queuedBytes + (waiting ? handedBytes : 0);
    },
    onDrain: (callback) => {
      drained = callback;
    },
    end: () => {
      if (closed || ending) return;
      ending = true;
      pump();
    },
    abort: () => {
      if (closed) return;
      close();
      response.close();
    },
    get closed() {
      return closed;
    },
    lost: () => {
      if (!closed) close();
    },
  };
}
