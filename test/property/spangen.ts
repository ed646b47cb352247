/** Random spans that look enough like those of real emitters to reach every rule, and are broken often enough to try it. */
import fc from 'fast-check';

import { anyOf } from '../oracle/emit.ts';
import type { AnyValue, Pair, SpanInput } from '../oracle/otlp.ts';
import { recognisedNames } from '../oracle/recognised.ts';
import { dangerousKeys, documentText, key, objectTree, text, tree, write, type Tree } from './jsontext.ts';

// --- documents of the conventions -----------------------------------------------------------------------------------

/** An object with some of the members, some of them twice, some replaced by anything. */
function objectOf(members: Readonly<Record<string, fc.Arbitrary<Tree>>>): fc.Arbitrary<Tree> {
  const pairs = Object.entries(members).map(([name, value]) =>
    fc.option(
      fc.tuple(
        fc.constant(name),
        fc.oneof(
          { weight: 12, arbitrary: value },
          { weight: 1, arbitrary: tree },
          { weight: 1, arbitrary: fc.constant<Tree>(null) },
        ),
      ),
      {
        nil: undefined,
        freq: 4,
      },
    ),
  );
  const extra = fc.array(fc.tuple(key, tree), { maxLength: 1 });
  return fc.tuple(fc.tuple(...pairs), extra, fc.boolean()).map(([known, more, front]): Tree => {
    const present = known.filter((pair) => pair !== undefined);
    return { object: front ? [...more, ...present] : [...present, ...more] };
  });
}

function arrayOf(item: fc.Arbitrary<Tree>, maxLength = 3): fc.Arbitrary<Tree> {
  return fc
    .array(fc.oneof({ weight: 10, arbitrary: item }, { weight: 1, arbitrary: tree }), { maxLength })
    .map((array) => ({ array }));
}

const word = fc.constantFrom('a', 'b', 'c1', 'hello', '', 'x y');
const string: fc.Arbitrary<Tree> = fc.oneof(word, text);
const role: fc.Arbitrary<Tree> = fc.constantFrom('user', 'assistant', 'system', 'tool', 'model', 'developer', '');
const mime = fc.constantFrom('image/png', 'audio/wav', 'video/mp4', 'text/plain', '');
const url = fc.constantFrom('https://x/i.png', 'http://x', 'data:image/png;base64,AA', 'AAEC', '');
const finish = fc.constantFrom('stop', 'tool_calls', '');

const toolCall = objectOf({
  id: string,
  type: fc.constantFrom('function', 'tool_call', 'custom'),
  name: string,
  arguments: fc.oneof(string, tree),
  args: tree,
  function: objectOf({ name: string, arguments: fc.oneof(string, tree) }),
});

const part: fc.Arbitrary<Tree> = fc.oneof(
  string,
  objectOf({ type: fc.constant('text'), content: string }),
  objectOf({ type: fc.constant('text'), text: string }),
  objectOf({ text: string }),
  objectOf({ kind: fc.constantFrom('image-url', 'text', 'x'), url, text: string }),
  objectOf({ type: fc.constantFrom('reasoning', 'thinking'), content: string, thinking: string, signature: string }),
  objectOf({ type: fc.constant('tool_call'), id: string, name: string, arguments: tree }),
  objectOf({ type: fc.constant('tool-call'), toolCallId: string, toolName: string, input: tree, args: string }),
  objectOf({ type: fc.constant('tool_call_response'), id: string, name: string, response: tree, result: tree }),
  objectOf({
    type: fc.constant('tool-result'),
    toolCallId: string,
    toolName: string,
    output: fc.oneof(tree, objectOf({ type: fc.constant('json'), value: tree })),
    result: tree,
  }),
  objectOf({ toolUse: objectOf({ toolUseId: string, name: string, input: tree }) }),
  objectOf({ toolResult: objectOf({ toolUseId: string, content: arrayOf(objectOf({ text: string }), 2) }) }),
  objectOf({ reasoningContent: objectOf({ reasoningText: objectOf({ text: string }) }) }),
  objectOf({
    type: fc.constantFrom('uri', 'blob', 'binary', 'image-url', 'audio-url', 'image', 'file', 'image_url'),
    modality: fc.constantFrom('image', 'audio', 'video'),
    mime_type: mime,
    media_type: mime,
    mediaType: mime,
    uri: url,
    url,
    content: url,
    data: url,
    image: url,
    image_url: fc.oneof(url, objectOf({ url })),
    file_id: word,
    transcript: word,
  }),
  objectOf({ type: fc.constantFrom('tool_use', 'refusal', 'server_tool_call'), id: string, input: tree }),
);

