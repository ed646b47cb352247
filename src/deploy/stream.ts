/**
 * The events of one run, from its worker to any number of readers. In: events as JSON text. Out: the same, numbered, to readers
 * of the run and of its thread; for a resumable run also to the store, in batches. It owns its readers and the newest events of a
 * resumable run. Full: readers are cut one by one (see streamreader.ts); the newest events kept in memory are bounded, older
 * ones are read back from the store. When the run ends its readers are ended, when the server stops they are aborted.
 */
import type { Counters } from '../core/counters.ts';
import type { Clock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import type { JsonText, RunEvent } from './store/model.ts';
import type { RunEventRepository } from './store/repositories.ts';
import { encodeEvent, type StreamEvent, type StreamReader } from './streamreader.ts';

export interface RunStreamSettings {
  events: RunEventRepository;
  clock: Clock;
  log: Log;
  counters: Counters;
  /** How long the events of a resumable run are kept after its end. */
  replayTtlMs: number;
}

const RECENT_BYTES = 1024 * 1024;
const FLUSH_DELAY_MS = 20;
const FLUSH_EVENT_COUNT = 256;
const REPLAY_BATCH_COUNT = 200;
/** More than can have been shown to clients and not yet stored when a process dies. */
const LOST_EVENT_COUNT = 1_000_000;
/** For a run that never ends; renewed by its end. */
const UNENDED_TTL_MS = 7 * 24 * 3600 * 1000;

export class RunStream {
  readonly runId: string;
  readonly #settings: RunStreamSettings;
  readonly #readers = new Set<StreamReader>();
  readonly #threadReaders: () => Iterable<ThreadReader>;
  readonly #onReader: () => void;
  #isResumable: boolean;
  #nextSeq = 0;
  /** Of the first event that this process has numbered. */
  #firstSeq = 0;
  #recent: StreamEvent[] = [];
  #recentBytes = 0;
  #unsaved: RunEvent[] = [];
  #saving: Promise<void> = Promise.resolve();
  #flushTimer: NodeJS.Timeout | null = null;
  #flushedAtMs = 0;
  #isClosed = false;
  /** The run executes in this process: what it says comes through `append`. */
  #isHere = false;
  /** Another process that executes the run leaves its events in the store. */
  #mayRunElsewhere = false;
  #isReadingStore = false;
  #hasNews = false;

  constructor(
    settings: RunStreamSettings,
    run: { runId: string; resumable: boolean },
    threadReaders: () => Iterable<ThreadReader>,
    onReader: () => void,
  ) {
    this.#settings = settings;
    this.runId = run.runId;
    this.#isResumable = run.resumable;
    this.#threadReaders = threadReaders;
    this.#onReader = onReader;
  }

  get readerCount(): number {
    return this.#readers.size;
  }

  /** From its beginning, as if it had been created resumable. */
  keepEvents(): void {
    this.#isResumable = true;
  }

  expectElsewhere(): void {
    this.#mayRunElsewhere = true;
  }

  /** Another process has put events of the run on record, or may have. */
  eventsElsewhere(): void {
    if (this.#isHere || this.#isClosed || this.#readers.size === 0) return;
    if (!this.#isResumable && !this.#mayRunElsewhere) return;
    this.#hasNews = true;
    if (this.#isReadingStore) return;
    this.#isReadingStore = true;
    const { log } = this.#settings;
    this.#readStore()
      .catch((error: unknown) => log.warn({ err: error, runId: this.runId }, 'events of a run could not be read'))
      .finally(() => {
        this.#isReadingStore = false;
        if (this.#hasNews) this.eventsElsewhere();
      });
  }

  /**
   * Goes on numbering where another process, or an earlier life of this one, has left off. `lossy`: it may have crashed, and
   * clients may have seen events that are not on record; their numbers are not given again. The next event comes at once.
   */
  continueAfter(lastSeq: number, lossy = false): void {
    const seq = lastSeq + 1 + (lossy ? LOST_EVENT_COUNT : 0);
    if (this.#nextSeq < seq) this.#nextSeq = seq;
    if (!this.#isHere && this.#recent.length === 0) this.#firstSeq = this.#nextSeq;
    this.#isHere = true;
  }

  /** The attempt here is over, its events are on record, and the run is back in the queue: who takes it next may be elsewhere. */
  release(): void {
    this.#isHere = false;
  }

  append(event: string, dataJson: JsonText): void {
    if (!this.#isHere) this.continueAfter(-1);
    const seq = this.#nextSeq++;
    const id = `${this.#settings.clock.nowMs()}-${seq}`;
    const encoded: StreamEvent = { seq, id, event, dataJson, text: encodeEvent(event, dataJson, id) };
    if (this.#isResumable) this.#keep(encoded, dataJson);
    for (const reader of this.#readers) reader.offer(encoded);
    for (const reader of this.#threadReaders()) reader.runEvent(this.runId, encoded);
  }

  /** Resolves when every event so far is on record, or given up and logged. At once for a run that is not resumable. */
  async settled(): Promise<void> {
    this.#flush();
    await this.#saving;
  }

  /** Live events from now on. */
  read(reader: StreamReader): void {
    reader.onLeave(() => this.#readers.delete(reader));
    this.#readers.add(reader);
    this.#onReader();
    this.eventsElsewhere();
  }

  /** What came after `afterSeq`, then live. */
  async replay(reader: StreamReader, afterSeq: number): Promise<void> {
    this.#onReader();
    reader.skipTo(afterSeq);
    let cursor = afterSeq;
    for (;;) {
      await reader.room();
      if (!reader.isOpen) return;
      if (!this.#isHere && !this.#isClosed) {
        // Not begun, or begun elsewhere: the store has what there is.
        const sentSeq = await sendStored(this.#settings.events, this.runId, reader, cursor);
        cursor = sentSeq ?? cursor;
        if (sentSeq !== null || this.#isHere || this.#isClosed) continue;
        return this.read(reader);
      }
      const oldestSeq = this.#recent[0]?.seq ?? this.#nextSeq;
      if (cursor + 1 < oldestSeq) {
        const sentSeq = await sendStored(this.#settings.events, this.runId, reader, cursor);
        if (sentSeq !== null) cursor = sentSeq;
        // Nothing lies between what was stored before this process and its first event.
        else if (cursor < this.#firstSeq && oldestSeq === this.#firstSeq) cursor = this.#firstSeq - 1;
        else return reader.fail('EventsLost', 'Events of this run could not be kept for replay.');
        continue;
      }
      for (const event of this.#recent) {
        if (event.seq <= cursor) continue;
        if (!reader.hasRoom) break;
        reader.offer(event);
        cursor = event.seq;
      }
      if (cursor + 1 < this.#nextSeq) continue;
      // Nothing was appended since: from here on it hears every event as it comes.
      if (this.#isClosed) reader.end();
      else this.read(reader);
      return;
    }
  }

  /** The run has ended and its end is on record. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const readers = [...this.#readers];
    if (!this.#isHere && (this.#isResumable || this.#mayRunElsewhere)) {
      const { events } = this.#settings;
      await Promise.all(readers.map((reader) => replayEnded(events, this.runId, reader, reader.lastSeq)));
      return;
    }
    for (const reader of readers) reader.end();
    if (!this.#isResumable) return;
    await this.settled();
    await this.#settings.events.expireAt(this.runId, this.#settings.clock.nowMs() + this.#settings.replayTtlMs);
  }

  /** The server stops before the run has ended. */
  async abort(): Promise<void> {
    this.#isClosed = true;
    for (const reader of [...this.#readers]) reader.abort();
    await this.settled();
  }

  #keep(event: StreamEvent, dataJson: JsonText): void {
    this.#recent.push(event);
    this.#recentBytes += event.text.length;
    this.#unsaved.push({ seq: event.seq, eventId: event.id, event: event.event, dataJson });
    // At once after a pause, so that a crash loses next to nothing; gathered when they come thick and fast.
    const isQuiet = performance.now() - this.#flushedAtMs > FLUSH_DELAY_MS;
    if (isQuiet || this.#unsaved.length >= FLUSH_EVENT_COUNT) this.#flush();
    else this.#flushTimer ??= setTimeout(() => this.#flush(), FLUSH_DELAY_MS);
  }

  #flush(): void {
    if (this.#flushTimer !== null) clearTimeout(this.#flushTimer);
    this.#flushTimer = null;
    if (this.#unsaved.length === 0) return;
    this.#flushedAtMs = performance.now();
    const batch = this.#unsaved;
    this.#unsaved = [];
    const { events, clock, log, counters } = this.#settings;
    this.#saving = this.#saving
      .then(() => events.append(this.runId, batch, clock.nowMs() + UNENDED_TTL_MS))
      .then(
        () => undefined,
        (error: unknown) => {
          counters.add('stream_events_lost', batch.length);
          log.error({ err: error, runId: this.runId }, 'events of a run could not be kept for replay');
        },
      )
      // Whether or not it worked: memory is bounded, and who asks for a lost event is told.
      .then(() => this.#forgetUpTo(batch[batch.length - 1]?.seq ?? -1));
  }

  async #readStore(): Promise<void> {
    while (this.#hasNews && !this.#isHere && !this.#isClosed) {
      this.#hasNews = false;
      let seenSeq = Infinity;
      for (const reader of this.#readers) seenSeq = Math.min(seenSeq, reader.lastSeq);
      if (seenSeq === Infinity) return;
      const rows = await this.#settings.events.after(this.runId, seenSeq, REPLAY_BATCH_COUNT);
      for (const row of rows) for (const reader of this.#readers) reader.offer(storedEvent(row));
      if (rows.length === REPLAY_BATCH_COUNT) this.#hasNews = true;
    }
  }

  /** Only what was given to the store may leave the memory. */
  #forgetUpTo(savedSeq: number): void {
    let dropCount = 0;
    for (const event of this.#recent) {
      if (this.#recentBytes <= RECENT_BYTES || event.seq > savedSeq) break;
      this.#recentBytes -= event.text.length;
      dropCount++;
    }
    if (dropCount > 0) this.#recent = this.#recent.slice(dropCount);
  }
}

/** A reader of a thread hears the events of all its runs. */
export interface ThreadReader {
  runEvent(runId: string, event: StreamEvent): void;
}

function storedEvent({ seq, eventId, event, dataJson }: RunEvent): StreamEvent {
  return { seq, id: eventId, event, dataJson, text: encodeEvent(event, dataJson, eventId) };
}

/** Sends the next stored events; the last sequence number sent, or null when there is nothing more. */
async function sendStored(
  events: RunEventRepository,
  runId: string,
  reader: StreamReader,
  afterSeq: number,
): Promise<number | null> {
  const rows = await events.after(runId, afterSeq, REPLAY_BATCH_COUNT);
  for (const row of rows) {
    await reader.room();
    reader.offer(storedEvent(row));
  }
  return rows[rows.length - 1]?.seq ?? null;
}

/** The whole stream of a run that has ended, as far as it is kept. */
export async function replayEnded(
  events: RunEventRepository,
  runId: string,
  reader: StreamReader,
  afterSeq: number,
): Promise<void> {
  reader.skipTo(afterSeq);
  let cursor: number | null = afterSeq;
  while (cursor !== null && reader.isOpen) cursor = await sendStored(events, runId, reader, cursor);
  reader.end();
}

/** What the column of the store holds. */
export const MAX_SEQ = 2 ** 31 - 1;

/** Sequence number behind a `Last-Event-ID`; −1 (from the beginning) for anything that is not one of our ids. */
export function seqOf(lastEventId: string): number {
  const seq = Number(/^\d+-(\d{1,10})$/.exec(lastEventId)?.[1] ?? NaN);
  return seq <= MAX_SEQ ? seq : -1;
}
