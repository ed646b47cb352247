/** CONVERTER_MODULE as an operator meets it: a file that exports a function. */
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { Part, PART_COUNT, RECORD_HEADER_BYTES, RecordFlag, RecordOffset } from '../../src/core/record.ts';
import { createDecoder, type DecodeOutcome } from '../../src/decode/decoder.ts';
import { parseExact, renderExact } from '../../src/translate/exactjson.ts';
import { END_NS, jsonOf, protobufOf, SPAN_ID, spanOf, START_NS, TRACE_ID, type SpanSpec } from '../oracle/emit.ts';

const folder = mkdtempSync(join(tmpdir(), 'converter-'));
after(() => rmSync(folder, { recursive: true }));
let fileCount = 0;

function moduleFile(source: string, extension = 'ts'): string {
  const file = join(folder, `converter-${fileCount++}.${extension}`);
  writeFileSync(file, source);
  return file;
}

interface Decoded {
  readonly outcome: DecodeOutcome;
  readonly records: Buffer[];
}

function decode(
  converterModule: string | null,
  specs: readonly SpanSpec[],
  { encoding = 'protobuf', project = null }: { encoding?: 'protobuf' | 'json'; project?: string | null } = {},
): Decoded {
  const decoder = createDecoder({ genericAttributes: false, rootRunId: 'trace', converterModule });
  const spans = specs.map(spanOf);
  const records: Buffer[] = [];
  const outcome = decoder.decode(
    {
      source: encoding === 'json' ? jsonOf(spans) : protobufOf(spans),
      encoding,
      apiKey: Buffer.from('key'),
      project,
      receivedUs: 1,
      sourceNumber: 7,
    },
    {
      put: (bytes, offset, lengthBytes) => {
        records.push(Buffer.from(bytes.subarray(offset, offset + lengthBytes)));
        return true;
      },
    },
  );
  return { outcome, records };
}

/** With the converter in `body`, a function's body with `span` and `run`. */
function convert(body: string, spec: SpanSpec = {}, options?: Parameters<typeof decode>[2]): Decoded {
  return decode(moduleFile(`export default (span, run) => { ${body} };`, 'mjs'), [spec], options);
}

function part(record: Buffer | undefined, index: number): string {
  assert.ok(record !== undefined);
  let at = RECORD_HEADER_BYTES;
  for (let i = 0; i < index; i++) at += record.readUInt32LE(RecordOffset.PartLengths + 4 * i);
  return record.toString('utf8', at, at + record.readUInt32LE(RecordOffset.PartLengths + 4 * index));
}

function headOf(record: Buffer | undefined): Record<string, unknown> {
  return JSON.parse(`{${part(record, Part.Head)}}`) as Record<string, unknown>;
}

function flagsOf(record: Buffer | undefined): number {
  return record?.readUInt32LE(RecordOffset.Flags) ?? 0;
}

/** The span came out as nothing but its place, and the outcome says why; `reason` is for the log. */
function assertFailed({ outcome, records }: Decoded, reason: RegExp): void {
  assert.ok(outcome.kind === 'decoded');
  assert.equal(outcome.acceptedCount, records.length);
  assert.equal(outcome.rejectedCount, 0);
  assert.equal(outcome.message, '1 span: converter failed, dropped');
  assert.match(outcome.converterFailure ?? '', reason);
  const flags = flagsOf(records[0]);
  assert.equal(flags & (RecordFlag.ConverterFailed | RecordFlag.ConverterDropped), RecordFlag.ConverterFailed);
}

const CHAT: SpanSpec = {
  name: 'chat',
  kind: 3,
  parentSpanId: '0102030405060708',
  scopeName: 'my-scope',
  resource: { 'service.name': 'shop' },
  attributes: {
    'gen_ai.operation.name': 'chat',
    'gen_ai.prompt': '{"question":"how many?","id":12345678901234567890,"ratio":1.50}',
    'gen_ai.completion': '{"answer":"two"}',
    'langsmith.span.tags': 'a, b',
    'langsmith.attachments': '[{"name":"note","content":"aGk=","mime_type":"text/plain"}]',
  },
  events: [{ name: 'cache miss', attributes: { key: 'k' } }],
};

