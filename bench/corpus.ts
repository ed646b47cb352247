/**
 * The spans that the benches send: three deterministic corpora, each a stream of traces cut into requests of equal span
 * count, as an SDK's batch processor does: children before parents, several traces a request, a trace now and then
 * running over into the next request. The last request ends with a whole trace, so a corpus is complete in itself.
 */
import { createProse, createVocabulary, type Prose, type Vocabulary } from './prose.ts';
import { createRandom, type Random } from './random.ts';
import { loadSchema } from './schema.ts';

export const CORPUS_NAMES = ['typical', 'llm', 'many-attributes'] as const;
export type CorpusName = (typeof CORPUS_NAMES)[number];

export interface CorpusRequest {
  readonly protobuf: Uint8Array;
  readonly json: Uint8Array;
  readonly spanCount: number;
}

export interface Corpus {
  readonly name: CorpusName;
  readonly requests: readonly CorpusRequest[];
  readonly spanCount: number;
  readonly attributeCount: number;
  readonly protobufBytes: number;
  readonly jsonBytes: number;
}

/** Integers become `intValue`, other numbers `doubleValue`. */
type AttributeValue = string | number | boolean | readonly string[];
type Attributes = [key: string, value: AttributeValue][];

interface SpanEvent {
  readonly name: string;
  readonly timeNs: bigint;
  readonly attributes: Attributes;
}

interface Span {
  readonly traceId: Uint8Array;
  readonly spanId: Uint8Array;
  readonly parentSpanId: Uint8Array | null;
  readonly name: string;
  readonly kind: number;
  readonly startNs: bigint;
  readonly endNs: bigint;
  readonly attributes: Attributes;
  readonly events: SpanEvent[];
  readonly status: { code: number; message?: string };
}

type Role = 'chain' | 'llm' | 'tool' | 'retriever';

interface Content {
  readonly name: string;
  readonly attributes: Attributes;
}

/** Draws what a span of this role carries. */
type ContentWriter = (role: Role, random: Random, prose: Prose) => Content;

interface CorpusShape {
  readonly seed: number;
  readonly requestCount: number;
  readonly spansPerRequest: number;
  readonly content: ContentWriter;
}

const MODELS = ['gpt-4o-mini', 'gpt-4o', 'claude-sonnet-4', 'o4-mini'] as const;
const TOOLS = ['get_weather', 'search_orders', 'run_sql', 'send_mail', 'fetch_page'] as const;
const SECOND_NS = 1_000_000_000n;
const EPOCH_START_NS = 1_765_000_000n * SECOND_NS;

const SHAPES: Record<CorpusName, CorpusShape> = {
  typical: { seed: 1, requestCount: 16, spansPerRequest: 100, content: typicalContent },
  llm: { seed: 2, requestCount: 8, spansPerRequest: 20, content: llmContent },
  'many-attributes': { seed: 3, requestCount: 16, spansPerRequest: 100, content: manyAttributesContent },
};

export interface CorpusSettings {
  /** Requests in the corpus, instead of its usual number. */
  readonly requestCount?: number;
  readonly spansPerRequest?: number;
}

export function createCorpus(name: CorpusName, settings: CorpusSettings = {}): Corpus {
  const shape = SHAPES[name];
  const random = createRandom(shape.seed);
  const vocabulary = createVocabulary(random);
  const requestCount = settings.requestCount ?? shape.requestCount;
  const spansPerRequest = settings.spansPerRequest ?? shape.spansPerRequest;
  const spans = drawTraces(requestCount * spansPerRequest, shape.content, random, vocabulary);
  const { request: requestType } = loadSchema();
  const requests = Array.from({ length: requestCount }, (_, index): CorpusRequest => {
    const own = spans.slice(index * spansPerRequest, (index + 1) * spansPerRequest);
    return {
      protobuf: requestType.encode(requestType.create(toMessage(own, 'protobuf'))).finish(),
      json: Buffer.from(JSON.stringify(toMessage(own, 'json'))),
      spanCount: own.length,
    };
  });
  return {
    name,
    requests,
    spanCount: spans.length,
    attributeCount: spans.reduce((sum, span) => sum + span.attributes.length, 0),
    protobufBytes: requests.reduce((sum, request) => sum + request.protobuf.length, 0),
    jsonBytes: requests.reduce((sum, request) => sum + request.json.length, 0),
  };
}

