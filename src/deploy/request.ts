/**
 * What a client may say when it asks for a run, on any of the routes and in a cron's payload, and its translation into a
 * {@link NewRun}. Fields that are known but wrong are refused; keys nobody knows are ignored, as the clients add some over time, and
 * named in the answer, see {@link withoutEffect}.
 */
import { z } from 'zod';
import { keyText, listOf } from './bounds.ts';
import { isStorable, UNSTORABLE } from './storable.ts';
import type { JsonObject, JsonText, JsonValue } from './store/model.ts';
import type { NewRun, RunClaim } from './store/repositories.ts';

/** A JSON object; the body's text was parsed by us, so anything that is an object is one. */
export const jsonObject = z.custom<JsonObject>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
  'expected an object',
);
/** A JSON object in a column of its own, which searches may filter on. */
export const metadataObject = jsonObject.refine(isStorable, UNSTORABLE);
/** Text that is stored in a column of its own. */
export const plainText = z.string().refine(isStorable, UNSTORABLE);
export const jsonValue = z.custom<JsonValue>((value) => value !== undefined, 'expected a value');

export const STREAM_MODES = [
  'values',
  'updates',
  'messages',
  'messages-tuple',
  'events',
  'debug',
  'tasks',
  'checkpoints',
  'custom',
  'tools',
] as const;
export type StreamMode = (typeof STREAM_MODES)[number];

/** Names of one kind in a request. */
const MAX_NAME_COUNT = 1000;
/** Channels written or nodes sent to by one command. */
const MAX_TARGET_COUNT = 10_000;
export const nameList = listOf(z.string(), { max: MAX_NAME_COUNT });
const nodeNames = z.union([z.literal('*'), nameList]);
/** `args` is how the library itself renders a Send. */
const send = z.looseObject({ node: plainText, input: jsonValue.optional(), args: jsonValue.optional() });
const gotoTarget = z.union([plainText, send]);
const updates = listOf(z.tuple([plainText, jsonValue]), { max: MAX_TARGET_COUNT });
export const command = z.looseObject({
  update: z.union([jsonObject, updates, z.null()]).optional(),
  resume: jsonValue.optional(),
  goto: z.union([gotoTarget, listOf(gotoTarget, { max: MAX_TARGET_COUNT }), z.null()]).optional(),
});
/** As the proxy takes it in a header. */
const projectName = plainText
  .min(1)
  .max(512)
  .refine((name) => !/\p{Cc}/u.test(name), 'contains a control character');
/** Where in a thread's history. */
export const checkpointFields = {
  checkpoint_id: keyText.nullish(),
  checkpoint_ns: keyText.nullish(),
  checkpoint_map: jsonObject.nullish(),
};
const checkpoint = z.looseObject({ ...checkpointFields, thread_id: z.string().nullish() });

/** The fields that a run and a cron's payload share. */
export const runFields = {
  assistant_id: plainText.min(1),
  input: jsonValue.optional(),
  command: command.nullish(),
  config: z
    .looseObject({
      tags: nameList.nullish(),
      recursion_limit: z.int().min(1).nullish(),
      max_concurrency: z.int().min(1).nullish(),
      run_name: plainText.nullish(),
      configurable: z.looseObject(checkpointFields).nullish(),
    })
    .nullish(),
  context: jsonObject.nullish(),
  metadata: metadataObject.nullish(),
  webhook: plainText.min(1).max(65_536).nullish(),
  interrupt_before: nodeNames.nullish(),
  interrupt_after: nodeNames.nullish(),
  stream_mode: z.union([z.enum(STREAM_MODES), listOf(z.enum(STREAM_MODES), { max: MAX_NAME_COUNT })]).nullish(),
  stream_subgraphs: z.boolean().nullish(),
  stream_resumable: z.boolean().nullish(),
  feedback_keys: nameList.nullish(),
  multitask_strategy: z.enum(['reject', 'interrupt', 'rollback', 'enqueue']).nullish(),
  durability: z.enum(['sync', 'async', 'exit']).nullish(),
  checkpoint_during: z.boolean().nullish(),
};

/** A run is given an input or a command, not both. */
export function hasOneInput({ input, command: asked }: { input?: unknown; command?: unknown }): boolean {
  if (asked === null || asked === undefined || input === null || input === undefined) return true;
  return typeof input === 'object' && Object.keys(input).length === 0;
}

export const TWO_INPUTS = 'cannot be combined with input';

