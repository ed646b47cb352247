/** A stand-in for the OpenAI service: answers without a network, the same every time. */
const usage = {
  prompt_tokens: 21,
  completion_tokens: 9,
  total_tokens: 30,
  prompt_tokens_details: { cached_tokens: 5, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 4, audio_tokens: 0 },
};
const toolCall = {
  id: 'call_1',
  type: 'function',
  function: { name: 'get_weather', arguments: '{"city":"Paris"}' },
};

export const tools = [
  {
    type: 'function',
    function: {
      name: 'get_weather',
      description: 'Weather of a city',
      parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    },
  },
];

export const clientOptions = {
  apiKey: 'not-a-key',
  baseURL: 'http://127.0.0.1:11111/v1',
  fetch: answer,
  maxRetries: 0,
};

async function answer(url, init) {
  const body = JSON.parse(init.body);
  const { pathname } = new URL(url);
  if (body.model === 'broken') return json({ error: { message: 'The model is broken', type: 'server_error' } }, 500);
  if (pathname.endsWith('/embeddings')) return json(embeddings(body));
  if (pathname.endsWith('/completions') && !pathname.endsWith('/chat/completions')) return json(completion());
  return body.stream ? stream(body) : json(chat(body));
}

function json(value, status = 200) {
  return new Response(JSON.stringify(value), { status, headers: { 'content-type': 'application/json' } });
}

function wantsTool(body) {
  return body.tools !== undefined && body.messages.at(-1).role === 'user';
}

function chat(body) {
  const message = wantsTool(body)
    ? { role: 'assistant', content: null, tool_calls: [toolCall] }
    : { role: 'assistant', content: 'It is sunny.' };
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1747675155,
    model: 'gpt-4o-2024-08-06',
    system_fingerprint: 'fp_1',
    choices: [{ index: 0, message, logprobs: null, finish_reason: wantsTool(body) ? 'tool_calls' : 'stop' }],
    usage,
  };
}

function stream(body) {
  const chunk = (delta, finish_reason = null) => ({
    id: 'chatcmpl-1',
    object: 'chat.completion.chunk',
    created: 1747675155,
    model: 'gpt-4o-2024-08-06',
    choices: [{ index: 0, delta, finish_reason }],
  });
  const chunks = wantsTool(body)
    ? [
        chunk({
          role: 'assistant',
          tool_calls: [{ index: 0, ...toolCall, function: { name: 'get_weather', arguments: '' } }],
        }),
        chunk({ tool_calls: [{ index: 0, function: { arguments: '{"city":"Paris"}' } }] }),
        chunk({}, 'tool_calls'),
      ]
    : [chunk({ role: 'assistant', content: 'It is ' }), chunk({ content: 'sunny.' }), chunk({}, 'stop')];
  const last = { ...chunk({}), choices: [], usage };
  const text = [...chunks, ...(body.stream_options?.include_usage ? [last] : [])]
    .map((one) => `data: ${JSON.stringify(one)}\n\n`)
    .join('');
  return new Response(`${text}data: [DONE]\n\n`, { headers: { 'content-type': 'text/event-stream' } });
}

function embeddings(body) {
  const inputs = [body.input].flat();
  const vector = (index) =>
    body.encoding_format === 'base64'
      ? Buffer.from(new Float32Array([0.5, index]).buffer).toString('base64')
      : [0.5, index];
  return {
    object: 'list',
    model: 'text-embedding-3-small',
    data: inputs.map((_, index) => ({ object: 'embedding', index, embedding: vector(index) })),
    usage: { prompt_tokens: 4, total_tokens: 4 },
  };
}

function completion() {
  return {
    id: 'cmpl-1',
    object: 'text_completion',
    created: 1747675155,
    model: 'gpt-3.5-turbo-instruct',
    choices: [{ index: 0, text: ' It is sunny.', logprobs: null, finish_reason: 'stop' }],
    usage: { prompt_tokens: 4, completion_tokens: 4, total_tokens: 8 },
  };
}

/** The scenarios that every instrumentation of this client goes through. */
export async function scenarios(client, capture) {
  const question = [
    { role: 'system', content: 'Be brief.' },
    { role: 'user', content: 'Weather in Paris?' },
  ];
  await capture('chat', () =>
    client.chat.completions.create({
      model: 'gpt-4o',
      messages: question,
      temperature: 0.5,
      top_p: 0.9,
      max_tokens: 100,
      stop: ['END'],
      seed: 7,
      frequency_penalty: 0.1,
      user: 'user-1',
    }),
  );
  await capture('tools', () =>
    client.chat.completions.create({ model: 'gpt-4o', messages: question, tools, tool_choice: 'auto' }),
  );
  await capture('tool-answer', () =>
    client.chat.completions.create({
      model: 'gpt-4o',
      tools,
      messages: [
        ...question,
        { role: 'assistant', content: null, tool_calls: [toolCall] },
        { role: 'tool', tool_call_id: 'call_1', content: '{"t":21,"sky":"clear"}' },
      ],
    }),
  );
  await capture('image', () =>
    client.chat.completions.create({
      model: 'gpt-4o',
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What is it?' },
            { type: 'image_url', image_url: { url: 'https://example.com/i.png' } },
          ],
        },
      ],
    }),
  );
  await capture('stream', async () => {
    const chunks = await client.chat.completions.create({
      model: 'gpt-4o',
      messages: question,
      stream: true,
      stream_options: { include_usage: true },
    });
    for await (const _ of chunks);
  });
  await capture('stream-tools', async () => {
    const chunks = await client.chat.completions.create({ model: 'gpt-4o', messages: question, tools, stream: true });
    for await (const _ of chunks);
  });
  await capture('error', () => client.chat.completions.create({ model: 'broken', messages: question }));
  await capture('embeddings', () =>
    client.embeddings.create({ model: 'text-embedding-3-small', input: ['one', 'two'], encoding_format: 'float' }),
  );
}
