/** Runs without a thread of the client's. */
import { z } from 'zod';
import { emptyAnswer, textAnswer } from '../answer.ts';
import { queryText, readBody } from '../body.ts';
import { listOf } from '../bounds.ts';
import { problem } from '../problem.ts';
import { runRequest, withoutEffect } from '../request.ts';
import type { Route } from '../router.ts';
import { warningHeaders } from '../runrequests.ts';
import { createdRunJson } from '../runrecord.ts';
import type { CancelSelector } from '../store/repositories.ts';
import { locationOf } from './connection.ts';
import {
  cancelAction,
  createAndStream,
  createAndWait,
  join,
  joinStream,
  prepareRun,
  type RunRouteSettings,
} from './runs.ts';

const MAX_BATCH_COUNT = 1000;
const batch = listOf(z.preprocess(inWireSpelling, runRequest), { min: 1, max: MAX_BATCH_COUNT });
export const bulkCancel = z
  .looseObject({
    thread_id: z.guid().nullish(),
    run_ids: listOf(z.guid(), { min: 1, max: MAX_BATCH_COUNT }).nullish(),
    status: z.enum(['pending', 'running', 'all']).nullish(),
  })
  .superRefine(({ thread_id: threadId, run_ids: runIds, status }, context) => {
    const issue = (path: string, message: string): void => context.addIssue({ code: 'custom', path: [path], message });
    if (status && runIds) issue('run_ids', 'cannot be combined with status');
    else if (!status && !runIds) issue('status', 'is required where there are no run_ids');
    else if (runIds && !threadId) issue('thread_id', 'is required with run_ids');
  });

export function statelessRoutes(settings: RunRouteSettings): Route[] {
  const { runs, requests } = settings;

  const create: Route['handler'] = async ({ request }) => {
    const prepared = await prepareRun(settings, request, null);
    if ('status' in prepared) return prepared;
    const creation = await runs.create(prepared.run);
    if (creation.kind !== 'created') return requests.refusal(creation, prepared.body);
    const { run } = creation;
    const location = locationOf({ runId: run.runId, threadId: run.temporary ? null : run.threadId }, 'join');
    return textAnswer(createdRunJson(run), { 'content-location': location.run, ...prepared.headers });
  };

  const createBatch: Route['handler'] = async ({ request }) => {
    const bodies = readBody(request, batch);
    if (!bodies.ok) return bodies.response;
    const prepared = [];
    const ignored = new Set<string>();
    for (const body of bodies.value) {
      const one = await requests.prepare(request, body, null);
      if (one.kind === 'refused') return one.response;
      prepared.push(one.run);
      for (const name of withoutEffect(body, null)) ignored.add(name);
    }
    const result = await runs.createBatch(prepared);
    if (result.kind === 'refused') {
      const body = bodies.value[result.index];
      if (result.creation.kind === 'created' || body === undefined) return problem('internal', 'Internal server error');
      return requests.refusal(result.creation, body);
    }
    const created = result.creations.flatMap((creation) =>
      creation.kind === 'created' ? [createdRunJson(creation.run)] : [],
    );
    return textAnswer(`[${created.join(',')}]`, warningHeaders([...ignored]));
  };

  const cancelMany: Route['handler'] = async ({ request, query }) => {
    const action = cancelAction.safeParse(queryText(query, 'action') ?? 'interrupt');
    if (!action.success) return problem('invalid', 'action: must be interrupt or rollback');
    const body = readBody(request, bulkCancel);
    if (!body.ok) return body.response;
    const cancellation = await runs.cancel(selectorOf(body.value), action.data);
    if (cancellation.missing.length > 0)
      return problem('not-found', `Runs not found: ${cancellation.missing.join(', ')}`);
    return emptyAnswer;
  };

  return [
    { method: 'POST', pattern: '/runs', handler: create },
    { method: 'POST', pattern: '/runs/batch', handler: createBatch },
    { method: 'POST', pattern: '/runs/cancel', handler: cancelMany },
    { method: 'POST', pattern: '/runs/stream', handler: ({ request }) => createAndStream(settings, request, null) },
    { method: 'POST', pattern: '/runs/wait', handler: ({ request }) => createAndWait(settings, request, null) },
    {
      method: 'GET',
      pattern: '/runs/:run_id/join',
      handler: ({ request, params, query }) => join(settings, request, null, params['run_id'] ?? '', query),
    },
    {
      method: 'GET',
      pattern: '/runs/:run_id/stream',
      handler: ({ request, params, query }) => joinStream(settings, request, null, params['run_id'] ?? '', query),
    },
  ];
}

/** The published JavaScript client sends the entries of a batch as its caller has spelled them. */
function inWireSpelling(entry: unknown): unknown {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) return entry;
  const given = entry as Record<string, unknown>;
  const spelled: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(given)) {
    const wire = name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const isKnown = wire !== name && Object.hasOwn(runRequest.shape, wire);
    // Where both are there, the wire's own wins; the other one is named unless it says the same.
    if (isKnown && !Object.hasOwn(given, wire)) spelled[wire] = value;
    else if (!isKnown || given[wire] !== value) spelled[name] = value;
  }
  return spelled;
}

function selectorOf(body: z.output<typeof bulkCancel>): CancelSelector {
  const { status } = body;
  const threadId = body.thread_id?.toLowerCase() ?? null;
  if (!status) return { kind: 'ids', threadId, runIds: (body.run_ids ?? []).map((runId) => runId.toLowerCase()) };
  return { kind: 'status', threadId, statuses: status === 'all' ? ['pending', 'running'] : [status] };
}
