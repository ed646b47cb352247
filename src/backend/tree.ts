/** One trace as a tree, from its runs in order of start. Nothing here recurses: depth is the sender's choice. */
import type { TraceNode, TraceRun } from './api.ts';
import { presentTraceRun, type TraceRunRow } from './present.ts';

/**
 * Every run once, each parent before its children, siblings in the order given. A run whose parent is not among them is
 * an orphan at depth 0; where parents form a ring, its first run is.
 */
export function flatten(rows: readonly TraceRunRow[]): TraceRun[] {
  const known = new Set(rows.map((row) => row.id));
  const childrenOf = new Map<string, TraceRunRow[]>();
  for (const row of rows) {
    if (row.parent_id === null) continue;
    const siblings = childrenOf.get(row.parent_id);
    if (siblings === undefined) childrenOf.set(row.parent_id, [row]);
    else siblings.push(row);
  }
  const runs: TraceRun[] = [];
  const seen = new Set<string>();
  const walk = (top: TraceRunRow): void => {
    const open = [{ row: top, depth: 0 }];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      const { row, depth } = next;
      if (seen.has(row.id)) continue;
      seen.add(row.id);
      runs.push(presentTraceRun(row, depth, depth === 0 && row.parent_id !== null));
      const children = childrenOf.get(row.id) ?? [];
      for (let i = children.length - 1; i >= 0; i--) {
        const child = children[i];
        if (child !== undefined) open.push({ row: child, depth: depth + 1 });
      }
    }
  };
  for (const row of rows) if (row.parent_id === null || !known.has(row.parent_id)) walk(row);
  for (const row of rows) if (!seen.has(row.id)) walk(row);
  return runs;
}

/** The same runs nested; `runs` as {@link flatten} gives them. */
export function nest(runs: readonly TraceRun[]): TraceNode[] {
  const roots: TraceNode[] = [];
  /** The open path: `path[d]` takes the children of the last node at depth `d`. */
  const path: TraceNode[][] = [];
  for (const run of runs) {
    const children: TraceNode[] = [];
    const node: TraceNode = { ...run, children };
    (run.depth === 0 ? roots : (path[run.depth - 1] ?? roots)).push(node);
    path[run.depth] = children;
  }
  return roots;
}
