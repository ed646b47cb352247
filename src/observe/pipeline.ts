/**
 * The pipeline's figures for people and pages: one sample a second, the last ten minutes of them, and a live stream. In:
 * the registry. Out: {@link PipelineSnapshot} and its siblings. Owner: the main thread. When full: the oldest sample goes;
 * a subscriber whose socket is behind misses samples, of which each stands for itself. On stop: all streams end.
 */
import { HISTOGRAMS } from '../core/histograms.ts';
import type { HttpSink } from '../core/http.ts';
import type { PipelineHistory, PipelineSample, PipelineSnapshot } from '../core/pipeline.ts';
import { KiB, SECOND_MS } from '../core/units.ts';
import { COUNTER_MEANINGS, type Figurebook } from './figures.ts';
import { createHistory } from './history.ts';

export interface PipelineSettings {
  readonly version: string;
  readonly startedMs: number;
}

export interface PipelineLinks {
  readonly figures: Figurebook;
  readonly nowMs: () => number;
  readonly phase: () => PipelineSample['phase'];
  readonly reasons: () => readonly string[];
  /** Told before each sample. */
  readonly onSample: () => void;
}

export interface Pipeline {
  start(): void;
  stop(): void;
  /** Takes one now; `start` does it every second. */
  sample(): void;
  snapshot(): PipelineSnapshot;
  history(seconds: number, wanted: (series: string) => boolean): PipelineHistory;
  /** Whether one more may be subscribed. */
  readonly hasRoom: boolean;
  subscribe(sink: HttpSink): void;
}

const SAMPLE_MS = SECOND_MS;
export const HISTORY_SECONDS = 600;
const MAX_SUBSCRIBER_COUNT = 32;
const MAX_BEHIND_BYTES = 256 * KiB;

export function createPipeline(settings: PipelineSettings, links: PipelineLinks): Pipeline {
  const { figures } = links;
  const history = createHistory(HISTORY_SECONDS);
  const subscribers = new Set<HttpSink>();
  let timer: NodeJS.Timeout | null = null;

  const take = (): PipelineSample => ({
    atMs: links.nowMs(),
    phase: links.phase(),
    reasons: links.reasons(),
    counters: figures.counters(),
    gauges: figures.gauges(),
    histograms: figures.histograms(),
  });
  const publish = (sample: PipelineSample): void => {
    const message = `event: sample\ndata: ${JSON.stringify(sample)}\n\n`;
    for (const sink of subscribers) {
      if (sink.closed) subscribers.delete(sink);
      else if (sink.bufferedBytes < MAX_BEHIND_BYTES) sink.write(message);
    }
  };
  const sample = (): void => {
    links.onSample();
    const taken = take();
    history.add(taken);
    if (subscribers.size > 0) publish(taken);
  };

  return {
    start: () => {
      timer ??= setInterval(sample, SAMPLE_MS).unref();
    },
    stop: () => {
      if (timer !== null) clearInterval(timer);
      timer = null;
      for (const sink of subscribers) sink.end();
      subscribers.clear();
    },
    sample,
    snapshot: () => ({
      ...take(),
      version: settings.version,
      startedMs: settings.startedMs,
      limits: figures.limits,
      shards: figures.shards(),
      meanings: { counters: COUNTER_MEANINGS, gauges: figures.gaugeMeanings, histograms: HISTOGRAMS },
    }),
    history: (seconds, wanted) => history.read(links.nowMs() - seconds * SECOND_MS, wanted),
    get hasRoom() {
      for (const sink of subscribers) if (sink.closed) subscribers.delete(sink);
      return subscribers.size < MAX_SUBSCRIBER_COUNT;
    },
    subscribe: (sink) => {
      subscribers.add(sink);
      // The head leaves with the first bytes, and a page need not wait a second for its first figures.
      sink.write(`event: sample\ndata: ${JSON.stringify(take())}\n\n`);
    },
  };
}
