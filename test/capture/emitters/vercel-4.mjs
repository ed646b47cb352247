/** Vercel AI SDK 4. */
import * as sdk from 'ai-4';
import { convertArrayToReadableStream, MockEmbeddingModelV1, MockLanguageModelV1 } from 'ai-4/test';
import { answering, metadata, PIXEL, response, scenarios } from './vercel.mjs';

const usage = { promptTokens: 21, completionTokens: 9 };
const rawCall = { rawPrompt: null, rawSettings: {} };

// This version reads schemas of an older zod: it gets plain JSON Schema.
const citySchema = sdk.jsonSchema({ type: 'object', properties: { city: { type: 'string' } }, required: ['city'] });
const objectSchema = sdk.jsonSchema({ type: 'object', properties: { t: { type: 'number' } } });

await scenarios({
  sdk,
  languageModel: (answers) =>
    new MockLanguageModelV1({
      provider: 'mock-provider.chat',
      modelId: 'mock-model',
      defaultObjectGenerationMode: 'json',
      ...answering(answers, {
        result: (answer) => ({
          rawCall,
          usage,
          response,
          finishReason: answer.toolCalls === undefined ? 'stop' : 'tool-calls',
          text: answer.text,
          reasoning: answer.reasoning,
          toolCalls: answer.toolCalls?.map(({ id, name, input }) => ({
            toolCallType: 'function',
            toolCallId: id,
            toolName: name,
            args: JSON.stringify(input),
          })),
          providerMetadata: { anthropic: { cacheCreationInputTokens: 100, cacheReadInputTokens: 1000 } },
        }),
        chunks: (answer) => [
          { type: 'response-metadata', ...response },
          ...answer.text.split(' ').map((word, i) => ({ type: 'text-delta', textDelta: i === 0 ? word : ` ${word}` })),
          { type: 'finish', finishReason: 'stop', usage },
        ],
        stream: (chunks) => convertArrayToReadableStream(chunks),
        more: { rawCall },
      }),
    }),
  embeddingModel: new MockEmbeddingModelV1({
    provider: 'mock-provider.embedding',
    modelId: 'mock-embedding',
    doEmbed: async ({ values }) => ({ embeddings: values.map((_, i) => [0.5, i]), usage: { tokens: 4 } }),
  }),
  tool: (_, description, execute) => sdk.tool({ parameters: citySchema, description, execute }),
  steps: { maxSteps: 3 },
  telemetry: (functionId) => ({ experimental_telemetry: { isEnabled: true, functionId, metadata } }),
  object: (options) => sdk.generateObject({ ...options, schema: objectSchema }),
  image: { type: 'image', image: PIXEL, mimeType: 'image/png' },
});
