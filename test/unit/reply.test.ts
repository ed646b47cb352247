/** Answers are encoded by hand; here a protobuf library reads them back, and the JSON form is compared as a value. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import protobuf from 'protobufjs';
import { replyTo, type Reply } from '../../src/accept/reply.ts';
import type { Admission, BusyCode, RefusalCode } from '../../src/core/outcome.ts';

const { root } = protobuf.parse(`
  syntax = "proto3";
  message Any { string type_url = 1; bytes value = 2; }
  message Status { int32 code = 1; string message = 2; repeated Any details = 3; }
  message Duration { int64 seconds = 1; int32 nanos = 2; }
  message RetryInfo { Duration retry_delay = 1; }
  message BadRequest {
    message FieldViolation { string field = 1; string description = 2; }
    repeated FieldViolation field_violations = 1;
  }
  message ExportTracePartialSuccess { int64 rejected_spans = 1; string error_message = 2; }
  message ExportTraceServiceResponse { ExportTracePartialSuccess partial_success = 1; }
`);

function decode(type: string, bytes: Uint8Array): Record<string, unknown> {
  const message = root.lookupType(type);
  return message.toObject(message.decode(bytes), { longs: Number, bytes: Array });
}

function bytesOf(reply: Reply): Uint8Array {
  assert.equal(typeof reply.body, 'object');
  return reply.body as Uint8Array;
}

function status(reply: Reply): Record<string, unknown> {
  const { details, ...rest } = decode('Status', bytesOf(reply)) as {
    details?: { typeUrl: string; value: number[] }[];
  };
  return {
    ...rest,
    details: (details ?? []).map(({ typeUrl, value }) => {
      const type = typeUrl.replace('type.googleapis.com/google.rpc.', '');
      return { type, ...decode(type, Uint8Array.from(value)) };
    }),
  };
}

const accepted: Admission = { kind: 'accepted', acceptedCount: 3, rejectedCount: 0, message: '' };

test('full success is a body of no bytes in protobuf and an empty object in JSON', () => {
  assert.deepEqual(
    { ...replyTo(accepted, 'protobuf'), body: [...bytesOf(replyTo(accepted, 'protobuf'))] },
    {
      status: '200 OK',
      contentType: 'application/x-protobuf',
      body: [],
      retryAfterSeconds: 0,
      headers: [],
    },
  );
  assert.equal(replyTo(accepted, 'json').body, '{}');
  assert.equal(replyTo(accepted, 'json').contentType, 'application/json');
});

test('partial success tells how many spans were rejected and why', () => {
  const partial: Admission = { kind: 'accepted', acceptedCount: 5, rejectedCount: 300, message: 'bad id' };
  assert.deepEqual(decode('ExportTraceServiceResponse', bytesOf(replyTo(partial, 'protobuf'))), {
    partialSuccess: { rejectedSpans: 300, errorMessage: 'bad id' },
  });
  assert.deepEqual(JSON.parse(replyTo(partial, 'json').body as string), {
    partialSuccess: { rejectedSpans: '300', errorMessage: 'bad id' },
  });
  const three: Admission = { kind: 'accepted', acceptedCount: 5, rejectedCount: 3, message: 'bad id' };
  const published = '0a0a080312066261642069 64'.replace(' ', '');
  assert.equal(Buffer.from(bytesOf(replyTo(three, 'protobuf'))).toString('hex'), published);
});

test('a warning without rejected spans is a message alone', () => {
  const warned: Admission = { kind: 'accepted', acceptedCount: 5, rejectedCount: 0, message: 'parent ids were odd' };
  assert.deepEqual(JSON.parse(replyTo(warned, 'json').body as string), {
    partialSuccess: { errorMessage: 'parent ids were odd' },
  });
  assert.deepEqual(decode('ExportTraceServiceResponse', bytesOf(replyTo(warned, 'protobuf'))), {
    partialSuccess: { errorMessage: 'parent ids were odd' },
  });
});

test('every refusal has its status, its google.rpc code and its headers, the same in both encodings', () => {
  const expected: Record<RefusalCode, [status: string, code: number, header?: string]> = {
    malformed: ['400 Bad Request', 3],
    unauthenticated: ['401 Unauthorized', 16, 'WWW-Authenticate'],
    forbidden: ['403 Forbidden', 7],
    'not-found': ['404 Not Found', 12],
    'method-not-allowed': ['405 Method Not Allowed', 12, 'Allow'],
    'body-too-large': ['413 Content Too Large', 3],
    'unsupported-media-type': ['415 Unsupported Media Type', 3],
    'unsupported-coding': ['415 Unsupported Media Type', 3, 'Accept-Encoding'],
    internal: ['500 Internal Server Error', 13],
    'set-aside': ['400 Bad Request', 3],
  };
  for (const [code, [statusLine, rpcCode, header]] of Object.entries(expected)) {
    const refusal: Admission = { kind: 'refused', code: code as RefusalCode, message: `because ${code} ü` };
    const details =
      code === 'malformed' || code === 'set-aside' ? [{ field: 'body', description: `because ${code} ü` }] : [];
    const binary = replyTo(refusal, 'protobuf');
    assert.equal(binary.status, statusLine);
    assert.deepEqual(
      binary.headers.map(([name]) => name),
      header === undefined ? [] : [header],
    );
    assert.deepEqual(status(binary), {
      code: rpcCode,
      message: `because ${code} ü`,
      details: details.map((violation) => ({ type: 'BadRequest', fieldViolations: [violation] })),
    });
    const json = replyTo(refusal, 'json');
    assert.equal(json.status, statusLine);
    assert.deepEqual(JSON.parse(json.body as string), {
      code: rpcCode,
      message: `because ${code} ü`,
      ...(details.length > 0 && {
        details: [{ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: details }],
      }),
    });
  }
});

test('every kind of overload is 503 with a short wait, in the header and in the body', () => {
  const codes: BusyCode[] = [
    'in-flight-limit',
    'rings-full',
    'starting',
    'draining',
    'worker-lost',
    'storage-unavailable',
  ];
  for (const code of codes) {
    for (const [retryAfterMs, seconds] of [
      [0, 1],
      [1, 1],
      [1000, 1],
      [1001, 2],
      [60_000, 3],
    ] as const) {
      const busy: Admission = { kind: 'busy', code, message: 'full', retryAfterMs };
      const binary = replyTo(busy, 'protobuf');
      assert.equal(binary.status, '503 Service Unavailable');
      assert.equal(binary.retryAfterSeconds, seconds);
      assert.deepEqual(status(binary), {
        code: 14,
        message: 'full',
        details: [{ type: 'RetryInfo', retryDelay: { seconds } }],
      });
      assert.deepEqual(JSON.parse(replyTo(busy, 'json').body as string), {
        code: 14,
        message: 'full',
        details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${seconds}s` }],
      });
    }
  }
});

test('a long message is cut: clients treat a large answer as a failure of its own', () => {
  const refusal: Admission = { kind: 'refused', code: 'malformed', message: 'é'.repeat(100_000) };
  assert.ok(bytesOf(replyTo(refusal, 'protobuf')).byteLength < 4096);
  assert.ok((replyTo(refusal, 'json').body as string).length < 4096);
});