test('a converter that returns the run as it is changes no byte of any part', () => {
  for (const encoding of ['protobuf', 'json'] as const) {
    const plain = decode(null, [CHAT], { encoding });
    const converted = convert('return run;', CHAT, { encoding });
    assert.deepEqual(converted.outcome, plain.outcome);
    assert.deepEqual(converted.records, plain.records);
    assert.match(part(converted.records[0], Part.Inputs), /12345678901234567890/);
    assert.match(part(converted.records[0], Part.Inputs), /1\.50/);
  }
});

test('the converter sees the span, values decoded, nanoseconds exact', () => {
  const attributes = {
    text: 'ü',
    yes: true,
    count: 3,
    big: 2n ** 60n,
    half: 0.5,
    infinite: Number.POSITIVE_INFINITY,
    unset: null,
    bytes: Uint8Array.of(1, 2),
    list: ['x', 1, null],
    map: { inner: [true] },
  };
  const spec: SpanSpec = {
    name: 'op',
    kind: 2,
    parentSpanId: '0102030405060708',
    status: { code: 2, message: 'broken' },
    scopeName: 'my-scope',
    resource: { 'service.name': 'shop' },
    attributes: [...Object.entries(attributes), ['__proto__', 'data'], ['count', 4]],
    events: [{ name: 'event', timeNs: START_NS + 1n, attributes: { a: 1 } }],
    links: [{ traceId: TRACE_ID, spanId: SPAN_ID, attributes: { b: 'c' } }],
  };
  const seen =
    "const shown = JSON.stringify(span, (key, value) => typeof value === 'bigint' ? `${value}n` : value);" +
    'return { ...run, inputs: JSON.parse(shown) };';
  for (const encoding of ['protobuf', 'json'] as const) {
    const { records } = convert(seen, spec, { encoding, project: 'mine' });
    const expected = {
      traceId: TRACE_ID,
      spanId: SPAN_ID,
      parentSpanId: '0102030405060708',
      traceState: '',
      name: 'op',
      kind: 'server',
      startTimeUnixNano: `${START_NS}n`,
      endTimeUnixNano: `${END_NS}n`,
      attributes: {
        text: 'ü',
        yes: true,
        count: 4,
        big: '1152921504606846976',
        half: 0.5,
        bytes: 'AQI=',
        list: ['x', 1, null],
        map: { inner: [true] },
        ['__proto__']: 'data',
      },
      events: [{ name: 'event', timeUnixNano: `${START_NS + 1n}n`, attributes: { a: 1 } }],
      links: [{ traceId: TRACE_ID, spanId: SPAN_ID, traceState: '', attributes: { b: 'c' } }],
      status: { code: 'error', message: 'broken' },
      resource: { attributes: { 'service.name': 'shop' } },
      scope: { name: 'my-scope', version: '', attributes: {} },
      project: 'mine',
    };
    assert.deepEqual(JSON.parse(part(records[0], Part.Inputs)), expected);
  }
});

