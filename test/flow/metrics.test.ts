/** `/metrics` of a real service: what it says, to whom, and that its spans add up, also while the backend is away. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { MiB } from '../../src/core/units.ts';
import { scrape, spanLaw, type Scrape } from '../metrics.ts';
import { startCountingBackend, type CountingBackend } from './countingbackend.ts';
import { jsonRequest, makeTrace, postJson, uuidOf, type SpanFacts } from './otlp.ts';
import { startService, tracesUrl } from './pipelinehost.ts';
import type { Service } from '../../src/service.ts';

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function start(
  environment: Record<string, string> = {},
): Promise<{ backend: CountingBackend; service: Service; metricsUrl: string }> {
  const backend = await startCountingBackend();
  cleanups.push(() => backend.close());
  const service = await startService({ SERVICE_ENDPOINT: backend.url, DEPLOYMENT_API: 'off', ...environment });
  cleanups.push(() => service.stop(2000));
  return { backend, service, metricsUrl: `http://127.0.0.1:${service.metricsPort ?? service.port}/metrics` };
}

/** Ends by the test's own deadline. */
async function scrapeUntil(url: string, enough: (seen: Scrape) => boolean): Promise<Scrape> {
  for (;;) {
    const seen = await scrape(url);
    if (enough(seen)) return seen;
    await sleep(20);
  }
}

test('what dashboards for the collector query is there under the names that they use', async () => {
  const { service, metricsUrl } = await start({
    HELD_MAX_BYTES: '8MiB',
    MAX_BUFFER_BYTES: '1MiB',
    SPOOL_MAX_BYTES: '1GiB',
  });
  const { spans } = makeTrace(3, 3);
  assert.equal((await postJson(tracesUrl(service), jsonRequest(spans))).status, 200);
  // Sent, and let go of; what is read after that is at rest.
  await scrapeUntil(
    metricsUrl,
    ({ sum }) => sum('otelcol_exporter_sent_spans') === spans.length && sum('otelcol_exporter_queue_size') === 0,
  );
  const { sum, types } = await scrape(metricsUrl);
  assert.equal(sum('otelcol_receiver_accepted_spans', { receiver: 'otlp', transport: 'http' }), spans.length);
  assert.equal(sum('otelcol_receiver_refused_spans'), 0);
  assert.equal(sum('otelcol_exporter_sent_spans', { exporter: 'runs' }), spans.length);
  assert.equal(sum('otelcol_exporter_send_failed_spans'), 0);
  assert.equal(sum('otelcol_exporter_queue_size'), 0);
  assert.equal(sum('otelcol_exporter_queue_capacity'), 8 * MiB + 1024 * MiB);
  assert.equal(sum('otelcol_processor_dropped_spans'), 0);
  assert.ok(sum('otelcol_processor_batch_timeout_trigger_send') > 0);
  assert.ok(sum('otelcol_process_uptime') > 0);
  assert.ok(sum('otelcol_process_cpu_seconds') > 0);
  assert.ok(sum('otelcol_process_memory_rss') > 1_000_000);
  assert.equal(types.get('otelcol_processor_batch_batch_send_size'), 'histogram');
  assert.equal(sum('otelcol_processor_batch_batch_send_size_sum'), spans.length);
  assert.equal(
    sum('otelcol_processor_batch_batch_send_size_bucket', { le: '+Inf' }),
    sum('otelcol_processor_batch_batch_send_size_count'),
  );
  assert.equal(types.get('otelcol_receiver_accepted_spans'), 'counter');
  assert.equal(sum('target_info', { service_name: 'collector-proxy' }), 1);
});

