/** The playground: choose an assistant and a thread, say something, watch the run, answer what it asks. */
import { useEffect, useState } from 'preact/hooks';
import { useLoaded } from '../../api/load.ts';
import { Json } from '../../parts/json.tsx';
import { Empty } from '../../parts/states.tsx';
import { useServices } from '../../services.ts';
import { useKeys } from '../../shell/keyboard.ts';
import { readConversation } from '../trace/conversation.ts';
import { Messages } from '../trace/messages.tsx';
import type { Assistant, Deployments } from './api.ts';
import { Composer } from './composer.tsx';
import { Resume } from './resume.tsx';
import { STREAM_MODES, useSession, type Choice } from './session.ts';
import { Steps } from './steps.tsx';
import { threadHref } from './threads.tsx';
import type { Transcript } from './transcript.ts';
import { shortId } from './words.tsx';

export interface PlaygroundProps {
  readonly deployments: Deployments;
  readonly assistants: readonly Assistant[];
  readonly params: URLSearchParams;
}

export function Playground({ deployments, assistants, params }: PlaygroundProps) {
  const { router } = useServices();
  const assistant = assistants.find(({ assistant_id: id }) => id === params.get('assistant')) ?? assistants[0];
  if (assistant === undefined) {
    return (
      <Empty title="Nothing to try">
        <p>Name graphs in a langgraph.json.</p>
      </Empty>
    );
  }
  const choice: Choice = {
    assistantId: assistant.assistant_id,
    thread: params.get('thread') ?? 'new',
    checkpointId: params.get('checkpoint'),
  };
  return (
    <Table
      deployments={deployments}
      assistants={assistants}
      assistant={assistant}
      choice={choice}
      setChoice={(change) => router.setParams(change)}
    />
  );
}

interface TableProps extends Omit<PlaygroundProps, 'params'> {
  readonly assistant: Assistant;
  readonly choice: Choice;
  readonly setChoice: (change: Readonly<Record<string, string | null>>) => void;
}

