/** The worked examples of each convention, by their names in the mapping: A legacy strings and indexed attributes, B span events, C structured messages, O OpenInference, E Traceloop, F Vercel AI SDK, G Pydantic AI, H Semantic Kernel. */
import { judge } from '../oracle/judge.ts';

const user = (content: unknown): object => ({ role: 'user', content });
const assistant = (content: unknown): object => ({ role: 'assistant', content });
const call = (id: string | undefined, name: string, args: string): object => ({
  ...(id === undefined ? {} : { id }),
  type: 'function',
  function: { name, arguments: args },
});

// --- A: GenAI legacy ------------------------------------------------------------------------------------------------

judge(
  'A1: the whole inputs and outputs object of an SDK exporter',
  {
    attributes: {
      'langsmith.span.kind': 'llm',
      'gen_ai.prompt': '{"messages":[{"role":"user","content":"hi"}],"model":"m1"}',
      'gen_ai.completion': '{"choices":[{"message":{"role":"assistant","content":"yo"}}]}',
    },
  },
  {
    inputs: { messages: [user('hi')], model: 'm1' },
    outputs: { choices: [{ message: assistant('yo') }] },
  },
);
judge(
  'A2: plain strings of a completion',
  { attributes: { 'gen_ai.operation.name': 'completion', 'gen_ai.prompt': 'say hi', 'gen_ai.completion': 'hi' } },
  {
    runType: 'llm',
    inputs: { input: 'say hi' },
    outputs: { messages: [assistant('hi')] },
    metadata: { ls_model_type: 'llm' },
  },
);
judge(
  'A3: arrays of messages as strings',
  {
    attributes: {
      'gen_ai.prompt': '[{"role":"user","content":"hi"}]',
      'gen_ai.completion': '[{"role":"assistant","content":"yo"}]',
    },
  },
  { inputs: { messages: [user('hi')] }, outputs: { messages: [assistant('yo')] } },
);
judge(
  'A4: indexed attributes keep tool calls and the finish reason',
  {
    attributes: {
      'gen_ai.prompt.0.role': 'user',
      'gen_ai.prompt.0.content': 'w?',
      'gen_ai.completion.0.role': 'assistant',
      'gen_ai.completion.0.finish_reason': 'tool_calls',
      'gen_ai.completion.0.tool_calls.0.id': 'c1',
      'gen_ai.completion.0.tool_calls.0.name': 'w',
      'gen_ai.completion.0.tool_calls.0.arguments': '{}',
    },
  },
  {
    inputs: { messages: [user('w?')] },
    outputs: {
      messages: [{ ...assistant(null), tool_calls: [call('c1', 'w', '{}')], finish_reason: 'tool_calls' }],
    },
  },
);
judge(
  'A: gaps in the index are legal, and the order is that of the numbers',
  {
    attributes: {
      'gen_ai.prompt.10.content': 'third',
      'gen_ai.prompt.2.role': 'system',
      'gen_ai.prompt.2.content': 'second',
      'gen_ai.prompt.0.message.role': 'user',
      'gen_ai.prompt.0.message.content': 'first',
    },
  },
  { inputs: { messages: [user('first'), { role: 'system', content: 'second' }, user('third')] } },
);
judge(
  'A: a user text without role and content is a user message',
  { attributes: { 'gen_ai.prompt.0.user': 'hello' } },
  { inputs: { messages: [user('hello')] } },
);
judge(
  'A: several parts come as an array in the content',
  {
    attributes: {
      'gen_ai.prompt.0.role': 'user',
      'gen_ai.prompt.0.content':
        '[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"https://x/i.png"}}]',
    },
  },
  {
    inputs: {
      messages: [
        user([
          { type: 'text', text: 'see' },
          { type: 'image_url', image_url: { url: 'https://x/i.png' } },
        ]),
      ],
    },
  },
);

// --- B: span events -------------------------------------------------------------------------------------------------

