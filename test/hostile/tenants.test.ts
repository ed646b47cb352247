/**
 * Keys in trouble beside keys that are well, under load: the backend refuses one, another has used up its quota, a third may
 * not write, and all go on sending. Those that are well must not notice, with a spool and without.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { afterEach, test } from 'node:test';
import { DROP_COUNTER_NAMES } from '../../src/core/counters.ts';
import type { Service } from '../../src/service.ts';
import { startCountingBackend, type CountingBackend } from '../flow/countingbackend.ts';
import { jsonRequest, makeTrace, postJson } from '../flow/otlp.ts';
import { startService, tracesUrl } from '../flow/pipelinehost.ts';

const TROUBLES: Readonly<Record<string, { status: number; headers?: Record<string, string> }>> = {
  revoked: { status: 401 },
  forbidden: { status: 403 },
  'over-quota': { status: 429, headers: { 'Retry-After': '1' } },
};
const WELL = ['well-1', 'well-2'];
/** Of each key that is well, while the others are not. */
const REQUEST_COUNT = 60;
/** What each of the keys in trouble has sent before the others begin: more than is held in memory altogether. */
const TROUBLE_COUNT = 60;
const ATTRIBUTE_BYTES = 20_000;

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Text that does not compress much; returns the status. */
async function send(service: Service, apiKey: string): Promise<number> {
  const spans = makeTrace(1, 1).spans.map((span) => ({
    ...span,
    attributes: { 'gen_ai.prompt': randomBytes(ATTRIBUTE_BYTES).toString('base64') },
  }));
  return (await postJson(tracesUrl(service), jsonRequest(spans), { 'X-API-Key': apiKey })).status;
}

/** Clients come again with what they were told to bring again. */
async function sendUntilTaken(service: Service, apiKey: string): Promise<void> {
  for (let status = 0; status !== 200;) {
    status = await send(service, apiKey);
    assert.ok(status === 200 || status === 503, `${status}`);
  }
}

async function delivered(backend: CountingBackend, apiKeys: readonly string[], count: number): Promise<void> {
  const has = (apiKey: string): number => backend.runs.filter((run) => run.apiKey === apiKey).length;
  await backend.until(() => apiKeys.every((apiKey) => has(apiKey) >= count));
}

/**
 * Without a disk the oldest of those in trouble are dropped when memory is full, and counted as that: dropping goes on while
 * this looks, so it asks for the other reasons, not for a sum.
 */
function assertDrops(service: Service, hasSpool: boolean): void {
  for (const name of DROP_COUNTER_NAMES) {
    if (hasSpool || name !== 'dropped_spool-full') assert.equal(service.counters.total(name), 0, name);
  }
  if (!hasSpool) assert.ok(service.counters.total('dropped_spool-full') > 0);
}

for (const [name, SPOOL_MAX_BYTES] of [
  ['with', '1GiB'],
  ['without', '0'],
] as const) {
  test(`a revoked key, a forbidden one and an exhausted quota under load do not hold up the others, ${name} a spool`, async () => {
    const backend = await startCountingBackend();
    cleanups.push(() => backend.close());
    let areMended = false;
    backend.reply = ([run]) => (areMended ? undefined : TROUBLES[run?.apiKey ?? '']) ?? { status: 202 };
    const service = await startService({
      SERVICE_ENDPOINT: backend.url,
      DEPLOYMENT_API: 'off',
      SPOOL_MAX_BYTES,
      HELD_MAX_BYTES: '2MiB',
      MAX_BUFFER_BYTES: '64KiB',
      RING_BYTES: '256KiB',
      MAX_RETRIES: '1',
      SHIP_SHARDS: '1',
    });
    cleanups.push(() => service.stop(5000));
    const troubled = Object.keys(TROUBLES);
    await Promise.all(
      troubled.map(async (apiKey) => {
        for (let n = 0; n < TROUBLE_COUNT; n++) await sendUntilTaken(service, apiKey);
      }),
    );

    // They go on while the others send.
    let isOver = false;
    const pressing = troubled.map(async (apiKey) => {
      while (!isOver) await sendUntilTaken(service, apiKey);
    });
    await Promise.all(
      WELL.map(async (apiKey) => {
        for (let n = 0; n < REQUEST_COUNT; n++) await sendUntilTaken(service, apiKey);
      }),
    );
    await delivered(backend, WELL, REQUEST_COUNT);
    isOver = true;
    await Promise.all(pressing);
    assert.ok(backend.runs.every(({ apiKey }) => WELL.includes(apiKey)));
    const { acceptedCount, deliveredCount, droppedCount, heldCount, spooledCount } = service.account();
    assert.equal(acceptedCount, deliveredCount + droppedCount + heldCount + spooledCount);
    assertDrops(service, SPOOL_MAX_BYTES !== '0');

    areMended = true;
    for (;;) {
      const account = service.account();
      if (account.deliveredCount + account.droppedCount === account.acceptedCount) break;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    assert.equal(backend.runs.length, service.account().deliveredCount);
    assertDrops(service, SPOOL_MAX_BYTES !== '0');
  });
}