function Table({ deployments, assistants, assistant, choice, setChoice }: TableProps) {
  const [modes, setModes] = useState<readonly string[]>(['values', 'updates', 'messages-tuple']);
  const [subgraphs, setSubgraphs] = useState(false);
  const [stepwise, setStepwise] = useState(false);
  const [webhook, setWebhook] = useState('');
  const session = useSession(deployments, choice, { modes, subgraphs, stepwise, webhook }, (threadId) =>
    setChoice({ thread: threadId, checkpoint: null }),
  );
  const threads = useLoaded((signal) => deployments.threads({ offset: 0 }, signal), [], [choice.thread]);
  const schemas = useLoaded((signal) => deployments.schemas(assistant.assistant_id, signal), [assistant.assistant_id]);
  const { transcript } = session;
  const isRunning = transcript.phase === 'running';
  useKeys('Playground', [
    {
      keys: 'Escape',
      label: 'Cancel the run',
      run: () => {
        if (!isRunning) return false;
        session.cancel();
        return true;
      },
    },
    { keys: 'n', label: 'New thread', run: () => setChoice({ thread: null, checkpoint: null }) },
    { keys: 'i', label: 'Write', run: () => document.getElementById('composer')?.focus() },
  ]);
  const known = (threads.value ?? []).filter(({ metadata }) => metadata['graph_id'] === assistant.graph_id);
  const ids = known.map(({ thread_id: id }) => id);
  const own =
    choice.thread !== 'new' && choice.thread !== 'none' && !ids.includes(choice.thread) ? [choice.thread] : [];
  return (
    <div class="playground">
      <form class="setup" aria-label="Set-up" onSubmit={(event) => event.preventDefault()}>
        <label>
          Assistant
          <select
            value={assistant.assistant_id}
            disabled={isRunning}
            onChange={(event) => setChoice({ assistant: event.currentTarget.value, thread: null, checkpoint: null })}
          >
            {assistants.map(({ assistant_id: id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          Thread
          <select
            value={choice.thread}
            disabled={isRunning}
            onChange={({ currentTarget: { value } }) =>
              setChoice({ thread: value === 'new' ? null : value, checkpoint: null })
            }
          >
            <option value="new">A new one</option>
            <option value="none">None: stateless</option>
            {[...own, ...ids].map((id) => (
              <option key={id} value={id}>
                {shortId(id)}
              </option>
            ))}
          </select>
        </label>
        {choice.thread !== 'new' && choice.thread !== 'none' && (
          <a href={threadHref(choice.thread)}>Look at the thread</a>
        )}
        {choice.checkpointId !== null && (
          <p class="notice">
            From checkpoint <code>{shortId(choice.checkpointId)}</code>{' '}
            <button type="button" class="link" onClick={() => setChoice({ checkpoint: null })}>
              from the latest instead
            </button>
          </p>
        )}
        <fieldset>
          <legend>Stream modes</legend>
          {STREAM_MODES.map((mode) => (
            <label key={mode} class="check">
              <input
                type="checkbox"
                checked={modes.includes(mode)}
                onChange={() =>
                  setModes(modes.includes(mode) ? modes.filter((each) => each !== mode) : [...modes, mode])
                }
              />
              {mode}
            </label>
          ))}
        </fieldset>
        <label class="check">
          <input type="checkbox" checked={subgraphs} onChange={() => setSubgraphs(!subgraphs)} /> subgraphs too
        </label>
        <label class="check">
          <input type="checkbox" checked={stepwise} onChange={() => setStepwise(!stepwise)} /> stop before every node
        </label>
        <label>
          Webhook
          <input
            type="url"
            placeholder="https://…"
            value={webhook}
            onInput={(event) => setWebhook(event.currentTarget.value.trim())}
          />
        </label>
      </form>
      <section class="talk" aria-label="Run">
        <h2 class="hidden">Run</h2>
        <Head transcript={transcript} onCancel={() => session.cancel()} />
        <Talk transcript={transcript} />
        {!isRunning && transcript.interrupts.length > 0 && (
          <Resume
            interrupts={transcript.interrupts}
            disabled={choice.thread === 'none'}
            onResume={(resume) => session.run({ command: { resume } }, [])}
          />
        )}
        {transcript.error !== null && (
          <p class="card card-bad" role="alert">
            {transcript.error}
          </p>
        )}
        {schemas.value === null ? (
          <p class={schemas.error === null ? 'quiet' : 'bad'} role={schemas.error === null ? undefined : 'alert'}>
            {schemas.error ?? 'Reading what the graph takes…'}
          </p>
        ) : (
          <Composer
            key={assistant.assistant_id}
            schema={schemas.value.input_schema}
            disabled={isRunning}
            canGoOn={transcript.values !== null && transcript.interrupts.length === 0}
            onSend={(input, messages) => session.run({ input }, messages)}
          />
        )}
      </section>
      <Steps steps={transcript.steps} />
    </div>
  );
}

const PHASE_WORDS: Readonly<Record<Transcript['phase'], readonly [words: string, tone: string]>> = {
  ready: ['ready', ''],
  running: ['running', 'badge-accent'],
  ended: ['ended', 'badge-good'],
  interrupted: ['waits for an answer', 'badge-warn'],
  failed: ['failed', 'badge-bad'],
  cancelled: ['cancelled', 'badge-warn'],
};

function Head({ transcript, onCancel }: { readonly transcript: Transcript; readonly onCancel: () => void }) {
  const { facts } = useServices();
  const [words, tone] = PHASE_WORDS[transcript.phase];
  const { runId } = transcript;
  return (
    <header class="talk-head">
      <span role="status">
        <span class={`badge ${tone}`}>{words}</span>
      </span>
      {runId !== null && (
        <code class="quiet" title={runId}>
          {shortId(runId)}
        </code>
      )}
      {runId !== null && transcript.phase !== 'running' && facts.value?.traces === true && (
        <a href={`/console/trace/${runId}`}>Its trace</a>
      )}
      <span class="grow" />
      <span class="quiet">{transcript.eventCount} events</span>
      {transcript.phase === 'running' && (
        <button type="button" class="small" onClick={onCancel}>
          Cancel
        </button>
      )}
    </header>
  );
}

function Talk({ transcript }: { readonly transcript: Transcript }) {
  const [end, setEnd] = useState<HTMLElement | null>(null);
  const { messages, values, eventCount } = transcript;
  useEffect(() => end?.scrollIntoView({ block: 'end' }), [end, eventCount, messages.length]);
  const conversation = messages.length === 0 ? null : readConversation({ messages });
  const rest = conversation === null ? values : readConversation(values)?.rest;
  const hasRest = rest !== null && rest !== undefined && Object.keys(rest).length > 0;
  return (
    <div class="talk-body" tabIndex={0} role="log" aria-label="What the run says">
      {conversation !== null && <Messages messages={conversation.messages} />}
      {hasRest && (
        <section class="card" aria-label="Values">
          <h3>Values</h3>
          <Json value={rest} openDepth={3} />
        </section>
      )}
      {conversation === null && !hasRest && transcript.phase === 'ready' && (
        <p class="quiet talk-empty">Say something below; what the run answers is shown here as it comes.</p>
      )}
      <div ref={setEnd} />
    </div>
  );
}
