import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';
import type { JsonObject, JsonText } from '../../../src/deploy/store/model.ts';
import type { DeploymentStore } from '../../../src/deploy/store/repositories.ts';
import { describeOnEachEngine } from '../../deploy-engines.ts';
import type { TestDatabase } from '../../deploy-engines.ts';

const NOW = Date.UTC(2026, 4, 4, 9);
/** Keys that have broken out of SQL strings, JSON paths and patterns elsewhere. */
const KEYS = [
  `'`,
  `"`,
  `''`,
  `') or 1=1 --`,
  `"} or 1=1 --`,
  `a' or 'a'='a`,
  `$`,
  `$.a`,
  `$[0]`,
  `a.b`,
  `a"."b`,
  `a[0]`,
  `[*]`,
  `?`,
  `?|`,
  `@>`,
  `%`,
  `_`,
  `*`,
  `\\`,
  `\\u0027`,
  `; drop table deploy_thread; --`,
  `constructor`,
  `prototype`,
  `toString`,
  `hasOwnProperty`,
  `🧊`,
  ` `,
  ``,
  `$1`,
  `:name`,
  `{}`,
];

describeOnEachEngine('keys and values of filters', (engine) => {
  let database: TestDatabase;
  let store: DeploymentStore;
  const ids: string[] = [];

  before(async () => {
    database = await engine.create();
    store = await database.open();
    for (const key of KEYS) {
      const threadId = database.ids.next();
      ids.push(threadId);
      const metadata = { [key]: { [key]: [key, 1] }, leaf: { [key]: key } };
      await store.threads.create({ threadId, metadata, ifExists: 'raise', ttl: null, nowMs: NOW });
      const valuesJson = JSON.stringify(metadata) as JsonText;
      await store.threads.setState(threadId, { valuesJson, interruptsJson: null, hasNext: false }, NOW);
      const valueText = JSON.stringify({ [key]: key }) as JsonText;
      await store.state.items.put({ namespace: ['keys'], key, valueJson: valueText, ttlMs: null }, NOW);
    }
  });
  after(async () => {
    await store.stop();
    await database.remove();
  });

  const found = async (filter: { metadata?: JsonObject; values?: JsonObject }): Promise<string[]> => {
    const page = { limit: 1000, offset: 0 };
    const { rows, totalCount } = await store.threads.search(filter, page, { by: 'threadId', order: 'asc' });
    assert.equal(totalCount, rows.length);
    assert.equal(await store.threads.count(filter), rows.length);
    return rows.map((thread) => thread.threadId);
  };

  for (const [index, key] of KEYS.entries()) {
    it(`stay data: ${JSON.stringify(key)}`, async () => {
      assert.deepEqual(await found({ metadata: { [key]: {} } }), [ids[index]]);
      assert.deepEqual(await found({ metadata: { [key]: { [key]: [key] } } }), [ids[index]]);
      assert.deepEqual(await found({ metadata: { leaf: { [key]: key } } }), [ids[index]]);
      assert.deepEqual(await found({ values: { leaf: { [key]: key } } }), [ids[index]]);
      assert.deepEqual(await found({ metadata: { [key]: 'other' } }), []);
      assert.deepEqual(await found({ values: { [key]: { [key]: [1] } } }), [ids[index]]);
      const items = await store.state.items.search(
        { namespacePrefix: ['keys'], filter: { [key]: key }, query: null },
        { limit: 10, offset: 0 },
        NOW,
      );
      assert.deepEqual(
        items.map(({ item }) => item.key),
        [key],
      );
      const page = { limit: 10, offset: 0 };
      const sort = { by: 'name', order: 'asc' } as const;
      assert.deepEqual((await store.assistants.search({ name: key, metadata: { [key]: 1 } }, page, sort)).rows, []);
    });
  }

  it('match nothing in values that the engine cannot read, instead of failing the search', async () => {
    const threadId = database.ids.next();
    await store.threads.create({ threadId, metadata: {}, ifExists: 'raise', ttl: null, nowMs: NOW });
    const valuesJson = '{"nul":"a\\u0000b","half":"\\ud800"}' as JsonText;
    await store.threads.setState(threadId, { valuesJson, interruptsJson: null, hasNext: false }, NOW);
    assert.equal((await store.threads.get(threadId))?.valuesJson, valuesJson);
    assert.deepEqual(await found({ values: { absent: 1 } }), []);
    assert.deepEqual(await found({ values: { absent: 'a' } }), []);
  });

  it('find what a graph has nested deeper than clients may, and are not stopped by it', async () => {
    const threadId = database.ids.next();
    await store.threads.create({ threadId, metadata: {}, ifExists: 'raise', ttl: null, nowMs: NOW });
    const valuesJson = `{"name":"deep","nest":${'['.repeat(1200)}${']'.repeat(1200)}}` as JsonText;
    await store.threads.setState(threadId, { valuesJson, interruptsJson: null, hasNext: false }, NOW);
    const found = async (values: JsonObject): Promise<string[]> => {
      const { rows } = await store.threads.search(
        { values },
        { limit: 10, offset: 0 },
        { by: 'threadId', order: 'desc' },
      );
      return rows.map((row) => row.threadId);
    };
    assert.deepEqual(await found({ name: 'deep' }), [threadId]);
    assert.deepEqual(await found({ name: 'shallow' }), []);
  });
});
