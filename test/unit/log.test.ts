import assert from 'node:assert/strict';
import { openSync, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { createLog } from '../../src/observe/log.ts';
import { limitRepeats } from '../../src/observe/repeats.ts';
import type { Log } from '../../src/core/log.ts';

test('lines are JSON with level and time, levels below are left out, and secrets are struck out', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'log-'));
  const file = join(folder, 'log');
  const log = createLog('info', openSync(file, 'w'));
  log.debug({}, 'not written');
  log
    .child({ stage: 'accept' })
    .info({ apiKey: 'secret-1', headers: { 'x-api-key': 'secret-2' }, port: 1 }, 'listening');
  await log.flush();
  const lines = (await readFile(file, 'utf8')).trim().split('\n');
  assert.equal(lines.length, 1);
  const line = JSON.parse(lines[0] ?? '');
  assert.deepEqual(
    { ...line, time: typeof line.time },
    {
      level: 'info',
      time: 'string',
      stage: 'accept',
      apiKey: '********',
      headers: { 'x-api-key': '********' },
      port: 1,
      msg: 'listening',
    },
  );
  await rm(folder, { recursive: true });
});

test('the operator’s secrets do not come out, whatever field or text they got into', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'log-'));
  const file = join(folder, 'log');
  const log = createLog('debug', openSync(file, 'w'), ['sk-"quoted"\\secret', 'whsec_abcdef', 'abc', '']);
  log.warn({ reason: 'key sk-"quoted"\\secret was refused', whsec_abcdef: 1 }, 'message with whsec_abcdef');
  log.child({ url: 'https://x:whsec_abcdef@host' }).error({ err: new Error('whsec_abcdef') }, 'abc stays: too short');
  await log.flush();
  const text = await readFile(file, 'utf8');
  assert.ok(!text.includes('quoted') && !text.includes('whsec_abcdef'), text);
  const [first, second] = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.equal(first.reason, 'key ******** was refused');
  assert.equal(first.msg, 'message with ********');
  assert.equal(second.url, 'https://x:********@host');
  assert.equal(second.err.message, '********');
  assert.equal(second.msg, 'abc stays: too short');
  await rm(folder, { recursive: true });
});

test('what is flushed is there at once and in order, also behind a line that was on its way', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'log-'));
  for (let round = 0; round < 50; round++) {
    const file = join(folder, `log-${round}`);
    const log = createLog('info', openSync(file, 'w'));
    const messages = ['first', 'second', 'third', 'last'];
    for (const message of messages) log.info({}, message);
    await log.flush();
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    assert.deepEqual(
      lines.map((line) => (JSON.parse(line) as { msg: string }).msg),
      messages,
    );
    // Nothing is on its way: nothing to wait for.
    await log.flush();
  }
  await rm(folder, { recursive: true });
});

test('repeats are held back and told at the end of the interval with their number; information is never limited', () => {
  const written: [string, object, string][] = [];
  const at = (level: string) => (fields: object, message: string) => void written.push([level, fields, message]);
  const inner: Log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), child: () => inner };
  let due: (() => void)[] = [];
  const passInterval = (): void => {
    const now = due;
    due = [];
    for (const callback of now) callback();
  };
  const seen = (): typeof written => written.splice(0);
  const log = limitRepeats(inner, 1000, (ms, callback) => {
    assert.equal(ms, 1000);
    due.push(callback);
  });
  for (let n = 0; n < 5; n++) log.warn({ n }, 'refused');
  log.warn({ code: 'other' }, 'refused');
  log.warn({}, 'another');
  log.info({}, 'same');
  log.info({}, 'same');
  assert.deepEqual(seen(), [
    ['warn', { n: 0 }, 'refused'],
    ['warn', { code: 'other' }, 'refused'],
    ['warn', {}, 'another'],
    ['info', {}, 'same'],
    ['info', {}, 'same'],
  ]);
  passInterval();
  assert.deepEqual(seen(), [['warn', { n: 4, suppressedCount: 4 }, 'refused']]);
  // It goes on within the next interval: one line an interval.
  log.warn({ n: 5 }, 'refused');
  log.error({ n: 6 }, 'refused');
  passInterval();
  assert.deepEqual(seen(), [['warn', { n: 6, suppressedCount: 2 }, 'refused']]);
  passInterval();
  assert.deepEqual(seen(), []);
  assert.deepEqual(due, [], 'after a quiet interval nothing is watched any more');
  log.warn({ n: 7 }, 'refused');
  assert.deepEqual(seen(), [['warn', { n: 7 }, 'refused']]);
});
