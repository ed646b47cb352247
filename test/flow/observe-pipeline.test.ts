/** The pipeline's figures as JSON: a real service under real load, read over HTTP. */
import assert from 'node:assert/strict';
import { afterEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PipelineHistory, PipelineSample, PipelineSnapshot } from '../../src/core/pipeline.ts';
import { readEvents } from '../event-stream.ts';
import { jsonRequest, makeTrace, postJson } from './otlp.ts';
import { startHost, type Host } from './pipelinehost.ts';

const hosts: Host[] = [];

async function host(environment: Record<string, string> = {}): Promise<Host> {
  const started = await startHost({ DEPLOYMENT_API: 'off', ...environment });
  hosts.push(started);
  return started;
}

afterEach(async () => {
  for (const each of hosts.splice(0)) await each.stop();
});

function urlOf({ service }: Host, path: string): string {
  return `http://127.0.0.1:${service.port}${path}`;
}

async function read<T>(url: string): Promise<T> {
  const response = await fetch(url);
  assert.equal(response.status, 200, url);
  return (await response.json()) as T;
}

/** Ends by the test's own deadline. */
async function until<T>(look: () => Promise<T>, enough: (seen: T) => boolean): Promise<T> {
  for (;;) {
    const seen = await look();
    if (enough(seen)) return seen;
    await sleep(20);
  }
}

test('the snapshot says what was taken, what left and what is held, each with its meaning', async () => {
  const proxy = await host();
  const { spans } = makeTrace(4, 3);
  assert.equal((await postJson(proxy.url, jsonRequest(spans))).status, 200);
  assert.equal((await postJson(proxy.url, '{')).status, 400);
  const look = (): Promise<PipelineSnapshot> => read<PipelineSnapshot>(urlOf(proxy, '/api/pipeline'));
  // Delivered, and let go of; what is read after that is at rest.
  await until(look, ({ counters: seen, gauges: held }) => {
    return seen['runs_delivered'] === spans.length && held['heldRuns'] === 0;
  });
  const snapshot = await look();
  const { counters, gauges, histograms, limits, shards, meanings } = snapshot;
  assert.equal(snapshot.phase, 'ready');
  assert.deepEqual(snapshot.reasons, []);
  assert.equal(counters['spans_accepted'], spans.length);
  assert.equal(counters['requests'], 2);
  assert.equal(counters['refused_malformed'], 1);
  assert.ok((counters['uploads_2xx'] ?? 0) >= 1);
  assert.equal(gauges['heldRuns'], 0);
  assert.equal(gauges['decodeThreads'], limits['decodeThreads']);
  assert.ok((gauges['rssBytes'] ?? 0) > 1_000_000);
  const acks = histograms['ack_seconds'];
  assert.equal(
    acks?.counts.reduce((sum, count) => sum + count, 0),
    1,
  );
  assert.ok(acks.sum > 0);
  assert.equal(
    histograms['body_size_bytes']?.counts.reduce((sum, count) => sum + count),
    2,
  );
  assert.ok(shards.length > 0);
  assert.deepEqual(Object.keys(counters), Object.keys(meanings.counters));
  assert.deepEqual(Object.keys(gauges), Object.keys(meanings.gauges));
  for (const [name, { bounds }] of Object.entries(meanings.histograms)) {
    assert.equal(histograms[name]?.counts.length, bounds.length + 1, name);
  }
});

test('samples stream live, one a second, and stay in the history', async () => {
  const proxy = await host();
  const abort = new AbortController();
  const stream = await fetch(urlOf(proxy, '/api/pipeline/events'), { signal: abort.signal });
  assert.equal(stream.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  const { spans } = makeTrace(2, 2);
  await postJson(proxy.url, jsonRequest(spans));
  const events = await readEvents(stream, (seen) => {
    const last = seen.at(-1)?.data as PipelineSample | undefined;
    return seen.length >= 3 && last?.counters['runs_delivered'] === spans.length;
  });
  abort.abort();
  assert.ok(events.every(({ event }) => event === 'sample'));
  const times = events.map(({ data }) => (data as PipelineSample).atMs);
  assert.deepEqual(
    times,
    [...times].sort((a, b) => a - b),
  );
  const history = await read<PipelineHistory>(
    urlOf(proxy, '/api/pipeline/history?series=counters.runs_delivered,histograms.ack_seconds.*'),
  );
  assert.ok(history.atMs.length >= 2);
  assert.equal(history.series['counters.runs_delivered']?.at(-1), spans.length);
  assert.equal(history.series['counters.requests'], undefined);
  assert.equal(history.series['histograms.ack_seconds.sum']?.length, history.atMs.length);
  for (const query of ['seconds=0', 'seconds=601', 'seconds=x', 'minutes=1']) {
    assert.equal((await fetch(urlOf(proxy, `/api/pipeline/history?${query}`))).status, 400, query);
  }
  assert.equal((await fetch(urlOf(proxy, '/api/pipeline'), { method: 'POST' })).status, 405);
});

test('figures are for this machine only; with keys, for whoever has one', async () => {
  const open = await host();
  const forwarded = await fetch(urlOf(open, '/api/pipeline'), { headers: { 'X-Forwarded-For': '192.0.2.1' } });
  assert.equal(forwarded.status, 403);
  const foreign = await fetch(urlOf(open, '/api/pipeline'), { headers: { Origin: 'https://example.com' } });
  assert.equal(foreign.status, 403);
  const keyed = await host({ DEPLOYMENT_API_KEYS: 'first-key,second-key' });
  assert.equal((await fetch(urlOf(keyed, '/api/pipeline'))).status, 401);
  const response = await fetch(urlOf(keyed, '/api/pipeline'), { headers: { Authorization: 'Bearer second-key' } });
  assert.equal(response.status, 200);
});
