/** The LangSmith SDK with its OpenTelemetry exporter: its own traced functions, and AI SDK spans as it rewrites them. */
import { context } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { write } from './write.mjs';

const bodies = [];
const server = createServer(async (request, response) => {
  const chunks = await Array.fromAsync(request);
  if (request.url === '/v1/traces') bodies.push(Buffer.concat(chunks));
  response.end('{}');
}).listen(0, '127.0.0.1');
await once(server, 'listening');

Error.stackTraceLimit = 0;
process.env.LANGSMITH_TRACING = 'true';
process.env.LANGSMITH_OTEL_ENABLED = 'true';
process.env.LANGSMITH_PROJECT = 'capture';
process.env.LANGSMITH_API_KEY = 'not-a-key';
// Nothing of this leaves the machine.
process.env.LANGSMITH_ENDPOINT = `http://127.0.0.1:${server.address().port}`;

context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const { initializeOTEL } = await import('langsmith/experimental/otel/setup');
const { DEFAULT_LANGSMITH_SPAN_PROCESSOR: processor } = initializeOTEL({
  skipGlobalContextManagerSetup: true,
  exporterConfig: { url: `http://127.0.0.1:${server.address().port}/v1/traces`, headers: {} },
});
const { Client } = await import('langsmith');
const traced = await import('langsmith/traceable');
const client = new Client();
const traceable = (run, options) => traced.traceable(run, { client, ...options });
const sdk = await import('ai-5');
const { MockLanguageModelV2 } = await import('ai-5/test');

async function capture(name, scenario) {
  try {
    await scenario();
  } catch (error) {
    console.log(`${name}: ${error.message}`);
  }
  await client.awaitPendingTraceBatches();
  await processor.forceFlush();
  await new Promise((resolve) => setTimeout(resolve, 200));
  const [body, ...more] = bodies.splice(0);
  if (body === undefined || more.length > 0) throw new Error(`${name}: ${more.length + 1} bodies`);
  write(name, body);
}

const model = traceable(
  async (_) => ({
    choices: [{ message: { role: 'assistant', content: 'It is sunny.' } }],
    usage_metadata: { input_tokens: 21, output_tokens: 9, total_tokens: 30 },
  }),
  { name: 'model', run_type: 'llm', metadata: { ls_provider: 'openai', ls_model_name: 'gpt-4o' } },
);
const weather = traceable(async ({ city }) => ({ city, t: 21 }), { name: 'weather', run_type: 'tool' });
const documents = traceable(async (_) => [{ page_content: 'A', metadata: { source: 's' }, type: 'Document' }], {
  name: 'documents',
  run_type: 'retriever',
});
const agent = traceable(
  async (question) => {
    await documents(question);
    await weather({ city: 'Paris' });
    return model({ messages: [{ role: 'user', content: question }] });
  },
  { name: 'agent', tags: ['demo'], metadata: { thread_id: 'thread-1', n: 3 } },
);
const failing = traceable(
  async () => {
    throw new TypeError('no such step');
  },
  { name: 'failing' },
);

await capture('agent', () => agent('Weather in Paris?'));
await capture('error', () => failing());
await capture('vercel-5', () =>
  sdk.generateText({
    model: new MockLanguageModelV2({
      provider: 'openai.chat',
      modelId: 'gpt-4o',
      doGenerate: async ({ prompt }) => ({
        content:
          prompt.length > 1
            ? [{ type: 'text', text: 'It is sunny.' }]
            : [
                { type: 'text', text: 'Let me look.' },
                { type: 'tool-call', toolCallId: 'call-1', toolName: 'weather', input: '{"city":"Paris"}' },
              ],
        finishReason: prompt.length > 1 ? 'stop' : 'tool-calls',
        usage: { inputTokens: 21, outputTokens: 9, totalTokens: 30 },
        warnings: [],
      }),
    }),
    prompt: 'Weather in Paris?',
    tools: {
      weather: sdk.tool({
        inputSchema: sdk.jsonSchema({ type: 'object', properties: { city: { type: 'string' } } }),
        description: 'Weather of a city',
        execute: async ({ city }) => ({ city, t: 21 }),
      }),
    },
    stopWhen: sdk.stepCountIs(3),
    experimental_telemetry: {
      isEnabled: true,
      metadata: { ls_run_name: 'forecast', userId: 'user-1', ls_project_name: 'weather' },
    },
  }),
);
server.close();
process.exit(0);
