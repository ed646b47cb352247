/** Traces as agents send them, for browser tests and screenshots: OTLP/JSON, the same for the same seed. */

type Value = string | number | object;

interface Step {
  readonly name: string;
  /** Of the trace's time: 0 its start, 1 its end. */
  readonly from: number;
  readonly to: number;
  readonly attributes?: Readonly<Record<string, Value>>;
  readonly steps?: readonly Step[];
  readonly error?: { readonly type: string; readonly message: string; readonly stack: string };
  /** Sent without an end. */
  readonly isOpen?: boolean;
}

export interface TraceChoice {
  readonly seed: number;
  readonly endMs: number;
  readonly durationMs: number;
}

export interface SentTrace {
  readonly traceId: string;
  readonly spanCount: number;
  readonly body: string;
}

export type Scenario = (random: () => number) => Step;

/** A small red square. */
export const PNG_BASE64 =
  'iVBORw0KGgoAAAANSUhEUgAAAEAAAABACAIAAAAlC+aJAAAATElEQVR42u3PQQ0AAAgEoNM6/Ws4W4AfdoFI6nwlICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICDwbAGXhwF/0jnHFQAAAABJRU5ErkJggg==';

/** Numbers from 0 to below 1. */
export function createRandom(seed: number): () => number {
  let state = (seed * 2654435761 + 1) >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

export function makeScenario(scenario: Scenario, { seed, endMs, durationMs }: TraceChoice): SentTrace {
  const random = createRandom(seed);
  const hex = (length: number): string => Array.from({ length }, () => Math.floor(random() * 16).toString(16)).join('');
  const traceId = `${(seed >>> 0).toString(16).padStart(8, '0')}${hex(24)}`;
  const spans: object[] = [];
  const add = (step: Step, parentSpanId: string | null): void => {
    const spanId = hex(16);
    const at = (share: number): string => `${BigInt(Math.round((endMs - durationMs * (1 - share)) * 1000))}000`;
    spans.push({
      traceId,
      spanId,
      ...(parentSpanId === null ? {} : { parentSpanId }),
      name: step.name,
      kind: 1,
      startTimeUnixNano: at(step.from),
      endTimeUnixNano: at(step.to),
      attributes: attributesOf(step.attributes ?? {}),
      ...(step.error === undefined
        ? {}
        : {
            status: { code: 2, message: step.error.message },
            events: [
              {
                name: 'exception',
                timeUnixNano: at(step.to),
                attributes: attributesOf({
                  'exception.type': step.error.type,
                  'exception.message': step.error.message,
                  'exception.stacktrace': step.error.stack,
                }),
              },
            ],
          }),
    });
    for (const child of step.steps ?? []) add(child, spanId);
  };
  add(scenario(random), null);
  const resource = { attributes: attributesOf({ 'service.name': 'workload' }) };
  return {
    traceId,
    spanCount: spans.length,
    body: JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans }] }] }),
  };
}

function attributesOf(attributes: Readonly<Record<string, Value>>): object[] {
  return Object.entries(attributes).map(([key, value]) => ({
    key,
    value:
      typeof value === 'number'
        ? Number.isInteger(value)
          ? { intValue: String(value) }
          : { doubleValue: value }
        : { stringValue: typeof value === 'string' ? value : JSON.stringify(value) },
  }));
}

const text = (content: string): object => ({ type: 'text', content });
const said = (role: string, ...parts: object[]): object => ({ role, parts });

function chat(
  from: number,
  to: number,
  model: string,
  input: readonly object[],
  output: readonly object[],
  [inputTokens, outputTokens]: readonly [number, number],
): Step {
  return {
    name: `chat ${model}`,
    from,
    to,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': model,
      'gen_ai.request.temperature': 0.2,
      'gen_ai.system_instructions': [
        text('You are the support agent of a bicycle shop. Look things up before you answer.'),
      ],
      'gen_ai.input.messages': input,
      'gen_ai.output.messages': output,
      'gen_ai.usage.input_tokens': inputTokens,
      'gen_ai.usage.output_tokens': outputTokens,
      'llm.cost.total': (inputTokens * 2.5 + outputTokens * 10) / 1e6,
    },
  };
}

function tool(name: string, from: number, to: number, input: object, output: object, more: Partial<Step> = {}): Step {
  return {
    name: `execute_tool ${name}`,
    from,
    to,
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': name,
      'gen_ai.tool.call.id': `call_${name}`,
      'gen_ai.tool.call.arguments': input,
      ...(more.error === undefined ? { 'gen_ai.tool.call.result': output } : {}),
    },
    ...more,
  };
}

