/** The reference proxy's known defects, by number: none of them is ours. Those of its service side have tests elsewhere. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Double, jsonOf, protobufOf, spanOf, START_NS, type SpanSpec } from '../oracle/emit.ts';
import { judge, sides } from '../oracle/judge.ts';
import { defaultSettings } from '../oracle/settings.ts';
import { translateWithDecoder } from '../oracle/adapter.ts';
import { textOf, type RecordView } from '../oracle/record.ts';
import { translateBody } from '../oracle/translate.ts';
import { runsOf } from '../oracle/tree.ts';

const translators = [translateBody, translateWithDecoder];

test('D1: hex ids of JSON bodies are hex, base64 ones are base64, and unknown fields are ignored', () => {
  const span = spanOf({});
  const text = Buffer.from(jsonOf([span])).toString();
  const base64 = text
    .replace('5b8efff798038103d269b633813fc60c', Buffer.from(span.traceId).toString('base64'))
    .replace('eee19b7ec3c1b174', Buffer.from(span.spanId).toString('base64'));
  const unknown = text.replace('"spans":[{', '"schemaUrl":"u","spans":[{"newField":{"a":[1]},');
  assert.notEqual(unknown, text);
  for (const translate of translators) {
    const texts = [text, base64, unknown].map((body) =>
      textOf(translate(Buffer.from(body), 'json', defaultSettings).records),
    );
    assert.equal(texts[1], texts[0]);
    assert.equal(texts[2], texts[0]);
    assert.equal(texts[0], textOf(translate(protobufOf([span]), 'protobuf', defaultSettings).records));
  }
});

test('D2, D3: the order is made of start times with six digits, whatever the order of arrival', () => {
  const late: SpanSpec = {
    name: 'late',
    spanId: '0000000000000002',
    parentSpanId: '0000000000000001',
    startNs: START_NS + 2_000_000n,
  };
  const early: SpanSpec = {
    name: 'early',
    spanId: '0000000000000003',
    parentSpanId: '0000000000000001',
    startNs: START_NS + 1_000_000n,
  };
  const root: SpanSpec = { name: 'root', spanId: '0000000000000001', startNs: 1747675155000000000n };
  for (const side of sides) {
    const runs = runsOf([late, early, root].map((spec) => side.translate([spec]).records));
    assert.equal(runs.of('root').startText, '20250519T171915000000Z');
    assert.ok(runs.of('early').order < runs.of('late').order);
  }
});

judge(
  'D10: arrays and lists of keys are JSON arrays and objects',
  {
    attributes: {
      'langsmith.metadata.deep': { list: ['a', 1, true, null], map: { k: 1.5 } },
      'gen_ai.request.encoding_formats': ['base64'],
    },
  },
  {
    metadata: { deep: { list: ['a', 1, true, null], map: { k: 1.5 } } },
    params: { encoding_formats: ['base64'] },
  },
);
judge(
  'D11: tool arguments as a list of keys keep their values',
  { attributes: { 'gen_ai.tool.name': 'w', tool_arguments: { x: 1 } } },
  { inputs: { x: 1 }, params: { tool_arguments: { x: 1 } } },
);
judge(
  'D11: events as a real array are read',
  { attributes: { events: [{ 'event.name': 'gen_ai.user.message', content: 'Hi' }] } },
  { inputs: { messages: [{ role: 'user', content: 'Hi' }] } },
);
judge(
  'D12: JSON that is no object is parsed before it is wrapped, one way a side',
  { attributes: { 'input.value': '[1]', 'traceloop.entity.output': '"x"' } },
  { inputs: { input: [1] }, outputs: { output: 'x' } },
);
judge(
  'D13: null leaves the side to the next key, and usage alive',
  {
    attributes: {
      'langsmith.span.kind': 'llm',
      'output.value': 'null',
      final_result: 'f',
      'gen_ai.usage.input_tokens': 1,
    },
  },
  {
    outputs: { messages: [{ role: 'assistant', content: 'f' }], usage_metadata: { input_tokens: 1, total_tokens: 1 } },
  },
);
for (const [operation, runType] of [
  ['embeddings', 'embedding'],
  ['text_completion', 'llm'],
  ['execute_tool', 'tool'],
  ['invoke_agent', 'chain'],
] as const) {
  judge(
    `D14: the operation ${operation} is a ${runType}`,
    { attributes: { 'gen_ai.operation.name': operation } },
    { runType },
  );
}
judge(
  'D15: template variables on an LLM span do not make it a prompt',
  { attributes: { 'openinference.span.kind': 'LLM', 'llm.prompt_template.variables': '{"a":1}' } },
  { runType: 'llm', inputs: null },
);
judge(
  'D16: identities of session, user and conversation reach the metadata',
  {
    attributes: {
      'session.id': 's',
      'user.id': 'u',
      'gen_ai.conversation.id': 'c',
      'gen_ai.provider.name': 'p',
    },
  },
  { metadata: { session_id: 's', user_id: 'u', conversation_id: 'c', ls_provider: 'p' } },
);
judge(
  'D16: attachments are taken out, those with unusable names skipped',
  {
    attributes: {
      'langsmith.attachments':
        '[{"name":"img","content":"AAEC","mime_type":"image/png"},{"name":"a.b","content":"AA=="},{"name":"t","content":"YQ"}]',
    },
  },
  {
    attachments: [
      { name: 'img', mimeType: 'image/png', base64: 'AAEC' },
      { name: 't', mimeType: 'application/octet-stream', base64: 'YQ==' },
    ],
  },
);
judge(
  'D17: indexed messages keep name, tool call id and content that is no string',
  {
    attributes: {
      'gen_ai.prompt.0.finish_reason': 'stop',
      'gen_ai.prompt.3.role': 'tool',
      'gen_ai.prompt.3.tool_call_id': 'c1',
      'gen_ai.prompt.3.name': 'w',
      'gen_ai.prompt.3.content': 4,
    },
  },
  {
    inputs: {
      messages: [
        { role: 'user', content: null, finish_reason: 'stop' },
        { role: 'tool', content: '4', name: 'w', tool_call_id: 'c1' },
      ],
    },
  },
);
judge(
  'D18: a message given as an object and one as plain text are read',
  {
    events: [
      { name: 'gen_ai.choice', attributes: { index: 0, message: { role: 'assistant', content: 'a' } } },
      { name: 'gen_ai.choice', attributes: { index: 1, 'gen_ai.event.content': 'plain' } },
    ],
  },
  {
    outputs: {
      choices: [
        { index: 0, message: { role: 'assistant', content: 'a' } },
        { index: 1, message: { role: 'assistant', content: 'plain' } },
      ],
    },
  },
);
judge(
  'D20: id and score of documents are kept, a query inside JSON is found',
  {
    attributes: {
      'openinference.span.kind': 'RETRIEVER',
      'input.value': '{"query":"q","k":3}',
      'retrieval.documents.0.document.id': 'd',
      'retrieval.documents.0.document.score': 0.5,
      'retrieval.documents.2.document.content': 'C',
    },
  },
  {
    inputs: { query: 'q' },
    outputs: {
      documents: [
        { type: 'Document', page_content: '', metadata: { id: 'd', score: 0.5 } },
        { type: 'Document', page_content: 'C', metadata: {} },
      ],
    },
  },
);
judge(
  'D21: the last exception speaks, with its stack, in whatever order its attributes come',
  {
    events: [
      { name: 'exception', attributes: { 'exception.message': 'first' } },
      {
        name: 'exception',
        attributes: { 'exception.stacktrace': 'st', 'exception.type': 'E', 'exception.message': 'm' },
      },
    ],
  },
  {
    status: 'error',
    error: 'm\n\nStacktrace:\nst',
    metadata: { error_type: 'E' },
    events: [{ name: 'exception', time: '2025-05-19T17:19:15.185223Z', kwargs: { 'exception.message': 'first' } }],
  },
);
judge(
  'D21: an exception without message is its type',
  { events: [{ name: 'exception', attributes: { 'exception.type': 'E' } }] },
  { error: 'E' },
);
judge(
  'D21: an exception that was handled is an event',
  { events: [{ name: 'exception', attributes: { 'exception.type': 'E', 'exception.escaped': false } }] },
  { status: 'success', error: null },
);
judge(
  'D21: an error status without any text is an error',
  { status: { code: 2 } },
  { status: 'error', error: 'error' },
);
judge(
  'D21: an error type alone is an error',
  { attributes: { 'error.type': 'timeout' } },
  { status: 'error', error: 'timeout', metadata: { error_type: 'timeout' } },
);
judge(
  'D22: counts as doubles and digits count, the current names win, the total is computed',
  {
    attributes: {
      'langsmith.span.kind': 'llm',
      'gen_ai.usage.prompt_tokens': 99,
      'gen_ai.usage.input_tokens': '12',
      'gen_ai.usage.output_tokens': new Double(3),
    },
    status: { code: 2, message: 'failed' },
  },
  { metadata: { usage_metadata: { input_tokens: 12, output_tokens: 3, total_tokens: 15 } } },
);
judge(
  'D23: an embedding response is kept as it came',
  {
    attributes: {
      'openinference.span.kind': 'EMBEDDING',
      'output.value': '{"data":[{"embedding":"AAAA"}]}',
      'embedding.embeddings.0.embedding.vector': [1],
    },
  },
  { outputs: { data: [{ embedding: 'AAAA' }] } },
);
judge(
  'D24: generic attributes with the names of our objects harm nothing',
  { attributes: { metadata: 'text', invocation_params: 'x', 'gen_ai.request.model': 'm' } },
  { metadata: { invocation_params: 'x', ls_model_name: 'm' }, params: { model: 'm' } },
  { genericAttributes: true },
);
judge(
  'D26: resource, scope, links, kind and other events are kept',
  {
    kind: 3,
    scopeName: 'lib',
    resource: { 'service.name': 'shop' },
    links: [{ traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331', attributes: { a: 1 } }],
    events: [{ name: 'retry', attributes: { n: 2 } }],
  },
  {
    metadata: {
      'service.name': 'shop',
      otel_scope: 'lib',
      otel_span_kind: 'client',
      otel_links: [{ trace_id: '0af7651916cd43dd8448eb211c80319c', span_id: 'b7ad6b7169203331', attributes: { a: 1 } }],
    },
    events: [{ name: 'retry', time: '2025-05-19T17:19:15.185223Z', kwargs: { n: 2 } }],
  },
);
judge('D26: empty tags leave no tags', { attributes: { 'langsmith.span.tags': ' , ' } }, { head: { tags: null } });
judge(
  'D32: what is no UUID overrides nothing',
  {
    attributes: {
      'langsmith.span.id': 'abc',
      'langsmith.trace.id': '11111111111141118111111111111111',
      'langsmith.reference_example_id': 'x',
      'langsmith.span.dotted_order': '20250519T171915.185223Z',
    },
  },
  { record: { overrides: {} }, head: { reference_example_id: null } },
);
test('D32: spans with ids of wrong length or of zeros are rejected, the others of the request are not', () => {
  const specs: SpanSpec[] = [
    { traceId: '5b8efff7' },
    { spanId: '' },
    { traceId: '0'.repeat(32) },
    { spanId: '0'.repeat(16) },
    { name: 'good', parentSpanId: '0'.repeat(16) },
    { name: 'self', parentSpanId: 'eee19b7ec3c1b174' },
    { name: 'odd', parentSpanId: 'abcd' },
  ];
  for (const side of sides) {
    const { records, rejectedCount } = side.translate(specs);
    assert.equal(rejectedCount, 4, side.title);
    assert.deepEqual(
      records.map((record: RecordView) => [record.head.get('name'), record.parentSpanId]),
      [
        ['good', null],
        ['self', null],
        ['odd', null],
      ],
      side.title,
    );
  }
});
