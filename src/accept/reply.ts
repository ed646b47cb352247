/**
 * The answer to an export request: an {@link Admission} becomes a status line, a few headers and a body in the encoding
 * that the client spoke. The only place that knows HTTP statuses and `google.rpc` codes. The messages involved have at
 * most three fields, so they are encoded here by hand; a test decodes them with a protobuf library.
 */
import type { BodyEncoding } from '../core/intake.ts';
import type { Admission, BusyCode, RefusalCode } from '../core/outcome.ts';

export interface Reply {
  readonly status: string;
  readonly contentType: string;
  readonly body: string | Uint8Array;
  /** Whole seconds for `Retry-After`; 0: not sent. */
  readonly retryAfterSeconds: number;
  /** Further headers, name then value; a constant of the refusal. */
  readonly headers: readonly (readonly [string, string])[];
}

interface Refusal {
  readonly status: string;
  /** google.rpc.Code */
  readonly code: number;
  readonly headers: Reply['headers'];
}

export const SUPPORTED_CODINGS = 'gzip, deflate, zstd';

const contentTypes: Record<BodyEncoding, string> = { protobuf: 'application/x-protobuf', json: 'application/json' };
const noHeaders: Reply['headers'] = [];
/** Clients keep the message at most; nobody reads a megabyte of it. */
const MAX_MESSAGE_CHARS = 512;
/** SDK exporters drop a batch when they would have to wait past their own deadline (10 s); longer waits lose data. */
const MAX_RETRY_AFTER_SECONDS = 3;

const acceptedReplies: Record<BodyEncoding, Reply> = {
  protobuf: success('protobuf', new Uint8Array(0)),
  json: success('json', '{}'),
};

export function replyTo(admission: Admission, encoding: BodyEncoding): Reply {
  switch (admission.kind) {
    case 'accepted':
      if (admission.rejectedCount === 0 && admission.message === '') return acceptedReplies[encoding];
      return success(encoding, partialSuccess(encoding, admission.rejectedCount, clip(admission.message)));
    case 'refused': {
      const refusal = refusalOf(admission.code);
      const message = clip(admission.message);
      const isBodysFault = admission.code === 'malformed' || admission.code === 'set-aside';
      return {
        status: refusal.status,
        contentType: contentTypes[encoding],
        body: statusBody(encoding, refusal.code, message, 0, isBodysFault ? message : null),
        retryAfterSeconds: 0,
        headers: refusal.headers,
      };
    }
    case 'busy': {
      const seconds = Math.min(MAX_RETRY_AFTER_SECONDS, Math.max(1, Math.ceil(admission.retryAfterMs / 1000)));
      return {
        status: busyStatus(admission.code),
        contentType: contentTypes[encoding],
        body: statusBody(encoding, 14, clip(admission.message), seconds, null),
        retryAfterSeconds: seconds,
        headers: noHeaders,
      };
    }
  }
}

function refusalOf(code: RefusalCode): Refusal {
  switch (code) {
    case 'malformed':
    case 'set-aside':
      return { status: '400 Bad Request', code: 3, headers: noHeaders };
    case 'unauthenticated':
      return { status: '401 Unauthorized', code: 16, headers: [['WWW-Authenticate', 'ApiKey realm="X-API-Key"']] };
    case 'forbidden':
      return { status: '403 Forbidden', code: 7, headers: noHeaders };
    case 'not-found':
      return { status: '404 Not Found', code: 12, headers: noHeaders };
    case 'method-not-allowed':
      return { status: '405 Method Not Allowed', code: 12, headers: [['Allow', 'POST, OPTIONS']] };
    case 'body-too-large':
      return { status: '413 Content Too Large', code: 3, headers: noHeaders };
    case 'unsupported-media-type':
      return { status: '415 Unsupported Media Type', code: 3, headers: noHeaders };
    case 'unsupported-coding':
      return { status: '415 Unsupported Media Type', code: 3, headers: [['Accept-Encoding', SUPPORTED_CODINGS]] };
    case 'internal':
      return { status: '500 Internal Server Error', code: 13, headers: noHeaders };
  }
}

/** One status for every kind of overload: SDK exporters resend on it and take no other for temporary. */
function busyStatus(code: BusyCode): string {
  switch (code) {
    case 'in-flight-limit':
    case 'rings-full':
    case 'starting':
    case 'draining':
    case 'worker-lost':
    case 'storage-unavailable':
    case 'journal-full':
      return '503 Service Unavailable';
  }
}

function success(encoding: BodyEncoding, body: string | Uint8Array): Reply {
  return { status: '200 OK', contentType: contentTypes[encoding], body, retryAfterSeconds: 0, headers: noHeaders };
}

/** `ExportTraceServiceResponse`. */
function partialSuccess(encoding: BodyEncoding, rejectedCount: number, message: string): string | Uint8Array {
  if (encoding === 'json') {
    return JSON.stringify({
      partialSuccess: {
        ...(rejectedCount > 0 && { rejectedSpans: String(rejectedCount) }),
        ...(message !== '' && { errorMessage: message }),
      },
    });
  }
  return field(1, Buffer.concat([varintField(1, rejectedCount), field(2, Buffer.from(message))]));
}

/** `google.rpc.Status`, with a `RetryInfo` when there is a wait and a `BadRequest` when the body is at fault. */
function statusBody(
  encoding: BodyEncoding,
  code: number,
  message: string,
  retrySeconds: number,
  badField: string | null,
): string | Uint8Array {
  if (encoding === 'json') {
    const details: object[] = [];
    if (retrySeconds > 0) {
      details.push({ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${retrySeconds}s` });
    }
    if (badField !== null) {
      const fieldViolations = [{ field: 'body', description: badField }];
      details.push({ '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations });
    }
    return JSON.stringify(details.length === 0 ? { code, message } : { code, message, details });
  }
  const parts = [varintField(1, code), field(2, Buffer.from(message))];
  if (retrySeconds > 0) parts.push(detail('RetryInfo', field(1, varintField(1, retrySeconds))));
  if (badField !== null) {
    const violation = Buffer.concat([field(1, Buffer.from('body')), field(2, Buffer.from(badField))]);
    parts.push(detail('BadRequest', field(1, violation)));
  }
  return Buffer.concat(parts);
}

/** Field 3 of Status: an `Any`. */
function detail(name: string, value: Uint8Array): Uint8Array {
  return field(3, Buffer.concat([field(1, Buffer.from(`type.googleapis.com/google.rpc.${name}`)), field(2, value)]));
}

function clip(message: string): string {
  return message.length <= MAX_MESSAGE_CHARS ? message : `${message.slice(0, MAX_MESSAGE_CHARS - 1)}…`;
}

/** A length-delimited field; absent when empty, as proto3 wants for strings (no message here is present but empty). */
function field(number: number, value: Uint8Array): Uint8Array {
  if (value.length === 0) return value;
  return Buffer.concat([varint((number << 3) | 2), varint(value.length), value]);
}

function varintField(number: number, value: number): Uint8Array {
  return value === 0 ? new Uint8Array(0) : Buffer.concat([varint(number << 3), varint(value)]);
}

/** Non-negative integers up to 2^53. */
function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  while (rest >= 0x80) {
    bytes.push((rest % 0x80) | 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return Uint8Array.from(bytes);
}