const QUESTIONS = [
  'Where is my order A-1042? It should have arrived on Monday.',
  'My invoice shows a charge that I do not recognise.',
  'Can I still change the delivery address of A-2207?',
  'The left brake squeals after the last service. What can I do?',
  'How long is the warranty on a cargo bike battery?',
  'I would like to return the helmet I bought last week.',
];

export const supportAgent: Scenario = (random) => {
  const question = QUESTIONS[Math.floor(random() * QUESTIONS.length)] ?? '';
  const order = { id: 'A-1042', state: 'in transit', carrier: 'Cargo Bikes Ltd.', eta: '2026-03-18', items: 2 };
  const user = said('user', text(question));
  const call = { type: 'tool_call', id: 'call_lookup_order', name: 'lookup_order', arguments: { order_id: 'A-1042' } };
  const result = said('tool', { type: 'tool_call_response', id: 'call_lookup_order', response: order });
  const answer =
    'Your order **A-1042** is *in transit*:\n\n| | |\n|---|---|\n| Carrier | Cargo Bikes Ltd. |\n| Expected | Wednesday, 18 March |\n\n' +
    'You can:\n\n1. follow it on the carrier’s page,\n2. have it kept at a pick-up point.\n\n```json\n{ "pickup": "Main Street 4" }\n```';
  const tokens = Math.round(300 + random() * 900);
  return {
    name: 'invoke_agent support',
    from: 0,
    to: 1,
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'support',
      'gen_ai.conversation.id': `conversation-${Math.floor(random() * 40)}`,
      'gen_ai.input.messages': [user],
      'gen_ai.output.messages': [said('assistant', text(answer))],
    },
    steps: [
      chat(
        0.02,
        0.34,
        'gpt-4o',
        [user],
        [
          {
            ...said(
              'assistant',
              { type: 'reasoning', content: 'The order’s state is not known yet: look it up.' },
              call,
            ),
            finish_reason: 'tool_calls',
          },
        ],
        [tokens, 42],
      ),
      tool('lookup_order', 0.36, 0.58, { order_id: 'A-1042' }, order, {
        steps: [
          {
            name: 'GET /orders/{id}',
            from: 0.4,
            to: 0.55,
            attributes: {
              'langsmith.span.kind': 'chain',
              'input.value': { order_id: 'A-1042' },
              'output.value': order,
            },
          },
        ],
      }),
      chat(
        0.6,
        0.98,
        'gpt-4o',
        [user, said('assistant', call), result],
        [{ ...said('assistant', text(answer)), finish_reason: 'stop' }],
        [tokens + 160, 118],
      ),
    ],
  };
};

export const retrieval: Scenario = (random) => {
  const query = QUESTIONS[Math.floor(random() * QUESTIONS.length)] ?? '';
  const documents = [
    [
      'Batteries of cargo bikes are covered for 24 months or 500 full charges, whichever comes first.',
      'warranty.md',
      0.91,
    ],
    [
      'A squealing brake is most often a glazed pad: sand it, clean the disc with alcohol, and bed the pads in again.',
      'brakes.md',
      0.84,
    ],
    ['Returns are free within 30 days. Helmets must not have been worn outdoors.', 'returns.md', 0.77],
  ] as const;
  return {
    name: 'answer_from_handbook',
    from: 0,
    to: 1,
    attributes: {
      'openinference.span.kind': 'CHAIN',
      'input.value': query,
      'output.value': 'Covered for 24 months or 500 charges.',
    },
    steps: [
      {
        name: 'embed_query',
        from: 0.01,
        to: 0.12,
        attributes: {
          'openinference.span.kind': 'EMBEDDING',
          'embedding.model_name': 'text-embedding-3',
          'input.value': query,
        },
      },
      {
        name: 'search_handbook',
        from: 0.13,
        to: 0.4,
        attributes: {
          'openinference.span.kind': 'RETRIEVER',
          'input.value': query,
          ...Object.fromEntries(
            documents.flatMap(([content, source, score], n) => [
              [`retrieval.documents.${n}.document.content`, content],
              [`retrieval.documents.${n}.document.score`, score],
              [`retrieval.documents.${n}.document.metadata`, JSON.stringify({ source, page: n + 3 })],
            ]),
          ),
        },
      },
      chat(
        0.42,
        0.99,
        'gpt-4o-mini',
        [said('user', text(`${query}\n\nUse only the handbook.`))],
        [
          {
            ...said(
              'assistant',
              text('The battery is covered for **24 months or 500 full charges**, whichever comes first.'),
            ),
            finish_reason: 'stop',
          },
        ],
        [Math.round(900 + random() * 500), 64],
      ),
    ],
  };
};

