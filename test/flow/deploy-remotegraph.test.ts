/** Graphs that are served here as parts of graphs elsewhere: the library's own `RemoteGraph` against the real server. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { HumanMessage } from '@langchain/core/messages';
import { Annotation, Command, END, Send, START, StateGraph } from '@langchain/langgraph';
import { RemoteGraph } from '@langchain/langgraph/remote';
import { EXAMPLES, specs, startServer, type TestServer } from '../deploy-server.ts';

describe('a remote graph', () => {
  let server: TestServer;
  before(async () => {
    server = await startServer({ graphs: specs(EXAMPLES, 'echo', 'approval', 'nested') });
  });
  after(() => server.close());

  const remote = (graphId: string): RemoteGraph => new RemoteGraph({ graphId, url: server.url });
  const onThread = () => ({ configurable: { thread_id: crypto.randomUUID() } });

  it('is invoked with messages, on a thread that it makes', async () => {
    const config = onThread();
    const graph = remote('echo');
    const values = (await graph.invoke({ messages: [new HumanMessage('hi')] }, config)) as {
      messages: { type: string; content: string }[];
    };
    assert.deepEqual(
      values.messages.map(({ type, content }) => [type, content]),
      [
        ['human', 'hi'],
        ['ai', 'You said: hi'],
      ],
    );
    const state = await graph.getState(config);
    assert.deepEqual(state.values, values);
    assert.deepEqual(state.next, []);
    assert.deepEqual(await graph.getState(state.config), state);
    const history = [];
    for await (const snapshot of graph.getStateHistory(config, { limit: 2, before: state.config }))
      history.push(snapshot);
    assert.deepEqual(history[0]?.config, state.parentConfig);
  });

  it('streams, its subgraphs under their names', async () => {
    const seen: string[] = [];
    const stream = await remote('nested').stream(
      { topic: 'ice' },
      { streamMode: ['updates', 'values'], subgraphs: true },
    );
    for await (const [namespace, mode] of stream as AsyncIterable<[string[], string, unknown]>)
      seen.push(`${mode}${namespace.map((name) => ` ${name.split(':', 1)[0]}`).join('')}`);
    assert.deepEqual(seen, [
      'values',
      'values research',
      'updates research',
      'values research',
      'updates research',
      'values research',
      'updates',
      'values',
      'updates',
      'values',
    ]);
  });

  it('interrupts the graph that it is in, and resumes with it', async () => {
    const graph = remote('approval');
    const config = onThread();
    await assert.rejects(graph.invoke({ topic: 'ice' }, config), (error: Error) => error.name === 'GraphInterrupt');
    const [task] = (await graph.getState(config)).tasks;
    assert.deepEqual((task?.interrupts[0]?.value as { question: string }).question, 'May this be published?');
    const ended = (await graph.invoke(new Command({ resume: 'yes' }), config)) as { result: string };
    assert.match(ended.result, /^Published/);
    const sent = new Command({ goto: [new Send('publish', { decision: 'approved', draft: 'sent along' })] });
    const again = (await graph.invoke(sent, config)) as { result: string };
    assert.equal(again.result, 'Published: sent along');
    const updated = await graph.updateState(config, { draft: 'by hand' }, 'write');
    assert.equal(
      (await graph.getState(config)).config.configurable?.['checkpoint_id'],
      updated.configurable?.['checkpoint_id'],
    );
  });

  it('is a node of another graph', async () => {
    const State = Annotation.Root({ topic: Annotation<string>, report: Annotation<string> });
    const graph = new StateGraph(State)
      .addNode('research', remote('nested'))
      .addEdge(START, 'research')
      .addEdge('research', END)
      .compile();
    const { report } = await graph.invoke({ topic: 'ice' });
    assert.match(report, /^About ice: ice has 3 letters/);
  });

  it('shows its drawing and its subgraphs, and what went wrong', async () => {
    const drawing = await remote('nested').getGraphAsync({ xray: true });
    assert.ok('research:search' in drawing.nodes);
    const names: string[] = [];
    for await (const [name] of remote('nested').getSubgraphsAsync()) names.push(name);
    assert.deepEqual(names, ['research']);
    await assert.rejects(remote('echo').invoke({ messages: [{ role: 'nobody', content: '' }] }), /coerce/);
  });
});
