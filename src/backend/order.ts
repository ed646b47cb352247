/**
 * The rules of `dotted_order`: the path from the root to a run, as text that sorts. One segment a run, each the run's
 * start time with exactly six digits of fraction and its id:
 *
 *     20260822T101530250000Z0af76519-16cd-43dd-8448-eb211c80319c.20260822T101530300000Z00000000-0000-0000-b7ad-6b7169203331
 */
import { readSegmentTime, writePlain, writeRfc3339 } from './moment.ts';

export interface OrderClaim {
  readonly dottedOrder: string;
  readonly runId: string;
  readonly traceId: string;
  /** Null: the record says that there is no parent. Undefined: an update that does not say. */
  readonly parentRunId: string | null | undefined;
  /** Null: an update that does not say. */
  readonly startUs: number | null;
  /** How far the segment's time may be from the start time; 0 demands the very microsecond. */
  readonly toleranceUs: number;
}

const TIME_LENGTH = 21;
const UUID_LENGTH = 36;
const SEGMENT_LENGTH = TIME_LENGTH + 1 + UUID_LENGTH;
const UUID_PATTERN = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return text.length === UUID_LENGTH && UUID_PATTERN.test(text);
}

/** What is wrong with the claim, or null when nothing is. */
export function checkDottedOrder(claim: OrderClaim): string | null {
  const problem = findProblem(claim);
  if (problem === null) return null;
  return (
    `invalid 'dotted_order': ${problem} for run_id:${claim.runId} trace_id:${claim.traceId} ` +
    `dotted_order:${claim.dottedOrder} parent_run_id:${claim.parentRunId ?? '<nil>'}`
  );
}

function findProblem(claim: OrderClaim): string | null {
  const segments = claim.dottedOrder.split('.');
  let ancestorUs = -Infinity;
  let previousId: string | null = null;
  let lastId = '';
  let firstId = '';
  for (let index = 0; index < segments.length; index++) {
    const segment = segments[index] ?? '';
    const timeUs = segment.length === SEGMENT_LENGTH ? readSegmentTime(segment.slice(0, TIME_LENGTH)) : null;
    if (timeUs === null || segment[TIME_LENGTH] !== 'Z') return describeSegment(segment, index);
    const id = segment.slice(TIME_LENGTH + 1);
    if (!isUuid(id)) return `invalid run id in dotted_order ${id} at index ${index}`;
    if (timeUs < ancestorUs) {
      return `dotted_order has timestamp ${writePlain(timeUs)} earlier than parent timestamp ${writePlain(ancestorUs)}`;
    }
    ancestorUs = timeUs;
    previousId = index === 0 ? null : lastId;
    lastId = id.toLowerCase();
    if (index === 0) firstId = lastId;
  }
  if (claim.parentRunId === null && segments.length > 1) {
    return 'dotted_order must contain a single part for root runs';
  }
  if (typeof claim.parentRunId === 'string' && segments.length < 2) {
    return 'dotted_order must contain at least two parts for child runs';
  }
  if (lastId !== claim.runId) return `last run id ${lastId} in dotted_order is not the run's id`;
  if (firstId !== claim.traceId) return `first run id ${firstId} in dotted_order is not the trace_id`;
  if (typeof claim.parentRunId === 'string' && previousId !== claim.parentRunId) {
    return `run id ${previousId ?? ''} before the last in dotted_order is not the parent_run_id`;
  }
  if (claim.startUs !== null && Math.abs(ancestorUs - claim.startUs) > claim.toleranceUs) {
    return `last timestamp ${writePlain(ancestorUs)} in dotted_order is not the start_time ${writeRfc3339(claim.startUs)}`;
  }
  return null;
}

/** Says what keeps a segment from being one; the wrong number of fraction digits is the mistake that is made in practice. */
function describeSegment(segment: string, index: number): string {
  const time = segment.split('Z', 1)[0] ?? '';
  const fraction = /^\d{8}T\d{6}(\d*)$/.exec(time)?.[1];
  const detail = fraction !== undefined && fraction.length !== 6 ? `: cannot parse '.${fraction}' as '.000000'` : '';
  return `invalid timestamp in dotted_order ${time} at index ${index}${detail}`;
}