judge(
  'B1: history in the order of the events, the choice as output',
  {
    events: [
      { name: 'gen_ai.user.message', attributes: { content: 'q1' } },
      { name: 'gen_ai.assistant.message', attributes: { content: 'a1' } },
      { name: 'gen_ai.tool.message', attributes: { id: 'c1', content: 't' } },
      { name: 'gen_ai.user.message', attributes: { content: 'q2' } },
      { name: 'gen_ai.choice', attributes: { index: 0, finish_reason: 'stop', 'message.content': 'ok' } },
    ],
  },
  {
    inputs: { messages: [user('q1'), assistant('a1'), { role: 'tool', tool_call_id: 'c1', content: 't' }, user('q2')] },
    outputs: { choices: [{ index: 0, finish_reason: 'stop', message: assistant('ok') }] },
  },
);
judge(
  'B2: flattened tool calls of a choice move into its message',
  {
    events: [
      {
        name: 'gen_ai.choice',
        attributes: {
          finish_reason: 'tool_calls',
          'tool_calls.0.id': 'c1',
          'tool_calls.0.type': 'function',
          'tool_calls.0.function.name': 'w',
          'tool_calls.0.function.arguments': '{"l":"P"}',
        },
      },
    ],
  },
  {
    outputs: {
      choices: [
        { finish_reason: 'tool_calls', message: { role: 'assistant', tool_calls: [call('c1', 'w', '{"l":"P"}')] } },
      ],
    },
  },
);
judge(
  'B3: content events',
  {
    events: [
      { name: 'gen_ai.content.prompt', attributes: { 'gen_ai.prompt': 'p' } },
      { name: 'gen_ai.content.completion', attributes: { 'gen_ai.completion': '{"a":1}' } },
    ],
  },
  { inputs: { input: 'p' }, outputs: { a: 1 } },
);
judge(
  'B: several choices, by their index',
  {
    events: [
      { name: 'gen_ai.choice', attributes: { index: 1, message: '{"content":"b"}' } },
      { name: 'gen_ai.choice', attributes: { index: 0, message: '{"content":"a"}' } },
    ],
  },
  {
    outputs: {
      choices: [
        { index: 0, message: assistant('a') },
        { index: 1, message: assistant('b') },
      ],
    },
  },
);
judge(
  'B: without a choice a trailing assistant message is the output',
  {
    events: [
      { name: 'gen_ai.user.message', attributes: { content: 'q' } },
      { name: 'gen_ai.assistant.message', attributes: { content: 'a' } },
    ],
  },
  { inputs: { messages: [user('q')] }, outputs: { messages: [assistant('a')] } },
);
judge(
  'B: content that holds an array of blocks is normalised',
  {
    events: [
      { name: 'gen_ai.user.message', attributes: { content: '[{"text":"q"}]' } },
      {
        name: 'gen_ai.assistant.message',
        attributes: { content: '[{"text":"let me"},{"toolUse":{"toolUseId":"c1","name":"w","input":{"a": 1}}}]' },
      },
      {
        name: 'gen_ai.tool.message',
        attributes: {
          content: '[{"toolResult":{"toolUseId":"c1","status":"success","content":[{"text":"4"}]}}]',
          role: 'tool',
        },
      },
      { name: 'gen_ai.choice', attributes: { finish_reason: 'end_turn', message: '[{"text":"done"}]' } },
    ],
  },
  {
    inputs: {
      messages: [
        user('q'),
        { ...assistant('let me'), tool_calls: [call('c1', 'w', '{"a": 1}')] },
        { role: 'tool', tool_call_id: 'c1', content: '4' },
      ],
    },
    outputs: { choices: [{ finish_reason: 'end_turn', message: assistant('done') }] },
  },
);

// --- C: structured messages -----------------------------------------------------------------------------------------

