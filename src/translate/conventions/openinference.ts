/**
 * OpenInference.
 *
 * | Attributes                                                      | Inputs                             | Outputs |
 * | --------------------------------------------------------------- | ---------------------------------- | ------- |
 * | `llm.input_messages.N.message.*` (+ `llm.tools.N`) / `llm.output_messages…` | `{"messages", "tools"?}` | `{"messages"}` |
 * | `llm.prompts.N.prompt.text` / `llm.choices.N.completion.text`   | `{"prompt"}`                       | `{"choices":[{"text"}]}` |
 * | `llm.prompt_template.variables` on prompt runs                  | as it is                           | |
 * | `input.value` of a retriever / `retrieval.documents.N`          | `{"query"}`                        | `{"documents"}` |
 * | `reranker.query`, `.input_documents.N`, `.top_k` / `.output_documents.N` | `{"query"?,"documents"?,"top_k"?}` | `{"documents"}` |
 * | `embedding.embeddings.N.embedding.text` / `….vector`            | `{"input":[…]}`                    | `{"embeddings":[[…]]}` |
 * | `input.value`, `tool_call.function.arguments` / `output.value`  | as wrapped                         | as wrapped |
 */
import type { Messages } from '../messages/messages.ts';
import type { Source, Span } from '../span.ts';
import type { Toolbox } from '../toolbox.ts';
import type { Wrapping } from '../wrap.ts';
import type { Writer } from '../writer.ts';
import type { GenAi } from './genai.ts';
import { indexedDocuments } from './openinference/documents.ts';
import { indexedEmbeddings } from './openinference/embeddings.ts';
import { indexedMessages } from './openinference/messages.ts';
import { wholeValues } from './openinference/values.ts';

export interface OpenInference {
  readonly templateInputs: Source;
  readonly messageInputs: Source;
  readonly messageOutputs: Source;
  readonly rerankerInputs: Source;
  readonly rerankerOutputs: Source;
  readonly embeddingInputs: Source;
  readonly embeddingOutputs: Source;
  readonly retrieverInputs: Source;
  readonly retrieverOutputs: Source;
  readonly valueInputs: Source;
  readonly valueOutputs: Source;
  /** Writes `llm.tools.N.tool.json_schema`, normalised, each with a comma. */
  readonly tools: (span: Span, out: Writer) => void;
  /** Whether the completions API's keys are there. */
  readonly isCompletion: (span: Span) => boolean;
}

export function openInference(box: Toolbox, messages: Messages, wrapping: Wrapping, genAi: GenAi): OpenInference {
  const indexed = indexedMessages(box, messages, genAi);
  const documents = indexedDocuments(box);
  const whole = wholeValues(box, messages, wrapping);
  const embeddings = indexedEmbeddings(box, wrapping, whole);
  return {
    templateInputs: whole.templateInputs,
    messageInputs: indexed.inputs,
    messageOutputs: indexed.outputs,
    rerankerInputs: documents.rerankerInputs,
    rerankerOutputs: documents.rerankerOutputs,
    embeddingInputs: embeddings.inputs,
    embeddingOutputs: embeddings.outputs,
    retrieverInputs: whole.retrieverInputs,
    retrieverOutputs: documents.retrieverOutputs,
    valueInputs: whole.inputs,
    valueOutputs: whole.outputs,
    tools: indexed.tools,
    isCompletion: indexed.isCompletion,
  };
}
