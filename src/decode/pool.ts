/**
 * The decode pool, owner's side (main thread). In: whole request bodies from the acceptor. Out: for each exactly one
 * admission, told after its records are in the rings. It owns the threads and every body from `submit` to `settle`.
 *
 * Bodies are gathered into tasks: while all threads are busy, what arrives goes into the next task; an idle thread gets
 * its task by the end of the event loop's turn, so that requests which arrived together travel together. A task costs
 * about 30 µs of CPU on both sides, whatever is in it.
 *
 * Full: beyond `maxHeldBytes` bodies are turned away as busy. A thread that dies: the bodies in its hands are answered
 * busy, its slot of the rings is freed once it has exited, and a new thread takes its place. A body that two threads died
 * of is set aside and refused for good (quarantine.ts). Stop: no new bodies; those held are decoded until the deadline,
 * the rest answered busy; then the threads end.
 */
import { fileURLToPath } from 'node:url';
import type { Worker } from 'node:worker_threads';
import { Piscina } from 'piscina';
import type { Counters } from '../core/counters.ts';
import type { Intake, IntakeBody } from '../core/intake.ts';
import { systemClock, type Clock, type Stage } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import type { Admission, BusyCode } from '../core/outcome.ts';
import { Fault } from '../core/outcome.ts';
import { KiB, MiB, SECOND_MS } from '../core/units.ts';
import { releaseDeadSlots } from '../ring/slots.ts';
import { GatheredTask } from './gather.ts';
import { bodyInHand, createHands, type Print } from './hands.ts';
import { Quarantine, type Trial } from './quarantine.ts';
import {
  Descriptors,
  HELLO,
  MIN_SLAB_BYTES,
  OutcomeCode,
  SLAB_HEADER_BYTES,
  type DecodeReply,
  type DecodeTask,
  type DecodeThreadSettings,
} from './task.ts';

export interface DecodePoolSettings {
  /** At most the rings' producers. */
  readonly threadCount: number;
  readonly workerUrl: URL;
  /** Handed to every thread. */
  readonly thread: Omit<DecodeThreadSettings, 'hands'>;
  /** Of bodies in one task: bounds how long the first body in it waits for the last. */
  readonly maxTaskBytes: number;
  /** Of bodies gathered and in the threads' hands. One body may exceed it when nothing else is held. */
  readonly maxHeldBytes: number;
  /** Heap limit of one thread; V8's own without it. Beyond it the thread dies, not the process. */
  readonly threadHeapBytes?: number;
}

export interface DecodePoolLinks {
  /** Brings a record that is too large for a ring to its shard's shipper; the buffer is given away. */
  forwardOversize(shard: number, record: ArrayBuffer): void;
  /**
   * Keeps a body that decode threads died of, for people to look at. Resolves when it is on disk, rejects with why it
   * could not be kept; bounded in time.
   */
  setAside(body: PoisonBody): Promise<void>;
  /** A row that the main thread writes. */
  readonly counters: Counters;
  readonly log: Log;
  readonly clock?: Pick<Clock, 'nowMs'>;
}

/** As it was received. */
export interface PoisonBody extends Omit<IntakeBody, 'settle' | 'sourceNumber'> {
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** SHA-256 of the bytes, in hex: its name. */
  readonly hash: string;
  readonly reason: string;
}

export interface DecodePool extends Intake, Stage {
  readonly heldBodyCount: number;
  readonly heldBytes: number;
  /** Threads that have not exited. */
  readonly aliveThreadCount: number;
  /** Why nothing is being decoded, although bodies come; empty when something is. */
  reasons(): string[];
}

/** One at work and one in wait, so that no thread idles while its reply is on the way. */
const TASKS_PER_THREAD = 2;
/** A task of this size goes to an idle thread at once: about as much work as a task costs several times over. */
const EAGER_TASK_BYTES = 64 * KiB;
/** An owned buffer up to this size is cheaper to copy than to send. */
const COPY_BYTES = 16 * KiB;
/** What a body counts beyond its length. */
const BODY_OVERHEAD_BYTES = KiB;
const RETRY_AFTER_MS = SECOND_MS;
/** Poison costs two threads (quarantine.ts); where more die one after the other, they cannot work. */
const MAX_LOST_TASKS = 2;
/** Without new bodies nothing else would ever say that the trouble is over. */
const FORGET_LOST_MS = 10 * SECOND_MS;
const MAX_SERIAL = 0xffff_ffff;

