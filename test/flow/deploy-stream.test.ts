import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@langchain/langgraph-sdk';
import { describeOnEachEngine } from '../deploy-engines.ts';
import { EXAMPLES, FIXTURE_GRAPHS, specs, startServer, type TestServer } from '../deploy-server.ts';
import { readEvents, type ServerEvent } from '../event-stream.ts';

describeOnEachEngine('Streams', (engine) => {
  let server: TestServer;
  let client: Client;

  before(async () => {
    server = await startServer({
      engine,
      graphs: [
        ...specs(FIXTURE_GRAPHS, 'steps', 'custom', 'misbehave', 'chatty'),
        ...specs(EXAMPLES, 'agent', 'nested', 'approval'),
      ],
      limits: { heartbeatMs: 150, readerBufferBytes: 256 * 1024 },
    });
    client = new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } });
  });
  after(() => server.close());

  async function stream(path: string, body: object): Promise<{ events: ServerEvent[]; response: Response }> {
    const response = await fetch(server.url + path, { method: 'POST', body: JSON.stringify(body) });
    assert.equal(response.status, 200, response.status === 200 ? '' : await response.clone().text());
    return { events: await readEvents(response), response };
  }

  /** A run that keeps others of its thread waiting until it is let go. */
  async function holding(threadId: string): Promise<{ letGo(): Promise<void> }> {
    const until = join(server.folder, randomUUID());
    const input = { name: 'first', hold: { step: 'one', until } };
    await client.runs.create(threadId, 'steps', { input, ifNotExists: 'create' });
    return { letGo: () => writeFile(until, '') };
  }

  /** The whole answer; `act` is called as soon as it holds `mark`. */
  async function textAround(response: Response, mark: string, act: () => Promise<void>): Promise<string> {
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of response.body ?? assert.fail('no body')) {
      const held = text.includes(mark);
      text += decoder.decode(chunk as Uint8Array, { stream: true });
      if (!held && text.includes(mark)) await act();
    }
    return text;
  }

  function names(events: ServerEvent[]): string[] {
    return events.map((event) => event.event);
  }

  const STEPS = { assistant_id: 'steps', input: { name: 'a', stepMs: 0 } };

  test('the modes values and updates come in order of production, after metadata', async () => {
    const { events, response } = await stream('/runs/stream', { ...STEPS, stream_mode: ['values', 'updates'] });
    assert.deepEqual(names(events), [
      'metadata',
      'values',
      'updates',
      'values',
      'updates',
      'values',
      'updates',
      'values',
    ]);
    const runId = /^\/runs\/([0-9a-f-]{36})$/.exec(response.headers.get('content-location') ?? '')?.[1];
    assert.deepEqual(events[0]?.data, { run_id: runId, attempt: 1 });
    assert.deepEqual(events[2]?.data, { one: { done: ['a:one'] } });
    assert.equal(response.headers.get('content-type'), 'text/event-stream');
    assert.equal(response.headers.get('location'), `/runs/${runId}/stream`);
  });

  test('without a mode the values are streamed, and ids rise', async () => {
    const { events } = await stream('/runs/stream', STEPS);
    assert.deepEqual(names(events), ['metadata', 'values', 'values', 'values', 'values']);
    const seqs = events.map((event) => Number(/^\d+-(\d+)$/.exec(event.id)?.[1]));
    assert.deepEqual(seqs, [0, 1, 2, 3, 4]);
  });

  test('messages-tuple streams the tokens of the model with their metadata, as flat messages', async () => {
    const { events } = await stream('/runs/stream', {
      assistant_id: 'custom',
      input: { messages: [{ role: 'user', content: 'hi' }] },
      stream_mode: 'messages-tuple',
    });
    const tokens = events.slice(1).map((event) => event.data as [Record<string, unknown>, Record<string, unknown>]);
    assert.ok(events.slice(1).every((event) => event.event === 'messages'));
    assert.deepEqual(tokens.map(([message]) => message['content']).join(''), 'one two three');
    assert.equal(new Set(tokens.map(([message]) => message['id'])).size, 1);
    for (const [message, metadata] of tokens) {
      assert.equal(message['type'], 'ai');
      assert.ok(!('lc' in message));
      assert.equal(metadata['langgraph_node'], 'speak');
      assert.ok(!Object.keys(metadata).some((key) => key.startsWith('__')));
    }
  });

  test('the legacy mode messages announces, grows and completes each message', async () => {
    const { events } = await stream('/runs/stream', {
      assistant_id: 'custom',
      input: { messages: [{ role: 'user', content: 'hi', id: 'm1' }] },
      stream_mode: ['messages'],
    });
    assert.deepEqual(names(events), [
      'metadata',
      'messages/complete',
      'messages/metadata',
      'messages/partial',
      'messages/partial',
      'messages/partial',
      'messages/complete',
    ]);
    const partial = events
      .filter((event) => event.event === 'messages/partial')
      .map((event) => (event.data as { content: string }[])[0]?.content);
    assert.deepEqual(partial, ['one ', 'one two ', 'one two three']);
  });

  test('custom, tasks and checkpoints stream what they say', async () => {
    const input = { messages: [] };
    const custom = await stream('/runs/stream', { assistant_id: 'custom', input, stream_mode: 'custom' });
    assert.deepEqual(
      custom.events.slice(1).map((event) => event.data),
      [{ progress: 1 }, { progress: 2 }],
    );
    const tasks = await stream('/runs/stream', { ...STEPS, stream_mode: 'tasks' });
    assert.deepEqual(
      tasks.events.slice(1).map((event) => {
        const task = event.data as { name: string; result?: unknown };
        return [event.event, task.name, 'result' in task];
      }),
      ['one', 'two', 'three'].flatMap((name) => [
        ['tasks', name, false],
        ['tasks', name, true],
      ]),
    );
    const checkpoints = await stream('/runs/stream', { ...STEPS, stream_mode: 'checkpoints' });
    assert.deepEqual(
      checkpoints.events.slice(1).map((event) => {
        const data = event.data as { metadata: { step: number }; next: string[] };
        return [data.metadata.step, data.next];
      }),
      [
        [-1, ['__start__']],
        [0, ['one']],
        [1, ['two']],
        [2, ['three']],
        [3, []],
      ],
    );
    assert.doesNotMatch(JSON.stringify(checkpoints.events), /"__pregel\w*":/);
  });

  test('debug wraps checkpoints, tasks and results', async () => {
    const { events } = await stream('/runs/stream', { ...STEPS, stream_mode: 'debug' });
    assert.deepEqual(
      events.slice(1).map((event) => (event.data as { type: string }).type),
      [
        ...['checkpoint', 'checkpoint'],
        ...['task', 'task_result', 'checkpoint'],
        ...['task', 'task_result', 'checkpoint'],
        ...['task', 'task_result', 'checkpoint'],
      ],
    );
  });

  test('events carries the callbacks of every step, and values beside them', async () => {
    const { events } = await stream('/runs/stream', {
      assistant_id: 'agent',
      input: { messages: [{ role: 'user', content: 'the weather in Oslo' }] },
      stream_mode: ['events', 'values'],
    });
    const kinds = events.filter((event) => event.event === 'events').map((event) => event.data as { event: string });
    for (const kind of [
      'on_chain_start',
      'on_chat_model_start',
      'on_chat_model_stream',
      'on_tool_start',
      'on_tool_end',
    ])
      assert.ok(
        kinds.some((event) => event.event === kind),
        kind,
      );
    assert.ok(names(events).includes('values'));
    assert.ok(!JSON.stringify(events).includes('"lc":1'));
  });

  test('tools streams what tools are called with, and what they answer', async () => {
    const { events } = await stream('/runs/stream', {
      assistant_id: 'agent',
      input: { messages: [{ role: 'user', content: 'the weather in Oslo' }] },
      stream_mode: 'tools',
    });
    assert.deepEqual(
      events.slice(1).map(({ event, data }) => [event, (data as { event: string }).event]),
      [
        ['tools', 'on_tool_start'],
        ['tools', 'on_tool_end'],
      ],
    );
    const [, start, end] = events.map((event) => event.data as Record<string, unknown>);
    assert.equal(start?.['input'], '{"city":"Oslo"}');
    assert.match(JSON.stringify(end?.['output']), /degrees.*"type":"tool"/);
  });

  test('subgraphs are streamed under their namespace only when asked for', async () => {
    const body = { assistant_id: 'nested', input: { topic: 'ice' }, stream_mode: 'updates' };
    const plain = await stream('/runs/stream', body);
    assert.deepEqual(names(plain.events), ['metadata', 'updates', 'updates']);
    const deep = await stream('/runs/stream', { ...body, stream_subgraphs: true });
    assert.deepEqual(
      names(deep.events).map((name) => name.replace(/:[0-9a-f-]{36}/, ':ID')),
      ['metadata', 'updates|research:ID', 'updates|research:ID', 'updates', 'updates'],
    );
  });

  test('an interrupt is streamed as updates and values, and wait and join answer the state with it merged in', async () => {
    const threadId = randomUUID();
    const { events } = await stream(`/threads/${threadId}/runs/stream`, {
      assistant_id: 'approval',
      if_not_exists: 'create',
      input: { topic: 'ice' },
      stream_mode: ['values', 'updates'],
    });
    const last = events.slice(-2).map((event) => [event.event, Object.keys(event.data as object)]);
    assert.deepEqual(last, [
      ['updates', ['__interrupt__']],
      ['values', ['__interrupt__']],
    ]);
    const runs = await client.runs.list(threadId);
    const joined = (await client.runs.join(threadId, runs[0]?.run_id ?? '')) as unknown as Record<string, unknown>;
    assert.deepEqual(Object.keys(joined), ['topic', 'draft', '__interrupt__']);
    assert.equal((await client.threads.get(threadId)).status, 'interrupted');
  });

  test('interrupt_before ends the run with its node next', async () => {
    const threadId = randomUUID();
    const { events } = await stream(`/threads/${threadId}/runs/stream`, {
      ...STEPS,
      if_not_exists: 'create',
      interrupt_before: ['two'],
      stream_mode: ['values', 'updates'],
    });
    assert.deepEqual(names(events), ['metadata', 'values', 'updates', 'values', 'updates', 'values']);
    assert.deepEqual(events.at(-1)?.data, { __interrupt__: [] });
    assert.deepEqual((await client.threads.getState(threadId)).next, ['two']);
  });

  test('a failure is streamed as an error event after what came before, and the connection ends cleanly', async () => {
    const { events } = await stream('/runs/stream', { assistant_id: 'misbehave', input: { how: 'fail' } });
    assert.deepEqual(names(events), ['metadata', 'values', 'values', 'error']);
    assert.deepEqual(events.at(-1)?.data, { error: 'TypeError', message: 'this graph is broken' });
  });

  test('an idle stream is kept alive by comment lines, a waiting answer by newlines', async () => {
    const answerTo = async (path: string, mark: string): Promise<string> => {
      const until = join(server.folder, randomUUID());
      const body = { assistant_id: 'steps', input: { name: 'a', hold: { step: 'one', until } } };
      const response = await fetch(server.url + path, { method: 'POST', body: JSON.stringify(body) });
      return textAround(response, mark, () => writeFile(until, ''));
    };
    const streamed = await answerTo('/runs/stream', '\n\n: heartbeat\n');
    assert.match(streamed, /\n\n: heartbeat\n(: heartbeat\n)*event: /);
    // The first one opens the answer.
    const waited = await answerTo('/runs/wait', '\n\n');
    assert.match(waited, /^\n\n+\{/);
    assert.deepEqual((JSON.parse(waited) as { done: string[] }).done, ['a:one', 'a:two', 'a:three']);
  });

  test('every reader of a run gets every event, and one that joins late gets what is left', async () => {
    const threadId = randomUUID();
    const first = await holding(threadId);
    const run = await client.runs.create(threadId, 'steps', { input: { name: 'a' }, streamMode: ['updates'] });
    const path = `${server.url}/threads/${threadId}/runs/${run.run_id}/stream`;
    const readers = await Promise.all(Array.from({ length: 20 }, () => fetch(path)));
    await first.letGo();
    const all = await Promise.all(readers.map((response) => readEvents(response)));
    for (const events of all) assert.deepEqual(names(events), ['metadata', 'updates', 'updates', 'updates']);
    const late = await readEvents(await fetch(path));
    assert.deepEqual(late, []);
  });

  test('join-stream passes on only the modes that it is asked for', async () => {
    const threadId = randomUUID();
    const first = await holding(threadId);
    const run = await client.runs.create(threadId, 'steps', {
      input: { name: 'a' },
      streamMode: ['updates', 'values'],
    });
    const path = `${server.url}/threads/${threadId}/runs/${run.run_id}/stream`;
    const response = await fetch(`${path}?stream_mode=["updates"]`);
    await first.letGo();
    assert.deepEqual(names(await readEvents(response)), ['metadata', 'updates', 'updates', 'updates']);
  });

  test('a query that names a parameter without a value, as the Python client does, has none', async () => {
    const threadId = randomUUID();
    const run = await client.runs.create(threadId, 'steps', {
      input: { name: 'a' },
      ifNotExists: 'create',
      streamMode: ['updates'],
      streamResumable: true,
    });
    await client.runs.join(threadId, run.run_id);
    const runs = `${server.url}/threads/${threadId}/runs`;
    const response = await fetch(`${runs}/${run.run_id}/stream?cancel_on_disconnect=&stream_mode=`, {
      headers: { 'last-event-id': '-1' },
    });
    assert.deepEqual(names(await readEvents(response)), ['metadata', 'updates', 'updates', 'updates']);
    assert.equal((await fetch(`${runs}?status=&select=&limit=`)).status, 200);
    assert.equal((await fetch(`${runs}/${run.run_id}/cancel?action=&wait=`, { method: 'POST' })).status, 202);
    assert.equal((await fetch(`${server.url}/threads/${threadId}/history?before=&limit=`)).status, 200);
    assert.equal((await fetch(`${server.url}/assistants/steps/graph?xray=`)).status, 200);
  });

  test('a resumable stream is replayed from the beginning, from an id, during the run and after it', async () => {
    const threadId = randomUUID();
    const run = await client.runs.create(threadId, 'steps', {
      input: { name: 'a', stepMs: 80 },
      ifNotExists: 'create',
      streamResumable: true,
      streamMode: ['updates'],
    });
    const path = `${server.url}/threads/${threadId}/runs/${run.run_id}/stream`;
    const during = await readEvents(await fetch(path, { headers: { 'last-event-id': '-1' } }));
    assert.deepEqual(names(during), ['metadata', 'updates', 'updates', 'updates']);
    const after = await readEvents(await fetch(path, { headers: { 'last-event-id': '-1' } }));
    assert.deepEqual(after, during);
    const rest = await readEvents(await fetch(path, { headers: { 'last-event-id': during[1]?.id ?? '' } }));
    assert.deepEqual(rest, during.slice(2));
    assert.deepEqual(await readEvents(await fetch(path)), []);
  });

  test('a resumable stream that does not fit into memory is replayed whole', async () => {
    const threadId = randomUUID();
    const run = await client.runs.create(threadId, 'chatty', {
      input: { count: 60, bytes: 50_000 },
      ifNotExists: 'create',
      streamResumable: true,
      streamMode: ['custom'],
    });
    await client.runs.join(threadId, run.run_id);
    const path = `${server.url}/threads/${threadId}/runs/${run.run_id}/stream`;
    const events = await readEvents(await fetch(path, { headers: { 'last-event-id': '-1' } }));
    assert.deepEqual(
      events.slice(1).map((event) => (event.data as { number: number }).number),
      Array.from({ length: 60 }, (_, index) => index),
    );
  });

  test('the published client finds a stream again after its connection broke', async () => {
    const proxy = await breakingProxy(server.url);
    try {
      const own = new Client({ apiUrl: proxy.url });
      const threadId = randomUUID();
      const until = join(server.folder, randomUUID());
      const updates: unknown[] = [];
      for await (const event of own.runs.stream(threadId, 'steps', {
        input: { name: 'a', hold: { step: 'two', until } },
        ifNotExists: 'create',
        streamMode: ['updates'],
        streamResumable: true,
      })) {
        if (event.event !== 'updates') continue;
        if (updates.push(event.data) > 1) continue;
        assert.ok(proxy.breakAll() > 0);
        await writeFile(until, '');
      }
      assert.deepEqual(
        updates.map((update) => Object.keys(update as object)[0]),
        ['one', 'two', 'three'],
      );
    } finally {
      await proxy.close();
    }
  });

  test('a reader that does not read is cut; the run and the other readers go on', async () => {
    const threadId = randomUUID();
    await client.threads.create({ threadId });
    // Two pieces at a time, when the fast reader has those before: they are less than what a reader may be behind.
    const folder = await mkdtemp(join(server.folder, 'gates-'));
    const open = (number: number): void => writeFileSync(join(folder, String(number)), '');
    const body = JSON.stringify({
      assistant_id: 'chatty',
      input: { count: 120, bytes: 100_000, gate: { every: 2, folder } },
      stream_mode: 'custom',
    });
    const { port } = new URL(server.url);
    const slow = connect(Number(port), '127.0.0.1');
    slow.write(
      `POST /threads/${threadId}/runs/stream HTTP/1.1\r\nhost: x\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
    );
    await new Promise((resolve) => slow.once('readable', resolve));
    slow.pause();
    const [run] = await client.runs.list(threadId);
    const numbersOf = (events: ServerEvent[]): number[] =>
      events.filter(({ event }) => event === 'custom').map(({ data }) => (data as { number: number }).number);
    const response = await fetch(`${server.url}/threads/${threadId}/runs/${run?.run_id}/stream`);
    open(0);
    const fast = await readEvents(response, (events) => {
      const last = numbersOf(events).at(-1) ?? 0;
      if (last % 2 === 1) open(last + 1);
      return false;
    });
    assert.equal((await client.runs.get(threadId, run?.run_id ?? '')).status, 'success');
    assert.deepEqual(
      numbersOf(fast),
      Array.from({ length: 120 }, (_, number) => number),
    );
    let text = '';
    slow.on('data', (chunk: Buffer) => (text = (text + chunk.toString('latin1')).slice(-2000)));
    slow.resume();
    slow.setTimeout(60_000, () => slow.destroy());
    await new Promise((resolve) => slow.once('close', resolve));
    assert.match(text, /event: error\ndata: \{"error":"SlowReader"/);
  });

  test('fifty readers that vanish leave nothing behind, and on_disconnect decides the fate of the run', async () => {
    for (const [onDisconnect, expected, stepMs] of [
      ['cancel', 'interrupted', 60_000],
      ['continue', 'success', 100],
    ] as const) {
      const threads = await Promise.all(
        Array.from({ length: 25 }, async () => {
          const threadId = randomUUID();
          const gone = new AbortController();
          const response = await fetch(`${server.url}/threads/${threadId}/runs/stream`, {
            method: 'POST',
            body: JSON.stringify({
              assistant_id: 'steps',
              input: { name: 'v', stepMs },
              if_not_exists: 'create',
              on_disconnect: onDisconnect,
            }),
            signal: gone.signal,
          });
          await response.body?.getReader().read();
          gone.abort();
          return threadId;
        }),
      );
      for (const threadId of threads) {
        const [run] = await client.runs.list(threadId);
        await client.runs.join(threadId, run?.run_id ?? '');
        assert.equal((await client.runs.get(threadId, run?.run_id ?? '')).status, expected);
      }
    }
  });

  test("a thread's stream follows all its runs until the client goes", async () => {
    const threadId = randomUUID();
    await client.threads.create({ threadId });
    const gone = new AbortController();
    const response = await fetch(`${server.url}/threads/${threadId}/stream?stream_mode=run_modes`, {
      signal: gone.signal,
    });
    const lifecycle = await fetch(
      `${server.url}/threads/${threadId}/stream?stream_modes=["lifecycle","state_update"]`,
      {
        signal: gone.signal,
      },
    );
    for (const name of ['a', 'b']) await client.runs.wait(threadId, 'steps', { input: { name, stepMs: 0 } });
    const followed = await readEvents(response, (events) => events.filter((event) => isDone(event)).length === 2);
    assert.deepEqual(names(followed), [
      ...['metadata', 'values', 'values', 'values', 'values', 'metadata'],
      ...['metadata', 'values', 'values', 'values', 'values', 'metadata'],
    ]);
    const lived = await readEvents(lifecycle, (events) => events.filter((event) => isDone(event)).length === 2);
    assert.deepEqual(
      lived.map((event) => (event.data as { status?: string }).status ?? event.event),
      ['run_start', 'state_update', 'run_done', 'run_start', 'state_update', 'run_done'],
    );
    gone.abort();
  });

  test("a thread's stream is resumed after any of its events, and goes on live", async () => {
    const threadId = randomUUID();
    await client.threads.create({ threadId });
    const gone = new AbortController();
    const follow = (modes: string, lastEventId?: string): Promise<Response> =>
      fetch(`${server.url}/threads/${threadId}/stream?stream_mode=${modes}`, {
        signal: gone.signal,
        headers: lastEventId === undefined ? {} : { 'last-event-id': lastEventId },
      });
    const doneCount = (count: number) => (events: ServerEvent[]) => events.filter(isDone).length === count;
    const all = 'run_modes&stream_mode=lifecycle&stream_mode=state_update';
    const live = await follow(all);
    const run = async (name: string): Promise<void> => {
      const payload = { input: { name }, streamResumable: true, streamMode: ['updates' as const] };
      await client.runs.join(threadId, (await client.runs.create(threadId, 'steps', payload)).run_id);
    };
    await run('a');
    await run('b');
    const seen = await readEvents(live, doneCount(2));
    const kinds = seen.map((event) => (event.data as { status?: string }).status ?? event.event);
    const one = ['run_start', 'metadata', 'updates', 'updates', 'updates', 'state_update', 'run_done'];
    assert.deepEqual(kinds, [...one, ...one]);

    // What the state was after the first run is no longer known.
    const kept = seen.filter((_, index) => index !== one.indexOf('state_update'));
    assert.deepEqual(await readEvents(await follow(all, '-1'), doneCount(2)), kept);
    for (const [index, event] of seen.slice(0, -1).entries()) {
      const rest = seen.slice(index + 1).filter((later) => kept.includes(later));
      const replayed = await readEvents(await follow(all, event.id), (events) => events.at(-1)?.id === rest.at(-1)?.id);
      // What happened in the same moment may come twice; nothing is missing, and the order holds.
      assert.deepEqual(replayed.slice(-rest.length), rest, event.id);
      for (const { id } of replayed.slice(0, -rest.length)) assert.equal(momentOf(id), momentOf(event.id));
    }

    const resumed = await follow('run_modes', seen.at(-1)?.id ?? '');
    await run('c');
    const known = new Set(seen.map(({ id }) => id));
    const fresh = (events: ServerEvent[]): ServerEvent[] => events.filter(({ id }) => !known.has(id));
    const more = await readEvents(resumed, (events) => doneCount(1)(fresh(events)));
    assert.deepEqual(names(fresh(more)), names(seen.slice(1, 5)).concat('metadata'));
    gone.abort();
  });

  test("a thread's stream that is resumed in mid-run misses nothing of it", async () => {
    const threadId = randomUUID();
    const first = await holding(threadId);
    const run = await client.runs.create(threadId, 'chatty', {
      input: { count: 300, bytes: 10, pauseMs: 1 },
      streamResumable: true,
      streamMode: ['custom'],
    });
    await first.letGo();
    const gone = new AbortController();
    const numbers: number[] = [];
    let lastEventId = '-1';
    while (!numbers.includes(299)) {
      const response = await fetch(`${server.url}/threads/${threadId}/stream`, {
        headers: { 'last-event-id': lastEventId },
        signal: gone.signal,
      });
      const custom = (events: ServerEvent[]): ServerEvent[] => events.filter(({ event }) => event === 'custom');
      const events = await readEvents(
        response,
        (some) => custom(some).length >= 50 || some.some((event) => isDone(event) && runOf(event) === run.run_id),
      );
      numbers.push(...custom(events).map((event) => (event.data as { number: number }).number));
      lastEventId = custom(events).at(-1)?.id ?? lastEventId;
    }
    assert.deepEqual(
      numbers,
      Array.from({ length: 300 }, (_, number) => number),
    );
    gone.abort();
  });

  function momentOf(eventId: string): string {
    return eventId.split('-', 1)[0] ?? '';
  }

  function runOf(event: ServerEvent): string | undefined {
    return (event.data as { run_id?: string }).run_id;
  }

  function isDone(event: ServerEvent): boolean {
    return (event.data as { status?: string }).status === 'run_done';
  }

  test('two hundred streams at once each get all of their events in order', async () => {
    const streams = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const { events } = await stream('/runs/stream', {
          assistant_id: 'steps',
          input: { name: `n${index}`, stepMs: 5 },
          stream_mode: 'updates',
        });
        return { index, events };
      }),
    );
    for (const { index, events } of streams) {
      // Each attempt of a run begins with metadata; a machine that is busy enough may need a second one.
      assert.deepEqual(
        events.filter(({ event }) => event !== 'metadata').map((event) => event.data),
        ['one', 'two', 'three'].map((step) => ({ [step]: { done: [`n${index}:${step}`] } })),
      );
    }
  });

  test('an unknown run is not found, by stream and by join', async () => {
    const threadId = randomUUID();
    await client.threads.create({ threadId });
    for (const path of [
      `/threads/${threadId}/runs/${randomUUID()}/stream`,
      `/threads/${threadId}/runs/${randomUUID()}/join`,
      `/runs/${randomUUID()}/stream`,
    ])
      assert.equal((await fetch(server.url + path)).status, 404, path);
  });

  /** Forwards TCP to the server; `breakAll` breaks what is open and says how many these were. */
  async function breakingProxy(url: string): Promise<{ url: string; breakAll(): number; close(): Promise<void> }> {
    const { createServer } = await import('node:net');
    const open = new Set<Socket>();
    const target = Number(new URL(url).port);
    const proxy = createServer((socket) => {
      const upstream = connect(target, '127.0.0.1');
      open.add(socket);
      upstream.on('data', (chunk: Buffer) => socket.write(chunk));
      socket.on('data', (chunk: Buffer) => upstream.write(chunk));
      socket.on('close', () => upstream.destroy()).on('error', () => undefined);
      socket.on('close', () => open.delete(socket));
      upstream.on('close', () => socket.destroy()).on('error', () => undefined);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const { port } = proxy.address() as { port: number };
    return {
      url: `http://127.0.0.1:${port}`,
      breakAll: () => {
        const sockets = [...open];
        for (const socket of sockets) socket.resetAndDestroy();
        return sockets.length;
      },
      close: () => new Promise((resolve) => proxy.close(() => resolve())),
    };
  }
});
