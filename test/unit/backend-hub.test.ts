/** The live list's hub, with subscribers that read as slowly, and a clock that goes as it likes. */
import assert from 'node:assert/strict';
import { EventEmitter, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, mock, test } from 'node:test';
import { createEventHub, type EventHub } from '../../src/backend/events.ts';

const MANY_BYTES = 2 * 1024 * 1024;

let hub: EventHub;
beforeEach(() => {
  hub = createEventHub(() => ({ traces: [], unmatched_trace_ids: [] }));
});
afterEach(() => {
  hub.stop();
  mock.restoreAll();
});

/** `behindBytes`: what its socket has not taken yet. */
class Reader extends EventEmitter {
  behindBytes = 0;
  readonly written: string[] = [];
  get writableLength(): number {
    return this.behindBytes;
  }
  writeHead(): void {}
  end(): void {}
  write(text: string): void {
    this.written.push(/^event: (\w+)/.exec(text)?.[1] ?? '');
    this.emit('written');
  }
}

function subscribed(): Reader {
  const reader = new Reader();
  assert.ok(hub.subscribe(reader as unknown as ServerResponse, {}));
  return reader;
}

test('who was behind is told to read again once it has caught up, though nothing happens any more', async () => {
  const reader = subscribed();
  const other = subscribed();
  reader.behindBytes = MANY_BYTES;
  const told = once(other, 'written');
  hub.changed([1]);
  await told;
  assert.deepEqual(other.written.slice(2), ['traces']);
  reader.behindBytes = 0;
  reader.emit('drain');
  assert.deepEqual(reader.written.slice(2), ['reset']);
  reader.emit('drain');
  assert.deepEqual(reader.written.slice(2), ['reset']);
});

test('a clock that is set back by a day holds nothing up', { timeout: 60_000 }, async () => {
  const reader = subscribed();
  const now = Date.now();
  for (const nowMs of [now, now - 86_400_000]) {
    mock.method(Date, 'now', () => nowMs);
    const told = once(reader, 'written');
    hub.changed([1]);
    await told;
  }
  assert.deepEqual(reader.written.slice(2), ['traces', 'traces']);
});
