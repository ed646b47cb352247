/** The runs of two traces, paired: how long each took, with how many tokens. */
import { useEffect } from 'preact/hooks';
import { compact, duration } from '../../parts/format.ts';
import { useRows } from '../../parts/rows.ts';
import { RunTypeIcon } from '../../parts/runtype.tsx';
import type { TreeRow } from '../trace/tree.ts';
import type { Pair } from './align.ts';

export interface PairsProps {
  readonly pairs: readonly Pair[];
  readonly selected: number;
  readonly onSelect: (index: number) => void;
}

const ROW_PX = 28;
const INDENT_PX = 14;
const MAX_INDENT_DEPTH = 12;
/** Differences below are not coloured. */
const NOTABLE_RATIO = 0.1;

export function Pairs({ pairs, selected, onSelect }: PairsProps) {
  const list = useRows(pairs.length, ROW_PX, ROW_PX);
  useEffect(() => list.show(selected), [selected]);
  const longestMs = Math.max(
    0,
    ...pairs.flatMap(({ left, right }) => [left?.run.duration_ms ?? 0, right?.run.duration_ms ?? 0]),
  );
  return (
    <div
      class="waterfall-scroll"
      ref={list.scroller}
      role="treegrid"
      aria-label="Runs of both"
      aria-rowcount={pairs.length + 1}
      tabIndex={0}
    >
      <div class="pair-row run-head" role="row" aria-rowindex={1}>
        <span role="columnheader">Run</span>
        <span role="columnheader">A</span>
        <span role="columnheader">B</span>
        <span role="columnheader" class="num">
          Δ time
        </span>
        <span role="columnheader" class="num">
          Δ tokens
        </span>
      </div>
      <div class="run-body" role="rowgroup" style={{ height: `${list.totalPx}px` }}>
        {list.items.map(({ index, start }) => {
          const pair = pairs[index];
          return pair === undefined ? null : (
            <PairRow
              key={index}
              pair={pair}
              index={index}
              topPx={start}
              longestMs={longestMs}
              selected={index === selected}
              onSelect={onSelect}
            />
          );
        })}
      </div>
    </div>
  );
}

interface PairRowProps {
  readonly pair: Pair;
  readonly index: number;
  readonly topPx: number;
  readonly longestMs: number;
  readonly selected: boolean;
  readonly onSelect: (index: number) => void;
}

function PairRow({ pair: { left, right, depth }, index, topPx, longestMs, selected, onSelect }: PairRowProps) {
  const row = left ?? right;
  if (row === null) return null;
  const renamed = left !== null && right !== null && left.run.name !== right.run.name;
  const only = left === null ? 'only in B' : right === null ? 'only in A' : '';
  return (
    <div
      class={`pair-row${selected ? ' at-cursor' : ''}${left === null ? ' pair-added' : right === null ? ' pair-removed' : ''}`}
      role="row"
      aria-rowindex={index + 2}
      aria-level={depth + 1}
      aria-selected={selected}
      style={{ transform: `translateY(${topPx}px)` }}
      onClick={() => onSelect(index)}
    >
      <span
        role="gridcell"
        class="run-tree"
        style={{ paddingLeft: `${8 + Math.min(depth, MAX_INDENT_DEPTH) * INDENT_PX}px` }}
      >
        <RunTypeIcon type={row.run.run_type} />
        <span class="cut" title={row.run.name}>
          {renamed ? `${left.run.name} → ${right.run.name}` : row.run.name}
        </span>
        {only !== '' && <span class="badge">{only}</span>}
      </span>
      <Bar row={left} longestMs={longestMs} />
      <Bar row={right} longestMs={longestMs} />
      <Delta left={left?.run.duration_ms ?? null} right={right?.run.duration_ms ?? null} show={duration} />
      <Delta left={left?.tokens ?? null} right={right?.tokens ?? null} show={compact} />
    </div>
  );
}

function Bar({ row, longestMs }: { readonly row: TreeRow | null; readonly longestMs: number }) {
  if (row === null) return <span role="gridcell" />;
  const ms = row.run.duration_ms;
  const kind = row.run.status === 'error' ? 'error' : row.run.run_type || 'other';
  return (
    <span role="gridcell" class="pair-bar">
      <i class={`bar-${kind}`} style={{ width: `${longestMs === 0 ? 0 : ((ms ?? 0) / longestMs) * 60}%` }} />
      <span class={row.run.status === 'error' ? 'bad' : 'quiet'}>{ms === null ? 'running' : duration(ms)}</span>
    </span>
  );
}

export interface DeltaProps {
  readonly left: number | null;
  readonly right: number | null;
  readonly show: (value: number) => string;
}

/** By how much B is more than A; less is better. */
function Delta({ left, right, show }: DeltaProps) {
  return (
    <span role="gridcell" class={`num ${deltaTone(left, right)}`}>
      {deltaText(left, right, show)}
    </span>
  );
}

export function deltaText(left: number | null, right: number | null, show: (value: number) => string): string {
  if (left === null || right === null) return '';
  if (left === right) return '=';
  return `${right > left ? '+' : '−'}${show(Math.abs(right - left))}`;
}

export function deltaTone(left: number | null, right: number | null): string {
  if (left === null || right === null || Math.abs(right - left) <= NOTABLE_RATIO * left) return 'quiet';
  return right > left ? 'bad' : 'good';
}
