/** The runs of a trace as rows: which are shown, what lies below each, where each stands in time. Nothing here recurses. */
import type { TraceRun } from '../../../../backend/api.ts';
import { microseconds } from '../../parts/moment.ts';

export interface TreeRow {
  readonly run: TraceRun;
  /** In the list of all runs. */
  readonly index: number;
  /** Runs below it, at any depth. */
  readonly belowCount: number;
  readonly failedBelowCount: number;
  /** Of it and everything below; agents repeat the sums of their models, so the greater of the two counts. */
  readonly tokens: number;
  /** Of the trace's time, 0 to 1. */
  readonly from: number;
  readonly to: number;
}

export interface Tree {
  readonly rows: readonly TreeRow[];
  readonly indexOf: ReadonlyMap<string, number>;
  readonly startUs: number;
  /** At least 1. */
  readonly lengthUs: number;
}

/** `runs`: parents before their children, as the API has them. A run without an end lasts until the trace's. */
export function buildTree(runs: readonly TraceRun[]): Tree {
  let startUs = Infinity;
  let endUs = -Infinity;
  const times = runs.map((run) => {
    const from = microseconds(run.start_time);
    const to = run.end_time === null ? null : microseconds(run.end_time);
    startUs = Math.min(startUs, from);
    endUs = Math.max(endUs, to ?? from);
    return { from, to };
  });
  if (runs.length === 0) startUs = endUs = 0;
  const lengthUs = Math.max(1, endUs - startUs);

  const below = runs.map(() => ({ count: 0, failed: 0, tokens: 0 }));
  const rows: TreeRow[] = [];
  /** Open ancestors of the row that comes before, seen from the end: sums go to the parent once all below it are known. */
  const parents = parentIndexes(runs);
  for (let index = runs.length - 1; index >= 0; index--) {
    const run = runs[index];
    const sums = below[index];
    const time = times[index];
    if (run === undefined || sums === undefined || time === undefined) continue;
    const tokens = Math.max(run.total_tokens ?? 0, sums.tokens);
    rows[index] = {
      run,
      index,
      belowCount: sums.count,
      failedBelowCount: sums.failed,
      tokens,
      from: (time.from - startUs) / lengthUs,
      to: ((time.to ?? endUs) - startUs) / lengthUs,
    };
    const parent = below[parents[index] ?? -1];
    if (parent === undefined) continue;
    parent.count += 1 + sums.count;
    parent.failed += (run.status === 'error' ? 1 : 0) + sums.failed;
    parent.tokens += tokens;
  }
  return { rows, indexOf: new Map(runs.map((run, index) => [run.id, index])), startUs, lengthUs };
}

/** -1 for a run at the top. */
function parentIndexes(runs: readonly TraceRun[]): number[] {
  /** `path[d]`: the last run at depth `d`. */
  const path: number[] = [];
  return runs.map(({ depth }, index) => {
    path[depth] = index;
    return depth === 0 ? -1 : (path[depth - 1] ?? -1);
  });
}

/** Rows that are shown: not below a collapsed one, and with `find`, those whose name or type contains it, and their ancestors. */
export function visibleRows(tree: Tree, collapsed: ReadonlySet<string>, find: string): readonly TreeRow[] {
  const shown: TreeRow[] = [];
  const kept = find === '' ? null : matching(tree, find.toLowerCase());
  let skipTo = 0;
  for (const row of tree.rows) {
    if (row.index < skipTo || kept?.has(row.index) === false) continue;
    shown.push(row);
    if (kept === null && collapsed.has(row.run.id)) skipTo = row.index + row.belowCount + 1;
  }
  return shown;
}

function matching({ rows }: Tree, find: string): ReadonlySet<number> {
  const kept = new Set<number>();
  const path: number[] = [];
  for (const { run, index } of rows) {
    path[run.depth] = index;
    if (
      !run.name.toLowerCase().includes(find) &&
      run.run_type !== find &&
      run.error?.toLowerCase().includes(find) !== true
    ) {
      continue;
    }
    for (let depth = run.depth; depth >= 0; depth--) {
      const ancestor = path[depth];
      if (ancestor === undefined || kept.has(ancestor)) break;
      kept.add(ancestor);
    }
  }
  return kept;
}

/** The row above that it hangs on; null at the top. */
export function parentOf({ rows }: Tree, row: TreeRow): TreeRow | null {
  for (let index = row.index - 1; index >= 0; index--) {
    const above = rows[index];
    if (above !== undefined && above.run.depth < row.run.depth) return above;
  }
  return null;
}
