/** Whether a run that arrived is the span that was sent: name, times, attributes, messages, place in its trace. */
import { isDeepStrictEqual } from 'node:util';
import { placeOf, traceNumberOf, traceOf, type TraceSpec } from './workload.ts';

export interface ArrivedRun {
  readonly apiKey: string;
  readonly id: string;
  readonly run: Record<string, unknown>;
  /** Its other parts, as JSON text, by field name. */
  readonly fields: Record<string, string>;
}

export interface Arrival {
  readonly number: number;
  readonly index: number;
  /** What differs from what was sent, in words. */
  readonly differences: readonly string[];
}

/** Null: no run of this seed. */
export function checkArrival(seed: number, arrived: ArrivedRun): Arrival | null {
  const { run } = arrived;
  const traceId = String(run['trace_id']).replaceAll('-', '');
  const number = traceNumberOf(seed, traceId);
  if (number === null) return null;
  const isRoot = arrived.id === uuid(traceId);
  const spanId = arrived.id.replaceAll('-', '').slice(16);
  const index = isRoot ? 0 : placeOf(spanId).index;
  const trace = traceOf(seed, number);
  const span = trace.spans[index];
  if (span === undefined || (!isRoot && (placeOf(spanId).number !== number || index === 0))) return null;

  const differences: string[] = [];
  const expect = (what: string, found: unknown, expected: unknown): void => {
    if (isDeepStrictEqual(found, expected)) return;
    differences.push(`${what} is ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`.slice(0, 500));
  };
  expect('key', arrived.apiKey, keyOf(number));
  expect('id', run['id'], arrived.id);
  expect('name', run['name'], span.name);
  if (!isPlaceholdersStart(trace, index, run['start_time'])) {
    expect('start_time', run['start_time'], microseconds(span.startMs));
  }
  expect('end_time', run['end_time'], microseconds(span.endMs));
  expect('run_type', run['run_type'], 'llm');
  const extra = parse(arrived.fields['extra']) as { metadata?: Record<string, unknown> } | undefined;
  for (const [name, value] of Object.entries(span.attributes)) expect(name, extra?.metadata?.[name], value);
  expect('inputs', parse(arrived.fields['inputs']), { messages: [{ role: 'user', content: span.question }] });
  expect('outputs', parse(arrived.fields['outputs']), { messages: [{ role: 'assistant', content: span.answer }] });
  checkPlace(trace, index, run, differences);
  return { number, index, differences };
}

/**
 * A root that comes long after its children, in a request of its own, takes the start of the placeholder under which they
 * have left: that of the earliest of them. Whatever else comes that late begins no earlier than this root.
 */
function isPlaceholdersStart(trace: TraceSpec, index: number, found: unknown): boolean {
  const [early = [], late = []] = trace.requests;
  const ownMs = trace.spans[index]?.startMs ?? 0;
  if (!late.includes(index)) return false;
  return early.some((child) => {
    const startMs = trace.spans[child]?.startMs ?? 0;
    return startMs > ownMs && found === microseconds(startMs);
  });
}

function checkPlace(trace: TraceSpec, index: number, run: Record<string, unknown>, differences: string[]): void {
  const path: string[] = [];
  for (let at = index; at >= 0; at = trace.spans[at]?.parent ?? -1) path.unshift(runIdOf(trace, at));
  const parent = path.at(-2);
  const order = String(run['dotted_order']).split('.');
  const orderIds = order.map((segment) => segment.slice(segment.indexOf('Z') + 1));
  const isExact = run['parent_run_id'] === parent && isDeepStrictEqual(orderIds, path);
  if (isExact) return;
  // Of a trace in two requests one half may have been forgotten with the process in between: then its spans hang on the
  // root, or below one that does. What they hang on is an ancestor in any case.
  const isBelowAncestors =
    trace.requests.length > 1 &&
    path.includes(String(run['parent_run_id'])) &&
    orderIds.at(-1) === run['id'] &&
    orderIds.at(-2) === run['parent_run_id'] &&
    orderIds.every((id) => path.includes(id));
  if (!isBelowAncestors) {
    differences.push(
      `parent ${String(run['parent_run_id'])} instead of ${parent ?? 'none'}, order ${orderIds.join(' ')}`,
    );
  }
}

export function runIdOf(trace: TraceSpec, index: number): string {
  return uuid(index === 0 ? trace.traceId : (trace.spans[index]?.spanId ?? '').padStart(32, '0'));
}

/** Two keys, so that tenants and their batches are told apart. */
export function keyOf(number: number): string {
  return number % 5 === 0 ? 'chaos-key-two' : 'chaos-key-one';
}

function uuid(hex: string): string {
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

function microseconds(ms: number): string {
  return new Date(ms).toISOString().replace('Z', '000Z');
}

function parse(text: string | undefined): unknown {
  return text === undefined ? undefined : JSON.parse(text);
}
