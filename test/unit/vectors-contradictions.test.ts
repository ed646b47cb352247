/** Where the published sources contradict each other: what we do, pinned. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import type { SpanSpec } from '../oracle/emit.ts';
import { judge, sides } from '../oracle/judge.ts';
import { runsOf } from '../oracle/tree.ts';

const llm = { 'langsmith.span.kind': 'llm' };

judge(
  'stop sequences are the parameter stop, whichever attribute brings them',
  { attributes: { 'llm.chat.stop_sequences': ['x'] } },
  { params: { stop: ['x'], stop_sequences: null } },
);
judge(
  'llm.request.type decides the run type',
  { attributes: { 'llm.request.type': 'embedding' } },
  { runType: 'embedding' },
);
judge(
  'traceloop.llm.request.type decides it too',
  { attributes: { 'traceloop.llm.request.type': 'rerank' } },
  { runType: 'retriever' },
);

test('a root run has the id of the trace, or with the switch its padded span id, as trace id too', () => {
  for (const side of sides) {
    const { records } = side.translate([{ name: 'r' }]);
    const byTrace = runsOf([records]).of('r');
    assert.equal(byTrace.id, '5b8efff7-9803-8103-d269-b633813fc60c');
    assert.equal(byTrace.traceId, byTrace.id);
    const bySpan = runsOf([records], { rootRunId: 'span' }).of('r');
    assert.equal(bySpan.id, '00000000-0000-0000-eee1-9b7ec3c1b174');
    assert.equal(bySpan.traceId, bySpan.id);
  }
});

test('langsmith.span.id on a root is honoured, as run id and as trace id', () => {
  const id = '33333333-3333-4333-8333-333333333333';
  for (const side of sides) {
    const spec: SpanSpec = { name: 'r', attributes: { 'langsmith.span.id': id } };
    const run = runsOf([side.translate([spec]).records]).of('r');
    assert.equal(run.id, id);
    assert.equal(run.traceId, id);
  }
});

judge(
  'assistant and tool messages of events are history',
  {
    events: [
      { name: 'gen_ai.assistant.message', attributes: { content: 'a' } },
      { name: 'gen_ai.tool.message', attributes: { id: 'c', content: 't' } },
      { name: 'gen_ai.choice', attributes: { message: 'x' } },
    ],
  },
  {
    inputs: {
      messages: [
        { role: 'assistant', content: 'a' },
        { role: 'tool', tool_call_id: 'c', content: 't' },
      ],
    },
  },
);
judge(
  'the prompt of the AI SDK is inputs.messages',
  {
    attributes: {
      'ai.operationId': 'ai.generateText.doGenerate',
      'ai.prompt.messages': '[{"role":"user","content":"hi"}]',
    },
  },
  { inputs: { messages: [{ role: 'user', content: 'hi' }] } },
);
judge(
  'reasoning tokens are a detail of the output',
  { attributes: { ...llm, 'gen_ai.usage.reasoning_tokens': 3 } },
  { metadata: { usage_metadata: { output_token_details: { reasoning: 3 } } } },
);
judge(
  'a thinking part is a reasoning block',
  {
    attributes: {
      'gen_ai.output.messages': '[{"role":"assistant","parts":[{"type":"thinking","content":"hm","signature":"s"}]}]',
    },
  },
  {
    outputs: { messages: [{ role: 'assistant', content: [{ type: 'reasoning', reasoning: 'hm', signature: 's' }] }] },
  },
);
judge(
  'an image block holds an object with the url',
  {
    attributes: {
      'gen_ai.input.messages': '[{"role":"user","content":[{"type":"image_url","image_url":"https://x/i.png"}]}]',
    },
  },
  {
    inputs: {
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://x/i.png' } }] }],
    },
  },
);
for (const key of ['response', 'result']) {
  judge(
    `a tool call response under ${key} becomes a tool message`,
    {
      attributes: {
        'gen_ai.input.messages': `[{"role":"user","parts":[{"type":"tool_call_response","id":"c1","${key}":{"t": 1}}]}]`,
      },
    },
    { inputs: { messages: [{ role: 'tool', tool_call_id: 'c1', content: '{"t": 1}' }] } },
  );
}
for (const reason of ['tool_call', 'tool_calls', 'tool-calls']) {
  judge(
    `the finish reason ${reason} passes through`,
    {
      attributes: {
        'gen_ai.output.messages': '[{"role":"assistant","parts":[{"type":"text","content":"x"}]}]',
        'gen_ai.response.finish_reasons': [reason],
      },
    },
    { outputs: { messages: [{ role: 'assistant', content: 'x', finish_reason: reason }] } },
  );
}
for (const [key, provider] of [
  ['gen_ai.provider.name', 'x_ai'],
  ['gen_ai.system', 'xai'],
] as const) {
  judge(
    `the provider ${provider} passes through`,
    { attributes: { [key]: provider } },
    { metadata: { ls_provider: provider } },
  );
}
judge(
  'written cache is cache_creation',
  {
    attributes: { ...llm, 'llm.token_count.prompt_details.cache_write': 7, 'llm.cost.prompt_details.cache_write': 0.5 },
  },
  {
    metadata: {
      usage_metadata: {
        input_token_details: { cache_creation: 7 },
        input_cost_details: { cache_creation: 0.5 },
      },
    },
  },
);
judge(
  'the one-hour cache is 1h in both spellings',
  {
    attributes: {
      ...llm,
      'gen_ai.usage.input_token_details':
        "{'ephemeral_1hr_input_tokens': 3, 'ephemeral_5m_input_tokens': 4, 'other': 5}",
    },
  },
  {
    metadata: {
      usage_metadata: {
        input_token_details: { ephemeral_1h_input_tokens: 3, ephemeral_5m_input_tokens: 4 },
      },
    },
  },
);
judge(
  'context and counts of AI SDK 7 in the documented and in the real spelling',
  {
    attributes: {
      'ai.operationId': 'ai.generateText.doGenerate',
      'ai.settings.runtimeContext.a': 1,
      'ai.settings.context.b': 2,
      'ai.usage.promptTokens': 3,
    },
  },
  { metadata: { a: 1, b: 2, usage_metadata: { input_tokens: 3, total_tokens: 3 } } },
);

test('an orphan hangs under a placeholder root and is not dropped', () => {
  for (const side of sides) {
    const { records } = side.translate([{ name: 'orphan', parentSpanId: 'aaaaaaaaaaaaaaaa' }]);
    const run = runsOf([records], {}, true).of('orphan');
    assert.equal(run.parentId, '5b8efff7-9803-8103-d269-b633813fc60c');
  }
});

judge(
  'the filter looks at attributes, not at names only',
  { name: 'GET /', attributes: { 'mcp.method.name': 'tools/call' } },
  { record: { flags: { forcedRoot: false, genAi: true, notEnded: false } } },
);
judge(
  'generic attributes go into the metadata under their own names, unknown GenAI ones included',
  { attributes: { 'http.route': '/x', 'gen_ai.new.thing': [1], metadata: '{"a":1}', 'input.value': 'v' } },
  { metadata: { 'http.route': '/x', 'gen_ai.new.thing': [1], a: 1, metadata: null, 'input.value': null } },
  { genericAttributes: true },
);
judge('without the setting they do not', { attributes: { 'http.route': '/x' } }, { metadata: { 'http.route': null } });
judge(
  'document metadata with single quotes is read',
  {
    attributes: {
      'openinference.span.kind': 'RETRIEVER',
      'retrieval.documents.0.document.metadata': "{'page': 1, 'ok': True, 'none': None, 'tags': ('a', \"b's\")}",
      'retrieval.documents.1.document.metadata': '{broken',
    },
  },
  {
    outputs: {
      documents: [
        { type: 'Document', page_content: '', metadata: { page: 1, ok: true, none: null, tags: ['a', "b's"] } },
        { type: 'Document', page_content: '', metadata: { raw: '{broken' } },
      ],
    },
  },
);
