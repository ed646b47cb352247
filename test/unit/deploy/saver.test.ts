import assert from 'node:assert/strict';
import { after, afterEach, before, beforeEach, it } from 'node:test';
import { Annotation, Command, END, START, StateGraph, interrupt } from '@langchain/langgraph';
import { openGraphState } from '../../../src/deploy/checkpoint/graphstate.ts';
import type { GraphState } from '../../../src/deploy/checkpoint/graphstate.ts';
import { openState } from '../../../src/deploy/checkpoint/open.ts';
import type { DeploymentSaver } from '../../../src/deploy/checkpoint/saver.ts';
import type { StateDatabase } from '../../../src/deploy/store/database.ts';
import { stateLocation } from '../../../src/deploy/store/location.ts';
import type { DeploymentStore } from '../../../src/deploy/store/repositories.ts';
import { describeOnEachEngine } from '../../deploy-engines.ts';
import type { TestDatabase } from '../../deploy-engines.ts';

const State = Annotation.Root({
  topic: Annotation<string>,
  big: Annotation<string>,
  log: Annotation<string[]>({ reducer: (before, more) => [...before, ...more], default: () => [] }),
});

const inner = new StateGraph(State)
  .addNode('deep', () => ({ log: ['deep'] }))
  .addEdge(START, 'deep')
  .addEdge('deep', END)
  .compile({ checkpointer: true });

const builder = new StateGraph(State)
  .addNode('a', () => ({ log: ['a'], big: 'x'.repeat(10_000) }))
  .addNode('b', (state) => ({ log: [state.topic === 'ask' ? `b:${String(interrupt('sure?'))}` : 'b'] }))
  .addNode('inner', inner)
  .addEdge(START, 'a')
  .addEdge('a', 'b')
  .addEdge('b', 'inner')
  .addEdge('inner', END);