const message = objectOf({
  role,
  parts: arrayOf(part),
  content: fc.oneof(string, arrayOf(part)),
  tool_calls: fc.oneof(arrayOf(toolCall, 2), fc.constant<Tree>('[{"name":"n","args":{"a": 1}}]')),
  name: string,
  tool_call_id: string,
  finish_reason: finish,
  id: string,
  'event.name': fc.constantFrom('gen_ai.user.message', 'gen_ai.assistant.message', 'gen_ai.tool.message'),
  'gen_ai.message.index': fc.constant<Tree>({ number: '0' }),
});

const plainMessage = objectOf({ role, content: string });
const choice = objectOf({
  'event.name': fc.constant('gen_ai.choice'),
  index: fc.oneof(fc.constantFrom<Tree>({ number: '0' }, { number: '1' }, '2', { number: '1.5' })),
  finish_reason: finish,
  message: fc.oneof(message, string, arrayOf(part)),
  tool_calls: arrayOf(toolCall, 2),
});
const messages = fc.oneof(
  { weight: 4, arbitrary: arrayOf(message) },
  { weight: 2, arbitrary: arrayOf(plainMessage) },
  { weight: 1, arbitrary: message },
);
const flatEvents = arrayOf(fc.oneof(message, message, choice), 4);
const instructions = fc.oneof(arrayOf(part), arrayOf(plainMessage), message, part);
const definition = objectOf({
  type: fc.constantFrom('function', 'provider-defined'),
  name: string,
  description: string,
  parameters: tree,
  inputSchema: tree,
  parameters_json_schema: tree,
  function: tree,
});
const document = objectOf({
  id: string,
  page_content: string,
  content: string,
  metadata: objectTree,
  score: tree,
  type: string,
});
const usageDetails = objectOf({
  cache_read: fc.constant<Tree>({ number: '3' }),
  cache_write: fc.constant<Tree>({ number: '4' }),
  ephemeral_1hr_input_tokens: fc.constant<Tree>({ number: '5' }),
  reasoning: fc.constant<Tree>('6'),
  audio: fc.constant<Tree>({ number: '1.5' }),
});

