/** What a run runs with: assistant, thread and request put together, later wins. Pure. */
import type { Assistant, JsonObject, JsonText, Thread } from './store/model.ts';
import type { NewRun } from './store/repositories.ts';

export interface ComposedRun {
  metadata: JsonObject;
  kwargsJson: JsonText;
}

export function composeRun(
  request: NewRun,
  assistant: Pick<Assistant, 'assistantId' | 'graphId' | 'config' | 'context' | 'metadata'>,
  thread: Pick<Thread, 'threadId' | 'config' | 'metadata'>,
): ComposedRun {
  // What binds the thread to its graph says nothing about the run.
  const { graph_id: _graph, assistant_id: _assistant, ...inherited } = thread.metadata;
  const metadata: JsonObject = { ...assistant.metadata, ...inherited, ...request.metadata };
  const config: JsonObject = {
    ...assistant.config,
    ...thread.config,
    ...request.config,
    metadata: { ...asObject(assistant.config['metadata']), ...asObject(request.config['metadata']), ...metadata },
    configurable: {
      ...withoutInternals(assistant.config['configurable']),
      ...withoutInternals(thread.config['configurable']),
      ...withoutInternals(request.config['configurable']),
      run_id: request.runId,
      thread_id: thread.threadId,
      graph_id: assistant.graphId,
      assistant_id: assistant.assistantId,
      user_id: null,
    },
  };
  const head = JSON.stringify({
    config,
    context: { ...assistant.context, ...request.context },
    webhook: request.webhook,
    temporary: request.temporary,
    resumable: request.resumable,
  });
  // Spliced as text: the input may be large and is of no interest here.
  const rest = request.restJson.slice(1);
  return { metadata, kwargsJson: `${head.slice(0, -1)}${rest === '}' ? '' : ','}${rest}` as JsonText };
}

function asObject(value: unknown): JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : {};
}

/**
 * Keys that begin with two underscores steer the graph library itself (savers, task calls); `langgraph_auth_…` tells a graph whom the
 * server has authenticated, which is nobody by name here. A client must not reach either.
 */
const RESERVED_KEY = /^(?:__|langgraph_auth_)/;

function withoutInternals(value: unknown): JsonObject {
  return Object.fromEntries(Object.entries(asObject(value)).filter(([key]) => !RESERVED_KEY.test(key)));
}
