/**
 * Run type: evaluated from the top, the first row that yields a value wins; an unknown value falls through.
 *
 * | # | Attribute                                         | Values |
 * | - | ------------------------------------------------- | ------ |
 * | 1 | `langsmith.span.kind` (any case)                  | a run type itself |
 * | 2 | `ai.operationId`                                  | see VERCEL; any other `ai.*` is a chain |
 * | 3 | `gen_ai.operation.name`                           | see OPERATIONS; `*_memory`, `*_memory_store` are chains |
 * | 4 | `openinference.span.kind` (any case)              | see OPENINFERENCE |
 * | 5 | `llm.request.type`, `traceloop.llm.request.type`  | embedding, rerank, else llm |
 * | 6 | `traceloop.span.kind`                             | tool; workflow, task, agent, unknown: chain |
 * | 7 | `mcp.method.name`                                 | tools/call, prompts/get, else chain |
 * | 8 | shape                                             | tool, retriever, embedding, llm or prompt by the keys that are there |
 * | 9 | nothing                                           | chain |
 */
import type { Attributes } from './attributes.ts';
import type { Key } from './keys.ts';
import { Mark } from './keys.ts';
import { EventKind, RUN_TYPE_NAMES, RunType } from './span.ts';
import type { Span } from './span.ts';
import type { Toolbox } from './toolbox.ts';
import { Words } from './words.ts';

const { Tool, Chain, Llm, Retriever, Embedding, Prompt } = RunType;

const VERCEL: Record<string, number> = {
  'ai.toolCall': Tool,
  'ai.embed.doEmbed': Embedding,
  'ai.embedMany.doEmbed': Embedding,
  'ai.rerank.doRerank': Retriever,
};
for (const verb of ['generate', 'stream']) {
  for (const what of ['Text', 'Object']) {
    for (const call of ['doGenerate', 'doStream']) VERCEL[`ai.${verb}${what}.${call}`] = Llm;
  }
}

const OPERATIONS: Readonly<Record<string, number>> = {
  chat: Llm,
  completion: Llm,
  text_completion: Llm,
  generate_content: Llm,
  llm_request: Llm,
  embedding: Embedding,
  embeddings: Embedding,
  execute_tool: Tool,
  retrieval: Retriever,
  rerank: Retriever,
  vector_db_retrieve: Retriever,
  search_memory: Retriever,
  create_agent: Chain,
  invoke_agent: Chain,
  invoke_workflow: Chain,
  agent_step: Chain,
  execute_task: Chain,
  goto: Chain,
  plan: Chain,
  execute_event_loop_cycle: Chain,
};

const OPENINFERENCE: Readonly<Record<string, number>> = {
  llm: Llm,
  embedding: Embedding,
  retriever: Retriever,
  reranker: Retriever,
  tool: Tool,
  chain: Chain,
  agent: Chain,
  guardrail: Chain,
  evaluator: Chain,
  prompt: Prompt,
};

const TRACELOOP: Readonly<Record<string, number>> = {
  tool: Tool,
  workflow: Chain,
  task: Chain,
  agent: Chain,
  unknown: Chain,
};
const REQUEST_TYPES: Readonly<Record<string, number>> = { embedding: Embedding, rerank: Retriever };
const MCP: Readonly<Record<string, number>> = { 'tools/call': Tool, 'prompts/get': Prompt };

const MESSAGE_EVENTS =
  (1 << EventKind.ContentPrompt) |
  (1 << EventKind.ContentCompletion) |
  (1 << EventKind.Choice) |
  (1 << EventKind.SystemMessage) |
  (1 << EventKind.UserMessage) |
  (1 << EventKind.AssistantMessage) |
  (1 << EventKind.ToolMessage) |
  (1 << EventKind.DeveloperMessage);

