/**
 * Spans that carry `langsmith.span.id`, `.parent_id`, `.dotted_order` or `langsmith.trace.id`: what they say, and where
 * that puts them. Rare, hence strings.
 */
import { Part, RecordFlag } from '../core/record.ts';
import type { RecordView } from '../core/recordview.ts';
import { ORDER_SEGMENT_BYTES, ORDER_TIME_BYTES } from '../core/run.ts';
import { parseCompact } from '../core/timestamp.ts';
import { uuidText } from './identity.ts';

/** Deeper spans hang on their ancestor at this depth: text grows with depth, so a deep chain would be quadratic. */
export const MAX_DEPTH = 256;

const UUID_BYTES = 16;

export interface Overrides {
  readonly runId: string | null;
  readonly parentRunId: string | null;
  readonly traceId: string | null;
  /** Only when it obeys the grammar and agrees with the other three: the backend refuses anything else. */
  readonly order: string | null;
}

export function readOverrides(record: RecordView): Overrides {
  record.readParts();
  let at = record.partStart(Part.Overrides);
  const end = at + record.partBytes(Part.Overrides);
  const takeId = (flag: number): string | null => {
    if ((record.flags & flag) === 0 || at + UUID_BYTES > end) return null;
    const text = uuidText(record.bytes, at);
    at += UUID_BYTES;
    return text;
  };
  const runId = takeId(RecordFlag.HasRunId);
  const parentRunId = takeId(RecordFlag.HasParentRunId);
  const traceId = takeId(RecordFlag.HasTraceId);
  const given = (record.flags & RecordFlag.HasDottedOrder) === 0 ? '' : record.bytes.toString('latin1', at, end);
  const order = isOrder(given) && agrees(given, runId, parentRunId, traceId) ? given : null;
  return { runId, parentRunId, traceId, order };
}

/** Where a whole dotted order begins its last segment. */
export function lastSegmentAt(order: string): number {
  return order.length - ORDER_SEGMENT_BYTES;
}

/** Text for a parent that is not ours: its own start is unknown, so it starts with its child. */
export function foreignOrder(time: string, traceId: string, parentRunId: string, runId: string): string {
  const parent = parentRunId === traceId ? '' : `.${time}${parentRunId}`;
  return `${time}${traceId}${parent}.${time}${runId}`;
}

function isOrder(text: string): boolean {
  const depth = (text.length + 1) / (ORDER_SEGMENT_BYTES + 1);
  if (!Number.isInteger(depth) || depth < 1 || depth >= MAX_DEPTH) return false;
  let earlier = '';
  for (const segment of text.split('.')) {
    const time = segment.slice(0, ORDER_TIME_BYTES);
    if (segment.length !== ORDER_SEGMENT_BYTES || time < earlier || Number.isNaN(parseCompact(time))) return false;
    if (!/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(segment.slice(ORDER_TIME_BYTES))) return false;
    earlier = time;
  }
  return true;
}

function agrees(order: string, runId: string | null, parentRunId: string | null, traceId: string | null): boolean {
  const ids = order.split('.').map((segment) => segment.slice(ORDER_TIME_BYTES));
  return (
    (runId === null || runId === ids.at(-1)) &&
    (parentRunId === null || parentRunId === ids.at(-2)) &&
    (traceId === null || traceId === ids[0])
  );
}
