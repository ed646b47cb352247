/** OpenInference: indexed messages, the completions API, prompt templates, `input.value` and `output.value`. */
import { asDocument, isObject, object, type Json, type JsonObject } from './json.ts';
import { documentsOfArray, queryOf, typeDocuments } from './documents.ts';
import { addFinishReasons, imageBlock, messageList, toolCall, toolDefinition, type Carrier } from './messages.ts';
import { finishReasons, type Span } from './span.ts';
import { family, J, JObject, JValue, nonEmptyString, trim, type Document } from './values.ts';
import { wrap } from './wrapping.ts';

// --- messages (row 7) -----------------------------------------------------------------------------------------------

export function messageInputs(span: Span): JsonObject | undefined {
  const { messages } = indexedMessages(span, 'llm.input_messages.', 'user');
  if (messages.length > 0) {
    const tools = openInferenceTools(span);
    return object(['messages', messages], ['tools', tools.length > 0 ? tools : undefined]);
  }
  const prompts = texts(span, 'llm.prompts.', 'prompt.text');
  return prompts.length === 0 ? undefined : object(['prompt', prompts.length === 1 ? prompts[0] : prompts]);
}

export function messageOutputs(span: Span): JsonObject | undefined {
  const { messages, carriers } = indexedMessages(span, 'llm.output_messages.', 'assistant');
  if (messages.length > 0) {
    addFinishReasons(carriers, finishReasons(span));
    addFinishReasons(carriers, [span.attributes.string('llm.finish_reason')]);
    return object(['messages', messages]);
  }
  const choices = texts(span, 'llm.choices.', 'completion.text');
  return choices.length === 0 ? undefined : object(['choices', choices.map((text) => object(['text', text]))]);
}

export function openInferenceTools(span: Span): Json[] {
  return family(span.attributes.map, 'llm.tools.')
    .map((members) => JValue(members.get('tool.json_schema')))
    .filter((schema) => schema !== undefined)
    .map(toolDefinition);
}

function texts(span: Span, prefix: string, name: string): Json[] {
  const members = family(span.attributes.map, prefix).map((item) => item.get(name));
  return members.filter((text) => text !== undefined && text !== '') as Json[];
}

function indexedMessages(
  span: Span,
  prefix: string,
  defaultRole: string,
): { messages: JsonObject[]; carriers: Carrier[] } {
  const messages: JsonObject[] = [];
  const carriers: Carrier[] = [];
  // What creates no message has no place among them either.
  let index = -1;
  for (const members of family(span.attributes.map, prefix)) {
    const blocks = family(members, 'message.contents.')
      .map(contentBlock)
      .filter((block) => block !== undefined)
      .map((block) => asDocument(block));
    const calls = family(members, 'message.tool_calls.')
      .map(indexedCall)
      .filter((c) => c !== undefined);
    const name = members.get('message.function_call_name');
    const args = members.get('message.function_call_arguments_json');
    if (name !== undefined || args !== undefined) calls.push(toolCall(undefined, name, args));
    const content = members.get('message.content');
    const source = object(
      ['role', members.get('message.role')],
      ['name', members.get('message.name')],
      ['tool_call_id', members.get('message.tool_call_id')],
      ['content', blocks.length > 0 ? blocks : Array.isArray(content) || isObject(content) ? JValue(content) : content],
      ['tool_calls', calls.length > 0 ? calls : undefined],
    );
    if (source.size === 0) continue;
    index++;
    const made = messageList([source], defaultRole);
    messages.push(...made.messages);
    for (const carrier of made.carriers) carriers.push({ index, message: carrier.message });
  }
  return { messages, carriers };
}

/** A content part, already in the shape that the normal form leaves alone. */
function contentBlock(members: ReadonlyMap<string, Json>): JsonObject | undefined {
  const member = (name: string): Json | undefined => members.get(`message_content.${name}`);
  const type = member('type');
  const text = member('text');
  const imageUrl = member('image.image.url');
  const audioUrl = member('audio.audio.url');
  if (type === 'image' || (type === undefined && imageUrl !== undefined)) {
    return typeof imageUrl === 'string' ? imageBlock(imageUrl) : object(['type', 'image']);
  }
  if (type === 'audio' || (type === undefined && audioUrl !== undefined)) {
    return object(
      ['type', 'audio'],
      ['url', nonEmptyString(audioUrl)],
      ['mime_type', nonEmptyString(member('audio.audio.mime_type'))],
      ['transcript', nonEmptyString(member('audio.audio.transcript'))],
    );
  }
  if (typeof type === 'string' && type !== 'text') return object(['type', type], ['text', text]);
  return text === undefined ? undefined : object(['type', 'text'], ['text', text]);
}

function indexedCall(members: ReadonlyMap<string, Json>): JsonObject | undefined {
  const member = (name: string): Json | undefined => members.get(`tool_call.${name}`);
  const [id, name, args] = [member('id'), member('function.name'), member('function.arguments')];
  if (id === undefined && name === undefined && args === undefined) return undefined;
  return toolCall(id, name, args);
}

// --- prompt templates (row 4) ---------------------------------------------------------------------------------------

export function templateInputs(span: Span): JsonObject | undefined {
  return span.runType === 'prompt' ? JObject(span.attributes.raw('llm.prompt_template.variables')) : undefined;
}

// --- values (rows 5 and 9) ------------------------------------------------------------------------------------------

export function retrieverQuery(span: Span): JsonObject | undefined {
  if (span.runType !== 'retriever') return undefined;
  const document = valueDocument(span, 'input');
  return queryOf(document?.kind === 'text' ? document.text : document?.value);
}

export function valueInputs(span: Span): JsonObject | undefined {
  return (
    wrap(valueDocument(span, 'input'), 'input', span.runType) ??
    wrap(J(span.attributes.raw('tool_call.function.arguments')), 'input', span.runType)
  );
}

export function valueOutputs(span: Span): JsonObject | undefined {
  return wrapOutputs(valueDocument(span, 'output'), span);
}

/** Rows 9 to 12: a retriever's documents get their type. */
export function wrapOutputs(document: Document | undefined, span: Span): JsonObject | undefined {
  const documents = document?.kind === 'json' ? documentsOfArray(document.value, span) : undefined;
  return documents ?? typeDocuments(wrap(document, 'output', span.runType), span);
}

export function valueDocument(span: Span, side: 'input' | 'output'): Document | undefined {
  const value = span.attributes.raw(`${side}.value`);
  const mime = span.attributes.string(`${side}.mime_type`)?.split(';')[0] ?? '';
  if (typeof value === 'string' && trim(mime).toLowerCase() === 'text/plain') {
    return value === '' ? undefined : { kind: 'text', text: value };
  }
  return J(value);
}
