/**
 * How checkpoints get written. On SQLite the writes of one turn of the event loop, whichever runs they belong to, share a transaction:
 * a commit costs several times as much as the statements in it. Comes in: writes; each promise settles when its write is committed.
 * What waits is bounded by the runs of this thread, each of which waits for its own. A failed transaction is tried again write by
 * write, so that one bad write fails alone, with what its owner wrote after it. On close, what waits is written.
 *
 * The lock is held only while the statements run, never across a turn in which a graph may compute.
 */
import { setTimeout as pause } from 'node:timers/promises';
import type { CompiledQuery, Kysely } from 'kysely';
import type { StateDatabase } from '../store/database.ts';
import type { StateTables } from '../store/schema.ts';
import { transactionOf } from '../store/transaction.ts';

/** Statements that are committed together. They must be repeatable: they may run again after they have failed. */
export type Write = readonly CompiledQuery[];

export interface Writes {
  /** `owner`: whose it is. When one of its writes fails, those that wait behind it fail too. On SQLite all settle in order. */
  write(write: Write, owner: string): Promise<void>;
  /** Resolves when nothing waits: before a read that must see what was written before it. */
  settled(): Promise<void>;
}

interface Waiting {
  write: Write;
  owner: string;
  resolve(): void;
  reject(error: unknown): void;
}

const TRY_COUNT = 3;
const FIRST_PAUSE_MS = 50;
/** PostgreSQL: connection exceptions, shutdowns, serialisation; Node: the socket. */
const PASSING = /^(?:08|57P|40001|40P01|ECONNRESET$|ECONNREFUSED$|EPIPE$|ETIMEDOUT$)/;

export function createWrites(state: StateDatabase): Writes {
  return state.engine === 'sqlite' ? groupedWrites(state.db) : retriedWrites(state.db);
}

function groupedWrites(db: Kysely<StateTables>): Writes {
  let waiting: Waiting[] = [];
  let timer: NodeJS.Immediate | null = null;
  let flushing: Promise<void> = Promise.resolve();
  /** Owners whose write has failed in this turn: they may not have heard of it when they write the next one. */
  const failures = new Map<string, unknown>();

  const transact = (batch: readonly Waiting[]): Promise<unknown> =>
    db.executeQuery(transactionOf(batch.flatMap(({ write }) => write)));

  const commit = async (batch: readonly Waiting[]): Promise<void> => {
    if (batch.some(({ owner }) => failures.has(owner))) return oneByOne(batch);
    try {
      await transact(batch);
    } catch {
      // The error is that of one write: it is found, and told to its owner, below.
      return oneByOne(batch);
    }
    for (const one of batch) one.resolve();
  };

  const oneByOne = async (batch: readonly Waiting[]): Promise<void> => {
    for (const one of batch) {
      try {
        if (failures.has(one.owner)) throw failures.get(one.owner);
        await transact([one]);
        one.resolve();
      } catch (error) {
        if (!failures.has(one.owner)) setImmediate(() => failures.delete(one.owner));
        failures.set(one.owner, error);
        one.reject(error);
      }
    }
  };

  const flush = (): Promise<void> => {
    if (timer !== null) clearImmediate(timer);
    timer = null;
    const batch = waiting;
    waiting = [];
    if (batch.length > 0) flushing = flushing.then(() => commit(batch));
    return flushing;
  };

  return {
    write: (write, owner) =>
      new Promise((resolve, reject) => {
        const one: Waiting = { write, owner, resolve, reject };
        if (failures.has(owner)) return one.reject(failures.get(owner));
        waiting.push(one);
        timer ??= setImmediate(() => void flush());
      }),
    settled: flush,
  };
}

/** Checkpoints and writes are upserts, so that one whose fate is unknown can be sent again. */
function retriedWrites(db: Kysely<StateTables>): Writes {
  const run = async (write: Write): Promise<void> => {
    const [only] = write;
    // One statement is atomic by itself.
    if (write.length === 1 && only !== undefined) return void (await db.executeQuery(only));
    await db.transaction().execute(async (on) => {
      for (const statement of write) await on.executeQuery(statement);
    });
  };
  return {
    write: async (write) => {
      for (let number = 1; ; number++) {
        try {
          return await run(write);
        } catch (error) {
          const code = (error as { code?: unknown } | null)?.code;
          if (number >= TRY_COUNT || typeof code !== 'string' || !PASSING.test(code)) throw error;
          await pause(FIRST_PAUSE_MS * 2 ** (number - 1));
        }
      }
    },
    settled: () => Promise.resolve(),
  };
}
