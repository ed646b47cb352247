/**
 * One attempt at a run: calls the graph, turns what it yields into events of the wire, and says how it ended. Runs in a
 * graph worker, several at once.
 */
import type { BaseCallbackHandler } from '@langchain/core/callbacks/base';
import type { StreamEvent } from '@langchain/core/tracers/log_stream';
import type { JsonObject, JsonText } from '../store/model.ts';
import { parseKwargs, type RunCommand, type RunKwargs, type StreamMode } from './kwargs.ts';
import { legacyMessages } from './legacymessages.ts';
import type { GraphLibrary } from './library.ts';
import type { Graph, LoadedGraph } from './load.ts';
import type { AbortReason, AttemptEnd, GraphState, RunOrder } from './protocol.ts';
import { render, renderError } from './render.ts';
import { checkpointEvent, debugEvent, graphStateOf, taskEvent } from './snapshot.ts';

export interface Attempt {
  order: RunOrder;
  loaded: LoadedGraph;
  signal: AbortSignal;
  /** Resolves when nothing that the run wrote is under way any more, and nothing can come. */
  writesEnded(): Promise<void>;
  /** Whether events are wanted at this moment. */
  listening(): boolean;
  emit(event: string, dataJson: JsonText): void;
  callbacks: BaseCallbackHandler[];
}

type LibraryMode = Exclude<StreamMode, 'events' | 'messages-tuple'>;

export async function execute(attempt: Attempt): Promise<AttemptEnd> {
  const { order, loaded, signal } = attempt;
  const kwargs = parseKwargs(order.kwargsJson);
  const configurable = { ...kwargs.config?.configurable };
  let graph: Graph | null = null;
  const readState = async (): Promise<GraphState | null> =>
    graph === null
      ? null
      : graphStateOf(await graph.getState({ configurable: { thread_id: order.threadId, checkpoint_ns: '' } }));
  // The events of a resumable run are on record before its checkpoints: these have to be waited for.
  const mayLag = (kwargs.durability ?? 'async') === 'async' && !order.resumable;
  const history = mayLag ? loaded.writeBehind(order.runId) : null;
  try {
    graph = await loaded.open({ configurable, ...kwargs.config });
    // An earlier attempt at this run has left a checkpoint: go on from there instead of giving the input again.
    const begun = !order.isFresh && (await loaded.latestRunId(order.threadId)) === order.runId;
    if (begun) {
      delete configurable['checkpoint_id'];
      delete configurable['checkpoint_map'];
    } else await requireCheckpoint(graph, configurable);
    const input = begun ? null : await inputOf(kwargs, loaded.library, graph, configurable);
    const outcome = await stream(attempt, graph, kwargs, configurable, input);
    await history?.settled();
    if (!outcome.interrupted)
      return {
        kind: 'success',
        resultJson: outcome.valuesJson,
        state: { valuesJson: outcome.valuesJson, interruptsJson: null, hasNext: false },
      };
    const state = (await readState()) ?? { valuesJson: null, interruptsJson: null, hasNext: true };
    return { kind: 'success', resultJson: withInterrupts(outcome.values, outcome.interrupts), state };
  } catch (error) {
    if (signal.aborted) {
      await attempt.writesEnded();
      const reason = signal.reason as AbortReason;
      return { kind: 'aborted', reason, state: reason === 'rollback' ? null : await readState() };
    }
    const errorJson = renderError(error);
    attempt.emit('error', errorJson);
    return { kind: 'error', errorJson, state: await readState() };
  } finally {
    await history?.close();
  }
}

/** Without it the library would begin a new history beside the thread's own. */
async function requireCheckpoint(graph: Graph, { thread_id, checkpoint_ns, checkpoint_id }: JsonObject): Promise<void> {
  if (typeof checkpoint_id !== 'string' || checkpoint_id === '' || Boolean(checkpoint_ns)) return;
  const state = await graph.getState({ configurable: { thread_id, checkpoint_ns: '', checkpoint_id } });
  if (state.createdAt === undefined) throw new Error(`checkpoint ${checkpoint_id} not found on this thread`);
}

async function inputOf(
  kwargs: RunKwargs,
  library: GraphLibrary,
  graph: Graph,
  configurable: JsonObject,
): Promise<unknown> {
  const { command } = kwargs;
  if (command === undefined || command === null) return kwargs.input ?? null;
  return commandOf(await withAddressedResume(command, graph, configurable), library);
}

/**
 * The library takes a falsy answer (`false`, 0, an empty text) for none, unless it is addressed to its interrupt. So is null where
 * nothing else is commanded; beside an update or a goto it is what clients send for no answer.
 */
async function withAddressedResume(command: RunCommand, graph: Graph, configurable: JsonObject): Promise<RunCommand> {
  const { resume } = command;
  const isNone = resume === undefined || (resume === null && !(isAbsent(command.update) && isAbsent(command.goto)));
  if (isNone || Boolean(resume)) return command;
  const { tasks } = await graph.getState({ configurable });
  const id = tasks.flatMap((task) => task.interrupts).find((interrupt) => interrupt.id !== undefined)?.id;
  return id === undefined ? command : { ...command, resume: { [id]: resume } };
}

export function commandOf(command: RunCommand, library: GraphLibrary): unknown {
  const targets = command.goto === undefined || command.goto === null ? [] : [command.goto].flat();
  return new library.Command({
    ...(command.update === undefined || command.update === null ? {} : { update: command.update }),
    ...(isAbsent(command.resume) ? {} : { resume: command.resume }),
    ...(targets.length === 0
      ? {}
      : {
          goto: targets.map((to) =>
            typeof to === 'string' ? to : new library.Send(to.node, to.input ?? to.args ?? {}),
          ),
        }),
  });
}

