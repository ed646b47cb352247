import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { Client } from '@langchain/langgraph-sdk';
import { describeOnEachEngine, type TestDatabase } from '../deploy-engines.ts';
import { FIXTURE_GRAPHS, specs, startServer, type TestServer } from '../deploy-server.ts';
import { readEvents } from '../event-stream.ts';

describeOnEachEngine('Two servers on one database', (engine) => {
  // SQLite belongs to one process; that a second one is refused is tested with the store.
  if (engine.name === 'sqlite') return;
  let database: TestDatabase;
  let servers: TestServer[];
  let clients: Client[];

  before(async () => {
    database = await engine.create();
    servers = [];
    for (const runsPerThread of [1, 10]) {
      servers.push(
        await startServer({
          graphs: specs(FIXTURE_GRAPHS, 'steps'),
          limits: { runsPerThread },
          settings: { location: database.location },
        }),
      );
    }
    clients = servers.map((server) => new Client({ apiUrl: server.url, callerOptions: { maxRetries: 0 } }));
  });
  after(async () => {
    for (const server of servers) await server.close();
    await database.remove();
  });

  function client(index: number): Client {
    const found = clients[index];
    assert.ok(found);
    return found;
  }

  test('a run that finds no place on its server runs on the other, and its stream and its result arrive all the same', async () => {
    const blocking = await client(0).runs.create(null, 'steps', { input: { name: 'long', stepMs: 600_000 } });
    const streamed: string[] = [];
    for await (const event of client(0).runs.stream(null, 'steps', {
      input: { name: 'a', stepMs: 50 },
      streamMode: 'updates',
    }))
      streamed.push(event.event === 'updates' ? (Object.keys(event.data)[0] ?? '') : event.event);
    assert.deepEqual(streamed, ['metadata', 'one', 'two', 'three']);
    const waited = (await client(0).runs.wait(null, 'steps', { input: { name: 'b', stepMs: 0 } })) as {
      done: string[];
    };
    assert.deepEqual(waited.done, ['b:one', 'b:two', 'b:three']);
    await assert.rejects(
      client(0).runs.wait(null, 'steps', { input: { name: 1, stepMs: 'no number' } }),
      /TypeError|ERR_/,
    );
    const until = join(servers[0]?.folder ?? '', randomUUID());
    const created = (await (
      await fetch(`${servers[0]?.url}/runs`, {
        method: 'POST',
        body: JSON.stringify({ assistant_id: 'steps', input: { name: 'c', hold: { step: 'one', until } } }),
      })
    ).json()) as { run_id: string };
    // Their heads say that both are attached: a stateless run is gone with its end.
    const attached = await Promise.all(servers.map(({ url }) => fetch(`${url}/runs/${created.run_id}/join`)));
    await writeFile(until, '');
    const joined = await Promise.all(attached.map((response) => response.json()));
    for (const values of joined) assert.deepEqual((values as { done: string[] }).done, ['c:one', 'c:two', 'c:three']);
    assert.equal((await client(1).runs.get(blocking.thread_id, blocking.run_id)).status, 'running');
    await client(1).runs.cancel(blocking.thread_id, blocking.run_id, true);
  });

  test('a run is joined, followed and cancelled from the other server', async () => {
    const threadId = randomUUID();
    const run = await client(0).runs.create(threadId, 'steps', {
      input: { name: 'a', stepMs: 700 },
      ifNotExists: 'create',
      streamResumable: true,
      streamMode: 'updates',
    });
    const joined = client(1).runs.join(threadId, run.run_id);
    const response = await fetch(`${servers[1]?.url}/threads/${threadId}/runs/${run.run_id}/stream`, {
      headers: { 'last-event-id': '-1' },
    });
    const events = await readEvents(response);
    assert.deepEqual(
      events.map((event) => event.event),
      ['metadata', 'updates', 'updates', 'updates'],
    );
    assert.deepEqual(((await joined) as unknown as { done: string[] }).done, ['a:one', 'a:two', 'a:three']);

    const long = await client(0).runs.create(threadId, 'steps', { input: { name: 'b', stepMs: 600_000 } });
    await client(1).runs.cancel(threadId, long.run_id, true);
    assert.equal((await client(0).runs.get(threadId, long.run_id)).status, 'interrupted');
  });

  test('runs of one thread never overlap, whichever server they were created on', async () => {
    const threadId = randomUUID();
    await client(0).threads.create({ threadId });
    const runs = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        client(index % 2).runs.create(threadId, 'steps', { input: { name: `r${index}`, stepMs: 10 } }),
      ),
    );
    for (const run of runs) await client(1).runs.join(threadId, run.run_id);
    const { values } = await client(0).threads.getState<{ done: string[] }>(threadId);
    const names = values.done.map((step) => step.split(':')[0]);
    const changes = names.filter((name, index) => name !== names[index - 1]);
    assert.equal(changes.length, 8, names.join(' '));
    assert.equal(names.length, 24);
  });
});
