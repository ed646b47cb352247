/**
 * A backend whose TLS fails in ways that a minute of carelessness brings about: group 9 of the cases (cases.test.ts). What
 * is acknowledged waits in the spool, log and metrics say why, nothing but handshakes leaves, and when the backend is mended
 * it gets everything without a restart.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { startProgram } from './program.ts';

/** First byte of a TLS record of the handshake (RFC 8446, 5.1). */
const HANDSHAKE = 0x16;

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

function pem(name: string): Buffer {
  return readFileSync(new URL(`../fixtures/tls/${name}.pem`, import.meta.url));
}

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.push(async () => server.close());
  return (server.address() as AddressInfo).port;
}

/** Port of one that stays, whoever answers behind it, and all that came in. */
async function startFront(port: number): Promise<{ port: number; behind: number; heard: Buffer[][] }> {
  const sockets = new Set<Socket>();
  const front = { port: 0, behind: port, heard: [] as Buffer[][] };
  const server = createServer((socket) => {
    const heard: Buffer[] = [];
    front.heard.push(heard);
    const behind = connect(front.behind, '127.0.0.1');
    for (const one of [socket, behind]) {
      sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => {
        socket.destroy();
        behind.destroy();
      });
    }
    socket.on('data', (bytes: Buffer) => heard.push(bytes));
    socket.pipe(behind).pipe(socket);
  });
  front.port = await listening(server);
  cleanups.push(async () => sockets.forEach((socket) => socket.destroy()));
  return front;
}

for (const [title, certificate, reason] of [
  ['a certificate that has expired', 'expired', /CERT_HAS_EXPIRED/],
  ['a certificate of another host', 'elsewhere', /ERR_TLS_CERT_ALTNAME_INVALID/],
  ['plain HTTP where TLS should be', null, /ERR_SSL_WRONG_VERSION_NUMBER|ERR_SSL_PACKET_LENGTH_TOO_LONG|EPROTO/],
] as const) {
  test(`${title}: told by its name, kept in the spool, never sent in the clear, delivered once it is mended`, async () => {
    const uploads: string[] = [];
    const take: RequestListener = (request, response) => {
      request.resume();
      request.on('end', () => {
        if (request.method === 'POST') uploads.push(String(request.headers['x-api-key']));
        response.writeHead(200).end('{}');
      });
    };
    const key = pem('key');
    const broken =
      certificate === null ? createHttpServer(take) : createHttpsServer({ cert: pem(certificate), key }, take);
    const good = createHttpsServer({ cert: pem('certificate'), key }, take);
    const front = await startFront(await listening(broken));
    const goodPort = await listening(good);
    // Each is trusted as such: what is wrong with it is nothing but what the title says.
    const folder = await mkdtemp(join(tmpdir(), 'tls-'));
    cleanups.push(() => rm(folder, { recursive: true, force: true }));
    const trusted = join(folder, 'trusted.pem');
    await writeFile(trusted, Buffer.concat([pem('certificate'), pem('expired'), pem('elsewhere')]));
    const program = await startProgram({
      SERVICE_ENDPOINT: `https://localhost:${front.port}`,
      NODE_EXTRA_CA_CERTS: trusted,
      DEPLOYMENT_API: 'off',
      MAX_RETRIES: '1',
    });
    cleanups.push(() => program.stop());
    /** The line that says so; the log is written a moment after what it tells of. */
    const logged = async (words: string): Promise<string> => {
      for (;;) {
        const line = program
          .output()
          .split('\n')
          .find((text) => text.includes(words));
        if (line !== undefined) return line;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    };

    assert.equal((await postJson(program.url, jsonRequest(makeTrace(1, 1).spans))).status, 200);
    await program.until(({ sum }) => sum('collector_proxy_spans_held', { place: 'spool' }) === 1);
    // Once more: within one page the counters are read before what is held.
    const seen = await program.metrics();
    assert.ok(seen.sum('collector_proxy_upload_answers_total', { class: 'none' }) >= 2);
    assert.equal(seen.sum('collector_proxy_runs_delivered_total'), 0);
    assert.equal(seen.sum('otelcol_exporter_sent_spans'), 0);
    assert.ok(seen.sum('otelcol_exporter_send_failed_spans') >= 2);
    assert.match(await logged('"msg":"uploads fail"'), reason);
    assert.deepEqual(uploads, []);

    front.behind = goodPort;
    await program.until(({ sum }) => sum('collector_proxy_runs_delivered_total') === 1);
    assert.deepEqual(uploads, ['configured-key']);
    await logged('"msg":"uploads get through again"');
    for (const heard of front.heard) {
      const bytes = Buffer.concat(heard);
      if (bytes.length > 0) assert.equal(bytes[0], HANDSHAKE, bytes.toString('latin1', 0, 60));
      assert.ok(!/x-api-key|configured-key|multipart/i.test(bytes.toString('latin1')));
    }
    assert.equal(await program.stop(), 0, program.output().slice(-2000));
    assert.ok(!program.output().includes('configured-key'));
  });
}
