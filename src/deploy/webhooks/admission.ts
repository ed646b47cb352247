/**
 * Says of a webhook, when a run or cron asks for it, whether it will be called. Verdicts on names are remembered for a moment, so that
 * a burst of runs with one receiver asks the resolver once; the attempt asks again in any case.
 */
import type { Counters } from '../../core/counters.ts';
import type { Clock } from '../../core/lifecycle.ts';
import { SECOND_MS } from '../../core/units.ts';
import type { TargetVerdict, WebhookPolicy } from './policy.ts';

export type WebhookAdmission = (
  url: string | null,
) => Promise<{ kind: 'accepted'; url: string | null } | { kind: 'refused'; reason: string }>;

const REMEMBER_MS = 10 * SECOND_MS;
const REMEMBER_COUNT = 1000;
/** A slow resolver must not hold up the creation of a run: the attempt decides then. */
const RESOLVE_MS = 2 * SECOND_MS;

export function createWebhookAdmission(
  policy: WebhookPolicy,
  clock: Pick<Clock, 'nowMs'>,
  counters: Counters,
): WebhookAdmission {
  const remembered = new Map<string, { verdict: Promise<TargetVerdict>; untilMs: number }>();

  const targetOf = (url: URL): Promise<TargetVerdict> => {
    const nowMs = clock.nowMs();
    const known = remembered.get(url.hostname);
    if (known !== undefined && known.untilMs > nowMs) return known.verdict;
    const verdict = policy.checkTarget(url, AbortSignal.timeout(RESOLVE_MS));
    remembered.delete(url.hostname);
    remembered.set(url.hostname, { verdict, untilMs: nowMs + REMEMBER_MS });
    if (remembered.size > REMEMBER_COUNT) {
      for (const oldest of remembered.keys()) {
        remembered.delete(oldest);
        break;
      }
    }
    return verdict;
  };

  return async (text) => {
    if (text === null) return { kind: 'accepted', url: null };
    if (policy.disabled) {
      counters.add('webhooks_switched_off');
      return { kind: 'accepted', url: null };
    }
    const verdict = policy.checkUrl(text);
    const target = verdict.kind === 'refused' ? verdict : await targetOf(verdict.url);
    if (target.kind !== 'refused') return { kind: 'accepted', url: text };
    counters.add('webhooks_refused');
    return { kind: 'refused', reason: target.reason };
  };
}
