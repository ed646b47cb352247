/** A receiver of webhooks: a real server that answers as scripted and remembers what it got. */
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ReceivedHook {
  path: string;
  headers: IncomingHttpHeaders;
  body: string;
  json: Record<string, unknown>;
}

export interface WebhookReceiver {
  readonly url: string;
  readonly port: number;
  readonly received: readonly ReceivedHook[];
  /** What the next calls get: a status, or what to do with the response. 200 when nothing is scripted. */
  script(...answers: (number | ((response: ServerResponse) => void))[]): void;
  /** Resolves when so many calls have come in all. */
  count(wanted: number): Promise<void>;
  close(): Promise<void>;
}

export async function startReceiver(): Promise<WebhookReceiver> {
  const received: ReceivedHook[] = [];
  const answers: (number | ((response: ServerResponse) => void))[] = [];
  let waiters: { wanted: number; resolve: () => void }[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      received.push({
        path: request.url ?? '',
        headers: request.headers,
        body,
        json: JSON.parse(body) as Record<string, unknown>,
      });
      const answer = answers.shift() ?? 200;
      if (typeof answer === 'number') response.writeHead(answer).end();
      else answer(response);
      for (const waiter of waiters) if (received.length >= waiter.wanted) waiter.resolve();
      waiters = waiters.filter((waiter) => received.length < waiter.wanted);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    received,
    script: (...more) => void answers.push(...more),
    count: (wanted) =>
      received.length >= wanted
        ? Promise.resolve()
        : new Promise((resolve) => {
            waiters.push({ wanted, resolve });
          }),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
