/** Threads, the latest first, and one of them. */
import { useEffect, useState } from 'preact/hooks';
import { messageOf } from '../../api/load.ts';
import { Empty, Trouble } from '../../parts/states.tsx';
import { useServices } from '../../services.ts';
import { PAGE_COUNT, type Assistant, type Deployments, type ThreadStatus, type ThreadSummary } from './api.ts';
import { useChoice } from './choice.ts';
import { ThreadDetail } from './thread.tsx';
import { shortId, StatusBadge, Time } from './words.tsx';

export interface ThreadsProps {
  readonly deployments: Deployments;
  readonly assistants: readonly Assistant[];
  readonly chosenId: string | null;
  readonly params: URLSearchParams;
}

const STATUSES: readonly ThreadStatus[] = ['idle', 'busy', 'interrupted', 'error'];

export function Threads({ deployments, assistants, chosenId, params }: ThreadsProps) {
  const { router } = useServices();
  const status = STATUSES.find((each) => each === params.get('status')) ?? null;
  const [found, setFound] = useState<readonly ThreadSummary[] | null>(null);
  const [isWhole, setWhole] = useState(false);
  const [error, setError] = useState<string | null>(null);
  const [round, setRound] = useState(0);
  const [pageCount, setPageCount] = useState(1);
  const reload = (): void => setRound((before) => before + 1);

  useEffect(() => {
    const aborter = new AbortController();
    const offsets = Array.from({ length: pageCount }, (_, page) => page * PAGE_COUNT);
    const search = (offset: number): Promise<ThreadSummary[]> =>
      deployments.threads({ offset, ...(status === null ? {} : { status }) }, aborter.signal);
    Promise.all(offsets.map(search)).then(
      (pages) => {
        if (aborter.signal.aborted) return;
        setFound(pages.flat());
        setWhole((pages.at(-1)?.length ?? 0) < PAGE_COUNT);
        setError(null);
      },
      (reason: unknown) => {
        if (!aborter.signal.aborted) setError(messageOf(reason));
      },
    );
    return () => aborter.abort();
  }, [deployments, status, pageCount, round]);

  const shownId = chosenId ?? found?.[0]?.thread_id ?? null;
  const list = useChoice(
    'Threads',
    (found ?? []).map(({ thread_id: id }) => id),
    shownId,
    (id) => router.go(threadHref(id, params), { replace: true }),
    [{ keys: 'r', label: 'Read again', run: reload }],
  );
  if (error !== null && found === null) return <Trouble message={error} retry={reload} />;
  return (
    <div class="duo">
      <div class="side">
        <div class="side-head">
          <select
            aria-label="Status"
            value={status ?? ''}
            onChange={({ currentTarget: { value } }) => router.setParams({ status: value === '' ? null : value })}
          >
            <option value="">Any status</option>
            {STATUSES.map((each) => (
              <option key={each}>{each}</option>
            ))}
          </select>
          <button type="button" class="small" onClick={reload}>
            Read again
          </button>
        </div>
        <ul ref={list} class="side-list" aria-label="Threads">
          {found?.map(({ thread_id: id, status: now, metadata, updated_at: updatedAt }) => (
            <li key={id}>
              <a href={threadHref(id, params)} title={id} aria-current={id === shownId ? 'true' : undefined}>
                <span class="side-line">
                  <code>{shortId(id)}</code>
                  <StatusBadge status={now} />
                </span>
                <span class="side-line quiet">
                  <span class="cut">
                    {typeof metadata['graph_id'] === 'string' ? metadata['graph_id'] : 'nothing run'}
                  </span>
                  <Time at={updatedAt} />
                </span>
              </a>
            </li>
          ))}
          {found !== null && !isWhole && (
            <li>
              <button type="button" class="small" onClick={() => setPageCount(pageCount + 1)}>
                More
              </button>
            </li>
          )}
        </ul>
      </div>
      {shownId !== null ? (
        <ThreadDetail
          key={shownId}
          deployments={deployments}
          assistants={assistants}
          threadId={shownId}
          params={params}
          onChange={reload}
        />
      ) : (
        found !== null && (
          <Empty title="No threads">
            <p>
              The <a href="/console/deployments/playground">playground</a> makes one.
            </p>
          </Empty>
        )
      )}
    </div>
  );
}

/** Keeps what the list is narrowed to, and the part that is looked at. */
export function threadHref(id: string, params?: URLSearchParams): string {
  const kept = new URLSearchParams();
  for (const name of ['status', 'tab']) {
    const value = params?.get(name);
    if (value) kept.set(name, value);
  }
  const query = kept.toString();
  return `/console/deployments/threads/${encodeURIComponent(id)}${query === '' ? '' : `?${query}`}`;
}
