/** A graph, drawn; `marked` nodes are those that are next. */
import { useId, useMemo } from 'preact/hooks';
import type { GraphDrawing } from './api.ts';
import { layOut } from './layout.ts';

export interface GraphProps {
  readonly drawing: GraphDrawing;
  readonly marked?: readonly string[];
}

export function GraphPicture({ drawing, marked = [] }: GraphProps) {
  const drawn = useMemo(() => layOut(drawing), [drawing]);
  const arrow = useId();
  const words = drawn.edges.map(
    ({ source, target, conditional }) => `${source} ${conditional ? 'may lead' : 'leads'} to ${target}`,
  );
  return (
    <svg
      class="graph"
      viewBox={`0 0 ${drawn.width} ${drawn.height}`}
      width={drawn.width}
      height={drawn.height}
      role="img"
      aria-label={`Graph of ${drawn.nodes.length} nodes: ${words.join('; ')}`}
    >
      <defs>
        <marker
          id={arrow}
          viewBox="0 0 8 8"
          refX="7"
          refY="4"
          markerWidth="7"
          markerHeight="7"
          orient="auto-start-reverse"
        >
          <path class="graph-head" d="M0 0 8 4 0 8z" />
        </marker>
      </defs>
      {drawn.edges.map(({ path, conditional, label }, index) => (
        <g key={index}>
          <path class={conditional ? 'graph-edge graph-edge-may' : 'graph-edge'} d={path} marker-end={`url(#${arrow})`}>
            {label !== '' && <title>{label}</title>}
          </path>
        </g>
      ))}
      {drawn.nodes.map(({ id, label, kind, within, x, y, width, height }) => (
        <g
          key={id}
          class={`graph-node graph-node-${kind}${within === '' ? '' : ' graph-node-within'}${marked.includes(id) ? ' graph-node-next' : ''}`}
        >
          <title>{id}</title>
          <rect x={x} y={y} width={width} height={height} rx={kind === 'node' ? 6 : height / 2} />
          <text x={x + width / 2} y={y + height / 2 + (within === '' ? 4 : 8)} text-anchor="middle">
            {label}
          </text>
          {within !== '' && (
            <text class="graph-within" x={x + width / 2} y={y + 12} text-anchor="middle">
              {within}
            </text>
          )}
        </g>
      ))}
    </svg>
  );
}
