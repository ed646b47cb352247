/** What a graph looks like from outside: drawing, JSON schemas, subgraphs. Runs in graph workers. */
import type { GraphLibrary, SchemaFunctions } from './library.ts';
import type { Graph } from './load.ts';
import type { CallConfig } from './protocol.ts';

export async function drawingOf(graph: Graph, config: CallConfig, xray: boolean | number): Promise<unknown> {
  return (await graph.getGraphAsync({ ...config, xray })).toJSON();
}

interface Schemas {
  input_schema: object | null;
  output_schema: object | null;
  state_schema: object | null;
  config_schema: object | null;
  context_schema: object | null;
}

export async function subgraphsOf(
  graph: Graph,
  library: GraphLibrary,
  namespace: string | null,
  recurse: boolean,
): Promise<Record<string, Schemas>> {
  const found: Record<string, Schemas> = {};
  for await (const [name, subgraph] of graph.getSubgraphsAsync(namespace ?? undefined, recurse))
    found[name] = schemasOf(subgraph as unknown as Graph, library);
  return found;
}

/**
 * Schemas that the graph was given (zod, StateSchema) are reported in full. A graph made of plain annotations knows the names of
 * its channels only; types exist in its source alone.
 */
export function schemasOf(graph: Graph, library: GraphLibrary): Schemas {
  const declared = library.schemas === null ? null : declaredBy(graph, library.schemas);
  const { streamChannels, outputChannels, inputChannels, channels } = graph as unknown as Channels;
  const internal = (name: string): boolean => name.startsWith('__') || name.startsWith('branch:');
  const object = (keys: string | string[] | undefined): object | null => {
    const names = (keys === undefined ? Object.keys(channels) : [keys].flat()).filter((name) => !internal(name));
    return names.length === 0
      ? null
      : { type: 'object', properties: Object.fromEntries(names.map((name) => [name, {}])) };
  };
  const state = declared?.state ?? object(streamChannels);
  const config = declared?.config ?? null;
  return {
    input_schema: declared?.input ?? object(inputChannels) ?? state,
    output_schema: declared?.output ?? object(outputChannels),
    state_schema: state,
    config_schema: config,
    context_schema: config,
  };
}

interface Channels {
  channels: Record<string, unknown>;
  inputChannels?: string | string[];
  outputChannels?: string | string[];
  streamChannels?: string | string[];
}

interface Declared {
  state: object | undefined;
  input: object | undefined;
  output: object | undefined;
  config: object | undefined;
}

function declaredBy(graph: Graph, functions: SchemaFunctions): Declared {
  const {
    _schemaRuntimeDefinition: state,
    _inputRuntimeDefinition: input,
    _outputRuntimeDefinition: output,
  } = (graph as unknown as { builder?: Record<string, unknown> }).builder ?? {};
  return {
    state: selfDescribed(state, 'getJsonSchema') ?? attempt(() => functions.getUpdateTypeSchema(graph)),
    input:
      selfDescribed(input, 'getInputJsonSchema') ??
      selfDescribed(state, 'getInputJsonSchema') ??
      attempt(() => functions.getInputTypeSchema(graph)),
    output: selfDescribed(output, 'getJsonSchema') ?? attempt(() => functions.getOutputTypeSchema(graph)),
    config: attempt(() => functions.getConfigTypeSchema(graph)),
  };
}

function selfDescribed(schema: unknown, method: string): object | undefined {
  if (typeof schema !== 'object' || schema === null) return undefined;
  const describe = (schema as Record<string, unknown>)[method];
  return typeof describe === 'function' ? attempt(() => describe.call(schema) as object) : undefined;
}

/** A schema that cannot be put as JSON schema (a transform, a custom class) is reported as unknown, which the API allows. */
function attempt(describe: () => object | undefined): object | undefined {
  try {
    return describe();
  } catch {
    return undefined;
  }
}
