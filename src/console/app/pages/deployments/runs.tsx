/** The runs of a thread: how each went, what was asked for, and what became of its webhook. */
import { useState } from 'preact/hooks';
import { messageOf, useLoaded } from '../../api/load.ts';
import { duration } from '../../parts/format.ts';
import { Json } from '../../parts/json.tsx';
import { Trouble } from '../../parts/states.tsx';
import { useServices } from '../../services.ts';
import type { Assistant, Deployments, Run } from './api.ts';
import { shortId, StatusBadge, Time } from './words.tsx';

export interface RunsProps {
  readonly deployments: Deployments;
  readonly threadId: string;
  readonly assistants: readonly Assistant[];
}

export function Runs({ deployments, threadId, assistants }: RunsProps) {
  const runs = useLoaded((signal) => deployments.runs(threadId, signal), [threadId]);
  const [openId, setOpenId] = useState<string | null>(null);
  if (runs.error !== null && runs.value === null) return <Trouble message={runs.error} retry={() => runs.reload()} />;
  if (runs.value === null) return null;
  if (runs.value.length === 0) return <p class="quiet">No run yet.</p>;
  return (
    <div class="table-frame table-tall" tabIndex={0} role="group" aria-label="Runs, table">
      <table class="plain-table">
        <thead>
          <tr>
            <th scope="col">run</th>
            <th scope="col">status</th>
            <th scope="col">assistant</th>
            <th scope="col">begun</th>
            <th scope="col" class="num">
              took
            </th>
            <th scope="col">webhook</th>
          </tr>
        </thead>
        <tbody>
          {runs.value.map((run) => (
            <RunRow
              key={run.run_id}
              run={run}
              name={assistants.find(({ assistant_id: id }) => id === run.assistant_id)?.name ?? run.assistant_id}
              open={run.run_id === openId}
              onToggle={() => setOpenId(run.run_id === openId ? null : run.run_id)}
              deployments={deployments}
              onChange={() => runs.reload()}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface RunRowProps {
  readonly run: Run;
  readonly name: string;
  readonly open: boolean;
  readonly onToggle: () => void;
  readonly deployments: Deployments;
  readonly onChange: () => void;
}

function RunRow({ run, name, open, onToggle, deployments, onChange }: RunRowProps) {
  const { facts, toasts } = useServices();
  const isActive = run.status === 'pending' || run.status === 'running';
  const webhook = run.kwargs['webhook'];
  const cancel = (): void => {
    deployments
      .cancelRun(run.thread_id, run.run_id)
      .then(onChange, (reason: unknown) => toasts.error(`It could not be cancelled: ${messageOf(reason)}`));
  };
  return (
    <>
      <tr>
        <td>
          <button type="button" class="link mono" aria-expanded={open} title={run.run_id} onClick={onToggle}>
            {shortId(run.run_id)}
          </button>
        </td>
        <td>
          <StatusBadge status={run.status} />
        </td>
        <td>{name}</td>
        <td>
          <Time at={run.created_at} />
        </td>
        <td class="num">{isActive ? '–' : duration(Date.parse(run.updated_at) - Date.parse(run.created_at))}</td>
        <td class="quiet">{typeof webhook === 'string' ? <span class="cut">{webhook}</span> : 'none'}</td>
      </tr>
      {open && (
        <tr>
          <td colSpan={6} class="run-detail">
            <p class="ways-buttons">
              <code class="quiet">{run.run_id}</code>
              {facts.value?.traces === true && <a href={`/console/trace/${run.run_id}`}>Its trace</a>}
              {isActive && (
                <button type="button" class="small" onClick={cancel}>
                  Cancel
                </button>
              )}
            </p>
            <Webhooks deployments={deployments} runId={run.run_id} />
            <h3>Asked for</h3>
            <Json value={run.kwargs} openDepth={2} />
          </td>
        </tr>
      )}
    </>
  );
}

function Webhooks({ deployments, runId }: { readonly deployments: Deployments; readonly runId: string }) {
  const { value, error } = useLoaded((signal) => deployments.webhooks(runId, signal), [runId]);
  if (error !== null) return <p class="bad">{error}</p>;
  if (value === null || value.length === 0) return null;
  return (
    <>
      {value.map(({ webhook_id: id, url, status, attempts, next_attempt_at: nextAt }) => (
        <section key={id} class="webhook" aria-label="Webhook">
          <p>
            <b>Webhook</b> <span class="badge">{status}</span> <code>{url}</code>{' '}
            {nextAt !== null && (
              <span class="quiet">
                tried again at <Time at={nextAt} />
              </span>
            )}
          </p>
          <ol class="attempts">
            {attempts.map(({ number, started_at: at, duration_ms: tookMs, status_code: code, error: why }) => (
              <li key={number}>
                <Time at={at} /> <span class={why === null ? 'good' : 'bad'}>{code ?? 'no answer'}</span>{' '}
                <span class="quiet">{duration(tookMs)}</span> {why}
              </li>
            ))}
          </ol>
        </section>
      ))}
    </>
  );
}
