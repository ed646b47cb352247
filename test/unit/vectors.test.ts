/** The numbered vectors of the mapping from spans to runs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { END_NS, jsonOf, START_NS, spanOf, TRACE_ID, type SpanSpec } from '../oracle/emit.ts';
import { judge, sides } from '../oracle/judge.ts';
import { defaultSettings } from '../oracle/settings.ts';
import { translateBody } from '../oracle/translate.ts';
import { textOf, type RecordView } from '../oracle/record.ts';
import { runsOf } from '../oracle/tree.ts';
import { translateWithDecoder } from '../oracle/adapter.ts';
import type { RunCollector } from './assemble/fakes.ts';
import type { AssemblerSettings } from '../../src/assemble/assembler.ts';

const T = '5b8efff7-9803-8103-d269-b633813fc60c';
const S = '00000000-0000-0000-eee1-9b7ec3c1b174';
const MS = 1_000_000n;

/** A tree case: spans, delivered one window each, through each translator and the assembler. */
function tree(
  title: string,
  deliveries: readonly SpanSpec[],
  look: (runs: RunCollector) => void,
  settings: Partial<AssemblerSettings> = {},
  expired = false,
): void {
  test(title, () => {
    for (const side of sides) {
      const records: RecordView[][] = deliveries.map((spec) => side.translate([spec]).records);
      look(runsOf(records, settings, expired));
    }
  });
}

tree(
  'V01: a root run has the id of its trace, is a chain, has six digits of time and success',
  [{ name: 'r' }],
  (runs) => {
    const run = runs.of('r');
    assert.equal(run.id, T);
    assert.equal(run.traceId, T);
    assert.equal(run.parentId, null);
    assert.equal(run.startText, '20250519T171915185223Z');
  },
);
judge(
  'V01: a span without anything is a successful chain',
  {},
  {
    runType: 'chain',
    status: 'success',
    inputs: null,
    outputs: null,
    error: null,
    events: null,
    params: null,
    record: { startUs: 1747675155185223, endUs: 1747675156185223, parentSpanId: null },
    metadata: { OTEL_TRACE_ID: TRACE_ID, OTEL_SPAN_ID: 'eee19b7ec3c1b174' },
    head: { session_name: 'default', tags: null },
  },
);

tree(
  'V02: a child has its padded span id and its parent padded likewise',
  [
    { spanId: 'cccccccccccccccc', name: 'root' },
    { spanId: 'aaaaaaaaaaaaaaaa', parentSpanId: 'cccccccccccccccc', name: 'middle' },
    { parentSpanId: 'aaaaaaaaaaaaaaaa', name: 'leaf' },
  ],
  (runs) => {
    assert.equal(runs.of('leaf').id, S);
    assert.equal(runs.of('leaf').parentId, '00000000-0000-0000-aaaa-aaaaaaaaaaaa');
  },
);

tree(
  'V03: a child that comes before its root hangs on the trace id, with its own start in the order',
  [
    { parentSpanId: 'bbbbbbbbbbbbbbbb', name: 'child' },
    { spanId: 'bbbbbbbbbbbbbbbb', name: 'root', startNs: START_NS - MS },
  ],
  (runs) => {
    assert.equal(runs.of('child').parentId, T);
    assert.equal(runs.of('child').order, `${runs.of('root').order}.20250519T171915185223Z${S}`);
  },
);

tree(
  'V04: three levels delivered from the leaf up have orders of 58, 117 and 176 characters, prefixes of each other',
  [
    { spanId: '0000000000000003', parentSpanId: '0000000000000002', name: 'grandchild' },
    { spanId: '0000000000000002', parentSpanId: '0000000000000001', name: 'child' },
    { spanId: '0000000000000001', name: 'root' },
  ],
  (runs) => {
    const [root, child, grandchild] = ['root', 'child', 'grandchild'].map((name) => runs.of(name).order);
    assert.deepEqual([root?.length, child?.length, grandchild?.length], [58, 117, 176]);
    assert.ok(child?.startsWith(`${root}.`) && grandchild?.startsWith(`${child}.`));
  },
);

