/** The library's state snapshots and debug payloads in the wire's spelling. Runs in graph workers. */
import type { StateSnapshot } from '@langchain/langgraph';
import { render } from './render.ts';
import type { GraphState } from './protocol.ts';

type Fields = Record<string, unknown>;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function configurableOf(config: unknown): Fields | null {
  return isFields(config) && isFields(config['configurable']) ? config['configurable'] : null;
}

/** `{thread_id, checkpoint_ns, checkpoint_id, checkpoint_map}`; null when the config names no checkpoint. */
export function checkpointOf(config: unknown): Fields | null {
  const configurable = configurableOf(config);
  if (configurable === null || typeof configurable['checkpoint_id'] !== 'string') return null;
  return reference(configurable);
}

function reference(configurable: Fields): Fields {
  return {
    thread_id: configurable['thread_id'] ?? null,
    checkpoint_ns: configurable['checkpoint_ns'] ?? '',
    checkpoint_id: configurable['checkpoint_id'] ?? null,
    checkpoint_map: configurable['checkpoint_map'] ?? null,
  };
}

function isSnapshot(state: unknown): state is StateSnapshot {
  return isFields(state) && 'values' in state && 'next' in state;
}

/** A task whose subgraph was not read names the place of its checkpoints only. */
function namespaceOf(state: unknown): Fields | null {
  const configurable = configurableOf(state);
  return configurable === null
    ? null
    : { thread_id: configurable['thread_id'] ?? null, checkpoint_ns: configurable['checkpoint_ns'] ?? '' };
}

function errorText(error: unknown): string | null {
  if (error === undefined || error === null) return null;
  return isFields(error) && 'message' in error
    ? String(error['message'])
    : typeof error === 'string'
      ? error
      : render(error);
}

export function threadStateOf(snapshot: StateSnapshot): Fields {
  const checkpoint = checkpointOf(snapshot.config);
  const parent = checkpointOf(snapshot.parentConfig);
  return {
    values: snapshot.values as unknown,
    next: snapshot.next,
    tasks: snapshot.tasks.map((task) => ({
      id: task.id,
      name: task.name,
      path: task.path ?? null,
      error: errorText(task.error),
      interrupts: task.interrupts,
      checkpoint: isSnapshot(task.state) ? null : namespaceOf(task.state),
      state: isSnapshot(task.state) ? threadStateOf(task.state) : null,
      result: task.result ?? null,
    })),
    metadata: snapshot.metadata ?? null,
    created_at: snapshot.createdAt ?? null,
    checkpoint,
    parent_checkpoint: parent,
    interrupts: snapshot.tasks.flatMap((task) => task.interrupts),
    checkpoint_id: checkpoint?.['checkpoint_id'] ?? null,
    parent_checkpoint_id: parent?.['checkpoint_id'] ?? null,
  };
}

export function graphStateOf(snapshot: StateSnapshot): GraphState {
  const interrupts = snapshot.tasks.filter((task) => task.interrupts.length > 0);
  return {
    valuesJson: snapshot.createdAt === undefined ? null : render(snapshot.values),
    interruptsJson:
      interrupts.length === 0 ? null : render(Object.fromEntries(interrupts.map((task) => [task.id, task.interrupts]))),
    hasNext: snapshot.next.length > 0,
  };
}

/** `config` without callbacks and without what the library keeps in it for itself. */
function publicConfig(config: unknown): unknown {
  const configurable = configurableOf(config);
  if (configurable === null) return config;
  const { callbacks: _callbacks, ...rest } = config as Fields;
  return {
    ...rest,
    configurable: Object.fromEntries(Object.entries(configurable).filter(([key]) => !key.startsWith('__'))),
  };
}

function publicTask(task: unknown): unknown {
  if (!isFields(task) || configurableOf(task['state']) === null) return task;
  const { state, ...rest } = task;
  return { ...rest, checkpoint: namespaceOf(state) };
}

/** Payload of a `checkpoints` event, also inside `debug`. */
export function checkpointEvent(payload: unknown): unknown {
  if (!isFields(payload)) return payload;
  const { config, parentConfig, tasks, ...rest } = payload;
  return {
    ...rest,
    config: publicConfig(config),
    parent_config: publicConfig(parentConfig) ?? null,
    checkpoint: checkpointOf(config),
    parent_checkpoint: checkpointOf(parentConfig),
    tasks: Array.isArray(tasks) ? tasks.map(publicTask) : [],
  };
}

export function taskEvent(payload: unknown): unknown {
  return publicTask(payload);
}

export function debugEvent(payload: unknown): unknown {
  if (!isFields(payload)) return payload;
  switch (payload['type']) {
    case 'checkpoint':
      return { ...payload, payload: checkpointEvent(payload['payload']) };
    case 'task_result':
      return { ...payload, payload: taskEvent(payload['payload']) };
    default:
      return payload;
  }
}
