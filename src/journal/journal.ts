/**
 * Durable acknowledgement: an {@link Intake} that answers "accepted" only when the body is on disk, and keeps it there
 * until every record made of it has been settled. Main thread; the disk is the journal thread's (thread.ts).
 *
 * A body is decoded while it is written, and answered when both are done; whichever refuses it answers at once. While a
 * group of bodies is being flushed the next one gathers, so one flush serves all that wait for it. A large body (over
 * {@link LARGE_BYTES}) is written from its own buffer and decoded after that.
 *
 * Segments go when they are full, or nothing came for a while, and all their bodies have been settled. After a crash what
 * the folder holds is decoded once more (replay.ts): ids follow from the spans', so what had been delivered is recognised.
 *
 * Full, or the disk fails or stands still: bodies are answered busy, and `reasons` says why. Whatever failed half-way was
 * not acknowledged. Stop: {@link Journal.quiesce} before the decode pool ends, {@link Journal.stop} after the shippers.
 *
 * Who writes was measured, main thread's CPU for a group of 170 kB (of 1 MB): a thread that blocks 36 to 49 µs (44 to 59),
 * `fs.write` and `fs.fdatasync` of the main thread 62 to 82 µs (205 to 211), since the checksums come on top. Waiting
 * for the disk takes the same time both ways.
 */