describeOnEachEngine('checkpoints of real graphs', (engine) => {
  let database: TestDatabase;
  let store: DeploymentStore;
  let state: GraphState;
  let raw: StateDatabase;
  let saver: DeploymentSaver;
  let threadId: string;

  before(async () => {
    database = await engine.create();
    store = await database.open();
    state = await openGraphState(stateLocation(database.location));
    raw = await openState(stateLocation(database.location));
  });
  after(async () => {
    await state.close();
    await raw.db.destroy();
    await store.stop();
    await database.remove();
  });
  beforeEach(() => {
    saver = state.saver();
    threadId = database.ids.next();
  });
  afterEach(() => saver.close());

  const graph = () => builder.compile({ checkpointer: saver });
  const at = (runId: string, more: object = {}) => ({ configurable: { thread_id: threadId, run_id: runId, ...more } });
  const historyOf = async (id = threadId) => {
    const states = [];
    for await (const one of graph().getStateHistory({ configurable: { thread_id: id } })) states.push(one);
    return states;
  };

  it('hold every value though each step stores only what it changed', async () => {
    await graph().invoke({ topic: 'ice' }, at('r1'));
    const states = await historyOf();
    assert.deepEqual(states[0]?.values, { topic: 'ice', big: 'x'.repeat(10_000), log: ['a', 'b', 'a', 'b', 'deep'] });
    const rows = await raw.db
      .selectFrom('deploy_checkpoint')
      .select(['delta'])
      .where('thread_id', '=', threadId)
      .where('checkpoint_ns', '=', '')
      .execute();
    const withBig = rows.filter((row) => new TextDecoder().decode(row.delta).includes('xxxxxxxxxx'));
    assert.ok(withBig.length <= 2, `${withBig.length} of ${rows.length} checkpoints hold the large value`);
  });

  it('say which run wrote them, also in a history filtered by run', async () => {
    await graph().invoke({ topic: 'ice' }, at('r1'));
    await graph().invoke({ topic: 'snow' }, at('r2'));
    const filtered = [];
    for await (const one of graph().getStateHistory(at('r3'), { filter: { run_id: 'r1' } })) filtered.push(one);
    assert.ok(filtered.length > 0 && filtered.every((one) => one.metadata?.['run_id' as never] === 'r1'));
  });

  it('of a run vanish with its rollback, and a fork that it made leaves the trunk alone', async () => {
    await graph().invoke({ topic: 'ice' }, at('r1'));
    const before = await historyOf();
    const early = before.at(-2)?.config.configurable?.['checkpoint_id'] as string;
    await graph().invoke(null, at('r2', { checkpoint_id: early, checkpoint_ns: '' }));
    assert.ok((await historyOf()).length > before.length);
    await saver.deleteRun(threadId, 'r2');
    assert.deepEqual(
      (await historyOf()).map((one) => [one.config.configurable?.['checkpoint_id'], one.values]),
      before.map((one) => [one.config.configurable?.['checkpoint_id'], one.values]),
    );
  });

  it('give an interrupt back when the run that answered it is rolled back', async () => {
    await graph().invoke({ topic: 'ask' }, at('r1'));
    await graph().invoke(new Command({ resume: 'yes' }), at('r2'));
    assert.deepEqual((await graph().getState(at('r3'))).next, []);
    await saver.deleteRun(threadId, 'r2');
    const again = await graph().getState(at('r3'));
    assert.deepEqual(again.next, ['b']);
    assert.equal(again.tasks[0]?.interrupts[0]?.value, 'sure?');
    const values = await graph().invoke(new Command({ resume: 'no' }), at('r4'));
    assert.ok(values.log.includes('b:no') && !values.log.includes('b:yes'));
  });

  it('can be pruned to the last one, in every namespace, and go on from there', async () => {
    await graph().invoke({ topic: 'ice' }, at('r1'));
    const [last] = await historyOf();
    await store.state.keepLatest(threadId);
    const kept = await historyOf();
    assert.equal(kept.length, 1);
    assert.deepEqual(kept[0]?.values, last?.values);
    assert.equal(kept[0]?.parentConfig, undefined);
    const values = await graph().invoke({ topic: 'snow' }, at('r2'));
    assert.equal(values.log.length > (last?.values as { log: string[] }).log.length, true);
    assert.equal(values.big, 'x'.repeat(10_000));
  });

  it('are copied whole', async () => {
    await graph().invoke({ topic: 'ask' }, at('r1'));
    const copy = database.ids.next();
    await store.state.copyThread(threadId, copy);
    await saver.deleteThread(threadId);
    assert.deepEqual(await historyOf(), []);
    const [latest] = await historyOf(copy);
    assert.deepEqual(latest?.next, ['b']);
    const resumed = await graph().invoke(new Command({ resume: 'yes' }), { configurable: { thread_id: copy } });
    assert.ok(resumed.log.includes('b:yes'));
  });

  it('that were damaged fail the read and nothing else', async () => {
    await graph().invoke({ topic: 'ice' }, at('r1'));
    for (const change of [
      { checkpoint: new TextEncoder().encode('{"v":4,') },
      { type: 'pickle' },
      { holders: 'null' },
      { metadata: '{' },
    ]) {
      await raw.db.updateTable('deploy_checkpoint').set(change).where('thread_id', '=', threadId).execute();
      await assert.rejects(graph().getState(at('r2')), JSON.stringify(change));
    }
    const other = { configurable: { thread_id: database.ids.next() } };
    assert.equal((await graph().invoke({ topic: 'ice' }, other)).topic, 'ice');
  });

  it('treat what looks like code in the database as data', async () => {
    await graph().invoke({ topic: 'ice' }, at('r1'));
    const hostile = {
      topic: {
        lc: 2,
        type: 'constructor',
        id: ['Function'],
        method: null,
        args: ['throw new Error("run")'],
        kwargs: {},
      },
      big: JSON.parse('{"__proto__":{"polluted":true}}') as object,
    };
    await raw.db
      .updateTable('deploy_checkpoint')
      .set({ delta: new TextEncoder().encode(JSON.stringify(hostile)) })
      .where('thread_id', '=', threadId)
      .execute();
    const tuple = await saver.getTuple(at('r2'));
    assert.notEqual(typeof tuple?.checkpoint.channel_values['topic'], 'function');
    assert.equal(({} as { polluted?: boolean }).polluted, undefined);
  });

  it('of many runs at once are all there, though they share commits', async () => {
    const ids = Array.from({ length: 30 }, () => database.ids.next());
    const results = await Promise.all(
      ids.map((id, index) =>
        graph().invoke({ topic: String(index) }, { configurable: { thread_id: id, run_id: id }, durability: 'sync' }),
      ),
    );
    for (const [index, id] of ids.entries()) {
      const saved = await graph().getState({ configurable: { thread_id: id } });
      assert.deepEqual(saved.values, results[index]);
    }
  });
});
