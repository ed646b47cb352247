/** Lines over time. The cursor is shared with the other charts of the page; the legend tells the values under it, or the latest. */
import { useEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import { colours, useScheme } from '../../parts/scheme.ts';
import type { ChartSpec } from './charts.ts';
import type { Track } from './track.ts';

export interface ChartProps {
  readonly spec: ChartSpec;
  readonly track: Track;
  /** How far back. */
  readonly windowMs: number;
}

const HEIGHT_PX = 104;
const SYNC_KEY = 'pipeline';
/** Lines differ by their dashes too, for who does not tell colours apart. */
const DASHES: readonly (readonly number[])[] = [[], [6, 3], [2, 3], [8, 3, 2, 3], [1, 2], [10, 4]];
const LINE_COLOURS = {
  line0: '--accent',
  line1: '--t-retriever',
  line2: '--t-tool',
  line3: '--t-prompt',
  line4: '--t-embedding',
  line5: '--t-parser',
  text: '--quiet',
  grid: '--line',
} as const;

export function Chart({ spec, track, windowMs }: ChartProps) {
  const frame = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const scheme = useScheme();
  const [pointedRow, setPointedRow] = useState<number | null>(null);
  const data = dataOf(spec, track, windowMs);
  const latest = useRef({ spec, data, windowMs });
  latest.current = { spec, data, windowMs };
  const labels = spec.lines.map(({ label }) => label).join();

  useEffect(() => {
    const parent = frame.current;
    if (parent === null) return;
    const found = colours(parent, LINE_COLOURS);
    const axis = {
      stroke: found.text,
      grid: { stroke: found.grid, width: 1 },
      ticks: { show: false },
      font: '10px Inter, system-ui, sans-serif',
    };
    const made = new uPlot(
      {
        width: parent.clientWidth,
        height: HEIGHT_PX,
        legend: { show: false },
        padding: [6, 4, 0, 0],
        cursor: {
          sync: { key: SYNC_KEY, setSeries: false },
          drag: { x: false, y: false },
          points: { size: 6 },
        },
        scales: {
          x: { range: () => timeRange(latest.current.data[0], latest.current.windowMs) },
          y: { range: (_chart, _low, high) => [0, Math.max(high * 1.1, latest.current.spec.reach ?? 0) || 1] },
        },
        axes: [
          { ...axis, size: 18, gap: 2, values: (_chart, splits) => clocks(splits) },
          { ...axis, size: 50, gap: 4, space: 34, values: (_chart, splits) => splits.map(latest.current.spec.format) },
        ],
        series: [
          {},
          ...latest.current.spec.lines.map((_, index) => ({
            stroke: found[colourName(index)],
            width: 1.5,
            dash: [...(DASHES[index % DASHES.length] ?? [])],
            points: { show: false },
          })),
        ],
        hooks: { setCursor: [(drawn) => setPointedRow(drawn.cursor.idx ?? null)] },
      },
      latest.current.data,
      parent,
    );
    chart.current = made;
    const sizes = new ResizeObserver(() => made.setSize({ width: parent.clientWidth, height: HEIGHT_PX }));
    sizes.observe(parent);
    return () => {
      sizes.disconnect();
      made.destroy();
      chart.current = null;
    };
  }, [scheme, labels]);

  useEffect(() => chart.current?.setData(data), [data]);

  const row = pointedRow ?? data[0].length - 1;
  const told = spec.lines.map(({ label }, index) => ({ label, value: data[index + 1]?.[row] ?? null }));
  const spoken = told.map(({ label, value }) => `${label} ${value === null ? 'none' : spec.format(value)}`).join(', ');
  return (
    <figure class="chart">
      <figcaption>
        <span class="chart-title" title={spec.meaning}>
          {spec.title}
        </span>
        <span class="chart-legend">
          {told.map(({ label, value }, index) => (
            <span key={label} class="chart-line">
              <svg class={`chart-key chart-key-${index % DASHES.length}`} viewBox="0 0 14 4" aria-hidden="true">
                <line x1="0" y1="2" x2="14" y2="2" stroke-dasharray={(DASHES[index % DASHES.length] ?? []).join(' ')} />
              </svg>
              {label} <b>{value === null ? '–' : spec.format(value)}</b>
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={frame} role="img" aria-label={`${spec.title}: ${spec.meaning} ${spoken}`} />
    </figure>
  );
}

type Data = [seconds: number[], ...lines: (number | null)[][]];

function dataOf({ lines }: ChartSpec, track: Track, windowMs: number): Data {
  const last = track.atMs.length - 1;
  const first = Math.max(0, track.rowBefore(last, windowMs));
  const rows = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  return [rows.map((row) => (track.atMs[row] ?? 0) / 1000), ...lines.map(({ valueAt }) => rows.map(valueAt))];
}

function timeRange(seconds: readonly number[], windowMs: number): [number, number] {
  const end = seconds.at(-1) ?? Date.now() / 1000;
  return [end - windowMs / 1000, end];
}

/** Seconds where they differ. */
function clocks(splits: readonly number[]): string[] {
  const isFine = (splits[1] ?? 0) - (splits[0] ?? 0) < 60;
  return splits.map((seconds) =>
    new Date(seconds * 1000).toLocaleTimeString('en-GB', {
      hour: '2-digit',
      minute: '2-digit',
      ...(isFine ? { second: '2-digit' } : {}),
    }),
  );
}

function colourName(index: number): 'line0' | 'line1' | 'line2' | 'line3' | 'line4' | 'line5' {
  return (['line0', 'line1', 'line2', 'line3', 'line4', 'line5'] as const)[index % 6] ?? 'line0';
}