import type { Counters } from '../core/counters.ts';
import type { Intake, IntakeBody } from '../core/intake.ts';
import type { Clock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import { Fault, type Admission } from '../core/outcome.ts';
import { MiB, SECOND_MS } from '../core/units.ts';
import type { DeadBodies } from './deadbody.ts';
import { frameHeadBytes } from './frame.ts';
import { CHUNK_BYTES, Entry, Group } from './group.ts';
import type { Chunk, Failure, FromJournal, JournalWorkerData } from './message.ts';
import { JournalThread, type JournalWorker } from './owner.ts';
import type { ReplayNote } from './note.ts';
import { Replay } from './replay.ts';
import type { Segment } from './segment.ts';
import { Segments } from './segments.ts';

export interface JournalSettings {
  /** Absolute. */
  readonly folder: string;
  /** Starts the thread that owns the disk: `workers/journal.ts`. */
  startThread(data: JournalWorkerData): JournalWorker;
  /** Of all segments. */
  readonly maxBytes: number;
  /** Of one segment; a part of `maxBytes` without it. */
  readonly segmentBytes?: number;
}

export interface JournalLinks {
  /** Decodes bodies. Its `settle` must not come from within `submit`. */
  readonly intake: Intake;
  readonly counters: Counters;
  readonly clock: Clock;
  readonly log: Log;
  readonly deadBodies: DeadBodies;
}

export interface Journal extends Intake {
  /** Takes the folder; rejects with one readable line. Bodies are taken from then on. */
  start(): Promise<void>;
  /** Decodes what earlier processes left behind, from now on. */
  replay(): void;
  /** Pairs of a body's number and how many of its records are settled, in any order, also before the body's answer. */
  settled(pairs: Uint32Array): void;
  /**
   * Records were lost on their way: decodes every body again that is not settled altogether. `suspectSource` (0: none) is
   * the number of the one of which an uploading thread may have died; when two did, it is kept among the dead letters
   * instead.
   */
  startOver(suspectSource?: number): void;
  /** Ends replaying. */
  quiesce(): void;
  /** Ends the thread, after the last segments that are settled have been removed. Nobody must be waiting any more. */
  stop(): Promise<void>;
  /** Why bodies are not taken; empty when they are. */
  reasons(): string[];
  readonly bytes: number;
  readonly liveBodyCount: number;
  readonly replayBytes: number;
}

/** Of one segment: the unit in which disk is given back. */
const MAX_SEGMENT_BYTES = 32 * MiB;
const SEGMENTS_PER_LIMIT = 16;
/** A body larger than a chunk has room for travels in its own buffer. */
const LARGE_BYTES = CHUNK_BYTES - 8192;
/** For reuse; as many as a few groups take. */
const SPARE_COUNT = 16;
const WATCH_MS = SECOND_MS;
/** Looks, so that a clock that jumps is no reason. An open segment whose bodies are all settled goes after so many. */
const IDLE_LOOKS = 2;
/** How many a flush may take before those who wait are told to come again; clients wait 10 s. */
const STALL_LOOKS = 5;
const RETRY_AFTER_MS = SECOND_MS;

interface Trouble {
  readonly failure: Failure;
  /** A probe has been sent and not answered. */
  isProbing: boolean;
}

export function createJournal(settings: JournalSettings, links: JournalLinks): Journal {
  return new DiskJournal(settings, links);
}

class DiskJournal implements Journal {
  readonly #settings: JournalSettings;
  readonly #links: JournalLinks;
  readonly #thread: JournalThread;
  readonly #segments: Segments;
  readonly #replay: Replay;
  #state: 'new' | 'open' | 'stopped' = 'new';
  #started: { resolve: () => void; reject: (error: Error) => void } | null = null;
  /** Found at the start. */
  #inherited: Segment[] = [];
  #lastGroup = 0;
  #gathering: Group | null = null;
  /** Complete, waiting for their turn: where one segment ends and the next begins. */
  readonly #queue: Group[] = [];
  #writing: { group: Group; sinceMs: number; lookCount: number } | null = null;
  readonly #spares: ArrayBuffer[] = [];
  #flushScheduled = false;
  #trouble: Trouble | null = null;
  /** Of the last body that there was no room for. */
  #refusedBytes = 0;
  readonly #removing = new Set<Segment>();
  /** Could not be removed: tried again. */
  #unremovable: Segment[] = [];
  /** Since the last body came. */
  #idleLookCount = 0;
  #watch: NodeJS.Timeout | null = null;

  constructor(settings: JournalSettings, links: JournalLinks) {
    this.#settings = settings;
    this.#links = links;
    const usual = Math.min(MAX_SEGMENT_BYTES, Math.floor(settings.maxBytes / SEGMENTS_PER_LIMIT));
    this.#segments = new Segments(settings.segmentBytes ?? usual);
    this.#thread = new JournalThread(() => settings.startThread({ folder: settings.folder }), {
      clock: links.clock,
      onMessage: (message) => this.#hear(message),
      onDeath: (reason) => this.#threadDied(reason),
    });
    this.#replay = new Replay({
      ...links,
      tell: (message) => this.#thread.tell(message),
      laterId: (segment) => this.#segments.laterId(segment),
      onDone: (segment) => this.#removeIfSettled(segment),
    });
  }

  get bytes(): number {
    return this.#segments.bytes;
  }

  get liveBodyCount(): number {
    return this.#segments.liveBodyCount;
  }

  get replayBytes(): number {
    return this.#replay.bytes;
  }

  async start(): Promise<void> {
    await this.#replay.lookForDead();
    await new Promise<void>((resolve, reject) => {
      this.#started = { resolve, reject };
      this.#thread.start();
    });
  }

  replay(): void {
    this.#replay.add(this.#inherited.splice(0));
  }

  submit(body: IntakeBody, bytes: Uint8Array): void {
    const headBytes = frameHeadBytes(body);
    if (this.#turnsAway(body, headBytes + bytes.length)) return;
    if (bytes.length > LARGE_BYTES) {
      this.#addLarge(body, headBytes, Uint8Array.from(bytes).buffer, bytes.length);
      return;
    }
    this.#links.intake.submit(this.#addSmall(body, headBytes, bytes), bytes);
  }

  submitOwned(body: IntakeBody, buffer: ArrayBuffer, lengthBytes: number): void {
    const headBytes = frameHeadBytes(body);
    if (this.#turnsAway(body, headBytes + lengthBytes)) return;
    if (lengthBytes > LARGE_BYTES) {
      this.#addLarge(body, headBytes, buffer, lengthBytes);
      return;
    }
    const entry = this.#addSmall(body, headBytes, new Uint8Array(buffer, 0, lengthBytes));
    this.#links.intake.submitOwned(entry, buffer, lengthBytes);
  }

  settled(pairs: Uint32Array): void {
    for (let i = 0; i < pairs.length; i += 2) {
      const source = pairs[i] ?? 0;
      const segment = this.#segments.find(source);
      if (segment === undefined) continue;
      const index = Segments.indexOf(source);
      // A number from before the body was decoded once more does not count.
      if (segment.sourceOf(index) !== source) continue;
      segment.settle(index, pairs[i + 1] ?? 0);
      this.#removeIfSettled(segment);
    }
  }

  startOver(suspectSource = 0): void {
    this.#accuse(suspectSource);
    this.#sealGathering();
    this.#segments.seal();
    const needed = [...this.#segments.all].filter((segment) => !this.#inherited.includes(segment));
    // What is not written yet cannot be read.
    this.#whenWritten(() => {
      const again = needed.filter((segment) => segment.liveCount > 0 || this.#replay.has(segment));
      for (const segment of again) this.#segments.startOver(segment);
      this.#replay.add(again);
      for (const segment of needed) this.#removeIfSettled(segment);
    });
  }

  #accuse(source: number): void {
    const segment = source === 0 ? undefined : this.#segments.findEver(source);
    const index = Segments.indexOf(source);
    if (segment?.isLive(index) !== true || !this.#replay.accuse(segment, index)) return;
    this.#links.counters.add('bodies_set_aside');
    this.#links.log.error({ segment: segment.number, index }, 'a body that uploading threads die of was set aside');
  }

  quiesce(): void {
    this.#replay.stop();
  }

  async stop(): Promise<void> {
    if (this.#state === 'stopped') return;
    this.#state = 'stopped';
    if (this.#watch !== null) clearInterval(this.#watch);
    this.#replay.stop();
    const open = this.#segments.seal();
    if (open !== null) this.#removeIfSettled(open);
    await this.#thread.stop();
  }

  reasons(): string[] {
    if (this.#state !== 'open') return [];
    const reasons: string[] = [];
    if (this.#trouble !== null) reasons.push(`journal_unwritable: ${this.#trouble.failure.message}`);
    if (this.#refusedBytes > 0 && !this.#hasRoom(this.#refusedBytes)) {
      reasons.push(`journal_full: ${this.#segments.bytes} of ${this.#settings.maxBytes} bytes are in use`);
    }
    return reasons;
  }

  #hasRoom(bytes: number): boolean {
    return this.#segments.bytes + bytes <= this.#settings.maxBytes;
  }

  #turnsAway(body: IntakeBody, frameBytes: number): boolean {
    let answer: Admission | null = null;
    if (this.#state !== 'open') {
      answer = busy(this.#state === 'new' ? 'starting' : 'draining', 'the journal is not open');
    } else if (this.#trouble !== null) {
      answer = unwritable(this.#trouble.failure);
    } else if (!this.#hasRoom(frameBytes)) {
      this.#refusedBytes = frameBytes;
      answer = busy('journal-full', 'the journal has reached JOURNAL_MAX_BYTES');
    }
    if (answer === null) {
      this.#refusedBytes = 0;
      return false;
    }
    const admission = answer;
    queueMicrotask(() => body.settle(admission));
    return true;
  }

  #addSmall(body: IntakeBody, headBytes: number, bytes: Uint8Array): Entry {
    const entry = this.#enter(body, headBytes + bytes.length);
    this.#groupOf(entry).addCopied(entry, headBytes, bytes);
    this.#kick();
    return entry;
  }

  #addLarge(body: IntakeBody, headBytes: number, buffer: ArrayBuffer, lengthBytes: number): void {
    const entry = this.#enter(body, headBytes + lengthBytes);
    this.#groupOf(entry).addOwned(entry, headBytes, buffer, lengthBytes);
    this.#kick();
  }

  #enter(body: IntakeBody, frameBytes: number): Entry {
    const before = this.#segments.open;
    const segment = this.#segments.openFor(frameBytes);
    if (before !== null && before !== segment) this.#removeIfSettled(before);
    this.#idleLookCount = 0;
    const index = this.#segments.add(segment, frameBytes);
    return new Entry(body, segment, index, (entry, admission) => this.#decoded(entry, admission));
  }

  #groupOf({ segment }: Entry): Group {
    if (this.#gathering !== null && this.#gathering.segment !== segment) this.#sealGathering();
    this.#gathering ??= new Group(++this.#lastGroup, segment, () => this.#spares.pop() ?? new ArrayBuffer(CHUNK_BYTES));
    return this.#gathering;
  }

  #sealGathering(): void {
    if (this.#gathering !== null) this.#queue.push(this.#gathering);
    this.#gathering = null;
  }

  /** By the end of the event loop's turn: what arrived together is written together. */
  #kick(): void {
    if (this.#flushScheduled || this.#writing !== null) return;
    this.#flushScheduled = true;
    setImmediate(() => {
      this.#flushScheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#writing !== null || this.#trouble !== null) return;
    if (this.#queue.length === 0) this.#sealGathering();
    const group = this.#queue.shift();
    if (group === undefined) return;
    this.#writing = { group, sinceMs: this.#links.clock.nowMs(), lookCount: 0 };
    const { number, segment, chunks } = group;
    const buffers = chunks.flatMap(({ frames, body }) => (body === null ? [frames] : [frames, body]));
    this.#thread.tell({ kind: 'append', segment: segment.number, group: number, chunks }, buffers);
  }

  /** Calls when all groups that there are now have been written, or given up. */
  #whenWritten(call: () => void): void {
    const last = this.#queue.at(-1) ?? this.#writing?.group;
    if (last === undefined) call();
    else last.onOver.push(call);
    this.#flush();
  }

  #decoded(entry: Entry, admission: Admission): void {
    const { segment, index } = entry;
    entry.admission = admission;
    if (admission.kind === 'accepted' && admission.acceptedCount > 0) {
      if (segment.id === entry.id) segment.answered(index, admission.acceptedCount);
      if (entry.answered) this.#countDisavowed(admission.acceptedCount);
      if (entry.committed) entry.answer(admission);
    } else {
      segment.drop(index);
      // Nothing that could be lost.
      entry.answer(admission);
    }
    this.#removeIfSettled(segment);
  }

  #hear(message: FromJournal): void {
    switch (message.kind) {
      case 'ready':
        return this.#ready(message.segments, message.note);
      case 'unusable':
        this.#started?.reject(new Error(`journal: ${message.message}`));
        this.#started = null;
        return; // the thread ends, and the next one tries again
      case 'committed':
        return this.#committed(message.group, message.chunks);
      case 'failed':
        return this.#failed(message.group, message.failure);
      case 'read':
        return this.#replay.took(message);
      case 'unreadable':
        return this.#replay.failed(message.segment, message.failure);
      case 'noted':
        return this.#replay.noted(message.note, message.failure);
      case 'removed': {
        const segment = this.#segments.byNumber(message.segment);
        if (segment === undefined) return;
        this.#removing.delete(segment);
        this.#segments.remove(segment);
        return;
      }
      case 'unremovable':
        return this.#notRemoved(message.segment, message.failure);
      case 'probed':
        return this.#probed(message.failure);
      case 'closed':
        if (message.failure !== null) this.#tellFailure(message.failure, 'the journal could not be closed');
        return;
    }
  }

  #notRemoved(number: number, failure: Failure): void {
    this.#tellFailure(failure, 'a segment of the journal could not be removed: it is tried again');
    const segment = this.#segments.byNumber(number);
    if (segment === undefined) return;
    this.#removing.delete(segment);
    this.#unremovable.push(segment);
  }

  #tellFailure(failure: Failure, what: string): void {
    this.#links.counters.add('journal_failures');
    this.#links.log.error({ ...failure }, what);
  }

  #ready(segments: readonly { number: number; bytes: number }[], note: ReplayNote | null): void {
    if (this.#started === null) {
      // A successor: the segments are known.
      for (const segment of this.#removing) this.#thread.tell({ kind: 'remove', segment: segment.number });
      this.#replay.askAgain();
      this.#recover();
      return;
    }
    this.#inherited = segments.map(({ number, bytes }) => this.#segments.adopt(number, bytes));
    if (note !== null) this.#replay.suspect(note);
    this.#state = 'open';
    this.#watch = setInterval(() => this.#look(), WATCH_MS).unref();
    this.#started.resolve();
    this.#started = null;
  }

  #committed(number: number, chunks: readonly Chunk[]): void {
    const { group } = this.#endWriting(number);
    for (const { frames } of chunks) if (this.#spares.length < SPARE_COUNT) this.#spares.push(frames);
    if (this.#trouble !== null && !this.#trouble.isProbing) this.#recover();
    const { counters, intake } = this.#links;
    counters.add('journal_commits');
    counters.add('journal_bodies', group.entries.length);
    let large = 0;
    for (const entry of group.entries) {
      entry.committed = true;
      if (entry.admission !== null) entry.answer(entry.admission);
    }
    for (const { chunk, entry } of group.larges) {
      const { body, bodyBytes } = chunks[chunk] ?? {};
      if (body === undefined || body === null) throw new Fault('a large body did not come back');
      counters.add('journal_bytes', bodyBytes);
      large++;
      if (entry.answered) entry.segment.drop(entry.index);
      else intake.submitOwned(entry, body, bodyBytes ?? 0);
    }
    counters.add(
      'journal_bytes',
      chunks.reduce((sum, chunk) => sum + chunk.usedBytes, 0),
    );
    if (large > 0) this.#removeIfSettled(group.segment);
    for (const call of group.onOver) call();
    this.#flush();
  }

  #endWriting(number: number): { group: Group } {
    const writing = this.#writing;
    if (writing?.group.number !== number) throw new Fault(`group ${number} is not the one that is being written`);
    this.#writing = null;
    const seconds = (this.#links.clock.nowMs() - writing.sinceMs) / SECOND_MS;
    this.#links.counters.observe('journal_commit_seconds', Math.max(0, seconds));
    return writing;
  }

  #failed(number: number, failure: Failure): void {
    const { group } = this.#endWriting(number);
    this.#giveUp(group, failure);
    this.#troubled(failure);
  }

  /** None of these bodies was acknowledged, nor will be. */
  #giveUp(group: Group, failure: Failure): void {
    for (const entry of group.entries) {
      entry.segment.drop(entry.index);
      this.#disavow(entry, failure);
    }
    this.#removeIfSettled(group.segment);
    for (const call of group.onOver) call();
  }

  /** Its sender is to send it again. */
  #disavow(entry: Entry, failure: Failure): void {
    if (entry.admission?.kind === 'accepted' && !entry.answered) this.#countDisavowed(entry.admission.acceptedCount);
    entry.answer(unwritable(failure));
  }

  #countDisavowed(spanCount: number): void {
    this.#links.counters.add('records_unacknowledged', spanCount);
    this.#links.counters.add('spans_put_off', spanCount);
  }

  /** The disk does not take what it should: until a probe says otherwise, nothing is taken here. */
  #troubled(failure: Failure): void {
    this.#tellFailure(failure, 'the journal cannot be written: requests are answered 503');
    this.#trouble ??= { failure, isProbing: false };
    this.#trouble = { failure, isProbing: this.#trouble.isProbing };
    const open = this.#segments.seal();
    this.#sealGathering();
    for (const group of this.#queue.splice(0)) this.#giveUp(group, failure);
    if (open !== null) this.#removeIfSettled(open);
  }

  #recover(): void {
    if (this.#trouble !== null) this.#links.log.info({}, 'the journal can be written again');
    this.#trouble = null;
    this.#flush();
  }

  #probed(failure: Failure | null): void {
    if (this.#trouble === null) return;
    if (failure === null) this.#recover();
    else this.#trouble = { failure, isProbing: false };
  }

  #threadDied(reason: string): void {
    if (this.#started !== null) {
      this.#started.reject(new Error(`journal: ${reason}`));
      this.#started = null;
    }
    const failure = { code: '', message: `the journal thread died: ${reason.split('\n', 1)[0]}` };
    const writing = this.#writing;
    this.#writing = null;
    if (writing !== null) this.#giveUp(writing.group, failure);
    this.#troubled(failure);
    // Its successor's `ready` is the end of it.
    if (this.#trouble !== null) this.#trouble.isProbing = true;
  }

  /** Once a second. */
  #look(): void {
    const writing = this.#writing;
    if (writing !== null && ++writing.lookCount > STALL_LOOKS && this.#trouble === null) {
      const stallMs = STALL_LOOKS * WATCH_MS;
      const failure = { code: '', message: `the disk has not answered for ${stallMs / SECOND_MS} s` };
      this.#troubled(failure);
      // What is being written may get there: its bodies are followed as ever, but their senders are not kept waiting.
      for (const entry of writing.group.entries) this.#disavow(entry, failure);
    }
    if (this.#trouble !== null && this.#writing === null && !this.#trouble.isProbing) {
      this.#trouble.isProbing = true;
      this.#thread.tell({ kind: 'probe' });
    }
    const { open } = this.#segments;
    const isIdle = ++this.#idleLookCount > IDLE_LOOKS && this.#gathering === null;
    if (open !== null && open.liveCount === 0 && isIdle) {
      this.#segments.seal();
      this.#removeIfSettled(open);
    }
    for (const segment of this.#unremovable.splice(0)) this.#removeIfSettled(segment);
  }

  #removeIfSettled(segment: Segment): void {
    if (!segment.sealed || segment.liveCount > 0 || this.#removing.has(segment)) return;
    // What has not been read yet may be needed.
    if (this.#replay.has(segment) || this.#inherited.includes(segment)) return;
    if (this.#segments.byNumber(segment.number) !== segment) return;
    this.#removing.add(segment);
    this.#thread.tell({ kind: 'remove', segment: segment.number });
  }
}

function busy(code: 'starting' | 'draining' | 'journal-full' | 'storage-unavailable', message: string): Admission {
  return { kind: 'busy', code, message, retryAfterMs: RETRY_AFTER_MS };
}

function unwritable(failure: Failure): Admission {
  return busy('storage-unavailable', `the journal cannot be written: ${failure.message}`);
}
