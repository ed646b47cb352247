/** Where the nodes and edges of a graph are drawn. */
import { Graph, layout } from '@dagrejs/dagre';
import type { GraphDrawing } from './api.ts';

export interface Drawn {
  readonly width: number;
  readonly height: number;
  readonly nodes: readonly DrawnNode[];
  readonly edges: readonly DrawnEdge[];
}

export interface DrawnNode {
  readonly id: string;
  readonly label: string;
  readonly kind: 'start' | 'end' | 'node';
  /** Of a node in a subgraph: the subgraph's place. */
  readonly within: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface DrawnEdge {
  readonly source: string;
  readonly target: string;
  readonly conditional: boolean;
  readonly label: string;
  readonly path: string;
}

const CHARACTER_PX = 7;
const NODE_HEIGHT_PX = 34;
const PADDING_PX = 28;
const MAX_LABEL_LENGTH = 32;

export function layOut(drawing: GraphDrawing): Drawn {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: 'TB', nodesep: 36, ranksep: 44, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  const nodes = drawing.nodes.map(({ id }) => ({ id, ...namesOf(id) }));
  for (const { id, label } of nodes) {
    graph.setNode(id, { width: Math.max(56, label.length * CHARACTER_PX + PADDING_PX), height: NODE_HEIGHT_PX });
  }
  const edges = drawing.edges.filter(({ source, target }) => graph.hasNode(source) && graph.hasNode(target));
  for (const [index, { source, target }] of edges.entries()) graph.setEdge(source, target, {}, String(index));
  layout(graph);
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return {
    width,
    height,
    nodes: nodes.map((node) => {
      const { x, y, width, height } = graph.node(node.id) as { x: number; y: number; width: number; height: number };
      return { ...node, x: x - width / 2, y: y - height / 2, width, height };
    }),
    edges: edges.map(({ source, target, conditional, data }, index) => {
      const { points } = graph.edge(source, target, String(index)) as { points: { x: number; y: number }[] };
      return {
        source,
        target,
        conditional: conditional === true,
        label: typeof data === 'string' ? data : '',
        path: curve(points),
      };
    }),
  };
}

function namesOf(id: string): Pick<DrawnNode, 'label' | 'kind' | 'within'> {
  if (id === '__start__') return { label: 'start', kind: 'start', within: '' };
  if (id === '__end__') return { label: 'end', kind: 'end', within: '' };
  const mark = id.lastIndexOf(':');
  const name = mark < 0 ? id : id.slice(mark + 1);
  const label = name.length > MAX_LABEL_LENGTH ? `${name.slice(0, MAX_LABEL_LENGTH - 1)}…` : name;
  return { label, kind: 'node', within: mark < 0 ? '' : id.slice(0, mark) };
}

/** Through the middles, bent at the points. */
function curve(points: readonly { readonly x: number; readonly y: number }[]): string {
  const [first, ...rest] = points;
  if (first === undefined) return '';
  const bends = rest.slice(0, -1).map((point, index) => {
    const next = rest[index + 1] ?? point;
    const isLast = index === rest.length - 2;
    const [x, y] = isLast ? [next.x, next.y] : [(point.x + next.x) / 2, (point.y + next.y) / 2];
    return `Q${r(point.x)} ${r(point.y)} ${r(x)} ${r(y)}`;
  });
  const last = rest.at(-1) ?? first;
  return `M${r(first.x)} ${r(first.y)}${bends.length === 0 ? `L${r(last.x)} ${r(last.y)}` : bends.join('')}`;
}

function r(value: number): number {
  return Math.round(value * 10) / 10;
}
