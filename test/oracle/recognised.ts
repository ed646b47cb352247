/**
 * The attributes that the mapping knows, used on a span or not: these are never copied as generic attributes. One list
 * per convention; a name that ends in `*` is a prefix.
 */
const recognised: Readonly<Record<string, string>> = {
  langsmith: 'langsmith.*',

  genAi: `
    gen_ai.input.messages gen_ai.output.messages gen_ai.system_instructions gen_ai.tool.definitions
    gen_ai.prompt gen_ai.prompt.* gen_ai.completion gen_ai.completion.*
    gen_ai.operation.name gen_ai.provider.name gen_ai.system gen_ai.conversation.id gen_ai.data_source.id
    gen_ai.agent.name gen_ai.agent.id gen_ai.workflow.name gen_ai.user
    gen_ai.tool.name gen_ai.tool.description gen_ai.tool.call.id gen_ai.tool.call.arguments gen_ai.tool.call.result
    gen_ai.retrieval.query.text gen_ai.retrieval.documents gen_ai.task.input gen_ai.task.output
    gen_ai.request.model gen_ai.request.temperature gen_ai.request.top_p gen_ai.request.top_k gen_ai.request.max_tokens
    gen_ai.request.frequency_penalty gen_ai.request.presence_penalty gen_ai.request.seed gen_ai.request.encoding_formats
    gen_ai.request.stop_sequences gen_ai.request.choice.count gen_ai.request.stream gen_ai.is_streaming
    gen_ai.request.reasoning_effort gen_ai.request.repetition_penalty gen_ai.request.max_completion_tokens
    gen_ai.request.structured_output_schema gen_ai.output.type gen_ai.embeddings.dimension.count
    openai.request.service_tier gen_ai.openai.request.seed gen_ai.openai.request.service_tier
    gen_ai.openai.request.response_format
    gen_ai.response.model gen_ai.response.id gen_ai.response.finish_reasons gen_ai.response.finish_reason
    gen_ai.serialized.name gen_ai.serialized.signature gen_ai.serialized.doc
    error.type mcp.method.name mcp.session.id mcp.request.argument mcp.response.value`,

  usage: `
    gen_ai.usage.input_tokens gen_ai.usage.prompt_tokens gen_ai.usage.output_tokens gen_ai.usage.completion_tokens
    gen_ai.usage.total_tokens gen_ai.usage.cache_read.input_tokens gen_ai.usage.cache_read_input_tokens
    gen_ai.usage.details.cache_read_tokens gen_ai.usage.cache_creation.input_tokens
    gen_ai.usage.cache_creation_input_tokens gen_ai.usage.details.cache_write_tokens
    gen_ai.usage.reasoning.output_tokens gen_ai.usage.reasoning_tokens gen_ai.usage.details.reasoning_tokens
    gen_ai.usage.audio.input_tokens gen_ai.usage.audio.output_tokens gen_ai.usage.details.input_audio_tokens
    gen_ai.usage.details.output_audio_tokens gen_ai.usage.image.input_tokens gen_ai.usage.video.input_tokens
    gen_ai.usage.input_token_details gen_ai.usage.output_token_details
    gen_ai.aggregated_usage.*
    llm.usage.total_tokens llm.usage.reasoning_tokens llm.token_count.prompt llm.token_count.completion
    llm.token_count.total llm.token_count.prompt_details.cache_read llm.token_count.prompt_details.cache_write
    llm.token_count.prompt_details.audio llm.token_count.completion_details.reasoning
    llm.token_count.completion_details.audio
    llm.cost.prompt llm.cost.completion llm.cost.total operation.cost llm.cost.prompt_details.cache_read
    llm.cost.prompt_details.cache_write llm.cost.prompt_details.audio llm.cost.prompt_details.input
    llm.cost.completion_details.reasoning llm.cost.completion_details.audio llm.cost.completion_details.output
    ai.usage.inputTokens ai.usage.promptTokens ai.usage.tokens ai.usage.outputTokens ai.usage.completionTokens
    ai.usage.totalTokens ai.usage.inputTokenDetails.cacheReadTokens ai.usage.inputTokenDetails.cacheWriteTokens
    ai.usage.outputTokenDetails.reasoningTokens ai.usage.cachedInputTokens ai.usage.reasoningTokens`,

  openInference: `
    openinference.span.kind input.value input.mime_type output.value output.mime_type
    llm.input_messages.* llm.output_messages.* llm.prompts.* llm.choices.* llm.tools.* llm.invocation_parameters
    llm.prompt_template.template llm.prompt_template.version llm.prompt_template.variables
    llm.system llm.provider llm.model_name llm.response.model_name llm.finish_reason
    embedding.model_name embedding.invocation_parameters embedding.embeddings.*
    retrieval.documents.* reranker.query reranker.top_k reranker.model_name reranker.input_documents.*
    reranker.output_documents.* tool.name tool.description tool.parameters tool.json_schema
    tool_call.id tool_call.function.arguments
    session.id user.id enduser.id metadata tag.tags agent.name graph.node.id graph.node.name graph.node.parent_id`,

  traceloop: `
    traceloop.span.kind traceloop.entity.name traceloop.entity.input traceloop.entity.output traceloop.workflow.name
    traceloop.association.properties.* traceloop.llm.request.type llm.request.type llm.request.functions.*
    llm.presence_penalty llm.frequency_penalty llm.top_k llm.chat.stop_sequences llm.user`,

  vercel: `
    ai.operationId ai.prompt ai.prompt.messages ai.prompt.tools ai.prompt.toolChoice
    ai.response.text ai.response.object ai.response.reasoning ai.response.toolCalls ai.response.files
    ai.response.finishReason ai.response.id ai.response.providerMetadata
    ai.toolCall.name ai.toolCall.id ai.toolCall.args ai.toolCall.result
    ai.value ai.values ai.embedding ai.embeddings ai.documents ai.ranking ai.model.id ai.model.provider
    ai.settings.maxOutputTokens ai.settings.maxTokens ai.settings.temperature ai.settings.topP ai.settings.topK
    ai.settings.presencePenalty ai.settings.frequencyPenalty ai.settings.stopSequences ai.settings.seed
    ai.telemetry.metadata.* ai.settings.context.* ai.settings.runtimeContext.*`,

  pydantic: `
    prompt final_result events all_messages_events pydantic_ai.all_messages pydantic_ai.new_message_index
    model_request_parameters tools tool_arguments tool_response agent_name model model_name`,
};

const names = Object.values(recognised).flatMap((list) => list.trim().split(/\s+/));
const exact = new Set(names.filter((name) => !name.endsWith('*')));
const prefixes = names.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1));

export function isRecognised(key: string): boolean {
  return exact.has(key) || prefixes.some((prefix) => key.startsWith(prefix));
}

export const recognisedNames: readonly string[] = [...exact];
