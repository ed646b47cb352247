/**
 * Tells which requests' records need nobody's memory any more, so that whoever keeps the requests on disk may let go of
 * them. What is settled within one turn of the event loop is told together: about one message a batch.
 *
 * A record whose span came before (a client's resend, a replay) is not settled before that span is, or the only request
 * that is still kept for its sake would go. Which one it was is not remembered, so the record waits for everything that
 * had been taken and was not settled when it came.
 */

export interface Settlements {
  /** This record will be a run. */
  took(source: number): void;
  /** Runs that were taken need no memory any more. One entry each; 0 stands for no request. */
  settle(sources: Uint32Array | null): void;
  /** This record makes no run. */
  dropped(source: number): void;
  /** This record's span had been taken before. */
  repeated(source: number): void;
  /** Tells at once what has not been told: before the thread ends. */
  flush(): void;
}

/** Released repeats are forgotten in groups, since each time the rest is copied. */
const FORGET_COUNT = 1024;

/** A request with records that were taken and are not settled. */
interface OpenSource {
  /** Ascending in the order in which requests came. */
  readonly order: number;
  recordCount: number;
}

/** `tell` gets pairs of a request's number and how many of its records were settled. */
export function createSettlements(tell: (pairs: Uint32Array) => void): Settlements {
  const counts = new Map<number, number>();
  /** In the order of their coming. */
  const open = new Map<number, OpenSource>();
  let lastOrder = 0;
  /** In the order of their coming; the first `releasedCount` have been settled. */
  let repeats: { readonly source: number; readonly order: number }[] = [];
  let releasedCount = 0;
  let scheduled: NodeJS.Immediate | null = null;

  const add = (source: number): void => {
    counts.set(source, (counts.get(source) ?? 0) + 1);
    scheduled ??= setImmediate(flush);
  };
  const close = (source: number): void => {
    if (source === 0) return;
    const entry = open.get(source);
    if (entry !== undefined && --entry.recordCount === 0) open.delete(source);
    add(source);
  };
  const oldestOrder = (): number => {
    for (const { order } of open.values()) return order;
    return Number.POSITIVE_INFINITY;
  };
  const release = (): void => {
    if (repeats.length === 0) return;
    const oldest = oldestOrder();
    for (let next = repeats[releasedCount]; next !== undefined && next.order < oldest; next = repeats[releasedCount]) {
      add(next.source);
      releasedCount++;
    }
    if (releasedCount < repeats.length && releasedCount < FORGET_COUNT) return;
    repeats = repeats.slice(releasedCount);
    releasedCount = 0;
  };
  const flush = (): void => {
    release();
    if (scheduled !== null) clearImmediate(scheduled);
    scheduled = null;
    if (counts.size === 0) return;
    const pairs = new Uint32Array(2 * counts.size);
    let at = 0;
    for (const [source, count] of counts) {
      pairs[at++] = source;
      pairs[at++] = count;
    }
    counts.clear();
    tell(pairs);
  };
  return {
    took: (source) => {
      const entry = open.get(source);
      if (entry === undefined) open.set(source, { order: ++lastOrder, recordCount: 1 });
      else entry.recordCount++;
    },
    settle: (sources) => sources?.forEach(close),
    dropped: add,
    repeated: (source) => {
      if (open.size === 0) add(source);
      else repeats.push({ source, order: lastOrder });
    },
    flush,
  };
}

export const unfollowed: Settlements = {
  took: () => undefined,
  settle: () => undefined,
  dropped: () => undefined,
  repeated: () => undefined,
  flush: () => undefined,
};
