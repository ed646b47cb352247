/**
 * One graph worker seen from the main thread. In: runs and calls. Out: their events and ends, or the news that the thread is
 * gone, with everything that it held. It owns the Worker and knows what runs in it. It takes what it is given: the pool counts.
 * On close it lets the thread end by itself, and ends it at the deadline.
 */
import { Worker } from 'node:worker_threads';
import type { Counters } from '../../core/counters.ts';
import type { Log } from '../../core/log.ts';
import type { JsonText } from '../store/model.ts';
import type {
  AbortReason,
  AttemptEnd,
  CallRefusal,
  FromWorker,
  GraphCall,
  GraphWorkerData,
  LoadFailure,
  RunOrder,
  ToWorker,
} from './protocol.ts';

/** What a run hears of its attempt; `ended` or `lost` comes last, and once. */
export interface RunListener {
  event(event: string, dataJson: JsonText): void;
  /** Resolves when the events so far are on record, or given up; never rejects. */
  settled(): Promise<void>;
  ended(end: AttemptEnd, stateCleared: boolean): void;
  lost(loss: Loss): void;
}

export interface Loss {
  reason: string;
  /** False when the thread was ended because of another run. */
  suspect: boolean;
}

export type CallResult = { kind: 'answer'; json: JsonText } | { kind: 'refusal'; code: CallRefusal; message: string };

export interface ThreadSettings {
  workerUrl: URL;
  data: Omit<GraphWorkerData, 'beat'>;
  environment: Record<string, string | undefined>;
  maxHeapMb: number;
  /** A thread whose event loop did not turn for so long, while ours did, is ended. */
  stallTimeoutMs: number;
  /** A run that goes on for so long after it was told to stop costs its thread. */
  abortGraceMs: number;
  log: Log;
  counters: Counters;
}

export type Birth =
  { kind: 'ready' } | { kind: 'unloadable'; failures: LoadFailure[] } | { kind: 'gone'; reason: string };

interface Held {
  listener: RunListener;
  /** Ends the thread when an abort is ignored. */
  grace: NodeJS.Timeout | null;
}

/** V8's own default. `npm start` makes it small for the threads of the pipeline, which leave little; graphs are anybody's. */
const YOUNG_HEAP_MB = 48;

export class GraphThread {
  readonly born: Promise<Birth>;
  /** Settles when the thread is gone and everything that it held has been reported. */
  readonly gone: Promise<void>;
  /** One that is closing takes nothing more: it would end with what it was given. */
  state: 'loading' | 'ready' | 'closing' | 'gone' = 'loading';
  /** The event loop has not turned since the last look, one beat interval or more ago. */
  isSilent = false;

  readonly #worker: Worker;
  readonly #settings: ThreadSettings;
  readonly #beat: Int32Array;
  readonly #runs = new Map<number, Held>();
  readonly #calls = new Map<number, (result: CallResult) => void>();
  #lastBeat = 0;
  #lastLookMs = 0;
  #silentMs = 0;
  #watch: NodeJS.Timeout | null = null;
  /** Why we end the thread; null when it ends by itself. */
  #verdict: { reason: string; culprit: number | null } | null = null;
  #lastError: Error | null = null;

