/** Everything at once, as a newcomer starts it: spans in, graphs served, their traces in the embedded backend. */
import assert from 'node:assert/strict';
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client } from '@langchain/langgraph-sdk';
import { createBackendClient } from '../../src/backend/client.ts';
import { jsonRequest, makeTrace, postJson } from './otlp.ts';
import { fixedPort } from './program.ts';

const start = fileURLToPath(new URL('../../src/start.js', import.meta.url));
const repository = fileURLToPath(new URL('../../', import.meta.url));
const HEAVY = /file:\S*\/node_modules\/(pg|kysely|@langchain\/langgraph|zod)\//;

interface Program {
  readonly child: ChildProcess;
  readonly exited: Promise<number | null>;
  /** Of the log line "ready". */
  readonly ready: Promise<{ port: number; endpoint: string; deployment: { port: number; graphs: string[] } | null }>;
  readonly errors: () => string;
}

let folder = '';
const running: Program[] = [];

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'program-'));
});
afterEach(async () => {
  for (const program of running.splice(0)) {
    program.child.kill('SIGKILL');
    await program.exited;
  }
});
after(() => rm(folder, { recursive: true }));

function run(
  words: readonly string[],
  environment: Record<string, string> = {},
  flags: string[] = [],
  cwd = folder,
): Program {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', ...flags, start, ...words], {
    cwd,
    env: {
      PATH: process.env['PATH'],
      HOST: '127.0.0.1',
      HTTP_PORT: '0',
      EMBEDDED_PORT: '0',
      DATA_DIR: join(folder, 'data'),
      LOG_LEVEL: 'info',
      ...environment,
    },
  });
  let errors = '';
  child.stderr.on('data', (chunk) => (errors += String(chunk)));
  const exited = once(child, 'close').then(([code]) => code as number | null);
  const ready = new Promise<Awaited<Program['ready']>>((resolve, reject) => {
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += String(chunk);
      const line = output.split('\n').find((candidate) => candidate.includes('"msg":"ready"'));
      if (line !== undefined) resolve(JSON.parse(line));
    });
    child.once('close', () => reject(new Error(`ended before it was ready\n${output}\n${errors}`)));
  });
  // A test that waits for the exit code only does not look at it.
  ready.catch(() => undefined);
  const program = { child, exited, ready, errors: () => errors };
  running.push(program);
  return program;
}

test('dev serves the example graphs, and their traces arrive beside the spans of applications', async () => {
  const program = run(['dev']);
  const { port, endpoint, deployment } = await program.ready;
  assert.deepEqual(deployment, { port, graphs: ['echo', 'agent', 'approval', 'nested'] });
  const base = `http://127.0.0.1:${port}`;
  const client = new Client({ apiUrl: base });
  const thread = await client.threads.create();
  const input = { messages: [{ role: 'user', content: 'Hello?' }] };

  const values = (await client.runs.wait(thread.thread_id, 'echo', { input })) as { messages: { content: string }[] };
  assert.equal(values.messages.at(-1)?.content, 'You said: Hello?');
  const events: string[] = [];
  for await (const { event } of client.runs.stream(thread.thread_id, 'echo', { input, streamMode: 'values' })) {
    events.push(event);
  }
  assert.equal(events[0], 'metadata');
  assert.ok(events.includes('values'), events.join());
  const runIds = (await client.runs.list(thread.thread_id)).map((row) => row.run_id);
  assert.equal(runIds.length, 2);

  const { spans } = makeTrace(2, 2);
  assert.equal((await postJson(`${base}/v1/traces`, jsonRequest(spans))).status, 200);
  const backend = createBackendClient(endpoint);
  // Two runs of the graph with one node each, and the application's spans.
  await backend.waitForRuns(2 * 2 + spans.length);
  for (const runId of runIds) {
    const answer = await fetch(`${base}/api/runs/${runId}`);
    assert.equal(answer.status, 200, `no trace of run ${runId}`);
    assert.ok((await answer.text()).includes(thread.thread_id));
  }

  program.child.kill('SIGTERM');
  assert.equal(await program.exited, 0);
});

