import assert from 'node:assert/strict';
import { test } from 'node:test';
import { writeMultipart } from '../../src/backend/form.ts';
import { boundaryOf, type MultipartOutcome, readMultipart } from '../../src/backend/multipart.ts';

const LIMITS = { maxPartCount: 100, maxHeaderBytes: 1000 };

function read(text: string, boundary = 'B', limits = LIMITS): MultipartOutcome {
  return readMultipart(Buffer.from(text), boundary, limits);
}

function partsIn(outcome: MultipartOutcome): [name: string, type: string, text: string][] {
  assert.ok(outcome.kind === 'parts', outcome.kind === 'unreadable' ? outcome.message : '');
  return outcome.parts.map((part) => [part.name, part.mediaType, Buffer.from(part.bytes).toString()]);
}

function refusalOf(outcome: MultipartOutcome): string {
  assert.equal(outcome.kind, 'unreadable');
  return outcome.kind === 'unreadable' ? outcome.message : '';
}

const PART =
  '--B\r\nContent-Disposition: form-data; name="a"\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi\r\n';

test('Reads the example of the format, bytes counted as UTF-8.', () => {
  const body =
    '------LangSmithFormBoundary-3k9q2z\r\n' +
    'Content-Disposition: form-data; name="post.0af76519-16cd-43dd-8448-eb211c80319c.inputs"\r\n' +
    'Content-Type: application/json\r\nContent-Length: 14\r\n\r\n{"q":"héllo"}\r\n' +
    '------LangSmithFormBoundary-3k9q2z--\r\n';
  assert.deepEqual(partsIn(read(body, '----LangSmithFormBoundary-3k9q2z')), [
    ['post.0af76519-16cd-43dd-8448-eb211c80319c.inputs', 'application/json', '{"q":"héllo"}'],
  ]);
});

test('A part may declare its length as a parameter of its content type.', () => {
  const body =
    '--B\r\nContent-Disposition: form-data; name="a"\r\nContent-Type: application/json; length=2\r\n\r\n{}\r\n--B--';
  assert.deepEqual(partsIn(read(body)), [['a', 'application/json', '{}']]);
});

test('Parts are views into the body, not copies.', () => {
  const body = Buffer.from(`${PART}--B--`);
  const outcome = readMultipart(body, 'B', LIMITS);
  assert.ok(outcome.kind === 'parts');
  assert.equal(outcome.parts[0]?.bytes.buffer, body.buffer);
});

test('Preamble, epilogue, blanks after a boundary, and a payload that looks like one are as MIME has them.', () => {
  const payload = 'x\r\n--Bee\r\n--B -\r\ny';
  const body =
    `to be ignored\r\n--B \t\r\nContent-Disposition: form-data; name="a"\r\nContent-Type: text/plain\r\n` +
    `Content-Length: ${payload.length}\r\n\r\n${payload}\r\n--B-- \r\nignored too\r\n--B\r\n`;
  assert.deepEqual(partsIn(read(body)), [['a', 'text/plain', payload]]);
});

test('A form without parts is a form; empty payloads are payloads.', () => {
  assert.deepEqual(partsIn(read('--B--\r\n')), []);
  const empty = PART.replace('Length: 2', 'Length: 0').replace('hi', '');
  assert.deepEqual(partsIn(read(`${empty}--B--`)), [['a', 'text/plain', '']]);
});

test('A body that ends before the final boundary says so, wherever it is cut.', () => {
  const whole = `${PART}${PART}--B--`;
  for (let length = 0; length < whole.length; length++) {
    assert.equal(refusalOf(read(whole.slice(0, length))), 'multipart: NextPart: EOF', `cut at ${length}`);
  }
  assert.equal(partsIn(read(whole)).length, 2);
});

test('Type, length and name are required on every part.', () => {
  const without = (line: RegExp): string => refusalOf(read(`${PART.replace(line, '')}--B--`));
  assert.equal(without(/Content-Type: .*\r\n/), 'multipart: part "a" has no content type');
  assert.equal(without(/Content-Length: .*\r\n/), 'multipart: part "a" has no content length');
  assert.equal(without(/Content-Disposition: .*\r\n/), 'multipart: part 0 has no name');
  assert.equal(without(/; name="a"/), 'multipart: part 0 has no name');
  assert.equal(refusalOf(read('--B\r\n\r\nhi\r\n--B--')), 'multipart: part 0 has no name');
});