  constructor(settings: ThreadSettings, onIdle: () => void) {
    this.#settings = settings;
    const beat = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT);
    this.#beat = new Int32Array(beat);
    this.#worker = new Worker(settings.workerUrl, {
      workerData: { ...settings.data, beat } satisfies GraphWorkerData,
      env: settings.environment as NodeJS.ProcessEnv,
      resourceLimits: { maxOldGenerationSizeMb: settings.maxHeapMb, maxYoungGenerationSizeMb: YOUNG_HEAP_MB },
      name: 'graph',
    });
    let birth: (birth: Birth) => void = () => undefined;
    this.born = new Promise((resolve) => (birth = resolve));
    this.#worker.on('message', (messages: FromWorker[]) => {
      for (const message of messages) this.#take(message, birth);
      if (messages.some((message) => message.kind === 'ended')) onIdle();
    });
    this.#worker.on('error', (error: Error) => (this.#lastError = error));
    this.gone = new Promise((resolve) => {
      this.#worker.once('exit', (code) => {
        this.state = 'gone';
        this.#stopWatching();
        const reason = this.#verdict?.reason ?? reasonOf(this.#lastError, code);
        birth({ kind: 'gone', reason });
        this.#reportLosses(reason);
        resolve();
      });
    });
  }

  get runCount(): number {
    return this.#runs.size;
  }

  /** Rises while the event loop turns. */
  get beatCount(): number {
    return Atomics.load(this.#beat, 0); // pairs with the Atomics.add of the worker's timer, see host.ts
  }

  get isBusy(): boolean {
    return this.#runs.size > 0 || this.#calls.size > 0;
  }

  run(order: RunOrder, listener: RunListener): void {
    this.#runs.set(order.key, { listener, grace: null });
    this.#post({ kind: 'run', order });
    this.#startWatching();
  }

  abort(key: number, reason: AbortReason): void {
    const held = this.#runs.get(key);
    if (held === undefined || held.grace !== null) return;
    this.#post({ kind: 'abort', key, reason });
    held.grace = setTimeout(
      () => this.end('The run did not stop when it was told to.', key),
      this.#settings.abortGraceMs,
    );
  }

  listen(key: number): void {
    this.#post({ kind: 'listen', key });
  }

  call(key: number, call: GraphCall): Promise<CallResult> {
    return new Promise((resolve) => {
      this.#calls.set(key, resolve);
      this.#post({ kind: 'call', key, call });
      this.#startWatching();
    });
  }

  /** Ends the thread whatever it is doing. The culprit's run alone is suspected; null: any of them. */
  end(reason: string, culprit: number | null): void {
    this.#verdict ??= { reason, culprit };
    void this.#worker.terminate();
  }

  async close(deadlineMs: number): Promise<void> {
    if (this.state !== 'gone') this.state = 'closing';
    this.#post({ kind: 'close' });
    const deadline = setTimeout(() => this.end('The server is stopping.', -1), deadlineMs);
    await this.gone;
    clearTimeout(deadline);
  }

  #post(message: ToWorker): void {
    this.#worker.postMessage(message);
  }

  #take(message: FromWorker, birth: (birth: Birth) => void): void {
    switch (message.kind) {
      case 'event':
        return this.#runs.get(message.key)?.listener.event(message.event, message.dataJson);
      case 'settle':
        return void this.#runs
          .get(message.key)
          ?.listener.settled()
          .then(() => this.#post({ kind: 'settled', key: message.key, ticket: message.ticket }));
      case 'ended': {
        const held = this.#runs.get(message.key);
        if (held === undefined) return;
        this.#runs.delete(message.key);
        if (held.grace !== null) clearTimeout(held.grace);
        this.#stopWatchingWhenIdle();
        return held.listener.ended(message.end, message.stateCleared);
      }
      case 'answer':
        return this.#settle(message.key, { kind: 'answer', json: message.json });
      case 'refusal':
        return this.#settle(message.key, { kind: 'refusal', code: message.code, message: message.message });
      case 'untraced':
        this.#settings.counters.add('graph_runs_untraced', message.runCount);
        return this.#settings.log.warn({ runCount: message.runCount, reason: message.reason }, 'graph runs not traced');
      case 'ready':
        if (this.state === 'loading') this.state = 'ready';
        if (this.isBusy) this.#startWatching();
        return birth({ kind: 'ready' });
      case 'unloadable':
        return birth({ kind: 'unloadable', failures: message.failures });
    }
  }

  #settle(key: number, result: CallResult): void {
    const resolve = this.#calls.get(key);
    this.#calls.delete(key);
    this.#stopWatchingWhenIdle();
    resolve?.(result);
  }

  #reportLosses(reason: string): void {
    const runs = [...this.#runs];
    this.#runs.clear();
    for (const [key, held] of runs) {
      if (held.grace !== null) clearTimeout(held.grace);
      const culprit = this.#verdict?.culprit ?? null;
      held.listener.lost({ reason, suspect: culprit === null || culprit === key });
    }
    for (const key of [...this.#calls.keys()])
      this.#settle(key, { kind: 'refusal', code: 'worker-lost', message: reason });
  }

  /**
   * Only a thread that has something to do is watched, so that an idle server has no timer; and none that still loads its
   * graphs, which does not beat yet: how long that may take is the pool's to say.
   */
  #startWatching(): void {
    if (this.#watch !== null || this.state === 'loading') return;
    this.#lastBeat = this.beatCount;
    this.#lastLookMs = performance.now();
    this.#silentMs = 0;
    const intervalMs = Math.min(2 * this.#settings.data.beatIntervalMs, this.#settings.stallTimeoutMs);
    this.#watch = setInterval(() => this.#look(intervalMs), intervalMs);
  }

  #look(intervalMs: number): void {
    const beat = this.beatCount;
    const nowMs = performance.now();
    // A look that comes late finds a process that was stopped, or has no processor: that is no silence of the thread alone.
    this.#silentMs += Math.min(nowMs - this.#lastLookMs, 2 * intervalMs);
    this.#lastLookMs = nowMs;
    this.isSilent = beat === this.#lastBeat;
    if (!this.isSilent) {
      this.#lastBeat = beat;
      this.#silentMs = 0;
    } else if (this.#silentMs > this.#settings.stallTimeoutMs) {
      this.end(`The graph worker did not respond for ${this.#settings.stallTimeoutMs} ms.`, null);
    }
  }

  #stopWatchingWhenIdle(): void {
    if (!this.isBusy) this.#stopWatching();
  }

  #stopWatching(): void {
    if (this.#watch !== null) clearInterval(this.#watch);
    this.#watch = null;
    this.isSilent = false;
  }
}

function reasonOf(error: (Error & { code?: string }) | null, code: number): string {
  if (error?.code === 'ERR_WORKER_OUT_OF_MEMORY') return 'The graph worker ran out of memory.';
  if (error !== null) return `The graph worker failed: ${String(error.message)}`;
  return `The graph worker exited with code ${code}.`;
}
