/** Latency over time: one column an interval, the darker the more traces; red below where some failed. Dragging narrows the list. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import type { Stats } from '../../../../backend/api.ts';
import { count, duration, time } from '../../parts/format.ts';
import { colours, useScheme } from '../../parts/scheme.ts';
import { edges, rangeOf, type DraggedRange } from './latency.ts';

export interface HeatmapProps {
  readonly stats: Stats;
  readonly onDrag: (range: DraggedRange) => void;
}

const HEIGHT_PX = 132;
/** A drag flatter or narrower than this is one along the other axis. */
const AXIS_DRAG_PX = 16;
const ERROR_STRIP_PX = 3;

export function Heatmap({ stats, onDrag }: HeatmapProps) {
  const frame = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const latest = useRef({ stats, onDrag });
  latest.current = { stats, onDrag };
  const [pointed, setPointed] = useState('');
  const scheme = useScheme();

  useEffect(() => {
    const parent = frame.current;
    if (parent === null) return;
    const { text, line, heat, bad } = colours(parent, {
      text: '--quiet',
      line: '--line',
      heat: '--heat',
      bad: '--bad',
    });
    const axis = {
      stroke: text,
      grid: { stroke: line, width: 1 },
      ticks: { show: false },
      font: '11px Inter, system-ui, sans-serif',
    };
    const made = new uPlot(
      {
        width: parent.clientWidth,
        height: HEIGHT_PX,
        legend: { show: false },
        padding: [6, 8, 0, 0],
        cursor: { drag: { x: true, y: true, uni: AXIS_DRAG_PX, setScale: false }, points: { show: false } },
        scales: {
          x: { range: () => timeRange(latest.current.stats) },
          y: { range: () => bucketRange(latest.current.stats) },
        },
        axes: [
          { ...axis, size: 22, gap: 4, values: (_chart, found) => timeLabels(found) },
          {
            ...axis,
            size: 52,
            gap: 2,
            splits: (_chart, _axis, low, high) => splits(low, high),
            values: (_chart, found) =>
              found.map((at) => duration(edges(latest.current.stats.latency.bounds_ms, at)[0])),
          },
        ],
        series: [{}, { show: true, paths: () => null, points: { show: false } }],
        hooks: {
          drawAxes: [(drawn) => draw(drawn, latest.current.stats, heat, bad)],
          setCursor: [(drawn) => setPointed(pointedAt(drawn, latest.current.stats))],
          setSelect: [
            (drawn) => {
              const range = selected(drawn, latest.current.stats);
              if (range !== null) latest.current.onDrag(range);
              drawn.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            },
          ],
        },
      },
      dataOf(latest.current.stats),
      parent,
    );
    chart.current = made;
    const sizes = new ResizeObserver(() => made.setSize({ width: parent.clientWidth, height: HEIGHT_PX }));
    sizes.observe(parent);
    return () => {
      sizes.disconnect();
      made.destroy();
    };
  }, [scheme]);

  // At once: a drag is read by the scales that are in force.
  useLayoutEffect(() => chart.current?.setData(dataOf(stats)), [stats]);

  const label = `Latency of ${count(stats.trace_count)} traces over time. Drag to narrow the list.`;
  return (
    <div class="heatmap">
      <div ref={frame} role="img" aria-label={label} />
      <output class="heatmap-note">{pointed}</output>
    </div>
  );
}

function dataOf({ time: { buckets } }: Stats): uPlot.AlignedData {
  const starts = buckets.map(({ start_time }) => Date.parse(start_time) / 1000);
  return [starts, starts.map(() => null)];
}

function timeRange({ time: { bucket_ms, buckets } }: Stats): [number, number] {
  const first = buckets[0];
  if (first === undefined) return [Date.now() / 1000 - 60, Date.now() / 1000];
  const from = Date.parse(first.start_time) / 1000;
  return [from, from + (buckets.length * bucket_ms) / 1000];
}