// --- traces ---------------------------------------------------------------------------------------------------------

function drawTraces(spanCount: number, content: ContentWriter, random: Random, vocabulary: Vocabulary): Span[] {
  const spans: Span[] = [];
  let startNs = EPOCH_START_NS;
  while (spans.length < spanCount) {
    const left = spanCount - spans.length;
    const size = left <= 17 && left > 12 ? left - 5 : Math.min(left, random.between(5, 12));
    spans.push(...drawTrace(size, startNs, content, random, createProse(random, vocabulary)));
    startNs += BigInt(random.between(1, 400)) * 1_000_000n;
  }
  return spans;
}

/** A root chain with calls below it; some tools are wrapped in a sub-chain. In order of ending: children first. */
function drawTrace(size: number, startNs: bigint, content: ContentWriter, random: Random, prose: Prose): Span[] {
  const traceId = random.bytes(16);
  const ids = Array.from({ length: size }, () => random.bytes(8));
  const roles: Role[] = ['chain'];
  const parents = [-1];
  for (let i = 1; i < size; i++) {
    const chains = roles.flatMap((role, index) => (role === 'chain' ? [index] : []));
    parents.push(random.pick(chains.slice(-2)));
    const draw = random.next();
    roles.push(draw < 0.5 ? 'llm' : draw < 0.75 ? 'tool' : draw < 0.88 ? 'retriever' : 'chain');
  }
  // Starts grow with the index, so a child never starts before its parent; a parent ends after all its descendants.
  const startsNs = ids.map(
    (_, index) => startNs + BigInt(index) * 137_000_000n + BigInt(random.between(0, 99_999_999)),
  );
  const endsNs = startsNs.map((start) => start + BigInt(random.between(20_000_000, 2_000_000_000)));
  for (let i = size - 1; i > 0; i--) {
    const parent = parents[i] ?? 0;
    const endNs = (endsNs[i] ?? startNs) + 1_000_000n;
    if (endNs > (endsNs[parent] ?? startNs)) endsNs[parent] = endNs;
  }
  const spans = ids.map((spanId, index): Span => {
    const role = roles[index] ?? 'chain';
    const { name, attributes } = content(role, random, prose);
    const failed = role === 'tool' && random.chance(0.03);
    return {
      traceId,
      spanId,
      parentSpanId: ids[parents[index] ?? -1] ?? null,
      name,
      kind: role === 'llm' ? 3 : 1,
      startNs: startsNs[index] ?? startNs,
      endNs: endsNs[index] ?? startNs,
      attributes,
      events: failed ? [exceptionEvent(endsNs[index] ?? startNs, prose)] : [],
      status: failed ? { code: 2, message: 'tool failed' } : { code: role === 'llm' ? 1 : 0 },
    };
  });
  return spans.sort((a, b) => (a.endNs < b.endNs ? -1 : 1));
}

function exceptionEvent(timeNs: bigint, prose: Prose): SpanEvent {
  const at = (): string => `  File "/app/${prose.word()}.py", line 42, in ${prose.word()}\n`;
  return {
    name: 'exception',
    timeNs,
    attributes: [
      ['exception.type', 'ValueError'],
      ['exception.message', prose.sentences(60)],
      ['exception.stacktrace', `Traceback (most recent call last):\n${at()}${at()}ValueError`],
    ],
  };
}

// --- content --------------------------------------------------------------------------------------------------------

