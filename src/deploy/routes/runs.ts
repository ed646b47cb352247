/** Runs on a thread. */
import { z } from 'zod';
import type { HttpRequest, HttpResponse } from '../../core/http.ts';
import { emptyAnswer, textAnswer } from '../answer.ts';
import { queryBoolean, queryInteger, queryList, queryText, readBody } from '../body.ts';
import { problem } from '../problem.ts';
import { runRequest } from '../request.ts';
import type { Route } from '../router.ts';
import { createdRunJson, runJson, runListJson } from '../runrecord.ts';
import type { RunRequests } from '../runrequests.ts';
import { storedResult } from '../runresult.ts';
import type { JsonText, RunStatus } from '../store/model.ts';
import type { DeploymentStore, NewRun } from '../store/repositories.ts';
import { replayEnded, seqOf } from '../stream.ts';
import { StreamReader } from '../streamreader.ts';
import { awaitedResult, eventStream, locationHeaders, locationOf, type RunLocation } from './connection.ts';
import { followThread, type FollowSettings } from './follow.ts';

export interface RunRouteSettings extends FollowSettings {
  requests: RunRequests;
}

const RUN_STATUSES = ['pending', 'running', 'success', 'error', 'timeout', 'interrupted'] as const;
export const cancelAction = z.enum(['interrupt', 'rollback']);

export function runRoutes(settings: RunRouteSettings): Route[] {
  const { store, runs } = settings;

  const create = async (request: HttpRequest, threadId: string): Promise<HttpResponse> => {
    const prepared = await prepareRun(settings, request, threadId);
    if ('status' in prepared) return prepared;
    const creation = await runs.create(prepared.run);
    if (creation.kind !== 'created') return settings.requests.refusal(creation, prepared.body);
    const location = locationOf(creation.run, 'join').run;
    return textAnswer(createdRunJson(creation.run), { 'content-location': location, ...prepared.headers });
  };

  const list: Route['handler'] = async ({ params, query }) => {
    const threadId = params['thread_id'] ?? '';
    const limit = queryInteger(query, 'limit', { fallback: 10, min: 1, max: 1000 });
    const offset = queryInteger(query, 'offset', { fallback: 0, min: 0, max: Number.MAX_SAFE_INTEGER });
    if (limit === null) return problem('invalid', 'limit: must be an integer from 1 to 1000');
    if (offset === null) return problem('invalid', 'offset: must be an integer, not negative');
    const status = queryText(query, 'status');
    if (status !== null && !RUN_STATUSES.includes(status as RunStatus))
      return problem('invalid', `status: must be one of ${RUN_STATUSES.join(', ')}`);
    if ((await store.threads.get(threadId)) === null) return problem('not-found', `Thread ${threadId} not found`);
    const filter = status === null ? {} : { status: status as RunStatus };
    const rows = await store.runs.list(threadId, filter, { limit, offset });
    return textAnswer(runListJson(rows, queryList(query, 'select')));
  };

  const remove: Route['handler'] = async ({ params }) => {
    const threadId = params['thread_id'] ?? '';
    const runId = params['run_id'] ?? '';
    switch (await store.runs.delete(threadId, runId)) {
      case 'deleted':
        return emptyAnswer;
      case 'missing':
        return problem('not-found', `Run ${runId} not found`);
      case 'active':
        return problem('conflict', `Run ${runId} is pending or running. Cancel it first.`);
    }
  };

  const cancel: Route['handler'] = async ({ params, query }) => {
    const threadId = params['thread_id'] ?? '';
    const runId = params['run_id'] ?? '';
    const wait = queryBoolean(query, 'wait', false);
    if (wait === null) return problem('invalid', 'wait: must be true or false');
    const action = cancelAction.safeParse(queryText(query, 'action') ?? 'interrupt');
    if (!action.success) return problem('invalid', 'action: must be interrupt or rollback');
    // Watched before it is told, so that an end in between is not missed.
    const live = runs.watch({ runId, threadId, resumable: false });
    try {
      const cancellation = await runs.cancel({ kind: 'ids', threadId, runIds: [runId] }, action.data);
      if (cancellation.missing.length > 0) return problem('not-found', `Run ${runId} not found`);
      if (!wait) return { status: 202 };
      if (cancellation.stopping.length > 0) await live.ended;
      return emptyAnswer;
    } finally {
      runs.unwatch(live);
    }
  };

  return [
    {
      method: 'POST',
      pattern: '/threads/:thread_id/runs',
      handler: ({ request, params }) => create(request, params['thread_id'] ?? ''),
    },
    {
      method: 'POST',
      pattern: '/threads/:thread_id/runs/stream',
      handler: ({ request, params }) => createAndStream(settings, request, params['thread_id'] ?? ''),
    },
    {
      method: 'POST',
      pattern: '/threads/:thread_id/runs/wait',
      handler: ({ request, params }) => createAndWait(settings, request, params['thread_id'] ?? ''),
    },
    { method: 'GET', pattern: '/threads/:thread_id/runs', handler: list },
    {
      method: 'GET',
      pattern: '/threads/:thread_id/runs/:run_id',
      handler: async ({ params }) => {
        const run = await findRun(store, params['thread_id'] ?? null, params['run_id'] ?? '');
        return run === null
          ? problem('not-found', `Run ${params['run_id'] ?? ''} not found`)
          : textAnswer(runJson(run, null));
      },
    },
    { method: 'DELETE', pattern: '/threads/:thread_id/runs/:run_id', handler: remove },
    {
      method: 'GET',
      pattern: '/threads/:thread_id/runs/:run_id/join',
      handler: ({ request, params, query }) =>
        join(settings, request, params['thread_id'] ?? '', params['run_id'] ?? '', query),
    },
    {
      method: 'GET',
      pattern: '/threads/:thread_id/runs/:run_id/stream',
      handler: ({ request, params, query }) =>
        joinStream(settings, request, params['thread_id'] ?? '', params['run_id'] ?? '', query),
    },
    { method: 'POST', pattern: '/threads/:thread_id/runs/:run_id/cancel', handler: cancel },
    {
      method: 'GET',
      pattern: '/threads/:thread_id/stream',
      handler: ({ request, params, query }) => followThread(settings, request, params['thread_id'] ?? '', query),
    },
  ];
}

