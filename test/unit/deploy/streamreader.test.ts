import assert from 'node:assert/strict';
import { test } from 'node:test';
import { uncounted } from '../../../src/core/counters.ts';
import type { HttpSink } from '../../../src/core/http.ts';
import { silentLog } from '../../../src/core/log.ts';
import { systemClock } from '../../../src/core/lifecycle.ts';
import type { Pulse } from '../../../src/deploy/pulse.ts';
import type { JsonText, RunEvent } from '../../../src/deploy/store/model.ts';
import type { RunEventRepository } from '../../../src/deploy/store/repositories.ts';
import { RunStream, seqOf } from '../../../src/deploy/stream.ts';
import { StreamReader } from '../../../src/deploy/streamreader.ts';

interface TestSink extends HttpSink {
  text: string;
  state: 'open' | 'ended' | 'aborted';
  /** Takes what is written at once, or lets it pile up. */
  takes: boolean;
  drain(): void;
}

function sink(): TestSink {
  let buffered = 0;
  let drained: () => void = () => undefined;
  const it: TestSink = {
    text: '',
    state: 'open',
    takes: true,
    write: (chunk) => {
      it.text += String(chunk);
      if (!it.takes) buffered += String(chunk).length;
      return it.takes;
    },
    get bufferedBytes() {
      return buffered;
    },
    onDrain: (callback) => (drained = callback),
    end: () => void (it.state = 'ended'),
    abort: () => void (it.state = 'aborted'),
    get closed() {
      return it.state !== 'open';
    },
    drain: () => {
      buffered = 0;
      it.takes = true;
      drained();
    },
  };
  return it;
}

function pulse(): Pulse & { beat(): void; memberCount(): number } {
  const members = new Set<() => void>();
  return {
    join: (member) => void members.add(member),
    leave: (member) => void members.delete(member),
    beat: () => {
      for (const member of [...members]) member();
    },
    memberCount: () => members.size,
  };
}

function events(): RunEventRepository & { rows: RunEvent[]; expiresMs: number | null } {
  const it: RunEventRepository & { rows: RunEvent[]; expiresMs: number | null } = {
    rows: [],
    expiresMs: null,
    append: async (_runId, batch) => void it.rows.push(...batch),
    after: async (_runId, afterSeq, limit) => it.rows.filter((row) => row.seq > afterSeq).slice(0, limit),
    lastSeq: async () => it.rows.at(-1)?.seq ?? -1,
    result: async () => null,
    expireAt: async (_runId, ms) => void (it.expiresMs = ms),
    deleteExpired: async () => 0,
  };
  return it;
}

function stream(resumable: boolean, store = events()): { stream: RunStream; store: ReturnType<typeof events> } {
  const settings = { events: store, clock: systemClock, log: silentLog, counters: uncounted, replayTtlMs: 1000 };
  return {
    stream: new RunStream(
      settings,
      { runId: 'r', resumable },
      () => [],
      () => undefined,
    ),
    store,
  };
}

function json(value: unknown): JsonText {
  return JSON.stringify(value) as JsonText;
}

function dataOf(text: string): unknown[] {
  return [...text.matchAll(/^data: (.*)$/gm)].map((match) => JSON.parse(match[1] ?? '') as unknown);
}

test('a reader made before its socket misses nothing', () => {
  const reader = new StreamReader({ pulse: pulse(), maxBufferedBytes: 1000, counters: uncounted }, null);
  reader.write('one');
  reader.write('two');
  const socket = sink();
  reader.attach(socket);
  reader.write('three');
  assert.equal(socket.text, 'onetwothree');
});

