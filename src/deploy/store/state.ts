/** What happens to whole threads and runs in the state database; single checkpoints are the saver's (checkpoint/). */
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import type { StateDatabase } from './database.ts';
import { createItemRepository } from './items.ts';
import type { StateStore } from './repositories.ts';
import type { ControlTables, StateTables } from './schema.ts';

type On = Kysely<StateTables>;

export function createStateStore(state: StateDatabase): StateStore {
  const { db, engine } = state;
  /**
   * PostgreSQL holds both kinds of tables, so that what belongs to a transaction there runs in it. On a connection of its own it would
   * wait for one while it keeps another: as many such transactions as there are connections wait for each other.
   */
  const transact = (within: Kysely<ControlTables> | undefined, work: (on: On) => Promise<void>): Promise<void> =>
    engine === 'postgres' && within !== undefined
      ? work(within as unknown as On)
      : db.transaction().execute((on) => work(on));
  return {
    items: createItemRepository(state),

    deleteThread: (threadId, within) =>
      transact(within, async (on) => {
        await on.deleteFrom('deploy_write').where('thread_id', '=', threadId).execute();
        await on.deleteFrom('deploy_checkpoint').where('thread_id', '=', threadId).execute();
      }),

    deleteRun: (threadId, runId, within) =>
      transact(within, async (on) => {
        // What it wrote to its own checkpoints, and to the one of an earlier run that it resumed.
        await on
          .deleteFrom('deploy_write')
          .where('thread_id', '=', threadId)
          .where((where) =>
            where.or([
              where('run_id', '=', runId),
              where(
                where.refTuple('checkpoint_ns', 'checkpoint_id'),
                'in',
                where
                  .selectFrom('deploy_checkpoint')
                  .select(['checkpoint_ns', 'checkpoint_id'])
                  .where('thread_id', '=', threadId)
                  .where('run_id', '=', runId)
                  .$asTuple('checkpoint_ns', 'checkpoint_id'),
              ),
            ]),
          )
          .execute();
        await on
          .deleteFrom('deploy_checkpoint')
          .where('thread_id', '=', threadId)
          .where('run_id', '=', runId)
          .execute();
      }),

    copyThread: (threadId, newThreadId, within) =>
      transact(within, async (on) => {
        await on
          .insertInto('deploy_checkpoint')
          .columns([
            'thread_id',
            'checkpoint_ns',
            'checkpoint_id',
            'parent_id',
            'run_id',
            'type',
            'checkpoint',
            'holders',
            'delta_type',
            'delta',
            'metadata_type',
            'metadata',
          ])
          .expression(
            on
              .selectFrom('deploy_checkpoint')
              .select(sql<string>`${newThreadId}`.as('thread_id'))
              .select([
                'checkpoint_ns',
                'checkpoint_id',
                'parent_id',
                'run_id',
                'type',
                'checkpoint',
                'holders',
                'delta_type',
                'delta',
                'metadata_type',
                'metadata',
              ])
              .where('thread_id', '=', threadId),
          )
          .execute();
        await on
          .insertInto('deploy_write')
          .columns([
            'thread_id',
            'checkpoint_ns',
            'checkpoint_id',
            'task_id',
            'idx',
            'channel',
            'type',
            'value',
            'run_id',
          ])
          .expression(
            on
              .selectFrom('deploy_write')
              .select(sql<string>`${newThreadId}`.as('thread_id'))
              .select(['checkpoint_ns', 'checkpoint_id', 'task_id', 'idx', 'channel', 'type', 'value', 'run_id'])
              .where('thread_id', '=', threadId),
          )
          .execute();
      }),

    keepLatest: (threadId) =>
      db.transaction().execute(async (on) => {
        const newest = await on
          .selectFrom('deploy_checkpoint')
          .select((builder) => ['checkpoint_ns', builder.fn.max('checkpoint_id').as('checkpoint_id')])
          .where('thread_id', '=', threadId)
          .groupBy('checkpoint_ns')
          .execute();
        for (const { checkpoint_ns: ns, checkpoint_id: checkpointId } of newest) {
          const kept = await gather(on, threadId, ns, checkpointId);
          for (const table of ['deploy_write', 'deploy_checkpoint'] as const) {
            await on
              .deleteFrom(table)
              .where('thread_id', '=', threadId)
              .where('checkpoint_ns', '=', ns)
              .where('checkpoint_id', 'not in', kept)
              .execute();
          }
        }
      }),
  };
}

/**
 * Moves the values that a checkpoint points at into itself, so that the others can go. Returns the checkpoints to keep: just this one,
 * or also those it points at where values are not JSON (a serializer of the project's own) and only their graph can read them.
 */
async function gather(on: Kysely<StateTables>, threadId: string, ns: string, checkpointId: string): Promise<string[]> {
  const at = (id: string) =>
    on
      .selectFrom('deploy_checkpoint')
      .select(['holders', 'delta_type', 'delta'])
      .where('thread_id', '=', threadId)
      .where('checkpoint_ns', '=', ns)
      .where('checkpoint_id', '=', id)
      .executeTakeFirst();
  const row = await at(checkpointId);
  if (row === undefined) return [checkpointId];
  const holders = JSON.parse(row.holders) as Record<string, string>;
  const deltas = new Map<string, Record<string, unknown>>();
  for (const id of new Set([checkpointId, ...Object.values(holders)])) {
    const delta = await at(id);
    if (delta === undefined) continue;
    if (delta.delta_type !== 'json') return [checkpointId, ...Object.values(holders)];
    deltas.set(id, JSON.parse(new TextDecoder().decode(delta.delta)) as Record<string, unknown>);
  }
  const entries = Object.entries(holders).map(([channel, holder]) => [channel, deltas.get(holder)?.[channel]]);
  await on
    .updateTable('deploy_checkpoint')
    .set({
      parent_id: null,
      holders: JSON.stringify(Object.fromEntries(Object.keys(holders).map((channel) => [channel, checkpointId]))),
      delta: new TextEncoder().encode(JSON.stringify(Object.fromEntries(entries))),
    })
    .where('thread_id', '=', threadId)
    .where('checkpoint_ns', '=', ns)
    .where('checkpoint_id', '=', checkpointId)
    .execute();
  return [checkpointId];
}
