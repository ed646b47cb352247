/** Runs as a tree for people: name, type, status, duration, tokens. */
import type { TraceDetail, TraceRun, TraceSummary } from '../../src/backend/api.ts';

export type Paint = Readonly<Record<'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan', (text: string) => string>>;

export function createPaint(colours: boolean): Paint {
  const with_ =
    (code: number) =>
    (text: string): string =>
      colours ? `\u001b[${code}m${text}\u001b[0m` : text;
  return { bold: with_(1), dim: with_(2), red: with_(31), green: with_(32), yellow: with_(33), cyan: with_(36) };
}

const TYPE_WIDTH = 10;
const STATUS_WIDTH = 8;
const DURATION_WIDTH = 9;

export function traceText(detail: TraceDetail & { readonly runs: readonly TraceRun[] }, paint: Paint): string {
  const { trace, runs } = detail;
  const labels = branches(runs);
  const width = Math.max(...labels.map((label) => label.length)) + 2;
  const lines = runs.map((run, index) => {
    const label = (labels[index] ?? '').padEnd(width);
    const columns = [
      paint.cyan(run.run_type.padEnd(TYPE_WIDTH)),
      statusText(run, paint),
      durationText(run.duration_ms).padStart(DURATION_WIDTH),
      paint.dim(tokenText(run)),
    ];
    const message = run.error?.split(/\s+Stacktrace:/, 1)[0];
    const error = message === undefined ? '' : `\n${' '.repeat(width + 2)}${paint.red(shorten(message, 90))}`;
    return `  ${run.depth === 0 ? paint.bold(label) : label}${columns.join('  ').trimEnd()}${error}`;
  });
  return [headline(trace, paint), ...lines].join('\n');
}

function headline(trace: TraceSummary, paint: Paint): string {
  const facts = [
    `project ${trace.project}`,
    `${trace.run_count} runs`,
    ...(trace.total_tokens > 0 ? [`${trace.total_tokens} tokens`] : []),
    ...(trace.total_cost === null ? [] : [`$${trace.total_cost.toFixed(4)}`]),
  ];
  return paint.dim(`${trace.trace_id}  ${facts.join(', ')}`);
}

/** The names with the lines of the tree before them; `runs` has parents before children. */
function branches(runs: readonly TraceRun[]): string[] {
  return runs.map((run, index) => {
    let prefix = '';
    for (let depth = 1; depth <= run.depth; depth++) {
      // Whether a later sibling follows on this level, before the tree goes back above it.
      const after = runs.slice(index + 1).find((other) => other.depth <= depth);
      const follows = after?.depth === depth;
      if (depth === run.depth) prefix += follows ? '├─ ' : '└─ ';
      else prefix += follows ? '│  ' : '   ';
    }
    return prefix + shorten(run.name, 60);
  });
}

function statusText(run: TraceRun, paint: Paint): string {
  const text = run.status.padEnd(STATUS_WIDTH);
  if (run.status === 'success') return paint.green(text);
  return run.status === 'error' ? paint.red(text) : paint.yellow(text);
}

function durationText(ms: number | null): string {
  if (ms === null) return '–';
  return ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : `${Math.round(ms)} ms`;
}

function tokenText(run: TraceRun): string {
  if (run.total_tokens === null) return '';
  const cost = run.total_cost === null ? '' : `, $${run.total_cost.toFixed(4)}`;
  return `${run.prompt_tokens ?? 0} → ${run.completion_tokens ?? 0} tokens${cost}`;
}

function shorten(text: string, maxLength: number): string {
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`;
}
