/** The journal with its real thread and files; what decodes is scripted. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { createCounterTable, type CounterTable } from '../../../src/core/counters.ts';
import type { IntakeBody } from '../../../src/core/intake.ts';
import { systemClock, type Clock } from '../../../src/core/lifecycle.ts';
import { silentLog } from '../../../src/core/log.ts';
import type { Admission } from '../../../src/core/outcome.ts';
import type { DeadBody } from '../../../src/journal/deadbody.ts';
import { createJournal, type Journal, type JournalSettings } from '../../../src/journal/journal.ts';
import { SimDisk } from '../../simdisk.ts';
import { Bodies, FOLDER, startSim } from '../../simjournal.ts';

/** A body that has been handed on to be decoded. */
interface Decoding {
  readonly body: IntakeBody;
  readonly bytes: Buffer;
}

interface Rig {
  readonly journal: Journal;
  readonly folder: string;
  readonly counters: CounterTable;
  readonly decodings: Decoding[];
  readonly dead: DeadBody[];
  /** In place of leaving bodies to the test. */
  decode: ((decoding: Decoding) => Admission) | null;
  files(): string[];
  /** What the disk does from now on; see faultyworker.ts. */
  order(order: string): void;
}

const DEADLINE_MS = 30_000;
const rigs: Rig[] = [];
const folders: string[] = [];
afterEach(async () => {
  for (const rig of rigs.splice(0)) {
    rig.order('');
    await rig.journal.stop();
  }
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

function freshFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'journal-'));
  folders.push(folder);
  return join(folder, 'journal');
}

async function open(settings: Partial<JournalSettings> = {}, clock: Clock = systemClock): Promise<Rig> {
  const folder = settings.folder ?? freshFolder();
  const control = `${folder}.control`;
  const counters = createCounterTable(1);
  const take = (body: IntakeBody, bytes: Uint8Array): void => {
    const decoding = { body, bytes: Buffer.from(bytes) };
    rig.decodings.push(decoding);
    const { decode } = rig;
    if (decode !== null) setImmediate(() => body.settle(decode(decoding)));
  };
  const journal = createJournal(
    {
      folder,
      startThread: (data) => new Worker(new URL('./faultyworker.ts', import.meta.url), { workerData: data }),
      maxBytes: 64 * 1024 * 1024,
      ...settings,
    },
    {
      intake: {
        submit: take,
        submitOwned: (body, buffer, lengthBytes) => take(body, new Uint8Array(buffer, 0, lengthBytes)),
      },
      counters: counters.row(0),
      clock,
      log: silentLog,
      deadBodies: {
        keep: async (body) => rig.dead.push({ ...body, bytes: Buffer.from(body.bytes) }) > 0,
        hashes: async () => new Set(),
        holds: async () => false,
      },
    },
  );
  const rig: Rig = {
    journal,
    folder,
    counters,
    decodings: [],
    dead: [],
    decode: () => accepted(1),
    files: () => readdirSync(folder).filter((name) => name.endsWith('.journal')),
    order: (order) => writeFileSync(control, order),
  };
  rigs.push(rig);
  rig.order('');
  await journal.start();
  return rig;
}

function accepted(acceptedCount: number): Admission {
  return { kind: 'accepted', acceptedCount, rejectedCount: 0, message: '' };
}

interface Sending {
  readonly answer: Promise<Admission>;
  /** Null until it is told. */
  told: Admission | null;
}

function send(rig: Rig, bytes: Uint8Array, owned = false): Sending {
  const sending: { told: Admission | null; answer: Promise<Admission> } = {
    told: null,
    answer: new Promise((resolve, reject) => {
      let inside = true;
      const body: IntakeBody = {
        encoding: 'json',
        coding: 'gzip',
        apiKey: 'whose',
        project: 'which',
        receivedUs: 123,
        sourceNumber: 0,
        settle: (admission) => {
          if (inside) reject(new Error('settled from within submit'));
          if (sending?.told !== null) reject(new Error('settled twice'));
          sending.told = admission;
          resolve(admission);
        },
      };
      setImmediate(() => {
        const copy = Uint8Array.from(bytes);
        if (owned) {
          rig.journal.submitOwned(body, copy.buffer, copy.length);
        } else {
          rig.journal.submit(body, copy);
          copy.fill(0);
        }
        inside = false;
      });
    }),
  };
  return sending;
}

