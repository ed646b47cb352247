/** Retention: deletes the traces that arrived first while there are too many, or the file is too large. */
import type { DatabaseSync } from 'node:sqlite';

export interface PruneBounds {
  /** As it is now. */
  readonly traceCount: number;
  readonly maxTraceCount: number;
  readonly maxStoreBytes: number;
}

export interface Pruner {
  needed(bounds: PruneBounds): boolean;
  /**
   * Called within a transaction. Ends once `maxRunCount` runs are gone, or more: traces go as a whole. The newest trace
   * always stays.
   */
  prune(bounds: PruneBounds & { readonly maxRunCount: number }): { traceCount: number; runCount: number };
  /** Bytes of pages in use. */
  usedBytes(): number;
}

export function createPruner(database: DatabaseSync): Pruner {
  const oldest = database.prepare('SELECT trace_no FROM traces ORDER BY trace_no LIMIT 1');
  const ofTrace = 'IN (SELECT run_no FROM runs WHERE trace_no = ?)';
  const deletions = [
    `DELETE FROM run_text WHERE rowid ${ofTrace}`,
    `DELETE FROM documents WHERE run_no ${ofTrace}`,
    `DELETE FROM attachments WHERE run_no ${ofTrace}`,
    'DELETE FROM feedback WHERE (run_id, tenant) IN (SELECT id, tenant FROM runs WHERE trace_no = ?)',
    'DELETE FROM traces WHERE trace_no = ?',
  ].map((sql) => database.prepare(sql));
  const deleteRuns = database.prepare('DELETE FROM runs WHERE trace_no = ?');
  const pages = database.prepare(
    'SELECT (page_count - freelist_count) * page_size AS bytes FROM pragma_page_count, pragma_freelist_count, pragma_page_size',
  );
  const usedBytes = (): number => (pages.get() as { bytes: number }).bytes;
  const needed = (bounds: PruneBounds): boolean =>
    bounds.traceCount > bounds.maxTraceCount || usedBytes() > bounds.maxStoreBytes;

  return {
    usedBytes,
    needed,
    prune: (bounds) => {
      let traceCount = 0;
      let runCount = 0;
      while (runCount < bounds.maxRunCount && bounds.traceCount - traceCount > 1) {
        if (!needed({ ...bounds, traceCount: bounds.traceCount - traceCount })) break;
        const trace = oldest.get() as { trace_no: number } | undefined;
        if (trace === undefined) break;
        for (const deletion of deletions) deletion.run(trace.trace_no);
        runCount += Number(deleteRuns.run(trace.trace_no).changes);
        traceCount++;
      }
      return { traceCount, runCount };
    },
  };
}
