/** One trace: tree and waterfall on the left, the selected run on the right. It grows while it is looked at. */
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { TraceDetail, TraceEvent } from '../../../../backend/api.ts';
import { useLoaded } from '../../api/load.ts';
import { CopyButton } from '../../parts/copy.tsx';
import { compact, cost, count, duration, time, wholeTime } from '../../parts/format.ts';
import { StatusDot } from '../../parts/runtype.tsx';
import { Splitter, useSplit } from '../../parts/split.tsx';
import { Empty, Trouble } from '../../parts/states.tsx';
import { useServices } from '../../services.ts';
import { useKeys } from '../../shell/keyboard.ts';
import type { PageProps } from '../../shell/page.tsx';
import '../../style/trace.css';
import { Detail } from './detail.tsx';
import { buildTree, parentOf, visibleRows, type TreeRow } from './tree.ts';
import { Waterfall } from './waterfall.tsx';

/** A trace that grows is read again at most so often. */
const RELOAD_MS = 750;

export default function TracePage({ rest, params }: PageProps) {
  const { api, router } = useServices();
  const traceId = rest[0] ?? '';
  const tenant = params.get('tenant') ?? '';
  const loaded = useLoaded(
    (signal) => api.get<TraceDetail>(`/api/traces/${encodeURIComponent(traceId)}`, { query: { tenant }, signal }),
    [traceId, tenant],
  );
  const round = useChanges(traceId, () => loaded.reload());

  const back = (): void => router.go('/console/traces');
  useKeys('Trace', [{ keys: 'Escape', label: 'Back to the list', run: back }]);
  if (loaded.value === null) {
    if (loaded.error === null) return null;
    return loaded.error.includes('no trace') || loaded.error.startsWith('Not found') ? (
      <Empty title="No such trace">
        <p>
          <code>{traceId}</code> has not arrived. If it is on its way, it will show here.
        </p>
        <p>
          <a href="/console/traces">All traces</a>
        </p>
      </Empty>
    ) : (
      <Trouble message={loaded.error} retry={() => loaded.reload()} />
    );
  }
  return <TraceView detail={loaded.value} runId={params.get('run')} round={round} />;
}

/** Counts changes of the trace, at most one in {@link RELOAD_MS}, and calls back with each. */
function useChanges(traceId: string, onChange: () => void): number {
  const { api, key } = useServices();
  const [round, setRound] = useState(0);
  const call = useRef(onChange);
  call.current = onChange;
  useEffect(() => {
    const aborter = new AbortController();
    let timer = 0;
    const change = (): void => {
      timer = 0;
      setRound((before) => before + 1);
      call.current();
    };
    api.follow(
      '/api/events',
      {
        query: { trace: traceId },
        onEvent: ({ event, data }) => {
          // What happened before the connection is not told: since the trace was read, or while there was none.
          const missed = event === 'reset' || event === 'ready';
          if (!missed && (event !== 'traces' || (JSON.parse(data) as TraceEvent).traces.length === 0)) return;
          if (timer === 0) timer = window.setTimeout(change, RELOAD_MS);
        },
      },
      aborter.signal,
    );
    return () => {
      aborter.abort();
      clearTimeout(timer);
    };
  }, [api, traceId, key.value.value]);
  return round;
}

interface TraceViewProps {
  readonly detail: TraceDetail;
  readonly runId: string | null;
  readonly round: number;
}

