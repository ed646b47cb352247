/**
 * Checkpoints of graphs. Comes in: the graph library's calls, on the thread that runs the graph. Goes out: committed rows. Each
 * saver owns its connection; nothing is held between calls. When the database is locked or away, the call waits a bounded time and
 * then fails, and with it that run's attempt. On close, the connection goes after what is in progress.
 */
import type { RunnableConfig } from '@langchain/core/runnables';
import { BaseCheckpointSaver, WRITES_IDX_MAP, maxChannelVersion } from '@langchain/langgraph-checkpoint';
import type {
  ChannelVersions,
  Checkpoint,
  CheckpointListOptions,
  CheckpointMetadata,
  CheckpointPendingWrite,
  CheckpointTuple,
  PendingWrite,
  SerializerProtocol,
} from '@langchain/langgraph-checkpoint';
import { sql } from 'kysely';
import { contains } from '../store/contains.ts';
import type { StateDatabase } from '../store/database.ts';
import type { StateLocation } from '../store/location.ts';
import type { JsonObject, JsonValue } from '../store/model.ts';
import type { StateStore } from '../store/repositories.ts';
import type { CheckpointTable, WriteTable } from '../store/schema.ts';
import { createStateStore } from '../store/state.ts';
import { WriteBehind, type WritesBehind } from './behind.ts';
import { createCheckpointQueries } from './queries.ts';
import type { CheckpointQueries } from './queries.ts';
import { openState } from './open.ts';
import { createWrites } from './writes.ts';
import type { Write, Writes } from './writes.ts';

/** Checkpoints fetched in one go when a history is listed. */
const PAGE_COUNT = 50;
/** The channel in which checkpoints before version 4 kept their sends. */
const TASKS_CHANNEL = '__pregel_tasks';
const PENDING_SENDS_VERSION = 4;

/** Checkpoints whose holders are remembered; one a run in progress is enough. */
const HOLDERS_COUNT = 500;

/** Channel to the id of the checkpoint that holds its value. */
type Holders = Record<string, string>;

/** Called with the run that is about to write; its rows wait for the promise. Null: they do not wait. */
export type BeforeWrite = (runId: string) => Promise<void> | null;

export interface SaverSettings {
  /** The library's own without it. */
  serde?: SerializerProtocol | undefined;
  release?: () => Promise<void>;
  beforeWrite?: BeforeWrite | undefined;
}

export class DeploymentSaver extends BaseCheckpointSaver {
  readonly #state: StateDatabase;
  readonly #store: StateStore;
  readonly #queries: CheckpointQueries;
  readonly #writes: Writes;
  readonly #behind: WriteBehind;
  readonly #holders = new Map<string, Holders>();

  readonly #release: () => Promise<void>;
  readonly #beforeWrite: BeforeWrite;

  constructor(state: StateDatabase, settings: SaverSettings = {}) {
    super(settings.serde);
    this.#release = settings.release ?? (() => state.db.destroy());
    this.#beforeWrite = settings.beforeWrite ?? (() => null);
    this.#state = state;
    this.#store = createStateStore(state);
    this.#queries = createCheckpointQueries(state);
    this.#writes = createWrites(state);
    this.#behind = new WriteBehind(this.#writes);
  }

  override async getTuple(config: RunnableConfig): Promise<CheckpointTuple | undefined> {
    const { threadId, ns, checkpointId } = placeOf(config);
    if (threadId === undefined) return undefined;
    await this.#writes.settled();
    const row = await this.#queries.checkpoint({ threadId, ns: ns ?? '', checkpointId });
    return row === null ? undefined : this.#tupleOf(row);
  }