/** Key → the documents that are at home there. */
const documents: Readonly<Record<string, fc.Arbitrary<Tree>>> = {
  'gen_ai.input.messages': messages,
  'gen_ai.output.messages': messages,
  'gen_ai.system_instructions': instructions,
  'gen_ai.tool.definitions': arrayOf(definition),
  'gen_ai.prompt': fc.oneof(messages, objectOf({ messages })),
  'gen_ai.completion': fc.oneof(messages, objectOf({ choices: arrayOf(choice), usage_metadata: tree })),
  'gen_ai.retrieval.documents': fc.oneof(arrayOf(document), objectOf({ documents: arrayOf(document) })),
  'gen_ai.response.finish_reasons': arrayOf(finish),
  'gen_ai.response.finish_reason': fc.oneof(arrayOf(finish), finish),
  'gen_ai.usage.input_token_details': usageDetails,
  'gen_ai.usage.output_token_details': usageDetails,
  'langsmith.usage_metadata': objectOf({ input_tokens: tree }),
  'langsmith.metadata.usage_metadata': objectOf({ input_tokens: tree }),
  'langsmith.attachments': arrayOf(
    objectOf({
      name: fc.constantFrom<Tree>('a', 'b.c', 'd"', ''),
      content: fc.constantFrom<Tree>('AAEC', 'AA==', 'AA', '_-8', 'A', '!', ''),
      mime_type: mime,
    }),
  ),
  'langsmith.span.tags': arrayOf(string),
  'tag.tags': arrayOf(string),
  'ai.prompt': objectOf({ system: fc.oneof(string, instructions), prompt: fc.oneof(string, messages), messages }),
  'ai.prompt.messages': messages,
  'ai.prompt.tools': arrayOf(
    fc.oneof(
      definition,
      definition.map((d) => write(d, { space: '', escape: 0 })),
    ),
  ),
  'ai.response.toolCalls': arrayOf(objectOf({ toolCallId: string, toolName: string, input: tree, args: string })),
  'ai.response.files': arrayOf(objectOf({ type: fc.constant('file'), mediaType: mime, data: url })),
  'ai.response.providerMetadata': objectOf({
    anthropic: objectOf({
      cacheReadInputTokens: fc.constant<Tree>({ number: '7' }),
      cacheCreationInputTokens: fc.constant<Tree>({ number: '8' }),
    }),
  }),
  'ai.values': arrayOf(fc.constantFrom<Tree>('"a"', '{"b":1}', 'c', '')),
  'ai.embeddings': arrayOf(fc.constantFrom<Tree>('[0.1]', '[1,2]', 'x')),
  'ai.documents': arrayOf(fc.constantFrom<Tree>('"a"', '{"b":1}')),
  'ai.ranking': arrayOf(fc.constantFrom<Tree>('{"originalIndex":0}')),
  events: flatEvents,
  all_messages_events: flatEvents,
  'pydantic_ai.all_messages': messages,
  model_request_parameters: objectOf({ function_tools: arrayOf(definition), output_tools: arrayOf(definition) }),
  tools: arrayOf(fc.oneof(definition, string)),
  'output.value': fc.oneof(tree, objectOf({ documents: arrayOf(document) }), arrayOf(document)),
  'traceloop.entity.output': fc.oneof(tree, objectOf({ documents: arrayOf(document) }), arrayOf(document)),
  'input.value': fc.oneof(tree, objectOf({ query: string, question: string, input: string })),
};

/** Key → the plain values that are at home there. */
const words: Readonly<Record<string, readonly string[]>> = {
  'langsmith.span.kind': ['llm', 'LLM', 'Tool', 'retriever', 'prompt', 'parser', 'agent', ''],
  'ai.operationId': [
    'ai.generateText',
    'ai.streamText.doStream',
    'ai.generateObject.doGenerate',
    'ai.toolCall',
    'ai.embedMany.doEmbed',
    'ai.rerank.doRerank',
    'ai.generateText.doStreams',
    'other',
  ],
  'gen_ai.operation.name': [
    'chat',
    'completion',
    'embeddings',
    'execute_tool',
    'invoke_agent',
    'invoke_workflow',
    'retrieval',
    'search_memory',
    'update_memory',
    'frobnicate',
    'text_completion',
  ],
  'openinference.span.kind': [
    'LLM',
    'llm',
    'RETRIEVER',
    'RERANKER',
    'EMBEDDING',
    'TOOL',
    'AGENT',
    'PROMPT',
    'constructor',
  ],
  'llm.request.type': ['chat', 'completion', 'embedding', 'rerank', ''],
  'traceloop.llm.request.type': ['completion', 'embedding'],
  'traceloop.span.kind': ['tool', 'workflow', 'unknown', 'TOOL', '__proto__'],
  'mcp.method.name': ['tools/call', 'prompts/get', 'ping'],
  'input.mime_type': ['text/plain', 'TEXT/PLAIN; charset=utf-8', 'application/json'],
  'output.mime_type': ['text/plain', ' text/plain ;x', 'application/json'],
  'langsmith.is_root': ['true', 'True'],
  'langsmith.root_span': ['true'],
  'langsmith.span.id': ['33333333-3333-4333-8333-33333333333A', 'x', '{33333333-3333-4333-8333-333333333333}'],
  'langsmith.span.parent_id': ['44444444-4444-4444-8444-444444444444'],
  'langsmith.trace.id': ['55555555-5555-4555-8555-555555555555', '55555555555545558555555555555555'],
  'langsmith.reference_example_id': ['66666666-6666-4666-8666-66666666666F', 'x'],
  'langsmith.trace.session_id': ['77777777-7777-4777-8777-77777777777F', 'x'],
  'langsmith.span.dotted_order': [
    '20250519T171915185223Z5b8efff7-9803-8103-d269-b633813fc60c',
    '20250519T171915185223Z5b8efff7-9803-8103-d269-b633813fc60c.20250519T171915185223Z33333333-3333-4333-8333-333333333333',
    '20250519T171915185223Z5b8efff7-9803-8103-d269-b633813fc60C',
    '20250519T171915185223Z5b8efff7-9803-8103-d269-b633813fc60c.',
  ],
  'langsmith.span.tags': ['a, b,, c', ' ,', 'a,a', '["x"," y "]'],
  'ai.model.provider': ['openai.chat', '.x', 'anthropic'],
  'gen_ai.system': ['openai.chat', 'openai'],
  'ai.telemetry.metadata.ls_project_id': ['77777777-7777-4777-8777-777777777777', 'x'],
  'document.metadata': [
    '{"a":1}',
    "{'a': 1, 'b': [True, None, (1,)], \"c\": 'x\\'y'}",
    "{'a'",
    "{'a': nan}",
    '[1]',
    "{'a': 1,}",
  ],
};

