/** A client that sends exactly the bytes it is given, also malformed ones, and reads the responses off the socket. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

export interface RawResponse {
  readonly statusCode: number;
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

/** The server closed the connection without a whole response. */
export class ConnectionCut extends Error {}

export interface RawConnection {
  readonly socket: Socket;
  write(bytes: string | Uint8Array): void;
  /** The next response; rejects with a {@link ConnectionCut} when there is none. Bodies by Content-Length or chunked. */
  response(options?: { readonly head?: boolean }): Promise<RawResponse>;
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>;
  destroy(): void;
}

export async function openRaw(port: number): Promise<RawConnection> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  let received = Buffer.alloc(0);
  let ended = false;
  let wake: () => void = () => undefined;
  socket.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    wake();
  });
  // A reset is what several of these tests provoke; `closed` tells of it.
  socket.on('error', () => undefined);
  const closed = new Promise<void>((resolve) => {
    socket.on('close', () => {
      ended = true;
      wake();
      resolve();
    });
  });
  const response = async ({ head = false } = {}): Promise<RawResponse> => {
    for (;;) {
      const parsed = parse(received, head);
      if (parsed !== null) {
        received = received.subarray(parsed.lengthBytes);
        return parsed.response;
      }
      if (ended) throw new ConnectionCut(`connection closed after ${JSON.stringify(received.toString('latin1'))}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  };
  return { socket, write: (bytes) => void socket.write(bytes), response, closed, destroy: () => socket.destroy() };
}

/** One connection, one request, one response. */
export async function sendRaw(port: number, bytes: string | Uint8Array): Promise<RawResponse> {
  const connection = await openRaw(port);
  try {
    connection.write(bytes);
    return await connection.response();
  } finally {
    connection.destroy();
  }
}

/** The same; null when the server cut the connection instead. One that it does not even take rejects. */
export async function sendRawOrCut(port: number, bytes: string | Uint8Array): Promise<RawResponse | null> {
  try {
    return await sendRaw(port, bytes);
  } catch (error) {
    if (error instanceof ConnectionCut) return null;
    throw error;
  }
}

function parse(bytes: Buffer, head: boolean): { response: RawResponse; lengthBytes: number } | null {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const [statusLine = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n');
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  const bodyStart = headEnd + 4;
  const statusCode = Number(statusLine.split(' ')[1]);
  const made = (body: Buffer, lengthBytes: number): { response: RawResponse; lengthBytes: number } => ({
    response: { statusCode, headers, body },
    lengthBytes,
  });
  if (head || statusCode === 204 || statusCode === 304 || statusCode < 200) return made(Buffer.alloc(0), bodyStart);
  if (headers.get('transfer-encoding') === 'chunked') {
    const pieces: Buffer[] = [];
    for (let at = bodyStart; ;) {
      const lineEnd = bytes.indexOf('\r\n', at);
      if (lineEnd < 0) return null;
      const pieceBytes = Number.parseInt(bytes.subarray(at, lineEnd).toString('latin1'), 16);
      const pieceStart = lineEnd + 2;
      if (bytes.length < pieceStart + pieceBytes + 2) return null;
      pieces.push(bytes.subarray(pieceStart, pieceStart + pieceBytes));
      at = pieceStart + pieceBytes + 2;
      if (pieceBytes === 0) return made(Buffer.concat(pieces), at);
    }
  }
  const length = headers.get('content-length');
  // An answer without a length ends with the connection (the server library's own error pages).
  if (length === undefined) return made(bytes.subarray(bodyStart), bytes.length);
  const end = bodyStart + Number(length);
  return bytes.length < end ? null : made(bytes.subarray(bodyStart, end), end);
}
