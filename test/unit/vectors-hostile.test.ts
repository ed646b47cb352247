/** Values and documents that are meant to break a translator, or do so by accident. */
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { createDecoder } from '../../src/decode/decoder.ts';
import { decodeBody, MalformedBody, translateWithDecoder } from '../oracle/adapter.ts';
import { BROKEN, type Plain, type SpanSpec } from '../oracle/emit.ts';
import { judge, sides } from '../oracle/judge.ts';
import { readOutput } from '../oracle/json.ts';
import { defaultSettings } from '../oracle/settings.ts';
import { textOf } from '../oracle/record.ts';
import { translateBody } from '../oracle/translate.ts';

const jsonTranslators = [
  (body: Uint8Array) => translateBody(body, 'json', defaultSettings),
  (body: Uint8Array) => translateWithDecoder(body, 'json', defaultSettings),
];

function nested(depth: number): Plain {
  let value: Plain = 'x';
  for (let i = 0; i < depth; i++) value = [value];
  return value;
}

const dangerous = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty'];

for (const key of dangerous) {
  judge(
    `${key} is data as attribute, as metadata, and inside documents`,
    {
      attributes: [
        [key, 'v'],
        [`langsmith.metadata.${key}`, 'm'],
        ['input.value', `{"${key}":{"polluted":true}}`],
        ['output.value', { [`x${key}`]: 1 }],
      ],
    },
    {
      inputs: Object.fromEntries([[key, { polluted: true }]]),
      outputs: { [`x${key}`]: 1 },
      metadata: Object.fromEntries([[key, 'm']]),
    },
    { genericAttributes: true },
  );
}
judge(
  '__proto__ in a list of keys is a member like others',
  { attributes: { 'langsmith.metadata.m': JSON.parse('{"__proto__":{"a":1},"b":2}') as Plain } },
  { metadata: { m: JSON.parse('{"__proto__":{"a":1},"b":2}') as object } },
);

judge(
  'of equal keys the last wins, and only one is written',
  {
    attributes: [
      ['input.value', '{"a":1,"b":{"c":1,"c":2},"\\u0061":3}'],
      ['langsmith.metadata.k', 'first'],
      ['langsmith.metadata.k', 'last'],
    ],
  },
  { inputs: { a: 3, b: { c: 2 } }, metadata: { k: 'last' } },
);
judge(
  'an attribute without a value does not hide an earlier one of its name',
  {
    attributes: [
      ['input.value', '"x"'],
      ['input.value', null],
      ['input.value', NaN],
    ],
  },
  { inputs: { input: 'x' } },
);

judge(
  'numbers of documents keep their digits',
  { attributes: { 'input.value': '{"a":9007199254740993,"b":1e400,"c":-0.0,"d":18446744073709551617}' } },
  { inputs: readOutput('{"a":9007199254740993,"b":1e400,"c":0,"d":18446744073709551617}') },
);
judge(
  'int64 at its limits, doubles as JavaScript prints them, nothing that is not a number',
  {
    attributes: {
      'langsmith.metadata.min': -(2n ** 63n),
      'langsmith.metadata.max': 2n ** 63n - 1n,
      'langsmith.metadata.safe': 9007199254740991n,
      'langsmith.metadata.small': 1e-7,
      'langsmith.metadata.nan': NaN,
      'langsmith.metadata.list': [1, Infinity, null, 'x'],
      'langsmith.metadata.map': { gone: NaN, stays: 1.5 },
    },
  },
  {
    metadata: {
      min: '-9223372036854775808',
      max: '9223372036854775807',
      safe: 9007199254740991n,
      small: 1e-7,
      nan: null,
      list: [1, null, null, 'x'],
      map: { stays: 1.5 },
    },
  },
);
judge(
  'bytes are base64',
  { attributes: { 'langsmith.metadata.b': new Uint8Array([0, 1, 255]) } },
  { metadata: { b: 'AAH/' } },
);

