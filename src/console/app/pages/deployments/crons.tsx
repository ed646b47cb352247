/** Crons: when each fires next, whether it does at all, and an end to it. */
import { useEffect, useState } from 'preact/hooks';
import { messageOf, useLoaded } from '../../api/load.ts';
import { Json } from '../../parts/json.tsx';
import { Empty, Trouble } from '../../parts/states.tsx';
import { useServices } from '../../services.ts';
import { useKeys } from '../../shell/keyboard.ts';
import type { Assistant, Cron, Deployments } from './api.ts';
import { Confirm } from './confirm.tsx';
import { threadHref } from './threads.tsx';
import { inTime, shortId, Time } from './words.tsx';

export interface CronsProps {
  readonly deployments: Deployments;
  readonly assistants: readonly Assistant[];
}

export function Crons({ deployments, assistants }: CronsProps) {
  const { toasts } = useServices();
  const crons = useLoaded((signal) => deployments.crons(signal), []);
  const [deleting, setDeleting] = useState<Cron | null>(null);
  const [nowMs, setNowMs] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNowMs(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  useKeys('Crons', [{ keys: 'r', label: 'Read again', run: () => crons.reload() }]);
  if (crons.error !== null && crons.value === null)
    return <Trouble message={crons.error} retry={() => crons.reload()} />;
  if (crons.value === null) return null;
  if (crons.value.length === 0) {
    return (
      <Empty title="No crons">
        <p>
          One is made by <code>POST /runs/crons</code> with an assistant, a schedule and an input.
        </p>
      </Empty>
    );
  }
  const act = (what: string, work: Promise<unknown>, done: string): void => {
    work.then(
      () => {
        toasts.note(done);
        crons.reload();
      },
      (reason: unknown) => toasts.error(`${what}: ${messageOf(reason)}`),
    );
  };
  return (
    <div class="deployments-page">
      <div class="table-frame table-tall" tabIndex={0} role="group" aria-label="Crons, table">
        <table class="plain-table">
          <thead>
            <tr>
              <th scope="col">schedule</th>
              <th scope="col">assistant</th>
              <th scope="col">thread</th>
              <th scope="col">next firing</th>
              <th scope="col">state</th>
              <th scope="col">asks for</th>
              <th scope="col">change</th>
            </tr>
          </thead>
          <tbody>
            {crons.value.map((cron) => (
              <tr key={cron.cron_id} data-cron={cron.cron_id}>
                <td>
                  <code>{cron.schedule}</code> <span class="quiet">{cron.timezone ?? 'UTC'}</span>
                </td>
                <td>
                  {assistants.find(({ assistant_id: id }) => id === cron.assistant_id)?.name ?? cron.assistant_id}
                </td>
                <td>
                  {cron.thread_id === null ? (
                    <span class="quiet">a new one each time</span>
                  ) : (
                    <a class="mono" href={threadHref(cron.thread_id)}>
                      {shortId(cron.thread_id)}
                    </a>
                  )}
                </td>
                <td>
                  {!cron.enabled || cron.next_run_date === null ? (
                    <span class="quiet">none</span>
                  ) : (
                    <>
                      <Time at={cron.next_run_date} /> <span class="quiet">{inTime(cron.next_run_date, nowMs)}</span>
                    </>
                  )}
                  {cron.end_time !== null && (
                    <div class="quiet">
                      until <Time at={cron.end_time} />
                    </div>
                  )}
                </td>
                <td>
                  <span class={`badge ${cron.enabled ? 'badge-good' : 'badge-warn'}`}>
                    {cron.enabled ? 'on' : 'paused'}
                  </span>
                </td>
                <td class="cron-payload">
                  <Json value={cron.payload} openDepth={0} />
                </td>
                <td>
                  <span class="ways-buttons">
                    <button
                      type="button"
                      class="small"
                      onClick={() =>
                        act(
                          'It could not be changed',
                          deployments.enableCron(cron.cron_id, !cron.enabled),
                          cron.enabled ? 'Cron paused' : 'Cron goes on',
                        )
                      }
                    >
                      {cron.enabled ? 'Pause' : 'Resume'}
                    </button>
                    <button type="button" class="small" onClick={() => setDeleting(cron)}>
                      Delete
                    </button>
                  </span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {deleting !== null && (
        <Confirm
          title="Delete this cron?"
          action="Delete"
          onCancel={() => setDeleting(null)}
          onConfirm={() => {
            setDeleting(null);
            act('It could not be deleted', deployments.deleteCron(deleting.cron_id), 'Cron deleted');
          }}
        >
          <p>
            <code>{deleting.schedule}</code> will not fire any more. What it started stays.
          </p>
        </Confirm>
      )}
    </div>
  );
}
