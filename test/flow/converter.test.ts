/** CONVERTER_MODULE in the whole service: decode threads, shippers, store, and the account of every span. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { TraceNode } from '../../src/backend/api.ts';
import { jsonRequest, makeTrace, postJson, uuidOf } from './otlp.ts';
import { startHost, startService } from './pipelinehost.ts';

const folder = mkdtempSync(join(tmpdir(), 'converter-'));
after(() => rmSync(folder, { recursive: true }));

function moduleFile(name: string, source: string): string {
  const file = join(folder, name);
  writeFileSync(file, source);
  return file;
}

function shape(node: TraceNode): string {
  const children = node.children.map(shape).sort();
  return children.length === 0 ? node.name : `${node.name}(${children.join(', ')})`;
}

test('runs arrive as the converter made them, children of what it dropped hang on the next above, and all is accounted for', async () => {
  const converter = moduleFile(
    'byname.ts',
    `export default (span: { name: string }, run: { name: string }): object | null => {
      if (span.name === 'level 1, number 0') return null;
      if (span.name === 'level 2, number 0') throw new Error('as the test wants it');
      return { ...run, name: run.name.replace('level ', 'L') };
    };`,
  );
  const host = await startHost({ CONVERTER_MODULE: converter, DECODE_THREADS: '2' });
  const { service, client, url } = host;
  try {
    const { traceId, spans } = makeTrace(4, 1);
    const answer = await postJson(url, jsonRequest(spans.toReversed()));
    assert.equal(answer.status, 200);
    // Accepted all the same: the sender is warned, and has nothing to resend.
    assert.deepEqual(await answer.json(), { partialSuccess: { errorMessage: '1 span: converter failed, dropped' } });
    await client.waitForRuns(2);
    const tree = await client.tree(uuidOf(traceId));
    assert.deepEqual(tree?.roots.map(shape), ['L0, number 0(L3, number 0)']);
    assert.deepEqual(tree?.misplaced_run_ids, []);

    // A dropped root: what hangs on it does not wait for it.
    const other = makeTrace(2, 1);
    const [root, child] = other.spans;
    assert.ok(root !== undefined && child !== undefined);
    await postJson(
      url,
      jsonRequest([
        { ...child, name: 'kept' },
        { ...root, name: 'level 1, number 0' },
      ]),
    );
    await client.waitForRuns(3);
    assert.equal((await client.allRuns({ name: 'kept' })).length, 1);

    const account = await service.stop(5000);
    assert.deepEqual(account, {
      acceptedCount: 6,
      deliveredCount: 3,
      droppedCount: 3,
      heldCount: 0,
      spooledCount: 0,
      inheritedCount: 0,
      lostCount: 0,
    });
    assert.equal(service.counters.total('dropped_converter-dropped'), 2);
    assert.equal(service.counters.total('dropped_converter-failed'), 1);
  } finally {
    await host.stop();
  }
});

test('a converter that does not load stops the start, with its file and the reason', async () => {
  const converter = moduleFile('broken.mjs', "throw new Error('no licence');");
  await assert.rejects(startService({ SERVICE_ENDPOINT: 'http://127.0.0.1:9', CONVERTER_MODULE: converter }), {
    message: `CONVERTER_MODULE ${converter} does not load: no licence`,
  });
});
