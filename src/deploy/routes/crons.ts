/** Crons: on a thread, or with a thread of its own for every firing. */
import { z } from 'zod';
import type { HttpResponse } from '../../core/http.ts';
import type { Clock } from '../../core/lifecycle.ts';
import { emptyAnswer, jsonAnswer, textAnswer } from '../answer.ts';
import { readBody } from '../body.ts';
import { cronJson } from '../cronrecord.ts';
import { arrayJson } from '../fields.ts';
import { assistantIdOf } from '../ids.ts';
import type { IdSource } from '../ids.ts';
import { present } from '../present.ts';
import { problem } from '../problem.ts';
import {
  hasOneInput,
  INEFFECTIVE_FIELDS,
  metadataObject,
  plainText,
  runFields,
  setFields,
  TWO_INPUTS,
} from '../request.ts';
import type { Route, RouteContext } from '../router.ts';
import { isServable, missingAssistant, warningHeaders } from '../runrequests.ts';
import type { RunRequestSettings } from '../runrequests.ts';
import { scheduleIssue } from '../schedule.ts';
import { pageFields, pageOf, paginationHeaders, selectField, sortOrder } from '../search.ts';
import type { JsonObject } from '../store/model.ts';
import type { CronFilter, CronPatch, CronSortKey, DeploymentStore } from '../store/repositories.ts';

export interface CronRouteSettings {
  crons: DeploymentStore['crons'];
  graphIds: ReadonlySet<string>;
  ids: IdSource;
  clock: Clock;
  webhook: RunRequestSettings['webhook'];
  /** The due times have changed. */
  onChange(): void;
}

const timeText = z.string().transform((text, context) => {
  // A time without a zone is UTC, like everything here that names none.
  const zoned = /(?:z|[+-]\d\d:?\d\d)$/i.test(text) ? text : `${text}Z`;
  const ms = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(/t|\s/i.test(text) ? zoned : text) : NaN;
  if (!Number.isNaN(ms)) return ms;
  context.addIssue({ code: 'custom', message: 'expected an ISO 8601 time' });
  return z.NEVER;
});
const cronFields = {
  schedule: z.string(),
  timezone: z.string().nullish(),
  end_time: timeText.nullish(),
  enabled: z.boolean().nullish(),
  on_run_completed: z.enum(['delete', 'keep']).nullish(),
};
const cron = z.looseObject({ ...runFields, ...cronFields });
export const cronCreate = cron.refine(hasOneInput, { path: ['command'], message: TWO_INPUTS });
export const cronPatch = cron.partial();
const filterFields = {
  assistant_id: plainText.nullish(),
  thread_id: z.guid().nullish(),
  enabled: z.boolean().nullish(),
  metadata: metadataObject.nullish(),
};
const SORT_KEYS = {
  cron_id: 'cronId',
  assistant_id: 'assistantId',
  thread_id: 'threadId',
  next_run_date: 'nextRunMs',
  end_time: 'endMs',
  created_at: 'createdMs',
  updated_at: 'updatedMs',
} as const satisfies Record<string, CronSortKey>;
export const cronSearch = z.looseObject({
  ...filterFields,
  ...pageFields,
  sort_by: z.enum(Object.keys(SORT_KEYS) as (keyof typeof SORT_KEYS)[]).nullish(),
  sort_order: sortOrder,
  select: selectField,
});
export const cronCount = z.looseObject(filterFields);

/** What a firing repeats; metadata is the cron's own. */
const PAYLOAD_KEYS = Object.keys(runFields).filter((key) => key !== 'metadata' && key !== 'assistant_id');