export const runRequest = z
  .looseObject({
    ...runFields,
    checkpoint: checkpoint.nullish(),
    checkpoint_id: keyText.nullish(),
    if_not_exists: z.enum(['reject', 'create']).nullish(),
    on_completion: z.enum(['delete', 'keep']).nullish(),
    on_disconnect: z.enum(['cancel', 'continue']).nullish(),
    after_seconds: z
      .number()
      .min(0)
      .max(366 * 24 * 3600)
      .nullish(),
    langsmith_tracer: z.looseObject({ project_name: projectName.nullish(), example_id: z.uuid().nullish() }).nullish(),
  })
  .refine(hasOneInput, { path: ['command'], message: TWO_INPUTS });
export type RunRequest = z.output<typeof runRequest>;

/** Feedback is given by way of presigned URLs of the hosted backend, which nobody but it can make. */
export const INEFFECTIVE_FIELDS: ReadonlySet<string> = new Set(['feedback_keys']);

/** A run without a thread of the client's has nothing to fork, to wait for, or to be made. */
const THREAD_FIELDS = new Set(['checkpoint', 'checkpoint_id', 'if_not_exists', 'multitask_strategy']);
/** A thread of the client's stays. */
const STATELESS_FIELDS = new Set(['on_completion']);

/** The fields of a run's request that are set and change nothing here; `threadId` null: of a stateless run. */
export function withoutEffect(request: RunRequest, threadId: string | null): string[] {
  const misplaced = threadId === null ? THREAD_FIELDS : STATELESS_FIELDS;
  return setFields(request).filter(
    (name) => !Object.hasOwn(runRequest.shape, name) || INEFFECTIVE_FIELDS.has(name) || misplaced.has(name),
  );
}

/** Neither null nor an empty list, which the clients send for nothing. */
export function setFields(request: object): string[] {
  return Object.entries(request).flatMap(([name, value]) => {
    const isSet = value !== null && value !== undefined && !(Array.isArray(value) && value.length === 0);
    return isSet ? [name] : [];
  });
}

export interface RunOrigin {
  runId: string;
  newThreadId: string;
  /** Null on the stateless routes. */
  threadId: string | null;
  /** Checked against the URL policy; null when absent or when webhooks are switched off. */
  webhook: string | null;
  /** Request headers and the like that reach the graph through `config.configurable`. */
  configurable?: JsonObject;
  claim: RunClaim | null;
  nowMs: number;
}

/** The stream modes asked for, as a list; `values` when nothing is said. */
export function streamModesOf(request: Pick<RunRequest, 'stream_mode'>): StreamMode[] {
  const asked = request.stream_mode ?? 'values';
  const modes = typeof asked === 'string' ? [asked] : asked;
  return modes.length === 0 ? ['values'] : [...new Set(modes)];
}

export function newRun(request: RunRequest, origin: RunOrigin): NewRun {
  const { configurable, ...config } = withoutNulls(request.config ?? {});
  const at = { ...request.checkpoint };
  if (typeof request.checkpoint_id === 'string') at.checkpoint_id ??= request.checkpoint_id;
  const during = request.checkpoint_during === false ? 'exit' : 'async';
  return {
    runId: origin.runId,
    assistantId: request.assistant_id,
    threadId: origin.threadId,
    newThreadId: origin.newThreadId,
    ifThreadMissing: request.if_not_exists ?? 'reject',
    temporary: origin.threadId === null && request.on_completion !== 'keep',
    resumable: request.stream_resumable ?? false,
    multitask: request.multitask_strategy ?? 'enqueue',
    notBeforeMs: origin.nowMs + Math.ceil((request.after_seconds ?? 0) * 1000),
    webhook: origin.webhook,
    config: {
      ...config,
      configurable: {
        ...(configurable as JsonObject | undefined),
        ...(origin.threadId === null ? {} : withoutNulls(at)),
        ...origin.configurable,
        ...tracerOf(request),
      },
    },
    context: request.context ?? {},
    metadata: request.metadata ?? {},
    restJson: JSON.stringify({
      input: request.input ?? null,
      command: request.command ?? null,
      stream_mode: streamModesOf(request),
      interrupt_before: request.interrupt_before ?? null,
      interrupt_after: request.interrupt_after ?? null,
      feedback_keys: request.feedback_keys ?? null,
      subgraphs: request.stream_subgraphs ?? false,
      durability: request.durability ?? during,
      ...(request.langsmith_tracer ? { langsmith_tracer: request.langsmith_tracer } : {}),
    }) as JsonText,
    claim: origin.claim,
    nowMs: origin.nowMs,
  };
}

/** Where the run is traced to; the graph sees it too. */
function tracerOf({ langsmith_tracer: tracer }: RunRequest): JsonObject {
  return withoutNulls({ langsmith_project: tracer?.project_name, langsmith_example_id: tracer?.example_id });
}

function withoutNulls(value: object): JsonObject {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== null && entry !== undefined));
}
