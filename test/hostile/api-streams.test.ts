/** Readers that are slow, gone, half there or a thousand: group 17 of the cases (cases.test.ts). */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { after, before, test } from 'node:test';
import { Client } from '@langchain/langgraph-sdk';
import { describeOnEachEngine } from '../deploy-engines.ts';
import { FIXTURE_GRAPHS, specs } from '../deploy-server.ts';
import { readEvents, type ServerEvent } from '../event-stream.ts';
import { startApi, until, type ApiServer } from './apiserver.ts';

describeOnEachEngine('hostile readers', (engine) => {
  let server: ApiServer;

  before(async () => {
    server = await startApi({
      engine,
      graphs: specs(FIXTURE_GRAPHS, 'steps', 'chatty'),
      // What the kernel holds for a reader on loopback comes on top.
      limits: { heartbeatMs: 200, readerBufferBytes: 64 * 1024 },
    });
  });
  after(() => server.close());

  /** A run that waits in its first step until it is let go. */
  async function held(
    more: object = {},
  ): Promise<{ threadId: string; runId: string; path: string; letGo(): Promise<void> }> {
    const threadId = await server.thread();
    const goOn = `${server.folder}/${randomUUID()}`;
    const input = { name: 'a', hold: { step: 'one', until: goOn } };
    const { json } = await server.ask('POST', `/threads/${threadId}/runs`, { assistant_id: 'steps', input, ...more });
    const { run_id: runId } = json as { run_id: string };
    return { threadId, runId, path: `/threads/${threadId}/runs/${runId}`, letGo: () => writeFile(goOn, '') };
  }

  async function statusOf(path: string): Promise<string> {
    return ((await server.ask('GET', path)).json as { status: string }).status;
  }

  const names = (events: readonly ServerEvent[]): string[] => events.map(({ event }) => event);

  test('two hundred streams at once: those who read get everything in order, the slow are cut and told, the vanished leave nothing', async () => {
    const cutBefore = server.counted('stream_readers_cut');
    const body = (name: string, more: object = {}): string =>
      JSON.stringify({ assistant_id: 'steps', input: { name, stepMs: 1 }, stream_mode: 'updates', ...more });
    const reading = Array.from({ length: 150 }, async (_, index) => {
      const response = await fetch(`${server.url}/runs/stream`, { method: 'POST', body: body(`n${index}`) });
      return { index, events: await readEvents(response) };
    });
    const slow = Array.from({ length: 25 }, async () => {
      const threadId = await server.thread();
      const chatty = JSON.stringify({
        assistant_id: 'chatty',
        input: { count: 200, bytes: 100_000, pauseMs: 1 },
        stream_mode: 'custom',
      });
      const socket = connect(server.port, '127.0.0.1');
      socket.write(
        `POST /threads/${threadId}/runs/stream HTTP/1.1\r\nhost: x\r\ncontent-length: ${chatty.length}\r\n\r\n${chatty}`,
      );
      await once(socket, 'readable');
      return { threadId, socket };
    });
    const vanishing = Array.from({ length: 25 }, async (_, index) => {
      const gone = new AbortController();
      const threadId = await server.thread();
      const response = await fetch(`${server.url}/threads/${threadId}/runs/stream`, {
        method: 'POST',
        body: body(`v${index}`),
        signal: gone.signal,
      });
      await response.body?.getReader().read();
      gone.abort();
      return { threadId };
    });
    for (const { index, events } of await Promise.all(reading)) {
      // A busy machine may need a second attempt: each begins with metadata.
      assert.deepEqual(
        events.filter(({ event }) => event !== 'metadata').map(({ data }) => data),
        ['one', 'two', 'three'].map((step) => ({ [step]: { done: [`n${index}:${step}`] } })),
      );
    }
    const others = [...(await Promise.all(slow)), ...(await Promise.all(vanishing))];
    for (const { threadId } of others) {
      const [run] = (await server.ask('GET', `/threads/${threadId}/runs`)).json as { run_id: string }[];
      await server.ask('GET', `/threads/${threadId}/runs/${run?.run_id}/join`);
      assert.equal(await statusOf(`/threads/${threadId}/runs/${run?.run_id}`), 'success');
    }
    await until(() => server.counted('stream_readers_cut') - cutBefore === 25, 'every slow reader is cut');
    for (const { socket } of await Promise.all(slow)) socket.destroy();
  });

  test('a thousand join one run, wait, and get the same answer; a thousand more read its stream', async () => {
    const run = await held({ stream_mode: 'updates' });
    const gone = new AbortController();
    const heads = await Promise.all(
      Array.from({ length: 1000 }, () => fetch(`${server.url}${run.path}/join`, { signal: gone.signal })),
    );
    const streams = await Promise.all(Array.from({ length: 1000 }, () => fetch(`${server.url}${run.path}/stream`)));
    // Some of those who wait lose patience.
    const left = heads.splice(0, 100);
    for (const response of left) await response.body?.cancel();
    await run.letGo();
    const answers = new Set(await Promise.all(heads.map(async (response) => JSON.stringify(await response.json()))));
    assert.equal(answers.size, 1);
    assert.match([...answers].join(), /a:one.*a:two.*a:three/);
    for (const events of await Promise.all(streams.map((response) => readEvents(response)))) {
      assert.deepEqual(names(events).slice(-3), ['updates', 'updates', 'updates']);
    }
    assert.equal(await statusOf(run.path), 'success');
  });

  test('Last-Event-ID: replay after any event, from anywhere, and what is no id of ours is the beginning', async () => {
    const run = await held({ stream_mode: ['updates', 'values'], stream_resumable: true });
    await run.letGo();
    await server.ask('GET', `${run.path}/join`);
    const replay = async (path: string, id: string): Promise<ServerEvent[]> => {
      const response = await fetch(`${server.url}${path}/stream`, { headers: { 'last-event-id': id } });
      assert.equal(response.status, 200);
      return readEvents(response);
    };
    const whole = await replay(run.path, '-1');
    assert.equal(names(whole)[0], 'metadata');
    for (const [index, { id }] of whole.entries()) {
      assert.deepEqual(await replay(run.path, id), whole.slice(index + 1));
      assert.deepEqual(await replay(`/runs/${run.runId}`, id), whole.slice(index + 1));
    }
    for (const odd of [
      ...[
        '0',
        'x',
        '-',
        '1-',
        '-1-2',
        '1-99999999999',
        '9'.repeat(400),
        `1-${'9'.repeat(15)}`,
        '1-2147483648',
        '1.5-1',
      ],
      ...["' or 1=1 --", '%00', '1-1e1', 'NaN-NaN', '[]', '{}'],
    ]) {
      assert.deepEqual(await replay(run.path, odd), whole, odd);
    }
    assert.deepEqual(await replay(run.path, '1-2147483647'), []);
    // On a thread, too: nothing is answered with a broken stream.
    for (const odd of ['1-99999999999', '1-2147483648', 'x', '-1', '999999999999999-start']) {
      const gone = new AbortController();
      const response = await fetch(`${server.url}/threads/${run.threadId}/stream`, {
        headers: { 'last-event-id': odd },
        signal: gone.signal,
      });
      const reader = response.body?.getReader();
      assert.equal((await reader?.read())?.done, false, odd);
      gone.abort();
    }
    assert.ok(!server.logged().includes('could not be replayed'), server.logged());
  });

  test('half-open: a connection that carries nothing any more is left by the client, which finds its stream again', async () => {
    // Three times the interval of the heartbeats that it has seen, and six seconds at least, is what the published client waits.
    const goOn = `${server.folder}/${randomUUID()}`;
    const proxy = await silencingProxy(server.port, 3, () => writeFile(goOn, ''));
    try {
      const client = new Client({ apiUrl: proxy.url });
      const threadId = await server.thread();
      const updates: string[] = [];
      const input = { name: 'a', hold: { step: 'three', until: goOn } };
      const payload = { input, streamMode: ['updates' as const], streamResumable: true };
      for await (const event of client.runs.stream(threadId, 'steps', payload)) {
        if (event.event === 'updates') updates.push(...Object.keys(event.data));
      }
      assert.deepEqual(updates, ['one', 'two', 'three']);
      assert.equal(proxy.silencedCount(), 1);
    } finally {
      await proxy.close();
    }
  });

  test('half-open: one that takes nothing any more holds up neither the run nor the others, and is cut', async () => {
    const cutBefore = server.counted('stream_readers_cut');
    const first = await held();
    const { json } = await server.ask('POST', `/threads/${first.threadId}/runs`, {
      assistant_id: 'chatty',
      input: { count: 200, bytes: 100_000, pauseMs: 1 },
      stream_mode: ['custom', 'updates'],
    });
    const path = `/threads/${first.threadId}/runs/${(json as { run_id: string }).run_id}`;
    const deaf = connect(server.port, '127.0.0.1');
    deaf.write(`GET ${path}/stream HTTP/1.1\r\nhost: x\r\n\r\n`);
    await once(deaf, 'readable');
    const others = await Promise.all(
      Array.from({ length: 5 }, () => fetch(`${server.url}${path}/stream?stream_mode=updates`)),
    );
    await first.letGo();
    for (const events of await Promise.all(others.map((response) => readEvents(response)))) {
      assert.equal(names(events).at(-1), 'updates');
    }
    assert.equal(await statusOf(path), 'success');
    await until(() => server.counted('stream_readers_cut') === cutBefore + 1, 'it is cut');
    deaf.destroy();
  });

  test('a run that somebody waits for before it starts tells those who follow its own thread, and no other', async () => {
    const first = await held();
    const evil = await server.thread();
    const { json } = await server.ask('POST', `/threads/${first.threadId}/runs`, {
      assistant_id: 'steps',
      input: { name: 'b' },
    });
    const { run_id: runId } = json as { run_id: string };
    const gone = new AbortController();
    const joined = await fetch(`${server.url}/runs/${runId}/join`);
    const follow = (threadId: string): Promise<Response> =>
      fetch(`${server.url}/threads/${threadId}/stream`, { signal: gone.signal });
    const [own, foreign] = await Promise.all([follow(first.threadId), follow(evil)]);
    assert.equal((await server.ask('GET', `/threads/${evil}/runs/${runId}/join`)).status, 404);
    await first.letGo();
    const isEnd = ({ data }: ServerEvent): boolean =>
      (data as { run_id?: string; status?: string }).status === 'run_done' &&
      (data as { run_id?: string }).run_id === runId;
    const events = await readEvents(own, (some) => some.some(isEnd));
    assert.ok(
      events.some(({ data }) => JSON.stringify(data).includes('b:three')),
      JSON.stringify(events),
    );
    await joined.text();
    // What is its own comes after all that could have come of the other's.
    const ownRun = { assistant_id: 'steps', input: { name: 'c' } };
    assert.equal((await server.ask('POST', `/threads/${evil}/runs/wait`, ownRun)).status, 200);
    const isOwn = ({ data }: ServerEvent): boolean => JSON.stringify(data).includes('c:three');
    const told = JSON.stringify(await readEvents(foreign, (some) => some.some(isOwn)));
    assert.ok(!told.includes(runId) && !told.includes('b:'), told);
    gone.abort();
  });
});

