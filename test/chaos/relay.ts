/** The line between proxy and backend: a relay that can be cut in the ways in which lines are. */
import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** `refused`: nobody listens. `silent`: half-open, nothing gets through and nobody says so. `reset`: cut again and again. */
export const LINES = ['open', 'refused', 'silent', 'reset'] as const;
export type Line = (typeof LINES)[number];

export interface Relay {
  readonly port: number;
  set(line: Line): Promise<void>;
  close(): Promise<void>;
}

const RESET_AFTER_BYTES = 2000;

export async function startRelay(targetPort: number): Promise<Relay> {
  let line: Line = 'open';
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: false }, (near) => {
    const far = connect(targetPort, '127.0.0.1');
    let passedBytes = 0;
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        sockets.delete(socket);
        near.destroy();
        far.destroy();
      });
    }
    const pass = (to: Socket) => (chunk: Buffer) => {
      if (line === 'silent') return;
      passedBytes += chunk.length;
      if (line === 'reset' && passedBytes > RESET_AFTER_BYTES) near.resetAndDestroy();
      else to.write(chunk);
    };
    near.on('data', pass(far));
    far.on('data', pass(near));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    port,
    set: async (next) => {
      line = next;
      // What was passed while the line was silent is missing: nothing on these connections makes sense any more.
      for (const socket of sockets) socket.destroy();
      if (next === 'refused' && server.listening) {
        server.close();
      } else if (next !== 'refused' && !server.listening) {
        server.listen(port, '127.0.0.1');
        await once(server, 'listening');
      }
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      if (server.listening) server.close();
    },
  };
}
