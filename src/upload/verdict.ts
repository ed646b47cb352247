/** What an answer means for a batch. The only place where HTTP statuses of the backend are read. */
import type { CounterName } from '../core/counters.ts';
import type { Verdict } from '../core/outcome.ts';
import type { Answer } from './client.ts';

/** Something about the address or the key: the same for every run, and not for the runs to mend. */
const PARK_STATUSES = new Set([401, 402, 403, 404, 405, 407, 410, 415]);
/** Key, plan, permission, quota. */
const OWN_STATUSES = new Set([401, 402, 403, 429]);
const RETRY_STATUSES = new Set([408, 425, 429, 499]);
/** With 5xx: somebody on the way gave up, the backend behind may have taken the request. */
const UNCERTAIN_STATUSES = new Set([408, 499]);
/** Of an answer's text, in a reason. */
const MAX_REASON_CHARACTERS = 500;

/**
 * `repeated`: an earlier attempt with the very same runs may have reached the backend without our hearing of it. Then a
 * 409 says that it did; for several runs sent for the first time it says only that some of them were known.
 */
export function judge(answer: Answer, batch: { runCount: number }, repeated: boolean): Verdict {
  if (answer.kind === 'failed') return { kind: 'retry', reason: answer.reason };
  if (answer.kind === 'unsendable') return { kind: 'rejected', code: 'rejected-by-backend', reason: answer.reason };
  const { status } = answer;
  if (status >= 200 && status < 300) return { kind: 'delivered', again: false };
  const reason = `${status} ${answer.text.slice(0, MAX_REASON_CHARACTERS)}`.trim();
  if (status === 409) {
    return batch.runCount === 1 || repeated
      ? { kind: 'delivered', again: true }
      : { kind: 'split', by: 'runs', reason };
  }
  if (status === 413) return { kind: 'split', by: 'bytes', reason };
  if (status >= 500 || RETRY_STATUSES.has(status)) {
    return answer.retryAfterMs === null
      ? { kind: 'retry', reason }
      : { kind: 'retry', reason, retryAfterMs: answer.retryAfterMs };
  }
  if (status < 400 || PARK_STATUSES.has(status)) return { kind: 'park', reason };
  if ((status === 400 || status === 422) && batch.runCount > 1) return { kind: 'split', by: 'runs', reason };
  return { kind: 'rejected', code: 'rejected-by-backend', reason };
}

/** Whether the backend may have taken the batch although it did not say so: a later 409 is then about this attempt. */
export function mayHaveArrived(answer: Answer): boolean {
  if (answer.kind === 'failed') return answer.sent;
  return answer.kind === 'answered' && (answer.status >= 500 || UNCERTAIN_STATUSES.has(answer.status));
}

/** Where the answer is counted. */
export function answerCounter(answer: Answer): CounterName {
  if (answer.kind !== 'answered') return 'uploads_none';
  if (answer.status >= 500) return 'uploads_5xx';
  if (answer.status >= 400) return 'uploads_4xx';
  return answer.status >= 300 ? 'uploads_3xx' : 'uploads_2xx';
}

/** The backend cannot read this encoding. */
export function refusesCoding(answer: Answer): boolean {
  return answer.kind === 'answered' && answer.status === 415;
}

/** The trouble is this key's own: other tenants of the same backend need not have it. */
export function isTenantsOwn(answer: Answer): boolean {
  return answer.kind === 'answered' && OWN_STATUSES.has(answer.status);
}
