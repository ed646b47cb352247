/** The live list over real HTTP, directly and through the app that other servers mount. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, request as httpRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { TraceEvent } from '../../src/backend/api.ts';
import { type BackendClient, type BackendEvent, createBackendClient } from '../../src/backend/client.ts';
import { createForward, type ForwardApp } from '../../src/backend/forward.ts';
import { type RunningBackend, startBackend } from '../../src/backend/owner.ts';
import type { HttpSink } from '../../src/core/http.ts';
import { makeRun } from '../backend-runs.ts';

let backend: RunningBackend;
let client: BackendClient;

before(async () => {
  backend = await startBackend();
  client = createBackendClient(backend.url);
});
after(() => backend.stop());

async function nextEvent(events: AsyncGenerator<BackendEvent, void>): Promise<BackendEvent> {
  const { value, done } = await events.next();
  assert.ok(done !== true, 'the stream is open');
  return value;
}

async function nextTraces(events: AsyncGenerator<BackendEvent, void>): Promise<TraceEvent> {
  const event = await nextEvent(events);
  assert.ok(event.kind === 'traces', event.kind);
  return event.data;
}

test('A trace appears with its first run and again with each change.', async () => {
  const stop = new AbortController();
  const events = client.events(stop.signal);
  assert.deepEqual(await nextEvent(events), { kind: 'ready' });
  const root = makeRun({ durationUs: null });
  await client.uploadRuns([root]);
  const [first] = (await nextTraces(events)).traces;
  assert.deepEqual([first?.trace_id, first?.status, first?.run_count], [root.id, 'pending', 1]);
  await client.uploadRuns([makeRun({ parent: root })]);
  const [second] = (await nextTraces(events)).traces;
  assert.deepEqual([second?.trace_id, second?.run_count], [root.id, 2]);
  stop.abort();
  assert.equal((await events.next()).done, true);
});

test('Only what passes the filter is told in full; of the rest the ids.', async () => {
  const stop = new AbortController();
  const events = client.events(stop.signal, { project: 'mine', text: 'wanted' });
  await nextEvent(events);
  const mine = makeRun({ fields: { session_name: 'mine', inputs: { q: 'wanted' } } });
  const other = makeRun({ fields: { session_name: 'mine', inputs: { q: 'other' } } });
  await client.uploadRuns([mine, other]);
  const event = await nextTraces(events);
  assert.deepEqual(
    event.traces.map(({ trace_id }) => trace_id),
    [mine.id],
  );
  assert.deepEqual(event.unmatched_trace_ids, [other.id]);
  stop.abort();
});

test('A flood becomes one event that says how much it leaves out.', async () => {
  const stop = new AbortController();
  const events = client.events(stop.signal);
  await nextEvent(events);
  await client.uploadRuns(Array.from({ length: 500 }, () => makeRun()));
  const event = await nextTraces(events);
  assert.equal(event.traces.length, 200);
  assert.equal(event.omitted_count, 300);
  stop.abort();
});

test('Waiting for runs ends with the one that was missing, or says how many came.', async () => {
  const query = { project: 'waited' };
  const run = (): ReturnType<typeof makeRun> => makeRun({ fields: { session_name: 'waited' } });
  const waiting = client.waitForRuns(3, { query });
  await client.uploadRuns([run(), run()]);
  await client.uploadRuns([run()]);
  assert.equal((await waiting).run_count, 3);
  await assert.rejects(client.waitForRuns(4, { query, timeoutMs: 50 }), /3 of 4 runs arrived within 50 ms/);
});

test('Too many subscribers are turned away for now.', async () => {
  // Of its own: it learns of those who left only after a while.
  const own = await startBackend();
  const open = await Promise.all(Array.from({ length: 100 }, () => fetch(`${own.url}/api/events`)));
  assert.ok(open.every(({ status }) => status === 200));
  const late = await fetch(`${own.url}/api/events`);
  assert.equal(late.status, 503);
  assert.equal(late.headers.get('retry-after'), '5');
  await late.text();
  await own.stop();
  await Promise.all(open.map((response) => response.text()));
});

/** A small server in the place of the one that mounts apps. */
async function mount(app: ForwardApp): Promise<{ server: Server; url: string }> {
  const server = createServer((incoming, outgoing) => {
    const gone = new AbortController();
    outgoing.on('close', () => gone.abort());
    const [path = '', query = ''] = (incoming.url ?? '').split('?');
    assert.ok(app.claims(path), path);
    const headers = new Map(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)]));
    const answer = app.handle({
      method: incoming.method ?? '',
      path,
      query,
      headers,
      header: (name) => headers.get(name) ?? '',
      remoteAddress: '127.0.0.1',
      requestId: 'r-1',
      body: new Uint8Array(),
      signal: gone.signal,
    });
    void Promise.resolve(answer).then((response) => {
      outgoing.writeHead(response.status, response.headers);
      if (!('stream' in response)) return outgoing.end(response.body);
      const sink: HttpSink = {
        write: (chunk) => outgoing.write(chunk),
        get bufferedBytes() {
          return outgoing.writableLength;
        },
        onDrain: (callback) => outgoing.on('drain', callback),
        end: () => outgoing.end(),
        abort: () => outgoing.destroy(),
        get closed() {
          return outgoing.closed;
        },
      };
      return response.stream(sink);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

test('Another server that mounts the queries answers like the backend, live events included.', async () => {
  const app = createForward(backend.url);
  const { server, url } = await mount(app);
  const through = createBackendClient(url);
  const run = makeRun({ fields: { session_name: 'through', inputs: { text: 'x'.repeat(300_000) } } });
  const waiting = through.waitForRuns(1, { query: { project: 'through' } });
  await client.uploadRuns([run]);
  assert.equal((await waiting).run_count, 1);
  assert.deepEqual(await through.run(run.id), await client.run(run.id));
  assert.equal(await through.run('none'), null);
  assert.equal((await fetch(`${url}/api/runs?x=1`)).status, 400);
  assert.equal((await fetch(`${url}/api/runs`, { method: 'POST' })).status, 405);
  assert.equal((await fetch(`${url}/api/faults`)).status, 404);
  assert.equal((await fetch(`${url}/api/traces`, { method: 'HEAD' })).status, 200);
  assert.equal(app.claims('/apis'), false);
  assert.equal(app.claims('/runs/multipart'), false);
  app.stop();
  server.closeAllConnections();
  server.close();
});

test('Without a backend the mounted queries answer 502.', async () => {
  const app = createForward('http://127.0.0.1:9');
  const { server, url } = await mount(app);
  assert.equal((await fetch(`${url}/api/runs`)).status, 502);
  app.stop();
  server.closeAllConnections();
  server.close();
});

test('Stopping ends live streams and lets a request in progress finish.', async () => {
  const own = await startBackend();
  const ownClient = createBackendClient(own.url);
  const events = ownClient.events(new AbortController().signal);
  await nextEvent(events);
  const run = makeRun();
  const slow = httpRequest(`${own.url}/runs/multipart`, {
    method: 'POST',
    headers: {
      'X-API-Key': 'k',
      'Content-Type': 'multipart/form-data; boundary=B',
      'Transfer-Encoding': 'chunked',
      Expect: '100-continue',
    },
  });
  slow.flushHeaders();
  const answered = new Promise<number | undefined>((resolve, reject) => {
    slow.on('response', (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    slow.on('error', reject);
  });
  const record = JSON.stringify(run);
  await once(slow, 'continue'); // the backend has seen the slow request begin
  slow.write(`--B\r\nContent-Disposition: form-data; name="post.${run.id}"\r\nContent-Type: application/json\r\n`);
  const stopped = own.stop(60_000);
  assert.equal((await events.next()).done, true);
  slow.end(`Content-Length: ${Buffer.byteLength(record)}\r\n\r\n${record}\r\n--B--\r\n`);
  assert.equal(await answered, 202);
  await stopped;
  assert.equal(await own.exited, null);
  await assert.rejects(fetch(`${own.url}/info`));
});
