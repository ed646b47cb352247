/**
 * What every emitter here shares: a tracer whose spans end up, as one OTLP protobuf request a scenario, in the folder
 * named by the first argument. Ids are counted, so that a new capture differs from the old one only where the emitter does.
 */
import { context, trace } from '@opentelemetry/api';
import { ProtobufTraceSerializer } from '@opentelemetry/otlp-transformer';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { InMemorySpanExporter, SimpleSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { setTimeout } from 'node:timers/promises';
import { write } from './write.mjs';

// Stacks name the temporary folder, which says nothing about the emitter.
Error.stackTraceLimit = 0;

class CountedIds {
  #count = 0;
  generateTraceId = () => this.#next().padStart(32, '5b8efff798038103');
  generateSpanId = () => this.#next().padStart(16, 'eee19b7ec3c1b174');
  #next() {
    return (++this.#count).toString(16).padStart(4, '0');
  }
}

const exporter = new InMemorySpanExporter();
export const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({ 'service.name': 'capture' }),
  idGenerator: new CountedIds(),
  spanProcessors: [new SimpleSpanProcessor(exporter)],
});
provider.register();

/** Runs the scenario in a context of its own and writes the spans that it ended. */
export async function capture(name, scenario) {
  exporter.reset();
  try {
    await context.with(trace.deleteSpan(context.active()), scenario);
  } catch (error) {
    // Scenarios of failing calls end here: what counts is what the emitter said about it.
    console.log(`${name}: ${error.message}`);
  }
  // Some emitters end a span only after they have handed out the answer.
  await setTimeout(50);
  const spans = exporter.getFinishedSpans();
  if (spans.length === 0) console.log(`${name}: no spans`);
  else write(name, ProtobufTraceSerializer.serializeRequest(spans));
}