test('V05: upper-case hex ids in JSON are the same ids', () => {
  const body = Buffer.from(
    Buffer.from(jsonOf([spanOf({})]))
      .toString()
      .replace(TRACE_ID, TRACE_ID.toUpperCase())
      .replace('eee19b7ec3c1b174', 'EEE19B7EC3C1B174'),
  );
  const results = [translateBody(body, 'json', defaultSettings), translateWithDecoder(body, 'json', defaultSettings)];
  for (const { records } of results) {
    assert.equal(records[0]?.traceId, TRACE_ID);
    assert.equal(records[0].spanId, 'eee19b7ec3c1b174');
    assert.equal(runsOf([records]).of('span').id, T);
  }
});

tree(
  'V06: langsmith.is_root makes a span with a parent the root',
  [{ parentSpanId: 'aaaaaaaaaaaaaaaa', attributes: { 'langsmith.is_root': true }, name: 'r' }],
  (runs) => {
    assert.equal(runs.of('r').id, T);
    assert.equal(runs.of('r').parentId, null);
  },
);

tree(
  'V07: of two roots in one trace each is its own trace',
  [
    { spanId: '0000000000000001', attributes: { 'langsmith.is_root': true }, name: 'one' },
    {
      spanId: '0000000000000002',
      parentSpanId: '0000000000000001',
      attributes: { 'langsmith.is_root': true },
      name: 'two',
    },
  ],
  (runs) => {
    assert.notEqual(runs.of('one').id, runs.of('two').id);
    assert.equal(runs.of('one').traceId, runs.of('one').id);
    assert.equal(runs.of('two').traceId, runs.of('two').id);
  },
);

const X = '11111111-1111-4111-8111-111111111111';
const P = '22222222-2222-4222-8222-222222222222';
const U = '33333333-3333-4333-8333-333333333333';
const D = `20250519T171914000000Z${X}.20250519T171915000000Z${P}.20250519T171915185223Z${U}`;
const overridden: SpanSpec = {
  name: 'r',
  attributes: {
    'langsmith.trace.id': X,
    'langsmith.span.parent_id': P,
    'langsmith.span.id': U,
    'langsmith.span.dotted_order': D,
  },
};
tree('V08: all four overrides are taken as they are, and the span is no root', [overridden], (runs) => {
  const run = runs.of('r');
  assert.deepEqual([run.traceId, run.parentId, run.id, run.order], [X, P, U, D]);
});
judge('V08: the record carries the four overrides', overridden, {
  record: { overrides: { runId: U, parentRunId: P, traceId: X, dottedOrder: D } },
});

judge(
  'V09: a span without end is pending and has no end time',
  { endNs: 0n },
  {
    status: 'pending',
    record: { endUs: null, flags: { forcedRoot: false, genAi: false, notEnded: true } },
  },
);

