/** What stands in the database is somebody else's word: group 19 of the cases (cases.test.ts). */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openState } from '../../src/deploy/checkpoint/open.ts';
import type { StateDatabase } from '../../src/deploy/store/database.ts';
import { stateLocation } from '../../src/deploy/store/location.ts';
import { describeOnEachEngine, type TestDatabase } from '../deploy-engines.ts';
import { EXAMPLES, FIXTURE_GRAPHS, specs } from '../deploy-server.ts';
import { startApi, type ApiServer } from './apiserver.ts';

const SECRET = 'the-environment-is-nobodys-business';
const code = `globalThis.process.env.HOSTILE_PROOF = 'run'`;
/** Documents that deserializers elsewhere have taken for orders. */
const ORDERS: Readonly<Record<string, unknown>> = {
  'a constructor of the global scope': {
    lc: 2,
    type: 'constructor',
    id: ['Function'],
    method: null,
    args: [code],
    kwargs: {},
  },
  'a constructor by a method': {
    lc: 2,
    type: 'constructor',
    id: ['Function'],
    method: 'constructor',
    args: [code],
    kwargs: {},
  },
  'a constructor by a list of methods': {
    lc: 2,
    type: 'constructor',
    id: ['Set'],
    method: ['constructor', 'constructor'],
    args: [code],
    kwargs: {},
  },
  'a module': {
    lc: 2,
    type: 'constructor',
    id: ['child_process', 'execSync'],
    method: null,
    args: ['false'],
    kwargs: {},
  },
  'a secret of the environment': { lc: 1, type: 'secret', id: ['HOSTILE_SECRET'] },
  'a message with a secret': {
    lc: 1,
    type: 'constructor',
    id: ['langchain_core', 'messages', 'HumanMessage'],
    kwargs: { content: { lc: 1, type: 'secret', id: ['HOSTILE_SECRET'] } },
  },
  'a class that is none': { lc: 1, type: 'constructor', id: ['langchain', 'llms', 'Nothing'], kwargs: {} },
  'a path out of the library': { lc: 1, type: 'constructor', id: ['..', '..', 'fs', 'readFileSync'], kwargs: {} },
  'a prototype': JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}'),
  'a regular expression that never ends': {
    lc: 2,
    type: 'constructor',
    id: ['RegExp'],
    method: null,
    args: ['^(a+)+$', ''],
    kwargs: {},
  },
};
/** Bytes that are no document. */
const DAMAGE: Readonly<Record<string, string>> = {
  nothing: '',
  'half a document': '{"v":4,',
  'no object': '5',
  'a null': 'null',
  'a list': '[]',
  'not UTF-8': '\xff\xfe\x00',
  'a document ten thousand levels deep': '['.repeat(10_000) + ']'.repeat(10_000),
};