const number: fc.Arbitrary<AnyValue> = fc.oneof(
  fc.nat({ max: 100_000 }).map((n): AnyValue => ({ kind: 'int', value: BigInt(n) })),
  fc.bigInt({ min: -(1n << 63n), max: (1n << 63n) - 1n }).map((value): AnyValue => ({ kind: 'int', value })),
  fc
    .constantFrom(9007199254740991n, 9007199254740992n, -9007199254740992n, 0n, -1n)
    .map((value): AnyValue => ({ kind: 'int', value })),
  fc.double().map((value): AnyValue => ({ kind: 'double', value })),
  fc
    .constantFrom(12, -0, 1e21, 1e-7, 0.1, NaN, Infinity, -Infinity)
    .map((value): AnyValue => ({ kind: 'double', value })),
);

const scalar: fc.Arbitrary<AnyValue> = fc.oneof(
  text.map((value): AnyValue => ({ kind: 'string', value })),
  number,
  fc.boolean().map((value): AnyValue => ({ kind: 'bool', value })),
  fc.constant<AnyValue>({ kind: 'unset' }),
  fc.uint8Array({ maxLength: 5 }).map((value): AnyValue => ({ kind: 'bytes', value })),
);

/** Anything, structured values included. */
const anything: fc.Arbitrary<AnyValue> = fc.letrec<{ any: AnyValue }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 3, depthIdentifier: 'any' },
    { weight: 3, arbitrary: scalar },
    {
      weight: 1,
      arbitrary: fc
        .array(tie('any'), { maxLength: 3, depthIdentifier: 'any' })
        .map((value): AnyValue => ({ kind: 'array', value })),
    },
    {
      weight: 1,
      arbitrary: fc
        .array(fc.tuple(key, tie('any')), { maxLength: 3, depthIdentifier: 'any' })
        .map((value): AnyValue => ({ kind: 'kvlist', value })),
    },
  ),
})).any;

/** A document as structured value: what an emitter with typed attributes sends. */
function structured(value: Tree): AnyValue {
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return anyOf(value);
  if ('number' in value) return { kind: 'double', value: Number(value.number) };
  if ('array' in value) return { kind: 'array', value: value.array.map(structured) };
  return { kind: 'kvlist', value: value.object.map(([name, member]): Pair => [name, structured(member)]) };
}

