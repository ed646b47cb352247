/**
 * A chat model that needs no key: it says what its script tells it to for the conversation so far, word by word, and the same
 * every time.
 */
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessage, AIMessageChunk, type BaseMessage, type UsageMetadata } from '@langchain/core/messages';
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs';

export interface Reply {
  text: string;
  toolCall?: { name: string; args: Record<string, unknown> };
}
export type Script = (conversation: BaseMessage[]) => Reply;

export class ScriptedModel extends BaseChatModel {
  readonly #script: Script;

  constructor(script: Script) {
    super({});
    this.#script = script;
  }

  override _llmType(): string {
    return 'scripted';
  }

  override async _generate(conversation: BaseMessage[]): Promise<ChatResult> {
    const { text, toolCall } = this.#script(conversation);
    const calls = toolCall === undefined ? [] : [{ ...toolCall, id: callId(conversation), type: 'tool_call' as const }];
    const fields = { content: text, tool_calls: calls, usage_metadata: usage(conversation, text) };
    const message = new AIMessage(fields as ConstructorParameters<typeof AIMessage>[0]);
    return { generations: [{ text, message }] };
  }

  override async *_streamResponseChunks(
    conversation: BaseMessage[],
    _options: this['ParsedCallOptions'],
    runManager?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const { text, toolCall } = this.#script(conversation);
    for (const word of text.match(/\S+\s*/g) ?? []) {
      const chunk = new ChatGenerationChunk({ text: word, message: new AIMessageChunk({ content: word }) });
      yield chunk;
      await runManager?.handleLLMNewToken(word, undefined, undefined, undefined, undefined, { chunk });
    }
    const calls =
      toolCall === undefined
        ? []
        : [{ name: toolCall.name, args: JSON.stringify(toolCall.args), id: callId(conversation), index: 0 }];
    const fields = { content: '', tool_call_chunks: calls, usage_metadata: usage(conversation, text) };
    const last = new AIMessageChunk(fields as ConstructorParameters<typeof AIMessageChunk>[0]);
    yield new ChatGenerationChunk({ text: '', message: last });
  }
}

/** Deterministic, and different for every turn. */
function callId(conversation: BaseMessage[]): string {
  return `call_${conversation.length}`;
}

function usage(conversation: BaseMessage[], text: string): UsageMetadata {
  const count = (words: string): number => words.split(/\s+/).filter((word) => word !== '').length;
  const input = conversation.reduce((sum, message) => sum + count(message.text), 0);
  const output = count(text);
  return { input_tokens: input, output_tokens: output, total_tokens: input + output };
}
