/** Tree and waterfall side by side: one row a run, aligned because they are one row. */
import { useEffect } from 'preact/hooks';
import { compact, count, duration } from '../../parts/format.ts';
import { Caret } from '../../parts/json.tsx';
import { useRows } from '../../parts/rows.ts';
import { RunTypeIcon, StatusDot } from '../../parts/runtype.tsx';
import { Splitter, type Split } from '../../parts/split.tsx';
import type { Tree, TreeRow } from './tree.ts';

export interface WaterfallProps {
  readonly tree: Tree;
  readonly rows: readonly TreeRow[];
  readonly selectedId: string;
  readonly collapsed: ReadonlySet<string>;
  readonly split: Split;
  readonly onSelect: (id: string) => void;
  readonly onToggle: (id: string) => void;
}

const ROW_PX = 28;
const INDENT_PX = 14;
/** Deeper ones stand on top of each other rather than out of sight. */
const MAX_INDENT_DEPTH = 14;
const TICK_COUNT = 5;
/** A bar that ends beyond this has its duration on the left. */
const LABEL_LEFT_SHARE = 0.82;

export function Waterfall({ tree, rows, selectedId, collapsed, split, onSelect, onToggle }: WaterfallProps) {
  const list = useRows(rows.length, ROW_PX, ROW_PX);
  const selected = rows.findIndex(({ run }) => run.id === selectedId);
  useEffect(() => {
    if (selected >= 0) list.show(selected);
  }, [selected, selectedId]);

  const ticks = Array.from({ length: TICK_COUNT }, (_, n) => n / TICK_COUNT);
  return (
    <div class="waterfall" style={{ '--tree': split.css }}>
      <div
        class="waterfall-scroll"
        ref={list.scroller}
        role="treegrid"
        aria-label="Runs"
        aria-rowcount={rows.length + 1}
        tabIndex={0}
      >
        <div class="run-row run-head" role="row" aria-rowindex={1}>
          <span role="columnheader" class="run-tree">
            {count(tree.rows.length)} runs
          </span>
          <span role="columnheader" class="run-time" aria-label="Time">
            {ticks.map((share) => (
              <span key={share} class="tick" style={{ left: `${share * 100}%` }}>
                {duration((share * tree.lengthUs) / 1000)}
              </span>
            ))}
          </span>
        </div>
        <div class="run-body" role="rowgroup" style={{ height: `${list.totalPx}px` }}>
          {list.items.map(({ index, start }) => {
            const row = rows[index];
            return row === undefined ? null : (
              <RunRow
                key={row.run.id}
                row={row}
                index={index}
                topPx={start}
                selected={row.run.id === selectedId}
                open={!collapsed.has(row.run.id)}
                onSelect={onSelect}
                onToggle={onToggle}
              />
            );
          })}
        </div>
      </div>
      <Splitter split={split} label="Width of the tree" />
    </div>
  );
}

/** Where the duration stands: behind the bar, before it, or at its end within it. */
const LABEL_PLACES = {
  right: ({ to }: TreeRow) => ({ left: `${to * 100}%` }),
  left: ({ from }: TreeRow) => ({ right: `${(1 - from) * 100}%` }),
  inside: ({ to }: TreeRow) => ({ right: `${(1 - to) * 100}%` }),
} as const;

interface RunRowProps {
  readonly row: TreeRow;
  readonly index: number;
  readonly topPx: number;
  readonly selected: boolean;
  readonly open: boolean;
  readonly onSelect: (id: string) => void;
  readonly onToggle: (id: string) => void;
}

function RunRow({ row, index, topPx, selected, open, onSelect, onToggle }: RunRowProps) {
  const { run, belowCount } = row;
  const width = Math.max(0, row.to - row.from);
  const side = row.to <= LABEL_LEFT_SHARE ? 'right' : row.from > 1 - LABEL_LEFT_SHARE ? 'left' : 'inside';
  const label = run.duration_ms === null ? 'running' : duration(run.duration_ms);
  return (
    <div
      class={`run-row${selected ? ' at-cursor' : ''}`}
      role="row"
      aria-rowindex={index + 2}
      aria-level={run.depth + 1}
      aria-selected={selected}
      aria-expanded={belowCount === 0 ? undefined : open}
      style={{ transform: `translateY(${topPx}px)` }}
      onClick={() => onSelect(run.id)}
    >
      <span
        role="gridcell"
        class="run-tree"
        style={{ paddingLeft: `${8 + Math.min(run.depth, MAX_INDENT_DEPTH) * INDENT_PX}px` }}
      >
        {belowCount === 0 ? (
          <span class="no-caret" />
        ) : (
          <button
            type="button"
            class="plain run-toggle"
            tabIndex={-1}
            aria-label={open ? `Collapse ${run.name}` : `Expand ${run.name}`}
            onClick={(event) => {
              event.stopPropagation();
              onToggle(run.id);
            }}
          >
            <Caret open={open} />
          </button>
        )}
        <RunTypeIcon type={run.run_type} />
        <span class={run.status === 'error' ? 'cut bad' : 'cut'} title={run.name}>
          {run.name}
        </span>
        {run.status !== 'success' && <StatusDot status={run.status} />}
        {!open && <span class="badge">{count(belowCount)}</span>}
        {!open && row.failedBelowCount > 0 && <span class="badge badge-bad">{count(row.failedBelowCount)} failed</span>}
        {run.orphan && (
          <span class="badge badge-warn" title="Its parent has not arrived">
            orphan
          </span>
        )}
        <span class="grow" />
        {row.tokens > 0 && (
          <span class="run-tokens" title={`${count(row.tokens)} tokens`}>
            {compact(row.tokens)}
          </span>
        )}
      </span>
      <span role="gridcell" class="run-time">
        <span
          class={`bar-run bar-${run.status === 'error' ? 'error' : run.run_type || 'other'}${run.status === 'pending' ? ' bar-open' : ''}`}
          style={{ left: `${row.from * 100}%`, width: `${width * 100}%` }}
        />
        <span class={`bar-label bar-label-${side}`} style={LABEL_PLACES[side](row)}>
          {label}
        </span>
      </span>
    </div>
  );
}