judge(
  'C1: messages, system instructions, tools, a tool call',
  {
    attributes: {
      'gen_ai.input.messages': '[{"role":"user","parts":[{"type":"text","content":"Weather in Paris?"}]}]',
      'gen_ai.system_instructions': '[{"type":"text","content":"Be brief"}]',
      'gen_ai.tool.definitions': '[{"type":"function","name":"get_weather"}]',
      'gen_ai.output.messages':
        '[{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"get_weather","arguments":{"location":"Paris"}}],"finish_reason":"tool_call"}]',
    },
  },
  {
    inputs: {
      messages: [{ role: 'system', content: 'Be brief' }, user('Weather in Paris?')],
      tools: [{ type: 'function', function: { name: 'get_weather' } }],
    },
    outputs: {
      messages: [
        {
          ...assistant(null),
          tool_calls: [call('c1', 'get_weather', '{"location":"Paris"}')],
          finish_reason: 'tool_call',
        },
      ],
    },
    params: { tools: [{ type: 'function', function: { name: 'get_weather' } }] },
  },
);
judge(
  'C2: an image by its address',
  {
    attributes: {
      'gen_ai.input.messages':
        '[{"role":"user","parts":[{"type":"text","content":"what?"},{"type":"uri","modality":"image","mime_type":"image/png","uri":"https://x/i.png"}]}]',
    },
  },
  {
    inputs: {
      messages: [
        user([
          { type: 'text', text: 'what?' },
          { type: 'image_url', image_url: { url: 'https://x/i.png' } },
        ]),
      ],
    },
  },
);
judge(
  'C3: reasoning beside text',
  {
    attributes: {
      'gen_ai.output.messages':
        '[{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"text","content":"yes"}]}]',
    },
  },
  {
    outputs: {
      messages: [
        assistant([
          { type: 'reasoning', reasoning: 'hm' },
          { type: 'text', text: 'yes' },
        ]),
      ],
    },
  },
);
judge(
  'C4: a tool execution',
  {
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'w',
      'gen_ai.tool.call.id': 'c1',
      'gen_ai.tool.call.arguments': '{"city":"P"}',
      'gen_ai.tool.call.result': '"sunny"',
    },
  },
  {
    runType: 'tool',
    name: 'w',
    inputs: { city: 'P' },
    outputs: { output: 'sunny' },
    metadata: { tool_call_id: 'c1' },
  },
);
judge(
  'C5: a retrieval',
  {
    attributes: {
      'gen_ai.operation.name': 'retrieval',
      'gen_ai.retrieval.query.text': 'q',
      'gen_ai.retrieval.documents': '[{"id":"d1","score":0.9}]',
    },
  },
  {
    runType: 'retriever',
    inputs: { query: 'q' },
    outputs: { documents: [{ type: 'Document', page_content: '', metadata: { id: 'd1', score: 0.9 } }] },
  },
);
judge(
  'C: structured values translate as their strings do',
  {
    attributes: {
      'gen_ai.input.messages': [{ role: 'user', parts: [{ type: 'text', content: 'hi' }] }],
      'gen_ai.output.messages': [
        { role: 'assistant', parts: [{ type: 'tool_call', id: 'c1', name: 'w', arguments: { a: [1, 2.5, true] } }] },
      ],
    },
  },
  {
    inputs: { messages: [user('hi')] },
    outputs: { messages: [{ ...assistant(null), tool_calls: [call('c1', 'w', '{"a":[1,2.5,true]}')] }] },
  },
);
judge(
  'C: the messages of an operation details event count like attributes',
  {
    events: [
      {
        name: 'gen_ai.client.inference.operation.details',
        attributes: {
          'gen_ai.input.messages': '[{"role":"user","parts":[{"type":"text","content":"hi"}]}]',
          'gen_ai.output.messages': '[{"role":"assistant","parts":[{"type":"text","content":"yo"}]}]',
        },
      },
    ],
  },
  { inputs: { messages: [user('hi')] }, outputs: { messages: [assistant('yo')] }, events: null },
);

