/**
 * `extra.invocation_params`: what the model was asked with. The first candidate that is set wins; members of the JSON
 * objects `llm.invocation_parameters` and `embedding.invocation_parameters` stand below all of them.
 */
import { Node } from './document.ts';
import type { EventReader } from './events.ts';
import { ValueType } from './kernel/kernel.ts';
import type { Literal } from './kernel/kernel.ts';
import type { Key } from './keys.ts';
import { Group, Mark } from './keys.ts';
import { ClaimedKeys } from './members.ts';
import type { Messages } from './messages/messages.ts';
import { EventKind } from './span.ts';
import type { Span } from './span.ts';
import type { Toolbox } from './toolbox.ts';
import { Loaded } from './value.ts';
import type { Writer } from './writer.ts';
import type { GenAi } from './conventions/genai.ts';
import type { OpenInference } from './conventions/openinference.ts';
import type { Pydantic } from './conventions/pydantic.ts';
import type { Traceloop } from './conventions/traceloop.ts';
import type { Vercel } from './conventions/vercel.ts';

const CLOSE_ARRAY = 0x5d;
const CLOSE_OBJECT = 0x7d;
const COLON = 0x3a;

/** Key → attributes; the order is that of the conventions: GenAI, OpenLLMetry, AI SDK settings. */
const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  model: ['gen_ai.response.model', 'gen_ai.request.model'],
  temperature: ['gen_ai.request.temperature', 'ai.settings.temperature'],
  top_p: ['gen_ai.request.top_p', 'ai.settings.topP'],
  top_k: ['gen_ai.request.top_k', 'llm.top_k', 'ai.settings.topK'],
  max_tokens: ['gen_ai.request.max_tokens', 'ai.settings.maxOutputTokens', 'ai.settings.maxTokens'],
  frequency_penalty: ['gen_ai.request.frequency_penalty', 'llm.frequency_penalty', 'ai.settings.frequencyPenalty'],
  presence_penalty: ['gen_ai.request.presence_penalty', 'llm.presence_penalty', 'ai.settings.presencePenalty'],
  seed: ['gen_ai.request.seed', 'gen_ai.openai.request.seed', 'ai.settings.seed'],
  encoding_formats: ['gen_ai.request.encoding_formats'],
  n: ['gen_ai.request.choice.count'],
  stream: ['gen_ai.request.stream', 'gen_ai.is_streaming'],
  output_type: ['gen_ai.output.type'],
  dimensions: ['gen_ai.embeddings.dimension.count'],
  reasoning_effort: ['gen_ai.request.reasoning_effort'],
  repetition_penalty: ['gen_ai.request.repetition_penalty'],
  max_completion_tokens: ['gen_ai.request.max_completion_tokens'],
  service_tier: ['openai.request.service_tier', 'gen_ai.openai.request.service_tier'],
  tool_name: ['gen_ai.tool.name'],
};

/** The same, strings that hold JSON read as such. */
const DOCUMENTS: Readonly<Record<string, readonly string[]>> = {
  stop: ['gen_ai.request.stop_sequences', 'llm.chat.stop_sequences', 'ai.settings.stopSequences'],
  structured_output_schema: ['gen_ai.request.structured_output_schema'],
  response_format: ['gen_ai.openai.request.response_format'],
  tool_choice: ['ai.prompt.toolChoice'],
  tool_arguments: ['tool_arguments'],
};

export interface Conventions {
  readonly genAi: GenAi;
  readonly openInference: OpenInference;
  readonly traceloop: Traceloop;
  readonly vercel: Vercel;
  readonly pydantic: Pydantic;
}

/** Writes the object; nothing when it would be empty. */
export type InvocationParams = (span: Span, out: Writer) => boolean;