judge(
  'V10: a span kind in upper case is a run type',
  { attributes: { 'langsmith.span.kind': 'LLM' } },
  { runType: 'llm' },
);
judge(
  'V11: an unknown span kind falls through to the operation',
  { attributes: { 'langsmith.span.kind': 'agent', 'gen_ai.operation.name': 'chat' } },
  { runType: 'llm' },
);
judge(
  'V12: an unknown operation falls through to the OpenInference kind',
  { attributes: { 'gen_ai.operation.name': 'frobnicate', 'openinference.span.kind': 'LLM' } },
  { runType: 'llm' },
);
judge(
  'V13: a tool name does not overrule an explicit kind',
  { attributes: { 'langsmith.span.kind': 'llm', 'gen_ai.tool.name': 'w' } },
  { runType: 'llm', params: { tool_name: 'w' } },
);
judge(
  'V14: the trace name goes before the entity name',
  { attributes: { 'traceloop.entity.name': 'E', 'langsmith.trace.name': 'L' } },
  { name: 'L' },
);
judge(
  'V15: a tool span in lower case is named by its tool',
  { attributes: { 'openinference.span.kind': 'tool', 'tool.name': 't' } },
  { name: 't', runType: 'tool' },
);
judge(
  'V16: whole documents of the SDK exporters are kept as they are',
  {
    attributes: {
      'langsmith.span.kind': 'llm',
      'gen_ai.prompt': '{"messages":[{"role":"user","content":"hi"}],"model":"m1"}',
      'gen_ai.completion': '{"choices":[{"message":{"role":"assistant","content":"yo"}}]}',
    },
  },
  {
    runType: 'llm',
    inputs: { messages: [{ role: 'user', content: 'hi' }], model: 'm1' },
    outputs: { choices: [{ message: { role: 'assistant', content: 'yo' } }] },
  },
);
judge(
  'V17: arrays of messages are messages on both sides',
  {
    attributes: {
      'gen_ai.prompt': '[{"role":"user","content":"hi"}]',
      'gen_ai.completion': '[{"role":"assistant","content":"yo"}]',
    },
  },
  {
    inputs: { messages: [{ role: 'user', content: 'hi' }] },
    outputs: { messages: [{ role: 'assistant', content: 'yo' }] },
  },
);
judge(
  'V18: a null document lets the next key speak',
  { attributes: { 'input.value': 'null', 'gen_ai.prompt': 'p' } },
  { inputs: { input: 'p' } },
);
judge(
  'V19: plain text is not parsed',
  { attributes: { 'output.value': '[1,2]', 'output.mime_type': 'text/plain' } },
  { outputs: { output: '[1,2]' } },
);
judge(
  'V20: history of events keeps its order, the choice is the output',
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
    inputs: {
      messages: [
        { role: 'user', content: 'q1' },
        { role: 'assistant', content: 'a1' },
        { role: 'tool', tool_call_id: 'c1', content: 't' },
        { role: 'user', content: 'q2' },
      ],
    },
    outputs: { choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'ok' } }] },
    events: null,
  },
);
judge(
  'V21: an event attribute without a value harms nobody',
  { events: [{ name: 'gen_ai.content.prompt', attributes: { 'gen_ai.prompt': null } }] },
  { inputs: null, events: null, status: 'success' },
);
judge(
  'V22: images and reasoning become content blocks',
  {
    attributes: {
      'gen_ai.input.messages':
        '[{"role":"user","parts":[{"type":"text","content":"what?"},{"type":"uri","modality":"image","mime_type":"image/png","uri":"https://x/i.png"}]}]',
      'gen_ai.output.messages':
        '[{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"text","content":"yes"}]}]',
    },
  },
  {
    inputs: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what?' },
            { type: 'image_url', image_url: { url: 'https://x/i.png' } },
          ],
        },
      ],
    },
    outputs: {
      messages: [
        {
          role: 'assistant',
          content: [
            { type: 'reasoning', reasoning: 'hm' },
            { type: 'text', text: 'yes' },
          ],
        },
      ],
    },
  },
);
const toolCall = {
  'gen_ai.operation.name': 'execute_tool',
  'gen_ai.tool.name': 'w',
  'gen_ai.tool.call.id': 'c1',
  'gen_ai.tool.call.arguments': '{"city":"P"}',
};
judge(
  'V23: a tool result that is a JSON string is wrapped',
  { attributes: { ...toolCall, 'gen_ai.tool.call.result': '"sunny"' } },
  { runType: 'tool', name: 'w', inputs: { city: 'P' }, outputs: { output: 'sunny' }, metadata: { tool_call_id: 'c1' } },
);
judge(
  'V23: a tool result that is an object is the output',
  { attributes: { ...toolCall, 'gen_ai.tool.call.result': '{"ok":1}' } },
  { outputs: { ok: 1 } },
);
judge(
  'V24: a raw prompt is kept and a string message normalised',
  {
    attributes: { 'gen_ai.operation.name': 'text_completion' },
    events: [
      { name: 'gen_ai.user.message', attributes: { 'gen_ai.event.content': 'raw prompt' } },
      { name: 'gen_ai.choice', attributes: { 'gen_ai.event.content': '{"index":0,"message":"txt"}' } },
    ],
  },
  {
    runType: 'llm',
    inputs: { messages: [{ role: 'user', content: 'raw prompt' }] },
    outputs: { choices: [{ index: 0, message: { role: 'assistant', content: 'txt' } }] },
  },
);
judge(
  'V25: image block and tool call are kept, input.value is not used',
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
    runType: 'llm',
    inputs: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'what is it?' },
            { type: 'image_url', image_url: { url: 'https://x/p.jpg' } },
          ],
        },
      ],
    },
    outputs: {
      messages: [
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ type: 'function', function: { name: 'mul', arguments: '{"a":2}' } }],
        },
      ],
    },
  },
);
judge(
  'V26: a vector database query is a retriever',
  {
    attributes: {
      'gen_ai.operation.name': 'vector_db_retrieve',
      'traceloop.span.kind': 'task',
      'traceloop.entity.name': 'V',
      'traceloop.entity.input': '{"query":"q"}',
      'traceloop.entity.output': '{"documents":[{"page_content":"A","metadata":{}}],"count":1}',
    },
  },
  { runType: 'retriever', name: 'V' },
);
judge(
  'V27: a streamed generation with a name, a user and a project in its telemetry metadata',
  {
    attributes: {
      'ai.operationId': 'ai.streamText.doStream',
      'ai.prompt.messages': '[{"role":"user","content":[{"type":"text","text":"hi"}]}]',
      'ai.response.text': 'let me check',
      'ai.response.toolCalls': '[{"toolCallId":"c1","toolName":"w","input":{"city":"P"}}]',
      'ai.response.finishReason': 'tool-calls',
      'ai.telemetry.metadata.ls_run_name': 'R',
      'ai.telemetry.metadata.userId': 'u',
      'ai.telemetry.metadata.ls_project_name': 'P',
    },
  },
  {
    name: 'R',
    runType: 'llm',
    head: { session_name: 'P' },
    metadata: { userId: 'u', ls_run_name: null, ls_project_name: null },
    inputs: { messages: [{ role: 'user', content: 'hi' }] },
    outputs: {
      messages: [
        {
          role: 'assistant',
          content: 'let me check',
          tool_calls: [{ id: 'c1', type: 'function', function: { name: 'w', arguments: '{"city":"P"}' } }],
          finish_reason: 'tool-calls',
        },
      ],
    },
  },
);
judge(
  'V28: a whole conversation is split into inputs and outputs',
  {
    attributes: {
      all_messages_events:
        '[{"event.name":"gen_ai.user.message","content":"Hi","role":"user"},{"event.name":"gen_ai.assistant.message","content":"Yo","role":"assistant"}]',
      final_result: 'Yo',
    },
  },
  {
    inputs: { messages: [{ role: 'user', content: 'Hi' }] },
    outputs: { messages: [{ role: 'assistant', content: 'Yo' }], output: 'Yo' },
  },
);
judge(
  'V29: token counts with details stand in the metadata, outputs or not',
  {
    attributes: {
      'langsmith.span.kind': 'llm',
      'gen_ai.usage.input_tokens': 10,
      'gen_ai.usage.output_tokens': 4,
      'gen_ai.usage.cache_read.input_tokens': 6,
      'gen_ai.usage.cache_creation.input_tokens': 2,
      'gen_ai.usage.reasoning.output_tokens': 3,
    },
  },
  {
    outputs: null,
    metadata: {
      usage_metadata: {
        input_tokens: 10,
        output_tokens: 4,
        total_tokens: 14,
        input_token_details: { cache_read: 6, cache_creation: 2 },
        output_token_details: { reasoning: 3 },
      },
    },
  },
);
judge(
  'V30: usage given whole replaces everything else',
  {
    attributes: {
      'langsmith.usage_metadata': '{"input_tokens":5,"output_tokens":2,"total_tokens":7}',
      'gen_ai.usage.input_tokens': 99,
      'gen_ai.completion': '{"a":1}',
    },
  },
  {
    metadata: { usage_metadata: { input_tokens: 5, output_tokens: 2, total_tokens: 7 } },
    outputs: { a: 1, usage_metadata: { input_tokens: 5, output_tokens: 2, total_tokens: 7 } },
  },
);
judge(
  'V31: costs',
  {
    attributes: {
      'openinference.span.kind': 'LLM',
      'llm.cost.prompt': 0.002,
      'llm.cost.completion': 0.004,
      'llm.cost.total': 0.006,
      'llm.cost.prompt_details.cache_read': 0.0003,
    },
  },
  {
    metadata: {
      usage_metadata: {
        input_cost: 0.002,
        output_cost: 0.004,
        total_cost: 0.006,
        input_cost_details: { cache_read: 0.0003 },
      },
    },
  },
);
judge(
  'V32: an agent repeats the sums of its children and must not be counted again',
  { attributes: { 'gen_ai.operation.name': 'invoke_agent', 'gen_ai.usage.input_tokens': 9 } },
  { metadata: { usage_metadata: null, aggregated_usage: { input_tokens: 9, total_tokens: 9 } } },
);
judge(
  'V33: arrays stay arrays',
  { attributes: { 'gen_ai.request.stop_sequences': ['a', 'b'], 'langsmith.metadata.list': ['x'] } },
  { params: { stop: ['a', 'b'], stop_sequences: null }, metadata: { list: ['x'] } },
);
judge(
  'V34: the model asked for names the model, the model that answered is the parameter',
  { attributes: { 'gen_ai.request.model': 'req', 'gen_ai.response.model': 'resp' } },
  { metadata: { ls_model_name: 'req' }, params: { model: 'resp' } },
);
judge(
  'V35: tags are split, trimmed, and joined by the array form',
  { attributes: { 'langsmith.span.tags': 'a, b,, c', 'tag.tags': ['d'] } },
  { head: { tags: ['a', 'b', 'c', 'd'] } },
);
const withProject: SpanSpec = { attributes: { 'langsmith.trace.session_name': 'A' } };
judge(
  'V36: the project of the request goes before the attribute',
  withProject,
  { head: { session_name: 'H' } },
  { project: 'H' },
);
judge('V36: without one the attribute decides', withProject, { head: { session_name: 'A' } });
judge(
  'V37: an error without an exception event is an error',
  { status: { code: 2, message: 'boom' }, attributes: { 'error.type': 'timeout' } },
  { status: 'error', error: 'boom', metadata: { error_type: 'timeout' } },
);
judge(
  'V38: a span that says OK is a success, its exception an event',
  {
    status: { code: 1 },
    events: [{ name: 'exception', timeNs: END_NS, attributes: { 'exception.message': 'm' } }],
  },
  {
    status: 'success',
    error: null,
    events: [{ name: 'exception', time: '2025-05-19T17:19:16.185223Z', kwargs: { 'exception.message': 'm' } }],
  },
);

