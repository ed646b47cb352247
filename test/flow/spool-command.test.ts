/** `collector-proxy spool`, as an operator uses it: beside a running process and without one. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { killAll, lastLine, newFolder, ready, run, type Program } from '../program.ts';
import { startCountingBackend, type ArrivedRun, type CountingBackend } from './countingbackend.ts';
import { jsonRequest, makeTrace, postJson } from './otlp.ts';

afterEach(killAll);

interface Listed {
  entries: { id: string; kind: string; runs: number; key: string; code?: string; reason?: string }[];
  damagedRecords: number;
}

interface Outcome {
  readonly code: number | null;
  readonly output: string;
  readonly errors: string;
}

async function spool(folder: string, ...words: string[]): Promise<Outcome> {
  const program = run(['spool', ...words], { DATA_DIR: folder });
  const code = await program.exited;
  return { code, output: program.output(), errors: program.errors() };
}

async function list(folder: string, ...words: string[]): Promise<Listed> {
  const { code, output, errors } = await spool(folder, 'list', '--json', ...words);
  assert.equal(code, 0, errors);
  return JSON.parse(output) as Listed;
}

/** Until the list is as wished. */
async function listed(folder: string, wish: (found: Listed) => boolean): Promise<Listed> {
  for (;;) {
    const found = await list(folder);
    if (wish(found)) return found;
  }
}

async function proxy(backend: CountingBackend, folder: string): Promise<{ program: Program; base: string }> {
  const program = run([], {
    SERVICE_ENDPOINT: backend.url,
    SERVICE_API_KEY: 'the-secret-key',
    DATA_DIR: folder,
    FLUSH_INTERVAL_MS: '20',
    RETRY_BACKOFF_MS: '5',
    MAX_RETRIES: '1',
    DEPLOYMENT_API: 'off',
  });
  return { program, base: await ready(program) };
}

async function stop(program: Program): Promise<void> {
  program.process.kill('SIGTERM');
  assert.equal(await program.exited, 0, program.errors());
}

