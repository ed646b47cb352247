/** The program as an operator meets it: flags, exit codes, messages, signals. Each test starts a process of its own. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, test } from 'node:test';
import { createBackendClient } from '../../src/backend/client.ts';
import { startBackend } from '../../src/backend/owner.ts';
import { killAll, lastLine, newFolder, ready, run } from '../program.ts';
import { jsonRequest, makeTrace, postJson } from './otlp.ts';

const root = new URL('../../', import.meta.url);

afterEach(killAll);

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL');
  } catch (error) {
    // Nothing of it is left.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

test('flags answer and end: help, version, check; a wrong one is exit code 2', async () => {
  const programs = [
    run(['--help']),
    run(['--version']),
    run(['--check'], { SERVICE_API_KEY: 'secret-key' }),
    run(['--port']),
  ];
  assert.deepEqual(await Promise.all(programs.map(({ exited }) => exited)), [0, 0, 0, 2]);
  const [help, version, check, wrong] = programs.map((program) => program.output() + program.errors());
  assert.match(help ?? '', /BATCH_SIZE/);
  assert.match(version ?? '', /^\d+\.\d+\.\d+\n$/);
  assert.match(check ?? '', /^SERVICE_API_KEY +\*{8}/m);
  assert.ok(!check?.includes('secret-key'));
  assert.match(wrong ?? '', /^unknown argument "--port"/);
});

test('a Node that is too old is one line and exit code 1, also with the preload of npm start', async () => {
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as { scripts: { start: string } };
  const args = scripts.start.split(' ').filter((word) => word !== 'exec' && word !== 'node');
  // What Node 20 lacks, and how it calls itself.
  const older = `import module, { syncBuiltinESMExports } from 'node:module';
    delete module.registerHooks;
    delete module.stripTypeScriptTypes;
    syncBuiltinESMExports();
    Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } });`;
  const child = spawn(process.execPath, ['--import', `data:text/javascript,${encodeURIComponent(older)}`, ...args], {
    cwd: root,
  });
  let errors = '';
  child.stderr.on('data', (chunk) => (errors += String(chunk)));
  assert.deepEqual(await once(child, 'close'), [1, null]);
  assert.match(errors, /^Node 22 from 22\.18 on is needed, .*\n$/);
});

test('a wrong configuration is exit code 78 and names every problem', async () => {
  const program = run([], { BATCH_SIZE: 'many', MAX_RETRIES: '-1' });
  assert.equal(await program.exited, 78);
  assert.match(program.errors(), /2 problems:\n {2}- BATCH_SIZE .*\n {2}- MAX_RETRIES .*\n$/);
});

test('a port that is taken is one line and exit code 1', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  const program = run([], { HTTP_PORT: String(port) });
  assert.equal(await program.exited, 1);
  assert.match(
    program.errors(),
    /^cannot start: cannot listen on 127\.0\.0\.1 port \d+: another process listens there.*\n$/,
  );
  holder.close();
});

test('what the start stumbles over is one line that names the variable to look at', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const port = String((holder.address() as AddressInfo).port);
  const file = join(newFolder(), 'file');
  writeFileSync(file, '');
  const cases: [Record<string, string>, RegExp][] = [
    [{ EMBEDDED_PORT: port }, /^cannot start: .*another process listens there \(EADDRINUSE\); set EMBEDDED_PORT\n$/],
    [{ DATA_DIR: file }, /^cannot start: .*runs\.sqlite cannot be opened: .*; set DATA_DIR\n$/],
    [{ DATABASE_URL: 'postgres://u:secret-word@localhost:1/d' }, /^cannot start: DATABASE_URL: .* ECONNREFUSED .*\n$/],
  ];
  for (const [environment, message] of cases) {
    const program = run(['dev'], environment);
    assert.equal(await program.exited, 1);
    assert.match(program.errors(), message);
    assert.ok(!program.errors().includes('secret-word'));
  }
  holder.close();
});

test('a SIGTERM that npm gets reaches the service: npm ends after it, with its exit code', async () => {
  // A group of its own: what npm would leave behind ends with the test.
  const npm = spawn('npm', ['start', '--silent'], {
    cwd: root,
    env: {
      ...process.env,
      HOST: '127.0.0.1',
      HTTP_PORT: '0',
      DATA_DIR: newFolder(),
      SERVICE_ENDPOINT: 'http://127.0.0.1:9',
    },
    detached: true,
  });
  try {
    let output = '';
    await new Promise<void>((resolve) => {
      npm.stdout.on('data', (chunk) => {
        output += String(chunk);
        if (output.includes('"msg":"ready"')) resolve();
      });
    });
    npm.kill('SIGTERM');
    assert.deepEqual(await once(npm, 'exit'), [0, null]);
    if (!npm.stdout.closed) await once(npm.stdout, 'close');
    assert.match(output, /"msg":"stopped, everything delivered"/);
  } finally {
    killGroup(npm.pid);
  }
});

test('dev needs nothing: its banner names the address and its curl line is taken and arrives', async () => {
  const program = run(['dev']);
  const [, base] = await program.seen(/Spans in +(http:\/\/localhost:\d+)\/v1\/traces/);
  const [, backendUrl] = await program.seen(/embedded backend at (http:\/\/127\.0\.0\.1:\d+)/);
  const [, body] = await program.seen(/curl -i .* -d '(.*)'\n/);
  await program.seen(/OTEL_EXPORTER_OTLP_PROTOCOL=http\/protobuf\n/);
  const answer = await postJson(`${base}/v1/traces`, body ?? '');
  assert.equal(answer.status, 200);
  await createBackendClient(backendUrl ?? '').waitForRuns(1);
  program.process.kill('SIGINT');
  assert.equal(await program.exited, 0);
});

test('SIGTERM under load delivers everything that was accepted: exit code 0, numbers in the last line', async () => {
  const backend = await startBackend();
  const program = run([], { SERVICE_ENDPOINT: backend.url, SERVICE_API_KEY: 'k', SHUTDOWN_DEADLINE_MS: '1m' });
  const base = await ready(program);
  let acceptedCount = 0;
  let ended = false;
  const senders = Array.from({ length: 4 }, async () => {
    while (!ended) {
      const { spans } = makeTrace(3, 3);
      const answer = await postJson(`${base}/v1/traces`, jsonRequest(spans)).catch(() => null);
      if (answer?.status === 200) acceptedCount += spans.length;
    }
  });
  while (acceptedCount < 1000) await new Promise((resolve) => setTimeout(resolve, 5));
  program.process.kill('SIGTERM');
  const exitCode = await program.exited;
  ended = true;
  await Promise.all(senders);
  const { time, ...line } = lastLine(program);
  assert.equal(typeof time, 'string');
  assert.deepEqual(line, {
    level: 'info',
    reason: 'SIGTERM',
    acceptedCount,
    deliveredCount: acceptedCount,
    droppedCount: 0,
    heldCount: 0,
    spooledCount: 0,
    inheritedCount: 0,
    lostCount: 0,
    msg: 'stopped, everything delivered',
  });
  assert.equal(exitCode, 0);
  assert.equal((await createBackendClient(backend.url).stats()).run_count, acceptedCount);
  await backend.stop();
});

test('stopped without a backend or a spool: exit code 3 after the deadline, and the last line says how much was lost', async () => {
  const program = run([], {
    SERVICE_ENDPOINT: 'http://127.0.0.1:9',
    SERVICE_API_KEY: 'k',
    SHUTDOWN_DEADLINE_MS: '500',
    SPOOL_MAX_BYTES: '0',
  });
  const base = await ready(program);
  const { spans } = makeTrace(2, 2);
  assert.equal((await postJson(`${base}/v1/traces`, jsonRequest(spans))).status, 200);
  // An upload was tried, and told of.
  while (!program.output().includes('"stage":"ship"')) await once(program.process.stdout, 'data');
  program.process.kill('SIGTERM');
  assert.equal(await program.exited, 3);
  const line = lastLine(program);
  assert.equal(line['msg'], 'stopped, not everything was delivered');
  assert.equal(line['acceptedCount'], spans.length);
  assert.equal(Number(line['droppedCount']) + Number(line['heldCount']), spans.length);
  // Each line names its stage once, also those that come from a thread.
  assert.doesNotMatch(program.output(), /"stage":[^\n]*"stage":/);
});

test('stopped without a backend: what could not leave is in the spool, exit code 0, and the next process delivers it', async () => {
  const environment = { SERVICE_ENDPOINT: 'http://127.0.0.1:9', SERVICE_API_KEY: 'k', DATA_DIR: newFolder() };
  const first = run([], environment);
  const base = await ready(first);
  const { spans } = makeTrace(2, 2);
  assert.equal((await postJson(`${base}/v1/traces`, jsonRequest(spans))).status, 200);
  first.process.kill('SIGTERM');
  assert.equal(await first.exited, 0);
  const line = lastLine(first);
  assert.equal(line['msg'], 'stopped, what was not delivered waits in the spool');
  assert.equal(line['spooledCount'], spans.length);
  assert.equal(line['lostCount'], 0);

  const backend = await startBackend();
  const second = run([], { ...environment, SERVICE_ENDPOINT: backend.url });
  await ready(second);
  const client = createBackendClient(backend.url);
  await client.waitForRuns(spans.length);
  second.process.kill('SIGTERM');
  assert.equal(await second.exited, 0);
  const { inheritedCount, deliveredCount, spooledCount, msg } = lastLine(second);
  assert.deepEqual([inheritedCount, deliveredCount, spooledCount], [spans.length, spans.length, 0]);
  assert.equal(msg, 'stopped, everything delivered');
  await backend.stop();
});

test('a spool that another process has ends the start with one line that says what to do', async () => {
  const environment = { SERVICE_ENDPOINT: 'http://127.0.0.1:9', SERVICE_API_KEY: 'k', DATA_DIR: newFolder() };
  const first = run([], environment);
  await ready(first);
  const second = run([], environment);
  assert.equal(await second.exited, 1);
  assert.match(second.errors(), /^cannot start: .*spool is the spool of another process: give each a SPOOL_DIR .*\n$/);
  // A lock of the living alone: killed, it lets go.
  first.process.kill('SIGKILL');
  await first.exited;
  await ready(run([], environment));
});

test('a second signal ends at once, but not one that comes with the first, as npm and terminals send it', async () => {
  const program = run([], {
    SERVICE_ENDPOINT: 'http://127.0.0.1:9',
    SERVICE_API_KEY: 'k',
    SHUTDOWN_DEADLINE_MS: '1m',
    SPOOL_MAX_BYTES: '0',
  });
  const base = await ready(program);
  assert.equal((await postJson(`${base}/v1/traces`, jsonRequest(makeTrace(2, 2).spans))).status, 200);
  // Two signals, since two of one kind that come together are one.
  program.process.kill('SIGTERM');
  program.process.kill('SIGINT');
  await program.seen(/"msg":"stopping"/);
  await new Promise((resolve) => setTimeout(resolve, 800));
  assert.equal(program.process.exitCode, null);
  program.process.kill('SIGTERM');
  assert.equal(await program.exited, 3);
  assert.match(String(lastLine(program)['msg']), /^stopped at once/);
});

test('no key ever stands in the output, whatever is logged', async () => {
  const program = run([], {
    SERVICE_ENDPOINT: 'http://127.0.0.1:9',
    SERVICE_API_KEY: 'configured-secret',
    LOG_LEVEL: 'debug',
    SHUTDOWN_DEADLINE_MS: '200',
  });
  const base = await ready(program);
  const headers = { 'X-API-Key': 'header-secret' };
  await postJson(`${base}/v1/traces`, jsonRequest(makeTrace(2, 2).spans), headers);
  await postJson(`${base}/v1/traces`, '{', headers);
  await postJson(`${base}/v1/traces`, '{"resourceSpans":3}', { 'X-API-Key': 'header-secret\ttwo' });
  program.process.kill('SIGTERM');
  await program.exited;
  assert.ok(!/configured-secret|header-secret/.test(program.output() + program.errors()));
});