  override async *list(config: RunnableConfig, options: CheckpointListOptions = {}): AsyncGenerator<CheckpointTuple> {
    const { threadId, ns, checkpointId } = placeOf(config);
    const before = placeOf(options.before ?? {}).checkpointId;
    await this.#writes.settled();
    let query = this.#state.db.selectFrom('deploy_checkpoint').selectAll();
    if (threadId !== undefined) query = query.where('thread_id', '=', threadId);
    if (ns !== undefined) query = query.where('checkpoint_ns', '=', ns);
    if (checkpointId !== undefined) query = query.where('checkpoint_id', '=', checkpointId);
    if (before !== undefined) query = query.where('checkpoint_id', '<', before);
    const filter = (options.filter ?? {}) as JsonObject;
    if (Object.keys(filter).length > 0) {
      query = query.where(contains(this.#state.engine, sql.ref('metadata'), filter, 'text'));
    }
    query = query.orderBy('checkpoint_id', 'desc').orderBy('checkpoint_ns').orderBy('thread_id');
    let left = options.limit ?? Infinity;
    for (let offset = 0; left > 0; offset += PAGE_COUNT) {
      const count = Math.min(PAGE_COUNT, left);
      const rows = await query.limit(count).offset(offset).execute();
      for (const row of rows) yield await this.#tupleOf(row);
      left -= rows.length;
      if (rows.length < count) return;
    }
  }

  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    newVersions: ChannelVersions,
  ): Promise<RunnableConfig> {
    const { threadId, ns = '', checkpointId: parentId } = placeOf(config);
    if (threadId === undefined) throw new Error('A checkpoint cannot be saved without configurable.thread_id.');
    const { channel_values: values, ...rest } = checkpoint;
    const held = parentId === undefined ? {} : await this.#holdersOf(threadId, ns, parentId);
    const holders: Holders = {};
    const delta: Record<string, unknown> = {};
    for (const [channel, value] of Object.entries(values)) {
      const holder = Object.hasOwn(newVersions, channel) ? checkpoint.id : held?.[channel];
      // A parent that is not here (another saver's, or pruned) holds nothing for us.
      if (holder === undefined && parentId === undefined) continue;
      holders[channel] = holder ?? checkpoint.id;
      if (holders[channel] === checkpoint.id) delta[channel] = value;
    }
    const [[type, body], [deltaType, deltaBody], [metadataType, metadataBody]] = await Promise.all([
      this.serde.dumpsTyped({ ...rest, channel_values: {} }),
      this.serde.dumpsTyped(delta),
      this.serde.dumpsTyped({ ...inheritedMetadata(config), ...metadata }),
    ]);
    const row: CheckpointTable = {
      thread_id: threadId,
      checkpoint_ns: ns,
      checkpoint_id: checkpoint.id,
      parent_id: parentId ?? null,
      run_id: runIdOf(config) ?? null,
      type,
      checkpoint: bytesOf(body),
      holders: JSON.stringify(holders),
      delta_type: deltaType,
      delta: bytesOf(deltaBody),
      metadata_type: metadataType,
      metadata: textOf(metadataBody),
    };
    await this.#write(row.run_id ?? '', [this.#queries.checkpointUpsert(row)]);
    this.#remember(threadId, ns, checkpoint.id, holders);
    return configOf(threadId, ns, checkpoint.id);
  }

  override async putWrites(config: RunnableConfig, writes: PendingWrite[], taskId: string): Promise<void> {
    const { threadId, ns = '', checkpointId } = placeOf(config);
    if (threadId === undefined || checkpointId === undefined) {
      throw new Error('Writes cannot be saved without configurable.thread_id and configurable.checkpoint_id.');
    }
    const runId = runIdOf(config) ?? '';
    const rows = await Promise.all(
      writes.map(async ([channel, value], index): Promise<WriteTable> => {
        const [type, body] = await this.serde.dumpsTyped(value);
        return {
          thread_id: threadId,
          checkpoint_ns: ns,
          checkpoint_id: checkpointId,
          task_id: taskId,
          idx: WRITES_IDX_MAP[channel] ?? index,
          channel,
          type,
          value: bytesOf(body),
          run_id: runId,
        };
      }),
    );
    if (rows.length > 0) await this.#write(runId, this.#queries.writeInserts(rows));
  }

  async #write(runId: string, write: Write): Promise<void> {
    const before = this.#beforeWrite(runId);
    if (before !== null) await before;
    await this.#behind.write(runId, write);
  }

