/** The statements that every step of every run takes, compiled once a connection. Reads are run; writes are handed out, to be run together. */
import type { CompiledQuery } from 'kysely';
import type { StateDatabase } from '../store/database.ts';
import { prepare } from '../store/prepared.ts';
import type { Prepared } from '../store/prepared.ts';
import type { CheckpointTable, WriteTable } from '../store/schema.ts';

export interface CheckpointQueries {
  /** The newest of the namespace when no id is given. */
  checkpoint(at: { threadId: string; ns: string; checkpointId: string | undefined }): Promise<CheckpointTable | null>;
  /** One row for each place: the newest run's. In order of task and index. */
  writes(threadId: string, ns: string, checkpointId: string): Promise<WriteTable[]>;
  checkpointUpsert(row: CheckpointTable): CompiledQuery;
  /** Who wrote the newest checkpoint of the root namespace; null when there is none, or nobody's. */
  latestRunId(threadId: string): Promise<string | null>;
  /** The `holders` column; null when there is no such checkpoint. */
  holders(threadId: string, ns: string, checkpointId: string): Promise<string | null>;
  deltas(threadId: string, ns: string, checkpointIds: readonly string[]): Promise<Delta[]>;
  /** More rows than fit one statement make several: they belong into one transaction. */
  writeInserts(rows: readonly WriteTable[]): CompiledQuery[];
}

export type Delta = Pick<CheckpointTable, 'checkpoint_id' | 'delta_type' | 'delta'>;

/** Rows of one insert. */
const CHUNK_COUNT = 16;

