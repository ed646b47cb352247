import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import pg from 'pg';
import { sql } from 'kysely';
import { contains, jsonContains } from '../../src/deploy/store/contains.ts';
import type { JsonObject } from '../../src/deploy/store/model.ts';
import { openSqlite } from '../../src/deploy/store/sqlite.ts';

const server = process.env['DATABASE_URL_TEST'] ?? '';

/** Small alphabets, so that keys and values meet. */
const key = fc.constantFrom('a', 'b', '', '"', "'");
const leaf = fc.oneof(
  fc.constantFrom(null, true, false, 0, 1, -1.5, 1e21, 'a', 'b', ''),
  fc.constant([] as never[]),
  fc.constant({}),
);
const { document } = fc.letrec((tie) => ({
  document: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    fc.array(tie('document'), { maxLength: 3 }),
    fc.dictionary(key, tie('document'), { maxKeys: 3, noNullPrototype: true }),
  ),
}));
const filter = fc.dictionary(key, document, { maxKeys: 2, noNullPrototype: true });

describe('JSON containment', () => {
  it('says of every document that it contains itself and the empty object', () => {
    fc.assert(
      fc.property(filter, (value) => {
        assert.ok(jsonContains(value, value));
        assert.ok(jsonContains(value, {}));
      }),
    );
  });

  it('is what SQLite finds, with what it rules out beforehand', async () => {
    const db = openSqlite<{ document: { body: string } }>({
      path: ':memory:',
      synchronous: 'normal',
      exclusive: false,
    });
    await db.schema.createTable('document').addColumn('body', 'text').execute();
    try {
      await fc.assert(
        fc.asyncProperty(filter, filter, async (one, other) => {
          await db.deleteFrom('document').execute();
          await db
            .insertInto('document')
            .values({ body: JSON.stringify(one) })
            .execute();
          const rows = await db
            .selectFrom('document')
            .selectAll()
            .where(contains('sqlite', sql.ref('body'), other as JsonObject))
            .execute();
          assert.equal(rows.length === 1, jsonContains(one, other));
        }),
        { numRuns: 1000 },
      );
    } finally {
      await db.destroy();
    }
  });

  const skip = server === '' ? 'DATABASE_URL_TEST is not set: NOT COMPARED WITH POSTGRESQL' : false;
  it('agrees with PostgreSQL on what contains what', { skip }, async () => {
    const client = new pg.Client({ connectionString: server });
    await client.connect();
    try {
      await fc.assert(
        fc.asyncProperty(filter, filter, async (one, other) => {
          const { rows } = await client.query<{ contains: boolean }>('select $1::jsonb @> $2::jsonb as contains', [
            JSON.stringify(one),
            JSON.stringify(other),
          ]);
          assert.equal(jsonContains(one, other), rows[0]?.contains);
        }),
        { numRuns: 1000 },
      );
    } finally {
      await client.end();
    }
  });
});
