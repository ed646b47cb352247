import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { Client } from '@langchain/langgraph-sdk';
import type { GraphSpec } from '../../src/deploy/graph/protocol.ts';
import { EXAMPLES, FIXTURE_GRAPHS, specs, startServer } from '../deploy-server.ts';

const KINDS = join(FIXTURE_GRAPHS, 'kinds.ts');

function kind(exportName: string): GraphSpec {
  return { graphId: exportName === '' ? 'default' : exportName, file: KINDS, exportName };
}

test('a compiled graph, a builder, a promise, a factory, an agent wrapper, a default export and CommonJS are all graphs', async () => {
  const server = await startServer({
    graphs: [
      ...['compiled', 'builder', 'promise', 'factory', 'asyncFactory', 'wrapper', ''].map(kind),
      { graphId: 'commonjs', file: join(FIXTURE_GRAPHS, 'plain.cjs'), exportName: 'graph' },
    ],
  });
  try {
    const client = new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } });
    for (const [graphId, answer] of [
      ['compiled', 'yes'],
      ['builder', 'builder'],
      ['promise', 'promise'],
      ['factory', 'factory plain'],
      ['asyncFactory', 'async factory'],
      ['wrapper', 'wrapper'],
      ['default', 'default'],
      ['commonjs', 'commonjs'],
    ] as const)
      assert.deepEqual(await client.runs.wait(null, graphId, { input: {} }), { answer }, graphId);
    const flavoured = await client.runs.wait(null, 'factory', {
      input: {},
      config: { configurable: { flavour: 'lemon' } },
    });
    assert.deepEqual(flavoured, { answer: 'factory lemon' });
    // A factory's graph is there for state reads as well.
    const { thread_id: threadId } = await client.threads.create();
    await client.runs.wait(threadId, 'factory', { input: {} });
    assert.deepEqual((await client.threads.getState(threadId)).values, { answer: 'factory plain' });
    const assistants = await client.assistants.search({ limit: 20 });
    assert.equal(assistants.length, 8);
  } finally {
    await server.close();
  }
});

test('graphs that do not load stop the start, each with its file, export and reason', async () => {
  const failing: GraphSpec[] = [
    kind('nothing'),
    kind('text'),
    kind('absent'),
    { graphId: 'missing', file: join(FIXTURE_GRAPHS, 'missing.ts'), exportName: 'graph' },
    { graphId: 'throws', file: join(FIXTURE_GRAPHS, 'throws.ts'), exportName: 'graph' },
    kind('compiled'),
  ];
  await assert.rejects(startServer({ graphs: failing }), (error: Error) => {
    assert.equal(error.name, 'GraphLoadError');
    for (const part of [
      `graph "nothing" (${KINDS}, export nothing): no such export`,
      `graph "text" (${KINDS}, export text): not a graph`,
      `graph "absent" (${KINDS}, export absent): no such export; the module exports `,
      'missing.ts, export graph): no such file',
      'throws.ts, export graph): module of a graph that does not load',
    ])
      assert.ok(error.message.includes(part), `${part}\nis not in\n${error.message}`);
    assert.ok(!error.message.includes('"compiled"'));
    return true;
  });
});

test('a graph module that ends its thread while it loads stops the start', async () => {
  await assert.rejects(
    startServer({ graphs: [{ graphId: 'exits', file: join(FIXTURE_GRAPHS, 'exits.ts'), exportName: 'graph' }] }),
    /could not be loaded.*exited with code 5/,
  );
});

test('a factory whose result is no graph fails the run, not the server', async () => {
  const server = await startServer({ graphs: [kind('brokenFactory')] });
  try {
    const client = new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } });
    await assert.rejects(client.runs.wait(null, 'brokenFactory', { input: {} }), /not a graph/);
  } finally {
    await server.close();
  }
});

test('a project brings its own copy of the graph library, and commands, sends and messages are of its classes', async () => {
  const project = realpathSync(mkdtempSync(join(tmpdir(), 'deploy-project-')));
  try {
    copyLibrary(join(project, 'node_modules'));
    mkdirSync(join(project, 'src'));
    cpSync(join(FIXTURE_GRAPHS, 'foreign.ts'), join(project, 'src/foreign.ts'));
    writeFileSync(join(project, 'package.json'), '{"type":"module"}');
    writeFileSync(
      join(project, 'tsconfig.json'),
      '{"compilerOptions":{"module":"nodenext","paths":{"#words":["./words.ts"]}}}',
    );
    writeFileSync(join(project, 'words.ts'), "export const word: string = 'word of the project';\n");
    const server = await startServer({
      graphs: [{ graphId: 'foreign', file: join(project, 'src/foreign.ts'), exportName: 'graph' }],
      settings: { folder: project, environment: { PROJECT_WORD: 'from the environment' } },
    });
    try {
      const client = new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } });
      const { thread_id: threadId } = await client.threads.create();
      const asked = await client.runs.wait(threadId, 'foreign', {
        input: { messages: [{ role: 'user', content: 'hi' }] },
      });
      assert.ok('__interrupt__' in (asked as object));
      const ended = (await client.runs.wait(threadId, 'foreign', {
        command: { resume: 'go', goto: [{ node: 'target', input: { note: 'sent' } }] },
      })) as { notes: string[]; messages: { type: string }[] };
      assert.deepEqual(ended.notes.sort(), [
        'from the environment',
        'library of the project: true',
        'message of the project: true',
        'resumed with go',
        'sent',
        'word of the project',
      ]);
    } finally {
      await server.close();
    }
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
});