test('a reader whose socket is behind its limit is told and ended, and hears nothing more', () => {
  const beats = pulse();
  const reader = new StreamReader({ pulse: beats, maxBufferedBytes: 10, counters: uncounted }, null);
  const socket = sink();
  socket.takes = false;
  reader.attach(socket);
  let left = 0;
  reader.onLeave(() => left++);
  reader.write('123456789012');
  assert.equal(socket.state, 'open');
  reader.write('more');
  assert.equal(socket.state, 'ended');
  assert.match(socket.text, /^\n123456789012event: error\ndata: \{"error":"SlowReader"/);
  reader.write('and more');
  assert.ok(!socket.text.includes('more'));
  assert.equal(left, 1);
  assert.equal(beats.memberCount(), 0);
});

test('a single event larger than the limit is sent', () => {
  const reader = new StreamReader({ pulse: pulse(), maxBufferedBytes: 10, counters: uncounted }, null);
  const socket = sink();
  reader.attach(socket);
  reader.write('x'.repeat(1000));
  assert.equal(socket.state, 'open');
  assert.equal(socket.text, `\n${'x'.repeat(1000)}`);
});

test('a heartbeat is a comment line, and is sent only when nothing else was', () => {
  const beats = pulse();
  const reader = new StreamReader({ pulse: beats, maxBufferedBytes: 1000, counters: uncounted }, null);
  const socket = sink();
  reader.attach(socket);
  reader.write('event');
  beats.beat();
  beats.beat();
  assert.equal(socket.text, '\nevent: heartbeat\n');
});

test('a reader that is gone says so once, and one that was ended was not gone', () => {
  const ended = new StreamReader({ pulse: pulse(), maxBufferedBytes: 1000, counters: uncounted }, null);
  ended.attach(sink());
  ended.end();
  assert.equal(ended.detach(), false);
  const gone = new StreamReader({ pulse: pulse(), maxBufferedBytes: 1000, counters: uncounted }, null);
  gone.attach(sink());
  assert.equal(gone.detach(), true);
  assert.equal(gone.detach(), false);
});

test('replay gives what came after an id, from memory or from the store, then live events, each once', async () => {
  const { stream: run, store } = stream(true);
  for (let number = 0; number < 5; number++) run.append('values', json(number));
  const reader = new StreamReader({ pulse: pulse(), maxBufferedBytes: 1000, counters: uncounted }, null);
  const socket = sink();
  reader.attach(socket);
  await run.replay(reader, 1);
  run.append('values', json(5));
  assert.deepEqual(dataOf(socket.text), [2, 3, 4, 5]);

  // Another process goes on where this one has left off: the store has the beginning.
  await run.abort();
  assert.equal(store.rows.length, 6);
  const { stream: next } = stream(true, store);
  next.continueAfter(await store.lastSeq('r'));
  next.append('values', json(6));
  const late = new StreamReader({ pulse: pulse(), maxBufferedBytes: 1000, counters: uncounted }, null);
  const lateSocket = sink();
  late.attach(lateSocket);
  await next.replay(late, -1);
  next.append('values', json(7));
  await next.close();
  assert.deepEqual(dataOf(lateSocket.text), [0, 1, 2, 3, 4, 5, 6, 7]);
  assert.equal(lateSocket.state, 'ended');
  assert.notEqual(store.expiresMs, null);
});

test('a reader that comes before a run is taken up again gets what was stored, then what follows, each once', async () => {
  const { stream: before, store } = stream(true);
  for (let number = 0; number < 3; number++) before.append('values', json(number));
  await before.abort();
  const { stream: after } = stream(true, store);
  const reader = new StreamReader({ pulse: pulse(), maxBufferedBytes: 1000, counters: uncounted }, null);
  const socket = sink();
  reader.attach(socket);
  await after.replay(reader, -1);
  after.continueAfter(await store.lastSeq('r'));
  after.append('values', json(3));
  await after.close();
  assert.deepEqual(dataOf(socket.text), [0, 1, 2, 3]);
});

test('numbers that clients may have seen before a crash are not given again, and a client that has one misses nothing', async () => {
  const { stream: before, store } = stream(true);
  for (let number = 0; number < 3; number++) before.append('values', json(number));
  await before.settled();
  // Shown to clients, and then the process was gone.
  const lost = { seq: 3 };
  const { stream: after } = stream(true, store);
  after.continueAfter(await store.lastSeq('r'), true);
  after.append('values', json('again'));
  const texts = [];
  for (const seen of [lost.seq, 2, 0, -1]) {
    const reader = new StreamReader({ pulse: pulse(), maxBufferedBytes: 1000, counters: uncounted }, null);
    const socket = sink();
    reader.attach(socket);
    await after.replay(reader, seen);
    texts.push(dataOf(socket.text));
  }
  assert.deepEqual(texts, [['again'], ['again'], [1, 2, 'again'], [0, 1, 2, 'again']]);
  await after.close();
});

test('events that another process puts on record are read when it says so, once each', async () => {
  const { stream: elsewhere, store } = stream(true);
  const { stream: here } = stream(false, store);
  here.expectElsewhere();
  const reader = new StreamReader({ pulse: pulse(), maxBufferedBytes: 100_000, counters: uncounted }, null);
  const socket = sink();
  reader.attach(socket);
  here.read(reader);
  for (let number = 0; number < 500; number++) elsewhere.append('values', json(number));
  await elsewhere.settled();
  here.eventsElsewhere();
  here.eventsElsewhere();
  while (dataOf(socket.text).length < 500) await new Promise((resolve) => setImmediate(resolve));
  await elsewhere.close();
  await here.close();
  assert.deepEqual(
    dataOf(socket.text),
    Array.from({ length: 500 }, (_, number) => number),
  );
  assert.equal(socket.state, 'ended');
});

test('the end of a run that another process has executed is read from the store', async () => {
  const { stream: elsewhere, store } = stream(true);
  const { stream: here } = stream(true, store);
  const reader = new StreamReader({ pulse: pulse(), maxBufferedBytes: 1000, counters: uncounted }, null);
  const socket = sink();
  reader.attach(socket);
  await here.replay(reader, -1);
  elsewhere.append('values', json(0));
  elsewhere.append('values', json(1));
  await elsewhere.close();
  await here.close();
  assert.deepEqual(dataOf(socket.text), [0, 1]);
  assert.equal(socket.state, 'ended');
});

test('a reader that asks for events that could not be kept is told so', async () => {
  const store = events();
  store.append = async () => Promise.reject(new Error('disk full'));
  const { stream: run } = stream(true, store);
  for (let number = 0; number < 30; number++) {
    run.append('values', json('x'.repeat(100_000)));
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await new Promise((resolve) => setTimeout(resolve, 50));
  const reader = new StreamReader({ pulse: pulse(), maxBufferedBytes: 10_000_000, counters: uncounted }, null);
  const socket = sink();
  reader.attach(socket);
  await run.replay(reader, -1);
  assert.match(socket.text, /^\nevent: error\ndata: \{"error":"EventsLost"/);
  assert.equal(socket.state, 'ended');
  await run.close();
});

test('replay waits for a reader that is behind instead of cutting it', async () => {
  const { stream: run } = stream(true);
  for (let number = 0; number < 100; number++) run.append('values', json('x'.repeat(100)));
  const reader = new StreamReader({ pulse: pulse(), maxBufferedBytes: 500, counters: uncounted }, null);
  const socket = sink();
  socket.takes = false;
  reader.attach(socket);
  const replayed = run.replay(reader, -1);
  while (dataOf(socket.text).length < 100) {
    assert.ok(socket.bufferedBytes < 1000);
    socket.drain();
    socket.takes = false;
    await new Promise((resolve) => setImmediate(resolve));
  }
  socket.drain();
  await replayed;
  assert.equal(socket.state, 'open');
  await run.close();
});

test('events of a run that is not resumable are kept nowhere', async () => {
  const { stream: run, store } = stream(false);
  run.append('values', json(1));
  await run.close();
  assert.deepEqual(store.rows, []);
});

test('ids that are not ours mean the beginning', () => {
  assert.equal(seqOf('1718000000000-3'), 3);
  for (const id of ['-1', '0', '', 'abc', '5', '12-', '1-2-3']) assert.equal(seqOf(id), -1, id);
});

test('names of events cannot break out of their line', async () => {
  const { stream: run } = stream(false);
  const reader = new StreamReader({ pulse: pulse(), maxBufferedBytes: 1000, counters: uncounted }, null);
  const socket = sink();
  reader.attach(socket);
  run.read(reader);
  run.append('values|evil\nevent: error\r\ndata: 1', json(1));
  assert.equal(socket.text.match(/^event: /gm)?.length, 1);
  await run.close();
});
