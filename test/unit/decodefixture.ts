/** A pool with the scripted decoder, and what tests look at. */
import { createCounterTable, type CounterTable } from '../../src/core/counters.ts';
import type { BodyCoding, IntakeBody } from '../../src/core/intake.ts';
import type { Log } from '../../src/core/log.ts';
import type { Admission } from '../../src/core/outcome.ts';
import { RecordOffset } from '../../src/core/record.ts';
import { createDecodePool, type DecodePool, type DecodePoolSettings, type PoisonBody } from '../../src/decode/pool.ts';
import { counterRow, type DecodeThreadSettings } from '../../src/decode/task.ts';
import { createRingSet, type RingSet } from '../../src/ring/layout.ts';
import { createRecordWindow, openShardReader, type ShardReader } from '../../src/ring/reader.ts';

export interface Fixture {
  pool: DecodePool;
  rings: RingSet;
  counters: CounterTable;
  oversize: { shard: number; record: ArrayBuffer }[];
  setAside: PoisonBody[];
  logLines: { level: string; fields: object; message: string }[];
  /** Everything published and not yet read, over all shards, released at once. */
  readNumbers: () => number[];
}

export interface FixtureSettings {
  threadCount?: number;
  shardCount?: number;
  ringBytes?: number;
  thread?: Partial<DecodeThreadSettings>;
  pool?: Partial<DecodePoolSettings>;
  /** In place of keeping the body. */
  setAside?: () => Promise<void>;
}

export const SHARD_COUNT = 2;

export function createFixture(settings: FixtureSettings = {}): Fixture {
  const threadCount = settings.threadCount ?? 1;
  const shardCount = settings.shardCount ?? SHARD_COUNT;
  const rings = createRingSet({ producerCount: threadCount, shardCount, ringBytes: settings.ringBytes ?? 65_536 });
  const counters = createCounterTable(counterRow(shardCount, threadCount));
  const oversize: Fixture['oversize'] = [];
  const setAside: Fixture['setAside'] = [];
  const logLines: Fixture['logLines'] = [];
  const pool = createDecodePool(
    {
      threadCount,
      workerUrl: new URL('./decodeworker.ts', import.meta.url),
      maxTaskBytes: 256 * 1024,
      maxHeldBytes: 64 * 1024 * 1024,
      thread: {
        rings,
        counters: counters.shared,
        decoder: { genericAttributes: false, rootRunId: 'trace', converterModule: null },
        maxBodyBytes: 1024 * 1024,
        ringWaitMs: 50,
        bodyWaitMs: 1000,
        maxOversizeBytes: 1024 * 1024,
        ...settings.thread,
      },
      ...settings.pool,
    },
    {
      forwardOversize: (shard, record) => oversize.push({ shard, record }),
      setAside: settings.setAside ?? (async (body) => void setAside.push(body)),
      counters: counters.row(0),
      log: collectingLog(logLines),
    },
  );
  const readers: ShardReader[] = Array.from({ length: shardCount }, (_, shard) => openShardReader(rings, shard));
  const window = createRecordWindow(1000);
  const readNumbers = (): number[] => {
    const numbers: number[] = [];
    for (const reader of readers) {
      while (reader.read(window, 1 << 20) > 0) {
        for (let i = 0; i < window.count; i++) {
          numbers.push(window.bytes[i]?.readUInt32LE((window.offset[i] ?? 0) + RecordOffset.Source) ?? -1);
        }
      }
      reader.release();
    }
    return numbers.sort((a, b) => a - b);
  };
  return { pool, rings, counters, oversize, setAside, logLines, readNumbers };
}

export interface BodyOptions {
  coding?: BodyCoding;
  encoding?: IntakeBody['encoding'];
  apiKey?: string;
  project?: string | null;
  receivedUs?: number;
  sourceNumber?: number;
  /** Give the bytes away in a buffer of their own. */
  owned?: boolean;
}

/** Hands a body in and resolves with what its sender is told; rejects when it is told twice, or from within. */
export function send(pool: DecodePool, bytes: Uint8Array, options: BodyOptions = {}): Promise<Admission> {
  return new Promise((resolve, reject) => {
    let inside = true;
    let told = 0;
    const body: IntakeBody = {
      encoding: options.encoding ?? 'json',
      coding: options.coding ?? 'identity',
      apiKey: options.apiKey ?? 'key',
      project: options.project ?? null,
      receivedUs: options.receivedUs ?? 1,
      sourceNumber: options.sourceNumber ?? 0,
      settle: (admission) => {
        told++;
        if (inside) reject(new Error('settled from within submit'));
        if (told > 1) reject(new Error('settled twice'));
        // A second time would come in the same turn or later: give it the chance to show.
        setImmediate(() => resolve(admission));
      },
    };
    if (options.owned === true) {
      const buffer = new ArrayBuffer(bytes.length + 100);
      new Uint8Array(buffer).set(bytes);
      pool.submitOwned(body, buffer, bytes.length);
    } else {
      const copy = Uint8Array.from(bytes);
      pool.submit(body, copy);
      copy.fill(0);
    }
    inside = false;
  });
}

function collectingLog(lines: Fixture['logLines']): Log {
  const write =
    (level: string) =>
    (fields: object, message: string): void => {
      lines.push({ level, fields, message });
    };
  const log: Log = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => log,
  };
  return log;
}