test('every family has a name of its own, help and type, in both formats; samples are unique', async () => {
  const { metricsUrl } = await start();
  for (const accept of ['text/plain', 'application/openmetrics-text; version=1.0.0']) {
    const response = await fetch(metricsUrl, { headers: { Accept: accept } });
    assert.ok(response.headers.get('content-type')?.startsWith(accept), response.headers.get('content-type') ?? '');
    const lines = (await response.text()).split('\n');
    assert.equal(lines.pop(), '');
    if (accept !== 'text/plain') assert.equal(lines.pop(), '# EOF');
    const seen = new Set<string>();
    let current = '';
    for (const line of lines) {
      const [, kind, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? [];
      if (kind === undefined) {
        const sample = line.slice(0, line.lastIndexOf(' '));
        assert.ok(sample.startsWith(current), line);
        assert.ok(!seen.has(sample), `${sample} twice`);
        seen.add(sample);
        assert.match(line.slice(line.lastIndexOf(' ') + 1), /^-?\d+(\.\d+)?(e[+-]?\d+)?$/, line);
      } else if (kind === 'HELP') {
        assert.ok(!seen.has(`family ${name}`), `${name} twice`);
        seen.add(`family ${name}`);
        current = name;
      } else {
        assert.equal(name, current);
        assert.match(rest, /^(counter|gauge|histogram|unknown)$/);
      }
    }
    assert.ok(seen.size > 200);
  }
});

test('the same figures come as JSON where that is asked for', async () => {
  const { metricsUrl } = await start();
  const { types } = await scrape(`${metricsUrl}?format=prometheus`);
  const response = await fetch(`${metricsUrl}?format=json`);
  assert.equal(response.headers.get('content-type'), 'application/json');
  const { metrics } = (await response.json()) as { metrics: { name: string; type: string; samples: object[] }[] };
  const names = metrics.map(({ name, type }) => (type === 'counter' ? `${name}_total` : name));
  assert.deepEqual(names.sort(), [...types.keys()].sort());
  assert.ok(metrics.every(({ samples }) => Array.isArray(samples)));
  const odd = await fetch(`${metricsUrl}?format=xml`);
  assert.equal(odd.status, 422);
  assert.match(await odd.text(), /^format: /);
});

for (const [name, SPOOL_MAX_BYTES, place] of [
  ['with', '1GiB', 'spool'],
  ['without', '0', 'uploads'],
] as const) {
  test(`under load, through an outage and after it, no span is missing from the sum, ${name} a spool`, async () => {
    const { backend, service, metricsUrl } = await start({
      MAX_RETRIES: '0',
      SPOOL_MAX_BYTES,
      BATCH_SIZE: '20',
      DECODE_THREADS: '2',
      SHIP_SHARDS: '2',
    });
    let sentCount = 0;
    const load = async (requestCount: number): Promise<void> => {
      for (let n = 0; n < requestCount; n++) {
        const { spans } = makeTrace(3, 4);
        // Children first, and in two requests: some have to wait for their parents.
        const late = spans.slice(0, 1);
        const early = spans.slice(1).reverse();
        for (const part of [early, late]) {
          assert.equal((await postJson(tracesUrl(service), jsonRequest(part))).status, 200);
          sentCount += part.length;
        }
      }
    };
    const loads = (): Promise<unknown> => Promise.all([load(10), load(10), load(10)]);
    /** Sent and at rest: everything has left the threads' hands. */
    const settled = (runsAtRest: (seen: Scrape) => boolean): Promise<Scrape> =>
      scrapeUntil(metricsUrl, (seen) => {
        const { taken, found } = spanLaw(seen);
        return taken === sentCount && found === taken && runsAtRest(seen);
      });
    const held = ({ sum }: Scrape): number => sum('collector_proxy_spans_held');

    await loads();
    await settled((seen) => held(seen) === 0);

    backend.reply = () => ({ status: 503 });
    await loads();
    const away = await settled(
      ({ sum }) =>
        sum('otelcol_exporter_send_failed_spans') > 0 && sum('collector_proxy_spans_held', { place }) === sentCount / 2,
    );
    assert.equal(held(away), sentCount / 2);
    assert.ok(away.sum('collector_proxy_upload_answers_total', { class: '5xx' }) > 0);
    assert.equal(away.sum('collector_proxy_spans_held', { place }), sentCount / 2);
    assert.ok(away.sum('otelcol_exporter_queue_size') > 0);

    // A span that the backend refuses for good, and one that came twice, are found among the dropped.
    const [twice, refused] = [makeTrace(1, 1), makeTrace(1, 1)];
    const refusedId = uuidOf(refused.traceId);
    backend.reply = (runs) => ({ status: runs.some(({ id }) => id === refusedId) ? 422 : 202 });
    for (const { spans } of [twice, twice, refused]) await postJson(tracesUrl(service), jsonRequest(spans));
    sentCount += 3;
    await loads();
    const back = await settled((seen) => held(seen) === 0);
    assert.equal(back.sum('collector_proxy_spans_dropped_total', { reason: 'duplicate' }), 1);
    assert.equal(back.sum('collector_proxy_spans_dropped_total', { reason: 'rejected-by-backend' }), 1);
    assert.equal(back.sum('otelcol_processor_dropped_spans'), 1);
    assert.equal(backend.runs.length, sentCount - 2);
  });
}

test('spans of bodies that were put off for full rings are refused ones, and the sum still holds', async () => {
  const { backend, service, metricsUrl } = await start({
    MAX_RETRIES: '0',
    SPOOL_MAX_BYTES: '0',
    HELD_MAX_BYTES: '1MiB',
    MAX_BUFFER_BYTES: '64KiB',
    RING_BYTES: '64KiB',
    PARK_MAX_BYTES: '1MiB',
  });
  backend.reply = () => ({ status: 503 });
  let acceptedCount = 0;
  let isFull = false;
  while (!isFull) {
    const root = makeTrace(1, 1).spans[0] ?? assert.fail();
    // Random text: it does not compress, so that what is held fills up.
    const attributes = { 'gen_ai.prompt': randomBytes(6000).toString('base64') };
    const many: SpanFacts[] = [
      { ...root, attributes },
      ...Array.from({ length: 11 }, () => ({
        ...root,
        spanId: randomBytes(8),
        parentSpanId: root.spanId,
        attributes,
      })),
    ];
    const { status } = await postJson(tracesUrl(service), jsonRequest(many));
    if (status === 200) acceptedCount += many.length;
    else {
      assert.equal(status, 503);
      // Rings are full also while a shipper is only late.
      isFull = (await scrape(metricsUrl)).sum('collector_proxy_reading') === 0;
    }
  }
  const full = await scrape(metricsUrl);
  assert.ok(full.sum('otelcol_receiver_refused_spans') > 0);
  assert.equal(full.sum('otelcol_receiver_accepted_spans'), acceptedCount);
  assert.ok(full.sum('collector_proxy_requests_busy_total', { code: 'rings-full' }) >= 1);
  assert.equal(full.sum('collector_proxy_reading'), 0);
  backend.reply = () => ({ status: 202 });
  const empty = await scrapeUntil(metricsUrl, (seen) => {
    const { taken, found } = spanLaw(seen);
    return taken === found && seen.sum('collector_proxy_spans_held') === 0;
  });
  const forcedOut = empty.sum('collector_proxy_records_unacknowledged_total');
  assert.equal(empty.sum('collector_proxy_runs_delivered_total'), acceptedCount + forcedOut);
});

test('on the proxy’s port metrics are for this machine, or for whoever has a key; on their own port for all', async () => {
  const local = await start();
  assert.equal((await fetch(local.metricsUrl, { headers: { 'X-Forwarded-For': '192.0.2.1' } })).status, 403);
  const keyed = await start({ DEPLOYMENT_API_KEYS: 'some-key' });
  assert.equal((await fetch(keyed.metricsUrl)).status, 401);
  assert.equal((await fetch(keyed.metricsUrl, { headers: { Authorization: 'Bearer some-key' } })).status, 200);
  const own = await start({ DEPLOYMENT_API_KEYS: 'some-key', METRICS_PORT: '0' });
  assert.notEqual(own.service.metricsPort, own.service.port);
  assert.equal((await fetch(own.metricsUrl, { headers: { 'X-Forwarded-For': '192.0.2.1' } })).status, 200);
  assert.equal((await fetch(`http://127.0.0.1:${own.service.port}/metrics`)).status, 404);
  assert.equal((await fetch(own.metricsUrl.replace('/metrics', '/api/pipeline'))).status, 404);
  assert.equal((await fetch(own.metricsUrl, { method: 'POST' })).status, 405);
  assert.equal(await (await fetch(own.metricsUrl, { method: 'HEAD' })).text(), '');
});

test('graph runs are counted by the status that they end with', async () => {
  const examples = fileURLToPath(new URL('../../src/deploy/examples/langgraph.json', import.meta.url));
  const { service, metricsUrl } = await start({ DEPLOYMENT_API: 'on', DEPLOYMENT_CONFIG: examples, METRICS_PORT: '0' });
  const run = (body: object): Promise<Response> =>
    fetch(`http://127.0.0.1:${service.port}/runs/wait`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ assistant_id: 'echo', ...body }),
    });
  const input = { messages: [{ role: 'user', content: 'hello' }] };
  assert.equal((await run({ input })).status, 200);
  const seen = await scrapeUntil(
    metricsUrl,
    ({ sum }) => sum('collector_proxy_graph_runs_ended_total', { status: 'success' }) === 1,
  );
  assert.equal(seen.sum('collector_proxy_graph_runs_ended_total'), 1);
  assert.equal(seen.sum('collector_proxy_graph_attempts_total'), 1);
});
