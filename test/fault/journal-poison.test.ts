/** A body that ends the whole process when it is decoded again, at each start: it is set aside, and all others arrive. */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import type { DeadBodyFacts } from '../../src/journal/deadbody.ts';
import { startCountingBackend } from '../flow/countingbackend.ts';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { scrape } from '../metrics.ts';
import { killAll, ready, run } from '../program.ts';

const cleanUps: (() => unknown)[] = [];
afterEach(async () => {
  await killAll();
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

const MAX_STARTS = 6;

/** All that an earlier process left has been decoded again: a stop would leave the rest to the next one. */
async function replayed(base: string): Promise<void> {
  const leftBytes = async (): Promise<number> =>
    (await scrape(`${base}/metrics`)).sum('collector_proxy_journal_replay_bytes');
  while ((await leftBytes()) > 0) await new Promise((resolve) => setTimeout(resolve, 10));
}

for (const { companions, deaths } of [
  { companions: 0, deaths: 2 },
  { companions: 6, deaths: 3 },
]) {
  test(`a body that ends the process at each start, among ${companions} others: a dead letter after ${deaths} deaths`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'journal-poison-'));
    cleanUps.push(() => rmSync(folder, { recursive: true }));
    const converter = join(folder, 'killer.ts');
    const backend = await startCountingBackend();
    cleanUps.push(() => backend.close());
    const environment = {
      SERVICE_ENDPOINT: backend.url,
      SERVICE_API_KEY: 'k',
      DURABLE_ACK: 'true',
      DATA_DIR: folder,
      CONVERTER_MODULE: converter,
      DECODE_THREADS: '2',
      FLUSH_INTERVAL_MS: '20',
      DEPLOYMENT_API: 'off',
    };
    const poison = jsonRequest(makeTrace(1, 1).spans.map((span) => ({ ...span, name: 'poison' })));
    const others = Array.from({ length: companions }, () => makeTrace(2, 1));

    // Harmless at first, and acknowledged; nothing is delivered, so all of it is decoded again.
    writeFileSync(converter, 'export default (span: object, run: object): object => run;');
    backend.reply = () => null;
    const first = run([], environment);
    const url = `${await ready(first)}/v1/traces`;
    for (const { spans } of others.slice(0, companions / 2))
      assert.equal((await postJson(url, jsonRequest(spans))).status, 200);
    assert.equal((await postJson(url, poison)).status, 200);
    for (const { spans } of others.slice(companions / 2))
      assert.equal((await postJson(url, jsonRequest(spans))).status, 200);
    first.process.kill('SIGKILL');
    await first.exited;

    // A real end of the whole process, as a defect in native code is one.
    writeFileSync(
      converter,
      `export default (span: { name: string }, run: object): object => {
        if (span.name !== 'poison') return run;
        process.kill(process.pid, 'SIGSEGV');
        for (;;);
      };`,
    );
    backend.reply = () => ({ status: 202 });
    const dead = join(folder, 'spool', 'dead');
    const setAside = (): boolean => readdirSync(dead).some((name) => name.endsWith('.json'));
    let deathCount = 0;
    for (let starts = 0; starts < MAX_STARTS; starts++) {
      const program = run([], environment);
      let isOver = false;
      void program.exited.then(() => (isOver = true));
      while (!isOver && !setAside()) await new Promise((resolve) => setTimeout(resolve, 10));
      if (!isOver) break;
      assert.equal(program.process.signalCode, 'SIGSEGV', program.output() + program.errors());
      deathCount++;
    }
    assert.equal(deathCount, deaths);
    await backend.until(() => backend.runs.length >= 2 * companions);

    const names = readdirSync(dead).sort();
    assert.equal(names.length, 2);
    const [body = '', facts = ''] = names.map((name) => join(dead, name));
    assert.equal(readFileSync(body, 'utf8'), poison);
    const { kind, reason } = JSON.parse(readFileSync(facts, 'utf8')) as DeadBodyFacts;
    assert.deepEqual([kind, reason], ['body', 'two processes ended while this body was decoded again']);

    // It is over: the next start has nothing to do, and what comes is taken.
    await killAll();
    const last = run([], environment);
    const lastBase = await ready(last);
    assert.equal((await postJson(`${lastBase}/v1/traces`, jsonRequest(makeTrace(2, 1).spans))).status, 200);
    await backend.until(() => new Set(backend.runs.map(({ id }) => id)).size === 2 * companions + 2);
    await replayed(lastBase);
    last.process.kill('SIGTERM');
    assert.equal(await last.exited, 0);
    assert.deepEqual(readdirSync(join(folder, 'journal')), ['lock']);
  });
}