export const failingReport: Scenario = () => ({
  name: 'nightly_report',
  from: 0,
  to: 1,
  attributes: { 'openinference.span.kind': 'CHAIN', 'input.value': { date: '2026-03-17', format: 'pdf' } },
  error: {
    type: 'ReportError',
    message: 'ReportError: no figures for 2026-03-17',
    stack:
      'ReportError: no figures for 2026-03-17\n    at buildReport (/srv/reports/build.ts:88:11)\n    at async main (/srv/reports/main.ts:12:3)',
  },
  steps: [
    tool(
      'fetch_figures',
      0.05,
      0.7,
      { date: '2026-03-17' },
      {},
      {
        error: {
          type: 'ConnectionError',
          message: 'ConnectionError: the warehouse did not answer within 30 s',
          stack:
            'ConnectionError: the warehouse did not answer within 30 s\n    at Warehouse.query (/srv/reports/warehouse.ts:41:15)\n    at async fetchFigures (/srv/reports/figures.ts:17:20)\n    at async runTool (/srv/agent/tools.ts:63:18)',
        },
      },
    ),
    chat(
      0.72,
      0.95,
      'gpt-4o-mini',
      [said('user', text('Write the report of 2026-03-17.'))],
      [{ ...said('assistant', text('There are no figures for that day.')), finish_reason: 'stop' }],
      [210, 12],
    ),
  ],
});

export const vision: Scenario = () => ({
  name: 'describe_damage',
  from: 0,
  to: 1,
  attributes: {
    'openinference.span.kind': 'CHAIN',
    'input.value': 'What is broken on this photo?',
    'output.value': 'The rear light.',
  },
  steps: [
    chat(
      0.05,
      0.95,
      'gpt-4o',
      [
        said('user', text('What is broken on this photo?'), {
          type: 'blob',
          modality: 'image',
          mime_type: 'image/png',
          content: PNG_BASE64,
        }),
      ],
      [
        {
          ...said(
            'assistant',
            { type: 'reasoning', content: 'The picture is one red area, which may be a light.' },
            text('The rear light.'),
          ),
          finish_reason: 'stop',
        },
      ],
      [1180, 20],
    ),
  ],
});

export const classify: Scenario = (random) =>
  chat(
    0,
    1,
    'gpt-4o-mini',
    [said('user', text(`Classify: “${QUESTIONS[Math.floor(random() * QUESTIONS.length)] ?? ''}”`))],
    [{ ...said('assistant', text('delivery')), finish_reason: 'stop' }],
    [96, 2],
  );

/** Projects with what happens in them, how often, and how long it takes. */
export const MIX: readonly { scenario: Scenario; project: string; weight: number; medianMs: number }[] = [
  { scenario: supportAgent, project: 'support', weight: 5, medianMs: 3200 },
  { scenario: retrieval, project: 'handbook', weight: 4, medianMs: 1400 },
  { scenario: classify, project: 'support', weight: 6, medianMs: 420 },
  { scenario: failingReport, project: 'reports', weight: 1, medianMs: 9000 },
  { scenario: vision, project: 'workshop', weight: 1, medianMs: 2400 },
];

/** Sends `traceCount` traces that ended within `spanMs` before `endMs`; resolves when all were taken, with the number of their spans. */
export async function sendWorkload(
  base: string,
  { seed, traceCount, spanMs, endMs }: { seed: number; traceCount: number; spanMs: number; endMs: number },
): Promise<number> {
  const random = createRandom(seed);
  const deck = MIX.flatMap((entry) => Array.from({ length: entry.weight }, () => entry));
  let spanCount = 0;
  for (let n = 0; n < traceCount; n++) {
    const { scenario, project, medianMs } = deck[Math.floor(random() * deck.length)] ?? MIX[0]!;
    // Log-normal, as latencies are; with a slow spell in the middle.
    const spread = Math.exp((random() + random() + random() - 1.5) * 1.3);
    const slow = n > traceCount * 0.55 && n < traceCount * 0.68 ? 3 : 1;
    const trace = makeScenario(scenario, {
      seed: seed * 1_000_003 + n,
      endMs: endMs - spanMs * (1 - (n + 1) / traceCount),
      durationMs: medianMs * spread * slow,
    });
    spanCount += trace.spanCount;
    await send(base, trace.body, project);
  }
  return spanCount;
}

export async function send(base: string, body: string, project = 'default'): Promise<void> {
  const answer = await fetch(`${base}/v1/traces`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'service-project': project },
    body,
  });
  if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
}
