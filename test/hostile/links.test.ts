/**
 * Connections to a backend that misbehave in every way that a socket allows, behind a real service: groups 9 and 10 of the
 * cases (cases.test.ts). What is acknowledged arrives once they are well again.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { readFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:tls';
import { afterEach, describe, test } from 'node:test';
import { MiB } from '../../src/core/units.ts';
import { startCountingBackend } from '../flow/countingbackend.ts';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { tracesUrl } from '../flow/pipelinehost.ts';
import {
  assertAllAccounted,
  cleanUp,
  cleanups,
  counted,
  keptCount,
  OK,
  reached,
  send,
  start,
  startRawBackend,
  startRelay,
} from './egressrig.ts';

afterEach(cleanUp);

describe('9: connections to the backend', () => {
  const chunked = 'HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n';
  for (const then of ['reset', 'end'] as const) {
    for (const [form, whole] of [
      ['with a length', OK],
      ['in chunks', chunked],
    ] as const) {
      test(`an answer ${form} cut off (${then}) after each of its bytes: the run arrives, and is never counted twice`, async () => {
        // Each upload gets one byte more of the answer, then nothing; the last gets it whole.
        const backend = await startRawBackend((n) =>
          n <= whole.length ? { bytes: whole.slice(0, n - 1), then } : { bytes: whole },
        );
        const service = await start(backend.url, { RETRY_BACKOFF_MS: '0', MAX_RETRIES: '100' });
        let sentCount = 0;
        while (backend.uploadCount <= whole.length) {
          await send(service);
          await counted(service, 'runs_delivered', ++sentCount);
        }
        assertAllAccounted(service);
      });
    }
  }

  test('a request reset after more and more of its bytes arrives once it is let through', async () => {
    const backend = await startCountingBackend();
    cleanups.push(() => backend.close());
    let allowedBytes = 0;
    const relay = await startRelay(backend.url, (socket, behind) => {
      const allowed = allowedBytes;
      allowedBytes += 23;
      let seenBytes = 0;
      socket.on('data', (bytes: Buffer) => {
        seenBytes += bytes.length;
        if (seenBytes >= allowed && backend.runs.length === 0 && allowed < 2000) socket.resetAndDestroy();
        else behind.write(bytes);
      });
      behind.pipe(socket);
    });
    const service = await start(relay, { RETRY_BACKOFF_MS: '0', MAX_RETRIES: '100' });
    await send(service);
    await counted(service, 'runs_delivered', 1);
    assert.ok(allowedBytes > 500, `${allowedBytes} bytes`);
    assertAllAccounted(service);
  });

  test('bytes that are no HTTP, an answer before the request, two answers at once: tried again', async () => {
    const odd = [
      'HTTP/1.1 202\r\n\x00\r\n\r\n',
      'SSH-2.0-OpenSSH_9.6\r\n',
      'HTTP/1.1 202 Accepted\r\nContent-Length: -1\r\n\r\n',
      'HTTP/1.1 999999 X\r\n\r\n',
      `HTTP/1.1 202 Accepted\r\nX-Long: ${'x'.repeat(100_000)}\r\n\r\n`,
      'HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}',
      'HTTP/1.1 100 Continue\r\n\r\n'.repeat(50),
    ];
    const backend = await startRawBackend((n) => ({ bytes: odd[n - 1] ?? OK, then: 'end' }));
    const service = await start(backend.url, { RETRY_BACKOFF_MS: '0', MAX_RETRIES: '20' });
    for (let n = 1; n <= 3; n++) {
      await send(service);
      await counted(service, 'runs_delivered', n);
    }
    assertAllAccounted(service);
  });

  test('an answer of a gigabyte, and one without end, is read up to its bound, whatever its coding claims', async () => {
    let wroteBytes = 0;
    let cut: (() => void) | null = null;
    const wasCut = new Promise<void>((resolve) => (cut = resolve));
    const backend = await startRawBackend((n, socket) => {
      if (n > 1) return { bytes: OK };
      const coding = 'Content-Encoding: gzip, gzip, br\r\nContent-Length: 1000000000\r\n';
      socket.write(`HTTP/1.1 503 Busy\r\n${coding}\r\n`);
      const flood = (): void => {
        while (!socket.destroyed && socket.write(Buffer.alloc(65_536))) wroteBytes += 65_536;
        socket.once('drain', flood);
      };
      socket.on('close', () => cut?.());
      flood();
      return null;
    });
    const service = await start(backend.url);
    await send(service);
    await counted(service, 'runs_delivered', 1);
    await wasCut;
    assert.ok(wroteBytes < 64 * MiB, `${wroteBytes} bytes were taken`);
  });

  test('a backend that never answers, and one that sends a byte now and then, end with the time limit', async () => {
    const timers: NodeJS.Timeout[] = [];
    cleanups.push(async () => timers.forEach((timer) => clearInterval(timer)));
    const backend = await startRawBackend((n, socket) => {
      if (n === 1) return null;
      if (n > 2) return { bytes: OK };
      let at = 0;
      timers.push(setInterval(() => !socket.destroyed && socket.write(OK[at++ % 9] ?? 'x'), 50));
      return null;
    });
    const service = await start(backend.url, { UPLOAD_TIMEOUT_MS: '300' });
    await send(service);
    await counted(service, 'runs_delivered', 1);
    assert.ok(service.counters.total('uploads_none') >= 2);
    assertAllAccounted(service);
  });

  test('an answer whose body trickles in counts by its status, once, and the next upload goes out', async () => {
    const timers: NodeJS.Timeout[] = [];
    cleanups.push(async () => timers.forEach((timer) => clearInterval(timer)));
    const backend = await startRawBackend((n, socket) => {
      if (n > 1) return { bytes: OK };
      socket.write('HTTP/1.1 202 Accepted\r\nContent-Length: 1000000\r\n\r\n');
      timers.push(setInterval(() => !socket.destroyed && socket.write('x'), 100));
      return null;
    });
    // Time enough for the status to come, whatever else the machine does.
    const service = await start(backend.url, { UPLOAD_TIMEOUT_MS: '5000', UPLOAD_CONCURRENCY: '1' });
    await send(service);
    await counted(service, 'runs_delivered', 1);
    await send(service);
    await counted(service, 'runs_delivered', 2);
    assert.equal(backend.uploadCount, 2);
    assertAllAccounted(service);
  });

  test('a socket that accepts and never reads holds up nobody for longer than the time limit', async () => {
    const backend = await startCountingBackend();
    cleanups.push(() => backend.close());
    let isDeaf = true;
    const relay = await startRelay(backend.url, (socket, behind) => {
      if (isDeaf) socket.pause();
      else socket.pipe(behind).pipe(socket);
    });
    const service = await start(relay, { UPLOAD_TIMEOUT_MS: '300', UPLOAD_CONCURRENCY: '1' });
    await send(service);
    await reached(service, 'upload_failures', 1);
    isDeaf = false;
    await counted(service, 'runs_delivered', 1);
    assertAllAccounted(service);
  });

  test('connections that were in use and fall silent, both ends open, are given up after the time limit', async () => {
    const backend = await startCountingBackend();
    cleanups.push(() => backend.close());
    let isSilent = false;
    let swallowedBytes = 0;
    const relay = await startRelay(backend.url, (socket, behind) => {
      for (const [from, to] of [
        [socket, behind],
        [behind, socket],
      ] as const) {
        from.on('data', (bytes: Buffer) => {
          if (isSilent) swallowedBytes += bytes.length;
          else to.write(bytes);
        });
      }
    });
    const service = await start(relay, { UPLOAD_TIMEOUT_MS: '300' });
    await send(service);
    await counted(service, 'runs_delivered', 1);
    // Where the machine is slow the first one may have taken longer than the limit, too.
    const silentCount = service.counters.total('uploads_none');
    isSilent = true;
    await send(service);
    await reached(service, 'uploads_none', silentCount + 1);
    while (swallowedBytes === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    isSilent = false;
    await counted(service, 'runs_delivered', 2);
    assertAllAccounted(service);
  });

  test('a backend that reads a byte now and then takes one place, and none from the others', async () => {
    const backend = await startCountingBackend();
    cleanups.push(() => backend.close());
    const timers: NodeJS.Timeout[] = [];
    cleanups.push(async () => timers.forEach((timer) => clearInterval(timer)));
    const SLOW_BYTES = 100_000;
    let isSlow = true;
    const relay = await startRelay(backend.url, (socket, behind) => {
      let readBytes = 0;
      behind.pipe(socket);
      const carry = (bytes: Buffer): void => {
        readBytes += bytes.length;
        behind.write(bytes);
        // Only an upload as large as the slow one gets that far.
        if (!isSlow || readBytes < SLOW_BYTES) return;
        socket.pause().off('data', carry);
        timers.push(setInterval(() => !socket.destroyed && behind.write(socket.read(1) ?? ''), 200));
      };
      socket.on('data', carry);
    });
    const service = await start(relay, {
      UPLOAD_TIMEOUT_MS: '5000',
      UPLOAD_CONCURRENCY: '2',
      MAX_BUFFER_BYTES: '64MiB',
      HELD_MAX_BYTES: '64MiB',
    });
    // More than sockets buffer, and it does not compress.
    const { spans } = makeTrace(1, 1);
    const large = spans.map((span) => ({
      ...span,
      attributes: { 'gen_ai.prompt': randomBytes(18 * MiB).toString('base64') },
    }));
    assert.equal((await postJson(tracesUrl(service), jsonRequest(large), { 'X-API-Key': 'large' })).status, 200);
    await reached(service, 'upload_attempts', 1);
    for (let n = 1; n <= 20; n++) {
      await send(service, 'small');
      await reached(service, 'runs_delivered', n);
    }
    await reached(service, 'uploads_none', 1);
    assert.ok(backend.runs.every(({ apiKey }) => apiKey === 'small'));
    isSlow = false;
    await counted(service, 'runs_delivered', 21);
    assertAllAccounted(service);
  });

  test('a certificate that nobody signed is a failure, not an upload', async () => {
    let handed = 0;
    const tls = createTlsServer(
      { cert: readFileSync(fixture('certificate.pem')), key: readFileSync(fixture('key.pem')) },
      (socket) => {
        handed++;
        socket.on('error', () => undefined);
      },
    );
    let brokenOffCount = 0;
    tls.on('tlsClientError', () => brokenOffCount++);
    tls.listen(0, '127.0.0.1');
    await once(tls, 'listening');
    cleanups.push(async () => {
      tls.close();
      await once(tls, 'close');
    });
    const service = await start(`https://127.0.0.1:${(tls.address() as AddressInfo).port}`);
    await send(service);
    await reached(service, 'uploads_none', 1);
    assert.equal(service.counters.total('runs_delivered'), 0);
    assert.equal(keptCount(service), 1);
    while (brokenOffCount === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.equal(handed, 0, 'no handshake came to its end');
  });

  test('a name that does not resolve keeps the run', async () => {
    const service = await start('http://backend.invalid');
    await send(service);
    await reached(service, 'uploads_none', 1);
    assert.equal(keptCount(service), 1);
  });
});

function fixture(name: string): URL {
  return new URL(`../fixtures/tls/${name}`, import.meta.url);
}
