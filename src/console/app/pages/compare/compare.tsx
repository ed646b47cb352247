/** Two traces side by side: what each consists of, how long it took, and what came out. */
import { useMemo, useState } from 'preact/hooks';
import type { Page, RunDetail, TraceDetail, TraceSummary } from '../../../../backend/api.ts';
import { useLoaded } from '../../api/load.ts';
import { compact, cost, count, duration, time, wholeTime } from '../../parts/format.ts';
import { StatusDot } from '../../parts/runtype.tsx';
import { Splitter, useSplit } from '../../parts/split.tsx';
import { Empty, Trouble } from '../../parts/states.tsx';
import { useServices } from '../../services.ts';
import { useKeys } from '../../shell/keyboard.ts';
import type { PageProps } from '../../shell/page.tsx';
import '../../style/trace.css';
import '../../style/compare.css';
import { buildTree } from '../trace/tree.ts';
import { alignTrees, type Pair } from './align.ts';
import { deltaText, deltaTone, Pairs } from './pairs.tsx';
import { TextDiff, textOfDocument } from './textdiff.tsx';

export default function Compare({ rest }: PageProps) {
  const [left = '', right] = rest;
  return right === undefined ? <Choose left={left} /> : <Comparison left={left} right={right} />;
}

/** Asks for the other one, among those of the same name first. */
function Choose({ left }: { readonly left: string }) {
  const { api } = useServices();
  const others = useLoaded(
    async (signal) => {
      const { trace } = await api.get<TraceDetail>(`/api/traces/${encodeURIComponent(left)}`, { signal });
      const page = await api.get<Page<TraceSummary>>('/api/traces', {
        query: { name: trace.name, limit: 100 },
        signal,
      });
      return { trace, items: page.items.filter(({ trace_id }) => trace_id !== trace.trace_id) };
    },
    [left],
  );
  if (others.value === null) {
    return others.error === null ? null : <Trouble message={others.error} retry={() => others.reload()} />;
  }
  const { trace, items } = others.value;
  return (
    <div class="choose">
      <h2>Compare {trace.name} with…</h2>
      {items.length === 0 ? (
        <p class="quiet">
          No other trace has this name. Mark any two in the <a href="/console/traces">list</a> with <kbd>x</kbd>.
        </p>
      ) : (
        <ul>
          {items.map((item) => (
            <li key={item.trace_id}>
              <a href={`/console/compare/${trace.trace_id}/${item.trace_id}`}>
                <StatusDot status={item.status} />
                <span title={wholeTime(item.start_time)}>{time(item.start_time)}</span>
                <span>{duration(item.duration_ms)}</span>
                <span class="quiet cut">{item.preview}</span>
              </a>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function Comparison({ left, right }: { readonly left: string; readonly right: string }) {
  const { api, router } = useServices();
  useKeys('Compare', [{ keys: 'Escape', label: 'Back to the list', run: () => router.go('/console/traces') }]);
  const both = useLoaded(
    (signal) =>
      Promise.all([left, right].map((id) => api.get<TraceDetail>(`/api/traces/${encodeURIComponent(id)}`, { signal }))),
    [],
    [left, right],
  );
  if (both.value === null) {
    return both.error === null ? null : <Trouble message={both.error} retry={() => both.reload()} />;
  }
  const [one, other] = both.value;
  if (one === undefined || other === undefined) return <Empty title="Two traces are needed" />;
  return <SideBySide left={one} right={other} />;
}

function SideBySide({ left, right }: { readonly left: TraceDetail; readonly right: TraceDetail }) {
  const { router } = useServices();
  const pairs = useMemo(() => alignTrees(buildTree(left.runs ?? []), buildTree(right.runs ?? [])), [left, right]);
  const [selected, setSelected] = useState(0);
  const split = useSplit('compare', 0.58);
  const step = (by: number): void => setSelected(Math.min(pairs.length - 1, Math.max(0, selected + by)));
  useKeys('Compare', [
    { keys: 'j', label: 'Next run', run: () => step(1) },
    { keys: 'k', label: 'Previous run', run: () => step(-1) },
    { keys: 'ArrowDown', run: () => step(1) },
    { keys: 'ArrowUp', run: () => step(-1) },
    {
      keys: 's',
      label: 'Swap the two',
      run: () => router.go(`/console/compare/${right.trace.trace_id}/${left.trace.trace_id}`, { replace: true }),
    },
  ]);
  const pair = pairs[selected];
  return (
    <>
      <header class="compare-head">
        <Side letter="A" trace={left.trace} />
        <Side letter="B" trace={right.trace} />
        <dl class="compare-figures">
          <Figure name="Duration" of={({ duration_ms }) => duration_ms} show={duration} left={left} right={right} />
          <Figure name="Runs" of={({ run_count }) => run_count} show={count} left={left} right={right} />
          <Figure name="Tokens" of={({ total_tokens }) => total_tokens} show={compact} left={left} right={right} />
          <Figure name="Cost" of={({ total_cost }) => total_cost} show={cost} left={left} right={right} />
          <Figure name="Failed" of={({ error_count }) => error_count} show={count} left={left} right={right} />
        </dl>
      </header>
      <div class="trace" style={{ '--left': split.css }}>
        <div class="waterfall">
          <Pairs pairs={pairs} selected={selected} onSelect={setSelected} />
        </div>
        <Splitter split={split} label="Width of the list" />
        {pair === undefined ? <span /> : <PairDetail pair={pair} tenants={[left.trace.tenant, right.trace.tenant]} />}
      </div>
    </>
  );
}

function Side({ letter, trace }: { readonly letter: string; readonly trace: TraceSummary }) {
  return (
    <a class="compare-side" href={`/console/trace/${trace.trace_id}`}>
      <span class="badge badge-accent">{letter}</span>
      <StatusDot status={trace.status} />
      <strong class="cut">{trace.name}</strong>
      <span class="quiet" title={wholeTime(trace.start_time)}>
        {time(trace.start_time)}
      </span>
    </a>
  );
}

interface FigureProps {
  readonly name: string;
  readonly of: (trace: TraceSummary) => number | null;
  readonly show: (value: number) => string;
  readonly left: TraceDetail;
  readonly right: TraceDetail;
}

function Figure({ name, of, show, left, right }: FigureProps) {
  const [a, b] = [of(left.trace), of(right.trace)];
  const shown = (value: number | null): string => (value === null ? '–' : show(value));
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        {shown(a)} → {shown(b)} <span class={deltaTone(a, b)}>{deltaText(a, b, show)}</span>
      </dd>
    </div>
  );
}

function PairDetail({ pair, tenants }: { readonly pair: Pair; readonly tenants: readonly [string, string] }) {
  const { api } = useServices();
  const ids = [pair.left?.run.id, pair.right?.run.id];
  const details = useLoaded(
    (signal) =>
      Promise.all(
        ids.map(async (id, index) =>
          id === undefined
            ? null
            : api.get<RunDetail>(`/api/runs/${id}`, { query: { tenant: tenants[index] }, signal }),
        ),
      ),
    ids,
  );
  const name = (pair.left ?? pair.right)?.run.name ?? '';
  const [left = null, right = null] = details.value ?? [];
  return (
    <section class="detail" aria-label="What differs">
      <header class="detail-head compare-title">
        <h2 class="cut">{name}</h2>
        <span class="grow" />
        <span class="diff-legend">
          <del>only in A</del> <ins>only in B</ins>
        </span>
      </header>
      <div class="detail-body" tabIndex={0} role="group" aria-label="Differences">
        {details.value === null ? (
          details.error !== null && <Trouble message={details.error} retry={() => details.reload()} />
        ) : (
          <>
            {(left?.error ?? right?.error ?? '') !== '' && (
              <Diff title="Error" left={left?.error ?? ''} right={right?.error ?? ''} />
            )}
            <Diff
              title="Output"
              left={textOfDocument(left?.outputs ?? null)}
              right={textOfDocument(right?.outputs ?? null)}
            />
            <Diff
              title="Input"
              left={textOfDocument(left?.inputs ?? null)}
              right={textOfDocument(right?.inputs ?? null)}
            />
          </>
        )}
      </div>
    </section>
  );
}

function Diff({ title, left, right }: { readonly title: string; readonly left: string; readonly right: string }) {
  return (
    <section class="part">
      <h3>{title}</h3>
      <TextDiff left={left} right={right} />
    </section>
  );
}
