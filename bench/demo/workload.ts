/** What the demo's agents do: four traces in the conventions that instrumentations use, over four services. */
import { SpanKind } from '@opentelemetry/api';
import type { Service, Work } from './services.ts';

export interface DemoServices {
  readonly agent: Service;
  readonly orders: Service;
  readonly search: Service;
  readonly reports: Service;
}

export interface SentTrace {
  readonly traceId: string;
  readonly title: string;
  readonly spanCount: number;
}

/** Runs everything; `endMs` is when the last of it ended. */
export function runWorkload(services: DemoServices, endMs: number): SentTrace[] {
  const traces: [title: string, service: Service, work: Work][] = [
    ['Support agent: GenAI messages, tools, another service', services.agent, supportAgent(services, endMs - 9000)],
    ['Search: OpenInference retrieval, embedding, answer', services.search, ragPipeline(services, endMs - 7000)],
    ['Nightly report: a tool that fails', services.reports, nightlyReport(services, endMs - 5000)],
    ['Summary: prompt and completion as JSON documents', services.reports, summary(services, endMs - 1600)],
  ];
  return traces.map(([title, service, work]) => ({ traceId: service.run(work), title, spanCount: countSpans(work) }));
}

function countSpans(work: Work): number {
  return (work.steps ?? []).reduce((sum, { work: step }) => sum + countSpans(step), 1);
}

const SYSTEM = 'You are the support agent of a bicycle shop. Look things up before you answer.';
const QUESTION = 'Where is my order A-1042? It should have arrived on Monday.';
const ORDER = { id: 'A-1042', state: 'in transit', carrier: 'Cargo Bikes Ltd.', eta: '2026-03-18' };

/** GenAI semantic conventions: structured messages, an agent, tools; the tool's own service continues the trace. */
function supportAgent({ agent, orders }: DemoServices, t: number): Work {
  const user = { role: 'user', parts: [{ type: 'text', content: QUESTION }] };
  const call = { type: 'tool_call', id: 'call_1', name: 'lookup_order', arguments: { order_id: 'A-1042' } };
  const asked = { role: 'assistant', parts: [call], finish_reason: 'tool_call' };
  const result = { role: 'tool', parts: [{ type: 'tool_call_response', id: 'call_1', response: ORDER }] };
  const text = 'Your order is in transit and should arrive on Wednesday, 18 March. Sorry for the delay!';
  const answer = { role: 'assistant', parts: [{ type: 'text', content: text }], finish_reason: 'stop' };
  const chat = (startMs: number, endMs: number, input: object[], output: object, tokens: [number, number]): Work => ({
    name: 'chat gpt-4o',
    kind: SpanKind.CLIENT,
    startMs,
    endMs,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'openai',
      'gen_ai.request.model': 'gpt-4o',
      'gen_ai.response.model': 'gpt-4o-2024-11-20',
      'gen_ai.request.temperature': 0.2,
      'gen_ai.system_instructions': [{ type: 'text', content: SYSTEM }],
      'gen_ai.input.messages': input,
      'gen_ai.output.messages': [output],
      'gen_ai.tool.definitions': [{ type: 'function', name: 'lookup_order', description: 'State of an order' }],
      'gen_ai.usage.input_tokens': tokens[0],
      'gen_ai.usage.output_tokens': tokens[1],
    },
  });
  const lookup: Work = {
    name: 'GET /orders/{id}',
    kind: SpanKind.SERVER,
    startMs: t + 1260,
    endMs: t + 1390,
    attributes: {
      'http.request.method': 'GET',
      'url.path': '/orders/A-1042',
      'http.response.status_code': 200,
      'langsmith.span.kind': 'chain',
      'input.value': { order_id: 'A-1042' },
      'output.value': ORDER,
    },
  };
  return {
    name: 'invoke_agent support',
    startMs: t,
    endMs: t + 2900,
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'support',
      'gen_ai.conversation.id': 'conversation-7',
      'gen_ai.input.messages': [user],
      'gen_ai.output.messages': [answer],
      'user.id': 'customer-311',
    },
    steps: [
      { service: agent, work: chat(t + 30, t + 1210, [user], asked, [214, 18]) },
      {
        service: agent,
        work: {
          name: 'execute_tool lookup_order',
          startMs: t + 1220,
          endMs: t + 1410,
          attributes: {
            'gen_ai.operation.name': 'execute_tool',
            'gen_ai.tool.name': 'lookup_order',
            'gen_ai.tool.call.id': 'call_1',
            'gen_ai.tool.call.arguments': { order_id: 'A-1042' },
            'gen_ai.tool.call.result': ORDER,
          },
          steps: [{ service: orders, work: lookup }],
        },
      },
      { service: agent, work: chat(t + 1430, t + 2880, [user, asked, result], answer, [297, 41]) },
    ],
  };
}

