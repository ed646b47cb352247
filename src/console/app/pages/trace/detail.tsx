/** The selected run: what went in and out as people read it, its metadata, and all of it as JSON. */
import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { RunDetail, TraceRun } from '../../../../backend/api.ts';
import { useLoaded } from '../../api/load.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { parseExactJson } from '../../parts/exactjson.ts';
import { cost, count, duration, time, wholeTime } from '../../parts/format.ts';
import { Json } from '../../parts/json.tsx';
import { RunTypeIcon, STATUS_WORDS } from '../../parts/runtype.tsx';
import { Trouble } from '../../parts/states.tsx';
import { useServices } from '../../services.ts';
import { useKeys } from '../../shell/keyboard.ts';
import { Attachments } from './attachments.tsx';
import { asObject, readConversation } from './conversation.ts';
import { Documents, readDocuments } from './documents.tsx';
import { Anything, Messages } from './messages.tsx';
import { Metadata } from './metadata.tsx';

const TABS = ['Run', 'Metadata', 'JSON'] as const;
type Tab = (typeof TABS)[number];

export interface DetailProps {
  readonly run: TraceRun;
  readonly tenant: string;
  /** Changes when the run may have changed. */
  readonly round: number;
}

export function Detail({ run, tenant, round }: DetailProps) {
  const { api, key } = useServices();
  const [tab, setTab] = useState<Tab>('Run');
  const path = `/api/runs/${run.id}`;
  const text = useLoaded((signal) => api.text(path, { query: { tenant }, signal }), [run.id, tenant], [round]);
  const detail = useParsed(text.value, run.id);
  useKeys('Trace', [
    ...TABS.map((name, index) => ({ keys: String(index + 1), label: `${name} of the run`, run: () => setTab(name) })),
  ]);
  return (
    <section class="detail" aria-label="Selected run">
      <header class="detail-head">
        <div class="detail-title">
          <RunTypeIcon type={run.run_type} />
          <h2 class="cut" title={run.name}>
            {run.name}
          </h2>
          <span
            class={`badge ${run.status === 'error' ? 'badge-bad' : run.status === 'pending' ? 'badge-accent' : 'badge-good'}`}
          >
            {STATUS_WORDS[run.status]}
          </span>
        </div>
        <dl class="facts">
          <Fact name="Duration">{duration(run.duration_ms)}</Fact>
          <Fact name="Start">
            <span title={wholeTime(run.start_time)}>{time(run.start_time)}</span>
          </Fact>
          {run.total_tokens !== null && (
            <Fact name="Tokens">
              {count(run.prompt_tokens ?? 0)} in, {count(run.completion_tokens ?? 0)} out
            </Fact>
          )}
          {run.total_cost !== null && <Fact name="Cost">{cost(run.total_cost)}</Fact>}
          {modelOf(detail) !== '' && <Fact name="Model">{modelOf(detail)}</Fact>}
        </dl>
        <div class="detail-bar">
          <div role="tablist" aria-label="Views of the run" class="tabs">
            {TABS.map((name) => (
              <button
                key={name}
                type="button"
                role="tab"
                id={`tab-${name}`}
                aria-selected={tab === name}
                aria-controls="run-panel"
                onClick={() => setTab(name)}
              >
                {name}
              </button>
            ))}
          </div>
          <span class="grow" />
          <CopyButton what="JSON" text={() => text.value ?? api.text(path, { query: { tenant } })}>
            JSON
          </CopyButton>
          <CopyButton what="Command" text={() => curlOf(api.url(path), key.value.peek() !== '')}>
            curl
          </CopyButton>
          <CopyButton what="Link" text={() => linkOf(run.id)}>
            Link
          </CopyButton>
        </div>
      </header>
      <div class="detail-body" id="run-panel" role="tabpanel" aria-labelledby={`tab-${tab}`} tabIndex={0}>
        {text.error !== null && text.value === null ? (
          <Trouble message={text.error} retry={() => text.reload()} />
        ) : detail === null ? null : tab === 'Run' ? (
          <RunView detail={detail} />
        ) : tab === 'Metadata' ? (
          <Metadata detail={detail} />
        ) : (
          <Json value={detail} openDepth={2} />
        )}
      </div>
    </section>
  );
}