function valueAt(name: string): fc.Arbitrary<AnyValue> {
  const home = Object.hasOwn(documents, name) ? documents[name] : undefined;
  const plain = Object.hasOwn(words, name) ? words[name] : undefined;
  const options: fc.WeightedArbitrary<AnyValue>[] = [
    { weight: 1, arbitrary: anything },
    { weight: 1, arbitrary: scalar },
  ];
  if (plain !== undefined) {
    options.push({
      weight: 8,
      arbitrary: fc.constantFrom(...plain).map((value): AnyValue => ({ kind: 'string', value })),
    });
  }
  if (home !== undefined) {
    options.push({ weight: 8, arbitrary: documentText(home).map((value): AnyValue => ({ kind: 'string', value })) });
    options.push({ weight: 2, arbitrary: home.map(structured) });
  }
  if (home === undefined && plain === undefined) {
    options.push({
      weight: 2,
      arbitrary: fc.nat({ max: 5000 }).map((n): AnyValue => ({ kind: 'int', value: BigInt(n) })),
    });
    options.push({ weight: 2, arbitrary: word.map((value): AnyValue => ({ kind: 'string', value })) });
    options.push({ weight: 2, arbitrary: documentText(tree).map((value): AnyValue => ({ kind: 'string', value })) });
  }
  return fc.oneof(...options);
}

// --- keys -----------------------------------------------------------------------------------------------------------

const index = fc.constantFrom('0', '1', '2', '10', '7', '00', '-1', '1000000000', 'x');

/** Prefix of a family → what may follow the index. */
const families: Readonly<Record<string, readonly string[]>> = {
  'gen_ai.prompt.': [
    'role',
    'content',
    'user',
    'name',
    'tool_call_id',
    'finish_reason',
    'refusal',
    'message.role',
    'message.content',
    'tool_calls.0.id',
    'tool_calls.0.name',
    'tool_calls.1.arguments',
    'other',
  ],
  'gen_ai.completion.': [
    'role',
    'content',
    'finish_reason',
    'refusal',
    'message.content',
    'tool_calls.0.id',
    'tool_calls.0.name',
    'tool_calls.0.arguments',
    'tool_calls.1.name',
    'tool_calls.1.function.name',
  ],
  'llm.input_messages.': [
    'message.role',
    'message.content',
    'message.name',
    'message.tool_call_id',
    'message.contents.0.message_content.type',
    'message.contents.0.message_content.text',
    'message.contents.1.message_content.image.image.url',
    'message.contents.1.message_content.type',
    'message.contents.2.message_content.audio.audio.url',
    'message.tool_calls.0.tool_call.id',
    'message.tool_calls.0.tool_call.function.name',
    'message.tool_calls.0.tool_call.function.arguments',
    'message.function_call_name',
  ],
  'llm.output_messages.': [
    'message.role',
    'message.content',
    'message.tool_calls.0.tool_call.function.name',
    'message.tool_calls.3.tool_call.function.arguments',
    'message.function_call_arguments_json',
    'message.contents.0.message_content.text',
  ],
  'llm.prompts.': ['prompt.text', 'other'],
  'llm.choices.': ['completion.text'],
  'llm.tools.': ['tool.json_schema'],
  'llm.request.functions.': ['name', 'description', 'parameters', 'arguments'],
  'retrieval.documents.': ['document.content', 'document.metadata', 'document.id', 'document.score', 'document.other'],
  'reranker.input_documents.': ['document.content', 'document.metadata'],
  'reranker.output_documents.': ['document.content', 'document.score'],
  'embedding.embeddings.': ['embedding.text', 'embedding.vector'],
};

const familyPair: fc.Arbitrary<Pair> = fc
  .constantFrom(...Object.entries(families))
  .chain(([prefix, rests]) => fc.tuple(fc.constant(prefix), index, fc.constantFrom(...rests)))
  .chain(([prefix, at, rest]) =>
    fc.tuple(fc.constant(`${prefix}${at}.${rest}`), fc.oneof(familyValue(rest), familyValue(rest), anything)),
  );