// --- O: OpenInference -----------------------------------------------------------------------------------------------

judge(
  'O1: messages with contents and tool calls',
  {
    attributes: {
      'openinference.span.kind': 'LLM',
      'llm.input_messages.0.message.role': 'user',
      'llm.input_messages.0.message.contents.0.message_content.type': 'text',
      'llm.input_messages.0.message.contents.0.message_content.text': 'what is it?',
      'llm.input_messages.0.message.contents.1.message_content.type': 'image',
      'llm.input_messages.0.message.contents.1.message_content.image.image.url': 'https://x/p.jpg',
      'llm.output_messages.0.message.role': 'assistant',
      'llm.output_messages.0.message.tool_calls.0.tool_call.function.name': 'mul',
      'llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments': '{"a":2}',
      'input.value': '{"raw":1}',
    },
  },
  {
    inputs: {
      messages: [
        user([
          { type: 'text', text: 'what is it?' },
          { type: 'image_url', image_url: { url: 'https://x/p.jpg' } },
        ]),
      ],
    },
    outputs: { messages: [{ ...assistant(null), tool_calls: [call(undefined, 'mul', '{"a":2}')] }] },
  },
);
judge(
  'O2: a tool with a plain text result',
  {
    attributes: {
      'openinference.span.kind': 'TOOL',
      'tool.name': 'multiply',
      'input.value': '{"a":2}',
      'output.value': '6',
      'output.mime_type': 'text/plain',
    },
  },
  { runType: 'tool', name: 'multiply', inputs: { a: 2 }, outputs: { output: '6' } },
);
judge(
  'O3: a retriever keeps documents without metadata',
  {
    attributes: {
      'openinference.span.kind': 'RETRIEVER',
      'input.value': 'q',
      'retrieval.documents.0.document.content': 'A',
      'retrieval.documents.0.document.metadata': '{"s":1}',
      'retrieval.documents.0.document.score': 0.9,
      'retrieval.documents.1.document.content': 'B',
    },
  },
  {
    runType: 'retriever',
    inputs: { query: 'q' },
    outputs: {
      documents: [
        { page_content: 'A', metadata: { s: 1, score: 0.9 }, type: 'Document' },
        { page_content: 'B', metadata: {}, type: 'Document' },
      ],
    },
  },
);
judge(
  'O4: a reranker',
  {
    attributes: {
      'openinference.span.kind': 'RERANKER',
      'reranker.query': 'q',
      'reranker.top_k': 1,
      'reranker.model_name': 'rr',
      'reranker.input_documents.0.document.content': 'A',
      'reranker.output_documents.0.document.content': 'A',
      'reranker.output_documents.0.document.score': 0.8,
    },
  },
  {
    runType: 'retriever',
    inputs: { query: 'q', top_k: 1, documents: [{ page_content: 'A', metadata: {}, type: 'Document' }] },
    outputs: { documents: [{ page_content: 'A', metadata: { score: 0.8 }, type: 'Document' }] },
    metadata: { ls_model_name: 'rr' },
  },
);
judge(
  'O5: an embedding',
  {
    attributes: {
      'openinference.span.kind': 'EMBEDDING',
      'embedding.model_name': 'te3',
      'input.value': '["a","b"]',
      'embedding.embeddings.0.embedding.text': 'a',
      'embedding.embeddings.1.embedding.text': 'b',
      'embedding.embeddings.0.embedding.vector': [0.5, 1],
      'embedding.embeddings.1.embedding.vector': [0.25, -1.5],
    },
  },
  {
    runType: 'embedding',
    inputs: { input: ['a', 'b'] },
    outputs: {
      embeddings: [
        [0.5, 1],
        [0.25, -1.5],
      ],
    },
    metadata: { ls_model_name: 'te3' },
  },
);
for (const kind of ['GUARDRAIL', 'EVALUATOR', 'AGENT', 'CHAIN']) {
  judge(
    `O6: ${kind} takes its values as they are`,
    { attributes: { 'openinference.span.kind': kind, 'input.value': 't', 'output.value': '{"ok":true}' } },
    { runType: 'chain', inputs: { input: 't' }, outputs: { ok: true } },
  );
}
judge(
  'O: a prompt has its variables as inputs and its template in the metadata',
  {
    attributes: {
      'openinference.span.kind': 'PROMPT',
      'llm.prompt_template.variables': '{"city":"P"}',
      'llm.prompt_template.template': 'Weather in {city}?',
      'llm.prompt_template.version': 'v1',
      'output.value': 'Weather in P?',
    },
  },
  {
    runType: 'prompt',
    inputs: { city: 'P' },
    outputs: { output: 'Weather in P?' },
    metadata: { prompt_template: 'Weather in {city}?', prompt_template_version: 'v1', prompt_template_variables: null },
  },
);
judge(
  'O: the completions API',
  {
    attributes: {
      'openinference.span.kind': 'LLM',
      'llm.prompts.0.prompt.text': 'Say',
      'llm.choices.0.completion.text': 'Hi',
      'llm.choices.1.completion.text': 'Ho',
    },
  },
  {
    inputs: { prompt: 'Say' },
    outputs: { choices: [{ text: 'Hi' }, { text: 'Ho' }] },
    metadata: { ls_model_type: 'llm' },
  },
);
judge(
  'O: tool schemas become tools of the inputs and of the parameters',
  {
    attributes: {
      'openinference.span.kind': 'LLM',
      'llm.input_messages.0.message.role': 'user',
      'llm.input_messages.0.message.content': 'hi',
      'llm.tools.0.tool.json_schema': '{"type":"function","function":{"name":"w"}}',
      'llm.invocation_parameters': '{"temperature":0.5}',
    },
  },
  {
    inputs: { messages: [user('hi')], tools: [{ type: 'function', function: { name: 'w' } }] },
    params: { temperature: 0.5, tools: [{ type: 'function', function: { name: 'w' } }] },
  },
);