tree(
  'V39: children of a filtered span hang on its nearest kept ancestor',
  [
    { spanId: '0000000000000001', name: 'root', attributes: { 'gen_ai.operation.name': 'invoke_agent' } },
    { spanId: '0000000000000002', parentSpanId: '0000000000000001', name: 'http' },
    {
      spanId: '0000000000000003',
      parentSpanId: '0000000000000002',
      name: 'chat',
      attributes: { 'gen_ai.operation.name': 'chat' },
    },
  ],
  (runs) => {
    assert.deepEqual(runs.runs.map((run) => run.span).sort(), ['chat', 'root']);
    assert.equal(runs.of('chat').parentId, runs.of('root').id);
    assert.equal(runs.of('chat').order.split('.').length, 2);
  },
  { filterNonGenAi: true },
);

tree(
  'V40: a parent that never comes is replaced by one root, its descendants keep their order',
  [
    { spanId: '0000000000000003', parentSpanId: '0000000000000002', name: 'grandchild' },
    { spanId: '0000000000000002', parentSpanId: '0000000000000001', name: 'child' },
  ],
  (runs) => {
    const [child, grandchild] = [runs.of('child'), runs.of('grandchild')];
    assert.equal(child.parentId, T);
    assert.equal(grandchild.parentId, child.id);
    assert.equal(grandchild.order.split('.')[0], child.order.split('.')[0]);
  },
  {},
  true,
);

judge(
  'V41: integers beyond 2^53 keep their digits',
  { attributes: { 'langsmith.metadata.n': 9007199254740993n } },
  { metadata: { n: '9007199254740993' } },
);

test('what is compared here tells records apart', () => {
  const [plain] = sides;
  const text = (spec: SpanSpec): string => textOf(plain?.translate([spec]).records[0] ?? {});
  assert.notEqual(text({}), text({ name: 'other' }));
  assert.notEqual(
    text({ attributes: { 'input.value': '{"a":1}' } }),
    text({ attributes: { 'input.value': '{"a":2}' } }),
  );
});