describeOnEachEngine('tampered checkpoints', (engine) => {
  let database: TestDatabase;
  let server: ApiServer;
  /** SQLite's file has one owner at a time: the server is stopped while it is tampered with. */
  const start = async (): Promise<void> => {
    server = await startApi({
      graphs: [...specs(FIXTURE_GRAPHS, 'steps', 'pausing'), ...specs(EXAMPLES, 'echo')],
      settings: { location: database.location, environment: { HOSTILE_SECRET: SECRET } },
    });
  };
  const tamper = async (change: (raw: StateDatabase) => Promise<unknown>): Promise<void> => {
    await server.close({ keep: true });
    const raw = await openState(stateLocation(database.location));
    await change(raw);
    await raw.db.destroy();
    await start();
  };

  before(async () => {
    database = await engine.create();
    await start();
  });
  after(async () => {
    await server.close();
    await database.remove();
  });

  const fresh = async (assistant = 'steps', input: object = { name: 'a' }): Promise<string> => {
    const threadId = await server.thread();
    const answer = await server.ask('POST', `/threads/${threadId}/runs/wait`, { assistant_id: assistant, input });
    assert.equal(answer.status, 200, answer.text);
    return threadId;
  };
  /** Every way to the thread's checkpoints; what they answer, together. */
  const touch = async (threadId: string, assistant = 'steps'): Promise<string> => {
    const texts: string[] = [];
    for (const [method, path, body] of [
      ['GET', 'state?subgraphs=true', undefined],
      ['GET', 'history', undefined],
      ['POST', 'history', { metadata: { source: 'loop' } }],
      ['POST', 'state', { values: { name: 'b' }, as_node: 'one' }],
      ['POST', 'copy', undefined],
      ['POST', 'runs/wait', { assistant_id: assistant, input: { name: 'c' } }],
      ['POST', 'runs/wait', { assistant_id: assistant, command: { resume: 0 } }],
      [
        'POST',
        'runs/stream',
        { assistant_id: assistant, input: null, stream_mode: ['values', 'checkpoints', 'debug'] },
      ],
    ] as const) {
      const answer = await server.ask(method, `/threads/${threadId}/${path}`, body);
      assert.ok([200, 404, 409, 422, 500].includes(answer.status), `${path}: ${answer.status}`);
      texts.push(answer.text);
    }
    return texts.join('\n');
  };

  test('are data: no constructor runs, no secret is read, no prototype is reached, the thread that reads them lives', async () => {
    const threads = new Map<string, string>();
    for (const title of Object.keys(ORDERS)) threads.set(title, await fresh());
    const paused = new Map<string, string>();
    for (const title of Object.keys(ORDERS)) paused.set(title, await fresh('pausing', { text: 'hello' }));
    const whole = await fresh();
    await tamper(async ({ db }) => {
      for (const [title, threadId] of threads) {
        const order = ORDERS[title];
        const text = JSON.stringify(order);
        const delta = new TextEncoder().encode(JSON.stringify({ name: order, done: [order], stepMs: order }));
        const metadata = JSON.stringify({ source: 'loop', step: 1, parents: {}, odd: order });
        await db.updateTable('deploy_checkpoint').set({ delta, metadata }).where('thread_id', '=', threadId).execute();
        const value = new TextEncoder().encode(text);
        await db.updateTable('deploy_write').set({ value }).where('thread_id', '=', threadId).execute();
        await db
          .updateTable('deploy_write')
          .set({ value })
          .where('thread_id', '=', paused.get(title) ?? '')
          .execute();
      }
    });
    for (const [title, threadId] of [...threads, ...paused]) {
      const answers = await touch(threadId, [...paused.values()].includes(threadId) ? 'pausing' : 'steps');
      assert.ok(!answers.includes(SECRET), title);
    }
    assert.equal(process.env['HOSTILE_PROOF'], undefined);
    assert.equal(({} as { polluted?: number }).polluted, undefined);
    // A worker whose prototypes were changed would answer otherwise.
    assert.match(await touch(whole), /a:one.*a:two.*a:three/);
    assert.equal(server.counted('graph_workers_lost'), 0, server.logged());
  });

  test('that were damaged cost their own thread and say so; the process and the other threads go on', async () => {
    const threads = new Map<string, string>();
    for (const title of Object.keys(DAMAGE)) threads.set(title, await fresh());
    const whole = await fresh();
    await tamper(async ({ db }) => {
      for (const [title, threadId] of threads) {
        const bytes = Buffer.from(DAMAGE[title] ?? '', 'latin1');
        const checkpoint = title.length % 2 === 0 ? { checkpoint: bytes } : { delta: bytes };
        await db.updateTable('deploy_checkpoint').set(checkpoint).where('thread_id', '=', threadId).execute();
      }
    });
    for (const threadId of threads.values()) await touch(threadId);
    assert.match(await touch(whole), /a:one.*a:two.*a:three/);
    assert.equal(server.counted('graph_workers_lost'), 0, server.logged());
    assert.equal((await server.ask('GET', '/ok?check_db=1')).status, 200);
  });

  test('come from clients, too: what looks like an order in an input, a state or an item is carried out nowhere', async () => {
    for (const [title, order] of Object.entries(ORDERS)) {
      // The key is refused in bodies altogether.
      if (title === 'a prototype') continue;
      const threadId = await fresh('steps', { name: order });
      const updated = await server.ask('POST', `/threads/${threadId}/state`, {
        values: { name: [order] },
        as_node: 'one',
      });
      assert.ok(updated.status < 500, updated.text);
      const item = { namespace: ['orders'], key: title, value: { order } };
      assert.equal((await server.ask('PUT', '/store/items', item)).status, 204);
      const found = await server.ask('POST', '/store/items/search', {
        namespace_prefix: ['orders'],
        filter: { order },
      });
      assert.deepEqual((found.json as { items: { value: object }[] }).items[0]?.value, { order });
      assert.ok(!(await touch(threadId)).includes(SECRET), title);
    }
    assert.equal(server.counted('graph_workers_lost'), 0, server.logged());
  });
});
