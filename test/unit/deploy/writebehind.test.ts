import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { sql, type CompiledQuery, type Kysely } from 'kysely';
import { WriteBehind } from '../../../src/deploy/checkpoint/behind.ts';
import { createWrites } from '../../../src/deploy/checkpoint/writes.ts';
import type { StateTables } from '../../../src/deploy/store/schema.ts';
import { openSqlite } from '../../../src/deploy/store/sqlite.ts';
import { transactionOf } from '../../../src/deploy/store/transaction.ts';

interface Bench {
  db: Kysely<StateTables>;
  behind: WriteBehind;
  put: (value: string | null) => CompiledQuery;
  /** As another connection sees them: what is committed. */
  committed: () => Promise<string[]>;
}

async function bench(t: TestContext): Promise<Bench> {
  const folder = mkdtempSync(join(tmpdir(), 'writebehind-'));
  const settings = { path: join(folder, 'state.sqlite'), synchronous: 'normal', exclusive: false } as const;
  const db = openSqlite<StateTables>(settings);
  const reader = openSqlite<StateTables>(settings);
  t.after(async () => {
    await db.destroy();
    await reader.destroy();
    rmSync(folder, { recursive: true });
  });
  await sql`create table kept (value text not null)`.execute(db);
  return {
    db,
    behind: new WriteBehind(createWrites({ engine: 'sqlite', db })),
    put: (value) => sql`insert into kept values (${value})`.compile(db),
    committed: async () =>
      (await sql<{ value: string }>`select value from kept order by rowid`.execute(reader)).rows.map(
        ({ value }) => value,
      ),
  };
}

test('a run that lags goes on at once, and all it wrote is committed, in order, when it asks', async (t) => {
  const { behind, put, committed } = await bench(t);
  const run = behind.begin('a');
  await behind.write('a', [put('1')]);
  await behind.write('a', [put('2'), put('3')]);
  assert.deepEqual(await committed(), []);
  await run.settled();
  assert.deepEqual(await committed(), ['1', '2', '3']);
  await behind.write('a', [put('4')]);
  await run.close();
  assert.deepEqual(await committed(), ['1', '2', '3', '4']);
});

test('a run that does not lag waits for the commit', async (t) => {
  const { behind, put, committed } = await bench(t);
  await behind.write('a', [put('1')]);
  assert.deepEqual(await committed(), ['1']);
});

test('what fails is told when the run ends; nothing of it is written after that, and its neighbours lose nothing', async (t) => {
  const { behind, put, committed } = await bench(t);
  const [bad, good] = [behind.begin('bad'), behind.begin('good')];
  await behind.write('bad', [put('before')]);
  await behind.write('bad', [put('half'), put(null)]);
  await behind.write('good', [put('neighbour')]);
  await behind.write('bad', [put('after')]);
  await assert.rejects(bad.settled(), /NOT NULL/);
  await good.settled();
  assert.deepEqual(await committed(), ['before', 'neighbour']);
  // The library hears of it at its next step.
  await assert.rejects(behind.write('bad', [put('later')]), /NOT NULL/);
  await bad.close();
  await good.close();
  assert.deepEqual(await committed(), ['before', 'neighbour']);
});

test('what is written while a write fails is not committed after it, unless it is a neighbour’s', async (t) => {
  const { db, put, committed } = await bench(t);
  const writes = createWrites({ engine: 'sqlite', db });
  const first = writes.write([put(null)], 'bad');
  const read = writes.settled();
  const meanwhile = writes.write([put('meanwhile')], 'bad');
  const again = writes.settled();
  const behind = writes.write([put('behind')], 'bad');
  const neighbour = writes.write([put('neighbour')], 'good');
  for (const failed of [first, meanwhile, behind]) await assert.rejects(failed, /NOT NULL/);
  await Promise.all([read, again, neighbour]);
  assert.deepEqual(await committed(), ['neighbour']);
  // Who has heard of it decides what comes next.
  await new Promise((resolve) => setImmediate(resolve));
  await writes.write([put('later')], 'bad');
  assert.deepEqual(await committed(), ['neighbour', 'later']);
});

test('a transaction in one go leaves nothing behind when a statement fails', async (t) => {
  const { db, put, committed } = await bench(t);
  await assert.rejects(db.executeQuery(transactionOf([put('1'), put(null)])), /NOT NULL/);
  assert.deepEqual(await committed(), []);
  await db.executeQuery(transactionOf([put('2')]));
  assert.deepEqual(await committed(), ['2']);
});