export function createCheckpointQueries({ db }: StateDatabase): CheckpointQueries {
  const newest = prepare<{ threadId: string; ns: string }, CheckpointTable>((slot) =>
    db
      .selectFrom('deploy_checkpoint')
      .selectAll()
      .where('thread_id', '=', slot('threadId'))
      .where('checkpoint_ns', '=', slot('ns'))
      .orderBy('checkpoint_id', 'desc')
      .limit(1),
  );
  const exact = prepare<{ threadId: string; ns: string; checkpointId: string }, CheckpointTable>((slot) =>
    db
      .selectFrom('deploy_checkpoint')
      .selectAll()
      .where('thread_id', '=', slot('threadId'))
      .where('checkpoint_ns', '=', slot('ns'))
      .where('checkpoint_id', '=', slot('checkpointId')),
  );
  const newestWriter = prepare<{ threadId: string }, { run_id: string | null }>((slot) =>
    db
      .selectFrom('deploy_checkpoint')
      .select('run_id')
      .where('thread_id', '=', slot('threadId'))
      .where('checkpoint_ns', '=', '')
      .orderBy('checkpoint_id', 'desc')
      .limit(1),
  );
  const holdersOf = prepare<{ threadId: string; ns: string; checkpointId: string }, { holders: string }>((slot) =>
    db
      .selectFrom('deploy_checkpoint')
      .select('holders')
      .where('thread_id', '=', slot('threadId'))
      .where('checkpoint_ns', '=', slot('ns'))
      .where('checkpoint_id', '=', slot('checkpointId')),
  );
  const oneDelta = prepare<{ threadId: string; ns: string; checkpointId: string }, Delta>((slot) =>
    db
      .selectFrom('deploy_checkpoint')
      .select(['checkpoint_id', 'delta_type', 'delta'])
      .where('thread_id', '=', slot('threadId'))
      .where('checkpoint_ns', '=', slot('ns'))
      .where('checkpoint_id', '=', slot('checkpointId')),
  );
  const writesOf = prepare<{ threadId: string; ns: string; checkpointId: string }, WriteTable>((slot) =>
    db
      .selectFrom('deploy_write')
      .selectAll()
      .where('thread_id', '=', slot('threadId'))
      .where('checkpoint_ns', '=', slot('ns'))
      .where('checkpoint_id', '=', slot('checkpointId'))
      .orderBy('task_id')
      .orderBy('idx')
      // Run ids sort by creation.
      .orderBy('run_id'),
  );
  const upsert = prepare<CheckpointTable, never>((slot) =>
    db
      .insertInto('deploy_checkpoint')
      .values({
        thread_id: slot('thread_id'),
        checkpoint_ns: slot('checkpoint_ns'),
        checkpoint_id: slot('checkpoint_id'),
        parent_id: slot('parent_id'),
        run_id: slot('run_id'),
        type: slot('type'),
        checkpoint: slot('checkpoint'),
        holders: slot('holders'),
        delta_type: slot('delta_type'),
        delta: slot('delta'),
        metadata_type: slot('metadata_type'),
        metadata: slot('metadata'),
      })
      .onConflict((conflict) =>
        conflict.columns(['thread_id', 'checkpoint_ns', 'checkpoint_id']).doUpdateSet((excluded) => ({
          parent_id: excluded.ref('excluded.parent_id'),
          run_id: excluded.ref('excluded.run_id'),
          type: excluded.ref('excluded.type'),
          checkpoint: excluded.ref('excluded.checkpoint'),
          holders: excluded.ref('excluded.holders'),
          delta_type: excluded.ref('excluded.delta_type'),
          delta: excluded.ref('excluded.delta'),
          metadata_type: excluded.ref('excluded.metadata_type'),
          metadata: excluded.ref('excluded.metadata'),
        })),
      ),
  );

  type Flat = Record<string, unknown>;
  const inserts = new Map<string, Prepared<Flat, never>>();
  /** Errors, interrupts and resumes replace what stood there; ordinary writes are first come, first kept. */
  const insert = (count: number, replaces: boolean): Prepared<Flat, never> => {
    const name = `${count} ${String(replaces)}`;
    const known = inserts.get(name);
    if (known !== undefined) return known;
    const made = prepare<Flat, never>((slot) => {
      const rows = Array.from({ length: count }, (_, index) =>
        Object.fromEntries(WRITE_COLUMNS.map((column) => [column, slot(`${column}${index}`)])),
      ) as unknown as WriteTable[];
      return db
        .insertInto('deploy_write')
        .values(rows)
        .onConflict((conflict) => {
          const place = conflict.columns(['thread_id', 'checkpoint_ns', 'checkpoint_id', 'task_id', 'idx', 'run_id']);
          if (!replaces) return place.doNothing();
          return place.doUpdateSet((excluded) => ({
            channel: excluded.ref('excluded.channel'),
            type: excluded.ref('excluded.type'),
            value: excluded.ref('excluded.value'),
          }));
        });
    });
    inserts.set(name, made);
    return made;
  };

  const chunksOf = (rows: readonly WriteTable[]): { rows: readonly WriteTable[]; replaces: boolean }[] => {
    const chunks: { rows: readonly WriteTable[]; replaces: boolean }[] = [];
    for (const replaces of [false, true]) {
      const some = rows.filter((row) => row.idx < 0 === replaces);
      for (let at = 0; at < some.length; at += CHUNK_COUNT) {
        chunks.push({ rows: some.slice(at, at + CHUNK_COUNT), replaces });
      }
    }
    return chunks;
  };

  const flat = (rows: readonly WriteTable[]): Flat => {
    const values: Flat = {};
    for (const [index, row] of rows.entries()) {
      for (const column of WRITE_COLUMNS) values[`${column}${index}`] = row[column];
    }
    return values;
  };

  return {
    checkpoint: async ({ threadId, ns, checkpointId }) => {
      const { rows } =
        checkpointId === undefined
          ? await newest(db, { threadId, ns })
          : await exact(db, { threadId, ns, checkpointId });
      return rows[0] ?? null;
    },

    writes: async (threadId, ns, checkpointId) => {
      const { rows } = await writesOf(db, { threadId, ns, checkpointId });
      return rows.filter((row, index) => {
        const next = rows[index + 1];
        return next === undefined || next.task_id !== row.task_id || next.idx !== row.idx;
      });
    },

    checkpointUpsert: (row) => upsert.bind(row),

    latestRunId: async (threadId) => (await newestWriter(db, { threadId })).rows[0]?.run_id ?? null,

    holders: async (threadId, ns, checkpointId) =>
      (await holdersOf(db, { threadId, ns, checkpointId })).rows[0]?.holders ?? null,

    deltas: async (threadId, ns, checkpointIds) => {
      // A handful at most: how many checkpoints ago the channels were last written to.
      const found: Delta[] = [];
      for (const checkpointId of checkpointIds) {
        found.push(...(await oneDelta(db, { threadId, ns, checkpointId })).rows);
      }
      return found;
    },

    writeInserts: (rows) =>
      chunksOf(rows).map((chunk) => insert(chunk.rows.length, chunk.replaces).bind(flat(chunk.rows))),
  };
}

const WRITE_COLUMNS = [
  'thread_id',
  'checkpoint_ns',
  'checkpoint_id',
  'task_id',
  'idx',
  'channel',
  'type',
  'value',
  'run_id',
] as const satisfies readonly (keyof WriteTable)[];