export function runTypes(box: Toolbox): (span: Span) => number {
  const { kernel, keys, lit } = box;
  const key = {
    langsmith: keys.key('langsmith.span.kind'),
    vercel: keys.key('ai.operationId'),
    operation: keys.key('gen_ai.operation.name'),
    openInference: keys.key('openinference.span.kind'),
    requestType: keys.key('llm.request.type'),
    otherRequestType: keys.key('traceloop.llm.request.type'),
    traceloop: keys.key('traceloop.span.kind'),
    mcp: keys.key('mcp.method.name'),
    toolName: keys.key('gen_ai.tool.name'),
    toolArguments: keys.key('tool_arguments'),
    toolResponse: keys.key('tool_response'),
    model: keys.key('gen_ai.request.model'),
    variables: keys.key('llm.prompt_template.variables'),
  };
  const llmLike = ['llm.model_name', 'llm.invocation_parameters', 'llm.system', 'llm.provider'].map((k) => keys.key(k));
  const own = new Words(box, Object.fromEntries(RUN_TYPE_NAMES.map((name, code) => [name, code])));
  const vercel = new Words(box, VERCEL);
  const operations = new Words(box, OPERATIONS);
  const openInference = new Words(box, OPENINFERENCE);
  const traceloop = new Words(box, TRACELOOP);
  const requestTypes = new Words(box, REQUEST_TYPES);
  const mcp = new Words(box, MCP);
  const aiPrefix = lit('ai.');
  const memory = [lit('_memory'), lit('_memory_store')];

  const find = (words: Words, attributes: Attributes, name: Key): number =>
    attributes.hasText(name) ? words.find(attributes.a(name), attributes.b(name)) : -1;

  function byVercel(attributes: Attributes): number {
    if (!attributes.hasText(key.vercel)) return -1;
    const at = attributes.a(key.vercel);
    const length = attributes.b(key.vercel);
    const found = vercel.find(at, length);
    if (found >= 0) return found;
    return length >= aiPrefix.length && kernel.x.equals(at, aiPrefix.at, aiPrefix.length) !== 0 ? Chain : -1;
  }

  function byOperation(attributes: Attributes): number {
    if (!attributes.hasText(key.operation)) return -1;
    const at = attributes.a(key.operation);
    const length = attributes.b(key.operation);
    const found = operations.find(at, length);
    if (found >= 0) return found;
    for (const end of memory) {
      if (length >= end.length && kernel.x.equals(at + length - end.length, end.at, end.length) !== 0) return Chain;
    }
    return -1;
  }

  function byShape(span: Span): number {
    const { attributes, marks } = span;
    if (attributes.has(key.toolName) || attributes.has(key.toolArguments) || attributes.has(key.toolResponse))
      return Tool;
    if ((marks & Mark.Retrieval) !== 0) return Retriever;
    if ((marks & Mark.Embedding) !== 0) return Embedding;
    const llmKey = (marks & Mark.LlmKey) !== 0 || (span.eventKinds & MESSAGE_EVENTS) !== 0;
    const hasModel = attributes.has(key.model);
    if (hasModel && llmKey) return Llm;
    if (!attributes.has(key.variables) || llmKey || hasModel) return Chain;
    for (const name of llmLike) if (attributes.has(name)) return Chain;
    return Prompt;
  }

  return (span) => {
    const { attributes, marks } = span;
    let found = -1;
    if ((marks & Mark.Langsmith) !== 0 && attributes.hasText(key.langsmith)) {
      found = own.findAnyCase(attributes.a(key.langsmith), attributes.b(key.langsmith));
    }
    if (found < 0 && (marks & Mark.Ai) !== 0) found = byVercel(attributes);
    if (found < 0) found = byOperation(attributes);
    if (found < 0 && attributes.hasText(key.openInference)) {
      found = openInference.findAnyCase(attributes.a(key.openInference), attributes.b(key.openInference));
    }
    if (found >= 0) return found;
    const requestType = attributes.hasText(key.requestType) ? key.requestType : key.otherRequestType;
    if (attributes.hasText(requestType)) {
      found = find(requestTypes, attributes, requestType);
      return found >= 0 ? found : Llm;
    }
    found = find(traceloop, attributes, key.traceloop);
    if (found >= 0) return found;
    if (attributes.hasText(key.mcp)) {
      found = find(mcp, attributes, key.mcp);
      return found >= 0 ? found : Chain;
    }
    return byShape(span);
  };
}
