/** The live list of traces. */
import { useCallback, useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Project, Stats, TraceSummary } from '../../../../backend/api.ts';
import { useLoaded } from '../../api/load.ts';
import { Empty, Trouble } from '../../parts/states.tsx';
import { useServices } from '../../services.ts';
import { useKeys } from '../../shell/keyboard.ts';
import type { PageProps } from '../../shell/page.tsx';
import '../../style/traces.css';
import { isNarrowed, PARAM_NAMES, queryOf, readFilter } from './filter.ts';
import { Filters } from './filters.tsx';
import { Heatmap } from './heatmap.tsx';
import { followTraces, traceKey, type TraceList } from './list.ts';
import { Summary } from './summary.tsx';
import { Table } from './table.tsx';
import { Welcome } from './welcome.tsx';

const BUCKET_COUNT = 120;
/** Figures are read again at most so often while traces keep coming. */
const FIGURES_MS = 2000;

export default function Traces({ params }: PageProps) {
  const { facts } = useServices();
  if (facts.value?.traces === false) {
    return (
      <Empty title="Runs are kept elsewhere">
        <p>
          This collector uploads them to <code>{facts.value.endpoint}</code>. With{' '}
          <code>SERVICE_ENDPOINT=embedded</code> it keeps them itself, and they are shown here.
        </p>
      </Empty>
    );
  }
  return <TracesPage params={params} />;
}

function TracesPage({ params }: { readonly params: URLSearchParams }) {
  const { api, router, key } = useServices();
  const filter = useMemo(() => readFilter(params), [params]);
  const filterKey = JSON.stringify(filter);
  const query = useMemo(() => queryOf(filter, Date.now()), [filterKey]);
  const narrowed = isNarrowed(params);

  const [list, setList] = useState<TraceList | null>(null);
  // With the change of the address: rows of another filter are never shown as those of this one.
  useLayoutEffect(() => {
    const made = followTraces(api, query);
    setList(made);
    return () => made.stop();
  }, [api, query, key.value.value]);

  const changes = usePaced(list?.changes.value ?? 0, FIGURES_MS);
  const stats = useLoaded(
    (signal) => api.get<Stats>('/api/stats', { query: { ...query, buckets: BUCKET_COUNT }, signal }),
    [],
    [query, changes],
  );
  const projects = useLoaded((signal) => api.get<{ items: Project[] }>('/api/projects', { signal }), [], [changes]);

  const [marked, setMarked] = useState<readonly TraceSummary[]>([]);
  const mark = useCallback((trace: TraceSummary) => {
    setMarked((before) => {
      const others = before.filter((each) => traceKey(each) !== traceKey(trace));
      return others.length < before.length ? others : [...before, trace].slice(-2);
    });
  }, []);
  const [one, other] = marked;
  const compare = (): boolean => {
    if (one === undefined || other === undefined) return false;
    router.go(`/console/compare/${one.trace_id}/${other.trace_id}`);
    return true;
  };
  useKeys('Traces', [{ keys: 'c', label: 'Compare the two marked', run: compare }]);

  // While another filter is read, what was shown stays, dimmed.
  const shown = useRef<readonly TraceSummary[]>([]);
  const items = list?.items.value ?? [];
  const isFirstRead = list === null || (list.loading.value && items.length === 0);
  if (!isFirstRead) shown.current = items;
  const onEndNear = useCallback(() => list?.more(), [list]);

  const error = list?.error.value ?? null;
  if (error !== null && items.length === 0) {
    return (
      <>
        <Filters filter={filter} projects={projects.value?.items ?? []} isNarrowed={narrowed} />
        <Trouble message={error} retry={() => list?.retry()} />
      </>
    );
  }
  if (!isFirstRead && items.length === 0 && !narrowed) return <Welcome />;
  return (
    <>
      <Filters filter={filter} projects={projects.value?.items ?? []} isNarrowed={narrowed} />
      {stats.value !== null && (
        <div class="overview">
          <Summary stats={stats.value} />
          <Heatmap stats={stats.value} onDrag={(range) => router.setParams({ ...range, last: null })} />
        </div>
      )}
      {!isFirstRead && items.length === 0 ? (
        <Empty title="No trace passes this filter">
          <button
            type="button"
            onClick={() => router.setParams(Object.fromEntries(PARAM_NAMES.map((name) => [name, null])))}
          >
            Clear the filter
          </button>
        </Empty>
      ) : (
        <Table
          items={shown.current}
          complete={list?.complete.value ?? false}
          stale={isFirstRead}
          loading={list?.loading.value ?? true}
          marked={marked}
          onMark={mark}
          onEndNear={onEndNear}
        />
      )}
      <footer class="bar">
        <span class={list?.live.value === true ? 'live' : 'live live-off'} role="status">
          {list?.live.value === true ? 'Live' : 'Reconnecting…'}
        </span>
        {error !== null && (
          <>
            <span class="bad cut" role="alert">
              {error}
            </span>
            <button type="button" class="small" onClick={() => list?.retry()}>
              Try again
            </button>
          </>
        )}
        <span class="grow" />
        {one !== undefined && (
          <>
            <span class="quiet cut">
              {other === undefined
                ? `${one.name} marked; mark another to compare`
                : `${one.name} and ${other.name} marked`}
            </span>
            <button type="button" class="small" disabled={other === undefined} onClick={compare}>
              Compare
            </button>
            <button type="button" class="small plain" onClick={() => setMarked([])}>
              Unmark
            </button>
          </>
        )}
      </footer>
    </>
  );
}

/** The value, changing at most once in so many milliseconds. */
function usePaced(value: number, ms: number): number {
  const [paced, setPaced] = useState(value);
  const latest = useRef(value);
  latest.current = value;
  const timer = useRef(0);
  useEffect(() => {
    if (value === paced || timer.current !== 0) return;
    timer.current = window.setTimeout(() => {
      timer.current = 0;
      setPaced(latest.current);
    }, ms);
  }, [value, paced, ms]);
  useEffect(() => () => clearTimeout(timer.current), []);
  return paced;
}
