/**
 * The journal, its thread included, on a {@link SimDisk}: in one thread, so that a test decides which operation of the
 * disk fails, or is the last. What decodes is scripted, and what is told to senders and what is settled is booked.
 */
import assert from 'node:assert/strict';
import { EventEmitter } from 'node:events';
import { createCounterTable, type CounterTable } from '../src/core/counters.ts';
import type { BodyCoding, BodyEncoding, IntakeBody } from '../src/core/intake.ts';
import type { Clock } from '../src/core/lifecycle.ts';
import type { Log } from '../src/core/log.ts';
import type { Admission } from '../src/core/outcome.ts';
import type { DeadBody } from '../src/journal/deadbody.ts';
import { createJournal, type Journal } from '../src/journal/journal.ts';
import type { FromJournal, ToJournal } from '../src/journal/message.ts';
import type { JournalWorker } from '../src/journal/owner.ts';
import { runJournalThread } from '../src/journal/thread.ts';
import { blockingFace, type SimDisk } from './simdisk.ts';

export const FOLDER = '/data/journal';
/** Turns of the event loop in which nothing happens any more. */
const QUIET_TURNS = 12;

/** What becomes of a body that is decoded: `busy` for the first time only, `deadly` ends the process. */
export type Fate = 'accepted' | 'refused' | 'busy' | 'deadly';

export interface Body {
  readonly number: number;
  readonly bytes: Buffer;
  readonly owned: boolean;
  readonly fate: Fate;
  readonly recordCount: number;
  decodeCount: number;
  /** Of the last decoding: what its records are numbered by. */
  sourceNumber: number;
  isAcknowledged: boolean;
  /** Its records have been delivered, or are on disk elsewhere. */
  isSettled: boolean;
}

/** All bodies of one history, over several processes. */
export class Bodies {
  readonly #all: Body[] = [];

  add(lengthBytes: number, fate: Fate, owned: boolean, recordCount: number): Body {
    const number = this.#all.length;
    const bytes = Buffer.alloc(Math.max(8, lengthBytes), `${String(number).padStart(7, '0')} `);
    const body: Body = {
      number,
      bytes,
      owned,
      fate,
      recordCount,
      decodeCount: 0,
      sourceNumber: 0,
      isAcknowledged: false,
      isSettled: false,
    };
    this.#all.push(body);
    return body;
  }

  get all(): readonly Body[] {
    return this.#all;
  }

  /** The one that this is, to the byte and to what is kept beside it; fails when it is none. */
  identify(bytes: Uint8Array, facts: Facts): Body {
    const body = this.#all[Number(Buffer.from(bytes.subarray(0, 7)).toString('latin1'))];
    assert.ok(body !== undefined, 'what was read was never sent');
    assert.ok(body.bytes.equals(bytes), `body ${body.number} is what was sent`);
    assert.deepEqual({ ...facts }, factsOf(body));
    return body;
  }

  byNumber(number: number): Body {
    const body = this.#all[number];
    assert.ok(body !== undefined);
    return body;
  }
}

type Facts = Pick<IntakeBody, 'encoding' | 'coding' | 'apiKey' | 'project' | 'receivedUs'>;

function factsOf({ number }: Body): Facts {
  const encodings: readonly BodyEncoding[] = ['protobuf', 'json'];
  const codings: readonly BodyCoding[] = ['identity', 'gzip', 'deflate', 'zstd'];
  return {
    encoding: encodings[number % 2] ?? 'json',
    coding: codings[number % 4] ?? 'zstd',
    apiKey: `key-${number % 3}`,
    project: number % 3 === 0 ? null : `projekt ü ${number}`,
    receivedUs: 1.7e15 + number,
  };
}

/** The thread's end and the owner's, without a thread between them. */
class SimWorker extends EventEmitter implements JournalWorker {
  readonly #inside = new EventEmitter();
  #isOver = false;

  constructor(disk: SimDisk) {
    super();
    const port = {
      on: (event: 'message', listener: (message: ToJournal) => void) => this.#inside.on(event, listener),
      postMessage: (message: FromJournal) => void setImmediate(() => this.emit('message', message)),
      close: () => {
        this.#isOver = true;
        setImmediate(() => this.emit('exit', 0));
      },
    };
    setImmediate(() => runJournalThread(port, { folder: FOLDER }, blockingFace(disk)));
  }

  postMessage(message: ToJournal): void {
    setImmediate(() => {
      if (!this.#isOver) this.#inside.emit('message', message);
    });
  }

  terminate(): Promise<number> {
    return Promise.resolve(0);
  }
}

/** Sleeps end when they are told to, or with the process. */
export class Alarm implements Clock {
  #sleepers: (() => void)[] = [];
  nowMs = (): number => 1_000_000;