// --- E: Traceloop ---------------------------------------------------------------------------------------------------

judge(
  'E1: a workflow',
  {
    attributes: {
      'traceloop.span.kind': 'workflow',
      'traceloop.entity.name': 'joke',
      'traceloop.entity.input': '{"args":[],"kwargs":{"t":1}}',
      'traceloop.entity.output': '"done"',
    },
  },
  { runType: 'chain', name: 'joke', inputs: { args: [], kwargs: { t: 1 } }, outputs: { output: 'done' } },
);
judge(
  'E2: a tool with an array as result',
  {
    attributes: {
      'traceloop.span.kind': 'tool',
      'traceloop.entity.name': 'w',
      'gen_ai.tool.name': 'w',
      'traceloop.entity.input': '{"args":[1],"kwargs":{}}',
      'traceloop.entity.output': '[1,2]',
    },
  },
  { runType: 'tool', name: 'w', inputs: { args: [1], kwargs: {} }, outputs: { output: [1, 2] } },
);
judge(
  'E3: a vector database query',
  {
    attributes: {
      'gen_ai.operation.name': 'vector_db_retrieve',
      'traceloop.span.kind': 'task',
      'traceloop.entity.name': 'V',
      'traceloop.entity.input': '{"query":"q"}',
      'traceloop.entity.output': '{"documents":[{"page_content":"A","metadata":{}}],"count":1}',
    },
  },
  {
    runType: 'retriever',
    name: 'V',
    inputs: { query: 'q' },
    outputs: { documents: [{ page_content: 'A', metadata: {}, type: 'Document' }], count: 1 },
  },
);

// --- F: Vercel AI SDK -----------------------------------------------------------------------------------------------

