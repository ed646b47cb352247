/**
 * `POST /runs/multipart`: one upload from socket to store. In: a request. Out: 202, or why not, and a note of it. When
 * full: more bytes than the bound being received at once, and the next upload is answered 503. On stop: what is being
 * received is finished; delays of scripted faults end at once.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../core/lifecycle.ts';
import type { Log } from '../core/log.ts';
import { KiB, MS_US } from '../core/units.ts';
import type { FaultRule, UploadNote } from './api.ts';
import type { Faults } from './faults.ts';
import { inflate } from './inflate.ts';
import { readUpload, type Upload } from './intake.ts';
import type { KeyVerdict } from './keys.ts';
import { writeRfc3339 } from './moment.ts';
import { boundaryOf, readMultipart } from './multipart.ts';
import { type ProblemKind, problemText, sendJson, statusOf } from './reply.ts';
import type { BackendSettings } from './settings.ts';
import type { Store } from './store.ts';

export interface Receiver {
  receive(request: IncomingMessage, response: ServerResponse): Promise<void>;
  /** Newest first. */
  readonly notes: () => UploadNote[];
}

export interface ReceiverParts {
  readonly settings: BackendSettings;
  readonly store: Store;
  readonly keyOf: (key: string | undefined) => KeyVerdict;
  readonly faults: Faults;
  /** Told after each write. */
  readonly onChange: (traceNos: readonly number[]) => void;
  readonly clock: Clock;
  readonly log: Log;
  /** Aborted on stop. */
  readonly stopping: AbortSignal;
}

const LIMITS = { maxPartCount: 100_000, maxHeaderBytes: 16 * KiB };
const MAX_NOTE_COUNT = 1000;

type Draft = { -readonly [K in keyof UploadNote]: UploadNote[K] };
type Answer = { readonly status: number; readonly text: string; readonly headers?: Readonly<Record<string, string>> };
type BodyOutcome =
  | { readonly kind: 'body'; readonly bytes: Uint8Array }
  | { readonly kind: 'too-large' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'gone' };

