/** Vercel AI SDK 7 with the integration that keeps the attributes of earlier versions. */
import { LegacyOpenTelemetry } from '@ai-sdk/otel';
import { run } from './vercel-7-models.mjs';

await run(new LegacyOpenTelemetry());
