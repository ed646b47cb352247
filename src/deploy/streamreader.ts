/**
 * One client that reads events as `text/event-stream`. In: events, already encoded. Out: bytes on its socket. It owns its sink.
 * Full: a client that is further behind than its limit is told so by an `error` event and cut; nobody waits for it. It may be
 * made before its socket is there: until then it holds what it was offered, within the same limit.
 */
import type { Counters } from '../core/counters.ts';
import type { HttpSink } from '../core/http.ts';
import type { Pulse } from './pulse.ts';

/** An event of a run, encoded once for all its readers. */
export interface StreamEvent {
  readonly seq: number;
  /** `<ms>-<seq>`: rises also across a restart of the server. */
  readonly id: string;
  /** `values`, `updates|agent:…`, `messages/partial`, … */
  readonly event: string;
  readonly dataJson: string;
  readonly text: string;
}

export interface ReaderSettings {
  pulse: Pulse;
  maxBufferedBytes: number;
  counters: Counters;
}

const CUT_GRACE_MS = 10_000;

/** A bare comment line: with a blank line after it, the published clients would report an event without a name. */
const HEARTBEAT = ': heartbeat\n';

export function encodeEvent(event: string, dataJson: string, id: string | null): string {
  const name = event.replace(/[\r\n]/g, ' ');
  return id === null ? `event: ${name}\ndata: ${dataJson}\n\n` : `event: ${name}\ndata: ${dataJson}\nid: ${id}\n\n`;
}

export class StreamReader {
  readonly #settings: ReaderSettings;
  readonly #modes: ReadonlySet<string> | null;
  #sink: HttpSink | null = null;
  #held: string[] = [];
  #heldBytes = 0;
  #lastSeq = -1;
  #wroteSinceBeat = false;
  #state: 'open' | 'ended' | 'aborted' = 'open';
  readonly #leave: (() => void)[] = [];
  #drained: (() => void)[] = [];

  /** `modes`: the requested stream modes to pass on; null for all. */
  constructor(settings: ReaderSettings, modes: ReadonlySet<string> | null) {
    this.#settings = settings;
    this.#modes = modes;
  }

  get isOpen(): boolean {
    return this.#state === 'open' && this.#sink?.closed !== true;
  }

  /** Called once when the reader is done with or gone. */
  onLeave(leave: () => void): void {
    this.#leave.push(leave);
  }

  attach(sink: HttpSink): void {
    this.#sink = sink;
    // The head goes out with the first byte. An empty line before the first event says nothing to anybody.
    if (this.#held.length === 0 && this.#state === 'open') sink.write('\n');
    for (const text of this.#held) sink.write(text);
    this.#held = [];
    if (this.#state !== 'open') {
      if (this.#state === 'ended') sink.end();
      else sink.abort();
      return;
    }
    sink.onDrain(() => this.#wakeDrained());
    this.#wakeDrained();
    this.#settings.pulse.join(this.#beat);
  }

  /** The newest event of its run that it was offered. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** The client has the events up to this one. */
  skipTo(seq: number): void {
    this.#lastSeq = Math.max(this.#lastSeq, seq);
  }

  /** Live and stored events of one run overlap where a run goes on in another place: each is taken once. */
  offer(event: StreamEvent): void {
    if (event.seq <= this.#lastSeq) return;
    this.#lastSeq = event.seq;
    if (this.#wants(event.event)) this.write(event.text);
  }

  write(text: string): void {
    if (this.#state !== 'open') return;
    // One event may be larger than the limit; what counts is what lies before it.
    if (this.#bufferedBytes > this.#settings.maxBufferedBytes) return this.cut();
    const sink = this.#sink;
    if (sink === null) {
      this.#held.push(text);
      this.#heldBytes += text.length;
      return;
    }
    this.#wroteSinceBeat = true;
    sink.write(text);
  }

  /** Whether the client keeps up so well that it can be given something from the past as well. */
  get hasRoom(): boolean {
    return this.#sink !== null && this.#bufferedBytes <= this.#settings.maxBufferedBytes / 2;
  }

  /** Resolves when there is room, or the client is gone; replay waits here, live events never do. */
  async room(): Promise<void> {
    while (this.isOpen && !this.hasRoom) await new Promise<void>((resolve) => this.#drained.push(resolve));
  }

  get #bufferedBytes(): number {
    return this.#sink === null ? this.#heldBytes : this.#sink.bufferedBytes;
  }

  /** The stream is complete. */
  end(): void {
    if (!this.#close('ended')) return;
    this.#sink?.end();
  }

  /** The stream is not complete: the client must see a broken connection, and may come back. */
  abort(): void {
    if (!this.#close('aborted')) return;
    this.#sink?.abort();
  }

  /** The client is gone. False when the stream had come to its end before. */
  detach(): boolean {
    return this.#close('aborted');
  }

  #wants(event: string): boolean {
    if (this.#modes === null) return true;
    const name = event.split('|', 1)[0] ?? event;
    if (name === 'metadata' || name === 'error') return true;
    // `messages/partial` is of mode `messages`; plain `messages` of mode `messages-tuple`.
    if (name === 'messages') return this.#modes.has('messages-tuple') || this.#modes.has('messages');
    return this.#modes.has(name.split('/', 1)[0] ?? name);
  }

  /** Ends the stream with an `error` event. */
  fail(error: string, message: string): void {
    const text = encodeEvent('error', JSON.stringify({ error, message }), null);
    if (this.#sink === null) this.#held.push(text);
    else this.#sink.write(text);
    this.end();
  }

  /** Tells the client that it is too far behind, and ends. */
  cut(): void {
    if (this.#state !== 'open') return;
    this.#settings.counters.add('stream_readers_cut');
    const sink = this.#sink;
    // What it has not taken by now is given up.
    this.#held = [];
    this.fail('SlowReader', 'The client reads too slowly; events were not kept for it.');
    if (sink === null) return;
    // A client that has stopped reading altogether would hold its memory for good.
    setTimeout(() => {
      if (!sink.closed) sink.abort();
    }, CUT_GRACE_MS).unref();
  }

  #close(state: 'ended' | 'aborted'): boolean {
    if (this.#state !== 'open') return false;
    this.#state = state;
    this.#settings.pulse.leave(this.#beat);
    this.#wakeDrained();
    for (const leave of this.#leave) leave();
    return true;
  }

  #wakeDrained(): void {
    const waiting = this.#drained;
    this.#drained = [];
    for (const resolve of waiting) resolve();
  }

  readonly #beat = (): void => {
    if (!this.#wroteSinceBeat) this.#sink?.write(HEARTBEAT);
    this.#wroteSinceBeat = false;
  };
}
