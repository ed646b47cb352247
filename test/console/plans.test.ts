/** The queries of the console's lists, as SQLite means to answer them: by index, whatever is asked for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readFilter } from '../../src/backend/filter.ts';
import { listProjects, listTraces, matchTraces, readRun, readTrace } from '../../src/backend/query.ts';
import { backendSettings } from '../../src/backend/settings.ts';
import { readStats } from '../../src/backend/stats.ts';
import { openStore } from '../../src/backend/store.ts';

const FILTERS = [
  '',
  'project=p',
  'status=error',
  'run_type=llm&run_type=tool',
  'since=1&until=2',
  'text=word',
  'min_duration_ms=5&max_duration_ms=9',
  'error=true',
  'error=words',
  'project=p&status=error&run_type=llm&since=1&text=word&min_duration_ms=5&error=true',
];
const ID = '00000000-0000-4000-8000-000000000000';

test('no query of the console reads a table from end to end', () => {
  const store = openStore(backendSettings());
  const statements = new Map<string, string>();
  let asked = '';
  const database = new Proxy(store.database, {
    get: (target, name) => {
      if (name !== 'prepare') return Reflect.get(target, name, target) as unknown;
      return (sql: string) => {
        statements.set(sql, asked);
        return target.prepare(sql);
      };
    },
  });
  for (const query of FILTERS) {
    asked = query;
    const filter = readFilter(new URLSearchParams(query), []);
    listTraces(database, filter, { limit: 200 });
    listTraces(database, filter, { limit: 200, cursor: '5_5' });
    readStats(database, filter, 120);
    matchTraces(database, filter, [1, 2]);
  }
  asked = 'one trace';
  readRun(database, ID, undefined);
  readTrace(database, ID, undefined, 'flat');
  listProjects(database, undefined);

  assert.ok(statements.size > 20);
  for (const [sql, query] of statements) {
    const plan = (store.database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[]).map(
      ({ detail }) => detail,
    );
    const whole = plan.filter((step) => /^SCAN (traces|runs|documents|attachments|feedback)$/.test(step));
    assert.deepEqual(whole, [], `${query}\n${sql}\n${plan.join('\n')}`);
    if (
      !sql.startsWith('SELECT t.*') ||
      !sql.includes('LIMIT') ||
      /text|error=words/.test(query) ||
      query === 'one trace'
    )
      continue;
    // Rows come in the order of the index: those of the page alone are put in order once more.
    assert.equal(plan.filter((step) => step === 'USE TEMP B-TREE FOR ORDER BY').length, 1, plan.join('\n'));
    assert.ok(
      plan.some((step) => /(SCAN|SEARCH) traces USING COVERING INDEX traces_scan/.test(step)),
      plan.join('\n'),
    );
  }
  store.close();
});