  /** From here on the run does not wait for its writes; null where it cannot be spared that. */
  writeBehind(runId: string): WritesBehind | null {
    // Only there do writes settle in order.
    return this.#state.engine === 'sqlite' ? this.#behind.begin(runId) : null;
  }

  /** The run that wrote the thread's newest checkpoint; null when there is none. Much less than reading the checkpoint. */
  async latestRunId(threadId: string): Promise<string | null> {
    await this.#writes.settled();
    return this.#queries.latestRunId(threadId);
  }

  override async deleteThread(threadId: string): Promise<void> {
    await this.#writes.settled();
    await this.#store.deleteThread(threadId);
  }

  /** Removes everything that the run wrote to the thread: what a rollback wants. */
  async deleteRun(threadId: string, runId: string): Promise<void> {
    await this.#writes.settled();
    await this.#store.deleteRun(threadId, runId);
  }

  async close(): Promise<void> {
    await this.#writes.settled();
    await this.#release();
  }

  async #tupleOf(row: CheckpointTable): Promise<CheckpointTuple> {
    const holders = JSON.parse(row.holders) as Holders;
    this.#remember(row.thread_id, row.checkpoint_ns, row.checkpoint_id, holders);
    const [checkpoint, values, metadata, pendingWrites] = await Promise.all([
      this.serde.loadsTyped(row.type, row.checkpoint) as Promise<Checkpoint>,
      this.#valuesOf(row, holders),
      this.serde.loadsTyped(row.metadata_type, row.metadata) as Promise<CheckpointMetadata>,
      this.#pendingWrites(row),
    ]);
    checkpoint.channel_values = values;
    if (checkpoint.v < PENDING_SENDS_VERSION && row.parent_id !== null) await this.#addSends(checkpoint, row);
    const tuple: CheckpointTuple = {
      config: configOf(row.thread_id, row.checkpoint_ns, row.checkpoint_id),
      checkpoint,
      metadata,
      pendingWrites,
    };
    if (row.parent_id !== null) tuple.parentConfig = configOf(row.thread_id, row.checkpoint_ns, row.parent_id);
    return tuple;
  }

  /** The value of each channel, from this checkpoint's own delta and from those that it points at. */
  async #valuesOf(row: CheckpointTable, holders: Holders): Promise<Record<string, unknown>> {
    const others = new Set(Object.values(holders));
    others.delete(row.checkpoint_id);
    const deltas = [row, ...(await this.#queries.deltas(row.thread_id, row.checkpoint_ns, [...others]))];
    const loaded = new Map<string, Record<string, unknown>>();
    for (const delta of deltas) {
      const values: unknown = await this.serde.loadsTyped(delta.delta_type, delta.delta);
      loaded.set(delta.checkpoint_id, values as Record<string, unknown>);
    }
    const result: Record<string, unknown> = {};
    for (const [channel, holder] of Object.entries(holders)) {
      const values = loaded.get(holder);
      if (values !== undefined && Object.hasOwn(values, channel)) result[channel] = values[channel];
    }
    return result;
  }

  /** Nearly always known: a step's parent is the step that was saved or loaded just before. */
  async #holdersOf(threadId: string, ns: string, checkpointId: string): Promise<Holders | null> {
    const known = this.#holders.get(keyOf(threadId, ns, checkpointId));
    if (known !== undefined) return known;
    const text = await this.#queries.holders(threadId, ns, checkpointId);
    return text === null ? null : (JSON.parse(text) as Holders);
  }

  #remember(threadId: string, ns: string, checkpointId: string, holders: Holders): void {
    this.#holders.set(keyOf(threadId, ns, checkpointId), holders);
    if (this.#holders.size <= HOLDERS_COUNT) return;
    for (const oldest of this.#holders.keys()) {
      this.#holders.delete(oldest);
      return;
    }
  }

  async #pendingWrites(row: CheckpointTable): Promise<CheckpointPendingWrite[]> {
    const rows = await this.#queries.writes(row.thread_id, row.checkpoint_ns, row.checkpoint_id);
    return Promise.all(
      rows.map(async (write): Promise<CheckpointPendingWrite> => [
        write.task_id,
        write.channel,
        await this.serde.loadsTyped(write.type, write.value),
      ]),
    );
  }

  /** Old checkpoints find their sends among the writes of their parent. */
  async #addSends(checkpoint: Checkpoint, row: CheckpointTable): Promise<void> {
    const rows = await this.#queries.writes(row.thread_id, row.checkpoint_ns, row.parent_id ?? '');
    const sends = rows.filter((write) => write.channel === TASKS_CHANNEL);
    checkpoint.channel_values[TASKS_CHANNEL] = await Promise.all(
      sends.map((write) => this.serde.loadsTyped(write.type, write.value) as Promise<unknown>),
    );
    const versions = Object.values(checkpoint.channel_versions);
    checkpoint.channel_versions[TASKS_CHANNEL] =
      versions.length > 0 ? maxChannelVersion(...versions) : this.getNextVersion(undefined);
  }
}

