/** Answers to {@link GraphCall}: a thread's state read and written through its graph. Runs in graph workers. */
import type { JsonObject, JsonValue } from '../store/model.ts';
import { commandOf } from './execute.ts';
import { drawingOf, schemasOf, subgraphsOf } from './introspect.ts';
import type { RunCommand } from './kwargs.ts';
import type { Graph, LoadedGraph } from './load.ts';
import type { CallConfig, CallRefusal, GraphCall, UpdateAnswer } from './protocol.ts';
import { checkpointOf, graphStateOf, threadStateOf } from './snapshot.ts';

/** Told to the client as it is: the message names what the request got wrong. */
export class CallRefused extends Error {
  readonly code: CallRefusal;

  constructor(code: CallRefusal, message: string) {
    super(message);
    this.code = code;
  }
}

interface Superstep {
  updates: { values?: JsonValue; command?: RunCommand | null; as_node?: string | null }[];
}

export async function answerCall(loaded: LoadedGraph, call: GraphCall): Promise<unknown> {
  const graph = await loaded.open(call.config);
  switch (call.kind) {
    case 'state':
      return threadStateOf(await graph.getState(call.config, { subgraphs: call.subgraphs }));
    case 'history':
      return history(graph, call);
    case 'settle':
      return graphStateOf(await graph.getState(call.config));
    case 'update':
      return update(graph, call.config, async () =>
        graph.updateState(call.config, JSON.parse(call.valuesJson) as JsonObject, call.asNode ?? undefined),
      );
    case 'supersteps':
      return update(graph, call.config, async () =>
        graph.bulkUpdateState(call.config, supersteps(JSON.parse(call.superstepsJson) as Superstep[], loaded)),
      );
    case 'drawing':
      return drawingOf(graph, call.config, call.xray);
    case 'schemas':
      return { graph_id: loaded.graphId, ...schemasOf(graph, loaded.library) };
    case 'subgraphs':
      return subgraphsOf(graph, loaded.library, call.namespace, call.recurse);
  }
}

async function history(graph: Graph, call: Extract<GraphCall, { kind: 'history' }>): Promise<unknown[]> {
  const states: unknown[] = [];
  const options = {
    limit: call.limit,
    ...(call.before === null
      ? {}
      : { before: { configurable: { ...call.config.configurable, checkpoint_id: call.before } } }),
    ...(call.metadata === null ? {} : { filter: call.metadata }),
  };
  for await (const snapshot of graph.getStateHistory(call.config, options)) {
    states.push(threadStateOf(snapshot));
    if (states.length >= call.limit) break;
  }
  return states;
}

async function update(graph: Graph, config: CallConfig, write: () => Promise<object>): Promise<UpdateAnswer> {
  let written: object;
  try {
    written = await write();
  } catch (error) {
    // What the library objects to here is the request's: an unknown node, an ambiguous update, a value of the wrong kind.
    throw new CallRefused('invalid', error instanceof Error ? error.message : String(error));
  }
  const threadId = config.configurable['thread_id'] ?? null;
  const state = graphStateOf(await graph.getState({ configurable: { thread_id: threadId, checkpoint_ns: '' } }));
  return { checkpoint: checkpointOf(written) as JsonObject, state };
}

function supersteps(steps: Superstep[], loaded: LoadedGraph): never {
  return steps.map((step) => ({
    updates: step.updates.map((item) => ({
      values: item.command ? commandOf(item.command, loaded.library) : (item.values ?? null),
      ...(typeof item.as_node === 'string' ? { asNode: item.as_node } : {}),
    })),
  })) as never;
}
