/** The figures beside the histogram. */
import type { ComponentChildren } from 'preact';
import type { Stats } from '../../../../backend/api.ts';
import { compact, cost, count, duration } from '../../parts/format.ts';
import { percentile } from './latency.ts';

export function Summary({ stats }: { readonly stats: Stats }) {
  const failed = stats.error_trace_count;
  const ratio = stats.trace_count === 0 ? 0 : failed / stats.trace_count;
  return (
    <dl class="figures">
      <Figure name="Traces">{count(stats.trace_count)}</Figure>
      <Figure name="Runs">{compact(stats.run_count)}</Figure>
      <Figure name="Errors">
        <span class={failed > 0 ? 'bad' : ''}>
          {failed === 0 ? '0' : `${(ratio * 100).toFixed(ratio < 0.1 ? 1 : 0)} %`}
        </span>
      </Figure>
      <Figure name="Cost">{cost(stats.total_cost)}</Figure>
      <Figure name="p50">{duration(rounded(percentile(stats.latency, 0.5)))}</Figure>
      <Figure name="p95">{duration(rounded(percentile(stats.latency, 0.95)))}</Figure>
      <Figure name="p99">{duration(rounded(percentile(stats.latency, 0.99)))}</Figure>
      <Figure name="Tokens">{compact(stats.total_tokens)}</Figure>
    </dl>
  );
}

/** From a histogram: two digits are what is known. */
function rounded(ms: number | null): number | null {
  return ms === null ? null : Number(ms.toPrecision(2));
}

function Figure({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
