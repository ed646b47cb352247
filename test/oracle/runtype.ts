/** Run type: the rows from the top, an unrecognised value falls through. */
import type { Attributes } from './values.ts';
import { isMessageEvent, type SpanEvent } from './span.ts';

const RUN_TYPES = ['tool', 'chain', 'llm', 'retriever', 'embedding', 'prompt', 'parser'];

const operations: Readonly<Record<string, string>> = {
  chat: 'llm',
  completion: 'llm',
  embedding: 'embedding',
  text_completion: 'llm',
  generate_content: 'llm',
  embeddings: 'embedding',
  execute_tool: 'tool',
  retrieval: 'retriever',
  create_agent: 'chain',
  invoke_agent: 'chain',
  invoke_workflow: 'chain',
  llm_request: 'llm',
  vector_db_retrieve: 'retriever',
  execute_task: 'chain',
  goto: 'chain',
  rerank: 'retriever',
  agent_step: 'chain',
  plan: 'chain',
  search_memory: 'retriever',
  execute_event_loop_cycle: 'chain',
};

const openInferenceKinds: Readonly<Record<string, string>> = {
  llm: 'llm',
  embedding: 'embedding',
  retriever: 'retriever',
  tool: 'tool',
  chain: 'chain',
  agent: 'chain',
  guardrail: 'chain',
  evaluator: 'chain',
  reranker: 'retriever',
  prompt: 'prompt',
};

const traceloopKinds: Readonly<Record<string, string>> = {
  tool: 'tool',
  workflow: 'chain',
  task: 'chain',
  agent: 'chain',
  unknown: 'chain',
};

const vercelOperations: Readonly<Record<string, string>> = {
  'ai.toolCall': 'tool',
  'ai.embed.doEmbed': 'embedding',
  'ai.embedMany.doEmbed': 'embedding',
  'ai.rerank.doRerank': 'retriever',
};

export function runTypeOf(attributes: Attributes, events: readonly SpanEvent[]): string {
  return (
    bySpanKind(attributes.string('langsmith.span.kind')) ??
    byVercel(attributes.string('ai.operationId')) ??
    byOperation(attributes.string('gen_ai.operation.name')) ??
    lookUp(openInferenceKinds, attributes.string('openinference.span.kind')?.toLowerCase()) ??
    byRequestType(attributes.string('llm.request.type', 'traceloop.llm.request.type')) ??
    lookUp(traceloopKinds, attributes.string('traceloop.span.kind')) ??
    byMcp(attributes.string('mcp.method.name')) ??
    byShape(attributes, events) ??
    'chain'
  );
}

function lookUp(table: Readonly<Record<string, string>>, value: string | undefined): string | undefined {
  return value !== undefined && Object.hasOwn(table, value) ? table[value] : undefined;
}

function bySpanKind(value: string | undefined): string | undefined {
  return RUN_TYPES.find((type) => type === value?.toLowerCase());
}

function byVercel(value: string | undefined): string | undefined {
  if (value === undefined || !value.startsWith('ai.')) return undefined;
  if (/^ai\.(generate|stream)(Text|Object)\.do(Generate|Stream)$/.test(value)) return 'llm';
  return lookUp(vercelOperations, value) ?? 'chain';
}

function byOperation(value: string | undefined): string | undefined {
  const known = lookUp(operations, value);
  if (known !== undefined) return known;
  return value !== undefined && /_memory(_store)?$/.test(value) ? 'chain' : undefined;
}

function byRequestType(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  return { embedding: 'embedding', rerank: 'retriever' }[value] ?? 'llm';
}

function byMcp(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  return value === 'tools/call' ? 'tool' : value === 'prompts/get' ? 'prompt' : 'chain';
}

const llmKeyPrefixes = [
  'gen_ai.prompt',
  'gen_ai.completion',
  'gen_ai.usage.',
  'gen_ai.input.messages',
  'gen_ai.output.messages',
  'llm.input_messages.',
  'llm.output_messages.',
  'llm.prompts.',
  'llm.choices.',
  'llm.token_count.',
  'llm.usage.',
];

function byShape(attributes: Attributes, events: readonly SpanEvent[]): string | undefined {
  const has = (...keys: string[]): boolean => keys.some((key) => attributes.has(key));
  const hasPrefix = (prefix: string): boolean => [...attributes.map.keys()].some((key) => key.startsWith(prefix));
  const llmKey = llmKeyPrefixes.some(hasPrefix) || events.some((event) => isMessageEvent(event.name));

  if (has('gen_ai.tool.name', 'tool_arguments', 'tool_response')) return 'tool';
  if (hasPrefix('retrieval.documents.') || hasPrefix('gen_ai.retrieval.')) return 'retriever';
  if (hasPrefix('embedding.')) return 'embedding';
  if (has('gen_ai.request.model') && llmKey) return 'llm';
  const llmLike =
    llmKey || has('gen_ai.request.model', 'llm.model_name', 'llm.invocation_parameters', 'llm.system', 'llm.provider');
  if (has('llm.prompt_template.variables') && !llmLike) return 'prompt';
  return undefined;
}
