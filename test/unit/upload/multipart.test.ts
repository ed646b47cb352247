import { test } from 'node:test';
import assert from 'node:assert/strict';
import { RecordView } from '../../../src/core/recordview.ts';
import { MultipartWriter } from '../../../src/upload/multipart.ts';
import { SPAN, START_US, TRACE_UUID, makeRecord } from '../assemble/fakes.ts';
import type { SpanSketch } from '../assemble/fakes.ts';

const ROOT_ORDER = `20250519T171915185223Z${TRACE_UUID}`;
const SPAN_UUID = '00000000-0000-0000-eee1-9b7ec3c1b174';
const CHILD_ORDER = `${ROOT_ORDER}.20250519T171915186000Z${SPAN_UUID}`;

function write(sketch: SpanSketch, order: string, endUs: number): string {
  const writer = new MultipartWriter('B');
  const record = new RecordView();
  record.open(makeRecord(sketch), 0);
  record.readParts();
  const target = Buffer.alloc(writer.boundBytes(record, order.length));
  const end = writer.write(target, 0, record, Buffer.from(order), order.length, endUs);
  return Buffer.concat([target.subarray(0, end), writer.closing]).toString('utf8');
}

function part(name: string, body: string, type = 'application/json'): string {
  const lengthBytes = Buffer.byteLength(body);
  return `--B\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: ${type}\r\nContent-Length: ${lengthBytes}\r\n\r\n${body}\r\n`;
}

test('a root run is one part with ids, order and times in front of what the translator wrote', () => {
  const run = `{"id":"${TRACE_UUID}","trace_id":"${TRACE_UUID}","dotted_order":"${ROOT_ORDER}","start_time":"2025-05-19T17:19:15.185223Z","end_time":"2025-05-19T17:19:15.186223Z","name":"${SPAN}","run_type":"chain"}`;
  assert.equal(write({}, ROOT_ORDER, START_US + 1000), `${part(`post.${TRACE_UUID}`, run)}--B--\r\n`);
});

test('a child that has not ended names its parent and has no end time', () => {
  const run = `{"id":"${SPAN_UUID}","trace_id":"${TRACE_UUID}","parent_run_id":"${TRACE_UUID}","dotted_order":"${CHILD_ORDER}","start_time":"2025-05-19T17:19:15.186000Z","name":"${SPAN}","run_type":"chain"}`;
  assert.equal(write({}, CHILD_ORDER, Number.NaN), `${part(`post.${SPAN_UUID}`, run)}--B--\r\n`);
});

test('fields follow in the order of the SDKs, their lengths counted in bytes', () => {
  const parts = {
    Inputs: '{"q":"héllo"}',
    Outputs: '{"a":"😀"}',
    Events: '[{"name":"e"}]',
    Extra: '{"metadata":{}}',
    Error: '"bóom"',
    Serialized: '{"name":"s"}',
  };
  const text = write({ parts }, ROOT_ORDER, START_US);
  const fields = text.slice(text.indexOf('--B', 3));
  const id = `post.${TRACE_UUID}`;
  assert.equal(
    fields,
    part(`${id}.inputs`, parts.Inputs) +
      part(`${id}.outputs`, parts.Outputs) +
      part(`${id}.events`, parts.Events) +
      part(`${id}.extra`, parts.Extra) +
      part(`${id}.serialized`, parts.Serialized) +
      part(`${id}.error`, parts.Error) +
      '--B--\r\n',
  );
  assert.match(fields, /Content-Length: 14\r\n\r\n\{"q":"héllo"\}/);
});

function attachment(name: string, type: string, data: Uint8Array): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt16LE(Buffer.byteLength(name), 0);
  head.writeUInt16LE(Buffer.byteLength(type), 2);
  head.writeUInt32LE(data.length, 4);
  return Buffer.concat([head, Buffer.from(name), Buffer.from(type), data]);
}

test('attachments are raw parts of their own type, and nothing in a name breaks out of its header', () => {
  const Attachments = Buffer.concat([
    attachment('picture', 'image/png', Buffer.from('ABC')),
    attachment('a".b\r\nX-Evil: 1', 'text/plain\r\nX-Evil: 2', Buffer.from('')),
  ]);
  const text = write({ parts: { Attachments } }, ROOT_ORDER, START_US);
  const fields = text.slice(text.indexOf('--B', 3));
  assert.equal(
    fields,
    part(`attachment.${TRACE_UUID}.picture`, 'ABC', 'image/png') +
      part(`attachment.${TRACE_UUID}.a__b__X-Evil: 1`, '', 'text/plainX-Evil: 2') +
      '--B--\r\n',
  );
});

test('two writers never share a boundary, and it is short enough for the header', () => {
  const [one, two] = [new MultipartWriter(), new MultipartWriter()];
  assert.notEqual(one.boundary, two.boundary);
  assert.ok(one.boundary.length <= 70);
});
