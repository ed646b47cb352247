/** The list itself: as many rows as are in view, the next page when its end comes near, and a place that stays while others arrive. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { TraceSummary } from '../../../../backend/api.ts';
import { compact, cost, count, duration, time, wholeTime } from '../../parts/format.ts';
import { useRows } from '../../parts/rows.ts';
import { RunTypeIcon, StatusDot } from '../../parts/runtype.tsx';
import { useServices } from '../../services.ts';
import { useKeys } from '../../shell/keyboard.ts';
import { traceKey } from './list.ts';

export interface TableProps {
  readonly items: readonly TraceSummary[];
  readonly complete: boolean;
  /** What is shown is about to be replaced. */
  readonly stale: boolean;
  /** A page is on its way; none is asked for meanwhile. */
  readonly loading: boolean;
  readonly marked: readonly TraceSummary[];
  readonly onMark: (trace: TraceSummary) => void;
  readonly onEndNear: () => void;
}

const ROW_PX = 30;
const NEAR_COUNT = 60;
const PAGE_ROWS = 15;

export function Table({ items, complete, stale, loading, marked, onMark, onEndNear }: TableProps) {
  const { router } = useServices();
  const rows = useRows(items.length, ROW_PX);
  const [cursorKey, setCursorKey] = useState('');
  const cursor = cursorKey === '' ? -1 : items.findIndex((item) => traceKey(item) === cursorKey);

  const lastIndex = rows.items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (!loading && !complete && lastIndex > items.length - NEAR_COUNT) onEndNear();
  }, [loading, complete, lastIndex, items.length, onEndNear]);

  // Rows that come in above push nothing that is being read.
  const anchor = useRef<{ key: string; index: number } | null>(null);
  const [unseenCount, setUnseenCount] = useState(0);
  useLayoutEffect(() => {
    const scroller = rows.scroller.current;
    const before = anchor.current;
    if (scroller !== null && before !== null && scroller.scrollTop > 0) {
      const index = items.findIndex((item) => traceKey(item) === before.key);
      if (index > before.index) {
        rows.shift(index - before.index);
        setUnseenCount((known) => known + index - before.index);
      }
    }
  }, [items]);
  useLayoutEffect(() => {
    const scroller = rows.scroller.current;
    const index = Math.floor((scroller?.scrollTop ?? 0) / ROW_PX);
    const item = items[index];
    anchor.current = item === undefined ? null : { key: traceKey(item), index };
    if ((scroller?.scrollTop ?? 0) === 0 && unseenCount > 0) setUnseenCount(0);
  });

  const move = (to: number): void => {
    const index = Math.min(items.length - 1, Math.max(0, to));
    const item = items[index];
    if (item === undefined) return;
    setCursorKey(traceKey(item));
    rows.show(index);
  };
  const atCursor = (run: (item: TraceSummary) => void) => (): boolean => {
    const item = items[cursor];
    if (item === undefined) return false;
    run(item);
    return true;
  };
  useKeys('Traces', [
    { keys: 'j', label: 'Next', run: () => move(cursor + 1) },
    { keys: 'k', label: 'Previous', run: () => move(cursor - 1) },
    { keys: 'ArrowDown', run: () => move(cursor + 1) },
    { keys: 'ArrowUp', run: () => move(cursor - 1) },
    { keys: 'PageDown', run: () => move(cursor + PAGE_ROWS) },
    { keys: 'PageUp', run: () => move(cursor - PAGE_ROWS) },
    { keys: 'Home', label: 'Newest', run: () => move(0) },
    { keys: 'End', label: 'Oldest loaded', run: () => move(items.length - 1) },
    {
      keys: 'Enter',
      label: 'Open',
      // A focused control has its own meaning for it.
      run: (event) =>
        event.target instanceof HTMLElement && event.target.matches('a, button, select, input')
          ? false
          : atCursor((item) => router.go(traceHref(item)))(),
    },
    { keys: 'x', label: 'Mark to compare', run: atCursor(onMark) },
  ]);

  const longestMs = Math.max(0, ...rows.items.map(({ index }) => items[index]?.duration_ms ?? 0));
  const markedKeys = new Set(marked.map(traceKey));
  return (
    <div class={stale ? 'traces stale' : 'traces'}>
      <div
        class="traces-scroll"
        ref={rows.scroller}
        role="grid"
        aria-label="Traces"
        aria-rowcount={complete ? items.length + 1 : -1}
        aria-busy={stale}
        tabIndex={0}
      >
        <div class="trace-row trace-head" role="row" aria-rowindex={1}>
          <span role="columnheader">
            <span class="hidden">Compare</span>
          </span>
          <span role="columnheader">Name</span>
          <span role="columnheader">First input</span>
          <span role="columnheader">Project</span>
          <span role="columnheader" class="num">
            Duration
          </span>
          <span role="columnheader" class="num">
            Tokens
          </span>
          <span role="columnheader" class="num">
            Cost
          </span>
          <span role="columnheader" class="num">
            Runs
          </span>
          <span role="columnheader" class="num">
            Start
          </span>
        </div>
        <div class="traces-body" role="rowgroup" style={{ height: `${rows.totalPx}px` }}>
          {rows.items.map(({ index, start }) => {
            const item = items[index];
            return item === undefined ? null : (
              <Row
                key={traceKey(item)}
                item={item}
                index={index}
                topPx={start}
                atCursor={index === cursor}
                marked={markedKeys.has(traceKey(item))}
                longestMs={longestMs}
                onMark={onMark}
                onPoint={setCursorKey}
              />
            );
          })}
        </div>
      </div>
      {unseenCount > 0 && (
        <button type="button" class="primary unseen" onClick={() => move(0)}>
          ↑ {count(unseenCount)} new
        </button>
      )}
    </div>
  );
}

