/** Vercel AI SDK 5. */
import * as sdk from 'ai-5';
import { convertArrayToReadableStream, MockEmbeddingModelV2, MockLanguageModelV2 } from 'ai-5/test';
import { answering, contentOf, metadata, partsOf, PIXEL, response, scenarios, schema } from './vercel.mjs';

const usage = { inputTokens: 21, outputTokens: 9, totalTokens: 30, reasoningTokens: 4, cachedInputTokens: 5 };

await scenarios({
  sdk,
  languageModel: (answers) =>
    new MockLanguageModelV2({
      provider: 'mock-provider.chat',
      modelId: 'mock-model',
      ...answering(answers, {
        result: (answer) => ({
          content: contentOf(answer),
          finishReason: answer.toolCalls === undefined ? 'stop' : 'tool-calls',
          usage,
          response,
          warnings: [],
        }),
        chunks: (answer) => partsOf(answer, { finishReason: 'stop', usage }),
        stream: (chunks) => convertArrayToReadableStream(chunks),
      }),
    }),
  embeddingModel: new MockEmbeddingModelV2({
    provider: 'mock-provider.embedding',
    modelId: 'mock-embedding',
    maxEmbeddingsPerCall: 10,
    doEmbed: async ({ values }) => ({ embeddings: values.map((_, i) => [0.5, i]), usage: { tokens: 4 } }),
  }),
  tool: (inputSchema, description, execute) => sdk.tool({ inputSchema, description, execute }),
  steps: { stopWhen: sdk.stepCountIs(3) },
  telemetry: (functionId) => ({ experimental_telemetry: { isEnabled: true, functionId, metadata } }),
  object: (options) => sdk.generateObject({ ...options, schema: schema() }),
  image: { type: 'image', image: PIXEL, mediaType: 'image/png' },
});
