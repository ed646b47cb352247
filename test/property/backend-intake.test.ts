/** Whatever records say, the intake answers with an upload or a refusal, and the store writes all or nothing. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { jsonPart } from '../../src/backend/form.ts';
import { readUpload } from '../../src/backend/intake.ts';
import { listRuns, readRun } from '../../src/backend/query.ts';
import { DOCUMENT_FIELDS } from '../../src/backend/record.ts';
import { backendSettings } from '../../src/backend/settings.ts';
import { openStore } from '../../src/backend/store.ts';
import { makeRun } from '../backend-runs.ts';

const settings = backendSettings({ maxTraceCount: 50 });
const store = openStore(settings);
after(() => store.close());

const FIELDS = [...Object.keys(makeRun({ parent: makeRun() })), 'status', 'tags', 'session_id', ...DOCUMENT_FIELDS];

/** A good run in which some members are anything at all. */
const records = fc
  .tuple(
    fc.boolean(),
    fc.dictionary(fc.constantFrom(...FIELDS), fc.oneof(fc.jsonValue(), fc.string({ unit: 'binary' })), { maxKeys: 3 }),
    fc.dictionary(fc.constantFrom('inputs', 'outputs', 'extra'), fc.dictionary(fc.string(), fc.jsonValue()), {
      maxKeys: 3,
    }),
  )
  .map(([isChild, changes, documents]) => ({
    ...makeRun(isChild ? { parent: makeRun() } : {}),
    ...documents,
    ...changes,
  }));

test('Records with arbitrary members are stored as they are, or refused as a whole.', () => {
  let storedCount = 0;
  fc.assert(
    fc.property(fc.array(records, { minLength: 1, maxLength: 4 }), fc.constantFrom('post', 'patch'), (runs, op) => {
      const upload = readUpload(
        runs.map((run) => jsonPart(`${op}.${String(run.id)}`, run)),
        settings,
      );
      if (upload.kind !== 'upload') return assert.ok(upload.message !== '');
      const outcome = store.write('t', upload);
      if (outcome.kind !== 'written') return;
      storedCount++;
      store.text.flush(Infinity);
      for (const run of runs) {
        const text = readRun(store.database, run.id.toLowerCase(), 't');
        assert.ok(text !== null);
        const stored = JSON.parse(text) as Record<string, unknown>;
        const sent = JSON.parse(JSON.stringify(run)) as Record<string, unknown>;
        for (const field of DOCUMENT_FIELDS) assert.deepEqual(stored[field], sent[field] ?? null);
        const { record } = stored as { record: Record<string, unknown> };
        assert.deepEqual(record['name'], sent['name']);
      }
      assert.ok(listRuns(store.database, { text: 'agent' }, { limit: 5 }).items.length <= 5);
    }),
    { numRuns: 500 },
  );
  // about a tenth of what is made up; far fewer would mean that the property looks at nothing
  assert.ok(storedCount > 10, `${storedCount} were stored`);
});

test('Arbitrary part names, types and bytes never throw.', () => {
  const names = fc.oneof(
    fc.string(),
    fc
      .tuple(
        fc.constantFrom('post', 'patch', 'feedback', 'attachment', ''),
        fc.uuid(),
        fc.constantFrom('', '.inputs', '.error', '.x', '.a.b'),
      )
      .map(([op, id, rest]) => `${op}.${id}${rest}`),
  );
  const parts = fc.array(
    fc.record({
      name: names,
      mediaType: fc.constantFrom('application/json', 'image/png'),
      bytes: fc.oneof(
        fc.uint8Array({ maxLength: 50 }),
        fc.json().map((text) => new Uint8Array(Buffer.from(text))),
      ),
    }),
    { maxLength: 5 },
  );
  fc.assert(
    fc.property(parts, (list) => {
      const outcome = readUpload(list, settings);
      if (outcome.kind === 'upload') store.write('t', outcome);
    }),
    { numRuns: 1000 },
  );
});