interface RowProps {
  readonly item: TraceSummary;
  readonly index: number;
  readonly topPx: number;
  readonly atCursor: boolean;
  readonly marked: boolean;
  /** Of those in view: full length of the bar behind a duration. */
  readonly longestMs: number;
  readonly onMark: (trace: TraceSummary) => void;
  readonly onPoint: (key: string) => void;
}

function Row({ item, index, topPx, atCursor, marked, longestMs, onMark, onPoint }: RowProps) {
  return (
    <div
      class={atCursor ? 'trace-row at-cursor' : 'trace-row'}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={atCursor}
      style={{ transform: `translateY(${topPx}px)` }}
      onClick={() => onPoint(traceKey(item))}
    >
      <span role="gridcell" class="trace-mark">
        <input type="checkbox" aria-label={`Compare ${item.name}`} checked={marked} onChange={() => onMark(item)} />
      </span>
      <span role="gridcell" class="trace-name">
        <StatusDot status={item.status} />
        <RunTypeIcon type={item.run_type} />
        <a class="cut" href={traceHref(item)} title={item.name}>
          {item.name}
        </a>
        {item.error_count > 0 && <span class="badge badge-bad">{count(item.error_count)} failed</span>}
        {!item.root_arrived && <span class="badge">root missing</span>}
      </span>
      <span role="gridcell" class="cut quiet" title={item.error ?? item.preview ?? ''}>
        {item.error !== null && item.error !== '' ? <span class="bad">{item.error}</span> : item.preview}
      </span>
      <span role="gridcell" class="cut">
        {item.project}
      </span>
      <span role="gridcell" class="num trace-duration">
        <i style={{ width: `${barShare(item.duration_ms, longestMs) * 100}%` }} />
        <span>{item.duration_ms === null ? 'running' : duration(item.duration_ms)}</span>
      </span>
      <span role="gridcell" class="num" title={`${count(item.prompt_tokens)} in, ${count(item.completion_tokens)} out`}>
        {item.total_tokens === 0 ? '–' : compact(item.total_tokens)}
      </span>
      <span role="gridcell" class="num">
        {cost(item.total_cost)}
      </span>
      <span role="gridcell" class="num">
        {count(item.run_count)}
      </span>
      <span role="gridcell" class="num quiet" title={wholeTime(item.start_time)}>
        {time(item.start_time)}
      </span>
    </div>
  );
}

/** By the root, so that short ones can be told apart as well. */
function barShare(ms: number | null, longestMs: number): number {
  return ms === null || longestMs === 0 ? 0 : Math.min(1, Math.sqrt(ms / longestMs));
}

export function traceHref({ trace_id }: { readonly trace_id: string }): string {
  return `/console/trace/${trace_id}`;
}