async function until(condition: () => boolean): Promise<void> {
  const endMs = performance.now() + DEADLINE_MS;
  while (!condition()) {
    assert.ok(performance.now() < endMs, 'in time');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Settles all records of these bodies, one each. */
function settle(rig: Rig, decodings: readonly Decoding[]): void {
  rig.journal.settled(Uint32Array.from(decodings.flatMap(({ body }) => [body.sourceNumber, 1])));
}

function isBusy(admission: Admission, code: string): boolean {
  return admission.kind === 'busy' && admission.code === code && admission.retryAfterMs > 0;
}

test('nobody is told “accepted” before the body is on disk, nor before it is decoded', async () => {
  const rig = await open();
  rig.order('stall');
  const first = send(rig, Buffer.from('first'));
  await until(() => rig.decodings.length === 1);
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(first.told, null, 'decoded, but not flushed');
  rig.decode = null;
  rig.order('');
  assert.equal((await first.answer).kind, 'accepted');
  const second = send(rig, Buffer.from('second'));
  await until(() => rig.counters.total('journal_bodies') === 2);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.equal(second.told, null, 'flushed, but not decoded');
  rig.decodings[1]?.body.settle({ ...accepted(2), rejectedCount: 1, message: 'one was odd' } as Admission);
  assert.deepEqual(await second.answer, {
    kind: 'accepted',
    acceptedCount: 2,
    rejectedCount: 1,
    message: 'one was odd',
  });
});

test('what waits while one flush is under way is served by the next', async () => {
  const rig = await open();
  rig.order('stall');
  const first = send(rig, Buffer.from('first'));
  await until(() => rig.decodings.length === 1);
  const others = Array.from({ length: 100 }, (_, number) => send(rig, Buffer.from(`body ${number}`)));
  await until(() => rig.decodings.length === 101);
  rig.order('');
  const answers = await Promise.all([first, ...others].map(({ answer }) => answer));
  assert.ok(answers.every(({ kind }) => kind === 'accepted'));
  assert.equal(rig.counters.total('journal_commits'), 2);
  assert.equal(rig.counters.total('journal_bodies'), 101);
});

test('bodies of every size, copied and owned, are decoded as they came and found again by the next process', async () => {
  const rig = await open();
  const sizes = [0, 1, 1000, 250_000, 253_951, 254_000, 262_144, 400_000, 3_000_000];
  const bodies = sizes.map((lengthBytes, number) => Buffer.alloc(lengthBytes, `${number} text `));
  const answers = await Promise.all(
    bodies.flatMap((bytes) => [send(rig, bytes).answer, send(rig, bytes, true).answer]),
  );
  assert.ok(answers.every(({ kind }) => kind === 'accepted'));
  const texts = (decodings: readonly Decoding[]): string[] =>
    decodings.map(({ bytes }) => `${bytes.length} ${bytes.toString('latin1', 0, 20)}`).sort();
  const expected = texts(bodies.flatMap((bytes) => [bytes, bytes]).map((bytes) => ({ bytes }) as Decoding));
  assert.deepEqual(texts(rig.decodings), expected);
  await rig.journal.stop();

  const next = await open({ folder: rig.folder });
  next.journal.replay();
  await until(() => next.counters.total('journal_bodies_replayed') === 2 * sizes.length);
  assert.deepEqual(texts(next.decodings), expected);
  for (const { body } of next.decodings) {
    const { encoding, coding, apiKey, project, receivedUs } = body;
    assert.deepEqual([encoding, coding, apiKey, project, receivedUs], ['json', 'gzip', 'whose', 'which', 123]);
  }
  assert.equal(new Set(next.decodings.map(({ body }) => body.sourceNumber)).size, next.decodings.length);
  settle(next, next.decodings);
  await until(() => next.journal.bytes === 0);
  assert.deepEqual(next.files(), []);
});

test('a segment goes when all its bodies are settled, not before, and an idle one too', async () => {
  const rig = await open({ segmentBytes: 1000 });
  for (let number = 0; number < 10; number++) await send(rig, Buffer.alloc(300, number)).answer;
  assert.equal(rig.files().length, 5);
  const [first, second, ...others] = rig.decodings;
  assert.ok(first !== undefined && second !== undefined);
  settle(rig, [first]);
  settle(rig, others);
  await until(() => rig.files().length === 1);
  assert.equal(rig.journal.liveBodyCount, 1);
  settle(rig, [second]);
  await until(() => rig.journal.bytes === 0);
  assert.deepEqual(rig.files(), []);
  assert.equal((await send(rig, Buffer.from('and on it goes')).answer).kind, 'accepted');
});

test('what is refused or put off is answered at once and not kept', async () => {
  const rig = await open();
  rig.order('stall');
  const refusal: Admission = { kind: 'refused', code: 'malformed', message: 'no good' };
  const putOff: Admission = { kind: 'busy', code: 'rings-full', message: 'full', retryAfterMs: 1000 };
  const empty = accepted(0);
  const admissions = [refusal, putOff, empty];
  rig.decode = () => admissions[rig.decodings.length - 1] ?? refusal;
  for (const expected of admissions) assert.deepEqual(await send(rig, Buffer.from('x')).answer, expected);
  assert.equal(rig.journal.liveBodyCount, 0);
  rig.order('');
  await until(() => rig.files().length === 0);
});

test('a failing disk: busy, never accepted; a reason; and when it works again, so does all else', async () => {
  const rig = await open();
  assert.equal((await send(rig, Buffer.from('kept')).answer).kind, 'accepted');
  rig.order('EIO');
  const during = await Promise.all([send(rig, Buffer.from('a')).answer, send(rig, Buffer.alloc(500_000)).answer]);
  assert.ok(
    during.every((admission) => isBusy(admission, 'storage-unavailable')),
    JSON.stringify(during),
  );
  assert.match(rig.journal.reasons().join(), /^journal_unwritable: EIO/);
  assert.ok(isBusy(await send(rig, Buffer.from('b')).answer, 'storage-unavailable'));
  assert.ok(rig.counters.total('journal_failures') >= 1);
  rig.order('');
  await until(() => rig.journal.reasons().length === 0);
  assert.equal((await send(rig, Buffer.from('after')).answer).kind, 'accepted');
  await rig.journal.stop();

  const next = await open({ folder: rig.folder });
  next.journal.replay();
  await until(() => next.journal.replayBytes === 0);
  const texts = next.decodings.map(({ bytes }) => bytes.toString());
  for (const text of ['kept', 'after']) assert.ok(texts.includes(text), texts.join());
});

test('a disk that does not answer: those who wait are told to come again, and it is no end of things', async () => {
  const rig = await open();
  rig.order('stall');
  const waiting = send(rig, Buffer.from('waiting'));
  await until(() => rig.decodings.length === 1);
  assert.ok(isBusy(await waiting.answer, 'storage-unavailable'));
  assert.match(rig.journal.reasons().join(), /has not answered for 5 s/);
  assert.ok(isBusy(await send(rig, Buffer.from('more')).answer, 'storage-unavailable'));
  rig.order('');
  await until(() => rig.journal.reasons().length === 0);
  assert.equal((await send(rig, Buffer.from('after')).answer).kind, 'accepted');
  settle(rig, rig.decodings);
  await until(() => rig.files().length === 0);
});

test('a journal thread that dies is replaced: what it had is busy, what was on disk stays', async () => {
  const rig = await open();
  assert.equal((await send(rig, Buffer.from('kept')).answer).kind, 'accepted');
  rig.order('exit');
  assert.ok(isBusy(await send(rig, Buffer.from('in its hands')).answer, 'storage-unavailable'));
  rig.order('');
  await until(() => rig.journal.reasons().length === 0);
  assert.equal((await send(rig, Buffer.from('after')).answer).kind, 'accepted');
  assert.equal(rig.files().length, 2);
  settle(rig, rig.decodings);
  await until(() => rig.files().length === 0);
});

test('a full journal: busy with a reason until segments go', async () => {
  const rig = await open({ maxBytes: 10_000, segmentBytes: 2_000 });
  let admission = await send(rig, Buffer.alloc(900)).answer;
  while (admission.kind === 'accepted') admission = await send(rig, Buffer.alloc(900)).answer;
  assert.ok(isBusy(admission, 'journal-full'));
  assert.ok(rig.journal.bytes <= 10_000);
  assert.match(rig.journal.reasons().join(), /^journal_full: \d+ of 10000 bytes/);
  const onDisk = rig.files().reduce((sum, name) => sum + statSync(join(rig.folder, name)).size, 0);
  assert.equal(onDisk, rig.journal.bytes);
  settle(rig, rig.decodings.slice(0, 4));
  await until(() => rig.journal.reasons().length === 0);
  assert.equal((await send(rig, Buffer.alloc(900)).answer).kind, 'accepted');
});

test('a start with more on disk than the limit allows: replayed, then taken again', async () => {
  const rig = await open();
  for (let number = 0; number < 20; number++) await send(rig, Buffer.alloc(1000, number)).answer;
  await rig.journal.stop();
  const next = await open({ folder: rig.folder, maxBytes: 5_000 });
  assert.ok(isBusy(await send(next, Buffer.from('new')).answer, 'journal-full'));
  next.journal.replay();
  await until(() => next.counters.total('spans_replayed') === 20);
  settle(next, next.decodings);
  await until(() => next.journal.bytes === 0);
  assert.equal((await send(next, Buffer.from('new')).answer).kind, 'accepted');
});

test('a replayed body that finds no room is tried until it does; one that is refused goes to the dead letters', async () => {
  const rig = await open();
  for (const text of ['good', 'refused', 'also good']) await send(rig, Buffer.from(text)).answer;
  await rig.journal.stop();
  const next = await open({ folder: rig.folder });
  let putOffCount = 3;
  next.decode = ({ bytes }) => {
    if (bytes.toString() === 'refused') return { kind: 'refused', code: 'malformed', message: 'no good any more' };
    if (putOffCount-- > 0) return { kind: 'busy', code: 'rings-full', message: 'full', retryAfterMs: 1000 };
    return accepted(1);
  };
  next.journal.replay();
  await until(() => next.journal.replayBytes === 0);
  assert.equal(next.counters.total('journal_bodies_replayed'), 2);
  const [dead] = next.dead;
  assert.equal(next.dead.length, 1);
  assert.equal(Buffer.from(dead?.bytes ?? []).toString(), 'refused');
  assert.match(dead?.reason ?? '', /no good any more/);
  assert.equal(next.journal.liveBodyCount, 2);
  settle(next, next.decodings);
  await until(() => next.files().length === 0);
});

test('a replayed body of which a part had got through when it was put off is needed until its last try is settled', async () => {
  const rig = await open();
  await send(rig, Buffer.from('large')).answer;
  await rig.journal.stop();
  const next = await open({ folder: rig.folder });
  next.decode = () =>
    next.decodings.length === 1
      ? { kind: 'busy', code: 'rings-full', message: 'full', retryAfterMs: 1000 }
      : accepted(3);
  next.journal.replay();
  await until(() => next.journal.replayBytes === 0);
  const [first = 0, second = 0] = next.decodings.map(({ body }) => body.sourceNumber);
  const settled = (source: number, count: number): void => next.journal.settled(Uint32Array.of(source, count));
  settled(second, 1);
  settled(first, 2);
  assert.equal(next.journal.liveBodyCount, 1, 'two records are on their way');
  settled(second, 2);
  assert.equal(next.journal.liveBodyCount, 0);
  await until(() => next.files().length === 0);
});

test('after a shipper’s death everything unsettled is decoded again, under other numbers, and only that counts', async () => {
  const rig = await open({ segmentBytes: 2_000 });
  for (let number = 0; number < 6; number++) await send(rig, Buffer.alloc(500, 65 + number)).answer;
  const before = rig.decodings.splice(0);
  settle(rig, before.slice(0, 2));
  // One more is being decoded at that moment.
  rig.decode = null;
  const inHand = send(rig, Buffer.from('in hand'));
  await until(() => rig.decodings.length === 1);
  const [unanswered] = rig.decodings.splice(0);
  rig.decode = () => accepted(1);
  rig.journal.startOver();
  // Not before what is being written is written.
  await until(() => rig.decodings.length === 5 && rig.journal.replayBytes === 0);
  assert.deepEqual(rig.decodings.map(({ bytes }) => bytes.toString('latin1', 0, 7)).sort(), [
    'CCCCCCC',
    'DDDDDDD',
    'EEEEEEE',
    'FFFFFFF',
    'in hand',
  ]);
  unanswered?.body.settle(accepted(1));
  assert.equal((await inHand.answer).kind, 'accepted');
  settle(rig, before);
  if (unanswered !== undefined) settle(rig, [unanswered]);
  assert.equal(rig.journal.liveBodyCount, 5, 'numbers from before do not count');
  settle(rig, rig.decodings);
  await until(() => rig.files().length === 0);
});

test('a second process on the folder does not start, and says why', async () => {
  const rig = await open();
  await assert.rejects(open({ folder: rig.folder }), /journal: .*lock is locked: another process uses this folder/);
});

test('a folder that cannot be made does not start, and says why', async () => {
  const folder = freshFolder();
  writeFileSync(folder, 'a file is in the way');
  await assert.rejects(open({ folder }), /journal: .*EEXIST/);
  assert.equal(readFileSync(folder, 'utf8'), 'a file is in the way');
});

test('damaged and torn places are counted and left out', async () => {
  const rig = await open();
  for (const text of ['first', 'second', 'third']) await send(rig, Buffer.from(text)).answer;
  await rig.journal.stop();
  const [name = ''] = rig.files();
  const file = join(rig.folder, name);
  const bytes = readFileSync(file);
  bytes[bytes.indexOf('second')] = 0;
  writeFileSync(file, bytes.subarray(0, -1));
  const next = await open({ folder: rig.folder });
  next.journal.replay();
  await until(() => next.journal.replayBytes === 0);
  assert.deepEqual(
    next.decodings.map(({ bytes: read }) => read.toString()),
    ['first'],
  );
  assert.equal(next.counters.total('journal_bodies_damaged'), 0, 'nothing intact behind it: a torn tail');
});

test('a segment of another version is told and left as it is, also when all else is settled and a shipper dies', async () => {
  const rig = await open();
  assert.equal((await send(rig, Buffer.from('ours')).answer).kind, 'accepted');
  await rig.journal.stop();
  const [name = ''] = rig.files();
  const later = Buffer.from(readFileSync(join(rig.folder, name)));
  later.write('cp-jrnl2', 'latin1');
  const foreign = join(rig.folder, '0000000000000007.journal');
  writeFileSync(foreign, later);

  const next = await open({ folder: rig.folder });
  next.journal.replay();
  await until(() => next.counters.total('journal_segments_foreign') === 1 && next.decodings.length === 1);
  next.journal.startOver();
  assert.equal((await send(next, Buffer.from('new')).answer).kind, 'accepted');
  await until(() => next.decodings.length === 3);
  settle(next, next.decodings);
  await until(() => next.files().length === 1);
  assert.deepEqual(readFileSync(foreign), later);
  assert.equal(next.counters.total('journal_bodies_damaged'), 0);
});

test('a segment that cannot be read stays, whatever else happens, and is read once it can be', async () => {
  const disk = new SimDisk();
  const bodies = new Bodies();
  const before = await startSim(disk, bodies);
  const [first, second] = [bodies.add(2000, 'accepted', false, 1), bodies.add(2000, 'accepted', false, 1)];
  before.send(first);
  before.send(second);
  await before.quiet();
  await before.stop();
  assert.equal(disk.namesIn(FOLDER).length, 2);

  disk.before = ({ kind, path }) => (kind === 'open' && path.endsWith('1.journal') ? { code: 'EMFILE' } : null);
  const after = await startSim(disk, bodies);
  after.journal.replay();
  await after.quiet();
  assert.deepEqual(after.decoded, [second]);
  assert.ok(after.journal.replayBytes > 0);
  after.settle(second);
  after.journal.startOver();
  await after.quiet();
  assert.equal(disk.namesIn(FOLDER).filter((name) => name.endsWith('.journal')).length, 1, 'what was read has gone');
  assert.ok(after.counters.total('journal_failures') > 0);
  disk.before = () => null;
  after.alarm.ring();
  await after.quiet();
  assert.deepEqual(after.decoded, [second, first]);
  after.settle(first);
  await after.quiet();
  assert.deepEqual(
    disk.namesIn(FOLDER).filter((name) => name.endsWith('.journal')),
    [],
  );
  await after.stop();
});

test('a clock that jumps by years is no reason to stop, nor to keep what is delivered', async () => {
  let nowMs = Date.now();
  const rig = await open({}, { ...systemClock, nowMs: () => (nowMs += 400 * 24 * 3_600_000) });
  assert.equal((await send(rig, Buffer.from('then')).answer).kind, 'accepted');
  nowMs = 0;
  assert.equal((await send(rig, Buffer.from('long before')).answer).kind, 'accepted');
  assert.deepEqual(rig.journal.reasons(), []);
  settle(rig, rig.decodings);
  await until(() => rig.files().length === 0);
  assert.equal(rig.counters.total('journal_failures'), 0);
});

test('before the start and after the stop bodies are put off', async () => {
  const rig = await open();
  await rig.journal.stop();
  assert.ok(isBusy(await send(rig, Buffer.from('late')).answer, 'draining'));
});