test('a body that ends only the decode thread, at a restart too: a dead letter, told of, and all others arrive', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'journal-poison-'));
  cleanUps.push(() => rmSync(folder, { recursive: true }));
  const converter = join(folder, 'killer.ts');
  const backend = await startCountingBackend();
  cleanUps.push(() => backend.close());
  const environment = {
    SERVICE_ENDPOINT: backend.url,
    SERVICE_API_KEY: 'k',
    DURABLE_ACK: 'true',
    DATA_DIR: folder,
    CONVERTER_MODULE: converter,
    DECODE_THREADS: '1',
    FLUSH_INTERVAL_MS: '20',
    DEPLOYMENT_API: 'off',
  };
  const named = (name: string): string => jsonRequest(makeTrace(1, 1).spans.map((span) => ({ ...span, name })));
  const poison = named('poison');
  const fresh = named('fresh poison');

  // Harmless at first: acknowledged among others, and nothing is delivered.
  writeFileSync(converter, 'export default (span: object, run: object): object => run;');
  backend.reply = () => null;
  const first = run([], environment);
  const url = `${await ready(first)}/v1/traces`;
  for (const body of [named('a'), named('b'), poison, named('c'), named('d')]) {
    assert.equal((await postJson(url, body)).status, 200);
  }
  first.process.kill('SIGKILL');
  await first.exited;

  writeFileSync(
    converter,
    `export default (span: { name: string }, run: object): object => {
      if (span.name.endsWith('poison')) process.exit(3);
      return run;
    };`,
  );
  backend.reply = () => ({ status: 202 });
  const second = run([], environment);
  const base = await ready(second);
  const arrived = (): string[] => [...new Set(backend.runs.map(({ run }) => String(run['name'])))].sort();
  await backend.until(() => arrived().length === 4);
  const dead = join(folder, 'spool', 'dead');
  const deadFacts = (): string[] => readdirSync(dead).filter((name) => name.endsWith('.json'));
  while (deadFacts().length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual(arrived(), ['a', 'b', 'c', 'd']);

  // One that was never acknowledged is refused, with where it is kept.
  assert.equal((await postJson(`${base}/v1/traces`, fresh)).status, 503);
  const refusal = await postJson(`${base}/v1/traces`, fresh);
  assert.equal(refusal.status, 400);
  assert.match(await refusal.text(), /set aside as dead letter [0-9a-f]{64}: two decode threads died of this body/);
  assert.equal((await postJson(`${base}/v1/traces`, named('e'))).status, 200);
  await backend.until(() => arrived().length === 5);
  await replayed(base);
  second.process.kill('SIGTERM');
  assert.equal(await second.exited, 0);
  assert.deepEqual(readdirSync(join(folder, 'journal')), ['lock']);

  const letters = deadFacts().map((name) => {
    const { hash, reason } = JSON.parse(readFileSync(join(dead, name), 'utf8')) as DeadBodyFacts;
    return { reason, body: readFileSync(join(dead, `${hash}.body`), 'utf8') };
  });
  const reason = 'two decode threads died of this body';
  assert.deepEqual(
    letters.sort((a, b) => b.body.length - a.body.length),
    [
      { reason, body: fresh },
      { reason, body: poison },
    ],
  );
});