judge(
  'F1: a root of a generation',
  {
    attributes: {
      'ai.operationId': 'ai.generateText',
      'ai.prompt': '{"system":"S","prompt":"hi"}',
      'ai.response.text': 'yo',
    },
  },
  {
    runType: 'chain',
    inputs: { messages: [{ role: 'system', content: 'S' }, user('hi')] },
    outputs: { messages: [assistant('yo')] },
  },
);
judge(
  'F2: text and tool calls of a stream in one message',
  {
    attributes: {
      'ai.operationId': 'ai.streamText.doStream',
      'ai.prompt.messages': '[{"role":"user","content":[{"type":"text","text":"hi"}]}]',
      'ai.response.text': 'let me check',
      'ai.response.toolCalls': '[{"toolCallId":"c1","toolName":"w","input":{"city":"P"}}]',
      'ai.response.finishReason': 'tool-calls',
    },
  },
  {
    runType: 'llm',
    inputs: { messages: [user('hi')] },
    outputs: {
      messages: [
        { ...assistant('let me check'), tool_calls: [call('c1', 'w', '{"city":"P"}')], finish_reason: 'tool-calls' },
      ],
    },
  },
);
judge(
  'F3: a tool call',
  {
    attributes: {
      'ai.operationId': 'ai.toolCall',
      'ai.toolCall.name': 'weather',
      'ai.toolCall.id': 'c1',
      'ai.toolCall.args': '{"city":"P"}',
      'ai.toolCall.result': '{"t":1}',
    },
  },
  { runType: 'tool', name: 'weather', inputs: { city: 'P' }, outputs: { t: 1 } },
);
judge(
  'F4: embeddings as arrays of JSON strings',
  {
    attributes: {
      'ai.operationId': 'ai.embedMany.doEmbed',
      'ai.values': ['"a"', '"b"'],
      'ai.embeddings': ['[0.1]', '[0.2]'],
      'ai.usage.tokens': 2,
    },
  },
  {
    runType: 'embedding',
    inputs: { input: ['a', 'b'] },
    outputs: { embeddings: [[0.1], [0.2]], usage_metadata: { input_tokens: 2, total_tokens: 2 } },
  },
);
judge(
  'F: reasoning stands before the text',
  {
    attributes: {
      'ai.operationId': 'ai.generateText.doGenerate',
      'ai.response.reasoning': 'hm',
      'ai.response.text': 'yes',
      'ai.model.provider': 'openai.chat',
      'ai.model.id': 'm',
    },
  },
  {
    outputs: {
      messages: [
        assistant([
          { type: 'reasoning', reasoning: 'hm' },
          { type: 'text', text: 'yes' },
        ]),
      ],
    },
    metadata: { ls_provider: 'openai', ls_model_name: 'm', ls_model_type: 'chat' },
  },
);
judge(
  'F: Anthropic counts of versions 4 and 5 leave cached tokens out, and get them back',
  {
    attributes: {
      'ai.operationId': 'ai.generateText.doGenerate',
      'ai.usage.promptTokens': 10,
      'ai.usage.completionTokens': 4,
      'ai.response.providerMetadata': '{"anthropic":{"cacheCreationInputTokens":100,"cacheReadInputTokens":1000}}',
    },
  },
  {
    metadata: {
      usage_metadata: {
        input_tokens: 1110,
        output_tokens: 4,
        total_tokens: 1114,
        input_token_details: { cache_read: 1000, cache_creation: 100 },
      },
    },
  },
);

// --- G: Pydantic AI -------------------------------------------------------------------------------------------------

