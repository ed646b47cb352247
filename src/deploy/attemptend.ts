/** How the end of an attempt reads to the store, and to those who wait for the run. Pure. */
import type { AttemptEnd, GraphState } from './graph/protocol.ts';
import type { RunResult } from './liveruns.ts';
import type { JsonText } from './store/model.ts';
import type { RunOutcome, ThreadStateSnapshot } from './store/repositories.ts';

export function failure(error: string, message: string): JsonText {
  return JSON.stringify({ error, message }) as JsonText;
}

export function outcomeOf(end: AttemptEnd, timeoutJson: JsonText): RunOutcome {
  if (end.kind === 'success') return { kind: 'success' };
  if (end.kind === 'error') return { kind: 'error', errorJson: end.errorJson };
  return end.reason === 'timeout' ? { kind: 'timeout', errorJson: timeoutJson } : { kind: 'cancelled' };
}

/** What a stopped run has left undone is not waited for: its thread is idle, with the values that it reached. */
export function snapshotOf(end: AttemptEnd, state: GraphState): ThreadStateSnapshot {
  return end.kind === 'aborted' ? { ...state, interruptsJson: null, hasNext: false } : state;
}

export function resultOf(end: AttemptEnd, timeoutJson: JsonText): RunResult {
  if (end.kind === 'success') return { kind: 'result', json: end.resultJson ?? ('{}' as JsonText) };
  if (end.kind === 'error') return failed(end.errorJson);
  return end.reason === 'timeout' ? failed(timeoutJson) : { kind: 'stored' };
}

export function failed(errorJson: JsonText): RunResult {
  return { kind: 'result', json: `{"__error__":${errorJson}}` as JsonText };
}
