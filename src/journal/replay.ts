/**
 * Decodes bodies of the journal again: those of an earlier process at the start, and those whose records died with a
 * shipper. Beside new traffic, a task's worth at a time: the next one is read when every body of the last has been
 * answered. What the pipeline has no room for is read again a little later, so that nothing is kept in memory meanwhile,
 * and decoded under another number: records of a part of it may be on their way under the one before.
 *
 * A body that is refused may be one whose sender was told so; that is not known any more, so it is kept among the dead
 * letters.
 *
 * What is at hand is noted on disk (note.ts). Bodies that were at hand when an earlier process ended, by whatever, travel
 * alone, each under a note of its own; one with which {@link MAX_DEATHS} processes ended is not decoded any more but kept
 * among the dead letters too. That a process was merely killed is not known, hence the repetition; that it happens twice
 * within the few milliseconds of the same body is not expected.
 *
 * A segment that cannot be read is tried again from time to time, and one of another version left alone: neither is removed.
 */
import type { Counters } from '../core/counters.ts';
import type { BodyCoding, BodyEncoding, Intake, IntakeBody } from '../core/intake.ts';
import type { Clock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import type { Admission } from '../core/outcome.ts';
import { SECOND_MS } from '../core/units.ts';
import { hashOf, type DeadBodies } from './deadbody.ts';
import { readFrame, type Frame } from './frame.ts';
import type { Failure, ReadFrames, ToJournal } from './message.ts';
import type { ReplayNote } from './note.ts';
import type { Segment } from './segment.ts';

export interface ReplayLinks {
  readonly intake: Intake;
  readonly counters: Counters;
  readonly clock: Clock;
  readonly log: Log;
  tell(message: ToJournal): void;
  readonly deadBodies: DeadBodies;
  /** An id for bodies of the segment that are decoded once more. */
  laterId(segment: Segment): number;
  /** Everything that is needed of the segment has been decoded. */
  onDone(segment: Segment): void;
}

/** After the pipeline had no room. */
const RETRY_MS = SECOND_MS / 2;
/** Of segments that could not be read. */
const UNREADABLE_RETRY_MS = 5 * SECOND_MS;
/** Processes, or uploading threads, that a body may cost. */
const MAX_DEATHS = 2;
const DEADLY_REASON = 'two processes ended while this body was decoded again';
const POISON_REASON = 'two uploading threads died of this body';

/** A body of the chunk at hand, and the buffer that is its own, if there is one. */
interface ReadBody {
  readonly frame: Frame;
  readonly bytes: Uint8Array;
  readonly owned: ArrayBuffer | null;
}

export class Replay {
  readonly #links: ReplayLinks;
  /** Waiting; the first is at work. */
  readonly #queue: Segment[] = [];
  /** Of the segment at work: where the chunk at hand begins, and where the one behind it does (-1: there is none). */
  #offset = 0;
  #next = -1;
  #isReading = false;
  /** The segment at work begins again when what is in hand has been answered. */
  #mustRestart = false;
  #inHandCount = 0;
  #mustRepeat = false;
  /** What an earlier process had at hand when it ended; null once that is through. */
  #suspicion: ReplayNote | null = null;
  /** Bodies of the chunk at hand that are still to be decoded one at a time. */
  #alone: ReadBody[] = [];
  /** Of these the one whose note is being written. */
  #noting: { readonly body: ReadBody; readonly note: ReplayNote } | null = null;
  #hasNote = false;
  /** Of bodies that an earlier process set aside. */
  #deadHashes: ReadonlySet<string> = new Set();
  /** To be read again later. */
  #unreadable: Segment[] = [];
  readonly #foreign = new Set<Segment>();
  /** Bodies of the chunk at hand that were refused, and why. */
  readonly #refused = new Map<number, string>();
  /** Bodies of the segment at work that were put off, and the id that they get this time; null until one is needed. */
  readonly #putOff = new Set<number>();
  #laterId: number | null = null;
  /** Uploading threads that died with a record of a body in hand: by segment, then by body. */
  readonly #threadDeaths = new WeakMap<Segment, Map<number, number>>();
  readonly #stop = new AbortController();

  constructor(links: ReplayLinks) {
    this.#links = links;
  }

  /** Bytes of segments that are not through. */
  get bytes(): number {
    return [...this.#queue, ...this.#unreadable].reduce((sum, segment) => sum + segment.bytes, 0);
  }

  get isIdle(): boolean {
    return this.#queue.length === 0;
  }

  /** It is not through, or never will be. */
  has(segment: Segment): boolean {
    return this.#queue.includes(segment) || this.#unreadable.includes(segment) || this.#foreign.has(segment);
  }

  /** What the last process left behind: it ended while that was at hand. Before anything is added. */
  suspect(note: ReplayNote): void {
    this.#suspicion = note;
    this.#links.log.warn(
      { ...note },
      'a process ended while bodies of the journal were decoded again: now one at a time',
    );
  }

  /** What earlier processes set aside is not decoded again, though it is still in its segment. Before anything is added. */
  async lookForDead(): Promise<void> {
    try {
      this.#deadHashes = await this.#links.deadBodies.hashes();
    } catch (error) {
      this.#links.log.error({ err: error }, 'dead letters cannot be listed: bodies among them are decoded again');
    }
  }

  /** Oldest first. A segment that is at work begins again. */
  add(segments: readonly Segment[]): void {
    const wasIdle = this.isIdle;
    for (const segment of segments) {
      if (this.#foreign.has(segment)) continue;
      this.#unreadable = this.#unreadable.filter((other) => other !== segment);
      if (!this.#queue.includes(segment)) this.#queue.push(segment);
      else if (segment === this.#queue[0]) this.#mustRestart = true;
    }
    if (wasIdle) this.#begin();
  }

  /** A thread died with a record of this body in hand. True: that is the end of it, it is going to be set aside. */
  accuse(segment: Segment, index: number): boolean {
    const counts = this.#threadDeaths.get(segment) ?? new Map<number, number>();
    this.#threadDeaths.set(segment, counts);
    const deathCount = (counts.get(index) ?? 0) + 1;
    counts.set(index, deathCount);
    return deathCount === MAX_DEATHS;
  }

  /** No more bodies from here on. */
  stop(): void {
    this.#stop.abort();
    this.#forgetNote();
  }

  /** The thread that was asked is gone. */
  askAgain(): void {
    if (this.#isReading) this.#read();
    else if (this.#noting !== null) this.#links.tell({ kind: 'note', note: this.#noting.note });
  }

  noted(note: ReplayNote | null, failure: Failure | null): void {
    this.#tellNoteFailure(failure);
    const noting = this.#noting;
    const [segment] = this.#queue;
    if (noting === null || noting.note.index !== note?.index || segment === undefined) return;
    this.#noting = null;
    if (this.#stop.signal.aborted) return;
    if (this.#mustRestart) return this.#begin();
    this.#handOn(segment, noting.body);
  }

  took(found: ReadFrames & { readonly noteFailure: Failure | null }): void {
    const [segment] = this.#queue;
    if (!this.#isReading || segment?.number !== found.segment || found.offset !== this.#offset) return;
    this.#isReading = false;
    this.#laterId = null;
    this.#tellNoteFailure(found.noteFailure);
    if (this.#stop.signal.aborted) return;
    if (this.#mustRestart) return this.#begin();
    if (found.isForeign) return this.#leaveAlone(segment);
    this.#tellDamage(segment, found);
    this.#mustRepeat = false;
    const bodies: ReadBody[] = [];
    let frameCount = 0;
    if (found.chunk !== null) {
      const { frames, usedBytes, body, bodyBytes } = found.chunk;
      const bytes = Buffer.from(frames, 0, usedBytes);
      for (let at = 0; at < usedBytes;) {
        const frame = readFrame(bytes, at);
        const isApart = body !== null && frame.bodyAt === usedBytes;
        segment.find(frame.index, frame.bodyAt - at + frame.bodyBytes);
        const own = isApart
          ? new Uint8Array(body, 0, bodyBytes)
          : bytes.subarray(frame.bodyAt, frame.bodyAt + frame.bodyBytes);
        if (segment.isUnanswered(frame.index)) bodies.push({ frame, bytes: own, owned: isApart ? body : null });
        at = frame.bodyAt + (isApart ? 0 : frame.bodyBytes);
        frameCount++;
      }
    }
    this.#next = found.next;
    // Held until all bodies are handed on: some may be answered at once.
    this.#inHandCount = 1;
    if (this.#isSuspected(segment)) {
      // The note of a single body that had no number yet is about that one.
      const [only] = bodies;
      if (frameCount === 1 && only !== undefined && this.#suspicion?.index === -1) {
        this.#suspicion = { ...this.#suspicion, index: only.frame.index };
      }
      this.#alone = bodies;
    } else {
      for (const body of bodies) this.#handOn(segment, body);
    }
    this.#answered();
  }

  /** Its bodies cannot be had now. */
  failed(number: number, failure: Failure): void {
    const [segment] = this.#queue;
    if (segment?.number !== number) return;
    const { clock, counters, log } = this.#links;
    counters.add('journal_failures');
    log.error({ segment: number, ...failure }, 'a segment of the journal cannot be read: it is tried again');
    this.#isReading = false;
    this.#mustRestart = false;
    this.#queue.shift();
    this.#unreadable.push(segment);
    void clock.sleep(UNREADABLE_RETRY_MS, this.#stop.signal).then(() => {
      if (this.#unreadable.includes(segment) && !this.#stop.signal.aborted) this.add([segment]);
    });
    this.#begin();
  }

  #leaveAlone(segment: Segment): void {
    const { counters, log } = this.#links;
    counters.add('journal_segments_foreign');
    log.error({ segment: segment.number }, 'a segment of the journal is of another version: it is left as it is');
    this.#foreign.add(segment);
    this.#queue.shift();
    this.#begin();
  }

  #isSuspected(segment: Segment): boolean {
    return this.#suspicion?.segment === segment.number && this.#suspicion.offset === this.#offset;
  }

  #forgetNote(): void {
    if (this.#hasNote) this.#links.tell({ kind: 'note', note: null });
    this.#hasNote = false;
  }

  #tellNoteFailure(failure: Failure | null): void {
    if (failure === null) return;
    this.#links.counters.add('journal_failures');
    this.#links.log.error({ ...failure }, 'what is decoded again could not be noted');
  }

  #begin(): void {
    const [segment] = this.#queue;
    this.#alone = [];
    this.#noting = null;
    if (segment === undefined) return this.#forgetNote();
    if (this.#stop.signal.aborted) return;
    this.#offset = 0;
    this.#mustRestart = false;
    this.#refused.clear();
    this.#putOff.clear();
    this.#read();
  }

  #read(): void {
    const [segment] = this.#queue;
    if (segment === undefined || this.#stop.signal.aborted) return;
    this.#isReading = true;
    this.#hasNote = true;
    this.#links.tell({ kind: 'read', segment: segment.number, offset: this.#offset });
  }

  /** Of the chunk at hand, when it is suspected. */
  #handOnAlone(segment: Segment, body: ReadBody): void {
    const { index } = body.frame;
    const deathCount = this.#suspicion?.index === index ? this.#suspicion.deathCount + 1 : 0;
    if (deathCount >= MAX_DEATHS) {
      this.#links.counters.add('bodies_set_aside');
      this.#links.log.error({ segment: segment.number, index }, 'a body that processes end with was set aside');
      this.#inHandCount = 1;
      void this.#setAside(segment, body.frame, body.bytes, DEADLY_REASON);
      return;
    }
    this.#noting = { body, note: { segment: segment.number, offset: this.#offset, index, deathCount } };
    this.#links.tell({ kind: 'note', note: this.#noting.note });
  }

  #handOn(segment: Segment, body: ReadBody): void {
    const { frame, bytes } = body;
    this.#inHandCount++;
    const isPoison = (this.#threadDeaths.get(segment)?.get(frame.index) ?? 0) >= MAX_DEATHS;
    const reason = isPoison ? POISON_REASON : this.#refused.get(frame.index);
    const hash = this.#deadHashes.size === 0 ? '' : hashOf(bytes);
    if (reason !== undefined) void this.#setAside(segment, frame, bytes, reason);
    else if (this.#deadHashes.has(hash)) void this.#decodeUnlessDead(segment, body, hash);
    else this.#decode(segment, body);
  }

  async #decodeUnlessDead(segment: Segment, body: ReadBody, hash: string): Promise<void> {
    const { deadBodies, log } = this.#links;
    let isDead = false;
    try {
      isDead = await deadBodies.holds(hash, body.frame.receivedUs);
    } catch (error) {
      log.error({ err: error, hash }, 'a dead letter cannot be read: its body is decoded again');
    }
    // Not under a number that was taken back meanwhile.
    if (this.#mustRestart) return this.#answered();
    if (!isDead) return this.#decode(segment, body);
    segment.drop(body.frame.index);
    this.#answered();
  }

  #decode(segment: Segment, { frame, bytes, owned }: ReadBody): void {
    if (this.#putOff.delete(frame.index)) {
      this.#laterId ??= this.#links.laterId(segment);
      segment.tryAgain(frame.index, this.#laterId);
    }
    const body = new ReplayedBody(segment, frame, (replayed, admission) => this.#settled(replayed, admission));
    if (owned !== null) this.#links.intake.submitOwned(body, owned, bytes.length);
    else this.#links.intake.submit(body, bytes);
  }

  async #setAside(segment: Segment, frame: Frame, bytes: Uint8Array, reason: string): Promise<void> {
    const { encoding, coding, apiKey, project, receivedUs } = frame;
    try {
      const facts = { encoding, coding, apiKey, project, receivedUs, bytes, reason };
      const isKept = await this.#links.deadBodies.keep({ ...facts, hash: hashOf(bytes) });
      if (!isKept) {
        this.#links.counters.add('journal_bodies_lost');
        this.#links.log.error({ reason }, 'a body of the journal cannot be decoded, and there is no room to keep it');
      }
      segment.drop(frame.index);
    } catch (error) {
      this.#mustRepeat = true;
      this.#links.log.error({ err: error, reason }, 'a dead letter could not be written');
    }
    this.#answered();
  }

  #settled(body: ReplayedBody, admission: Admission): void {
    const { segment, index, sourceNumber } = body;
    const isCurrent = segment.sourceOf(index) === sourceNumber;
    switch (admission.kind) {
      case 'busy':
        if (isCurrent) this.#putOff.add(index);
        this.#mustRepeat = true;
        break;
      case 'refused':
        if (admission.code === 'set-aside') {
          segment.drop(index);
        } else {
          this.#refused.set(index, `refused when it was replayed: ${admission.message}`);
          this.#mustRepeat = true;
        }
        break;
      case 'accepted':
        this.#links.counters.add('journal_bodies_replayed');
        this.#links.counters.add('spans_replayed', admission.acceptedCount);
        if (admission.acceptedCount === 0) segment.drop(index);
        else if (isCurrent) segment.answered(index, admission.acceptedCount);
        break;
    }
    this.#answered();
  }

  #answered(): void {
    this.#inHandCount--;
    if (this.#inHandCount > 0) return;
    if (this.#mustRestart) return this.#begin();
    const [atWork] = this.#queue;
    const alone = this.#alone.shift();
    if (alone !== undefined && atWork !== undefined) {
      if (!this.#stop.signal.aborted) this.#handOnAlone(atWork, alone);
      return;
    }
    if (this.#mustRepeat) {
      const { clock } = this.#links;
      void clock.sleep(RETRY_MS, this.#stop.signal).then(() => (this.#mustRestart ? this.#begin() : this.#read()));
      return;
    }
    if (atWork !== undefined && this.#isSuspected(atWork)) this.#suspicion = null;
    if (this.#next >= 0) {
      this.#offset = this.#next;
      this.#refused.clear();
      return this.#read();
    }
    const segment = this.#queue.shift();
    if (segment !== undefined) this.#links.onDone(segment);
    this.#begin();
  }

  #tellDamage(segment: Segment, { offset, damagedCount, damagedBytes, tornBytes }: ReadFrames): void {
    const { counters, log } = this.#links;
    const about = { segment: segment.number, offset };
    if (damagedCount > 0) {
      counters.add('journal_bodies_damaged', damagedCount);
      log.error({ ...about, damagedBytes }, 'the journal is damaged: bodies in it are lost');
    }
    if (tornBytes > 0) log.warn({ ...about, tornBytes }, 'the journal ends in the midst of a write: left out');
  }
}

class ReplayedBody implements IntakeBody {
  readonly encoding: BodyEncoding;
  readonly coding: BodyCoding;
  readonly apiKey: string;
  readonly project: string | null;
  readonly receivedUs: number;
  readonly sourceNumber: number;
  readonly segment: Segment;
  readonly index: number;
  readonly #settled: (body: ReplayedBody, admission: Admission) => void;

  constructor(segment: Segment, frame: Frame, settled: (body: ReplayedBody, admission: Admission) => void) {
    this.encoding = frame.encoding;
    this.coding = frame.coding;
    this.apiKey = frame.apiKey;
    this.project = frame.project;
    this.receivedUs = frame.receivedUs;
    this.sourceNumber = segment.sourceOf(frame.index);
    this.segment = segment;
    this.index = frame.index;
    this.#settled = settled;
  }

  settle(admission: Admission): void {
    this.#settled(this, admission);
  }
}