judge(
  'G1: events in an attribute',
  {
    attributes: {
      events:
        '[{"event.name":"gen_ai.user.message","content":"Hi","role":"user"},{"event.name":"gen_ai.choice","index":0,"message":{"role":"assistant","content":"Yo"}}]',
    },
  },
  { inputs: { messages: [user('Hi')] }, outputs: { choices: [{ index: 0, message: assistant('Yo') }] } },
);
judge(
  'G2: a whole conversation and its final result',
  {
    attributes: {
      all_messages_events:
        '[{"event.name":"gen_ai.user.message","content":"Hi","role":"user"},{"event.name":"gen_ai.assistant.message","content":"Yo","role":"assistant"}]',
      final_result: 'Yo',
    },
  },
  { inputs: { messages: [user('Hi')] }, outputs: { messages: [assistant('Yo')], output: 'Yo' } },
);
judge(
  'G3: a tool of the first format',
  {
    attributes: {
      'gen_ai.tool.name': 'w',
      'gen_ai.tool.call.id': 'c1',
      tool_arguments: '{"x":0}',
      tool_response: '1',
    },
    name: 'running tool',
  },
  {
    runType: 'tool',
    name: 'w',
    inputs: { x: 0 },
    outputs: { output: '1' },
    params: { tool_name: 'w', tool_arguments: { x: 0 } },
  },
);
judge(
  'G4: the conversation of an agent, split after the last message of the user',
  {
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'a',
      'pydantic_ai.all_messages':
        '[{"role":"user","parts":[{"type":"text","content":"Hi"}]},{"role":"user","parts":[{"type":"tool_call_response","id":"c1","name":"w","result":"1"}]},{"role":"assistant","parts":[{"type":"text","content":"Yo"}]}]',
    },
  },
  {
    runType: 'chain',
    name: 'a',
    inputs: { messages: [user('Hi')] },
    outputs: { messages: [{ role: 'tool', tool_call_id: 'c1', name: 'w', content: '1' }, assistant('Yo')] },
  },
);
judge(
  'G: tools of the request parameters, where no definitions came',
  {
    attributes: {
      'gen_ai.operation.name': 'chat',
      model_request_parameters:
        '{"function_tools":[{"name":"w","description":"d","parameters_json_schema":{"type":"object"}}],"output_tools":[]}',
    },
  },
  {
    params: {
      tools: [{ type: 'function', function: { name: 'w', description: 'd', parameters: { type: 'object' } } }],
    },
  },
);

// --- H: Semantic Kernel ---------------------------------------------------------------------------------------------

judge(
  'H1: messages and choices as documents of events, nulls and empties dropped',
  {
    events: [
      {
        name: 'gen_ai.user.message',
        attributes: { 'gen_ai.event.content': '{"role":"user","name":null,"content":"Hi","tool_calls":[]}' },
      },
      {
        name: 'gen_ai.choice',
        attributes: {
          'gen_ai.event.content':
            '{"index":0,"message":{"role":"assistant","content":"Yo","tool_calls":[]},"tool_calls":[],"finish_reason":"Stop"}',
        },
      },
    ],
  },
  {
    inputs: { messages: [user('Hi')] },
    outputs: { choices: [{ index: 0, message: assistant('Yo'), finish_reason: 'Stop' }] },
  },
);
judge(
  'H2: raw prompt text and a string as message',
  {
    attributes: { 'gen_ai.operation.name': 'text_completion' },
    events: [
      { name: 'gen_ai.user.message', attributes: { 'gen_ai.event.content': 'raw prompt' } },
      { name: 'gen_ai.choice', attributes: { 'gen_ai.event.content': '{"index":0,"message":"txt"}' } },
    ],
  },
  {
    runType: 'llm',
    inputs: { messages: [user('raw prompt')] },
    outputs: { choices: [{ index: 0, message: assistant('txt') }] },
    metadata: { ls_model_type: 'llm' },
  },
);
judge(
  'H3: messages without parts in the structured attribute',
  { attributes: { 'gen_ai.input.messages': '[{"role":"user","name":null,"content":"Hi","tool_calls":[]}]' } },
  { inputs: { messages: [user('Hi')] } },
);
judge(
  'H: tool calls with an object as arguments',
  {
    attributes: {
      'gen_ai.output.messages':
        '[{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"w","arguments":{"a":1}}}]}]',
      'gen_ai.response.finish_reason': '["ToolCalls"]',
    },
  },
  {
    outputs: {
      messages: [{ ...assistant(null), tool_calls: [call('c1', 'w', '{"a":1}')], finish_reason: 'ToolCalls' }],
    },
  },
);

