/**
 * Reads a `multipart/form-data` body that lies in memory. In: the decompressed bytes of an upload and its boundary. Out:
 * views into those bytes, one a part, nothing copied; or why the body is none. Total over arbitrary bytes: it never
 * throws and never reads outside the body. Work and memory are bounded by the body and by {@link MultipartLimits}.
 *
 * A part ends at the next delimiter, as MIME has it; the length that each part must declare is then compared with what
 * was found. (Jumping by the declared length would be as fast and would believe a length that swallows a delimiter.)
 */

export interface Part {
  /** From `Content-Disposition`. */
  readonly name: string;
  /** Of `Content-Type`, lower-case, without parameters. */
  readonly mediaType: string;
  /** A view into the body. */
  readonly bytes: Uint8Array;
}

export interface MultipartLimits {
  readonly maxPartCount: number;
  /** Of the header lines of one part. */
  readonly maxHeaderBytes: number;
}

export type MultipartOutcome =
  { readonly kind: 'parts'; readonly parts: Part[] } | { readonly kind: 'unreadable'; readonly message: string };

const MAX_BOUNDARY_LENGTH = 70;
const BOUNDARY_PATTERN = /^[0-9A-Za-z'()+_,\-./:=? ]*[0-9A-Za-z'()+_,\-./:=?]$/;
const CR = 13;
const LF = 10;
const DASH = 45;
const SPACE = 32;
const TAB = 9;
/** The line break of the last header and the blank line after it. */
const HEAD_END = Buffer.from('\r\n\r\n', 'latin1');

/** The boundary that a request's `Content-Type` names, or null when the type is not `multipart/form-data` with one. */
export function boundaryOf(contentType: string): string | null {
  const value = readValue(contentType);
  if (value?.head !== 'multipart/form-data') return null;
  const boundary = value.parameters.get('boundary');
  if (boundary === undefined || boundary.length > MAX_BOUNDARY_LENGTH || !BOUNDARY_PATTERN.test(boundary)) return null;
  return boundary;
}

/** What a reader of a stream says when the bytes end before the final delimiter. */
const CUT_SHORT = 'multipart: NextPart: EOF';

export function readMultipart(body: Uint8Array, boundary: string, limits: MultipartLimits): MultipartOutcome {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.byteLength);
  const opening = Buffer.from(`--${boundary}`, 'latin1');
  const delimiter = Buffer.from(`\r\n--${boundary}`, 'latin1');
  const parts: Part[] = [];

  // The first delimiter opens the body, or follows a preamble, which is ignored.
  let line = bytes.subarray(0, opening.length).equals(opening) ? readDelimiterTail(bytes, opening.length) : null;
  if (line === null) line = findDelimiter(bytes, delimiter, 0);

  while (line !== null && !line.final) {
    if (parts.length >= limits.maxPartCount) return unreadable(`multipart: more than ${limits.maxPartCount} parts`);
    const head = readHead(bytes, line.nextAt, parts.length, limits.maxHeaderBytes);
    if (head.kind === 'unreadable') return head;
    line = findDelimiter(bytes, delimiter, head.payloadAt);
    if (line === null) break;
    const lengthBytes = line.startAt - head.payloadAt;
    if (lengthBytes !== head.declaredBytes) {
      return unreadable(`multipart: part "${head.name}" declares ${head.declaredBytes} bytes and has ${lengthBytes}`);
    }
    parts.push({
      name: head.name,
      mediaType: head.mediaType,
      bytes: new Uint8Array(bytes.buffer, bytes.byteOffset + head.payloadAt, lengthBytes),
    });
  }
  return line === null ? unreadable(CUT_SHORT) : { kind: 'parts', parts };
}

interface DelimiterLine {
  /** Where the payload before it ends. */
  readonly startAt: number;
  /** Whether it closes the body. */
  readonly final: boolean;
  /** The byte after its line break. */
  readonly nextAt: number;
}

/** The next delimiter at or after `from`; text that merely begins like one belongs to the payload. */
function findDelimiter(bytes: Buffer, delimiter: Buffer, from: number): DelimiterLine | null {
  for (let at = from; ;) {
    const found = bytes.indexOf(delimiter, at);
    if (found < 0) return null;
    const tail = readDelimiterTail(bytes, found + delimiter.length);
    if (tail !== null) return { ...tail, startAt: found };
    at = found + delimiter.length;
  }
}

/** Reads what may follow a boundary: `--` when it is the last one, blanks, and the line break (or the body's end). */
function readDelimiterTail(bytes: Buffer, from: number): DelimiterLine | null {
  const final = bytes[from] === DASH && bytes[from + 1] === DASH;
  let at = final ? from + 2 : from;
  while (bytes[at] === SPACE || bytes[at] === TAB) at++;
  const broken = bytes[at] === CR && bytes[at + 1] === LF;
  if (!broken && !(final && at >= bytes.length)) return null;
  return { startAt: 0, final, nextAt: at + 2 };
}