export function createReceiver(parts: ReceiverParts): Receiver {
  const { settings, store, faults, clock, stopping } = parts;
  const notes: UploadNote[] = [];
  let inFlightBytes = 0;

  const readBody = async (request: IncomingMessage): Promise<BodyOutcome> => {
    if (Number(request.headers['content-length'] ?? 0) > settings.maxWireBytes) return { kind: 'too-large' };
    const chunks: Uint8Array[] = [];
    let length = 0;
    try {
      // Leaving the loop early must not destroy the socket that the answer goes through.
      for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
        length += chunk.byteLength;
        inFlightBytes += chunk.byteLength;
        if (length > settings.maxWireBytes) return { kind: 'too-large' };
        if (inFlightBytes > settings.maxInFlightBytes) return { kind: 'busy' };
        chunks.push(chunk);
      }
      return { kind: 'body', bytes: Buffer.concat(chunks, length) };
    } catch (error) {
      parts.log.debug({ error: String(error) }, 'uploader went away');
      return { kind: 'gone' };
    } finally {
      inFlightBytes -= length;
    }
  };

  /** Everything that is decided without waiting, and the write. */
  const take = (request: IncomingMessage, body: Uint8Array, tenant: string, note: Draft): Answer => {
    const refuse = (kind: ProblemKind, message: string): Answer => {
      note.error = message;
      return { status: statusOf(kind), text: problemText(kind, message) };
    };
    const plain = inflate(body, note.content_encoding, settings.maxBodyBytes);
    if (plain.kind === 'too-large') return refuse('too-large', `more than ${settings.maxBodyBytes} bytes`);
    if (plain.kind === 'unsupported') {
      return { ...refuse('unsupported-coding', 'zstd, gzip or none'), headers: { 'Accept-Encoding': 'zstd, gzip' } };
    }
    if (plain.kind === 'broken') return refuse('unprocessable', plain.message);
    note.body_bytes = plain.bytes.byteLength;
    const boundary = boundaryOf(request.headers['content-type'] ?? '');
    if (boundary === null) return refuse('unprocessable', "request Content-Type isn't multipart/form-data");
    const form = readMultipart(plain.bytes, boundary, LIMITS);
    if (form.kind === 'unreadable') return refuse('unprocessable', form.message);
    const upload = readUpload(form.parts, settings);
    if (upload.kind !== 'upload') return refuse(upload.kind, upload.message);
    count(upload, note);
    const outcome = store.write(tenant, upload);
    if (outcome.kind === 'conflict') {
      note.error = `run ${outcome.runId} was received before`;
      return { status: statusOf('conflict'), text: problemText('conflict', 'payloads already received') };
    }
    if (outcome.kind !== 'written') return refuse(outcome.kind, outcome.message);
    parts.onChange(outcome.traceNos);
    return { status: 202, text: '{"message":"Runs batch ingested"}' };
  };

  const answerFor = async (request: IncomingMessage, key: string, note: Draft): Promise<Answer | 'reset' | 'gone'> => {
    const verdict = parts.keyOf(key);
    // The body is read even when the key is refused: an answer in the middle of an upload reaches no client.
    const body = await readBody(request);
    if (body.kind === 'gone') return 'gone';
    const refuse = (kind: ProblemKind, message: string, headers: Record<string, string> = {}): Answer => {
      note.error = message;
      return { status: statusOf(kind), text: problemText(kind, message), headers };
    };
    if (verdict.kind !== 'tenant') return refuse(verdict.kind, '');
    note.tenant = verdict.tenant;
    if (body.kind === 'too-large') return refuse('too-large', `more than ${settings.maxWireBytes} bytes`);
    if (body.kind === 'busy') return refuse('busy', 'too much is being received', { 'Retry-After': '1' });
    note.wire_bytes = body.bytes.byteLength;
    const fault = faults.take(key);
    if (fault === null) return take(request, body.bytes, verdict.tenant, note);
    note.fault = true;
    if (fault.delay_ms !== undefined) await clock.sleep(fault.delay_ms, stopping);
    const passes = fault.when === 'after' || (fault.status === undefined && fault.reset !== true);
    const usual = passes ? take(request, body.bytes, verdict.tenant, note) : null;
    return fault.reset === true ? 'reset' : scripted(fault, usual);
  };

  return {
    notes: () => notes.toReversed(),
    receive: async (request, response) => {
      const note: Draft = {
        received_at: writeRfc3339(clock.nowMs() * MS_US),
        status: 0,
        tenant: null,
        content_encoding: request.headers['content-encoding'] ?? '',
        wire_bytes: 0,
        body_bytes: 0,
        post_count: 0,
        patch_count: 0,
        error: null,
        fault: false,
      };
      const answer = await answerFor(request, keyOfRequest(request), note);
      if (answer === 'gone') return;
      note.status = answer === 'reset' ? 0 : answer.status;
      notes.push(note);
      if (notes.length > MAX_NOTE_COUNT) notes.shift();
      if (answer === 'reset') request.socket.resetAndDestroy();
      else sendJson(response, answer.status, answer.text, answer.headers);
    },
  };
}

/** The header, or a bearer token in its place. */
function keyOfRequest(request: IncomingMessage): string {
  const key = request.headers['x-api-key'];
  if (typeof key === 'string' && key !== '') return key;
  return /^Bearer (.+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? '';
}

function count(upload: Upload, note: Draft): void {
  for (const { op } of upload.operations) {
    if (op === 'post') note.post_count++;
    else note.patch_count++;
  }
}

function scripted(fault: FaultRule, usual: Answer | null): Answer {
  const status = fault.status ?? usual?.status ?? 200;
  return {
    status,
    text: fault.body ?? (fault.status === undefined ? usual?.text : undefined) ?? '{"error":"scripted"}',
    headers: { ...usual?.headers, ...(fault.retry_after === undefined ? {} : { 'Retry-After': fault.retry_after }) },
  };
}