test('a dead letter is listed with its reason, shown, sent again beside the running process, and gone', async () => {
  const folder = newFolder();
  const backend = await startCountingBackend();
  const { spans } = makeTrace(2, 2);
  const bad = spans[1]?.name;
  let isMended = false;
  backend.reply = (runs) => ({ status: !isMended && runs.some(({ run: one }) => one['name'] === bad) ? 422 : 202 });
  const { program, base } = await proxy(backend, folder);
  assert.equal((await postJson(`${base}/v1/traces`, jsonRequest(spans))).status, 200);
  const sameName = spans.filter((span) => span.name === bad).length;
  const found = await listed(folder, ({ entries }) => entries.length === sameName);
  const [entry] = found.entries;
  assert.ok(entry !== undefined);
  assert.deepEqual([entry.kind, entry.runs, entry.code], ['dead', 1, 'rejected-by-backend']);
  assert.match(entry.reason ?? '', /^422/);
  assert.match(entry.key, /^[0-9a-f]{8}$/);

  const text = await spool(folder, 'list');
  assert.match(text.output, new RegExp(`^ID .*\\n${entry.id.replaceAll('.', '\\.')} +dead `));
  const shown = await spool(folder, 'show', entry.id);
  assert.match(shown.output, new RegExp(`runs:\\n {2}[0-9a-f-]{36} {2}${bad}`));
  const body = await spool(folder, 'show', entry.id, '--body');
  assert.match(body.output, /^--collector-proxy-[0-9a-f]+\r\nContent-Disposition: form-data; name="post\./);
  for (const { output, errors } of [text, shown, body]) assert.ok(!(output + errors).includes('the-secret-key'));

  isMended = true;
  const resent = await spool(folder, 'resend', '--all');
  assert.equal(resent.code, 0, resent.errors);
  assert.equal(resent.output, `resent ${sameName} with ${sameName} runs\n`);
  await backend.until(() => backend.runs.length === spans.length);
  assert.ok(backend.runs.every(({ apiKey }) => apiKey === 'the-secret-key'));
  await listed(folder, ({ entries }) => entries.length === 0);
  await stop(program);
  const { acceptedCount, inheritedCount, deliveredCount, droppedCount } = lastLine(program);
  assert.deepEqual(
    [acceptedCount, inheritedCount, deliveredCount, droppedCount],
    [spans.length, sameName, spans.length, sameName],
  );
  await backend.close();
});

test('without a process: what waits is listed, and purged so that the next process sends nothing of it', async () => {
  const folder = newFolder();
  const backend = await startCountingBackend();
  backend.reply = () => ({ status: 503 });
  const first = await proxy(backend, folder);
  const { spans } = makeTrace(3, 3);
  await postJson(`${first.base}/v1/traces`, jsonRequest(spans));
  await stop(first.program);
  const { entries } = await list(folder);
  assert.equal(
    entries.reduce((sum, { runs }) => sum + runs, 0),
    spans.length,
  );
  assert.ok(entries.every(({ kind }) => kind === 'waiting'));
  assert.deepEqual((await list(folder, '--kind', 'dead')).entries, []);

  const purged = await spool(folder, 'purge', '--all', '--json');
  assert.equal(purged.code, 0, purged.errors);
  assert.deepEqual(JSON.parse(purged.output), { purged: entries.map(({ id }) => id), runs: spans.length });
  const left = await readdir(join(folder, 'spool'), { recursive: true });
  assert.deepEqual(
    left.filter((file) => file.endsWith('.seg')),
    [],
  );

  backend.reply = () => ({ status: 202 });
  const second = await proxy(backend, folder);
  await stop(second.program);
  assert.equal(backend.runs.length, 0);
  await backend.close();
});

test('beside a running process: what is purged is not sent when the backend is back', async () => {
  const folder = newFolder();
  const backend = await startCountingBackend();
  backend.reply = () => ({ status: 503 });
  const { program, base } = await proxy(backend, folder);
  const purgedTrace = makeTrace(2, 2);
  const keptTrace = makeTrace(2, 2);
  await postJson(`${base}/v1/traces`, jsonRequest(purgedTrace.spans));
  const runsIn = ({ entries }: Listed): number => entries.reduce((sum, { runs }) => sum + runs, 0);
  await listed(folder, (found) => runsIn(found) === purgedTrace.spans.length);
  await stop(program);
  const firstCount = backend.uploads.length;
  const again = await proxy(backend, folder);
  // It has taken up what it found.
  await backend.until(() => backend.uploads.length > firstCount);
  const { code, errors } = await spool(folder, 'purge', '--all');
  assert.equal(code, 0, errors);
  await postJson(`${again.base}/v1/traces`, jsonRequest(keptTrace.spans));
  await listed(folder, (found) => runsIn(found) === keptTrace.spans.length);
  // Its turn comes only when what was before it has gone.
  const names = new Set(keptTrace.spans.map(({ traceId }) => Buffer.from(traceId).toString('hex')));
  const isKept = (runs: readonly ArrivedRun[]): boolean =>
    runs.every(({ run: one }) => names.has(String(one['trace_id']).replaceAll('-', '')));
  let keptCame = false;
  backend.reply = (runs) => {
    keptCame ||= isKept(runs);
    return { status: 503 };
  };
  await backend.until(() => keptCame);
  backend.reply = () => ({ status: 202 });
  await backend.until(() => backend.runs.length >= keptTrace.spans.length);
  await stop(again.program);
  assert.ok(isKept(backend.runs));
  const { inheritedCount, acceptedCount, deliveredCount, droppedCount, heldCount } = lastLine(again.program);
  assert.deepEqual(
    [inheritedCount, acceptedCount, deliveredCount, droppedCount, heldCount],
    [purgedTrace.spans.length, keptTrace.spans.length, keptTrace.spans.length, purgedTrace.spans.length, 0],
  );
  await backend.close();
});

test('wrong words are told with exit code 2, an ID that is not there with 1, and nothing is made by looking', async () => {
  const folder = newFolder();
  for (const [words, message] of [
    [['lits'], /^unknown command "lits"; spool --help/],
    [['list', '--josn'], /^unknown flag "--josn"/],
    [['purge'], /^purge needs IDs, or --all/],
    [['show'], /^show needs one ID/],
    [['list', '--kind', 'old'], /^--kind needs waiting, dead or body/],
  ] as const) {
    const { code, errors } = await spool(folder, ...words);
    assert.equal(code, 2);
    assert.match(errors, message);
  }
  const gone = await spool(folder, 'purge', 'nothing.0');
  assert.equal(gone.code, 1);
  assert.match(gone.errors, /^there is no nothing\.0 in /);
  const help = run(['spool', '--help'], { DATA_DIR: folder });
  await once(help.process, 'close');
  assert.match(help.output(), /^Usage: collector-proxy spool COMMAND/);
  assert.deepEqual(await readdir(folder), []);
});