interface PartHead {
  readonly kind: 'head';
  readonly name: string;
  readonly mediaType: string;
  readonly declaredBytes: number;
  readonly payloadAt: number;
}

interface Unreadable {
  readonly kind: 'unreadable';
  readonly message: string;
}

function unreadable(message: string): Unreadable {
  return { kind: 'unreadable', message };
}

function readHead(bytes: Buffer, from: number, index: number, maxHeaderBytes: number): PartHead | Unreadable {
  if (bytes[from] === CR && bytes[from + 1] === LF) return unreadable(`multipart: part ${index} has no name`);
  const end = bytes.indexOf(HEAD_END, from);
  if (end < 0 || end - from > maxHeaderBytes) {
    if (end < 0 && bytes.length - from <= maxHeaderBytes) return unreadable(CUT_SHORT);
    return unreadable(`multipart: headers of part ${index} are longer than ${maxHeaderBytes} bytes`);
  }
  let name: string | undefined;
  let mediaType: string | undefined;
  let declared: string | undefined;
  for (const line of bytes.toString('utf8', from, end).split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon <= 0) return unreadable(`multipart: malformed header of part ${index}`);
    const field = line.slice(0, colon).toLowerCase();
    const text = line.slice(colon + 1).trim();
    if (field === 'content-disposition') {
      const value = readValue(text);
      if (value?.head !== 'form-data' || name !== undefined) {
        return unreadable(`multipart: part ${index} needs one content disposition, form-data`);
      }
      name = value.parameters.get('name');
    } else if (field === 'content-type') {
      const value = readValue(text);
      if (value === null || mediaType !== undefined) return unreadable(`multipart: part ${index}: bad content type`);
      mediaType = value.head;
      const parameter = value.parameters.get('length');
      if (parameter !== undefined) {
        if (declared !== undefined && declared !== parameter) return twoLengths(index);
        declared = parameter;
      }
    } else if (field === 'content-length') {
      if (declared !== undefined && declared !== text) return twoLengths(index);
      declared = text;
    }
  }
  if (name === undefined || name === '') return unreadable(`multipart: part ${index} has no name`);
  if (mediaType === undefined) return unreadable(`multipart: part "${name}" has no content type`);
  if (declared === undefined) return unreadable(`multipart: part "${name}" has no content length`);
  if (!/^\d{1,15}$/.test(declared)) return unreadable(`multipart: part "${name}": bad content length`);
  return { kind: 'head', name, mediaType, declaredBytes: Number(declared), payloadAt: end + HEAD_END.length };
}

function twoLengths(index: number): Unreadable {
  return unreadable(`multipart: part ${index} declares two lengths`);
}

interface HeaderValue {
  /** The value before the first parameter, lower-case. */
  readonly head: string;
  /** Names in lower case. */
  readonly parameters: ReadonlyMap<string, string>;
}

const NO_PARAMETERS: ReadonlyMap<string, string> = new Map();
const PLAIN_NAME = 'form-data; name="';
const PARAMETER = /[ \t]*;[ \t]*(?:([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]*)))?[ \t]*/y;

/** Reads `head; name=token; name="quoted \" text"`. Null when it is anything else. */
function readValue(text: string): HeaderValue | null {
  if (text.startsWith(PLAIN_NAME) && text.indexOf('"', PLAIN_NAME.length) === text.length - 1 && !text.includes('\\')) {
    // What practically every part has; the general way below costs ten times as much.
    return { head: 'form-data', parameters: new Map([['name', text.slice(PLAIN_NAME.length, -1)]]) };
  }
  const semicolon = text.indexOf(';');
  if (semicolon < 0) {
    return text === '' ? null : { head: text.trim().toLowerCase(), parameters: NO_PARAMETERS };
  }
  const head = text.slice(0, semicolon).trim().toLowerCase();
  if (head === '') return null;
  const parameters = new Map<string, string>();
  const pattern = new RegExp(PARAMETER);
  let at = semicolon;
  while (at < text.length) {
    pattern.lastIndex = at;
    const match = pattern.exec(text);
    if (match === null) return null;
    at = pattern.lastIndex;
    const [, name, quoted, token] = match;
    if (name === undefined) continue;
    const key = name.toLowerCase();
    if (parameters.has(key)) return null;
    parameters.set(key, quoted === undefined ? (token ?? '') : quoted.replaceAll(/\\(.)/gs, '$1'));
  }
  return { head, parameters };
}