for (const document of [
  '{"a":',
  '[1,2',
  '"x',
  '{"a":1}}',
  '{a:1}',
  "{'a':1}",
  '[1,]',
  '{"a":01}',
  '"\u0001"',
  '{"a":"\\x"}',
]) {
  judge(
    `${JSON.stringify(document)} is no JSON and stays text`,
    { attributes: { 'input.value': document } },
    { inputs: { input: document } },
  );
}
judge(
  'white space around a document is not part of it',
  { attributes: { 'input.value': ' \n\t{"a":1}\r\n', 'output.value': ' null ' } },
  { inputs: { a: 1 }, outputs: null },
);
judge(
  'a document of 512 levels is a document',
  { attributes: { 'input.value': '['.repeat(512) + ']'.repeat(512) } },
  { inputs: readOutput(`{"input":${'['.repeat(512)}${']'.repeat(512)}}`) },
);
judge(
  'a deeper one is text',
  { attributes: { 'input.value': '['.repeat(513) + ']'.repeat(513) } },
  { inputs: { input: '['.repeat(513) + ']'.repeat(513) } },
);
judge(
  'a million brackets are text',
  { attributes: { 'input.value': '['.repeat(1_000_000) } },
  { inputs: { input: '['.repeat(1_000_000) } },
);
judge(
  'values nested in 32 arrays are kept, in 33 dropped',
  { attributes: { 'langsmith.metadata.kept': nested(32), 'langsmith.metadata.dropped': nested(33) } },
  { metadata: { kept: nested(32), dropped: null } },
);

judge(
  'invalid UTF-8 is replaced, in values, keys, names and documents',
  {
    name: `n${BROKEN}`,
    attributes: {
      'langsmith.metadata.v': `a${BROKEN}b`,
      [`langsmith.metadata.k${BROKEN}`]: 1,
      'input.value': `{"x":"${BROKEN}"}`,
    },
  },
  {
    name: 'n\ufffd(\ufffd\ufffd(\ufffd',
    metadata: { v: 'a\ufffd(\ufffd\ufffd(\ufffdb', 'k\ufffd(\ufffd\ufffd(\ufffd': 1 },
    inputs: { x: '\ufffd(\ufffd\ufffd(\ufffd' },
  },
);
judge(
  'lone surrogates of documents are replaced where they are text, and left alone in source text',
  {
    attributes: {
      'input.value': '{"a":"\\ud800","\\udc00":"\\ud83d\\ude00"}',
      'gen_ai.output.messages':
        '[{"role":"assistant","parts":[{"type":"tool_call","name":"w","arguments":{"a":"\\ud800"}}]}]',
    },
  },
  {
    inputs: { a: '\ufffd', '\ufffd': '\u{1f600}' },
    outputs: {
      messages: [
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ type: 'function', function: { name: 'w', arguments: '{"a":"\\ud800"}' } }],
        },
      ],
    },
  },
);
judge(
  'control characters, line separators and a byte order mark survive',
  { attributes: { 'input.value': '\ufeff\u0000\u001f\u007f\u2028\u2029"\\/', 'input.mime_type': 'text/plain' } },
  { inputs: { input: '\ufeff\u0000\u001f\u007f\u2028\u2029"\\/' } },
);
judge(
  'names that need escapes',
  { name: '"\\\n', status: { code: 2, message: '"\u0007' }, attributes: { 'langsmith.metadata.a"b': 1 } },
  { name: '"\\\n', error: '"\u0007', metadata: { 'a"b': 1 } },
);

judge(
  'an empty JSON string is nothing, for a retriever too',
  { attributes: { 'openinference.span.kind': 'RETRIEVER', 'input.value': '""' } },
  { inputs: null },
);
judge(
  'a choice whose message is no list of parts keeps the tool calls beside it',
  {
    events: [
      {
        name: 'gen_ai.choice',
        attributes: { message: '[{"type":"tool_call"},0]', tool_calls: '[{"id":"c1","name":"w"}]' },
      },
    ],
  },
  {
    outputs: {
      choices: [
        {
          message: {
            role: 'assistant',
            content: '[{"type":"tool_call"},0]',
            tool_calls: [{ id: 'c1', type: 'function', function: { name: 'w' } }],
          },
        },
      ],
    },
  },
);

test('escapes in ids, times, enums, numbers and base64 are JSON like anywhere', () => {
  const attribute = (key: string, value: string): string => `{"key":"langsmith.metadata.${key}","value":${value}}`;
  const body = (traceId: string, spanId: string): string =>
    `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"${traceId}","spanId":"${spanId}","\\u006eame":"s",` +
    `"startTimeUnixNano":"\\u0031747675155185223936","kind":"SPAN_KIND_\\u0043LIENT","attributes":[` +
    `${attribute('bytes', '{"bytesValue":"AA\\/\\/"}')},${attribute('int', '{"intValue":"\\u0031"}')},` +
    `${attribute('double', '{"doubleValue":"1\\u002e5"}')}]}]}]}]}`;
  const slashes = (lengthBytes: number): string =>
    Buffer.alloc(lengthBytes, 0xff).toString('base64').replaceAll('/', '\\/');
  for (const text of [body(slashes(16), slashes(8)), body('\\u0066'.repeat(32), 'f'.repeat(15) + '\\u0046')]) {
    for (const translate of jsonTranslators) {
      const [record] = translate(Buffer.from(text)).records;
      assert.equal(record?.traceId, 'f'.repeat(32));
      assert.equal(record.spanId, 'f'.repeat(16));
      assert.equal(record.startUs, 1747675155185223);
      const metadata = record.extra?.get('metadata');
      assert.ok(metadata instanceof Map);
      assert.equal(metadata.get('otel_span_kind'), 'client');
      assert.equal(textOf(['bytes', 'int', 'double'].map((key) => metadata.get(key))), textOf(['AA//', 1, 1.5]));
    }
  }
});

