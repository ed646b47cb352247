/**
 * Owner of the journal thread: starts it, replaces it when it dies, carries messages. What was asked of a dead thread is
 * never answered: whoever asked hears of the death and asks again.
 */
import type { Clock } from '../core/lifecycle.ts';
import { SECOND_MS } from '../core/units.ts';
import type { FromJournal, ToJournal } from './message.ts';

/** A worker that runs `runJournalThread`. */
export interface JournalWorker {
  on(event: 'error', listener: (error: unknown) => void): unknown;
  on(event: 'message', listener: (message: FromJournal) => void): unknown;
  once(event: 'exit', listener: (code: number) => void): unknown;
  postMessage(message: ToJournal, transfer: ArrayBuffer[]): void;
  terminate(): Promise<number>;
}

export interface JournalThreadLinks {
  readonly clock: Clock;
  onMessage(message: FromJournal): void;
  /** Another one is being started; what it sends first is `ready`. */
  onDeath(reason: string): void;
}

const RESTART_MS = SECOND_MS / 4;
const MAX_RESTART_MS = 10 * SECOND_MS;
const CLOSE_MS = 2 * SECOND_MS;

export class JournalThread {
  readonly #startWorker: () => JournalWorker;
  readonly #links: JournalThreadLinks;
  readonly #stop = new AbortController();
  #worker: JournalWorker | null = null;
  #restartMs = RESTART_MS;

  constructor(startWorker: () => JournalWorker, links: JournalThreadLinks) {
    this.#startWorker = startWorker;
    this.#links = links;
  }

  start(): void {
    const worker = this.#startWorker();
    this.#worker = worker;
    let reason = '';
    worker.on('error', (error) => {
      reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
    });
    worker.on('message', (message: FromJournal) => {
      if (message.kind === 'committed') this.#restartMs = RESTART_MS;
      this.#links.onMessage(message);
    });
    worker.once('exit', (code) => {
      this.#worker = null;
      if (this.#stop.signal.aborted) return;
      this.#links.onDeath(reason === '' ? `ended with code ${code}` : reason);
      void this.#restart();
    });
  }

  /** Into the void while there is no thread. */
  tell(message: ToJournal, transfer: ArrayBuffer[] = []): void {
    this.#worker?.postMessage(message, transfer);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    const worker = this.#worker;
    if (worker === null) return;
    const exited = new Promise<void>((resolve) => worker.once('exit', () => resolve()));
    this.tell({ kind: 'close' });
    const closed = new AbortController();
    void this.#links.clock.sleep(CLOSE_MS, closed.signal).then(() => {
      // A disk that does not answer: the thread ends with the process.
      if (!closed.signal.aborted) void worker.terminate();
    });
    await Promise.race([exited, this.#links.clock.sleep(2 * CLOSE_MS, closed.signal)]);
    closed.abort();
  }

  async #restart(): Promise<void> {
    await this.#links.clock.sleep(this.#restartMs, this.#stop.signal);
    this.#restartMs = Math.min(2 * this.#restartMs, MAX_RESTART_MS);
    if (!this.#stop.signal.aborted) this.start();
  }
}