interface PreparedRun {
  run: Omit<NewRun, 'claim'>;
  body: z.output<typeof runRequest>;
  /** For the answer. */
  headers: Record<string, string>;
}

export async function prepareRun(
  settings: RunRouteSettings,
  request: HttpRequest,
  threadId: string | null,
): Promise<PreparedRun | HttpResponse> {
  const body = readBody(request, runRequest);
  if (!body.ok) return body.response;
  const prepared = await settings.requests.prepare(request, body.value, threadId);
  if (prepared.kind === 'refused') return prepared.response;
  return { run: prepared.run, body: body.value, headers: prepared.headers };
}

/** Null thread: the run of a stateless route; its hidden thread is named only when it is kept. */
function locate(run: Omit<NewRun, 'claim'>, rejoin: 'stream' | 'join'): RunLocation {
  const threadId = run.threadId ?? (run.temporary ? null : run.newThreadId);
  return locationOf({ runId: run.runId, threadId }, rejoin);
}

export async function createAndStream(
  settings: RunRouteSettings,
  request: HttpRequest,
  threadId: string | null,
): Promise<HttpResponse> {
  const { runs } = settings;
  const prepared = await prepareRun(settings, request, threadId);
  if ('status' in prepared) return prepared;
  const { run, body } = prepared;
  // The reader is there before the run is, so that it hears everything.
  const reader = new StreamReader(settings, null);
  const live = runs.watch({ runId: run.runId, threadId: run.threadId ?? run.newThreadId, resumable: run.resumable });
  reader.onLeave(() => runs.unwatch(live));
  live.stream.read(reader);
  const creation = await runs.create(run).catch((error: unknown) => {
    reader.detach();
    throw error;
  });
  if (creation.kind !== 'created') {
    reader.detach();
    return settings.requests.refusal(creation, body);
  }
  const headers = { ...locationHeaders(locate(run, 'stream')), ...prepared.headers };
  return eventStream(request, reader, headers, () => {
    if (body.on_disconnect === 'cancel') cancelQuietly(settings, creation.run.threadId, run.runId);
  });
}

export async function createAndWait(
  settings: RunRouteSettings,
  request: HttpRequest,
  threadId: string | null,
): Promise<HttpResponse> {
  const { runs, store } = settings;
  const prepared = await prepareRun(settings, request, threadId);
  if ('status' in prepared) return prepared;
  const { run, body } = prepared;
  const hiddenOrGiven = run.threadId ?? run.newThreadId;
  const live = runs.watch({ runId: run.runId, threadId: hiddenOrGiven, resumable: run.resumable });
  const creation = await runs.create(run).catch((error: unknown) => {
    runs.unwatch(live);
    throw error;
  });
  if (creation.kind !== 'created') {
    runs.unwatch(live);
    return settings.requests.refusal(creation, body);
  }
  const awaited = {
    ended: live.ended,
    // The clients look for `__error__` in what they get: it must be an object.
    stored: async () => (await storedResult(store, hiddenOrGiven, run.runId)) ?? ('{}' as JsonText),
    done: () => runs.unwatch(live),
    onDisconnect: () => {
      if (body.on_disconnect === 'cancel') cancelQuietly(settings, creation.run.threadId, run.runId);
    },
  };
  return awaitedResult(request, settings, awaited, { ...locationHeaders(locate(run, 'join')), ...prepared.headers });
}

