/** A converter that kills its thread: the real decode thread, once in a pool of its own, once in the whole service. */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import type { DeadBodyFacts } from '../../src/journal/deadbody.ts';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { startHost } from '../flow/pipelinehost.ts';
import { createFixture, send } from '../unit/decodefixture.ts';

const folder = mkdtempSync(join(tmpdir(), 'converter-death-'));
after(() => rmSync(folder, { recursive: true }));

const converter = join(folder, 'killer.ts');
writeFileSync(
  converter,
  `export default (span: { name: string }, run: object): object => {
    if (span.name === 'exit') process.exit(3);
    if (span.name === 'hoard') {
      const kept: unknown[] = [];
      while (kept.length < 1e9) kept.push(Array.from({ length: 1000 }, (_, i) => ({ i })));
    }
    return run;
  };`,
);

/** One span of this name. */
function request(name: string): Buffer {
  return Buffer.from(jsonRequest(makeTrace(1, 1).spans.map((span) => ({ ...span, name }))));
}

for (const name of ['exit', 'hoard']) {
  test(`a converter that does ${name}: its requests are to come again, the next works, the same again is set aside`, async () => {
    const fixture = createFixture({
      ringBytes: 1 << 20,
      pool: {
        workerUrl: new URL('../../workers/decode.ts', import.meta.url),
        threadHeapBytes: 64 * 1024 * 1024,
      },
      thread: { decoder: { genericAttributes: false, rootRunId: 'trace', converterModule: converter } },
    });
    const { pool, counters, setAside } = fixture;
    await pool.start();
    try {
      const poison = request(name);
      const inHand = await Promise.all([
        send(pool, request('before')),
        send(pool, poison),
        send(pool, request('after')),
      ]);
      for (const admission of inHand) {
        assert.equal(admission.kind === 'busy' && admission.code, 'worker-lost');
      }
      assert.equal((await send(pool, request('next'))).kind, 'accepted');
      const verdict = await send(pool, poison);
      assert.equal(verdict.kind === 'refused' && verdict.code, 'set-aside');
      assert.equal((await send(pool, request('next'))).kind, 'accepted');
      assert.equal((await send(pool, poison)).kind, 'refused');
      assert.deepEqual(
        setAside.map(({ bytes }) => Buffer.from(bytes)),
        [poison],
      );
      assert.equal(counters.total('bodies_set_aside'), 1);
    } finally {
      await pool.stop(1000);
    }
  });
}

test('in the service: 503 with Retry-After, then 400 for good, the body among the dead letters, others are taken', async () => {
  const dataDir = mkdtempSync(join(folder, 'data-'));
  const host = await startHost({ CONVERTER_MODULE: converter, DATA_DIR: dataDir });
  try {
    const poison = request('exit').toString();
    const first = await postJson(host.url, poison);
    assert.equal(first.status, 503);
    assert.ok(Number(first.headers.get('retry-after')) >= 1);
    const second = await postJson(host.url, poison);
    assert.equal(second.status, 400);
    const { code, message } = (await second.json()) as { code: number; message: string };
    assert.equal(code, 3);
    assert.match(message, /set aside as dead letter [0-9a-f]{64}: two decode threads died of this body/);
    assert.equal((await postJson(host.url, poison)).status, 400);
    assert.equal((await postJson(host.url, request('harmless').toString())).status, 200);

    const dead = join(dataDir, 'spool', 'dead');
    const names = readdirSync(dead).sort();
    assert.equal(names.length, 2);
    const [body = '', facts = ''] = names;
    assert.equal(readFileSync(join(dead, body), 'utf8'), poison);
    const { kind, encoding, coding, apiKey, bodyBytes, reason } = JSON.parse(
      readFileSync(join(dead, facts), 'utf8'),
    ) as DeadBodyFacts;
    assert.deepEqual(
      { kind, encoding, coding, apiKey, bodyBytes },
      { kind: 'body', encoding: 'json', coding: 'identity', apiKey: 'configured-key', bodyBytes: poison.length },
    );
    assert.match(reason, /two decode threads/);
    for (const name of names) assert.equal(statSync(join(dead, name)).mode & 0o777, 0o600);
    assert.equal(statSync(dead).mode & 0o777, 0o700);
    assert.ok(!existsSync(join(dead, `${body}.tmp`)));
    assert.equal(host.service.counters.total('bodies_set_aside'), 1);
    await host.client.waitForRuns(1);
  } finally {
    await host.stop();
  }
});