  sleep(_ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      this.#sleepers.push(resolve);
      signal?.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  ring(): void {
    for (const wake of this.#sleepers.splice(0)) wake();
  }
}

export interface SimProcess {
  readonly journal: Journal;
  readonly counters: CounterTable;
  /** Bodies that were decoded again, or for the first time, in order. */
  readonly decoded: Body[];
  readonly dead: DeadBody[];
  /** What the log said. */
  readonly lines: string[];
  /** Sleepers are woken by it. */
  readonly alarm: Alarm;
  send(body: Body): void;
  /** As a shipper would that delivered it. */
  settle(body: Body): void;
  /** Nothing happens any more. */
  quiet(): Promise<void>;
  stop(): Promise<void>;
}

export interface SimWishes {
  readonly segmentBytes?: number;
  /** A body whose fate is deadly is in hand: the process is over. */
  onDeath?(): void;
}

/** Resolves when the journal has started; rejects with its reason. */
export async function startSim(disk: SimDisk, bodies: Bodies, wishes: SimWishes = {}): Promise<SimProcess> {
  const counters = createCounterTable(1);
  const alarm = new Alarm();
  const decoded: Body[] = [];
  const dead: DeadBody[] = [];
  const lines: string[] = [];
  let activity = 0;
  const submit = (intake: IntakeBody, bytes: Uint8Array): void => {
    activity++;
    const { encoding, coding, apiKey, project, receivedUs } = intake;
    const body = bodies.identify(bytes, { encoding, coding, apiKey, project, receivedUs });
    decoded.push(body);
    body.decodeCount++;
    if (body.fate === 'deadly') {
      wishes.onDeath?.();
      return;
    }
    body.sourceNumber = intake.sourceNumber;
    setImmediate(() => intake.settle(admissionOf(body)));
  };
  const line = (fields: object, message: string): void => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const log: Log = { debug: line, info: line, warn: line, error: line, child: () => log };
  const journal = createJournal(
    {
      folder: FOLDER,
      startThread: () => new SimWorker(disk),
      maxBytes: 1 << 20,
      segmentBytes: wishes.segmentBytes ?? 3000,
    },
    {
      intake: { submit, submitOwned: (body, buffer, length) => submit(body, new Uint8Array(buffer, 0, length)) },
      counters: counters.row(0),
      clock: alarm,
      log,
      deadBodies: {
        keep: async (body) => dead.push({ ...body, bytes: Buffer.from(body.bytes) }) > 0,
        hashes: async () => new Set(),
        holds: async () => false,
      },
    },
  );
  const quiet = async (): Promise<void> => {
    for (let turns = 0, seen = -1; turns < QUIET_TURNS; turns++) {
      await new Promise((resolve) => setImmediate(resolve));
      if (seen === disk.operations.length + activity) continue;
      seen = disk.operations.length + activity;
      turns = 0;
    }
  };
  const process: SimProcess = {
    journal,
    counters,
    decoded,
    dead,
    lines,
    alarm,
    send: (body) => {
      const intake: IntakeBody = {
        ...factsOf(body),
        sourceNumber: 0,
        settle: (admission) => {
          activity++;
          if (admission.kind === 'accepted') body.isAcknowledged = true;
        },
      };
      if (body.owned) journal.submitOwned(intake, Uint8Array.from(body.bytes).buffer, body.bytes.length);
      else journal.submit(intake, body.bytes);
    },
    settle: (body) => {
      body.isSettled = true;
      journal.settled(Uint32Array.of(body.sourceNumber, body.recordCount));
    },
    quiet,
    stop: async () => {
      journal.quiesce();
      await quiet();
      const stopped = journal.stop();
      await quiet();
      alarm.ring();
      await stopped;
    },
  };
  const started = journal.start();
  await Promise.race([
    started,
    quiet().then(() => new Promise((_, reject) => setImmediate(reject, new Error('no answer')))),
  ]);
  return process;
}

function admissionOf({ fate, recordCount, decodeCount }: Body): Admission {
  switch (fate) {
    case 'refused':
      return { kind: 'refused', code: 'malformed', message: 'as the test says' };
    case 'busy':
      if (decodeCount === 1)
        return { kind: 'busy', code: 'rings-full', message: 'as the test says', retryAfterMs: 1000 };
      return { kind: 'accepted', acceptedCount: recordCount, rejectedCount: 0, message: '' };
    case 'accepted':
    case 'deadly':
      return { kind: 'accepted', acceptedCount: recordCount, rejectedCount: 0, message: '' };
  }
}

/** What a process finds on this disk: all that was acknowledged and not settled, and nothing that was not sent. */
export async function assertNothingLost(disk: SimDisk, bodies: Bodies, wishes: SimWishes = {}): Promise<SimProcess> {
  const next = await startSim(disk, bodies, wishes);
  next.journal.replay();
  for (let round = 0; round < 5; round++) {
    await next.quiet();
    next.alarm.ring();
  }
  const found = new Set(next.decoded);
  for (const body of bodies.all) {
    const mayBeGone = !body.isAcknowledged || body.isSettled;
    assert.ok(mayBeGone || found.has(body), `body ${body.number} was acknowledged, and is gone`);
  }
  return next;
}