interface Outcome {
  values: unknown;
  valuesJson: JsonText | null;
  interrupted: boolean;
  interrupts: unknown[];
}

async function stream(
  attempt: Attempt,
  graph: Graph,
  kwargs: RunKwargs,
  configurable: JsonObject,
  input: unknown,
): Promise<Outcome> {
  const { order, loaded, signal } = attempt;
  const wanted = new Set<StreamMode>(kwargs.stream_mode ?? ['values']);
  const modes = new Set<LibraryMode>(['values']);
  for (const mode of wanted)
    if (mode === 'messages-tuple') modes.add('messages');
    else if (mode !== 'events' && mode !== 'messages') modes.add(mode);
  const subgraphs = kwargs.subgraphs === true;
  const config = kwargs.config ?? {};
  // Keys that are not set must be absent: an explicit `undefined` would override the graph's own default.
  const options = {
    ...(isAbsent(kwargs.interrupt_before) ? {} : { interruptBefore: kwargs.interrupt_before as '*' }),
    ...(isAbsent(kwargs.interrupt_after) ? {} : { interruptAfter: kwargs.interrupt_after as '*' }),
    ...(config.tags === undefined ? {} : { tags: config.tags }),
    ...(config.recursion_limit === undefined ? {} : { recursionLimit: config.recursion_limit }),
    ...(config.max_concurrency === undefined ? {} : { maxConcurrency: config.max_concurrency }),
    ...(config.run_name === undefined ? {} : { runName: config.run_name }),
    ...(isAbsent(kwargs.context) ? {} : { context: kwargs.context }),
    ...(isAbsent(kwargs.durability) ? {} : { durability: kwargs.durability }),
    ...(attempt.callbacks.length === 0 ? {} : { callbacks: attempt.callbacks }),
    configurable,
    metadata: {
      ...config.metadata,
      ...tracingOf(configurable),
      run_attempt: order.attempt,
      langgraph_version: loaded.library.version,
      langgraph_plan: 'developer',
      langgraph_host: 'self-hosted',
    },
    runId: order.runId,
    streamMode: [...modes],
    subgraphs,
    signal,
  };
  const outcome: Outcome = { values: undefined, valuesJson: null, interrupted: false, interrupts: [] };

  const takeChunk = (chunk: unknown): void => {
    const [namespace, mode, payload] = (subgraphs ? chunk : [[], ...(chunk as unknown[])]) as [
      string[],
      StreamMode,
      unknown,
    ];
    const isRoot = namespace.length === 0;
    let json: JsonText | null = null;
    if (mode === 'values' && isRoot) {
      const interrupts = interruptsOf(payload);
      if (interrupts !== null) {
        outcome.interrupted = true;
        outcome.interrupts.push(...interrupts);
      } else {
        outcome.values = payload;
        outcome.valuesJson = null;
      }
    }
    if (!attempt.listening()) return;
    const event =
      mode === 'messages' ? (wanted.has('messages-tuple') ? 'messages' : null) : wanted.has(mode) ? mode : null;
    if (event === null) return;
    json = render(shape(mode, payload));
    if (payload === outcome.values) outcome.valuesJson = json;
    attempt.emit(isRoot ? event : `${event}|${namespace.join('|')}`, json);
  };

  if (wanted.has('events') || wanted.has('messages')) {
    // Only these two need every callback of every runnable as an event; it costs several times the plain stream.
    const messages = wanted.has('messages') ? legacyMessages((event, dataJson) => attempt.emit(event, dataJson)) : null;
    const events = graph.streamEvents(input as never, { ...options, version: 'v2' });
    for await (const event of events as AsyncIterable<StreamEvent>) {
      if (event.tags?.includes('langsmith:hidden')) continue;
      const isOwn = event.event === 'on_chain_stream' && (subgraphs || event.run_id === order.runId);
      if (isOwn) takeChunk(event.data.chunk);
      else if (wanted.has('events') && attempt.listening()) attempt.emit('events', render(event));
      messages?.take(event, isOwn, subgraphs);
    }
  } else {
    for await (const chunk of await graph.stream(input as never, options)) takeChunk(chunk);
  }
  if (outcome.values !== undefined) outcome.valuesJson ??= render(outcome.values);
  return outcome;
}

/** For the tracer, which sees nothing of the configuration but metadata. */
function tracingOf({ langsmith_project, langsmith_example_id }: JsonObject): JsonObject {
  return {
    ...(isAbsent(langsmith_project) ? {} : { langsmith_project }),
    ...(isAbsent(langsmith_example_id) ? {} : { langsmith_example_id }),
  };
}

function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}

function interruptsOf(payload: unknown): unknown[] | null {
  if (typeof payload !== 'object' || payload === null || !('__interrupt__' in payload)) return null;
  return Array.isArray(payload.__interrupt__) ? (payload.__interrupt__ as unknown[]) : [];
}

function shape(mode: StreamMode, payload: unknown): unknown {
  switch (mode) {
    case 'checkpoints':
      return checkpointEvent(payload);
    case 'tasks':
      return taskEvent(payload);
    case 'debug':
      return debugEvent(payload);
    default:
      return payload;
  }
}

/** Values that are no object (a graph of the functional API) have no place for the key and give way to it. */
function withInterrupts(values: unknown, interrupts: unknown[]): JsonText {
  const base = typeof values === 'object' && values !== null && !Array.isArray(values) ? values : {};
  return render({ ...base, __interrupt__: interrupts });
}
