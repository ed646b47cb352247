/** Bodies among the dead letters: whole, for the owner alone, and no more of them than allowed. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, utimesSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { keepDeadBody, type DeadBody, type DeadBodyFacts } from '../../../src/journal/deadbody.ts';

const root = mkdtempSync(join(tmpdir(), 'dead-'));
const folder = join(root, 'dead');
afterEach(() => rmSync(root, { recursive: true, force: true }));

function deadBody(bytes: Buffer): DeadBody {
  return {
    encoding: 'protobuf',
    coding: 'zstd',
    apiKey: 'whose',
    project: null,
    receivedUs: Date.parse('2026-01-02T03:04:05.678Z') * 1000,
    bytes,
    hash: createHash('sha256').update(bytes).digest('hex'),
    reason: 'no good',
  };
}

test('the oldest go for the sake of the newest, the same body is kept once, one that is too large not at all', async () => {
  const bodies = [1, 2, 3, 4].map((number) => deadBody(Buffer.alloc(1000, number)));
  for (const [index, body] of bodies.entries()) {
    assert.equal(await keepDeadBody(folder, body, 3000), true);
    utimesSync(join(folder, `${body.hash}.body`), index + 1, index + 1);
  }
  const [, second, third, fourth] = bodies;
  assert.ok(second !== undefined && third !== undefined && fourth !== undefined);
  const names = (...kept: DeadBody[]): string[] => kept.flatMap(({ hash }) => [`${hash}.body`, `${hash}.json`]).sort();
  assert.deepEqual(readdirSync(folder).sort(), names(second, third, fourth));
  assert.equal(await keepDeadBody(folder, third, 3000), true);
  assert.deepEqual(readdirSync(folder).sort(), names(second, third, fourth));
  assert.equal(await keepDeadBody(folder, deadBody(Buffer.alloc(3001)), 3000), false);
  assert.deepEqual(readdirSync(folder).sort(), names(second, third, fourth));

  assert.deepEqual(readFileSync(join(folder, `${third.hash}.body`)), third.bytes);
  const facts = JSON.parse(readFileSync(join(folder, `${third.hash}.json`), 'utf8')) as DeadBodyFacts;
  assert.deepEqual(facts, {
    kind: 'body',
    encoding: 'protobuf',
    coding: 'zstd',
    apiKey: 'whose',
    project: null,
    receivedAt: '2026-01-02T03:04:05.678Z',
    bodyBytes: 1000,
    hash: third.hash,
    reason: 'no good',
  });
  for (const name of readdirSync(folder)) assert.equal(statSync(join(folder, name)).mode & 0o777, 0o600);
  assert.equal(statSync(folder).mode & 0o777, 0o700);
});