/** OpenInference: flattened messages, documents, an embedding. */
function ragPipeline({ search }: DemoServices, t: number): Work {
  const query = 'How do I bleed hydraulic brakes?';
  const documents = [
    {
      content: 'Bleeding brakes, step by step: open the lever reservoir, attach the syringe …',
      score: 0.92,
      id: 'doc-17',
    },
    { content: 'Which brake fluid? Mineral oil and DOT are never mixed.', score: 0.81, id: 'doc-4' },
  ];
  const found = Object.fromEntries(
    documents.flatMap(({ content, score, id }, n) => [
      [`retrieval.documents.${n}.document.content`, content],
      [`retrieval.documents.${n}.document.score`, score],
      [`retrieval.documents.${n}.document.id`, id],
    ]),
  );
  const answer = 'Attach the syringe to the caliper, open the bleed port, and push fluid until no bubbles rise.';
  return {
    name: 'answer_with_sources',
    startMs: t,
    endMs: t + 2350,
    attributes: {
      'openinference.span.kind': 'CHAIN',
      'input.value': query,
      'output.value': answer,
      'session.id': 'session-9',
    },
    steps: [
      {
        service: search,
        work: {
          name: 'retrieve',
          startMs: t + 20,
          endMs: t + 480,
          attributes: { 'openinference.span.kind': 'RETRIEVER', 'input.value': query, ...found },
          steps: [
            {
              service: search,
              work: {
                name: 'embed query',
                startMs: t + 30,
                endMs: t + 190,
                attributes: {
                  'openinference.span.kind': 'EMBEDDING',
                  'embedding.model_name': 'text-embedding-3-small',
                  'embedding.embeddings.0.embedding.text': query,
                  'llm.token_count.prompt': 9,
                  'llm.token_count.total': 9,
                },
              },
            },
          ],
        },
      },
      {
        service: search,
        work: {
          name: 'ChatCompletion',
          startMs: t + 500,
          endMs: t + 2320,
          attributes: {
            'openinference.span.kind': 'LLM',
            'llm.model_name': 'claude-sonnet-4',
            'llm.provider': 'anthropic',
            'llm.input_messages.0.message.role': 'system',
            'llm.input_messages.0.message.content': 'Answer from the documents only.',
            'llm.input_messages.1.message.role': 'user',
            'llm.input_messages.1.message.content': `${documents.map(({ content }) => content).join('\n')}\n\n${query}`,
            'llm.output_messages.0.message.role': 'assistant',
            'llm.output_messages.0.message.content': answer,
            'llm.token_count.prompt': 412,
            'llm.token_count.completion': 58,
            'llm.token_count.total': 470,
            'llm.cost.total': 0.0021,
          },
        },
      },
    ],
  };
}

/** A run that fails: the tool's exception goes up to the root. */
function nightlyReport({ reports, orders }: DemoServices, t: number): Work {
  const error = new TypeError('connect ETIMEDOUT: warehouse did not answer within 1500 ms');
  const prompt = {
    messages: [{ role: 'user', content: 'Which tables does a report on returns need?' }],
    model: 'gpt-4o-mini',
  };
  const completion = { messages: [{ role: 'assistant', content: 'returns, orders, customers' }] };
  return {
    name: 'nightly_report',
    startMs: t,
    endMs: t + 3100,
    attributes: { 'langsmith.span.kind': 'chain', 'input.value': { report: 'returns', day: '2026-03-14' } },
    error,
    steps: [
      {
        service: reports,
        work: {
          name: 'plan tables',
          startMs: t + 40,
          endMs: t + 1350,
          attributes: {
            'langsmith.span.kind': 'llm',
            'gen_ai.system': 'openai',
            'gen_ai.request.model': 'gpt-4o-mini',
            'gen_ai.prompt': prompt,
            'gen_ai.completion': completion,
            'gen_ai.usage.input_tokens': 31,
            'gen_ai.usage.output_tokens': 7,
          },
        },
      },
      {
        service: orders,
        work: {
          name: 'query warehouse',
          startMs: t + 1400,
          endMs: t + 2950,
          attributes: {
            'langsmith.span.kind': 'tool',
            'gen_ai.tool.name': 'query_warehouse',
            'input.value': { sql: 'SELECT reason, count(*) FROM returns GROUP BY 1' },
          },
          error,
        },
      },
    ],
  };
}

/** One model call and its parser: the shape that most scripts have. */
function summary({ reports }: DemoServices, t: number): Work {
  const messages = [
    { role: 'system', content: 'Summarise in one sentence.' },
    {
      role: 'user',
      content: 'Returns rose by 4 % in February, mostly because of helmets that were ordered a size too small.',
    },
  ];
  const sentence = 'Helmets a size too small drove a 4 % rise in returns.';
  return {
    name: 'summarise',
    startMs: t,
    endMs: t + 1500,
    attributes: {
      'langsmith.span.kind': 'chain',
      'langsmith.span.tags': 'demo,summary',
      'langsmith.metadata.team': 'operations',
      'gen_ai.prompt': { text: messages[1]?.content },
      'gen_ai.completion': { summary: sentence },
    },
    steps: [
      {
        service: reports,
        work: {
          name: 'chat',
          startMs: t + 10,
          endMs: t + 1420,
          attributes: {
            'gen_ai.operation.name': 'chat',
            'gen_ai.system': 'openai',
            'gen_ai.request.model': 'gpt-4o-mini',
            'gen_ai.prompt': { messages },
            'gen_ai.completion': { messages: [{ role: 'assistant', content: sentence }] },
            'gen_ai.usage.input_tokens': 52,
            'gen_ai.usage.output_tokens': 14,
          },
        },
      },
      {
        service: reports,
        work: {
          name: 'trim',
          startMs: t + 1430,
          endMs: t + 1440,
          attributes: { 'langsmith.span.kind': 'parser', 'input.value': sentence, 'output.value': sentence.trim() },
        },
      },
    ],
  };
}