/** From the first bucket that anything fell into to the last, with room. */
function bucketRange({ latency: { counts } }: Stats): [number, number] {
  const first = counts.findIndex((each) => each > 0);
  if (first < 0) return [0, 12];
  const last = counts.findLastIndex((each) => each > 0);
  return [Math.max(0, first - 1), Math.max(last + 2, first + 5)];
}

/** Seconds where they differ, the date where a day begins or the scale is in days. */
function timeLabels(splits: readonly number[]): string[] {
  const stepS = (splits[1] ?? 0) - (splits[0] ?? 0);
  return splits.map((at) => {
    const date = new Date(at * 1000);
    const clock = date.toLocaleTimeString('en-GB', {
      hour: '2-digit',
      minute: '2-digit',
      ...(stepS < 60 ? { second: '2-digit' } : {}),
    });
    const isDay = date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0;
    return isDay || stepS >= 86_400 ? date.toLocaleDateString('en', { month: 'short', day: 'numeric' }) : clock;
  });
}

/** Every third bound is a power of ten or between two. */
function splits(low: number, high: number): number[] {
  const step = high - low > 9 ? 3 : 2;
  const found: number[] = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) found.push(at);
  return found;
}

function draw(chart: uPlot, { time: { bucket_ms, buckets } }: Stats, heat: string, bad: string): void {
  const { ctx, bbox } = chart;
  const most = Math.max(1, ...buckets.flatMap(({ latency_counts }) => latency_counts));
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const { start_time, latency_counts, trace_count, error_trace_count } of buckets) {
    const from = Date.parse(start_time) / 1000;
    const left = chart.valToPos(from, 'x', true);
    const width = Math.max(1, chart.valToPos(from + bucket_ms / 1000, 'x', true) - left - 1);
    for (const [index, found] of latency_counts.entries()) {
      if (found === 0) continue;
      const top = chart.valToPos(index + 1, 'y', true);
      const height = chart.valToPos(index, 'y', true) - top - 1;
      ctx.fillStyle = `rgb(${heat} / ${0.18 + 0.82 * Math.sqrt(found / most)})`;
      ctx.fillRect(left, top, width, height);
    }
    if (error_trace_count > 0) {
      const height = ERROR_STRIP_PX * devicePixelRatio * (1 + error_trace_count / trace_count);
      ctx.fillStyle = bad;
      ctx.fillRect(left, bbox.top + bbox.height - height, width, height);
    }
  }
  ctx.restore();
}

function pointedAt(chart: uPlot, { time: { bucket_ms, buckets }, latency: { bounds_ms } }: Stats): string {
  const { left = -1, top = -1 } = chart.cursor;
  if (left < 0 || top < 0) return '';
  const [from] = timeRange({ time: { bucket_ms, buckets } } as Stats);
  const bucket = buckets[Math.floor(((chart.posToVal(left, 'x') - from) * 1000) / bucket_ms)];
  if (bucket === undefined || bucket.trace_count === 0) return '';
  const index = Math.floor(chart.posToVal(top, 'y'));
  const here = bucket.latency_counts[index] ?? 0;
  const [low, high] = edges(bounds_ms, index);
  const failed = bucket.error_trace_count === 0 ? '' : `, ${bucket.error_trace_count} failed`;
  const cell = here === 0 ? '' : ` · ${duration(low)} to ${duration(high)}: ${here}`;
  return `${time(bucket.start_time)} · ${count(bucket.trace_count)} traces${failed}${cell}`;
}

function selected(chart: uPlot, stats: Stats): DraggedRange | null {
  const { left, top, width, height } = chart.select;
  if (width < 2 || height < 2) return null;
  // A drag along one axis selects all of the other.
  const isWhole = height >= chart.over.clientHeight - 1;
  const isWide = width >= chart.over.clientWidth - 1;
  const times: [number, number] = isWide
    ? timeRange(stats)
    : [chart.posToVal(left, 'x'), chart.posToVal(left + width, 'x')];
  const heights: [number, number] = [chart.posToVal(top + height, 'y'), chart.posToVal(top, 'y')];
  return rangeOf(stats.latency.bounds_ms, times, isWhole ? null : heights);
}
