/**
 * The live list: tells subscribers which traces arrived or changed. In: numbers of traces, after each write. Out:
 * server-sent events, at most one each 250 ms a subscriber, with what passes its filter. When full: an event holds 200
 * traces and says how many more there were; a subscriber whose socket is a mebibyte behind gets nothing until it has
 * caught up, and then the event `reset`. On stop: all streams end.
 */
import type { ServerResponse } from 'node:http';
import { MiB, SECOND_MS } from '../core/units.ts';
import type { TraceEvent } from './api.ts';
import type { Filter } from './filter.ts';

export interface EventHub {
  changed(traceNos: readonly number[]): void;
  /** Takes over the response. False: there are too many subscribers; nothing was written. */
  subscribe(response: ServerResponse, filter: Filter): boolean;
  stop(): void;
}

type Match = (filter: Filter, traceNos: readonly number[]) => Omit<TraceEvent, 'omitted_count'>;

interface Subscriber {
  readonly response: ServerResponse;
  readonly filter: Filter;
  lagging: boolean;
}

const INTERVAL_MS = 250;
const HEARTBEAT_MS = 15 * SECOND_MS;
const MAX_TRACE_COUNT = 200;
const MAX_BEHIND_BYTES = MiB;
const MAX_SUBSCRIBER_COUNT = 100;
const HEAD = {
  'Content-Type': 'text/event-stream; charset=utf-8',
  'Cache-Control': 'no-store',
  'X-Accel-Buffering': 'no',
} as const;

export function createEventHub(match: Match): EventHub {
  const subscribers = new Set<Subscriber>();
  const pending = new Set<number>();
  /** By the clock that is never set back: until it were as late again nothing would be told. */
  let sentAtMs = -Infinity;
  let timer: NodeJS.Timeout | null = null;
  let heartbeat: NodeJS.Timeout | null = null;

  const send = (subscriber: Subscriber, event: string, data: unknown): void => {
    subscriber.response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  };

  const caughtUp = (subscriber: Subscriber): void => {
    if (!subscriber.lagging) return;
    subscriber.lagging = false;
    send(subscriber, 'reset', {});
  };

  const flush = (): void => {
    timer = null;
    sentAtMs = performance.now();
    // The newest are the ones a live list shows.
    const traceNos = [...pending].sort((a, b) => b - a);
    pending.clear();
    const shown = traceNos.slice(0, MAX_TRACE_COUNT);
    for (const subscriber of subscribers) {
      const behind = subscriber.response.writableLength > MAX_BEHIND_BYTES;
      if (behind) subscriber.lagging = true;
      else if (subscriber.lagging) caughtUp(subscriber);
      else {
        send(subscriber, 'traces', {
          ...match(subscriber.filter, shown),
          omitted_count: traceNos.length - shown.length,
        } satisfies TraceEvent);
      }
    }
  };

  const leave = (subscriber: Subscriber): void => {
    subscribers.delete(subscriber);
    if (subscribers.size > 0) return;
    if (heartbeat !== null) clearInterval(heartbeat);
    if (timer !== null) clearTimeout(timer);
    heartbeat = null;
    timer = null;
    pending.clear();
  };

  return {
    changed: (traceNos) => {
      if (subscribers.size === 0) return;
      for (const traceNo of traceNos) pending.add(traceNo);
      timer ??= setTimeout(flush, Math.max(0, sentAtMs + INTERVAL_MS - performance.now()));
    },
    subscribe: (response, filter) => {
      if (subscribers.size >= MAX_SUBSCRIBER_COUNT) return false;
      const subscriber: Subscriber = { response, filter, lagging: false };
      subscribers.add(subscriber);
      response.once('close', () => leave(subscriber));
      // Not with the next change only: there may be none for long, and what it shows is old.
      response.on('drain', () => caughtUp(subscriber));
      response.writeHead(200, HEAD);
      response.write('retry: 1000\n\n');
      send(subscriber, 'ready', {});
      heartbeat ??= setInterval(() => {
        for (const each of subscribers) if (each.response.writableLength === 0) each.response.write(': alive\n\n');
      }, HEARTBEAT_MS);
      return true;
    },
    stop: () => {
      for (const subscriber of subscribers) {
        subscriber.response.end();
        leave(subscriber);
      }
    },
  };
}
