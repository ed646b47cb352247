/** `extra.invocation_params`. */
import type { Json, JsonObject } from './json.ts';
import { toolDefinitions } from './genai.ts';
import { toolDefinition } from './messages.ts';
import { openInferenceTools } from './openinference.ts';
import { requestParameterTools } from './pydantic.ts';
import { operationDetails, type Span } from './span.ts';
import { requestFunctions } from './traceloop.ts';
import { JArray, JObject, JValue } from './values.ts';

/** Key → attributes, first present wins; the order is that of the conventions: GenAI, OpenLLMetry, AI SDK settings. */
const parameters: Readonly<Record<string, readonly string[]>> = {
  model: ['gen_ai.response.model', 'gen_ai.request.model'],
  temperature: ['gen_ai.request.temperature', 'ai.settings.temperature'],
  top_p: ['gen_ai.request.top_p', 'ai.settings.topP'],
  top_k: ['gen_ai.request.top_k', 'llm.top_k', 'ai.settings.topK'],
  max_tokens: ['gen_ai.request.max_tokens', 'ai.settings.maxOutputTokens', 'ai.settings.maxTokens'],
  frequency_penalty: ['gen_ai.request.frequency_penalty', 'llm.frequency_penalty', 'ai.settings.frequencyPenalty'],
  presence_penalty: ['gen_ai.request.presence_penalty', 'llm.presence_penalty', 'ai.settings.presencePenalty'],
  seed: ['gen_ai.request.seed', 'gen_ai.openai.request.seed', 'ai.settings.seed'],
  encoding_formats: ['gen_ai.request.encoding_formats'],
  n: ['gen_ai.request.choice.count'],
  stream: ['gen_ai.request.stream', 'gen_ai.is_streaming'],
  output_type: ['gen_ai.output.type'],
  dimensions: ['gen_ai.embeddings.dimension.count'],
  reasoning_effort: ['gen_ai.request.reasoning_effort'],
  repetition_penalty: ['gen_ai.request.repetition_penalty'],
  max_completion_tokens: ['gen_ai.request.max_completion_tokens'],
  service_tier: ['openai.request.service_tier', 'gen_ai.openai.request.service_tier'],
  tool_name: ['gen_ai.tool.name'],
};

/** The same, read as documents. */
const documents: Readonly<Record<string, readonly string[]>> = {
  stop: ['gen_ai.request.stop_sequences', 'llm.chat.stop_sequences', 'ai.settings.stopSequences'],
  structured_output_schema: ['gen_ai.request.structured_output_schema'],
  response_format: ['gen_ai.openai.request.response_format'],
  tool_choice: ['ai.prompt.toolChoice'],
  tool_arguments: ['tool_arguments'],
};

export function invocationParamsOf(span: Span): JsonObject | undefined {
  const { attributes } = span;
  const params = new Map<string, Json>([
    ...(JObject(attributes.raw('embedding.invocation_parameters')) ?? []),
    ...(JObject(attributes.raw('llm.invocation_parameters')) ?? []),
  ]);
  for (const [name, keys] of Object.entries(parameters)) {
    const value = attributes.first(...keys);
    if (value !== undefined) params.set(name, value);
  }
  for (const [name, keys] of Object.entries(documents)) {
    const value = keys.map((key) => JValue(attributes.raw(key))).find((found) => found !== undefined);
    if (value !== undefined) params.set(name, value);
  }
  const tools = toolsOf(span);
  if (tools !== undefined) params.set('tools', tools);
  return params.size === 0 ? undefined : params;
}

/** The first source that has any. */
function toolsOf(span: Span): Json | undefined {
  const { attributes } = span;
  const details = operationDetails(span);
  const vercel = JArray(attributes.raw('ai.prompt.tools')) ?? [];
  const plain = JValue(attributes.raw('tools'));
  const sources: Json[] = [
    toolDefinitions(attributes),
    details === undefined ? [] : toolDefinitions(details),
    openInferenceTools(span),
    requestFunctions(span),
    vercel.map((item) => (typeof item === 'string' ? (JValue(item) ?? null) : item)).map(toolDefinition),
    Array.isArray(plain) ? plain.map(toolDefinition) : (plain ?? []),
    requestParameterTools(span),
  ];
  return sources.find((tools) => !Array.isArray(tools) || tools.length > 0);
}
