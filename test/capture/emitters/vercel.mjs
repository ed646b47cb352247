/** The scenarios of the Vercel AI SDK; what differs between its versions is given. */
import { z } from 'zod';
import { capture } from './exporter.mjs';

/**
 * `sdk`: the package's functions. `languageModel(answers)`: a mock model that gives one answer a call, each
 * `{ text?, reasoning?, toolCalls?: [{ id, name, input }], fail? }`. `textModel` / `rerankModel`: mocks or undefined.
 */
export async function scenarios({
  sdk,
  languageModel,
  embeddingModel,
  rerankModel,
  tool,
  steps,
  telemetry,
  object,
  image,
}) {
  const options = (name) => telemetry(name);
  await capture('generate', () =>
    sdk.generateText({
      model: languageModel([{ text: 'It is sunny.', reasoning: 'Paris in May.' }]),
      system: 'Be brief.',
      prompt: 'Weather in Paris?',
      temperature: 0.5,
      maxRetries: 0,
      ...options('forecast'),
    }),
  );
  await capture('tools', () =>
    sdk.generateText({
      model: languageModel([
        { text: 'Let me look.', toolCalls: [{ id: 'call-1', name: 'weather', input: { city: 'Paris' } }] },
        { text: 'It is sunny.' },
      ]),
      prompt: 'Weather in Paris?',
      tools: {
        weather: tool(z.object({ city: z.string() }), 'Weather of a city', async ({ city }) => ({ city, t: 21 })),
      },
      ...steps,
      ...options('agent'),
    }),
  );
  await capture('stream', async () => {
    const result = sdk.streamText({
      model: languageModel([{ text: 'It is sunny.' }]),
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Weather in Paris?' }] }],
      ...options('stream'),
    });
    for await (const _ of result.textStream);
  });
  await capture('image', () =>
    sdk.generateText({
      model: languageModel([{ text: 'A dot.' }]),
      messages: [{ role: 'user', content: [{ type: 'text', text: 'What is it?' }, image] }],
      ...options('image'),
    }),
  );
  await capture('object', () =>
    object({ model: languageModel([{ text: '{"t":21}' }]), prompt: 'Weather?', ...options('object') }),
  );
  await capture('error', () =>
    sdk.generateText({
      model: languageModel([{ fail: 'The model is broken' }]),
      prompt: 'Weather in Paris?',
      maxRetries: 0,
      ...options('error'),
    }),
  );
  await capture('embed-many', () =>
    sdk.embedMany({ model: embeddingModel, values: ['one', 'two'], maxRetries: 0, ...options('embed') }),
  );
  await capture('embed', () => sdk.embed({ model: embeddingModel, value: 'one', maxRetries: 0, ...options('embed') }));
  if (rerankModel !== undefined) {
    await capture('rerank', () =>
      sdk.rerank({ model: rerankModel, query: 'sun', documents: ['rain', 'sunny day'], topN: 1, ...options('rerank') }),
    );
  }
}

export const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

export function schema() {
  return z.object({ t: z.number() });
}

/** Content of an answer in the shape of model specifications 2 to 4. */
export function contentOf({ text, reasoning, toolCalls = [] }) {
  return [
    ...(reasoning === undefined ? [] : [{ type: 'reasoning', text: reasoning }]),
    ...(text === undefined ? [] : [{ type: 'text', text }]),
    ...toolCalls.map(({ id, name, input }) => ({
      type: 'tool-call',
      toolCallId: id,
      toolName: name,
      input: JSON.stringify(input),
    })),
  ];
}

/** A mock's two methods, answering one call after the other. */
export function answering(answers, { result, chunks, stream }) {
  let next = 0;
  const take = () => {
    const answer = answers[next++];
    if (answer.fail !== undefined) throw new Error(answer.fail);
    return answer;
  };
  return {
    doGenerate: async () => result(take()),
    doStream: async () => ({ stream: stream(chunks(take())) }),
  };
}

/** Stream parts of specifications 2 to 4. */
export function partsOf(answer, finish) {
  return [
    { type: 'stream-start', warnings: [] },
    { type: 'response-metadata', id: 'response-1', modelId: 'mock-model-2025', timestamp: new Date(1747675155000) },
    { type: 'text-start', id: '1' },
    ...answer.text.split(' ').map((word, i) => ({ type: 'text-delta', id: '1', delta: i === 0 ? word : ` ${word}` })),
    { type: 'text-end', id: '1' },
    { type: 'finish', ...finish },
  ];
}

export const metadata = { userId: 'user-1', thread_id: 'thread-1' };
export const response = { id: 'response-1', modelId: 'mock-model-2025', timestamp: new Date(1747675155000) };
