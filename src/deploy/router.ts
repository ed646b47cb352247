/**
 * From a path to a handler. Comes in: method and path as on the wire. Goes out: a handler with decoded parameters, or the reason
 * why there is none. Built once, never changes, holds nothing between requests.
 */
import type { HttpRequest, HttpResponse } from '../core/http.ts';
import { isUuid } from './ids.ts';

export interface RouteContext {
  readonly request: HttpRequest;
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}
export type Handler = (context: RouteContext) => Promise<HttpResponse> | HttpResponse;

export interface Route {
  method: string;
  /** `/threads/:thread_id/runs`; a last segment `:name*` takes the rest of the path. */
  pattern: string;
  handler: Handler;
}

export type RouteMatch =
  | { kind: 'found'; handler: Handler; params: Record<string, string> }
  | { kind: 'not-found' }
  | { kind: 'method-not-allowed'; allowed: string[] }
  | { kind: 'malformed'; detail: string }
  | { kind: 'invalid'; detail: string };

export interface Router {
  /** Whether the path is one of ours, whatever the method. */
  claims(path: string): boolean;
  match(method: string, path: string): RouteMatch;
}

interface Node {
  readonly named: Map<string, Node>;
  /** Any one segment. */
  any: Node | null;
  /** All remaining segments. */
  rest: Node | null;
  readonly handlers: Map<string, { handler: Handler; names: string[] }>;
}

/** These may be a graph's name, a subgraph's namespace or a checkpoint's id; every other `…_id` is a UUID. */
const FREE_FORM = new Set(['assistant_id', 'checkpoint_id', 'namespace']);

export function createRouter(routes: readonly Route[], mountPrefix: string): Router {
  const prefix = mountPrefix.split('/').filter((segment) => segment !== '');
  const root = emptyNode();
  for (const route of routes) {
    const segments = route.pattern.split('/').slice(1);
    insert(root, segments, route);
    // Published webhook documentation spells thread routes in the singular.
    if (segments[0] === 'threads' && segments.length > 1) insert(root, ['thread', ...segments.slice(1)], route);
  }

  const walk = (path: string): { node: Node; values: string[] } | 'none' | 'malformed' => {
    const segments = path.split('/');
    // A trailing slash names the same thing.
    if (segments.length > 2 && segments[segments.length - 1] === '') segments.pop();
    let at = 1;
    for (const expected of prefix) if (segments[at++] !== expected) return 'none';
    let node = root;
    const values: string[] = [];
    for (; at < segments.length; at++) {
      const segment = segments[at] ?? '';
      const named = node.named.get(segment);
      if (named !== undefined) {
        node = named;
        continue;
      }
      if (node.any !== null && segment !== '') {
        // Matched before decoding, so that an escaped slash stays inside its parameter.
        const value = decoded(segment);
        if (value === null) return 'malformed';
        values.push(value);
        node = node.any;
        continue;
      }
      if (node.rest === null) return 'none';
      const value = decoded(segments.slice(at).join('/'));
      if (value === null) return 'malformed';
      values.push(value);
      return { node: node.rest, values };
    }
    return { node, values };
  };

  const first = new Set(root.named.keys());
  return {
    claims: (path) => {
      const segments = path.split('/');
      return (
        prefix.every((expected, index) => segments[index + 1] === expected) &&
        first.has(segments[prefix.length + 1] ?? '')
      );
    },
    match: (method, path) => {
      const found = walk(path);
      if (found === 'none') return { kind: 'not-found' };
      if (found === 'malformed') return { kind: 'malformed', detail: 'The path contains a malformed percent escape.' };
      const { node, values } = found;
      if (node.handlers.size === 0) return { kind: 'not-found' };
      const entry = node.handlers.get(method);
      if (entry === undefined) return { kind: 'method-not-allowed', allowed: [...node.handlers.keys()].sort() };
      const params: Record<string, string> = {};
      for (const [index, name] of entry.names.entries()) {
        const value = values[index] ?? '';
        if (name.endsWith('_id') && !FREE_FORM.has(name)) {
          if (!isUuid(value)) return { kind: 'invalid', detail: `${name}: must be a UUID` };
          params[name] = value.toLowerCase();
        } else params[name] = value;
      }
      return { kind: 'found', handler: entry.handler, params };
    },
  };
}

function emptyNode(): Node {
  return { named: new Map(), any: null, rest: null, handlers: new Map() };
}

function insert(root: Node, segments: readonly string[], route: Route): void {
  let node = root;
  const names: string[] = [];
  for (const segment of segments) {
    if (segment.startsWith(':')) {
      const takesRest = segment.endsWith('*');
      names.push(segment.slice(1, takesRest ? -1 : undefined));
      if (takesRest) node = node.rest ??= emptyNode();
      else node = node.any ??= emptyNode();
      continue;
    }
    let next = node.named.get(segment);
    if (next === undefined) node.named.set(segment, (next = emptyNode()));
    node = next;
  }
  node.handlers.set(route.method, { handler: route.handler, names });
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    // A client's malformed escape is an answer (400), not a failure of ours.
    return null;
  }
}