test('the default run is handed over with everything in it, and each member can be changed', () => {
  const { records, outcome } = convert(
    `const { metadata } = run.extra;
    if (run.name !== 'chat' || run.run_type !== 'llm' || run.status !== 'success') throw new Error('head');
    if (run.inputs.id !== 12345678901234567890n || run.outputs.answer !== 'two') throw new Error('inputs, outputs');
    if (run.tags.join() !== 'a,b' || run.events[0].name !== 'cache miss') throw new Error('tags, events');
    if (run.attachments.note[0] !== 'text/plain' || run.attachments.note[1].join() !== '104,105') throw new Error('attachments');
    run.name = 'renamed';
    run.run_type = 'tool';
    run.status = 'error';
    run.error = 'as the converter says';
    run.inputs.question = 'changed';
    run.outputs = null;
    run.tags.push('c');
    run.session_name = 'elsewhere';
    run.extra = { metadata: { ...metadata, seen: true } };
    run.attachments.picture = ['image/png', new Uint8Array([1])];
    delete run.events;
    return run;`,
    CHAT,
  );
  assert.deepEqual(outcome, { kind: 'decoded', acceptedCount: 1, rejectedCount: 0, message: '' });
  const [record] = records;
  assert.deepEqual(headOf(record), {
    name: 'renamed',
    run_type: 'tool',
    status: 'error',
    session_name: 'elsewhere',
    tags: ['a', 'b', 'c'],
  });
  assert.equal(part(record, Part.Inputs), '{"question":"changed","id":12345678901234567890,"ratio":1.5}');
  assert.equal(part(record, Part.Outputs), '');
  assert.equal(part(record, Part.Events), '');
  assert.equal(part(record, Part.Error), '"as the converter says"');
  const extra = JSON.parse(part(record, Part.Extra)) as { metadata: Record<string, unknown> };
  assert.equal(extra.metadata['seen'], true);
  assert.equal(extra.metadata['OTEL_SPAN_ID'], SPAN_ID);
  assert.match(part(record, Part.Attachments), /note.*text\/plainhi.*pictureimage\/png/s);
  assert.equal(part(record, Part.Key), 'key');
  assert.equal(record?.length, record?.readUInt32LE(RecordOffset.TotalBytes));
});

test('of project name and id the one that the converter changed is sent', () => {
  const id = '11111111-2222-3333-4444-555555555555';
  const byId: SpanSpec = { attributes: { 'langsmith.trace.session_id': id } };
  const head = (body: string, spec?: SpanSpec): Record<string, unknown> => headOf(convert(body, spec).records[0]);
  assert.equal(head(`run.session_id = '${id}'; return run;`)['session_id'], id);
  assert.equal('session_name' in head(`run.session_id = '${id}'; return run;`), false);
  assert.equal(head("run.session_name = 'named'; return run;", byId)['session_name'], 'named');
  assert.equal('session_id' in head("run.session_name = 'named'; return run;", byId), false);
  assert.equal(head("return { name: 'n', run_type: 'chain', status: 'success' };", byId)['session_id'], id);
});

test('null drops the span: its record keeps its place alone, and it counts as accepted', () => {
  const { outcome, records } = convert('return null;', CHAT);
  assert.deepEqual(outcome, { kind: 'decoded', acceptedCount: 1, rejectedCount: 0, message: '' });
  const [record] = records;
  const flags = flagsOf(record);
  assert.ok((flags & RecordFlag.ConverterDropped) !== 0 && (flags & RecordFlag.HasParent) !== 0);
  assert.equal(part(record, Part.Key), 'key');
  for (let i = Part.Head; i < PART_COUNT; i++) assert.equal(part(record, i), '');
});

test('a converter that throws loses that span alone', () => {
  const file = moduleFile(
    "export function convert(span, run) { if (span.name === 'bad') throw new Error('no idea'); run.name += '!'; return run; }",
    'mjs',
  );
  const { outcome, records } = decode(file, [
    { name: 'one' },
    { name: 'bad', spanId: '0000000000000002' },
    { name: 'two', spanId: '0000000000000003' },
  ]);
  assert.ok(outcome.kind === 'decoded');
  assert.equal(outcome.acceptedCount, 3);
  assert.match(outcome.converterFailure ?? '', /no idea[^]*converter-\d+\.mjs/);
  assert.deepEqual(
    records.map((record) => flagsOf(record) & RecordFlag.ConverterFailed),
    [0, RecordFlag.ConverterFailed, 0],
  );
  assert.equal(headOf(records[0])['name'], 'one!');
  assert.equal(headOf(records[2])['name'], 'two!');
});

test('whatever is thrown is a failure', () => {
  for (const thrown of ['undefined', "'text'", 'Object.create(null)', 'Symbol()', '{ stack: 1 }']) {
    assertFailed(convert(`throw ${thrown};`), /./);
  }
});

