import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AIMessage, AIMessageChunk, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { render, renderError } from '../../../src/deploy/graph/render.ts';

test('messages are flat wherever they are, and never in their constructor form', () => {
  const value = {
    messages: [new HumanMessage('h'), new SystemMessage('s'), new ToolMessage({ content: 't', tool_call_id: '1' })],
    nested: { deep: [{ one: new AIMessage({ content: 'a', id: 'm1' }) }], chunk: new AIMessageChunk('c') },
  };
  const text = render(value);
  assert.ok(!text.includes('"lc"'));
  const parsed = JSON.parse(text) as {
    messages: { type: string; content: string }[];
    nested: { deep: { one: { type: string; id: string } }[]; chunk: { type: string } };
  };
  assert.deepEqual(
    parsed.messages.map(({ type, content }) => [type, content]),
    [
      ['human', 'h'],
      ['system', 's'],
      ['tool', 't'],
    ],
  );
  assert.deepEqual([parsed.nested.deep[0]?.one.type, parsed.nested.deep[0]?.one.id], ['ai', 'm1']);
  assert.equal(parsed.nested.chunk.type, 'ai');
});

test('keys that the library keeps for itself are left out, interrupts stay', () => {
  const text = render({ __pregel_task_id: 1, __interrupt__: [], configurable: { __pregel_read: () => 1, kept: true } });
  assert.equal(text, '{"__interrupt__":[],"configurable":{"kept":true}}');
});

test('what JSON has no word for is rendered all the same', () => {
  const cyclic: Record<string, unknown> = { name: 'loop' };
  cyclic['self'] = cyclic;
  cyclic['list'] = [cyclic, { again: cyclic }];
  assert.deepEqual(JSON.parse(render(cyclic)), { name: 'loop', self: null, list: [null, { again: null }] });
  assert.equal(render({ big: 12n }), '{"big":"12"}');
  assert.equal(render(undefined), 'null');
  assert.equal(render({ date: new Date(0) }), '{"date":"1970-01-01T00:00:00.000Z"}');
  assert.equal(render({ failure: new RangeError('far') }), '{"failure":{"error":"RangeError","message":"far"}}');
});

test('failures of every kind have a class and a message', () => {
  assert.equal(renderError(new TypeError('wrong')), '{"error":"TypeError","message":"wrong"}');
  assert.equal(renderError('just text'), '{"error":"Error","message":"just text"}');
  assert.equal(renderError({ code: 7 }), '{"error":"Error","message":"{\\"code\\":7}"}');
  assert.equal(renderError(undefined), '{"error":"Error","message":"null"}');
});