export function invocationParams(
  box: Toolbox,
  messages: Messages,
  events: EventReader,
  conventions: Conventions,
): InvocationParams {
  const { keys, docs, values, lit } = box;
  const claimed = new ClaimedKeys(box);
  const table = (
    source: Readonly<Record<string, readonly string[]>>,
    group: number,
  ): { name: Literal; is: Literal; candidates: Key[] }[] =>
    Object.entries(source).map(([name, names]) => ({
      name: lit(name),
      is: lit(`"${name}":`),
      candidates: names.map((key) => keys.key(key, group)),
    }));
  const parameters = table(PARAMETERS, Group.Parameters);
  const documents = table(DOCUMENTS, Group.Documents);
  const key = {
    tools: keys.key('tools', Group.Tools),
    llm: keys.key('llm.invocation_parameters', Group.Documents),
    embedding: keys.key('embedding.invocation_parameters', Group.Documents),
  };
  const l = { open: lit('{'), toolsName: lit('tools'), toolsIs: lit('"tools":'), openArray: lit('[') };

  function writeParameters(span: Span, out: Writer): void {
    const { attributes } = span;
    for (const { name, is, candidates } of parameters) {
      for (const candidate of candidates) {
        const type = attributes.type(candidate);
        if (type === ValueType.Absent) continue;
        if (type === ValueType.String && attributes.b(candidate) === 0) continue;
        claimed.claim(name.at, name.length);
        out.literal(is);
        values.write(type, attributes.a(candidate), attributes.b(candidate), out);
        out.comma();
        break;
      }
    }
  }

  function writeDocuments(span: Span, out: Writer): void {
    const { attributes } = span;
    for (const { name, is, candidates } of documents) {
      for (const candidate of candidates) {
        if (!attributes.has(candidate)) continue;
        const loaded = values.loadKey(attributes, candidate);
        if (loaded === Loaded.Absent) continue;
        claimed.claim(name.at, name.length);
        out.literal(is);
        values.copy(loaded, out);
        out.comma();
        break;
      }
    }
  }

  /** The first source of tools that has any. */
  function writeTools(span: Span, out: Writer): void {
    const start = out.pos;
    out.literal(l.toolsIs);
    out.literal(l.openArray);
    const first = out.pos;
    conventions.genAi.toolDefinitions(span.attributes, out);
    if (out.pos === first) {
      const details = events.last(span, EventKind.OperationDetails);
      if (details >= 0) conventions.genAi.toolDefinitions(events.scan(details), out);
    }
    if (out.pos === first) conventions.openInference.tools(span, out);
    if (out.pos === first) conventions.traceloop.functions(span, out);
    if (out.pos === first && (span.marks & Mark.Ai) !== 0) conventions.vercel.tools(span, out);
    if (out.pos === first && writePlainTools(span, start, out)) return;
    if (out.pos === first) conventions.pydantic.tools(span, out);
    if (out.pos === first) {
      out.pos = start;
      return;
    }
    claimed.claim(l.toolsName.at, l.toolsName.length);
    out.close(CLOSE_ARRAY);
    out.comma();
  }

  /** The attribute `tools`: an array of definitions (false: go on as with the others), or whatever it is (true). */
  function writePlainTools(span: Span, start: number, out: Writer): boolean {
    if (!span.attributes.has(key.tools)) return false;
    const loaded = values.loadKey(span.attributes, key.tools);
    if (loaded === Loaded.Absent) return false;
    if (loaded === Loaded.Document && docs.type(values.node) === Node.Array) {
      messages.tools.definitions(values.node, out);
      return false;
    }
    out.pos = start;
    claimed.claim(l.toolsName.at, l.toolsName.length);
    out.literal(l.toolsIs);
    values.copy(loaded, out);
    out.comma();
    return true;
  }

  function merge(span: Span, source: Key, out: Writer): void {
    if (!span.attributes.has(source)) return;
    if (values.loadKey(span.attributes, source) !== Loaded.Document) return;
    const node = values.node;
    if (docs.type(node) !== Node.Object) return;
    const stop = docs.next(node);
    for (let name = docs.first(node); name < stop; name = docs.next(docs.value(name))) {
      if (!docs.counts(node, name)) continue;
      const start = docs.start(name);
      if (!claimed.claimQuoted(start, docs.end(name) - start)) continue;
      docs.copy(name, out);
      out.byte(COLON);
      docs.copy(docs.value(name), out);
      out.comma();
    }
  }

  return (span, out) => {
    const { groups } = span;
    const hasTools = (groups & Group.Tools) !== 0 || span.families !== 0 || span.eventCount > 0;
    if (!hasTools && (groups & (Group.Parameters | Group.Documents)) === 0) return false;
    const start = out.pos;
    claimed.begin();
    out.literal(l.open);
    if ((groups & Group.Parameters) !== 0) writeParameters(span, out);
    if ((groups & Group.Documents) !== 0) writeDocuments(span, out);
    if (hasTools) writeTools(span, out);
    if ((groups & Group.Documents) !== 0) {
      merge(span, key.llm, out);
      merge(span, key.embedding, out);
    }
    if (out.pos === start + 1) {
      out.pos = start;
      return false;
    }
    out.close(CLOSE_OBJECT);
    return true;
  };
}