test('times of zero, reversed and beyond doubles do no harm', () => {
  const cases: [SpanSpec, number, number | null][] = [
    [{ startNs: 0n, endNs: 5_000n }, 5, 5],
    [{ startNs: 0n, endNs: 0n }, defaultSettings.receivedUs, null],
    [{ startNs: 9_999n, endNs: 1_000n }, 9, 9],
    [{ startNs: 999n, endNs: 1n }, 0, 0],
  ];
  for (const side of sides) {
    for (const [spec, startUs, endUs] of cases) {
      const [record] = side.translate([spec]).records;
      assert.deepEqual([record?.startUs, record?.endUs], [startUs, endUs], side.title);
    }
    const [late] = side.translate([{ startNs: 2n ** 64n - 1n, endNs: 2n ** 64n - 1n }]).records;
    assert.ok((late?.startUs ?? 0) >= 2 ** 53, side.title);
  }
});

test('arrays nested ten thousand deep are refused or dropped, and the next body is fine', () => {
  const decoder = createDecoder({ genericAttributes: true, rootRunId: 'trace', converterModule: null });
  let value: Buffer = Buffer.from([0x10, 1]); // a boolean
  const wrap = (field: number, body: Buffer): Buffer => {
    const length: number[] = [];
    for (let rest = body.length; ; rest >>>= 7) {
      if (rest < 0x80) {
        length.push(rest);
        break;
      }
      length.push((rest & 0x7f) | 0x80);
    }
    return Buffer.concat([Buffer.from([(field << 3) | 2, ...length]), body]);
  };
  for (let i = 0; i < 10_000; i++) value = wrap(5, wrap(1, value));
  const pair = wrap(9, Buffer.concat([wrap(1, Buffer.from('langsmith.metadata.deep')), wrap(2, value)]));
  const span = Buffer.concat([
    wrap(1, Buffer.alloc(16, 1)),
    wrap(2, Buffer.alloc(8, 1)),
    wrap(5, Buffer.from('s')),
    pair,
  ]);
  const body = wrap(1, wrap(2, wrap(2, span)));
  try {
    const { records } = decodeBody(decoder, body, 'protobuf', defaultSettings);
    assert.ok(!textOf(records).includes('deep'));
  } catch (error) {
    assert.ok(error instanceof MalformedBody, String(error));
  }
  const json = '{"arrayValue":{"values":['.repeat(10_000) + ']}}'.repeat(10_000);
  const text = `{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"a","value":${json}}]}]}]}]}`;
  assert.throws(() => decodeBody(decoder, Buffer.from(text), 'json', defaultSettings), MalformedBody);
  const [side] = sides.filter(({ title }) => title.startsWith('byte'));
  assert.equal(side?.translate([{ name: 'next' }]).records.length, 1);
});

for (const [what, body] of Object.entries({
  'not JSON': '{',
  'an array': '[]',
  'text after the document': '{} x',
  nothing: '',
  null: 'null',
})) {
  test(`a JSON body that is ${what} is malformed`, () => {
    const decoder = createDecoder({ genericAttributes: false, rootRunId: 'trace', converterModule: null });
    assert.throws(() => decodeBody(decoder, Buffer.from(body), 'json', defaultSettings), MalformedBody);
  });
}
test('requests without spans are requests', () => {
  const decoder = createDecoder({ genericAttributes: false, rootRunId: 'trace', converterModule: null });
  for (const body of ['{}', '{"resourceSpans":[]}', '{"resourceSpans":null}', '{"resourceSpans":5}']) {
    assert.equal(decodeBody(decoder, Buffer.from(body), 'json', defaultSettings).records.length, 0, body);
  }
  assert.equal(decodeBody(decoder, new Uint8Array(0), 'protobuf', defaultSettings).records.length, 0);
});
