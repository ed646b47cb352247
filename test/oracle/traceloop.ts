/** Traceloop and OpenLLMetry: entity blobs and their newer names (row 10), function definitions. */
import { asDocument, object, type JsonObject } from './json.ts';
import { toolDefinition } from './messages.ts';
import { wrapOutputs } from './openinference.ts';
import type { Span } from './span.ts';
import { family, J, JValue } from './values.ts';
import { wrap } from './wrapping.ts';
import type { Json } from './json.ts';

export function entityInputs(span: Span): JsonObject | undefined {
  for (const key of ['traceloop.entity.input', 'gen_ai.task.input', 'mcp.request.argument']) {
    const inputs = wrap(J(span.attributes.raw(key)), 'input', span.runType);
    if (inputs !== undefined) return inputs;
  }
  return undefined;
}

export function entityOutputs(span: Span): JsonObject | undefined {
  for (const key of ['traceloop.entity.output', 'gen_ai.task.output', 'mcp.response.value']) {
    const outputs = wrapOutputs(J(span.attributes.raw(key)), span);
    if (outputs !== undefined) return outputs;
  }
  return undefined;
}

/** `llm.request.functions.N.{name,description,parameters}`; the JavaScript package says `arguments`. */
export function requestFunctions(span: Span): Json[] {
  return family(span.attributes.map, 'llm.request.functions.')
    .map((members) =>
      object(
        ['name', members.get('name')],
        ['description', members.get('description')],
        ['parameters', JValue(members.get('parameters')) ?? JValue(members.get('arguments'))],
      ),
    )
    .filter((definition) => definition.size > 0)
    .map((definition) => toolDefinition(asDocument(definition)));
}