export async function findRun(
  store: DeploymentStore,
  threadId: string | null,
  runId: string,
): Promise<Awaited<ReturnType<DeploymentStore['runs']['get']>>> {
  const run = await store.runs.get(runId);
  return run !== null && (threadId === null || run.threadId === threadId) ? run : null;
}

/** `threadId` null: the stateless form, which names the run alone. */
export async function join(
  settings: RunRouteSettings,
  request: HttpRequest,
  threadId: string | null,
  runId: string,
  query: URLSearchParams,
): Promise<HttpResponse> {
  const { runs, store } = settings;
  const cancels = queryBoolean(query, 'cancel_on_disconnect', false);
  if (cancels === null) return problem('invalid', 'cancel_on_disconnect: must be true or false');
  const live = runs.watch({ runId, threadId: threadId ?? '', resumable: false });
  const done = (): void => runs.unwatch(live);
  const run = await findRun(store, threadId, runId).catch((error: unknown) => {
    done();
    throw error;
  });
  if (run === null) {
    done();
    return problem('not-found', `Run ${runId} not found`);
  }
  const isOver = run.status !== 'pending' && run.status !== 'running';
  const awaited = {
    ended: isOver ? Promise.resolve({ kind: 'stored' } as const) : live.ended,
    stored: () => storedResult(store, run.threadId, runId),
    done,
    onDisconnect: () => {
      if (cancels) cancelQuietly(settings, run.threadId, runId);
    },
  };
  const location = locationOf({ runId, threadId }, 'join');
  return awaitedResult(request, settings, awaited, locationHeaders(location));
}

export async function joinStream(
  settings: RunRouteSettings,
  request: HttpRequest,
  threadId: string | null,
  runId: string,
  query: URLSearchParams,
): Promise<HttpResponse> {
  const { runs, store } = settings;
  const cancels = queryBoolean(query, 'cancel_on_disconnect', false);
  if (cancels === null) return problem('invalid', 'cancel_on_disconnect: must be true or false');
  const modes = queryList(query, 'stream_mode');
  const known = await findRun(store, threadId, runId);
  const reader = new StreamReader(settings, modes === null ? null : new Set(modes));
  const lastEventId = request.header('last-event-id');
  const headers = locationHeaders(locationOf({ runId, threadId }, 'stream'));
  if (known === null) {
    // A stateless run is gone with its end; what it said is kept for those whose connection broke.
    const isKept = threadId === null && lastEventId !== '' && (await store.events.lastSeq(runId)) >= 0;
    if (!isKept) return problem('not-found', `Run ${runId} not found`);
    cutOnFailure(settings, reader, runId, replayEnded(store.events, runId, reader, seqOf(lastEventId)));
    return eventStream(request, reader, headers, () => undefined);
  }
  const live = runs.watch(known);
  // Looked up again now that it is watched: it may have ended in between.
  const run = await findRun(store, threadId, runId).catch((error: unknown) => {
    runs.unwatch(live);
    throw error;
  });
  reader.onLeave(() => runs.unwatch(live));
  const isOver = run === null || (run.status !== 'pending' && run.status !== 'running');
  const replays = known.resumable && lastEventId !== '';
  if (isOver && !replays) reader.end();
  else if (!replays) live.stream.read(reader);
  else {
    const afterSeq = seqOf(lastEventId);
    const replay = isOver ? replayEnded(store.events, runId, reader, afterSeq) : live.stream.replay(reader, afterSeq);
    cutOnFailure(settings, reader, runId, replay);
  }
  return eventStream(request, reader, headers, () => {
    if (cancels) cancelQuietly(settings, known.threadId, runId);
  });
}

/** The client sees a broken connection and resumes; the operator sees why. */
function cutOnFailure(settings: RunRouteSettings, reader: StreamReader, runId: string, replay: Promise<void>): void {
  replay.catch((error: unknown) => {
    settings.log.error({ err: error, runId }, 'the stored events of a run could not be replayed; the stream is cut');
    reader.abort();
  });
}

/** No client is left to be told that it failed. */
export function cancelQuietly(settings: RunRouteSettings, threadId: string, runId: string): void {
  settings.runs.cancel({ kind: 'ids', threadId, runIds: [runId] }, 'interrupt').catch((error: unknown) => {
    settings.log.error({ err: error, runId }, 'a run whose client went could not be cancelled; it goes on');
  });
}
