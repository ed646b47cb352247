/** Time travel: the checkpoints of a thread, one of them opened, and ways on from it. */
import { useState } from 'preact/hooks';
import { messageOf, useLoaded, useShown } from '../../api/load.ts';
import { Trouble } from '../../parts/states.tsx';
import { useServices } from '../../services.ts';
import { useKeys } from '../../shell/keyboard.ts';
import type { Assistant, Deployments, ThreadState } from './api.ts';
import { playgroundHref } from './assistants.tsx';
import { readJson } from './jsontext.ts';
import { StateView } from './state.tsx';
import { asObject } from './transcript.ts';
import { Time } from './words.tsx';

export interface CheckpointsProps {
  readonly deployments: Deployments;
  readonly threadId: string;
  readonly assistant: Assistant | null;
  /** Null: the latest. */
  readonly chosenId: string | null;
  readonly onFork: () => void;
}

const FIRST_COUNT = 50;
const MAX_COUNT = 1000;

export function Checkpoints({ deployments, threadId, assistant, chosenId, onFork }: CheckpointsProps) {
  const { router } = useServices();
  const isShown = useShown();
  const [limit, setLimit] = useState(FIRST_COUNT);
  const history = useLoaded((signal) => deployments.history(threadId, limit, signal), [threadId], [limit]);
  const states = history.value ?? [];
  const chosen = states.find(({ checkpoint_id: id }) => id === chosenId) ?? states[0];
  const choose = (state: ThreadState | undefined): void => {
    if (state !== undefined) router.setParams({ checkpoint: state.checkpoint_id });
  };
  const at = chosen === undefined ? 0 : states.indexOf(chosen);
  useKeys('History', [
    { keys: 'ArrowDown', label: 'Earlier checkpoint', run: () => choose(states[at + 1]) },
    { keys: 'ArrowUp', label: 'Later checkpoint', run: () => choose(states[at - 1]) },
  ]);
  if (history.error !== null && history.value === null)
    return <Trouble message={history.error} retry={() => history.reload()} />;
  if (history.value === null) return null;
  if (chosen === undefined) return <p class="quiet">No checkpoint yet.</p>;
  return (
    <div class="travel">
      <ol class="checkpoints" aria-label="Checkpoints, the latest first">
        {states.map((state) => (
          <li key={state.checkpoint_id}>
            <button
              type="button"
              class="checkpoint"
              aria-current={state === chosen ? 'true' : undefined}
              onClick={() => choose(state)}
            >
              <span class="side-line">
                <b>step {word(state.metadata?.['step'])}</b>
                <span class={`badge ${state.metadata?.['source'] === 'update' ? 'badge-accent' : ''}`}>
                  {word(state.metadata?.['source'])}
                </span>
              </span>
              <span class="side-line quiet">
                <span class="cut">{state.next.length === 0 ? 'end' : `→ ${state.next.join(', ')}`}</span>
                {state.created_at !== null && <Time at={state.created_at} />}
              </span>
              {isBranch(states, state) && <span class="quiet">forked from an earlier one</span>}
            </button>
          </li>
        ))}
        {states.length >= limit && limit < MAX_COUNT && (
          <li>
            <button type="button" class="small" onClick={() => setLimit(MAX_COUNT)}>
              More
            </button>
          </li>
        )}
      </ol>
      <div class="travel-detail">
        {assistant !== null && chosen.checkpoint_id !== null && (
          <Ways
            key={chosen.checkpoint_id}
            deployments={deployments}
            threadId={threadId}
            assistant={assistant}
            state={chosen}
            checkpointId={chosen.checkpoint_id}
            onFork={(checkpointId) => {
              history.reload();
              onFork();
              if (isShown()) router.setParams({ checkpoint: checkpointId });
            }}
          />
        )}
        <StateView state={chosen} />
      </div>
    </div>
  );
}

/** Whether it does not follow from the checkpoint that is listed below it. */
function isBranch(states: readonly ThreadState[], state: ThreadState): boolean {
  const before = states[states.indexOf(state) + 1];
  return before !== undefined && state.parent_checkpoint_id !== before.checkpoint_id;
}

interface WaysProps {
  readonly deployments: Deployments;
  readonly threadId: string;
  readonly assistant: Assistant;
  readonly state: ThreadState;
  readonly checkpointId: string;
  readonly onFork: (checkpointId: string) => void;
}

function Ways({ deployments, threadId, assistant, state, checkpointId, onFork }: WaysProps) {
  const { toasts } = useServices();
  const [editing, setEditing] = useState(false);
  const [text, setText] = useState(() => proposal(state.values));
  const [asNode, setAsNode] = useState('');
  const [problem, setProblem] = useState<string | null>(null);
  const drawing = useLoaded(
    (signal) => deployments.graph(assistant.assistant_id, false, signal),
    [assistant.assistant_id],
  );
  const nodes = (drawing.value?.nodes ?? []).map(({ id }) => id).filter((id) => !id.startsWith('__'));
  const fork = (): void => {
    const typed = readJson(text, 'any');
    if (!typed.ok) return setProblem(typed.problem);
    deployments.fork(threadId, { values: typed.value, asNode, checkpointId }).then(
      ({ checkpoint }) => {
        toasts.note('Forked: a new checkpoint follows this one');
        onFork(checkpoint.checkpoint_id);
      },
      (reason: unknown) => setProblem(messageOf(reason)),
    );
  };
  return (
    <section class="card ways" aria-label="On from here">
      <div class="ways-buttons">
        <a
          class="as-button"
          href={playgroundHref(assistant.assistant_id, { thread: threadId, checkpoint: checkpointId })}
        >
          Run on from here
        </a>
        <button type="button" aria-expanded={editing} onClick={() => setEditing(!editing)}>
          Change and fork
        </button>
        <code class="quiet cut" title={checkpointId}>
          {checkpointId}
        </code>
      </div>
      {editing && (
        <form
          class="fork"
          onSubmit={(event) => {
            event.preventDefault();
            fork();
          }}
        >
          <label>
            Update, as JSON
            <textarea
              class="mono"
              rows={6}
              spellcheck={false}
              aria-invalid={problem !== null}
              aria-describedby="fork-problem"
              value={text}
              onInput={(event) => {
                setText(event.currentTarget.value);
                setProblem(null);
              }}
            />
          </label>
          <div class="ways-buttons">
            <label>
              as if written by{' '}
              <select value={asNode} onChange={(event) => setAsNode(event.currentTarget.value)}>
                <option value="">whoever wrote last</option>
                {nodes.map((node) => (
                  <option key={node}>{node}</option>
                ))}
              </select>
            </label>
            <button type="submit" class="primary">
              Fork
            </button>
            <span class="quiet">It goes through the graph’s reducers: lists may be added to, not replaced.</span>
          </div>
          <p id="fork-problem" class="bad" role="alert">
            {problem}
          </p>
        </form>
      )}
    </section>
  );
}

/** Everything but lists: those are mostly added to. */
function proposal(values: unknown): string {
  const object = asObject(values);
  if (object === null) return JSON.stringify(values, null, 2);
  return JSON.stringify(
    Object.fromEntries(Object.entries(object).filter(([, value]) => !Array.isArray(value))),
    null,
    2,
  );
}

function word(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '?';
}
