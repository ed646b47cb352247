/** Reads `/metrics` as a scraper does: the classic text format, line by line. */
import assert from 'node:assert/strict';

export interface Scrape {
  /** Sample (`name{labels}` as written) → its value. */
  readonly samples: ReadonlyMap<string, number>;
  /** Family → its type. */
  readonly types: ReadonlyMap<string, string>;
  /** Sum over the samples of this name whose labels include these. Throws when there is none. */
  readonly sum: (name: string, labels?: Record<string, string>) => number;
}

export async function scrape(url: string, headers: Record<string, string> = {}): Promise<Scrape> {
  const response = await fetch(url, { headers });
  assert.equal(response.status, 200, url);
  return readScrape(await response.text());
}

export function readScrape(text: string): Scrape {
  const types = new Map<string, string>();
  const samples = new Map<string, number>();
  for (const line of text.trimEnd().split('\n')) {
    const [, family, type] = /^# TYPE (\S+) (\S+)$/.exec(line) ?? [];
    if (family !== undefined && type !== undefined) types.set(family, type);
    if (line.startsWith('#')) continue;
    const [, sample, value] = /^([a-z_0-9]+(?:\{.*\})?) (\S+)$/.exec(line) ?? [];
    assert.ok(sample !== undefined && value !== undefined && !samples.has(sample), line);
    samples.set(sample, Number(value));
  }
  return {
    samples,
    types,
    sum: (name, labels = {}) => {
      const pairs = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
      const found = [...samples].filter(
        ([sample]) => sample.split('{', 1)[0] === name && pairs.every((pair) => sample.includes(pair)),
      );
      assert.ok(found.length > 0, `no ${name} with ${pairs.join()}`);
      return found.reduce((sum, [, value]) => sum + value, 0);
    },
  };
}

/** The law of spans as the README has it: both sides. */
export function spanLaw({ sum }: Scrape): { taken: number; found: number } {
  return {
    taken:
      sum('collector_proxy_spans_accepted_total') +
      sum('collector_proxy_records_unacknowledged_total') +
      sum('collector_proxy_spans_replayed_total') +
      sum('collector_proxy_runs_inherited_total'),
    found:
      sum('collector_proxy_runs_delivered_total') +
      sum('collector_proxy_spans_dropped_total') +
      sum('collector_proxy_spans_reclaimed_total') +
      sum('collector_proxy_spans_held'),
  };
}
