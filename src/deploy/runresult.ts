/** What a run has yielded, for those who ask after its end: read back from the store. */
import type { JsonText, JsonValue } from './store/model.ts';
import type { DeploymentStore } from './store/repositories.ts';

/** Null when there is nothing to tell. */
export async function storedResult(store: DeploymentStore, threadId: string, runId: string): Promise<JsonText | null> {
  const run = await store.runs.get(runId);
  // A rolled-back run has no record; its waiters get the thread as it was before.
  if (run !== null && (run.status === 'error' || run.status === 'timeout') && run.errorJson !== null)
    return `{"__error__":${run.errorJson}}` as JsonText;
  const thread = await store.threads.get(threadId);
  if (thread === null) return null;
  if (thread.interruptsJson === null) return thread.valuesJson;
  const interrupts = Object.values(JSON.parse(thread.interruptsJson) as Record<string, JsonValue[]>).flat();
  if (interrupts.length === 0) return thread.valuesJson;
  const head = thread.valuesJson !== null && /^\{\s*"/.test(thread.valuesJson) ? thread.valuesJson.slice(0, -1) : '{';
  return `${head}${head === '{' ? '' : ','}"__interrupt__":${JSON.stringify(interrupts)}}` as JsonText;
}
