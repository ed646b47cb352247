/**
 * What real emitters export, and the records that it must become. `npm run fixtures:capture` captures them anew; the
 * expected records beside each body were made by the plain translator and reviewed.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { createDecoder } from '../../src/decode/decoder.ts';
import { decodeBody } from '../oracle/adapter.ts';
import { jsonOf } from '../oracle/emit.ts';
import { canonical, readOutput } from '../oracle/json.ts';
import { spansOfProtobuf } from '../oracle/otlp.ts';
import { textOf } from '../oracle/record.ts';
import { defaultSettings } from '../oracle/settings.ts';
import { translateBody } from '../oracle/translate.ts';
import { runsOf } from '../oracle/tree.ts';

const folder = fileURLToPath(new URL('../fixtures/emitters/', import.meta.url));
const decoder = createDecoder({ genericAttributes: false, rootRunId: 'trace', converterModule: null });

for (const emitter of readdirSync(folder)) {
  for (const file of readdirSync(join(folder, emitter)).filter((name) => name.endsWith('.pb'))) {
    const scenario = file.replace(/\.pb$/, '');
    test(`${emitter}: ${scenario} becomes the reviewed records, as protobuf and as JSON`, () => {
      const protobuf = readFileSync(join(folder, emitter, file));
      const json = jsonOf(spansOfProtobuf(protobuf));
      const expected = canonical(readOutput(readFileSync(join(folder, emitter, `${scenario}.json`), 'utf8')));
      assert.equal(textOf(translateBody(protobuf, 'protobuf', defaultSettings).records), expected);
      assert.equal(textOf(translateBody(json, 'json', defaultSettings).records), expected);
      assert.equal(textOf(decodeBody(decoder, protobuf, 'protobuf', defaultSettings).records), expected);
      assert.equal(textOf(decodeBody(decoder, json, 'json', defaultSettings).records), expected);
    });
  }
}

for (const emitter of readdirSync(folder).filter((name) => !name.startsWith('hand-written'))) {
  test(`${emitter}: the runs of each trace hang together under one root`, () => {
    for (const file of readdirSync(join(folder, emitter)).filter((name) => name.endsWith('.pb'))) {
      const { records } = translateBody(readFileSync(join(folder, emitter, file)), 'protobuf', defaultSettings);
      const { runs } = runsOf([records]);
      assert.equal(runs.length, records.length, file);
      const ids = new Set(runs.map((run) => run.id));
      const roots = runs.filter((run) => run.parentId === null);
      assert.deepEqual(
        roots.map((run) => run.id),
        [...new Set(runs.map((run) => run.traceId))],
        file,
      );
      for (const run of runs) assert.ok(run.parentId === null || ids.has(run.parentId), `${file}: ${run.span}`);
    }
  });
}

test('there are fixtures of every family', () => {
  const emitters = readdirSync(folder);
  for (const family of ['opentelemetry', 'openinference', 'traceloop', 'vercel', 'langsmith', 'pydantic', 'semantic']) {
    assert.ok(
      emitters.some((name) => name.includes(family)),
      family,
    );
  }
});
