/** OpenInference's instrumentation of the OpenAI client. */
import { OpenAIInstrumentation } from '@arizeai/openinference-instrumentation-openai';
import OpenAI from 'openai';
import { capture, provider } from './exporter.mjs';
import { clientOptions, scenarios } from './openai.mjs';

const instrumentation = new OpenAIInstrumentation({ tracerProvider: provider });
instrumentation.manuallyInstrument(OpenAI);
const client = new OpenAI(clientOptions);
await scenarios(client, capture);
await capture('completions', () => client.completions.create({ model: 'gpt-3.5-turbo-instruct', prompt: 'Weather?' }));
