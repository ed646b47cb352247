/**
 * Reads what the acceptor needs from a request's head, in one pass and into one reused object: uWebSockets.js keeps a
 * request only during the call of its handler. Header names arrive in lower case.
 */
import type { HttpRequest } from 'uWebSockets.js';
import type { BodyCoding, BodyEncoding } from '../core/intake.ts';

/** Longest API key and project name. */
const MAX_VALUE_CHARS = 512;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;
const CONTROL = /[\x00-\x1f\x7f]/;
const DIGITS = /^\d{1,15}$/;
const SAFE_REQUEST_ID = /^[\w.~:+/=@-]{1,128}$/;

/** What two headers of the same name, or two ways to say the length, would allow is request smuggling: refused. */
export type HeadFault = 'malformed-framing' | 'malformed-api-key' | 'malformed-project';

/** Valid until the next `read`. Absent headers are empty strings. */
export class Head {
  contentType = '';
  contentCoding = '';
  contentLength = '';
  transferEncoding = '';
  apiKey = '';
  project = '';
  requestId = '';
  origin = '';
  #serviceProject = '';
  #langsmithProject = '';
  #repeated = false;

  read(request: HttpRequest): void {
    this.contentType = '';
    this.contentCoding = '';
    this.contentLength = '';
    this.transferEncoding = '';
    this.apiKey = '';
    this.requestId = '';
    this.origin = '';
    this.#serviceProject = '';
    this.#langsmithProject = '';
    this.#repeated = false;
    request.forEach(this.#collect);
    this.project = this.#serviceProject !== '' ? this.#serviceProject : this.#langsmithProject;
  }

  /** Length that the client declared; -1 when it did not (chunked, or no body). */
  get declaredBytes(): number {
    return this.contentLength === '' ? -1 : Number(this.contentLength);
  }

  get fault(): HeadFault | null {
    if (this.#repeated) return 'malformed-framing';
    if (this.contentLength !== '' && !DIGITS.test(this.contentLength)) return 'malformed-framing';
    if (this.transferEncoding !== '' && this.transferEncoding.toLowerCase() !== 'chunked') return 'malformed-framing';
    if (this.apiKey !== '' && (this.apiKey.length > MAX_VALUE_CHARS || !VISIBLE_ASCII.test(this.apiKey))) {
      return 'malformed-api-key';
    }
    if (this.project.length > MAX_VALUE_CHARS || CONTROL.test(this.project)) return 'malformed-project';
    return null;
  }

  /** The client's own request id when it is harmless to log and to send back, else empty. */
  get safeRequestId(): string {
    return SAFE_REQUEST_ID.test(this.requestId) ? this.requestId : '';
  }

  readonly #collect = (name: string, value: string): void => {
    switch (name) {
      case 'content-type':
        this.contentType = value;
        break;
      case 'content-encoding':
        this.contentCoding = joined(this.contentCoding, value);
        break;
      case 'content-length':
        if (this.contentLength !== '') this.#repeated = true;
        this.contentLength = value;
        break;
      case 'transfer-encoding':
        if (this.transferEncoding !== '') this.#repeated = true;
        this.transferEncoding = value;
        break;
      case 'x-api-key':
        // Two keys are none: which of them counts must not depend on who reads the head.
        this.apiKey = joined(this.apiKey, value);
        break;
      case 'service-project':
        this.#serviceProject = joined(this.#serviceProject, value);
        break;
      case 'langsmith-project':
        this.#langsmithProject = joined(this.#langsmithProject, value);
        break;
      case 'x-request-id':
        this.requestId = value;
        break;
      case 'origin':
        this.origin = value;
        break;
    }
  };
}

/** Of a header that came more than once: what RFC 9110 says that it means. */
function joined(before: string, value: string): string {
  return before === '' ? value : `${before}, ${value}`;
}

/** Parameters are ignored; null when the media type is neither of the two that OTLP knows. */
export function encodingOf(contentType: string): BodyEncoding | null {
  // What nearly every client sends, without taking the string apart.
  if (contentType === 'application/x-protobuf') return 'protobuf';
  if (contentType === 'application/json') return 'json';
  const semicolon = contentType.indexOf(';');
  const type = (semicolon < 0 ? contentType : contentType.slice(0, semicolon)).trim().toLowerCase();
  if (type === 'application/json' || (type.startsWith('application/') && type.endsWith('+json'))) return 'json';
  if (
    type === 'application/x-protobuf' ||
    type === 'application/protobuf' ||
    (type.startsWith('application/') && type.endsWith('+proto'))
  ) {
    return 'protobuf';
  }
  return null;
}

/** One coding at most: a chain of codings is how decompression bombs are stacked. Null: not supported. */
export function codingOf(contentCoding: string): BodyCoding | null {
  switch (contentCoding.trim().toLowerCase()) {
    case '':
    case 'identity':
      return 'identity';
    case 'gzip':
    case 'x-gzip':
      return 'gzip';
    case 'deflate':
      return 'deflate';
    case 'zstd':
      return 'zstd';
    default:
      return null;
  }
}
