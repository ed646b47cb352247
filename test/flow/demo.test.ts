/** `npm run demo` as a newcomer runs it: a process of its own, its output, its exit code. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { startBackend } from '../../src/backend/owner.ts';

const PROGRAM = fileURLToPath(new URL('../../bench/demo.ts', import.meta.url));

function runDemo(words: readonly string[]): Promise<{ code: number | null; output: string }> {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', PROGRAM, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, COLLECTOR_URL: undefined },
  });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, output }));
  });
}

test('Sends agent work through a collector and shows it as trees, with types, failures and tokens.', async () => {
  // Its own: another may listen on the usual port here. Patient: machines are busy at times.
  const { code, output } = await runDemo(['--own', '--wait', '120']);
  assert.equal(code, 0, output);
  assert.match(output, /All 15 spans arrived as runs of 4 traces, each below its parent\./);
  assert.match(output, /\n {2}├─ chat gpt-4o +llm +success +1\.18 s +214 → 18 tokens\n/);
  assert.match(
    output,
    /\n {2}├─ lookup_order +tool +success +190 ms\n {2}│ {2}└─ GET \/orders\/\{id\} +chain +success +130 ms\n/,
  );
  assert.match(output, /\n {2}│ {2}└─ embed query +embedding +success/);
  assert.match(output, /\n {2}nightly_report +chain +error +3\.10 s\n +connect ETIMEDOUT: warehouse did not answer/);
});

test('Without a collector at the given address it says so and fails.', async () => {
  const { code, output } = await runDemo(['--url', 'http://127.0.0.1:9']);
  assert.equal(code, 1);
  assert.match(output, /no collector answers at http:\/\/127\.0\.0\.1:9/);
});

test('When spans are taken and no run arrives, or not even taken, it says which and fails.', async () => {
  const backend = await startBackend();
  let status = 200;
  const collector = createServer((request, response) => {
    request.resume().on('end', () => {
      response.writeHead(request.url === '/ready' ? 200 : status, { 'Content-Type': 'application/json' });
      response.end(status === 200 ? '{}' : '{"code":16,"message":"no API key"}');
    });
  });
  await new Promise<void>((resolve) => collector.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  const words = ['--url', url, '--backend', backend.url, '--wait', '0.3'];

  const lost = await runDemo(words);
  assert.equal(lost.code, 1);
  assert.match(lost.output, /Nightly report: a tool that fails: nothing arrived of 3 spans/);

  status = 401;
  const refused = await runDemo(words);
  assert.equal(refused.code, 1);
  assert.match(refused.output, /the collector did not take everything:\n +support-agent: Unauthorized/);

  collector.closeAllConnections();
  collector.close();
  await backend.stop();
});
