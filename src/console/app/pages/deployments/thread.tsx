/** One thread: its state, its history to travel in, its runs. */
import { useState } from 'preact/hooks';
import { messageOf, useLoaded, useShown } from '../../api/load.ts';
import { useCopy } from '../../parts/copy.tsx';
import { Json } from '../../parts/json.tsx';
import { Trouble } from '../../parts/states.tsx';
import { useServices } from '../../services.ts';
import { useKeys } from '../../shell/keyboard.ts';
import type { Assistant, Deployments } from './api.ts';
import { playgroundHref } from './assistants.tsx';
import { Checkpoints } from './checkpoints.tsx';
import { Confirm } from './confirm.tsx';
import { Runs } from './runs.tsx';
import { StateView } from './state.tsx';
import { StatusBadge, Time } from './words.tsx';

export interface ThreadDetailProps {
  readonly deployments: Deployments;
  readonly assistants: readonly Assistant[];
  readonly threadId: string;
  readonly params: URLSearchParams;
  /** The list is out of date. */
  readonly onChange: () => void;
}

const TABS = ['state', 'history', 'runs'] as const;
const TAB_WORDS = { state: 'State', history: 'History', runs: 'Runs' } as const;

export function ThreadDetail({ deployments, assistants, threadId, params, onChange }: ThreadDetailProps) {
  const { router, toasts } = useServices();
  const copy = useCopy();
  const isShown = useShown();
  const [deleting, setDeleting] = useState(false);
  const tab = TABS.find((each) => each === params.get('tab')) ?? 'state';
  const setTab = (next: string): void => router.setParams({ tab: next, checkpoint: null });
  const thread = useLoaded((signal) => deployments.thread(threadId, signal), [threadId]);
  const state = useLoaded((signal) => deployments.state(threadId, signal), [threadId]);
  const reload = (): void => {
    thread.reload();
    state.reload();
    onChange();
  };
  useKeys('Thread', [
    { keys: 's', label: 'State', run: () => setTab('state') },
    { keys: 'h', label: 'History', run: () => setTab('history') },
    { keys: 'u', label: 'Runs', run: () => setTab('runs') },
    { keys: 'c', label: 'Copy its id', run: () => void copy(() => threadId, 'Id') },
  ]);

  if (thread.error !== null && thread.value === null)
    return <Trouble message={thread.error} retry={() => thread.reload()} />;
  if (thread.value === null) return <div class="duo-detail" />;
  const { status, metadata, created_at: createdAt, error } = thread.value;
  const assistant = assistants.find(
    ({ assistant_id: id, graph_id: graphId }) => id === metadata['assistant_id'] || graphId === metadata['graph_id'],
  );
  const act = (what: string, work: Promise<unknown>, then: () => void): void => {
    work.then(then, (reason: unknown) => toasts.error(`${what}: ${messageOf(reason)}`));
  };
  return (
    <article class="duo-detail" aria-label="Thread">
      <header class="thing-head">
        <h2 class="mono">{threadId}</h2>
        <StatusBadge status={status} />
        <span class="quiet">
          since <Time at={createdAt} />
        </span>
        <span class="grow" />
        <button
          type="button"
          class="small"
          onClick={() =>
            act('It could not be copied', deployments.copyThread(threadId), () => {
              toasts.note('Thread copied with its history');
              onChange();
            })
          }
        >
          Duplicate
        </button>
        <button type="button" class="small" onClick={() => setDeleting(true)}>
          Delete
        </button>
        {assistant !== undefined && (
          <a class="as-button primary" href={playgroundHref(assistant.assistant_id, { thread: threadId })}>
            Go on in the playground
          </a>
        )}
      </header>
      {error !== null && error !== undefined && (
        <div class="card card-bad" role="alert">
          <h3>Its last run failed</h3>
          <Json value={error} openDepth={2} />
        </div>
      )}
      <div class="thing-tabs" role="tablist" aria-label="Of this thread">
        {TABS.map((each) => (
          <button
            key={each}
            type="button"
            role="tab"
            id={`tab-${each}`}
            aria-selected={each === tab}
            aria-controls="thread-part"
            onClick={() => setTab(each)}
          >
            {TAB_WORDS[each]}
          </button>
        ))}
      </div>
      <div id="thread-part" role="tabpanel" aria-labelledby={`tab-${tab}`} class="tab-panel">
        {tab === 'state' && (
          <>
            {state.error !== null && <p class="bad">{state.error}</p>}
            {state.value !== null && <StateView state={state.value} />}
            <section class="card" aria-label="Metadata of the thread">
              <h3>Metadata</h3>
              <Json value={metadata} />
            </section>
          </>
        )}
        {tab === 'history' && (
          <Checkpoints
            deployments={deployments}
            threadId={threadId}
            assistant={assistant ?? null}
            chosenId={params.get('checkpoint')}
            onFork={reload}
          />
        )}
        {tab === 'runs' && <Runs deployments={deployments} threadId={threadId} assistants={assistants} />}
      </div>
      {deleting && (
        <Confirm
          title="Delete this thread?"
          action="Delete"
          onCancel={() => setDeleting(false)}
          onConfirm={() => {
            setDeleting(false);
            act('It could not be deleted', deployments.deleteThread(threadId), () => {
              toasts.note('Thread deleted');
              if (isShown()) router.go('/console/deployments/threads', { replace: true });
              onChange();
            });
          }}
        >
          <p>
            <code>{threadId}</code> goes with its state, its history and its runs.
          </p>
        </Confirm>
      )}
    </article>
  );
}
