/**
 * Users' graphs, out of their modules. In: the graphs that langgraph.json names. Out: for each, something that yields the
 * compiled graph; or the reasons why some could not be loaded. Runs in graph workers, where user code may live.
 *
 * Accepted exports: a compiled graph, a builder (`compile()`), a promise of either, an agent wrapper (`.graph`), and a
 * function `(config) => any of these`, called whenever the graph is needed.
 */
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { CompiledStateGraph } from '@langchain/langgraph';
import type { BaseCheckpointSaver, BaseStore, SerializerProtocol } from '@langchain/langgraph-checkpoint';
import type { WritesBehind } from '../checkpoint/behind.ts';
import { loadLibrary, type GraphLibrary } from './library.ts';
import type { CallConfig, GraphSpec, LoadFailure } from './protocol.ts';

/** As much of a graph as we use; which subclass it is, and whose copy of the library made it, does not matter. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- the library's own spelling for "any graph"
export type Graph = CompiledStateGraph<any, any, any>;

export interface LoadedGraph {
  readonly graphId: string;
  readonly library: GraphLibrary;
  /** The compiled graph with our checkpointer and store in place. A factory is called with `config`. */
  open(config: CallConfig): Graph | Promise<Graph>;
  /** Removes every checkpoint of a thread. */
  clear(threadId: string): Promise<void>;
  /** The run that wrote the thread's newest checkpoint; null when there is none. */
  latestRunId(threadId: string): Promise<string | null>;
  /** From here on the run does not wait for its checkpoints; null where it cannot be spared that. */
  writeBehind(runId: string): WritesBehind | null;
}

export type GraphSaver = BaseCheckpointSaver & Pick<LoadedGraph, 'latestRunId' | 'writeBehind'>;

export interface LoadSettings {
  graphs: readonly GraphSpec[];
  folder: string;
  /** A saver that reads with the graph's own classes; the same for all graphs of one copy of the library. */
  saverFor(serde: SerializerProtocol): Promise<GraphSaver>;
  store: BaseStore;
}

export type Loaded =
  { kind: 'loaded'; graphs: Map<string, LoadedGraph> } | { kind: 'unloadable'; failures: LoadFailure[] };

export async function loadGraphs(settings: LoadSettings): Promise<Loaded> {
  if (settings.graphs.length > 0) await acceptTypeScript(settings.folder);
  const graphs = new Map<string, LoadedGraph>();
  const failures: LoadFailure[] = [];
  for (const spec of settings.graphs) {
    try {
      graphs.set(spec.graphId, await loadGraph(spec, settings));
    } catch (error) {
      failures.push({ ...spec, reason: error instanceof Error ? error.message : String(error) });
    }
  }
  return failures.length > 0 ? { kind: 'unloadable', failures } : { kind: 'loaded', graphs };
}

/** From here on this thread imports TypeScript as the project's tsconfig.json means it. */
async function acceptTypeScript(folder: string): Promise<void> {
  const esm = await import('tsx/esm/api');
  const cjs = await import('tsx/cjs/api');
  const tsconfig = join(folder, 'tsconfig.json');
  esm.register({ tsconfig: existsSync(tsconfig) ? tsconfig : false });
  cjs.register();
}

async function loadGraph(spec: GraphSpec, settings: LoadSettings): Promise<LoadedGraph> {
  if (statSync(spec.file, { throwIfNoEntry: false })?.isFile() !== true) throw new Error('no such file');
  const module = (await import(pathToFileURL(spec.file).href)) as Record<string, unknown>;
  const exported = pick(module, spec.exportName);
  if (exported === undefined || exported === null) {
    const names = Object.keys(module).filter((name) => name !== 'default');
    throw new Error(`no such export; the module exports ${names.length > 0 ? names.join(', ') : 'nothing by name'}`);
  }
  const library = await loadLibrary(spec.file);
  const saver = await settings.saverFor(library.serde);
  const common = {
    graphId: spec.graphId,
    library,
    clear: (threadId: string) => saver.deleteThread(threadId),
    latestRunId: (threadId: string) => saver.latestRunId(threadId),
    writeBehind: (runId: string) => saver.writeBehind(runId),
  };
  const place = (graph: Graph): Graph => {
    graph.checkpointer = saver;
    graph.store = settings.store;
    return graph;
  };
  if (typeof exported === 'function') {
    const factory = exported as (config: object) => unknown;
    return { ...common, open: async (config) => place(compiled(await factory(config))) };
  }
  const graph = place(compiled(await Promise.resolve<unknown>(exported)));
  return { ...common, open: () => graph };
}

/** A CommonJS module appears as `default`, with its exports inside. */
function pick(module: Record<string, unknown>, exportName: string): unknown {
  if (exportName === '') {
    const inner = module['default'];
    return isObject(inner) && 'default' in inner ? inner['default'] : inner;
  }
  if (exportName in module) return module[exportName];
  const inner = module['default'];
  return isObject(inner) ? inner[exportName] : undefined;
}

function compiled(exported: unknown): Graph {
  if (isObject(exported)) {
    if (isCompiled(exported['graph'])) return exported['graph'];
    if (isCompiled(exported)) return exported;
    if (typeof exported['compile'] === 'function') {
      const result = (exported as unknown as { compile(): unknown }).compile();
      if (isCompiled(result)) return result;
    }
  }
  throw new Error('not a graph: expected a compiled graph, a builder with compile(), or a function that returns one');
}

function isCompiled(value: unknown): value is Graph {
  return (
    isObject(value) &&
    typeof value['stream'] === 'function' &&
    typeof value['getState'] === 'function' &&
    typeof value['updateState'] === 'function' &&
    isObject(value['nodes'])
  );
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
