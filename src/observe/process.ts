/** What the process itself uses, as gauges. Memory is read at most once a second: asking costs a few system calls. */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { SECOND_MS } from '../core/units.ts';
import type { GaugeReader } from './figures.ts';

const NS_PER_MS = 1_000_000;
const US_PER_SECOND = 1_000_000;
const DELAY_RESOLUTION_MS = 20;
/** Windows whose longest delay is kept for readers that come by seldom. */
const KEPT_WINDOWS = 60;

export interface ProcessGauges {
  readonly gauges: readonly GaugeReader[];
  /** Begins the next window of the event loop's delay. */
  turn(): void;
  stop(): void;
}

/**
 * The event loop's delay, that is by how much a timer of the main thread was late, is that of the last whole window
 * between two calls of `turn`, which come once a second.
 */
export function createProcessGauges(nowMs: () => number): ProcessGauges {
  const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS });
  delay.enable();
  let last = { p50Ms: 0, p99Ms: 0, maxMs: 0 };
  const longestMs: number[] = [];
  let memory = process.memoryUsage();
  let memoryMs = nowMs();
  const memoryNow = (): NodeJS.MemoryUsage => {
    if (nowMs() - memoryMs < SECOND_MS) return memory;
    memoryMs = nowMs();
    try {
      memory = process.memoryUsage();
    } catch {
      // Reading it takes a file descriptor. Where there is none left the last figures stand for another second: that is
      // no reason to end.
    }
    return memory;
  };
  const delayMs = (ns: number): number => (ns > 0 ? Math.max(0, ns / NS_PER_MS - DELAY_RESOLUTION_MS) : 0);
  return {
    turn: () => {
      // Without a single tick (the loop stood still) the figures of an empty window mean nothing.
      if (delay.count > 0) {
        last = {
          p50Ms: delayMs(delay.percentile(50)),
          p99Ms: delayMs(delay.percentile(99)),
          maxMs: delayMs(delay.max),
        };
      }
      delay.reset();
      longestMs.push(last.maxMs);
      if (longestMs.length > KEPT_WINDOWS) longestMs.shift();
    },
    stop: () => delay.disable(),
    gauges: [
      { name: 'rssBytes', meaning: 'Resident memory of the process.', read: () => memoryNow().rss },
      { name: 'heapUsedBytes', meaning: 'JavaScript heap of the main thread.', read: () => memoryNow().heapUsed },
      { name: 'heapTotalBytes', meaning: 'Heap reserved by the main thread.', read: () => memoryNow().heapTotal },
      { name: 'externalBytes', meaning: 'Memory of buffers of the main thread.', read: () => memoryNow().external },
      { name: 'uptimeMs', meaning: 'Age of the process.', read: () => process.uptime() * SECOND_MS },
      {
        name: 'cpuMs',
        meaning: 'CPU time of all threads since the start, user and system.',
        read: () => {
          const { user, system } = process.cpuUsage();
          return ((user + system) / US_PER_SECOND) * SECOND_MS;
        },
      },
      {
        name: 'eventLoopDelayP50Ms',
        meaning: 'Delay of the main thread’s event loop: median.',
        read: () => last.p50Ms,
      },
      {
        name: 'eventLoopDelayP99Ms',
        meaning: 'Delay of the main thread’s event loop: 99th percentile.',
        read: () => last.p99Ms,
      },
      {
        name: 'eventLoopDelayMaxMs',
        meaning: 'Delay of the main thread’s event loop: longest.',
        read: () => last.maxMs,
      },
      {
        name: 'eventLoopDelayMinuteMaxMs',
        meaning: 'Delay of the main thread’s event loop: longest of the last minute.',
        read: () => Math.max(0, ...longestMs),
      },
    ],
  };
}
