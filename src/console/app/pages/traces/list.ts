/**
 * The traces that pass the filter, newest first: pages of them as they are scrolled to, and changes as they happen.
 * What the live stream tells is put in its place; after a break, or when it left something out, the newest page is read
 * again.
 */
import { signal, type Signal } from '@preact/signals';
import type { Page, TraceEvent, TraceSummary } from '../../../../backend/api.ts';
import type { Client, Query } from '../../api/client.ts';
import { messageOf } from '../../api/load.ts';

export interface TraceList {
  readonly items: Signal<readonly TraceSummary[]>;
  /** Whether the end of what there is has been loaded. */
  readonly complete: Signal<boolean>;
  readonly loading: Signal<boolean>;
  readonly error: Signal<string | null>;
  readonly live: Signal<boolean>;
  /** Counts changes that were told, so that figures can be read again. */
  readonly changes: Signal<number>;
  /** Reads the next page, unless that is under way. */
  more(): void;
  /** After a failure: reads the newest page again, from which older ones follow. */
  retry(): void;
  stop(): void;
}

const PAGE_SIZE = 200;

export function traceKey({ trace_id, tenant }: { readonly trace_id: string; readonly tenant: string }): string {
  return `${trace_id} ${tenant}`;
}

export function followTraces(api: Client, query: Query): TraceList {
  const items = signal<readonly TraceSummary[]>([]);
  const complete = signal(false);
  const loading = signal(true);
  const error = signal<string | null>(null);
  const live = signal(false);
  const changes = signal(0);
  const aborter = new AbortController();
  let cursor: string | null = null;
  let reading = false;
  /** Whether the newest page has to be read once more: the one that is on its way may have been put together too early. */
  let outdated = false;
  /** Told while a page is on its way, which may know less. */
  let told: TraceEvent[] = [];

  const take = ({ traces, unmatched_trace_ids }: TraceEvent): void => {
    items.value = merge(items.peek(), traces, new Set(unmatched_trace_ids), complete.peek());
  };

  const read = async (isFirst: boolean): Promise<void> => {
    if (reading) {
      outdated ||= isFirst;
      return;
    }
    reading = true;
    told = [];
    loading.value = true;
    const top = items.peek()[0];
    try {
      const page = await api.get<Page<TraceSummary>>('/api/traces', {
        query: { ...query, limit: PAGE_SIZE, ...(isFirst || cursor === null ? {} : { cursor }) },
        signal: aborter.signal,
      });
      const shown = items.peek();
      // Older pages stay when the newest is read again, unless there is a gap between them.
      const joins = isFirst && top !== undefined && page.items.some((item) => traceKey(item) === traceKey(top));
      if (!isFirst || joins) items.value = merge(shown, page.items, new Set(), true);
      else items.value = page.items;
      if (!joins) {
        cursor = page.next_cursor;
        complete.value = cursor === null;
      }
      for (const each of told) take(each);
      error.value = null;
    } catch (reason) {
      if (!aborter.signal.aborted) error.value = messageOf(reason);
    } finally {
      reading = false;
      loading.value = false;
    }
    if (!outdated || aborter.signal.aborted) return;
    outdated = false;
    void read(true);
  };

  api.follow(
    '/api/events',
    {
      query,
      onState: (state) => (live.value = state === 'live'),
      onEvent: ({ event, data }) => {
        if (event === 'ready' || event === 'reset') {
          void read(true);
          changes.value++;
        }
        if (event !== 'traces') return;
        const change = JSON.parse(data) as TraceEvent;
        if (change.omitted_count > 0) void read(true);
        if (reading) told.push(change);
        take(change);
        changes.value++;
      },
    },
    aborter.signal,
  );
  void read(true);
  return {
    items,
    complete,
    loading,
    error,
    live,
    changes,
    more: () => {
      if (!complete.peek() && error.peek() === null) void read(false);
    },
    retry: () => void read(true),
    stop: () => aborter.abort(),
  };
}

/**
 * `changed` put into `shown` by start time, newest first, each trace once; without `gone` (trace ids). What starts before
 * the last that is shown is left out unless `toEnd`: its page has not been read.
 */
export function merge(
  shown: readonly TraceSummary[],
  changed: readonly TraceSummary[],
  gone: ReadonlySet<string>,
  toEnd: boolean,
): readonly TraceSummary[] {
  const keys = new Set(changed.map(traceKey));
  const kept = shown.filter((item) => !keys.has(traceKey(item)) && !gone.has(item.trace_id));
  const oldest = shown.at(-1)?.start_time ?? '';
  const added = changed
    .filter((item) => toEnd || item.start_time >= oldest)
    .toSorted((a, b) => (a.start_time < b.start_time ? 1 : a.start_time > b.start_time ? -1 : 0));
  const merged: TraceSummary[] = [];
  let next = 0;
  for (const item of kept) {
    for (let each = added[next]; each !== undefined && each.start_time >= item.start_time; each = added[++next]) {
      merged.push(each);
    }
    merged.push(item);
  }
  return merged.concat(added.slice(next));
}