const BUSY_MESSAGES: Partial<Record<BusyCode, string>> = {
  'in-flight-limit': 'too many bytes are being decoded',
  starting: 'starting',
  draining: 'shutting down',
  'worker-lost': 'the decode thread was lost',
};
const POISON_REASON = 'two decode threads died of this body';

export function createDecodePool(settings: DecodePoolSettings, links: DecodePoolLinks): DecodePool {
  return new PiscinaPool(settings, links);
}

class PiscinaPool implements DecodePool {
  readonly #settings: DecodePoolSettings;
  readonly #links: DecodePoolLinks;
  readonly #quarantine: Quarantine;
  readonly #hands: SharedArrayBuffer;
  #lastSerial = 0;
  readonly #slabBytes: number;
  readonly #maxTasksOut: number;
  /** Null before `start`. */
  #threads: Piscina<DecodeTask | typeof HELLO, DecodeReply> | null = null;
  #state: 'new' | 'open' | 'draining' | 'stopped' = 'new';
  #starting: Promise<void> | null = null;
  #stopping: Promise<void> | null = null;
  /** Threads not known to have exited, by id. */
  readonly #alive = new Map<number, Worker>();

  #gathering: GatheredTask | null = null;
  /** Complete, waiting for a thread; bounded like everything here by `maxHeldBytes`. */
  readonly #sealed: GatheredTask[] = [];
  /** In the threads' hands. */
  readonly #out = new Set<GatheredTask>();
  /** Bodies seen in the hands of tasks that are out, when a thread exited. */
  readonly #seenInHand = new Map<number, Print>();
  /** For reuse. */
  readonly #slabs: ArrayBuffer[] = [];
  /** Lost since a task was done. */
  #lostTaskCount = 0;
  #lostMs = 0;
  #flushScheduled = false;
  #drained: (() => void) | null = null;

  heldBodyCount = 0;
  heldBytes = 0;

  constructor(settings: DecodePoolSettings, links: DecodePoolLinks) {
    if (settings.threadCount > settings.thread.rings.producerCount) {
      throw new Fault(`${settings.threadCount} decode threads for ${settings.thread.rings.producerCount} ring slots`);
    }
    this.#settings = settings;
    this.#links = links;
    this.#quarantine = new Quarantine(links.clock ?? systemClock);
    this.#hands = createHands(settings.thread.rings.producerCount);
    this.#slabBytes = Math.max(MIN_SLAB_BYTES, SLAB_HEADER_BYTES + settings.maxTaskBytes);
    this.#maxTasksOut = TASKS_PER_THREAD * settings.threadCount;
  }

  get aliveThreadCount(): number {
    return this.#alive.size;
  }

