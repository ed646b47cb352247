/** What the clients of unfinished runs see when the program is told to stop: a broken connection, never something that looks like an answer. */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { StoreLocation } from '../../src/deploy/store/location.ts';
import { describeOnEachEngine, type TestDatabase } from '../deploy-engines.ts';
import { FIXTURE_GRAPHS } from '../deploy-server.ts';

const start = fileURLToPath(new URL('../../src/start.js', import.meta.url));

/** What a client makes of a response: its text, or the fact that it never came whole. */
async function fateOf(response: Response): Promise<string> {
  return response.text().then(
    (text) => `whole: ${JSON.stringify(text)}`,
    () => 'broken',
  );
}

/** Traces and spool go to the folder whatever the engine. */
function storeEnvironment(location: StoreLocation, folder: string): Record<string, string> {
  return location.engine === 'sqlite'
    ? { DATA_DIR: location.folder }
    : { DATA_DIR: join(folder, 'data'), DATABASE_URL: location.url };
}

describeOnEachEngine('the program that is told to stop', (engine) => {
  let folder = '';
  let database: TestDatabase;
  const running: ChildProcess[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'deploy-sigterm-'));
    database = await engine.create();
    await writeFile(
      join(folder, 'langgraph.json'),
      JSON.stringify({ graphs: { steps: `${join(FIXTURE_GRAPHS, 'steps.ts')}:graph` } }),
    );
  });
  afterEach(async () => {
    for (const child of running.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      const exit = once(child, 'exit');
      child.kill('SIGKILL');
      await exit;
    }
    await database.remove();
    await rm(folder, { recursive: true, force: true });
  });

  async function run(environment: Record<string, string>): Promise<{ child: ChildProcess; url: string }> {
    const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', start, 'dev'], {
      cwd: folder,
      env: {
        PATH: process.env['PATH'],
        HOST: '127.0.0.1',
        HTTP_PORT: '0',
        EMBEDDED_PORT: '0',
        DEPLOYMENT_CONFIG: join(folder, 'langgraph.json'),
        LOG_LEVEL: 'info',
        ...storeEnvironment(database.location, folder),
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    running.push(child);
    let output = '';
    const ready = await new Promise<string>((resolve, reject) => {
      child.stdout?.on('data', (chunk) => {
        output += String(chunk);
        const line = output.split('\n').find((candidate) => candidate.includes('"msg":"ready"'));
        if (line !== undefined) resolve(line);
      });
      child.once('exit', () => reject(new Error(output)));
    });
    const { deployment } = JSON.parse(ready) as { deployment: { port: number } };
    return { child, url: `http://127.0.0.1:${deployment.port}` };
  }

  for (const [place, environment] of [
    ["the proxy's port", {}],
    ['a port of its own', { DEPLOYMENT_PORT: '0' }],
  ] as const) {
    it(`a stop in mid-run breaks the connections of all who wait, join and read on ${place}, and the run ends after the next start`, async () => {
      const until = join(folder, 'go-on');
      const journal = join(folder, 'journal');
      const { child, url } = await run({ ...environment, SHUTDOWN_DEADLINE_MS: '6000' });
      const threadId = randomUUID();
      const body = {
        assistant_id: 'steps',
        input: { name: 'a', journal, hold: { step: 'two', until } },
        if_not_exists: 'create',
        durability: 'sync',
      };
      const post = (path: string, change: object = {}): Promise<Response> =>
        fetch(url + path, { method: 'POST', body: JSON.stringify({ ...body, ...change }) });

      const waiting = await post(`/threads/${threadId}/runs/wait`);
      const location = waiting.headers.get('content-location') ?? '';
      const runId = location.slice(location.lastIndexOf('/') + 1);
      const responses: Record<string, Response> = {
        wait: waiting,
        stream: await post(`/threads/${randomUUID()}/runs/stream`),
        'stateless wait': await post('/runs/wait'),
        'stateless stream': await post('/runs/stream'),
        'resumable stream': await post('/runs/stream', { stream_resumable: true }),
        join: await fetch(`${url}${location}/join`),
        'stateless join': await fetch(`${url}/runs/${runId}/join`),
        'join stream': await fetch(`${url}${location}/stream`),
        'thread stream': await fetch(`${url}/threads/${threadId}/stream`),
        // Behind the run that holds its thread: it has not begun.
        'wait for a pending run': await post(`/threads/${threadId}/runs/wait`),
        'stream of a pending run': await post(`/threads/${threadId}/runs/stream`),
      };
      for (const [name, response] of Object.entries(responses)) assert.equal(response.status, 200, name);
      while ((await readFile(journal, 'utf8').catch(() => '')).split('\n').length <= 8)
        await new Promise((resolve) => setTimeout(resolve, 5));

      const exit = once(child, 'exit');
      child.kill('SIGTERM');
      const fates = await Promise.all(
        Object.entries(responses).map(async ([name, response]) => [name, await fateOf(response)] as const),
      );
      assert.deepEqual(
        fates,
        Object.keys(responses).map((name) => [name, 'broken']),
      );
      assert.deepEqual(await exit, [0, null]);

      await writeFile(until, '');
      const next = await run(environment);
      const joined = await fetch(`${next.url}${location}/join`);
      assert.deepEqual(((await joined.json()) as { done: string[] }).done.slice(0, 3), ['a:one', 'a:two', 'a:three']);
    });
  }
});