function TraceView({ detail, runId, round }: TraceViewProps) {
  const { router } = useServices();
  const { trace } = detail;
  const tree = useMemo(() => buildTree(detail.runs ?? []), [detail]);
  const [collapsed, setCollapsed] = useState<ReadonlySet<string>>(new Set());
  const [find, setFind] = useState('');
  const rows = useMemo(() => visibleRows(tree, collapsed, find), [tree, collapsed, find]);
  const outer = useSplit('trace', 0.56);
  const inner = useSplit('waterfall', 0.46);
  const search = useRef<HTMLInputElement>(null);

  const selectedIndex = tree.indexOf.get(runId ?? '') ?? 0;
  const selected = tree.rows[selectedIndex];
  const select = (id: string): void => router.setParams({ run: id });
  const toggle = (id: string, open = collapsed.has(id)): void => {
    setCollapsed((before) => {
      const after = new Set(before);
      if (open) after.delete(id);
      else after.add(id);
      return after;
    });
  };
  const shownAt = selected === undefined ? -1 : rows.indexOf(selected);
  const step = (by: number): void => {
    const row = rows[Math.min(rows.length - 1, Math.max(0, shownAt + by))];
    if (row !== undefined) select(row.run.id);
  };
  const inward = (row: TreeRow): void => {
    if (collapsed.has(row.run.id)) toggle(row.run.id, true);
    else if (row.belowCount > 0) step(1);
  };
  const outward = (row: TreeRow): void => {
    if (row.belowCount > 0 && !collapsed.has(row.run.id)) return toggle(row.run.id, false);
    const parent = parentOf(tree, row);
    if (parent !== null) select(parent.run.id);
  };
  const nextError = (): void => {
    const failed = tree.rows.filter(({ run }) => run.status === 'error');
    const next = failed.find(({ index }) => index > selectedIndex) ?? failed[0];
    if (next === undefined) return;
    setFind('');
    setCollapsed(new Set());
    select(next.run.id);
  };
  const onSelected = (run: (row: TreeRow) => void) => () => selected !== undefined && run(selected);
  useKeys('Trace', [
    { keys: 'j', label: 'Next run', run: () => step(1) },
    { keys: 'k', label: 'Previous run', run: () => step(-1) },
    { keys: 'ArrowDown', run: () => step(1) },
    { keys: 'ArrowUp', run: () => step(-1) },
    { keys: 'ArrowRight', label: 'Open, or first below', run: onSelected(inward) },
    { keys: 'ArrowLeft', label: 'Close, or to the parent', run: onSelected(outward) },
    { keys: 'e', label: 'Next error', run: nextError },
    { keys: '/', label: 'Find a run', run: () => search.current?.focus() },
    {
      keys: 'Enter',
      label: 'To the run’s detail',
      run: (event) => {
        if (event.target instanceof HTMLElement && event.target.matches('a, button, select, input')) return false;
        document.getElementById('run-panel')?.focus();
        return true;
      },
    },
  ]);

  return (
    <>
      <header class="trace-bar">
        <a href="/console/traces" class="quiet">
          Traces
        </a>
        <span class="quiet">/</span>
        <StatusDot status={trace.status} />
        <h2 class="cut">{trace.name}</h2>
        <span class="badge">{trace.project}</span>
        <span title="Duration">{trace.duration_ms === null ? 'running' : duration(trace.duration_ms)}</span>
        {trace.total_tokens > 0 && (
          <span title={`${count(trace.prompt_tokens)} in, ${count(trace.completion_tokens)} out`}>
            {compact(trace.total_tokens)} tokens
          </span>
        )}
        {trace.total_cost !== null && <span title="Cost">{cost(trace.total_cost)}</span>}
        <span class="quiet" title={wholeTime(trace.start_time)}>
          {time(trace.start_time)}
        </span>
        {trace.error_count > 0 && (
          <button type="button" class="small badge-bad" onClick={nextError}>
            {count(trace.error_count)} failed
          </button>
        )}
        {detail.omitted_run_count > 0 && (
          <span class="badge badge-warn">{count(detail.omitted_run_count)} runs not shown</span>
        )}
        <span class="grow" />
        <input
          ref={search}
          type="search"
          class="filter-short"
          aria-label="Find a run"
          placeholder="Find a run"
          value={find}
          onInput={(event) => setFind(event.currentTarget.value)}
        />
        <button
          type="button"
          class="small"
          onClick={() => setCollapsed(collapsed.size > 0 ? new Set() : closable(tree.rows))}
        >
          {collapsed.size > 0 ? 'Expand all' : 'Collapse all'}
        </button>
        <a class="button small" href={`/console/compare/${trace.trace_id}`}>
          Compare
        </a>
        <CopyButton what="Trace" text={() => JSON.stringify(detail, null, 2)}>
          JSON
        </CopyButton>
      </header>
      <div class="trace" style={{ '--left': outer.css }}>
        {rows.length === 0 ? (
          <Empty title="No run is called that" />
        ) : (
          <Waterfall
            tree={tree}
            rows={rows}
            selectedId={selected?.run.id ?? ''}
            collapsed={collapsed}
            split={inner}
            onSelect={select}
            onToggle={(id) => toggle(id)}
          />
        )}
        <Splitter split={outer} label="Width of the waterfall" />
        {selected === undefined ? <span /> : <Detail run={selected.run} tenant={trace.tenant} round={round} />}
      </div>
    </>
  );
}

/** All but the top: so that something of each part stays in sight. */
function closable(rows: readonly TreeRow[]): ReadonlySet<string> {
  return new Set(rows.filter(({ run, belowCount }) => run.depth > 0 && belowCount > 0).map(({ run }) => run.id));
}