export function cronRoutes(settings: CronRouteSettings): Route[] {
  const { crons, clock, graphIds } = settings;
  const missing = (context: RouteContext): HttpResponse =>
    problem('not-found', `Cron ${context.params['cron_id'] ?? ''} not found`);

  const create: Route['handler'] = async ({ request, params }) => {
    const body = readBody(request, cronCreate);
    if (!body.ok) return body.response;
    const asked = body.value;
    if (!isServable(asked.assistant_id, graphIds)) return missingAssistant(asked.assistant_id, graphIds);
    const threadId = params['thread_id'] ?? null;
    const nowMs = clock.nowMs();
    const schedule = { schedule: asked.schedule, timezone: asked.timezone ?? null };
    const issue = scheduleIssue(schedule, nowMs);
    if (issue !== null) return problem('invalid', `${issue.field}: ${issue.reason}`);
    const webhook = await settings.webhook(asked.webhook ?? null);
    if (webhook.kind === 'refused') return problem('invalid', `webhook: ${webhook.reason}`);
    const created = await crons.create({
      cronId: settings.ids.next(),
      assistantId: assistantIdOf(asked.assistant_id),
      threadId,
      ...schedule,
      enabled: asked.enabled ?? true,
      onRunCompleted: asked.on_run_completed ?? 'delete',
      endMs: asked.end_time ?? null,
      metadata: asked.metadata ?? {},
      payload: { assistant_id: asked.assistant_id, ...payloadOf(asked) },
      nowMs,
    });
    switch (created.kind) {
      case 'assistant-missing':
        return missingAssistant(asked.assistant_id, graphIds);
      case 'thread-missing':
        return problem('not-found', `Thread ${threadId ?? ''} not found`);
      case 'created':
        settings.onChange();
        return textAnswer(cronJson(created.cron), warningHeaders(withoutEffect(asked, misplacedFor(threadId))));
    }
  };

  const patch: Route['handler'] = async (context) => {
    const body = readBody(context.request, cronPatch);
    if (!body.ok) return body.response;
    const asked = body.value;
    const cronId = context.params['cron_id'] ?? '';
    const before = await crons.get(cronId);
    if (before === null) return missing(context);
    const payload = payloadOf(asked);
    if (!hasOneInput({ ...before.payload, ...payload })) {
      return problem('invalid', `command: ${TWO_INPUTS}`);
    }
    const nowMs = clock.nowMs();
    const schedule = {
      schedule: asked.schedule ?? before.schedule,
      timezone: asked.timezone === undefined ? before.timezone : asked.timezone,
    };
    const issue = scheduleIssue(schedule, nowMs);
    if (issue !== null) return problem('invalid', `${issue.field}: ${issue.reason}`);
    const webhook = await settings.webhook(asked.webhook ?? null);
    if (webhook.kind === 'refused') return problem('invalid', `webhook: ${webhook.reason}`);
    const change: CronPatch = {
      ...schedule,
      ...present({ enabled: asked.enabled, onRunCompleted: asked.on_run_completed, metadata: asked.metadata }),
      ...(asked.end_time === undefined ? {} : { endMs: asked.end_time }),
      payload,
    };
    const patched = await crons.patch(cronId, change, nowMs);
    if (patched === null) return missing(context);
    settings.onChange();
    const misplaced = ['assistant_id', ...misplacedFor(patched.threadId)];
    return textAnswer(cronJson(patched), warningHeaders(withoutEffect(asked, misplaced)));
  };

  const search: Route['handler'] = async ({ request }) => {
    const body = readBody(request, cronSearch);
    if (!body.ok) return body.response;
    const page = pageOf(body.value);
    const by = SORT_KEYS[body.value.sort_by ?? 'created_at'];
    const order = body.value.sort_order ?? 'desc';
    const found = await crons.search(filterOf(body.value), page, { by, order });
    return textAnswer(
      arrayJson(found.rows.map((cron) => cronJson(cron, body.value.select ?? null))),
      paginationHeaders(page, found.rows.length, found.totalCount),
    );
  };

  return [
    { method: 'POST', pattern: '/threads/:thread_id/runs/crons', handler: create },
    { method: 'POST', pattern: '/runs/crons', handler: create },
    { method: 'POST', pattern: '/runs/crons/search', handler: search },
    {
      method: 'POST',
      pattern: '/runs/crons/count',
      handler: async ({ request }) => {
        const body = readBody(request, cronCount);
        return body.ok ? jsonAnswer(await crons.count(filterOf(body.value))) : body.response;
      },
    },
    {
      method: 'GET',
      pattern: '/runs/crons/:cron_id',
      handler: async (context) => {
        const cron = await crons.get(context.params['cron_id'] ?? '');
        return cron === null ? missing(context) : textAnswer(cronJson(cron));
      },
    },
    { method: 'PATCH', pattern: '/runs/crons/:cron_id', handler: patch },
    {
      method: 'DELETE',
      pattern: '/runs/crons/:cron_id',
      handler: async (context) => {
        if (!(await crons.delete(context.params['cron_id'] ?? ''))) return missing(context);
        settings.onChange();
        return emptyAnswer;
      },
    },
  ];
}

/** Every firing of a stateless cron has a thread to itself; a thread of the client's stays when the run is over. */
function misplacedFor(threadId: string | null): string[] {
  return threadId === null ? ['multitask_strategy'] : ['on_run_completed'];
}

function withoutEffect(body: object, misplaced: readonly string[]): string[] {
  const isHeeded = (name: string): boolean =>
    Object.hasOwn(cronCreate.shape, name) && !INEFFECTIVE_FIELDS.has(name) && !misplaced.includes(name);
  return setFields(body).filter((name) => !isHeeded(name));
}

function payloadOf(body: Readonly<Record<string, unknown>>): JsonObject {
  const entries = PAYLOAD_KEYS.flatMap((key) => (body[key] === undefined ? [] : [[key, body[key]]]));
  return Object.fromEntries(entries) as JsonObject;
}

function filterOf(body: z.output<typeof cronCount>): CronFilter {
  return present({
    assistantId: body.assistant_id ? assistantIdOf(body.assistant_id) : null,
    threadId: body.thread_id?.toLowerCase(),
    enabled: body.enabled,
    metadata: body.metadata,
  });
}