function familyValue(rest: string): fc.Arbitrary<AnyValue> {
  if (rest.endsWith('content') || rest === 'user') {
    return fc.oneof(text, documentText(arrayOf(part))).map((value): AnyValue => ({ kind: 'string', value }));
  }
  if (rest.endsWith('role')) return role.map((value): AnyValue => anyOf(typeof value === 'string' ? value : ''));
  if (rest === 'document.metadata')
    return fc.oneof(
      valueAt('document.metadata'),
      documentText(objectTree).map((value): AnyValue => ({ kind: 'string', value })),
    );
  if (rest.endsWith('type'))
    return fc
      .constantFrom('text', 'image', 'audio', 'reasoning', 'x')
      .map((value): AnyValue => ({ kind: 'string', value }));
  if (rest.endsWith('json_schema'))
    return documentText(definition).map((value): AnyValue => ({ kind: 'string', value }));
  if (rest.endsWith('vector'))
    return fc.array(number, { maxLength: 3 }).map((value): AnyValue => ({ kind: 'array', value }));
  return fc.oneof(text, documentText(tree)).map((value): AnyValue => ({ kind: 'string', value }));
}

const metadataPrefixes = [
  'langsmith.metadata.',
  'traceloop.association.properties.',
  'ai.telemetry.metadata.',
  'ai.settings.context.',
  'ai.settings.runtimeContext.',
  'langsmith.',
];
const metadataNames = [
  'a',
  'b',
  'ls_run_name',
  'ls_project_name',
  'ls_project_id',
  'invocation_params',
  'session_id',
  'ls_model_name',
  'OTEL_TRACE_ID',
  'usage_metadata',
  'otel_scope',
  'x.y',
  ...dangerousKeys,
];
const metadataPair: fc.Arbitrary<Pair> = fc
  .tuple(fc.constantFrom(...metadataPrefixes), fc.constantFrom(...metadataNames))
  .chain(([prefix, name]) => fc.tuple(fc.constant(prefix + name), fc.oneof(anything, valueAt(prefix + name))));

const homeNames = [...Object.keys(documents), ...Object.keys(words)].filter((name) => name !== 'document.metadata');
const knownPair: fc.Arbitrary<Pair> = fc
  .oneof(fc.constantFrom(...homeNames), fc.constantFrom(...recognisedNames))
  .chain((name) => fc.tuple(fc.constant(name), valueAt(name)));
const unknownPair: fc.Arbitrary<Pair> = fc.tuple(
  fc.oneof(
    key,
    fc.constantFrom('http.route', 'gen_ai.new', 'ls_provider', 'metadata', 'usage_metadata', 'aggregated_usage'),
  ),
  anything,
);

const attributes: fc.Arbitrary<Pair[]> = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: knownPair },
    { weight: 3, arbitrary: familyPair },
    { weight: 2, arbitrary: metadataPair },
    { weight: 1, arbitrary: unknownPair },
  ),
  { maxLength: 12 },
);

// --- events, spans --------------------------------------------------------------------------------------------------

const eventNames = [
  'gen_ai.system.message',
  'gen_ai.user.message',
  'gen_ai.assistant.message',
  'gen_ai.tool.message',
  'gen_ai.tool.developer',
  'gen_ai.choice',
  'gen_ai.content.prompt',
  'gen_ai.content.completion',
  'gen_ai.client.inference.operation.details',
  'exception',
  'exception',
  'ai.stream.firstChunk',
  'First Token Stream Event',
  'other',
  '',
];

const eventKeys: Readonly<Record<string, fc.Arbitrary<AnyValue>>> = {
  content: fc.oneof(text, documentText(arrayOf(part))).map((value): AnyValue => ({ kind: 'string', value })),
  role: role.map((value) => anyOf(typeof value === 'string' ? value : '')),
  id: word.map(anyOf),
  name: word.map(anyOf),
  index: fc.oneof(fc.nat({ max: 3 }).map(anyOf), fc.constant(anyOf('1')), number),
  finish_reason: finish.map(anyOf),
  tool_calls: documentText(arrayOf(toolCall)).map((value): AnyValue => ({ kind: 'string', value })),
  message: fc.oneof(
    documentText(fc.oneof(message, arrayOf(part))).map((value): AnyValue => ({ kind: 'string', value })),
    message.map(structured),
    text.map((value): AnyValue => ({ kind: 'string', value })),
  ),
  'message.content': text.map((value): AnyValue => ({ kind: 'string', value })),
  'message.role': word.map(anyOf),
  'tool_calls.0.id': word.map(anyOf),
  'tool_calls.0.function.name': word.map(anyOf),
  'tool_calls.1.function.arguments': text.map((value): AnyValue => ({ kind: 'string', value })),
  'gen_ai.event.content': documentText(fc.oneof(message, choice, tree)).map((value): AnyValue => ({
    kind: 'string',
    value,
  })),
  'gen_ai.prompt': documentText(tree).map((value): AnyValue => ({ kind: 'string', value })),
  'gen_ai.completion': documentText(tree).map((value): AnyValue => ({ kind: 'string', value })),
  'gen_ai.input.messages': valueAt('gen_ai.input.messages'),
  'gen_ai.output.messages': valueAt('gen_ai.output.messages'),
  'gen_ai.tool.definitions': valueAt('gen_ai.tool.definitions'),
  'exception.message': text.map((value): AnyValue => ({ kind: 'string', value })),
  'exception.type': word.map(anyOf),
  'exception.stacktrace': word.map(anyOf),
  'exception.escaped': fc.constantFrom<AnyValue>(
    { kind: 'bool', value: false },
    { kind: 'bool', value: true },
    { kind: 'string', value: 'False' },
  ),
};

