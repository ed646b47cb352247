/**
 * From a client's request to a run: reads and checks the body, asks the webhook policy, collects what reaches the graph from the
 * request's headers. Used by every route that creates runs.
 */
import type { HttpBufferedResponse, HttpRequest } from '../core/http.ts';
import type { Clock } from '../core/lifecycle.ts';
import { problem } from './problem.ts';
import { newRun, withoutEffect, type RunRequest } from './request.ts';
import { isUuid, type IdSource } from './ids.ts';
import type { JsonObject } from './store/model.ts';
import type { NewRun, RunCreation } from './store/repositories.ts';

export interface RunRequestSettings {
  ids: IdSource;
  clock: Clock;
  /** The URL to call when the run has ended; null when there is none to call. */
  webhook(url: string | null): Promise<{ kind: 'accepted'; url: string | null } | { kind: 'refused'; reason: string }>;
  /** Which request headers a graph may see in `config.configurable`. */
  headers: HeaderRules;
  /** Of the configuration file. */
  graphIds: ReadonlySet<string>;
}

export interface HeaderRules {
  includes: readonly string[];
  excludes: readonly string[];
}

export const DEFAULT_HEADER_RULES: HeaderRules = {
  includes: ['x-*', 'user-agent'],
  excludes: ['x-api-key', 'x-tenant-id', 'x-service-key'],
};

export type Prepared =
  /** `headers`: for the answer. */
  | { kind: 'prepared'; run: Omit<NewRun, 'claim'>; headers: Record<string, string> }
  | { kind: 'refused'; response: HttpBufferedResponse };

export interface RunRequests {
  prepare(request: HttpRequest, body: RunRequest, threadId: string | null): Promise<Prepared>;
  refusal(creation: Exclude<RunCreation, { kind: 'created' }>, body: RunRequest): HttpBufferedResponse;
}

export function createRunRequests(settings: RunRequestSettings): RunRequests {
  const { ids, clock } = settings;
  const includes = settings.headers.includes.map(globPattern);
  const excludes = settings.headers.excludes.map(globPattern);

  const configurable = (request: HttpRequest): JsonObject => {
    const seen: JsonObject = {};
    for (const [name, value] of request.headers)
      if (includes.some((pattern) => pattern.test(name)) && !excludes.some((pattern) => pattern.test(name)))
        seen[name] = value;
    return seen;
  };

  return {
    prepare: async (request, body, threadId) => {
      if (!isServable(body.assistant_id, settings.graphIds))
        return { kind: 'refused', response: missingAssistant(body.assistant_id, settings.graphIds) };
      const webhook = await settings.webhook(body.webhook ?? null);
      if (webhook.kind === 'refused')
        return { kind: 'refused', response: problem('invalid', `webhook: ${webhook.reason}`) };
      const { claim: _unclaimed, ...run } = newRun(body, {
        runId: ids.next(),
        newThreadId: ids.next(),
        threadId,
        webhook: webhook.url,
        configurable: configurable(request),
        claim: null,
        nowMs: clock.nowMs(),
      });
      return { kind: 'prepared', run, headers: warningHeaders(withoutEffect(body, threadId)) };
    },
    refusal: (creation, body) => {
      switch (creation.kind) {
        case 'assistant-missing':
          return missingAssistant(body.assistant_id, settings.graphIds);
        case 'thread-missing':
          return problem('not-found', 'Thread not found');
        case 'conflict':
          return problem(
            'conflict',
            'Thread is already running a task. Wait for it to finish or choose a different multitask strategy.',
          );
      }
    },
  };
}

/** Assistants of graphs that were served once are still in the database: a graph's name is not enough. */
export function isServable(assistant: string, graphIds: ReadonlySet<string>): boolean {
  return isUuid(assistant) ? graphIds.size > 0 : graphIds.has(assistant);
}

export function missingAssistant(assistant: string, graphIds: ReadonlySet<string>): HttpBufferedResponse {
  const hint =
    graphIds.size > 0
      ? 'Make sure the assistant ID is for a valid assistant or a valid graph ID.'
      : 'No graphs are configured: set DEPLOYMENT_CONFIG to the path of a langgraph.json.';
  return problem('not-found', `No assistant found for "${assistant}". ${hint}`);
}

const NAMED_COUNT = 10;
const NAMEABLE = /^[\w.-]{1,64}$/;

/** What is accepted without effect is said: a field of a newer client, or a name that is misspelt. */
export function warningHeaders(fields: readonly string[]): Record<string, string> {
  if (fields.length === 0) return {};
  const named = fields.filter((name) => NAMEABLE.test(name)).slice(0, NAMED_COUNT);
  const others = fields.length - named.length;
  const list = [...named, ...(others > 0 ? [`${others} more`] : [])].join(', ');
  // RFC 7234, 5.5: "Miscellaneous Persistent Warning".
  return { warning: `299 - "without effect: ${list}"` };
}

/** `*` stands for any characters; header names know no case. */
function globPattern(glob: string): RegExp {
  const escaped = glob.replace(/[.+?^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*');
  return new RegExp(`^${escaped}$`, 'i');
}
