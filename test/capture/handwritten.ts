/** Emitters that cannot run here: their spans written by hand, from their published attribute tables. */
import { protobufOf, spanOf, START_NS, type SpanSpec } from '../oracle/emit.ts';

const ids = (n: number): { spanId: string } => ({
  spanId: n.toString(16).padStart(16, 'eee19b7ec3c1b174'.slice(0, 12)),
});

/** Emitter → scenario → body. */
export function handWritten(): Record<string, Record<string, Uint8Array>> {
  const body = (...specs: SpanSpec[]): Uint8Array =>
    protobufOf(specs.map((spec) => spanOf({ resource: { 'service.name': 'capture' }, ...spec })));
  return {
    'hand-written-semantic-kernel-dotnet': {
      chat: body({
        ...ids(1),
        name: 'chat gpt-4o',
        kind: 3,
        scopeName: 'Microsoft.SemanticKernel.Diagnostics',
        attributes: {
          'gen_ai.operation.name': 'chat',
          'gen_ai.system': 'openai',
          'gen_ai.request.model': 'gpt-4o',
          'gen_ai.request.temperature': 0.5,
          'gen_ai.response.id': 'chatcmpl-1',
          'gen_ai.response.finish_reason': '["ToolCalls"]',
          'gen_ai.response.input_tokens': 21,
          'gen_ai.usage.input_tokens': 21,
          'gen_ai.usage.output_tokens': 9,
        },
        events: [
          {
            name: 'gen_ai.system.message',
            attributes: {
              'gen_ai.system': 'openai',
              'gen_ai.event.content': '{"role":"system","name":null,"content":"Be brief.","tool_calls":[]}',
            },
          },
          {
            name: 'gen_ai.user.message',
            attributes: {
              'gen_ai.system': 'openai',
              'gen_ai.event.content': '{"role":"user","name":null,"content":"Weather in Paris?","tool_calls":[]}',
            },
          },
          {
            name: 'gen_ai.choice',
            attributes: {
              'gen_ai.system': 'openai',
              'gen_ai.event.content':
                '{"index":0,"message":{"role":"assistant","name":null,"content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"arguments":{"city":"Paris"},"name":"Weather-get"}}]},"tool_calls":[{"id":"call_1","type":"function","function":{"arguments":{"city":"Paris"},"name":"Weather-get"}}],"finish_reason":"ToolCalls"}',
            },
          },
        ],
      }),
      'text-completion': body({
        ...ids(2),
        name: 'text.completions gpt-3.5-turbo-instruct',
        kind: 3,
        attributes: {
          'gen_ai.operation.name': 'text_completion',
          'gen_ai.system': 'openai',
          'gen_ai.request.model': 'gpt-3.5-turbo-instruct',
        },
        events: [
          { name: 'gen_ai.user.message', attributes: { 'gen_ai.event.content': 'Weather in "Paris"?' } },
          { name: 'gen_ai.choice', attributes: { 'gen_ai.event.content': '{"index":0,"message":"It is sunny."}' } },
        ],
      }),
      function: body({
        ...ids(3),
        name: 'execute_tool Weather-get',
        kind: 1,
        attributes: {
          'gen_ai.operation.name': 'execute_tool',
          'gen_ai.tool.name': 'Weather-get',
          'gen_ai.tool.description': 'Weather of a city',
          'gen_ai.tool.call.arguments': '{"city":"Paris"}',
          'gen_ai.tool.call.result': '{"t":21}',
        },
      }),
      agent: body({
        ...ids(4),
        name: 'invoke_agent Forecaster',
        attributes: {
          'gen_ai.operation.name': 'invoke_agent',
          'gen_ai.agent.id': 'agent-1',
          'gen_ai.agent.name': 'Forecaster',
          'gen_ai.input.messages': '[{"role":"user","name":null,"content":"Weather in Paris?","tool_calls":[]}]',
          'gen_ai.output.messages':
            '[{"role":"assistant","name":"Forecaster","content":"It is sunny.","tool_calls":[]}]',
        },
      }),
      error: body({
        ...ids(5),
        name: 'chat gpt-4o',
        kind: 3,
        attributes: {
          'gen_ai.operation.name': 'chat',
          'gen_ai.system': 'openai',
          'gen_ai.request.model': 'gpt-4o',
          'error.type': 'Microsoft.SemanticKernel.HttpOperationException',
        },
        status: { code: 2, message: 'Service request failed. Status: 500' },
      }),
    },
    'hand-written-strands-python': {
      chat: body({
        ...ids(1),
        name: 'chat',
        kind: 3,
        scopeName: 'strands.telemetry.tracer',
        attributes: {
          'gen_ai.operation.name': 'chat',
          'gen_ai.system': 'strands-agents',
          'gen_ai.request.model': 'us.anthropic.claude',
          'gen_ai.usage.prompt_tokens': 21,
          'gen_ai.usage.input_tokens': 21,
          'gen_ai.usage.completion_tokens': 9,
          'gen_ai.usage.output_tokens': 9,
          'gen_ai.usage.total_tokens': 30,
          'gen_ai.usage.cache_read_input_tokens': 5,
        },
        events: [
          { name: 'gen_ai.user.message', attributes: { content: '[{"text": "Weather in Paris?"}]' } },
          {
            name: 'gen_ai.assistant.message',
            attributes: {
              content: '[{"toolUse": {"toolUseId": "t1", "name": "weather", "input": {"city": "Paris"}}}]',
            },
          },
          {
            name: 'gen_ai.tool.message',
            attributes: {
              content:
                '[{"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"text": "21 degrees"}]}}]',
            },
          },
          {
            name: 'gen_ai.choice',
            timeNs: START_NS + 500_000_000n,
            attributes: {
              finish_reason: 'end_turn',
              message: '[{"reasoningContent": {"reasoningText": {"text": "Paris in May."}}}, {"text": "It is sunny."}]',
            },
          },
        ],
      }),
      tool: body({
        ...ids(2),
        name: 'execute_tool weather',
        attributes: {
          'gen_ai.operation.name': 'execute_tool',
          'gen_ai.tool.name': 'weather',
          'gen_ai.tool.call.id': 't1',
          'tool.status': 'success',
        },
        events: [
          {
            name: 'gen_ai.tool.message',
            attributes: { role: 'tool', content: '{"city": "Paris"}', id: 't1' },
          },
          { name: 'gen_ai.choice', attributes: { message: '[{"text": "21 degrees"}]', id: 't1' } },
        ],
      }),
    },
  };
}