const eventPair: fc.Arbitrary<Pair> = fc
  .oneof({ weight: 6, arbitrary: fc.constantFrom(...Object.keys(eventKeys)) }, { weight: 1, arbitrary: key })
  .chain((name) =>
    fc.tuple(
      fc.constant(name),
      fc.oneof(
        { weight: 8, arbitrary: (Object.hasOwn(eventKeys, name) ? eventKeys[name] : undefined) ?? anything },
        { weight: 1, arbitrary: anything },
      ),
    ),
  );

const START = 1747675155185223936n;
const time = fc.oneof(
  { weight: 6, arbitrary: fc.bigInt({ min: START - 10n ** 9n, max: START + 10n ** 9n }) },
  { weight: 1, arbitrary: fc.constantFrom(0n, 1n, 999n, 9007199254740991999n) },
);

const event = fc.record({
  timeNs: time,
  name: fc.oneof({ weight: 8, arbitrary: fc.constantFrom(...eventNames) }, { weight: 1, arbitrary: text }),
  attributes: fc.array(eventPair, { maxLength: 4 }),
});

/** Mostly valid ids; a wrong one now and then. */
function id(size: number): fc.Arbitrary<Uint8Array> {
  return fc.oneof<fc.WeightedArbitrary<Uint8Array>[]>(
    { weight: 30, arbitrary: fc.uint8Array({ minLength: size, maxLength: size }) },
    {
      weight: 1,
      arbitrary: fc.constantFrom<Uint8Array>(
        new Uint8Array(size),
        new Uint8Array(0),
        new Uint8Array(size - 1).fill(1),
        new Uint8Array(size + 1).fill(1),
      ),
    },
  );
}

export const span: fc.Arbitrary<SpanInput> = fc
  .record({
    traceId: id(16),
    spanId: id(8),
    parentSpanId: fc.oneof(fc.constant<Uint8Array>(new Uint8Array(0)), id(8)),
    name: fc.oneof(text, fc.constantFrom('chat gpt', 'gen_ai.x', '')),
    kind: fc.nat({ max: 6 }),
    startNs: time,
    endNs: time,
    attributes,
    events: fc.array(event, { maxLength: 5 }).map((events) => (events.length > 3 ? [] : events)),
    links: fc
      .array(fc.record({ traceId: id(16), spanId: id(8), attributes: fc.array(unknownPair, { maxLength: 2 }) }), {
        maxLength: 4,
      })
      .map((links) => (links.length > 2 ? [] : links)),
    status: fc.record({ code: fc.nat({ max: 3 }), message: fc.oneof(fc.constant(''), text) }),
    scopeName: fc.oneof(fc.constantFrom('', 'langsmith', 'ai', '@traceloop/x', 'lib', 'pydantic-ai'), text),
    resource: fc.array(unknownPair, { maxLength: 2 }),
  })
  // Now and then a span is its own parent.
  .map((made): SpanInput => (made.kind === 6 ? { ...made, parentSpanId: made.spanId } : made));
