/** Vercel AI SDK 6. */
import * as sdk from 'ai-6';
import {
  convertArrayToReadableStream,
  MockEmbeddingModelV3,
  MockLanguageModelV3,
  MockRerankingModelV3,
} from 'ai-6/test';
import { answering, contentOf, metadata, partsOf, PIXEL, response, scenarios, schema } from './vercel.mjs';

const usage = {
  inputTokens: { total: 21, noCache: 16, cacheRead: 5, cacheWrite: 0 },
  outputTokens: { total: 9, text: 5, reasoning: 4 },
};

await scenarios({
  sdk,
  languageModel: (answers) =>
    new MockLanguageModelV3({
      provider: 'mock-provider.chat',
      modelId: 'mock-model',
      ...answering(answers, {
        result: (answer) => ({
          content: contentOf(answer),
          finishReason: { unified: answer.toolCalls === undefined ? 'stop' : 'tool-calls', raw: undefined },
          usage,
          response,
          warnings: [],
        }),
        chunks: (answer) => partsOf(answer, { finishReason: { unified: 'stop', raw: undefined }, usage }),
        stream: (chunks) => convertArrayToReadableStream(chunks),
      }),
    }),
  embeddingModel: new MockEmbeddingModelV3({
    provider: 'mock-provider.embedding',
    modelId: 'mock-embedding',
    maxEmbeddingsPerCall: 10,
    doEmbed: async ({ values }) => ({ embeddings: values.map((_, i) => [0.5, i]), usage: { tokens: 4 }, warnings: [] }),
  }),
  rerankModel: new MockRerankingModelV3({
    provider: 'mock-provider.reranking',
    modelId: 'mock-reranker',
    doRerank: async () => ({ ranking: [{ index: 1, relevanceScore: 0.9 }], warnings: [] }),
  }),
  tool: (inputSchema, description, execute) => sdk.tool({ inputSchema, description, execute }),
  steps: { stopWhen: sdk.stepCountIs(3) },
  telemetry: (functionId) => ({ experimental_telemetry: { isEnabled: true, functionId, metadata } }),
  object: (options) => sdk.generateText({ ...options, output: sdk.Output.object({ schema: schema() }) }),
  image: { type: 'image', image: PIXEL, mediaType: 'image/png' },
});
