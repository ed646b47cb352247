/** What a run has yielded, for those who ask after its end: read back from the store. */
import type { JsonText, JsonValue } from './store/model.ts';
import type { DeploymentStore } from './store/repositories.ts';

/** What the end of a run says to those who wait for it; null when it says nothing. */
export function resultJson(
  errorJson: JsonText | null,
  state: { valuesJson: JsonText | null; interruptsJson: JsonText | null } | null,
): JsonText | null {
  if (errorJson !== null) return `{"__error__":${errorJson}}` as JsonText;
  if (state === null || state.interruptsJson === null) return state?.valuesJson ?? null;
  const { valuesJson } = state;
  const interrupts = Object.values(JSON.parse(state.interruptsJson) as Record<string, JsonValue[]>).flat();
  if (interrupts.length === 0) return valuesJson;
  const head = valuesJson !== null && /^\{\s*"/.test(valuesJson) ? valuesJson.slice(0, -1) : '{';
  return `${head}${head === '{' ? '' : ','}"__interrupt__":${JSON.stringify(interrupts)}}` as JsonText;
}

/** Null when there is nothing to tell. */
export async function storedResult(store: DeploymentStore, threadId: string, runId: string): Promise<JsonText | null> {
  const run = await store.runs.get(runId);
  const hasFailed = run !== null && (run.status === 'error' || run.status === 'timeout');
  const thread = await store.threads.get(threadId);
  // A stateless run that another process has executed: gone with its thread, but for what it said.
  if (run === null && thread === null) return store.events.result(runId);
  // A rolled-back run has no record; its waiters get the thread as it was before.
  return resultJson(hasFailed ? run.errorJson : null, thread);
}
