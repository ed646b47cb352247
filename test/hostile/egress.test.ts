/**
 * Every status that a backend can answer with, behind a real service: group 9 of the cases (cases.test.ts). What is
 * acknowledged arrives once the backend comes to its senses, or is counted as refused.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, test } from 'node:test';
import type { CounterName } from '../../src/core/counters.ts';
import type { Service } from '../../src/service.ts';
import { startCountingBackend, type CountingBackend } from '../flow/countingbackend.ts';
import { scrape } from '../metrics.ts';
import {
  cleanUp,
  cleanups,
  keptCount,
  OK,
  reached,
  send,
  start,
  startRawBackend,
  status,
  type RawBackend,
} from './egressrig.ts';

afterEach(cleanUp);

/** Statuses of one service, each test with a key of its own: one tenant's trouble is not another's. */
describe('9: statuses of the backend', () => {
  const shared: (() => Promise<unknown>)[] = [];
  /** API key → what its uploads get, one after the other; 202 when there is nothing left. */
  const scripts = new Map<string, string[]>();
  let backend: RawBackend;
  let service: Service;
  let elsewhere: CountingBackend;
  let keyNumber = 0;

  before(async () => {
    backend = await startRawBackend((_n, _socket, apiKey) => ({ bytes: scripts.get(apiKey)?.shift() ?? OK }));
    elsewhere = await startCountingBackend();
    service = await start(backend.url, { UPLOAD_CONCURRENCY: '64' });
    shared.push(() => elsewhere.close(), ...cleanups.splice(0));
  });
  after(async () => {
    for (const cleanup of shared.reverse()) await cleanup();
  });

  /** Sends one run whose uploads get these answers; resolves when the counter has grown by one. */
  async function answeredBy(answers: string[], name: CounterName): Promise<{ apiKey: string; left: () => number }> {
    const apiKey = `key-${++keyNumber}`;
    scripts.set(apiKey, answers);
    const before = service.counters.total(name);
    await send(service, apiKey);
    await reached(service, name, before + 1);
    return { apiKey, left: () => answers.length };
  }
  const total = (name: CounterName): number => service.counters.total(name);
  /** Keys whose uploads wait; those of earlier tests are tried again now and then, and go on to be refused. */
  const downCount = async (): Promise<number> =>
    (await scrape(`http://127.0.0.1:${service.port}/metrics`)).sum('collector_proxy_down_tenants');
  /** Sends one run whose uploads get nothing but this answer; resolves when its key waits for better times. */
  async function refusedWith(answer: string): Promise<void> {
    const before = await downCount();
    const { left } = await answeredBy(
      Array.from({ length: 1000 }, () => answer),
      'upload_failures',
    );
    while ((await downCount()) === before) await new Promise((resolve) => setTimeout(resolve, 10));
    assert.ok(left() < 1000);
  }

  for (const code of [408, 425, 429, 499, 500, 502, 503, 504, 599]) {
    test(`${code} is tried again until it is taken`, async () => {
      const headers = code === 429 ? 'Retry-After: 0\r\n' : '';
      const failures = total('upload_failures');
      const { left } = await answeredBy([status(code, headers), status(code, headers)], 'runs_delivered');
      assert.equal(left(), 0);
      assert.ok(total('upload_failures') >= failures + 2);
    });
  }

  for (const code of [400, 406, 411, 414, 418, 422, 431, 451]) {
    test(`${code} gives the run up, with its reason counted, and the next one goes through`, async () => {
      const { apiKey, left } = await answeredBy([status(code)], 'dropped_rejected-by-backend');
      assert.equal(left(), 0);
      const delivered = total('runs_delivered');
      await send(service, apiKey);
      await reached(service, 'runs_delivered', delivered + 1);
    });
  }

  for (const code of [200, 201, 204, 409]) {
    test(`${code} is delivered`, async () => {
      const bytes = code === 204 ? 'HTTP/1.1 204 No Content\r\n\r\n' : status(code);
      const { left } = await answeredBy([bytes], 'runs_delivered');
      assert.equal(left(), 0);
    });
  }

  test('413 of a single run cuts it short once, then gives it up', async () => {
    const { left } = await answeredBy([status(413), status(413)], 'dropped_oversize');
    assert.equal(left(), 0);
  });

  for (const code of [300, 301, 302, 303, 305, 307, 308]) {
    test(`${code} to another host: the key does not follow, the run is kept until the address is mended`, async () => {
      const kept = keptCount(service);
      const delivered = total('runs_delivered');
      const location = `Location: ${elsewhere.url}/runs/multipart\r\n`;
      const redirects = total('uploads_3xx');
      await refusedWith(status(code, location));
      assert.ok(total('uploads_3xx') > redirects);
      assert.equal(elsewhere.uploads.length, 0);
      assert.equal(total('runs_delivered'), delivered);
      assert.equal(keptCount(service), kept + 1);
    });
  }

  for (const code of [401, 402, 403, 404, 405, 407, 410]) {
    test(`${code} keeps the run: not the run's fault`, async () => {
      const kept = keptCount(service);
      const dropped = service.account().droppedCount;
      await refusedWith(status(code));
      assert.equal(keptCount(service), kept + 1);
      assert.equal(service.account().droppedCount, dropped);
    });
  }
});