/** The last detail of this run, parsed once; null while another one's is on its way. */
function useParsed(text: string | null, id: string): RunDetail | null {
  const [parsed, setParsed] = useState<RunDetail | null>(null);
  useEffect(() => setParsed(text === null ? null : (parseExactJson(text) as RunDetail)), [text]);
  return parsed?.id === id ? parsed : null;
}

function RunView({ detail }: { readonly detail: RunDetail }) {
  const isTool = detail.run_type === 'tool';
  return (
    <>
      {detail.error !== null && detail.error !== '' && (
        <Part title="Error" tone="bad">
          <pre class="stack" tabIndex={0}>
            {detail.error}
          </pre>
        </Part>
      )}
      <Side title={isTool ? 'Arguments' : 'Input'} document={detail.inputs} />
      <Side title={isTool ? 'Result' : 'Output'} document={detail.outputs} />
      {detail.attachments.length > 0 && (
        <Part title="Attachments">
          <Attachments run={detail} />
        </Part>
      )}
    </>
  );
}

function Side({ title, document }: { readonly title: string; readonly document: RunDetail['inputs'] }) {
  if (document === null || Object.keys(document).length === 0) {
    return (
      <Part title={title}>
        <p class="quiet">none</p>
      </Part>
    );
  }
  const conversation = readConversation(document);
  if (conversation !== null) {
    const { tools, usage_metadata: _usage, ...rest } = conversation.rest;
    return (
      <Part title={title}>
        <Messages messages={conversation.messages} />
        {Array.isArray(tools) && tools.length > 0 && (
          <details>
            <summary>
              {tools.length} {tools.length === 1 ? 'tool' : 'tools'} offered
            </summary>
            <Json value={tools} openDepth={1} />
          </details>
        )}
        {Object.keys(rest).length > 0 && <Json value={rest} openDepth={1} />}
      </Part>
    );
  }
  const documents = readDocuments(document);
  if (documents !== null) {
    const { documents: _documents, ...rest } = document;
    return (
      <Part title={`${title}: ${count(documents.length)} documents`}>
        <Documents documents={documents} />
        {Object.keys(rest).length > 0 && <Json value={rest} openDepth={1} />}
      </Part>
    );
  }
  return (
    <Part title={title}>
      <Anything value={bareText(document) ?? document} />
    </Part>
  );
}

/** The text of a document that was made around it, since runs have objects only. */
function bareText(document: Readonly<Record<string, unknown>>): string | null {
  const [entry, another] = Object.entries(document);
  if (entry === undefined || another !== undefined) return null;
  const [name, value] = entry;
  return (name === 'input' || name === 'output') && typeof value === 'string' ? value : null;
}

export function Part(props: { readonly title: string; readonly tone?: 'bad'; readonly children: ComponentChildren }) {
  return (
    <section class={props.tone === 'bad' ? 'part part-bad' : 'part'}>
      <h3>{props.title}</h3>
      {props.children}
    </section>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function modelOf(detail: RunDetail | null): string {
  const model = asObject(detail?.extra?.['metadata'])?.['ls_model_name'];
  return typeof model === 'string' ? model : '';
}

/** The key stays out of it: it would end up in a shell's history, or in a chat. */
function curlOf(url: string, needsKey: boolean): string {
  return `curl '${url}'${needsKey ? ' -H "x-api-key: $DEPLOYMENT_API_KEY"' : ''}`;
}

function linkOf(runId: string): string {
  const url = new URL(location.href);
  url.searchParams.set('run', runId);
  return url.href;
}