test('A declared length that is not the found one is refused, with both.', () => {
  for (const length of [0, 1, 3, 999_999]) {
    const body = `${PART.replace('Length: 2', `Length: ${length}`)}--B--`;
    assert.equal(refusalOf(read(body)), `multipart: part "a" declares ${length} bytes and has 2`);
  }
  for (const length of ['-1', '2x', '1e1', '99999999999999999999', '']) {
    const body = `${PART.replace('Length: 2', `Length: ${length}`)}--B--`;
    assert.match(refusalOf(read(body)), /bad content length/);
  }
  const twice = PART.replace('text/plain', 'text/plain; length=3');
  assert.match(refusalOf(read(`${twice}--B--`)), /declares two lengths/);
});

test('Malformed headers are refused.', () => {
  const broken = [
    PART.replace('Content-Type:', 'Content-Type'),
    PART.replace('Content-Type:', ': '),
    PART.replace('form-data', 'attachment'),
    PART.replace('name="a"', 'name="a"; name="b"'),
    PART.replace('name="a"', 'name="a'),
    PART.replace('Content-Type: text/plain', 'Content-Type: text/plain\r\nContent-Type: text/html'),
    PART.replace('Content-Type: text/plain', 'Content-Type: '),
    PART.replace('Content-Type: text/plain', 'Content-Type: ;x=y'),
  ];
  for (const part of broken) assert.match(refusalOf(read(`${part}--B--`)), /^multipart: /, part);
});

test('Names may be quoted with escapes, unquoted, and beside other parameters.', () => {
  const named = (disposition: string): string | undefined =>
    partsIn(read(`${PART.replace('name="a"', disposition)}--B--`))[0]?.[0];
  assert.equal(named('name="a\\"b\\\\c"'), 'a"b\\c');
  assert.equal(named('name=plain'), 'plain');
  assert.equal(named('filename="f.bin"; NAME="a"; '), 'a');
});

test('The number of parts and the length of headers are bounded.', () => {
  const three = PART.repeat(3);
  assert.match(refusalOf(read(`${three}--B--`, 'B', { ...LIMITS, maxPartCount: 2 })), /more than 2 parts/);
  const long = PART.replace('Content-Type', `X-Long: ${'x'.repeat(2000)}\r\nContent-Type`);
  assert.match(refusalOf(read(`${long}--B--`)), /longer than 1000 bytes/);
});

test('The boundary comes from the content type, quoted or not, at most 70 characters.', () => {
  assert.equal(boundaryOf('multipart/form-data; boundary=abc'), 'abc');
  assert.equal(boundaryOf('Multipart/Form-Data; charset=utf-8; Boundary="a b\'()c"'), "a b'()c");
  assert.equal(boundaryOf(`multipart/form-data; boundary=${'x'.repeat(70)}`)?.length, 70);
  for (const wrong of [
    '',
    'multipart/form-data',
    'multipart/mixed; boundary=abc',
    'application/json',
    'multipart/form-data; boundary=',
    'multipart/form-data; boundary="ends in a blank "',
    'multipart/form-data; boundary="a\u00e9"',
    `multipart/form-data; boundary=${'x'.repeat(71)}`,
  ]) {
    assert.equal(boundaryOf(wrong), null, wrong);
  }
});

test('What the writer writes, the reader reads.', () => {
  const parts = [
    { name: 'attachment.x."quoted"', mediaType: 'image/png', bytes: Buffer.from([0, 13, 10, 45, 45, 66, 255]) },
    { name: 'b', mediaType: 'application/json', bytes: Buffer.from('{}') },
  ];
  const outcome = readMultipart(writeMultipart(parts, 'boundary'), 'boundary', LIMITS);
  assert.deepEqual(
    partsIn(outcome),
    parts.map((part) => [part.name, part.mediaType, part.bytes.toString()]),
  );
});
