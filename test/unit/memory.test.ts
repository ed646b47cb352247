/** The stated sum of memory: every bound of the configuration is in it, and the README names the default's. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { readConfig } from '../../src/config.ts';
import { MiB } from '../../src/core/units.ts';
import { memoryBudgetBytes, memoryText } from '../../src/memory.ts';

function budget(environment: Record<string, string> = {}): number {
  return memoryBudgetBytes(readConfig(environment, { coreCount: 2 }).config);
}

test('each bound counts, for as many threads as there are', () => {
  const usual = budget();
  for (const name of ['MAX_INFLIGHT_BYTES', 'PARK_MAX_BYTES', 'HELD_MAX_BYTES']) {
    assert.equal(budget({ [name]: '164MiB' }) - budget({ [name]: '64MiB' }), 100 * MiB, name);
  }
  assert.ok(budget({ RING_BYTES: '16MiB', DECODE_THREADS: '3', SHIP_SHARDS: '2' }) - usual > 88 * MiB);
  assert.ok(budget({ MAX_BUFFER_BYTES: '20MiB' }) > usual);
  assert.ok(budget({ SPOOL_MAX_BYTES: '0' }) < usual);
});

test('--check has the sum, and the README the one of the defaults', async () => {
  const mebibytes = Math.ceil(budget() / MiB);
  assert.match(memoryText(readConfig({}, { coreCount: 2 }).config), new RegExp(`^memory at most ${mebibytes}MiB:\n`));
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8');
  assert.ok(readme.includes(`: ${mebibytes} MiB with the defaults on a small machine`));
});