test('a result that is no run is a failure which names what is wrong', () => {
  const cases: readonly (readonly [string, RegExp])[] = [
    ['', /undefined.*must return a run, or null/i],
    ['return 5;', /a number/],
    ['return [run];', /an array/],
    ["return { ...run, name: '' };", /"name" must be a string, not empty/],
    ["return { ...run, run_type: 'agent' };", /"run_type" must be one of tool, chain/],
    ["return { ...run, status: 'ok' };", /"status" must be one of success/],
    ["return { ...run, inputs: 'text' };", /"inputs" must be a plain object/],
    ['return { ...run, outputs: [1] };', /"outputs" must be a plain object/],
    ['return { ...run, events: [1] };', /"events" must be an array of plain objects/],
    ["return { ...run, tags: 'a' };", /"tags" must be an array of strings/],
    ['return { ...run, error: new Error() };', /"error" must be a string/],
    ["return { ...run, session_id: 'x' };", /"session_id" must be a UUID/],
    ["return { ...run, id: 'x' };", /"id" is not a converter's to set; there are name, run_type/],
    ['run.inputs = {}; run.inputs.self = run.inputs; return run;', /circular/],
    ["return { ...run, inputs: { toJSON: () => 'text' } };", /inputs is "text" as JSON/],
    ["return { ...run, attachments: { 'a.b': ['text/plain', new Uint8Array(1)] } };", /"a\.b"/],
    ["return { ...run, attachments: { a: 'text' } };", /MIME type and bytes for "a"/],
  ];
  for (const [body, reason] of cases) assertFailed(convert(body), reason);
});

test('a returned promise is a failure, and its rejection ends nothing', async () => {
  assertFailed(convert('return Promise.resolve(run);'), /returned a promise; it must be synchronous/);
  assertFailed(convert("return Promise.reject(new Error('late'));"), /returned a promise/);
  // An unhandled rejection would fail this test.
  await new Promise((resolve) => setImmediate(resolve));
});

test('a span that is invalid never reaches the converter', () => {
  const { outcome, records } = convert("throw new Error('called');", { spanId: '' });
  assert.deepEqual(outcome, {
    kind: 'decoded',
    acceptedCount: 0,
    rejectedCount: 1,
    message: '1 span: invalid span id',
  });
  assert.equal(records.length, 0);
});

test('text that is no Unicode leaves as what can be sent', () => {
  const { records } = convert(
    "return { ...run, name: 'a\\ud800', inputs: { 'k\\udfff': '\\\\ud800 \\ud83d\\ude00' } };",
  );
  assert.equal(headOf(records[0])['name'], 'a\ufffd');
  assert.deepEqual(JSON.parse(part(records[0], Part.Inputs)), { 'k\ufffd': '\\ud800 \u{1f600}' });
});

test('JSON goes to objects and back with every digit of its integers', () => {
  const text =
    '{"a":[12345678901234567890,-9007199254740993,9007199254740991,0.1234567890123456789],"__proto__":{"b":1}}';
  assert.equal(renderExact(parseExact(text)), text.replace('0.1234567890123456789', '0.12345678901234568'));
});

test('integers stay exact wherever they stand, also beside strings and fractions that look like them', () => {
  const text = '{"a":"1234567890123456789","b":0.12345678901234566,"c":[ -9007199254740993,9007199254740993],"d":\n';
  for (const last of ['9007199254740993}', ' -9007199254740993}', '{"9007199254740993":9007199254740993}}']) {
    const exact = `${text}${last}`;
    assert.equal(renderExact(parseExact(exact)), exact.replaceAll(/\s/g, ''));
  }
  assert.equal(parseExact('9007199254740993'), 9007199254740993n);
  assert.equal(parseExact('-9007199254740993'), -9007199254740993n);
});

test('a document without long integers is read and written without a call for every value', (context) => {
  const parse = context.mock.method(JSON, 'parse');
  const stringify = context.mock.method(JSON, 'stringify');
  const text = '{"id":"01234567890123456789","score":0.12345678901234566,"lists":[[],[],[1,2,[]]]}';
  assert.equal(renderExact(parseExact(text)), text);
  assert.deepEqual(
    [...parse.mock.calls, ...stringify.mock.calls].map((call) => call.arguments.length),
    [1, 1],
  );
});

test('what there is no JSON of is told, with a bigint and without', () => {
  const circle: unknown[] = [1n];
  circle.push(circle);
  assert.throws(() => renderExact(circle), /^TypeError: Converting circular structure/);
  assert.throws(() => renderExact({ toJSON: () => undefined, a: 1n }), /^TypeError: a object is no JSON/);
  assert.equal(renderExact({ a: 1n, b: { toJSON: () => [2n, 'x'] } }), '{"a":1,"b":[2,"x"]}');
});

test('default goes before convert, and TypeScript and CommonJS load too', () => {
  const both = moduleFile(
    "export const convert = () => null; export default (s, run) => ({ ...run, name: 'default' });",
    'mjs',
  );
  const typed = moduleFile(
    "export const convert = (span: { name: string }, run: object): object => ({ ...run, name: 'typed ' + span.name });",
  );
  const common = moduleFile("module.exports = (span, run) => ({ ...run, name: 'common' });", 'cjs');
  const nameBy = (file: string): unknown => headOf(decode(file, [{ name: 'x' }]).records[0])['name'];
  assert.deepEqual([both, typed, common].map(nameBy), ['default', 'typed x', 'common']);
});

test('the example in the README works', () => {
  const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
  const source = /## Extension point[^]*?```ts\n([^]*?)```/.exec(readme)?.[1];
  assert.ok(source !== undefined);
  const { outcome, records } = decode(moduleFile(source), [
    { attributes: { 'http.route': '/healthz' } },
    {
      spanId: '0000000000000002',
      scopeName: 'acme.agents',
      resource: { 'service.name': 'shop' },
      attributes: { 'acme.question': 'how many?', 'acme.answer': 'two' },
    },
    { spanId: '0000000000000003', attributes: { 'input.value': '{"email":"a@example.com"}' } },
  ]);
  assert.deepEqual(outcome, { kind: 'decoded', acceptedCount: 3, rejectedCount: 0, message: '' });
  assert.ok((flagsOf(records[0]) & RecordFlag.ConverterDropped) !== 0);
  const { run_type, tags } = headOf(records[1]);
  assert.deepEqual({ run_type, tags }, { run_type: 'llm', tags: ['shop'] });
  assert.equal(part(records[1], Part.Inputs), '{"question":"how many?"}');
  assert.equal(part(records[2], Part.Inputs), '{"email":"…"}');
});

test('a module without a converter in it stops the start with its file and the reason', () => {
  const refused = (file: string, reason: RegExp): void => {
    const start = (): unknown => createDecoder({ genericAttributes: false, rootRunId: 'trace', converterModule: file });
    assert.throws(start, (error: Error) => {
      assert.ok(error.message.startsWith(`CONVERTER_MODULE ${file} `), error.message);
      assert.match(error.message, reason);
      assert.ok(!error.message.includes('\n'), error.message);
      return true;
    });
  };
  refused(join(folder, 'missing.ts'), /does not load: Cannot find module/);
  refused(moduleFile('export default {};', 'mjs'), /must export a function as `default` or `convert`/);
  refused(moduleFile('export const other = () => null;', 'mjs'), /must export a function/);
  refused(moduleFile('export default async () => null;', 'mjs'), /async function; a converter must be synchronous/);
  refused(moduleFile("throw new Error('not today');", 'mjs'), /does not load: not today/);
  refused(moduleFile('export default (', 'mjs'), /does not load: .+/);
  refused(moduleFile("import './nowhere.ts'; export default () => null;", 'mjs'), /does not load: Cannot find module/);
});