test('the conversations of the README go as they are printed', async () => {
  const readme = await readFile(join(repository, 'README.md'), 'utf8');
  const [, part = ''] = /\n## The deployment API\n(.*?)\n## /s.exec(readme) ?? [];
  const shell = [...part.matchAll(/```sh\n(.*?)```/gs)].map(([, lines = '']) => lines);
  const script = /```ts\n(.*?)```/s.exec(part)?.[1] ?? '';
  assert.equal(shell.length, 2);
  const program = run(['dev']);
  const { port } = await program.ready;
  const here = (text: string): string => text.replaceAll('http://localhost:4318', `http://127.0.0.1:${port}`);
  const options = { cwd: repository, timeout: 240_000 };

  const spoken = await promisify(execFile)('sh', ['-e', '-c', here(shell.join('\n'))], options);
  assert.match(spoken.stdout, /The weather is \w+, \d+ degrees/);
  assert.match(spoken.stdout, /^event: messages$/m);
  assert.match(spoken.stdout, /^event: updates$/m);
  assert.match(spoken.stdout, /"next_run_date":"\d/);
  assert.doesNotMatch(spoken.stdout, /"detail"|__error__/);

  const words = ['--input-type=module', '--eval', here(script)];
  const printed = await promisify(execFile)(process.execPath, words, options);
  assert.match(printed.stdout, /^updates \{[^]*^interrupted$[^]*May this be published\?[^]*Published: A few words/m);
});

test('a configuration file is found where the process starts, and its graphs with what belongs to them', async () => {
  const project = join(folder, 'project');
  await mkdir(project);
  await symlink(join(repository, 'node_modules'), join(project, 'node_modules'));
  await writeFile(join(project, 'langgraph.json'), '{"graphs":{"mine":"./mine.js"},"env":".env"}');
  await writeFile(join(project, '.env'), 'MOTTO=from the environment file\n');
  await writeFile(join(project, 'package.json'), '{"type":"module"}');
  await writeFile(
    join(project, 'mine.js'),
    `import { Annotation, START, StateGraph } from '@langchain/langgraph';
export default new StateGraph(Annotation.Root({ motto: Annotation() }))
  .addNode('say', () => ({ motto: process.env.MOTTO }))
  .addEdge(START, 'say');
`,
  );
  const environment = { SERVICE_ENDPOINT: 'http://127.0.0.1:9', SERVICE_API_KEY: 'k', DEPLOYMENT_AUTH: 'none' };
  const program = run([], { ...environment, DATA_DIR: join(project, 'data') }, [], project);
  const { port, deployment } = await program.ready;
  assert.deepEqual(deployment, { port, graphs: ['mine'] });
  const answer = await fetch(`http://127.0.0.1:${port}/runs/wait`, {
    method: 'POST',
    body: '{"assistant_id":"mine","input":{}}',
    // Open to everyone, through whatever they come.
    headers: { 'x-forwarded-for': '192.0.2.1' },
  });
  assert.deepEqual(await answer.json(), { motto: 'from the environment file' });
});

test('a process without graphs loads neither database nor graph library until a request needs them', async () => {
  const hook = join(folder, 'seen.mjs');
  await writeFile(
    hook,
    `import { registerHooks } from 'node:module';
registerHooks({ load: (url, context, next) => {
  if (${String(HEAVY)}.test(url)) process.stderr.write('loaded ' + url + '\\n');
  return next(url, context);
} });`,
  );
  const environment = { SERVICE_ENDPOINT: 'http://127.0.0.1:9', SERVICE_API_KEY: 'k', DEPLOYMENT_PORT: '0' };
  const program = run([], environment, ['--import', hook]);
  const { port, deployment } = await program.ready;
  assert.ok(deployment !== null && deployment.port !== port && deployment.port !== 0);
  const base = `http://127.0.0.1:${deployment.port}`;
  assert.equal((await fetch(`${base}/ok`)).status, 200);
  assert.equal((await fetch(`http://127.0.0.1:${port}/ok`)).status, 404);
  assert.equal(program.errors(), '');

  const created = await postJson(`${base}/threads`, '{}');
  assert.equal(created.status, 200);
  while (!/kysely|zod/.test(program.errors())) await once(program.child.stderr ?? assert.fail(), 'data');
  const refused = await postJson(`${base}/runs/wait`, '{"assistant_id":"echo"}');
  assert.equal(refused.status, 404);
  assert.match(await refused.text(), /DEPLOYMENT_CONFIG/);
  program.child.kill('SIGTERM');
  assert.equal(await program.exited, 0);
});

test('while the graphs load, requests to the API are told to come back', async () => {
  const project = join(folder, 'slow');
  await mkdir(project);
  await writeFile(
    join(project, 'langgraph.json'),
    '{"graphs":{"slow":"./slow.mjs"},"http":{"mount_prefix":"/agents"}}',
  );
  await symlink(join(repository, 'node_modules'), join(project, 'node_modules'));
  await writeFile(
    join(project, 'slow.mjs'),
    `import { existsSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { Annotation, START, StateGraph } from '@langchain/langgraph';
writeFileSync(${JSON.stringify(join(project, 'begun'))}, '');
while (!existsSync(${JSON.stringify(join(project, 'go'))})) await sleep(20);
export default new StateGraph(Annotation.Root({ said: Annotation() })).addNode('say', () => ({ said: 1 })).addEdge(START, 'say');
`,
  );
  const port = await fixedPort();
  const program = run([], {
    HTTP_PORT: String(port),
    SERVICE_ENDPOINT: 'http://127.0.0.1:9',
    SERVICE_API_KEY: 'k',
    DEPLOYMENT_CONFIG: join(project, 'langgraph.json'),
    DATA_DIR: join(project, 'data'),
  });
  const create = (): Promise<Response> => postJson(`http://127.0.0.1:${port}/agents/threads`, '{}');
  while (!existsSync(join(project, 'begun'))) await sleep(20);
  const early = await create();
  assert.equal(early.status, 503);
  assert.equal(early.headers.get('retry-after'), '1');
  await writeFile(join(project, 'go'), '');
  await program.ready;
  assert.equal((await create()).status, 200);
});

test('a graph that does not load stops the start and is named with file, export and reason', async () => {
  await writeFile(join(folder, 'broken.json'), '{"graphs":{"mine":"./nowhere.ts:agent"}}');
  const program = run(['dev'], { DEPLOYMENT_CONFIG: join(folder, 'broken.json') });
  assert.equal(await program.exited, 1);
  assert.match(program.errors(), /cannot start: [^]*mine[^]*nowhere\.ts[^]*agent/);
});

test('with keys, or seen through a proxy, a request without a key gets no further; DEPLOYMENT_API=off removes the routes', async () => {
  const keyed = run(['dev'], { DEPLOYMENT_API_KEYS: 'first,second' });
  const local = run(['dev'], { DATA_DIR: join(folder, 'other') });
  const off = run(['dev'], { DEPLOYMENT_API: 'off', DATA_DIR: join(folder, 'third') });
  const search = async (program: Program, headers: Record<string, string> = {}): Promise<number> => {
    const { port } = await program.ready;
    const answer = await fetch(`http://127.0.0.1:${port}/threads/search`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{}',
    });
    await answer.body?.cancel();
    return answer.status;
  };
  assert.equal(await search(keyed), 401);
  assert.equal(await search(keyed, { 'x-api-key': 'second' }), 200);
  assert.equal(await search(keyed, { authorization: 'Bearer first' }), 200);
  assert.equal(await search(local), 200);
  assert.equal(await search(local, { 'x-forwarded-for': '192.0.2.1' }), 403);
  assert.equal(await search(off), 404);
  const { port } = await local.ready;
  const shown = (headers: Record<string, string>) => fetch(`http://127.0.0.1:${port}/api/traces`, { headers });
  assert.equal((await shown({})).status, 200);
  assert.equal((await shown({ 'x-forwarded-for': '192.0.2.1' })).status, 403);
});
