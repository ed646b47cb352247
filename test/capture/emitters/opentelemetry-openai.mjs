/** OpenTelemetry's own instrumentation of the OpenAI client. */
import { metrics } from '@opentelemetry/api';
import { createRequire } from 'node:module';
import { capture, provider } from './exporter.mjs';
import { OpenAIInstrumentation } from '@opentelemetry/instrumentation-openai';

const instrumentation = new OpenAIInstrumentation({ captureMessageContent: true });
instrumentation.setTracerProvider(provider);
instrumentation.setMeterProvider(metrics.getMeterProvider());
instrumentation.enable();

// Only a required module is patched without a loader.
const { OpenAI } = createRequire(import.meta.url)('openai');
const { clientOptions, scenarios } = await import('./openai.mjs');
await scenarios(new OpenAI(clientOptions), capture);