/** 1 to 2 kB on the wire, 1.7 kB in the mean: prompt and completion as JSON documents, usage, some metadata. */
function typicalContent(role: Role, random: Random, prose: Prose): Content {
  const textChars = Math.round(1830 - 1000 * random.next() ** 2 - (role === 'llm' ? 560 : 300));
  const promptText = prose.sentences(Math.max(100, Math.round(textChars * 0.62)));
  const completionText = prose.sentences(Math.max(60, Math.round(textChars * 0.38)));
  const metadata: Attributes = [
    ['langsmith.metadata.user_id', `user-${random.between(1, 5000)}`],
    ['langsmith.metadata.thread_id', hex(random.bytes(16))],
    ['langsmith.metadata.environment', random.pick(['production', 'staging'])],
  ];
  if (role === 'llm') {
    const model = random.pick(MODELS);
    const inputTokens = random.between(80, 900);
    const outputTokens = random.between(20, 400);
    const prompt = {
      messages: [
        { role: 'system', content: 'You are a helpful assistant. Answer briefly and name your sources.' },
        { role: 'user', content: promptText },
      ],
      model,
    };
    const completion = {
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: completionText } }],
    };
    return {
      name: `chat ${model}`,
      attributes: [
        ['gen_ai.operation.name', 'chat'],
        ['gen_ai.system', 'openai'],
        ['gen_ai.request.model', model],
        ['gen_ai.response.model', `${model}-2026-01-15`],
        ['gen_ai.request.temperature', 0.7],
        ['gen_ai.request.max_tokens', 1024],
        ['gen_ai.request.top_p', 0.95],
        ['gen_ai.usage.input_tokens', inputTokens],
        ['gen_ai.usage.output_tokens', outputTokens],
        ['gen_ai.usage.total_tokens', inputTokens + outputTokens],
        ['gen_ai.prompt', JSON.stringify(prompt)],
        ['gen_ai.completion', JSON.stringify(completion)],
        ...metadata,
      ],
    };
  }
  if (role === 'tool') {
    const tool = random.pick(TOOLS);
    return {
      name: `execute_tool ${tool}`,
      attributes: [
        ['gen_ai.operation.name', 'execute_tool'],
        ['gen_ai.tool.name', tool],
        ['gen_ai.prompt', JSON.stringify({ query: promptText, limit: random.between(1, 50), strict: true })],
        ['gen_ai.completion', JSON.stringify({ rows: [completionText], count: 1, cached: false })],
        ...metadata,
      ],
    };
  }
  if (role === 'retriever') {
    const documents = [
      {
        page_content: completionText,
        metadata: { source: `doc-${random.between(1, 900)}`, score: 0.83 },
        type: 'Document',
      },
    ];
    return {
      name: 'retrieve',
      attributes: [
        ['langsmith.span.kind', 'retriever'],
        ['gen_ai.prompt', JSON.stringify({ query: promptText })],
        ['gen_ai.completion', JSON.stringify({ documents })],
        ...metadata,
      ],
    };
  }
  return {
    name: `agent ${prose.word()}`,
    attributes: [
      ['langsmith.span.kind', 'chain'],
      ['langsmith.span.tags', 'agent,bench'],
      ['gen_ai.prompt', JSON.stringify({ input: promptText, context: { locale: 'en', turn: random.between(1, 9) } })],
      ['gen_ai.completion', JSON.stringify({ output: completionText })],
      ...metadata,
    ],
  };
}

/** 5 to 100 kB: long chat histories in the three forms that carry them, sizes spread evenly over their logarithm. */
function llmContent(role: Role, random: Random, prose: Prose): Content {
  const sizeChars = Math.round(5000 * 18 ** random.next());
  const model = random.pick(MODELS);
  const turnCount = Math.max(3, Math.min(60, Math.round(sizeChars / random.between(400, 2500))));
  const turnChars = Math.max(50, Math.floor((sizeChars * 0.85) / turnCount));
  const turns = Array.from({ length: turnCount }, (_, index) => ({
    role: index === 0 ? 'system' : index % 2 === 1 ? 'user' : 'assistant',
    content: prose.chat(random.between(Math.round(turnChars * 0.4), Math.round(turnChars * 1.6))),
  }));
  const answer = prose.chat(Math.round(sizeChars * 0.15));
  const inputTokens = Math.round(sizeChars / 4);
  const outputTokens = Math.round(sizeChars / 30);
  const common: Attributes = [
    ['langsmith.metadata.thread_id', hex(random.bytes(16))],
    ['langsmith.metadata.user_id', `user-${random.between(1, 5000)}`],
  ];
  const draw = random.next();
  if (draw < 0.34) {
    return {
      name: `chat ${model}`,
      attributes: [
        ['gen_ai.operation.name', 'chat'],
        ['gen_ai.system', 'openai'],
        ['gen_ai.request.model', model],
        ['gen_ai.usage.input_tokens', inputTokens],
        ['gen_ai.usage.output_tokens', outputTokens],
        ['gen_ai.prompt', JSON.stringify({ messages: turns, model })],
        [
          'gen_ai.completion',
          JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: answer } }] }),
        ],
        ...common,
      ],
    };
  }
  if (draw < 0.67) return structuredMessages(model, turns, answer, inputTokens, outputTokens, common, random, prose);
  const attributes: Attributes = [
    ['openinference.span.kind', 'LLM'],
    ['llm.system', 'openai'],
    ['llm.model_name', model],
    ['llm.invocation_parameters', JSON.stringify({ temperature: 0.2, max_tokens: 2048 })],
    ['llm.token_count.prompt', inputTokens],
    ['llm.token_count.completion', outputTokens],
    ['llm.token_count.total', inputTokens + outputTokens],
  ];
  turns.forEach((turn, index) => {
    attributes.push([`llm.input_messages.${index}.message.role`, turn.role]);
    attributes.push([`llm.input_messages.${index}.message.content`, turn.content]);
  });
  attributes.push(
    ['llm.output_messages.0.message.role', 'assistant'],
    ['llm.output_messages.0.message.content', answer],
  );
  return { name: role === 'llm' ? 'ChatOpenAI' : 'ChatAnthropic', attributes: [...attributes, ...common] };
}