test('runs are traced as a tree of spans that carries run and thread', async () => {
  interface Span {
    traceId: string;
    spanId: string;
    parentSpanId?: string;
    name: string;
    attributes: { key: string; value: { stringValue: string } }[];
    status: { code: number };
  }
  const spans: Span[] = [];
  const projects: string[] = [];
  let arrived: () => void = () => undefined;
  const sink = createServer((request, response) => {
    void (async () => {
      let text = '';
      for await (const chunk of request) text += String(chunk);
      const body = JSON.parse(text) as { resourceSpans: { scopeSpans: { spans: Span[] }[] }[] };
      assert.equal(request.headers['x-api-key'], 'key');
      projects.push(Buffer.from(String(request.headers['service-project'] ?? ''), 'latin1').toString());
      spans.push(...body.resourceSpans.flatMap((resource) => resource.scopeSpans.flatMap((scope) => scope.spans)));
      response.end('{}');
      arrived();
    })();
  });
  await new Promise<void>((resolve) => sink.listen(0, '127.0.0.1', resolve));
  const { port } = sink.address() as AddressInfo;
  const server = await startServer({
    graphs: [...specs(EXAMPLES, 'agent'), ...specs(FIXTURE_GRAPHS, 'misbehave')],
    settings: { traceTarget: () => ({ url: `http://127.0.0.1:${port}/v1/traces`, headers: { 'x-api-key': 'key' } }) },
  });
  try {
    const client = new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } });
    const { thread_id: threadId } = await client.threads.create();
    const sent = new Promise<void>((resolve) => (arrived = resolve));
    const run = await client.runs.create(threadId, 'agent', {
      input: { messages: [{ role: 'user', content: 'the weather in Oslo' }] },
      metadata: { team: 'ops' },
    });
    await sent;
    const root = spans.find((span) => span.parentSpanId === undefined);
    assert.equal(root?.traceId, run.run_id.replaceAll('-', ''));
    const attribute = (span: Span, key: string): string | undefined =>
      span.attributes.find((entry) => entry.key === key)?.value.stringValue;
    for (const span of spans) {
      assert.equal(span.traceId, root.traceId);
      assert.equal(attribute(span, 'langsmith.metadata.thread_id'), threadId);
      assert.equal(attribute(span, 'langsmith.metadata.run_id'), run.run_id);
      assert.ok(span === root || spans.some((other) => other.spanId === span.parentSpanId), span.name);
    }
    assert.equal(attribute(root, 'langsmith.metadata.team'), 'ops');
    assert.match(attribute(root, 'gen_ai.prompt') ?? '', /the weather in Oslo/);
    assert.match(attribute(root, 'gen_ai.completion') ?? '', /degrees/);
    const kinds = spans.map((span) => attribute(span, 'langsmith.span.kind'));
    assert.equal(kinds.filter((name) => name === 'llm').length, 2);
    assert.equal(kinds.filter((name) => name === 'tool').length, 1);
    const llm = spans.find((span) => attribute(span, 'langsmith.span.kind') === 'llm');
    assert.ok(llm && JSON.parse(attribute(llm, 'langsmith.usage_metadata') ?? 'null') !== null);

    spans.length = 0;
    const failed = new Promise<void>((resolve) => (arrived = resolve));
    await client.runs.wait(null, 'misbehave', { input: { how: 'fail' }, raiseError: false });
    await failed;
    assert.equal(spans.find((span) => span.parentSpanId === undefined)?.status.code, 2);
    assert.deepEqual(projects, ['', '']);

    spans.length = 0;
    const tracedElsewhere = new Promise<void>((resolve) => (arrived = resolve));
    const tracer = { project_name: 'Prüfung', example_id: '0f0a6c3e-4b5c-4d1e-9a44-1b6f3d0a9c11' };
    const body = { assistant_id: 'misbehave', input: { how: 'nothing' }, langsmith_tracer: tracer };
    await (await fetch(`${server.url}/runs/wait`, { method: 'POST', body: JSON.stringify(body) })).text();
    await tracedElsewhere;
    assert.equal(projects.at(-1), tracer.project_name);
    const examples = spans.map((span) => attribute(span, 'langsmith.reference_example_id'));
    assert.deepEqual(examples.filter(Boolean), [tracer.example_id]);
  } finally {
    await server.close();
    await new Promise<void>((resolve) => {
      sink.close(() => resolve());
      sink.closeAllConnections();
    });
  }
});

/** The graph library and what it needs, as files of the project's own. */
function copyLibrary(target: string): void {
  const wanted = ['@langchain/langgraph'];
  const done = new Set<string>();
  const from = createRequire(import.meta.filename);
  while (wanted.length > 0) {
    const name = wanted.pop() ?? '';
    if (done.has(name)) continue;
    done.add(name);
    const folder = folderOf(name, from);
    if (folder === null) continue;
    cpSync(folder, join(target, name), { recursive: true, dereference: true });
    const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
      dependencies?: Record<string, string>;
      peerDependencies?: Record<string, string>;
    };
    wanted.push(...Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }));
  }
}

function folderOf(name: string, from: NodeJS.Require): string | null {
  for (const path of from.resolve.paths(name) ?? []) {
    const folder = join(path, name);
    try {
      readFileSync(join(folder, 'package.json'));
      return folder;
    } catch {
      continue;
    }
  }
  return null;
}
