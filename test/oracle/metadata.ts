/** `extra.metadata`, layer over layer; a later layer replaces keys of an earlier one. */
import { object, type Json, type JsonObject } from './json.ts';
import { vercelMetadataPrefixes } from './name.ts';
import type { Pair } from './otlp.ts';
import { isRecognised } from './recognised.ts';
import type { Span } from './span.ts';
import type { Usage } from './usage.ts';
import { Attributes, family, JObject, JValue } from './values.ts';

const spanKinds: Readonly<Record<number, string>> = { 2: 'server', 3: 'client', 4: 'producer', 5: 'consumer' };

/** Key → attributes, the first that is set and not empty. */
const derived: Readonly<Record<string, readonly string[]>> = {
  session_id: ['session.id', 'mcp.session.id'],
  conversation_id: ['gen_ai.conversation.id'],
  user_id: ['user.id', 'enduser.id', 'gen_ai.user', 'llm.user'],
  agent_name: ['gen_ai.agent.name', 'agent.name', 'agent_name'],
  agent_id: ['gen_ai.agent.id'],
  workflow_name: ['gen_ai.workflow.name', 'traceloop.workflow.name'],
  tool_call_id: ['gen_ai.tool.call.id', 'ai.toolCall.id', 'tool_call.id'],
  tool_description: ['gen_ai.tool.description', 'tool.description'],
  response_id: ['gen_ai.response.id', 'ai.response.id'],
  data_source_id: ['gen_ai.data_source.id'],
  graph_node_id: ['graph.node.id'],
  graph_node_name: ['graph.node.name'],
  graph_node_parent_id: ['graph.node.parent_id'],
  tool_parameters: ['tool.parameters'],
  tool_json_schema: ['tool.json_schema'],
  prompt_template: ['llm.prompt_template.template'],
  prompt_template_version: ['llm.prompt_template.version'],
};

const modelNames = [
  'gen_ai.request.model',
  'gen_ai.response.model',
  'model',
  'llm.model_name',
  'embedding.model_name',
  'reranker.model_name',
  'llm.response.model_name',
  'ai.model.id',
  'model_name',
];

export interface MetadataSources {
  readonly span: Span;
  readonly usage: Usage;
  readonly errorType: Json | undefined;
  readonly genericAttributes: boolean;
}

export function metadataOf(sources: MetadataSources): JsonObject {
  const { span, usage } = sources;
  const { attributes, input } = span;
  const metadata = new Map<string, Json>();
  const add = (layer: Iterable<[string, Json | undefined]>): void => {
    for (const [key, value] of layer) if (value !== undefined) metadata.set(key, value);
  };
  add(new Attributes(input.resource).map);
  if (sources.genericAttributes) add([...attributes.map].filter(([key]) => !isRecognised(key)));
  add([
    ['otel_scope', input.scopeName === '' ? undefined : input.scopeName],
    ['otel_span_kind', spanKinds[input.kind]],
    ['otel_links', linksOf(input.links)],
  ]);
  add(derivedKeys(sources));
  add(JObject(attributes.raw('metadata')) ?? []);
  add(withPrefix(attributes, 'traceloop.association.properties.'));
  for (const prefix of vercelMetadataPrefixes.toReversed()) {
    add(withPrefix(attributes, prefix, ['ls_run_name', 'ls_project_name', 'ls_project_id']));
  }
  add(
    withPrefix(attributes, 'langsmith.metadata.', ['ls_run_name', 'usage_metadata']).map(([key, value]) => [
      key,
      ['invocation_params', 'ls_invocation_params'].includes(key) ? JValue(value) : value,
    ]),
  );
  add([
    ['usage_metadata', usage.usageMetadata],
    ['aggregated_usage', usage.aggregatedUsage],
    ['OTEL_TRACE_ID', Buffer.from(input.traceId).toString('hex')],
    ['OTEL_SPAN_ID', Buffer.from(input.spanId).toString('hex')],
  ]);
  return metadata;
}

function withPrefix(attributes: Attributes, prefix: string, except: readonly string[] = []): [string, Json][] {
  return attributes
    .keys(prefix)
    .map((key): [string, Json] => [key.slice(prefix.length), attributes.raw(key) ?? null])
    .filter(([key]) => !except.includes(key));
}

function derivedKeys({ span, errorType }: MetadataSources): [string, Json | undefined][] {
  const { attributes, runType } = span;
  return [
    ['ls_provider', providerOf(attributes)],
    ['ls_model_name', attributes.string(...modelNames)],
    ['ls_model_type', runType === 'llm' ? modelTypeOf(attributes) : undefined],
    ...Object.entries(derived).map(([key, keys]): [string, Json | undefined] => [key, attributes.first(...keys)]),
    ['prompt_template_variables', runType === 'prompt' ? undefined : attributes.first('llm.prompt_template.variables')],
    ['error_type', errorType],
  ];
}

function providerOf(attributes: Attributes): string | undefined {
  const provider = attributes.string('gen_ai.provider.name', 'gen_ai.system', 'llm.system', 'llm.provider');
  const vercel = attributes.string('ai.model.provider');
  if (provider !== undefined && provider !== vercel) return provider;
  const cut = vercel?.split('.')[0];
  return cut === '' ? undefined : cut;
}

function modelTypeOf(attributes: Attributes): string {
  const operation = attributes.string('gen_ai.operation.name');
  if (operation !== undefined) return ['text_completion', 'completion'].includes(operation) ? 'llm' : 'chat';
  const requestType = attributes.string('llm.request.type', 'traceloop.llm.request.type');
  if (requestType !== undefined) return requestType === 'completion' ? 'llm' : 'chat';
  const completions = [
    ...family(attributes.map, 'llm.prompts.').map((members) => members.has('prompt.text')),
    ...family(attributes.map, 'llm.choices.').map((members) => members.has('completion.text')),
  ];
  return completions.some(Boolean) ? 'llm' : 'chat';
}

function linksOf(links: readonly { traceId: Uint8Array; spanId: Uint8Array; attributes: Pair[] }[]): Json | undefined {
  const valid = links.filter(
    ({ traceId, spanId }) =>
      traceId.length === 16 && spanId.length === 8 && traceId.some((b) => b !== 0) && spanId.some((b) => b !== 0),
  );
  if (valid.length === 0) return undefined;
  return valid.map(({ traceId, spanId, attributes }) => {
    const { map } = new Attributes(attributes);
    return object(
      ['trace_id', Buffer.from(traceId).toString('hex')],
      ['span_id', Buffer.from(spanId).toString('hex')],
      ['attributes', map.size > 0 ? new Map(map) : undefined],
    );
  });
}
