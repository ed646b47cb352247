/** The backend's client against real sockets: what leaves, and that no answer can hurt. */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { openBackend, parseRetryAfter } from '../../src/upload/client.ts';
import type { Answer, Backend, ClientSettings } from '../../src/upload/client.ts';
import { makeBatch, makeTenant } from '../unit/upload/fakes.ts';

const SETTINGS = {
  uploadConcurrency: 2,
  connectTimeoutMs: 30_000,
  headersTimeoutMs: 60_000,
  bodyTimeoutMs: 60_000,
  attemptTimeoutMs: 60_000,
  connectionLifeMs: 60_000,
};
const BATCH = makeBatch(makeTenant(7), ['a', 'b']);
const NEVER = new AbortController().signal;

type Handler = (request: IncomingMessage, response: ServerResponse, body: Buffer) => void;

async function withServer(
  handler: Handler,
  use: (open: (path?: string, settings?: Partial<ClientSettings>) => Backend, server: Server) => Promise<void>,
): Promise<void> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => handler(request, response, Buffer.concat(chunks)));
    request.on('error', () => undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const backends: Backend[] = [];
  try {
    await use((path = '', settings = {}) => {
      const backend = openBackend({ ...SETTINGS, endpoint: `${base}${path}`, ...settings });
      backends.push(backend);
      return backend;
    }, server);
  } finally {
    for (const backend of backends) await backend.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

test('an upload carries key, type, lengths and encoding, and goes below the path of the endpoint', async () => {
  const seen: { url: string | undefined; headers: IncomingMessage['headers']; body: Buffer }[] = [];
  await withServer(
    (request, response, body) => {
      seen.push({ url: request.url, headers: request.headers, body });
      response.writeHead(202, { 'Content-Type': 'application/json' }).end('{}');
    },
    async (open) => {
      for (const path of ['', '/api/v1', '/api/v1/']) {
        const answer = await open(path).upload(BATCH, NEVER);
        assert.deepEqual(answer, { kind: 'answered', status: 202, retryAfterMs: null, text: '{}' });
      }
    },
  );
  assert.deepEqual(
    seen.map(({ url }) => url),
    ['/runs/multipart', '/api/v1/runs/multipart', '/api/v1/runs/multipart'],
  );
  const [first] = seen;
  assert.ok(first);
  assert.deepEqual(first.body, BATCH.body);
  const { headers } = first;
  assert.equal(headers['x-api-key'], 'key-7');
  assert.equal(headers['content-type'], 'multipart/form-data; boundary=B');
  assert.equal(headers['content-encoding'], 'zstd');
  assert.equal(headers['content-length'], String(BATCH.body.length));
  assert.equal(headers['x-pre-compressed-size'], String(BATCH.plainBytes));
  assert.equal(headers['x-post-compressed-size'], String(BATCH.body.length));
  assert.equal(headers['transfer-encoding'], undefined);
});

test('a plain body has no Content-Encoding', async () => {
  await withServer(
    (request, response) => response.writeHead(request.headers['content-encoding'] === undefined ? 200 : 400).end(),
    async (open) => {
      const answer = await open().upload({ ...BATCH, coding: 'identity' }, NEVER);
      assert.equal(answer.kind === 'answered' && answer.status, 200);
    },
  );
});

test('a redirect is an answer: the key does not follow it', async () => {
  let elsewhere = 0;
  await withServer(
    (request, response) => {
      if (request.url === '/elsewhere') elsewhere++;
      response.writeHead(307, { Location: '/elsewhere' }).end();
    },
    async (open) => {
      const answer = await open().upload(BATCH, NEVER);
      assert.equal(answer.kind === 'answered' && answer.status, 307);
    },
  );
  assert.equal(elsewhere, 0);
});

test('an endless answer is read up to its bound and then cut off', async () => {
  let cut: Promise<unknown> = Promise.resolve();
  await withServer(
    (_, response) => {
      response.writeHead(400);
      cut = new Promise((resolve) => response.once('close', resolve));
      const more = (): void => {
        while (response.write('x'.repeat(16_384)));
        response.once('drain', more);
      };
      more();
    },
    async (open) => {
      const answer = await open().upload(BATCH, NEVER);
      assert.ok(answer.kind === 'answered' && answer.status === 400);
      assert.ok(answer.text.length <= 65_536);
      await cut;
    },
  );
});

test('an answer that breaks off after its head counts by its status', async () => {
  await withServer(
    (_, response) => {
      response.writeHead(202, { 'Content-Length': '100' });
      response.write('{');
      setImmediate(() => response.destroy());
    },
    async (open) => {
      const answer = await open().upload(BATCH, NEVER);
      assert.equal(answer.kind === 'answered' && answer.status, 202);
    },
  );
});

test('a connection that breaks before any answer may have delivered; one that never stood has not', async () => {
  await withServer(
    (request) => request.socket.destroy(),
    async (open, server) => {
      const backend = open();
      const broken = await backend.upload(BATCH, NEVER);
      assert.equal(broken.kind === 'failed' && broken.sent, true);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
      const refused = await backend.upload(BATCH, NEVER);
      assert.equal(refused.kind === 'failed' && refused.sent, false);
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    },
  );
});

test('silence ends with the time limits, and an abort at once', async () => {
  await withServer(
    () => undefined,
    async (open) => {
      const failed = (answer: Answer): string => (answer.kind === 'failed' ? answer.reason : answer.kind);
      // The client looks at its clock about twice a second.
      assert.equal(failed(await open('', { headersTimeoutMs: 100 }).upload(BATCH, NEVER)), 'UND_ERR_HEADERS_TIMEOUT');
      assert.equal(failed(await open('', { attemptTimeoutMs: 50 }).upload(BATCH, NEVER)), 'TimeoutError');
      const abort = new AbortController();
      const pending = open().upload(BATCH, abort.signal);
      abort.abort();
      assert.equal((await pending).kind, 'failed');
    },
  );
});

test('a key that is no header value is reported, not thrown', async () => {
  await withServer(
    (_, response) => response.writeHead(200).end(),
    async (open) => {
      const answer = await open().upload({ ...BATCH, tenant: { number: 1, apiKey: 'schlüssel-€\n' } }, NEVER);
      assert.equal(answer.kind, 'unsendable');
    },
  );
});

test('the limits of the backend are read where it knows them', async () => {
  const answers = new Map([
    [
      '/good/info',
      '{"batch_ingest_config":{"size_limit":50,"size_limit_bytes":1000},"instance_flags":{"zstd_compression_enabled":true}}',
    ],
    ['/page/info', '<html>'],
  ]);
  await withServer(
    (request, response) => {
      const text = answers.get(request.url ?? '');
      if (request.url === '/down/info') response.writeHead(503).end();
      else response.writeHead(text === undefined ? 404 : 200).end(text);
    },
    async (open) => {
      const nothing = { maxBatchRuns: null, maxBatchBytes: null, zstd: null, gzip: null };
      assert.deepEqual(await open('/good').info(NEVER), {
        maxBatchRuns: 50,
        maxBatchBytes: 1000,
        zstd: true,
        gzip: null,
      });
      assert.deepEqual(await open('/page').info(NEVER), nothing);
      assert.deepEqual(await open('/old').info(NEVER), nothing);
      assert.equal(await open('/down').info(NEVER), null);
    },
  );
});

test('Retry-After is read as seconds and as a date', () => {
  const nowMs = Date.parse('2026-08-22T10:15:30Z');
  assert.equal(parseRetryAfter('3', nowMs), 3000);
  assert.equal(parseRetryAfter(' 0 ', nowMs), 0);
  assert.equal(parseRetryAfter('Sat, 22 Aug 2026 10:16:00 GMT', nowMs), 30_000);
  assert.equal(parseRetryAfter('Sat, 22 Aug 2020 10:16:00 GMT', nowMs), 0);
  assert.equal(parseRetryAfter('soon', nowMs), null);
  assert.equal(parseRetryAfter('99999999999', nowMs), 86_400_000);
});