export async function openCheckpointSaver(
  location: StateLocation,
  serde?: SerializerProtocol,
): Promise<DeploymentSaver> {
  return new DeploymentSaver(await openState(location), { serde });
}

function keyOf(threadId: string, ns: string, checkpointId: string): string {
  return `${threadId}\n${ns}\n${checkpointId}`;
}

interface Place {
  threadId: string | undefined;
  ns: string | undefined;
  checkpointId: string | undefined;
}

function placeOf(config: RunnableConfig): Place {
  const { configurable } = config;
  return {
    threadId: textKey(configurable, 'thread_id'),
    ns: textKey(configurable, 'checkpoint_ns'),
    checkpointId: textKey(configurable, 'checkpoint_id') ?? textKey(configurable, 'thread_ts'),
  };
}

/** What is not text is not ours to interpret: bound parameters only take what was checked here. */
function textKey(configurable: RunnableConfig['configurable'], key: string): string | undefined {
  const value: unknown = configurable?.[key];
  if (value === undefined || value === null || (value === '' && key !== 'checkpoint_ns')) return undefined;
  if (typeof value !== 'string') throw new TypeError(`configurable.${key} must be a string.`);
  return value;
}

function runIdOf(config: RunnableConfig): string | undefined {
  return textKey(config.configurable, 'run_id');
}

function configOf(threadId: string, ns: string, checkpointId: string): RunnableConfig {
  return { configurable: { thread_id: threadId, checkpoint_ns: ns, checkpoint_id: checkpointId } };
}

/** Set by the deployment on every run. */
const ORIGIN_KEYS = ['run_id', 'graph_id', 'assistant_id'];
/** The place says this already, or it is the library's own, or it is not for a history to keep. */
const NOT_INHERITED = /^(?:__|checkpoint_|langgraph_|langsmith_|x-|thread_id$|thread_ts$)/i;

/** A checkpoint's metadata also says which run made it and with what metadata, so that a history can be filtered by these. */
function inheritedMetadata(config: RunnableConfig): JsonObject {
  const inherited: JsonObject = {};
  for (const [key, value] of Object.entries(config.metadata ?? {})) {
    if (!NOT_INHERITED.test(key)) inherited[key] = value as JsonValue;
  }
  for (const key of ORIGIN_KEYS) {
    const value = textKey(config.configurable, key);
    if (value !== undefined) inherited[key] = value;
  }
  return inherited;
}

function bytesOf(body: Uint8Array | string): Uint8Array {
  return typeof body === 'string' ? new TextEncoder().encode(body) : body;
}

function textOf(body: Uint8Array | string): string {
  return typeof body === 'string' ? body : new TextDecoder().decode(body);
}
