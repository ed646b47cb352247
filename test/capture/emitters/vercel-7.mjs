/** Vercel AI SDK 7 with its OpenTelemetry integration. */
import { OpenTelemetry } from '@ai-sdk/otel';
import { run } from './vercel-7-models.mjs';

await run(new OpenTelemetry());
