/** What the store keeps across restarts and deletes when it is full; real files, real threads. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, test } from 'node:test';
import { createBackendClient, partsOf } from '../../src/backend/client.ts';
import { writeMultipart } from '../../src/backend/form.ts';
import { readUpload, type Upload } from '../../src/backend/intake.ts';
import { readMultipart } from '../../src/backend/multipart.ts';
import { startBackend } from '../../src/backend/owner.ts';
import { listTraces } from '../../src/backend/query.ts';
import { backendSettings } from '../../src/backend/settings.ts';
import { openStore, type Store } from '../../src/backend/store.ts';
import { makeRun, type RunRecord } from '../backend-runs.ts';

const folder = mkdtempSync(join(tmpdir(), 'backend-store-'));
after(() => rmSync(folder, { recursive: true }));

function uploadOf(runs: readonly RunRecord[]): Upload {
  const body = writeMultipart(
    runs.flatMap((run) => partsOf('post', run)),
    'B',
  );
  const form = readMultipart(body, 'B', { maxPartCount: 10_000, maxHeaderBytes: 1000 });
  assert.ok(form.kind === 'parts');
  const upload = readUpload(form.parts, backendSettings());
  assert.ok(upload.kind === 'upload');
  return upload;
}

function put(store: Store, ...runs: RunRecord[]): void {
  assert.equal(store.write('t', uploadOf(runs)).kind, 'written');
}

function idsIn(store: Store, text?: string): string[] {
  store.text.flush(Infinity);
  const filter = text === undefined ? {} : { text };
  return listTraces(store.database, filter, { limit: 1000 }).items.map(({ trace_id }) => trace_id);
}

test('Runs outlive the process that took them, and are still known to be there.', async () => {
  const file = join(folder, 'deep', 'er', 'runs.sqlite');
  const run = makeRun({ fields: { inputs: { q: 'remember' } } });
  const first = await startBackend({ file });
  assert.equal((await createBackendClient(first.url).uploadRuns([run])).status, 202);
  await first.stop();
  const second = await startBackend({ file });
  const client = createBackendClient(second.url);
  assert.deepEqual((await client.run(run.id))?.inputs, { q: 'remember' });
  assert.equal((await client.traces({ text: 'remember' })).items.length, 1);
  assert.equal((await client.uploadRuns([run])).status, 409);
  const child = makeRun({ parent: run });
  assert.equal((await client.uploadRuns([child])).status, 202);
  assert.equal((await client.trace(run.id))?.trace.run_count, 2);
  const { store } = await client.stats();
  assert.deepEqual([store.trace_count, store.run_count], [1, 2]);
  await second.stop();
});

test('Text that was not indexed when the process died is indexed at the next start.', () => {
  const file = join(folder, 'crash.sqlite');
  const settings = backendSettings({ file });
  const store = openStore(settings);
  const [indexed, waiting] = [
    makeRun({ fields: { inputs: { q: 'common first' } } }),
    makeRun({ fields: { inputs: { q: 'common second' }, error: 'broken' } }),
  ];
  put(store, indexed);
  store.text.flush(Infinity);
  put(store, waiting);
  assert.equal(store.text.waitingCount, 1);
  // No close(): that would index what waits. What is committed is in the file.
  store.database.close();
  const again = openStore(settings);
  assert.equal(again.text.waitingCount, 0);
  assert.deepEqual(new Set(idsIn(again, 'common')), new Set([indexed.id, waiting.id]));
  assert.deepEqual(idsIn(again, 'broken'), [waiting.id]);
  again.close();
});

test('Over the number of traces the oldest go, with everything that belongs to them.', () => {
  const store = openStore(backendSettings({ maxTraceCount: 10 }));
  const runs = Array.from({ length: 25 }, (_, n) => makeRun({ fields: { inputs: { q: `word${n}` } } }));
  for (const run of runs) put(store, run, makeRun({ parent: run }));
  assert.equal(store.traceCount, 10);
  assert.equal(store.runCount, 20);
  assert.equal(store.prunedTraceCount, 15);
  assert.deepEqual(new Set(idsIn(store)), new Set(runs.slice(15).map(({ id }) => id)));
  assert.deepEqual(idsIn(store, 'word3'), []);
  assert.deepEqual(idsIn(store, 'word20'), [runs[20]?.id]);
  for (const table of ['runs', 'documents', 'run_text_docsize']) {
    assert.deepEqual({ ...store.database.prepare(`SELECT count(*) AS n FROM ${table}`).get() }, { n: 20 }, table);
  }
  put(store, runs[0] ?? makeRun());
  assert.equal(store.traceCount, 10, 'what was deleted may come again');
  store.close();
});

test('Over the number of bytes the oldest go, and the file stops growing.', () => {
  const maxStoreBytes = 4_000_000;
  const store = openStore(backendSettings({ file: join(folder, 'bytes.sqlite'), maxStoreBytes }));
  const noise = (n: number): string =>
    Array.from({ length: 1500 }, (_, i) => ((i + 1) * (n + 7) * 2654435761) % 1e9).join(' ');
  for (let n = 0; n < 600; n++) put(store, makeRun({ fields: { inputs: { q: noise(n) } } }));
  const bytes = store.database
    .prepare('SELECT page_count * page_size AS n FROM pragma_page_count, pragma_page_size')
    .get();
  assert.ok(store.prunedTraceCount > 50, `${store.prunedTraceCount} pruned`);
  assert.ok(Number(bytes?.['n']) < maxStoreBytes * 1.25, `${String(bytes?.['n'])} bytes`);
  assert.ok(store.traceCount > 50);
  store.close();
});

test('The newest trace stays even when it alone is too much.', () => {
  const store = openStore(backendSettings({ maxStoreBytes: 1 }));
  const run = makeRun();
  put(store, makeRun());
  put(store, run);
  assert.deepEqual(idsIn(store), [run.id]);
  store.close();
});

test('A refused write leaves no trace, no number, no text behind.', () => {
  const store = openStore(backendSettings());
  const run = makeRun({ fields: { inputs: { q: 'kept' } } });
  put(store, run);
  const fresh = makeRun({ fields: { inputs: { q: 'lost' }, session_name: 'new project' } });
  assert.equal(store.write('t', uploadOf([fresh, run])).kind, 'conflict');
  assert.deepEqual(idsIn(store), [run.id]);
  assert.deepEqual(idsIn(store, 'lost'), []);
  assert.equal(store.database.prepare('SELECT * FROM projects').all().length, 1);
  put(store, fresh);
  assert.deepEqual(idsIn(store, 'lost'), [fresh.id]);
  assert.equal(store.runCount, 2);
  store.close();
});

test('Search text can be switched off.', () => {
  const store = openStore(backendSettings({ textIndexBytes: 0 }));
  put(store, makeRun({ fields: { inputs: { q: 'word' } } }));
  assert.equal(store.text.waitingCount, 0);
  assert.deepEqual(idsIn(store, 'word'), []);
  store.close();
});

test('Files of newer releases, of others, and of no database are refused, not overwritten.', async () => {
  const newer = join(folder, 'newer.sqlite');
  const database = new DatabaseSync(newer);
  database.exec('PRAGMA user_version = 99');
  database.close();
  await assert.rejects(startBackend({ file: newer }), /embedded backend: .*newer release \(schema 99/);
  const foreign = join(folder, 'foreign.sqlite');
  const other = new DatabaseSync(foreign);
  other.exec('CREATE TABLE theirs (x)');
  other.close();
  await assert.rejects(startBackend({ file: foreign }), /something else/);
  const text = join(folder, 'text.sqlite');
  writeFileSync(text, 'this is no database, however long the text is that stands here. '.repeat(100));
  await assert.rejects(startBackend({ file: text }), /not a database/);
});

test('A port that is taken is a start that fails, with the reason.', async () => {
  const first = await startBackend();
  const port = Number(new URL(first.url).port);
  await assert.rejects(startBackend({ port }), /EADDRINUSE/);
  await first.stop();
});
