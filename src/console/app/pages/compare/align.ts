/**
 * Two traces laid side by side: at each level, runs of the same name and type are paired in their order, and what only one
 * has stands alone. Nothing here recurses: depth is the sender's choice.
 */
import { diffArrays } from 'diff';
import type { Tree, TreeRow } from '../trace/tree.ts';

export interface Pair {
  readonly depth: number;
  /** At least one of the two is there. */
  readonly left: TreeRow | null;
  readonly right: TreeRow | null;
}

/** Beyond so many differences among the children of one run they are paired by their place. */
const MAX_EDIT_COUNT = 400;

interface Open {
  readonly left: TreeRow | null;
  readonly right: TreeRow | null;
  readonly depth: number;
}

export function alignTrees(left: Tree, right: Tree): Pair[] {
  const leftChildren = childrenOf(left);
  const rightChildren = childrenOf(right);
  const pairs: Pair[] = [];
  const open: Open[] = alignLevel(leftChildren.get(-1) ?? [], rightChildren.get(-1) ?? [], 0, true).toReversed();
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    pairs.push(next);
    const below = alignLevel(
      next.left === null ? [] : (leftChildren.get(next.left.index) ?? []),
      next.right === null ? [] : (rightChildren.get(next.right.index) ?? []),
      next.depth + 1,
      false,
    );
    open.push(...below.toReversed());
  }
  return pairs;
}

/** By the index of the parent; -1 has those at the top. */
function childrenOf({ rows }: Tree): ReadonlyMap<number, readonly TreeRow[]> {
  const children = new Map<number, TreeRow[]>();
  const path: number[] = [];
  for (const row of rows) {
    path[row.run.depth] = row.index;
    const parent = row.run.depth === 0 ? -1 : (path[row.run.depth - 1] ?? -1);
    const siblings = children.get(parent);
    if (siblings === undefined) children.set(parent, [row]);
    else siblings.push(row);
  }
  return children;
}

function alignLevel(left: readonly TreeRow[], right: readonly TreeRow[], depth: number, isTop: boolean): Open[] {
  // Two roots are the two traces, whatever they are called.
  const [leftRoot, rightRoot] = [left[0], right[0]];
  if (isTop && left.length === 1 && right.length === 1 && leftRoot !== undefined && rightRoot !== undefined) {
    return [{ left: leftRoot, right: rightRoot, depth }];
  }
  const changes = diffArrays(left.map(kindOf), right.map(kindOf), { maxEditLength: MAX_EDIT_COUNT });
  if (changes === undefined) return byPlace(left, right, depth);
  const level: Open[] = [];
  let leftAt = 0;
  let rightAt = 0;
  for (const { added, removed, count } of changes) {
    for (let n = 0; n < count; n++) {
      level.push({
        left: added ? null : (left[leftAt++] ?? null),
        right: removed ? null : (right[rightAt++] ?? null),
        depth,
      });
    }
  }
  return level;
}

function byPlace(left: readonly TreeRow[], right: readonly TreeRow[], depth: number): Open[] {
  const level: Open[] = [];
  for (let at = 0; at < Math.max(left.length, right.length); at++) {
    const [one = null, other = null] = [left[at], right[at]];
    if (one !== null && other !== null && kindOf(one) === kindOf(other)) level.push({ left: one, right: other, depth });
    else {
      if (one !== null) level.push({ left: one, right: null, depth });
      if (other !== null) level.push({ left: null, right: other, depth });
    }
  }
  return level;
}

function kindOf({ run }: TreeRow): string {
  return `${run.run_type} ${run.name}`;
}