// --- what real emitters taught (their spans are among the fixtures) --------------------------------------------------

judge(
  'a tool response comes after the call that it answers, when both stand in one message',
  {
    attributes: {
      'gen_ai.output.messages':
        '[{"role":"assistant","parts":[{"type":"text","content":"x"},{"type":"tool_call","id":"c1","name":"w","arguments":{}},{"type":"tool_call_response","id":"c1","response":{"t":1}}],"finish_reason":"stop"}]',
    },
  },
  {
    outputs: {
      messages: [
        { ...assistant('x'), tool_calls: [call('c1', 'w', '{}')], finish_reason: 'stop' },
        { role: 'tool', tool_call_id: 'c1', content: '{"t":1}' },
      ],
    },
  },
);
judge(
  'an AI SDK span that the SDK exporter rewrote keeps its text beside the tool call',
  {
    attributes: {
      'langsmith.span.kind': 'llm',
      'ai.operationId': 'ai.generateText.doGenerate',
      'ai.response.text': 'let me look',
      'ai.response.toolCalls': '[{"toolCallId":"c1","toolName":"w","input":"{}"}]',
      'gen_ai.completion': '[{"toolCallId":"c1","toolName":"w","input":"{}"}]',
    },
  },
  { outputs: { messages: [{ ...assistant('let me look'), tool_calls: [call('c1', 'w', '{}')] }] } },
);
judge(
  'a content of null is no text',
  { attributes: { 'gen_ai.prompt.0.role': 'assistant', 'gen_ai.prompt.0.content': 'null' } },
  { inputs: { messages: [assistant(null)] } },
);
judge(
  'the finish reason of an OpenInference span belongs to its message',
  {
    attributes: {
      'openinference.span.kind': 'LLM',
      'llm.output_messages.0.message.role': 'assistant',
      'llm.output_messages.0.message.content': 'x',
      'llm.finish_reason': 'stop',
    },
  },
  { outputs: { messages: [{ ...assistant('x'), finish_reason: 'stop' }] } },
);
judge(
  'parts that say what they are by kind',
  {
    attributes: {
      events:
        '[{"event.name":"gen_ai.user.message","content":["What is it?",{"kind":"image-url","url":"https://x/i.png"},{"kind":"text","text":"this"}]}]',
    },
  },
  {
    inputs: {
      messages: [
        user([
          { type: 'text', text: 'What is it?' },
          { type: 'image_url', image_url: { url: 'https://x/i.png' } },
          { type: 'text', text: 'this' },
        ]),
      ],
    },
  },
);
judge(
  'the AI SDK names provider and interface in one, wherever it puts them',
  { attributes: { 'gen_ai.system': 'openai.chat', 'ai.model.provider': 'openai.chat' } },
  { metadata: { ls_provider: 'openai' } },
);
judge(
  'a run that failed is an error though its exporter said OK before it knew',
  {
    scopeName: 'langsmith',
    status: { code: 1 },
    events: [{ name: 'exception', attributes: { 'exception.message': 'no such step' } }],
  },
  { status: 'error', error: 'no such step' },
);
judge(
  'functions whose parameters are called arguments',
  {
    attributes: {
      'llm.request.functions.0.name': 'w',
      'llm.request.functions.0.arguments': '{"type":"object"}',
    },
  },
  { params: { tools: [{ type: 'function', function: { name: 'w', parameters: { type: 'object' } } }] } },
);
judge(
  'what a tool answered as an object is text in its message',
  {
    attributes: {
      events: '[{"event.name":"gen_ai.tool.message","id":"c1","name":"w","role":"tool","content":{"t": 21}}]',
    },
  },
  { inputs: { messages: [{ role: 'tool', tool_call_id: 'c1', name: 'w', content: '{"t": 21}' }] } },
);