interface Turn {
  readonly role: string;
  readonly content: string;
}

/** `gen_ai.input.messages` and its kin: messages with parts, a tool call and its result, tool definitions. */
function structuredMessages(
  model: string,
  turns: readonly Turn[],
  answer: string,
  inputTokens: number,
  outputTokens: number,
  common: Attributes,
  random: Random,
  prose: Prose,
): Content {
  const [system, ...history] = turns;
  const callId = `call_${hex(random.bytes(8))}`;
  const tool = random.pick(TOOLS);
  const toolMessages = [
    {
      role: 'assistant',
      parts: [
        { type: 'tool_call', id: callId, name: tool, arguments: { city: prose.word(), days: random.between(1, 9) } },
      ],
    },
    { role: 'tool', parts: [{ type: 'tool_call_response', id: callId, response: prose.chat(200) }] },
  ];
  const messages = history.map((turn) => ({ role: turn.role, parts: [{ type: 'text', content: turn.content }] }));
  messages.splice(2, 0, ...(toolMessages as unknown as typeof messages));
  const tools = TOOLS.map((name) => ({
    type: 'function',
    name,
    description: prose.sentences(80),
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  }));
  return {
    name: `chat ${model}`,
    attributes: [
      ['gen_ai.operation.name', 'chat'],
      ['gen_ai.provider.name', 'openai'],
      ['gen_ai.request.model', model],
      ['gen_ai.conversation.id', hex(random.bytes(12))],
      ['gen_ai.usage.input_tokens', inputTokens],
      ['gen_ai.usage.output_tokens', outputTokens],
      ['gen_ai.system_instructions', JSON.stringify([{ type: 'text', content: system?.content ?? '' }])],
      ['gen_ai.tool.definitions', JSON.stringify(tools)],
      ['gen_ai.input.messages', JSON.stringify(messages)],
      [
        'gen_ai.output.messages',
        JSON.stringify([{ role: 'assistant', parts: [{ type: 'text', content: answer }], finish_reason: 'stop' }]),
      ],
      ...common,
    ],
  };
}