  reasons(): string[] {
    if (this.aliveThreadCount === 0) return ['no decode thread is alive'];
    if (this.#lostTaskCount <= MAX_LOST_TASKS || performance.now() - this.#lostMs > FORGET_LOST_MS) return [];
    return [`decode threads die: the last ${this.#lostTaskCount} tasks were lost`];
  }

  /** Resolves when every thread is ready; rejects with the reason of the first that could not get so. */
  start(): Promise<void> {
    if (this.#state !== 'new') return this.#starting ?? Promise.resolve();
    const { threadCount, workerUrl, thread, threadHeapBytes } = this.#settings;
    this.#state = 'open';
    const threads = new Piscina<DecodeTask | typeof HELLO, DecodeReply>({
      filename: fileURLToPath(workerUrl),
      workerData: { ...thread, hands: this.#hands } satisfies DecodeThreadSettings,
      minThreads: threadCount,
      maxThreads: threadCount,
      concurrentTasksPerWorker: TASKS_PER_THREAD,
      idleTimeout: Infinity,
      recordTiming: false,
      // Its other mode parks idle threads in `Atomics.wait`: no cheaper here (bench/pool.ts), but nothing asynchronous in
      // the thread would run any more, such as a converter's timers, and of two tasks taken up at once the first would be
      // answered with the second.
      atomics: 'disabled',
      ...(threadHeapBytes === undefined ? {} : { resourceLimits: { maxOldGenerationSizeMb: threadHeapBytes / MiB } }),
    });
    this.#threads = threads;
    // An error that belongs to no task: a thread died idle, or while starting. Its exit is handled below.
    threads.on('error', (error: unknown) => this.#links.log.error({ err: error }, 'decode thread failed'));
    threads.on('workerCreate', () => this.#track());
    this.#track();
    // Handed out at once, one to each: the pool prefers threads that have nothing to do.
    const hellos = Array.from({ length: threadCount }, () => threads.run(HELLO));
    this.#starting = Promise.all(hellos).then(() => undefined);
    return this.#starting;
  }

  stop(deadlineMs: number): Promise<void> {
    this.#stopping ??= this.#stop(deadlineMs);
    return this.#stopping;
  }

  submit(body: IntakeBody, bytes: Uint8Array): void {
    if (this.#turnsAway(body, bytes.length) || this.#isQuarantined(body, bytes)) return;
    if (bytes.length > this.#slabBytes - SLAB_HEADER_BYTES) {
      const buffer = new ArrayBuffer(bytes.length);
      new Uint8Array(buffer).set(bytes);
      this.#addOwned(body, buffer, bytes.length);
    } else {
      this.#addCopied(body, bytes);
    }
    this.#kick();
  }

  submitOwned(body: IntakeBody, buffer: ArrayBuffer, lengthBytes: number): void {
    if (this.#turnsAway(body, lengthBytes) || this.#isQuarantined(body, new Uint8Array(buffer, 0, lengthBytes))) return;
    if (lengthBytes <= COPY_BYTES) this.#addCopied(body, new Uint8Array(buffer, 0, lengthBytes));
    else this.#addOwned(body, buffer, lengthBytes);
    this.#kick();
  }

  #turnsAway(body: IntakeBody, lengthBytes: number): boolean {
    const heldBytes = lengthBytes + BODY_OVERHEAD_BYTES;
    const hasRoom = this.heldBodyCount === 0 || this.heldBytes + heldBytes <= this.#settings.maxHeldBytes;
    if (this.#state === 'open' && hasRoom) {
      this.heldBodyCount++;
      this.heldBytes += heldBytes;
      return false;
    }
    const code = this.#state === 'open' ? 'in-flight-limit' : this.#state === 'new' ? 'starting' : 'draining';
    queueMicrotask(() => settleBusy(body, code));
    return true;
  }

  /** True when the body has been dealt with: put into a task of its own, put off, or refused. */
  #isQuarantined(body: IntakeBody, bytes: Uint8Array): boolean {
    const judgement = this.#quarantine.judge(bytes);
    if (judgement.kind === 'clear') return false;
    if (judgement.kind === 'suspect') {
      this.#seal();
      this.#gathering = this.#openTask();
      this.#gathering.trial = judgement.trial;
      this.#gathering.addOwned(body, judgement.trial.bytes.slice().buffer, bytes.length);
      this.#added(this.#gathering, bytes.length);
      this.#seal();
      this.#kick();
      return true;
    }
    this.heldBodyCount--;
    this.heldBytes -= bytes.length + BODY_OVERHEAD_BYTES;
    const isPoison = judgement.kind === 'poison';
    queueMicrotask(() => {
      if (isPoison) body.settle(refusal(`set aside before: ${POISON_REASON}`));
      else settleBusy(body, 'worker-lost');
    });
    return true;
  }

  #addCopied(body: IntakeBody, bytes: Uint8Array): void {
    if (this.#gathering !== null && !this.#gathering.fits(bytes.length)) this.#seal();
    this.#gathering ??= this.#openTask();
    this.#gathering.addCopied(body, bytes);
    this.#added(this.#gathering, bytes.length);
  }

  #addOwned(body: IntakeBody, buffer: ArrayBuffer, lengthBytes: number): void {
    // Larger than a task: let nobody wait for it who came before.
    if (this.#gathering !== null && lengthBytes > this.#settings.maxTaskBytes) this.#seal();
    this.#gathering ??= this.#openTask();
    this.#gathering.addOwned(body, buffer, lengthBytes);
    this.#added(this.#gathering, lengthBytes);
  }

  #added(task: GatheredTask, lengthBytes: number): void {
    task.heldBytes += lengthBytes + BODY_OVERHEAD_BYTES;
    if (task.isFull || task.bodyBytes >= this.#settings.maxTaskBytes) this.#seal();
  }

  #openTask(): GatheredTask {
    // 0 says that a hand is empty.
    this.#lastSerial = this.#lastSerial === MAX_SERIAL ? 1 : this.#lastSerial + 1;
    return new GatheredTask(this.#lastSerial, this.#slabs.pop() ?? new ArrayBuffer(this.#slabBytes));
  }

  #seal(): void {
    if (this.#gathering === null) return;
    this.#sealed.push(this.#gathering);
    this.#gathering = null;
  }

  /** Something was added. */
  #kick(): void {
    if (this.#out.size >= this.#maxTasksOut) return;
    const isWorthIt = this.#sealed.length > 0 || (this.#gathering?.bodyBytes ?? 0) >= EAGER_TASK_BYTES;
    if (isWorthIt && this.#out.size < this.#settings.threadCount) return this.#flush();
    if (this.#flushScheduled) return;
    this.#flushScheduled = true;
    setImmediate(() => {
      this.#flushScheduled = false;
      this.#flush();
    });
  }

  /** Hands out what there is, as far as threads have time. */
  #flush(): void {
    while (this.#out.size < this.#maxTasksOut) {
      if (this.#sealed.length === 0) this.#seal();
      const task = this.#sealed.shift();
      if (task === undefined) return;
      this.#dispatch(task);
    }
  }

  #dispatch(task: GatheredTask): void {
    if (this.#threads === null) throw new Fault('a task before the start');
    this.#out.add(task);
    this.#threads.run(task.message(), { transferList: [task.slab, ...task.buffers] }).then(
      (reply) => this.#replied(task, reply),
      (error: unknown) => this.#lost(task, error),
    );
    // A task may make the pool start a thread, where one is missing.
    if (this.#alive.size < this.#settings.threadCount) this.#track();
  }

  #replied(task: GatheredTask, reply: DecodeReply): void {
    this.#out.delete(task);
    this.#lostTaskCount = 0;
    this.#seenInHand.delete(task.serial);
    if (this.#slabs.length <= this.#maxTasksOut) this.#slabs.push(reply.slab);
    for (const defect of reply.defects) this.#links.log.error({ defect }, 'a body could not be decoded');
    if (reply.converterFailure !== null) {
      this.#links.log.warn({ reason: reply.converterFailure }, 'the converter failed, its span was dropped');
    }
    for (const { shard, record } of reply.oversize) this.#links.forwardOversize(shard, record);
    if (!task.settled) {
      task.settled = true;
      this.#settle(task, reply);
      this.#letGo(task);
    }
    this.#flush();
  }

  #settle(task: GatheredTask, reply: DecodeReply): void {
    if (task.trial !== null) {
      // A body that was put off may not have been looked at.
      if (reply.notes[0]?.admission.kind === 'busy') this.#quarantine.untried(task.trial);
      else this.#quarantine.survived(task.trial);
    }
    const descriptors = new Descriptors(reply.slab);
    let noteNumber = 0;
    for (const [index, body] of task.bodies.entries()) {
      if (descriptors.outcomeCode(index) === OutcomeCode.Accepted) {
        body.settle({
          kind: 'accepted',
          acceptedCount: descriptors.acceptedCount(index),
          rejectedCount: descriptors.rejectedCount(index),
          message: '',
        });
        continue;
      }
      // Notes come in the order of their bodies.
      const note = reply.notes[noteNumber++];
      if (note?.index !== index) throw new Fault(`no outcome for body ${index} of ${task.bodies.length}`);
      body.settle(note.admission);
    }
  }

  /** The thread is gone, or could not get ready; the slab went with it. */
  #lost(task: GatheredTask, error: unknown): void {
    this.#out.delete(task);
    if (!task.settled) {
      this.#links.log.error({ err: error, bodyCount: task.bodies.length }, 'decode task lost');
      this.#settleLost(task);
    }
    if (this.#state !== 'stopped') this.#flush();
  }

  #settleLost(task: GatheredTask): void {
    this.#lostTaskCount++;
    this.#lostMs = performance.now();
    const culprit = bodyInHand(this.#hands, task.serial) ?? this.#seenInHand.get(task.serial) ?? null;
    this.#seenInHand.delete(task.serial);
    const { trial } = task;
    if (trial === null) {
      if (culprit !== null) this.#quarantine.suspect(culprit);
      this.#settleBusy(task, 'worker-lost');
    } else if (culprit === null) {
      this.#quarantine.untried(trial);
      this.#settleBusy(task, 'worker-lost');
    } else if (!this.#quarantine.died(trial)) {
      this.#settleBusy(task, 'worker-lost');
    } else {
      this.#setAside(task, trial);
    }
  }

  #setAside(task: GatheredTask, { bytes, hash }: Trial): void {
    const [body] = task.bodies;
    if (body === undefined) throw new Fault('a trial without a body');
    task.settled = true;
    this.#links.counters.add('bodies_set_aside');
    this.#links.log.error({ hash, bytes: bytes.length }, 'a body that decode threads die of was set aside');
    const { encoding, coding, apiKey, project, receivedUs } = body;
    const settle = (message: string): void => {
      body.settle(refusal(message));
      this.#letGo(task);
    };
    this.#links.setAside({ encoding, coding, apiKey, project, receivedUs, bytes, hash, reason: POISON_REASON }).then(
      () => settle(`set aside as dead letter ${hash}: ${POISON_REASON}`),
      (error: unknown) => {
        this.#links.log.error({ err: error, hash }, 'a dead letter could not be written');
        settle(`${POISON_REASON}; it could not be kept`);
      },
    );
  }

  #settleBusy(task: GatheredTask, code: BusyCode): void {
    task.settled = true;
    for (const body of task.bodies) settleBusy(body, code);
    this.#letGo(task);
  }

  #letGo(task: GatheredTask): void {
    this.heldBodyCount -= task.bodies.length;
    this.heldBytes -= task.heldBytes;
    if (this.heldBodyCount === 0) this.#drained?.();
  }

  /** Watches threads that are not watched yet. Called wherever the pool may have started one. */
  #track(): void {
    for (const worker of this.#threads?.threads ?? []) {
      const { threadId } = worker;
      if (threadId < 0 || this.#alive.has(threadId)) continue;
      this.#alive.set(threadId, worker);
      worker.once('exit', (code) => this.#exited(threadId, code));
    }
  }

  #exited(threadId: number, code: number): void {
    this.#alive.delete(threadId);
    // First of all: a thread that was just started must not look dead below.
    this.#track();
    // Before its slot is freed: a successor's first body takes the place of what the hand held.
    for (const { serial } of this.#out) {
      const print = bodyInHand(this.#hands, serial);
      if (print !== null) this.#seenInHand.set(serial, print);
    }
    releaseDeadSlots(this.#settings.thread.rings, new Set(this.#alive.keys()));
    if (this.#state === 'stopped') return;
    this.#links.counters.add('decode_workers_lost');
    this.#links.log.error({ threadId, code }, 'decode thread exited');
    if (this.#alive.size > 0) return;
    // Nobody is left, nor was one started: the thread that would have run these died while starting.
    for (const task of this.#out) {
      if (!task.settled) this.#settleLost(task);
    }
    this.#out.clear();
  }

  async #stop(deadlineMs: number): Promise<void> {
    const wasOpen = this.#state === 'open';
    this.#state = 'draining';
    if (wasOpen && this.heldBodyCount > 0) {
      this.#flush();
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, deadlineMs);
        this.#drained = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#state = 'stopped';
    this.#seal();
    for (const task of [...this.#out, ...this.#sealed]) {
      if (!task.settled) this.#settleBusy(task, 'draining');
    }
    this.#sealed.length = 0;
    await this.#threads?.destroy();
  }
}

function refusal(message: string): Admission {
  return { kind: 'refused', code: 'set-aside', message };
}

function settleBusy(body: IntakeBody, code: BusyCode): void {
  body.settle({ kind: 'busy', code, message: BUSY_MESSAGES[code] ?? code, retryAfterMs: RETRY_AFTER_MS });
}
