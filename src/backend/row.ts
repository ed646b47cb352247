/** A run as the lists have it: the row of table `runs`, made from an operation. */
import { durationBetween, readSegmentTime } from './moment.ts';
import type { RunOperation, RunStatus } from './record.ts';
import { oneLine, previewOf, usageOf } from './summary.ts';

export interface RunRow {
  readonly runNo: number;
  readonly tenant: string;
  readonly id: string;
  readonly traceNo: number;
  readonly projectNo: number;
  /** Bits of {@link OPERATION_BIT}. */
  readonly operations: number;
  readonly parentId: string | null;
  readonly name: string;
  readonly runType: string;
  readonly status: RunStatus;
  readonly startUs: number;
  readonly endUs: number | null;
  readonly durationUs: number | null;
  readonly dottedOrder: string;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly totalTokens: number | null;
  readonly cost: number | null;
  readonly tags: string | null;
  readonly preview: string | null;
  readonly error: string | null;
}

export const OPERATION_BIT = { post: 1, patch: 2 } as const;

const NAME_LENGTH = 300;
const ERROR_LENGTH = 500;
const TAGS_LENGTH = 500;
/** Of a segment of `dotted_order`: time, `Z`, id. */
const SEGMENT_LENGTH = 58;
const SEGMENT_TIME_LENGTH = 21;

/** Runs that count tokens themselves; chains repeat the sums of what they called. */
const COUNTS_TOKENS: ReadonlySet<string | null> = new Set(['llm', 'embedding']);

export function rowOf(
  operation: RunOperation,
  place: { runNo: number; tenant: string; traceNo: number; projectNo: number; operations: number },
): RunRow {
  const { documents } = operation;
  const error = documents.error?.value;
  const segment = operation.dottedOrder.slice(-SEGMENT_LENGTH);
  const startUs = operation.startUs ?? readSegmentTime(segment.slice(0, SEGMENT_TIME_LENGTH)) ?? 0;
  const { endUs } = operation;
  const usage = COUNTS_TOKENS.has(operation.runType)
    ? usageOf({ outputs: documents.outputs?.value, extra: documents.extra?.value })
    : null;
  return {
    runNo: place.runNo,
    tenant: place.tenant,
    id: operation.id,
    traceNo: place.traceNo,
    projectNo: place.projectNo,
    operations: place.operations,
    parentId: operation.parentId,
    name: oneLine(operation.name ?? '', NAME_LENGTH),
    runType: operation.runType ?? '',
    status: statusOf(operation),
    startUs,
    endUs,
    durationUs: durationBetween(startUs, endUs),
    dottedOrder: operation.dottedOrder,
    inputTokens: usage?.inputTokens ?? null,
    outputTokens: usage?.outputTokens ?? null,
    totalTokens: usage?.totalTokens ?? null,
    cost: usage?.cost ?? null,
    tags: operation.tags === null ? null : oneLine(operation.tags, TAGS_LENGTH),
    preview: previewOf(documents.inputs?.value),
    error: typeof error === 'string' ? oneLine(error, ERROR_LENGTH) : null,
  };
}

/** What the record says; a run with an end is not pending whatever it says, since an update may have brought the end. */
function statusOf(operation: RunOperation): RunStatus {
  if (operation.status !== null && !(operation.status === 'pending' && operation.endUs !== null)) {
    return operation.status;
  }
  if (operation.documents.error !== undefined) return 'error';
  return operation.endUs === null ? 'pending' : 'success';
}