/** Forwards TCP, and lets the first connection that has carried so many heartbeats carry nothing more, without closing it. */
async function silencingProxy(
  port: number,
  beatCount: number,
  onSilenced: () => Promise<void>,
): Promise<{ url: string; silencedCount(): number; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  let silenced = 0;
  const proxy = createServer((socket) => {
    const upstream = connect(port, '127.0.0.1');
    sockets.add(socket).add(upstream);
    let beats = 0;
    let isSilent = false;
    upstream.on('data', (chunk: Buffer) => {
      if (isSilent) return;
      socket.write(chunk);
      beats += chunk.toString('latin1').split(': heartbeat').length - 1;
      if (beats < beatCount || silenced > 0) return;
      isSilent = true;
      silenced++;
      onSilenced().catch((error: unknown) => socket.destroy(error as Error));
    });
    socket.on('data', (chunk: Buffer) => upstream.write(chunk));
    socket.on('close', () => upstream.destroy()).on('error', () => undefined);
    upstream.on('close', () => socket.destroy()).on('error', () => undefined);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const { port: own } = proxy.address() as { port: number };
  return {
    url: `http://127.0.0.1:${own}`,
    silencedCount: () => silenced,
    close: async () => {
      for (const socket of sockets) socket.destroy();
      proxy.close();
      await once(proxy, 'close');
    },
  };
}