/** 60 to 120 short attributes: metadata, indexed OpenInference messages, usage, and HTTP ones that no mapping knows. */
function manyAttributesContent(role: Role, random: Random, prose: Prose): Content {
  const model = random.pick(MODELS);
  const attributes: Attributes = [
    ['openinference.span.kind', role === 'chain' ? 'CHAIN' : 'LLM'],
    ['llm.model_name', model],
    ['llm.provider', 'openai'],
    ['llm.token_count.prompt', random.between(1, 4000)],
    ['llm.token_count.completion', random.between(1, 900)],
    ['llm.token_count.prompt_details.cache_read', random.between(0, 500)],
    ['llm.invocation_parameters', JSON.stringify({ temperature: 0.1, stop: ['END'] })],
    ['session.id', hex(random.bytes(8))],
    ['user.id', `user-${random.between(1, 5000)}`],
  ];
  const count = random.between(60, 120);
  const messageCount = Math.round(count * 0.12);
  for (let i = 0; i < messageCount; i++) {
    attributes.push([`llm.input_messages.${i}.message.role`, i % 2 === 0 ? 'user' : 'assistant']);
    attributes.push([`llm.input_messages.${i}.message.content`, prose.sentences(random.between(10, 60))]);
  }
  attributes.push(['llm.output_messages.0.message.role', 'assistant']);
  attributes.push(['llm.output_messages.0.message.content', prose.sentences(50)]);
  const httpCount = Math.round(count * 0.25);
  for (let i = 0; i < httpCount; i++) {
    const [key, value] = HTTP_ATTRIBUTES[i % HTTP_ATTRIBUTES.length] ?? ['http.route', '/'];
    attributes.push([i < HTTP_ATTRIBUTES.length ? key : `http.request.header.x-${prose.word()}-${i}`, value]);
  }
  for (let i = 0; attributes.length < count; i++) {
    const draw = random.next();
    const value = draw < 0.7 ? prose.word() : draw < 0.85 ? random.between(0, 1_000_000) : random.chance(0.5);
    attributes.push([`langsmith.metadata.${prose.word()}_${i}`, value]);
  }
  return { name: `${prose.word()}.${role}`, attributes: shuffle(attributes, random) };
}

const HTTP_ATTRIBUTES: readonly [string, AttributeValue][] = [
  ['http.request.method', 'POST'],
  ['http.route', '/api/v2/conversations/{id}/messages'],
  ['http.response.status_code', 200],
  ['http.request.body.size', 18_234],
  ['http.response.body.size', 911],
  ['server.address', 'gateway.internal.example'],
  ['server.port', 8443],
  ['client.address', '10.4.17.201'],
  ['network.protocol.version', '1.1'],
  ['network.peer.address', '10.4.0.3'],
  ['url.scheme', 'https'],
  ['url.path', '/api/v2/conversations/1f6f/messages'],
  ['url.query', 'stream=true&limit=20'],
  ['user_agent.original', 'openai-python/1.61.0 (Linux; x86_64)'],
  ['thread.id', 140_123],
  ['thread.name', 'worker-7'],
  ['code.function.name', 'app.chat.handle'],
  ['code.line.number', 211],
];

function shuffle<T>(items: T[], random: Random): T[] {
  for (let i = items.length - 1; i > 0; i--) {
    const j = random.between(0, i);
    const held = items[i] as T;
    items[i] = items[j] as T;
    items[j] = held;
  }
  return items;
}

// --- OTLP -----------------------------------------------------------------------------------------------------------

const RESOURCE_ATTRIBUTES: Attributes = [
  ['service.name', 'support-agent'],
  ['service.version', '3.14.2'],
  ['deployment.environment.name', 'production'],
  ['telemetry.sdk.language', 'python'],
  ['telemetry.sdk.name', 'opentelemetry'],
  ['telemetry.sdk.version', '1.38.0'],
];

/** `json` spells ids as hex and 64-bit times as strings, as the JavaScript exporter does. */
function toMessage(spans: readonly Span[], spelling: 'protobuf' | 'json'): Record<string, unknown> {
  const id = spelling === 'json' ? hex : (bytes: Uint8Array): Uint8Array => bytes;
  return {
    resourceSpans: [
      {
        resource: { attributes: RESOURCE_ATTRIBUTES.map(toKeyValue) },
        scopeSpans: [
          {
            scope: { name: 'support.agent', version: '0.9.1' },
            spans: spans.map((span) => ({
              traceId: id(span.traceId),
              spanId: id(span.spanId),
              ...(span.parentSpanId === null ? {} : { parentSpanId: id(span.parentSpanId) }),
              name: span.name,
              kind: span.kind,
              startTimeUnixNano: span.startNs.toString(),
              endTimeUnixNano: span.endNs.toString(),
              attributes: span.attributes.map(toKeyValue),
              events: span.events.map((event) => ({
                name: event.name,
                timeUnixNano: event.timeNs.toString(),
                attributes: event.attributes.map(toKeyValue),
              })),
              status: span.status,
              flags: 0x101,
            })),
          },
        ],
      },
    ],
  };
}

function toKeyValue([key, value]: [string, AttributeValue]): object {
  return { key, value: toAnyValue(value) };
}

function toAnyValue(value: AttributeValue): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: value } : { doubleValue: value };
  return { arrayValue: { values: value.map(toAnyValue) } };
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
