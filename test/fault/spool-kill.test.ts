/** The whole program, killed while the backend is away: what was in the spool is delivered by the next process. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { takeInventory } from '../../src/upload/spool/inventory.ts';
import { startCountingBackend } from '../flow/countingbackend.ts';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { killAll, newFolder, ready, run } from '../program.ts';

afterEach(killAll);

test('killed with -9 while the backend is away, again and again, everything that was spooled is delivered', async () => {
  const folder = newFolder();
  const backend = await startCountingBackend();
  const environment = {
    SERVICE_ENDPOINT: backend.url,
    SERVICE_API_KEY: 'k',
    DATA_DIR: folder,
    FLUSH_INTERVAL_MS: '20',
    BATCH_SIZE: '5',
    RETRY_BACKOFF_MS: '5',
    MAX_RETRIES: '1',
    DEPLOYMENT_API: 'off',
  };
  const names = new Set<string>();
  backend.reply = () => ({ status: 503 });
  // Another number of shards each time: nothing is orphaned.
  for (const shards of ['2', '3', '1']) {
    const program = run([], { ...environment, SHIP_SHARDS: shards });
    const base = await ready(program);
    for (let i = 0; i < 10; i++) {
      const { spans } = makeTrace(2, 2);
      assert.equal((await postJson(`${base}/v1/traces`, jsonRequest(spans))).status, 200);
      for (const { spanId } of spans) names.add(Buffer.from(spanId).toString('hex'));
    }
    for (let runs = 0; runs < names.size;) {
      const { entries } = await takeInventory(join(folder, 'spool'));
      runs = entries.reduce((sum, entry) => sum + entry.runCount, 0);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    program.process.kill('SIGKILL');
    await program.exited;
  }
  backend.reply = () => ({ status: 202 });
  const last = run([], environment);
  await ready(last);
  await backend.until(() => new Set(backend.runs.map(({ id }) => id)).size >= names.size);
  last.process.kill('SIGTERM');
  assert.equal(await last.exited, 0);
  assert.equal(new Set(backend.runs.map(({ id }) => id)).size, names.size);
  await backend.close();
});
