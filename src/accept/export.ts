/**
 * One export request, `POST /v1/traces`, from its head to its answer.
 *
 * In: chunks of the body as the server reads them; each is valid only during its callback and is copied here once.
 * Out: the whole body to the {@link Intake}, which settles it; then the answer, in the client's encoding.
 * Owner: the main thread. Full: the byte budget refuses with `busy`. Client gone: what is held is given back at once,
 * what the intake already has is given back when it settles. Stop: see acceptor.ts.
 */
import type { HttpResponse } from 'uWebSockets.js';
import type { BodyCoding, BodyEncoding, Intake, IntakeBody } from '../core/intake.ts';
import type { Counters } from '../core/counters.ts';
import type { Log } from '../core/log.ts';
import { Fault, type Admission } from '../core/outcome.ts';
import { KiB, MiB, SECOND_MS } from '../core/units.ts';
import { REQUEST_OVERHEAD_BYTES, RESERVED_BYTES, type Budget } from './budget.ts';
import type { Readiness } from './readiness.ts';
import { replyTo } from './reply.ts';
import type { ScratchShelf } from './scratch.ts';
import { sendReply, type OriginHeaders } from './send.ts';

/** Up to here a body in pieces is gathered in borrowed memory and copied on; beyond, in a buffer that is given away. */
export const GATHERED_BYTES = 256 * KiB;
/** How much of a body refused midway is still read, so that the client sees the answer and not a reset. */
const DRAINED_BYTES = 16 * MiB;
const BUSY_RETRY_MS = 1000;

/** What all export requests of an acceptor share. */
export interface ExportContext {
  readonly intake: Intake;
  readonly budget: Budget;
  readonly scratch: ScratchShelf;
  readonly readiness: Readiness;
  readonly counters: Counters;
  readonly log: Log;
  readonly maxBodyBytes: number;
  readonly clock: { nowMs(): number };
  /** Told when a request came to its end, whichever. */
  readonly finished: () => void;
}

export interface ExportHead {
  readonly requestId: string;
  readonly origin: OriginHeaders;
  readonly encoding: BodyEncoding;
  readonly coding: BodyCoding;
  readonly apiKey: string;
  readonly project: string | null;
  /** -1 when the client declared none. */
  readonly declaredBytes: number;
}

export class ExportRequest implements IntakeBody {
  readonly encoding: BodyEncoding;
  readonly coding: BodyCoding;
  readonly apiKey: string;
  readonly project: string | null;
  readonly receivedUs: number;
  readonly sourceNumber = 0;
  readonly #startedMs = performance.now();
  readonly #context: ExportContext;
  readonly #requestId: string;
  readonly #origin: OriginHeaders;
  readonly #declaredBytes: number;
  /** Null once answered, or once the client has gone. */
  #response: HttpResponse | null;
  #chargedBytes = 0;
  #receivedBytes = 0;
  /** Memory that the body gathers in: borrowed from the shelf, or a buffer of our own. Null before the first piece. */
  #memory: Uint8Array<ArrayBuffer> | null = null;
  #borrowed = false;
  #state: 'receiving' | 'draining' | 'submitted' | 'over' = 'receiving';
  /** While draining: the answer that waits for the body to end, and what was read since. */
  #verdict: Admission | null = null;
  #drainedBytes = 0;

  constructor(context: ExportContext, response: HttpResponse, head: ExportHead) {
    this.#context = context;
    this.#response = response;
    this.#requestId = head.requestId;
    this.#origin = head.origin;
    this.#declaredBytes = head.declaredBytes;
    this.encoding = head.encoding;
    this.coding = head.coding;
    this.apiKey = head.apiKey;
    this.project = head.project;
    this.receivedUs = context.clock.nowMs() * 1000;
  }

  /** Reads the body, unless there is no room for it. Called once, from within the server's request handler. */
  start(response: HttpResponse): void {
    if (this.#declaredBytes > this.#context.maxBodyBytes) {
      this.#finish(this.#tooLarge());
      return;
    }
    const reserve = REQUEST_OVERHEAD_BYTES + Math.min(Math.max(0, this.#declaredBytes), RESERVED_BYTES);
    if (!this.#context.budget.take(reserve)) {
      this.#finish(this.#noRoom());
      return;
    }
    this.#chargedBytes = reserve;
    response.onAborted(() => this.#abandon());
    response.onData((chunk, isLast) => {
      try {
        this.#receive(chunk, isLast);
      } catch (error) {
        this.fail(error);
      }
    });
  }

  settle(admission: Admission): void {
    if (this.#state !== 'submitted') throw new Fault(`settled while ${this.#state}`);
    this.#finish(admission);
  }

  /** A defect of ours while handling this request: told to the client, logged, counted; the process goes on. */
  fail(error: unknown): void {
    this.#context.log.error({ requestId: this.#requestId, err: error }, 'request handling failed');
    if (this.#state === 'over') return;
    this.#finish({ kind: 'refused', code: 'internal', message: 'internal error' });
  }

  #receive(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.#state === 'draining') return this.#drain(chunk.byteLength, isLast);
    if (this.#state !== 'receiving') return;
    if (isLast && this.#memory === null) {
      // The whole body in one piece: the intake copies it straight out of the server's buffer.
      if (chunk.byteLength > this.#context.maxBodyBytes) return this.#finish(this.#tooLarge());
      if (!this.#charge(chunk.byteLength)) return this.#finish(this.#noRoom());
      this.#receivedBytes = chunk.byteLength;
      this.#submitCopied(new Uint8Array(chunk));
      return;
    }
    if (chunk.byteLength > 0) {
      const totalBytes = this.#receivedBytes + chunk.byteLength;
      if (totalBytes > this.#context.maxBodyBytes) return this.#drainThen(this.#tooLarge(), isLast);
      if (!this.#charge(totalBytes)) return this.#drainThen(this.#noRoom(), isLast);
      const memory = this.#room(totalBytes);
      memory.set(new Uint8Array(chunk), this.#receivedBytes);
      this.#receivedBytes = totalBytes;
    }
    if (!isLast) return;
    if (this.#borrowed && this.#memory !== null) {
      this.#submitCopied(this.#memory.subarray(0, this.#receivedBytes));
      this.#giveBackMemory();
    } else {
      const memory = this.#memory ?? new Uint8Array(0);
      this.#memory = null;
      this.#submitted();
      this.#context.intake.submitOwned(this, memory.buffer, this.#receivedBytes);
    }
  }

  /** Raises the charge to what a body of `totalBytes` costs. */
  #charge(totalBytes: number): boolean {
    const missingBytes = REQUEST_OVERHEAD_BYTES + totalBytes - this.#chargedBytes;
    if (missingBytes <= 0) return true;
    if (!this.#context.budget.grow(this, missingBytes)) return false;
    this.#chargedBytes += missingBytes;
    return true;
  }

  /** Memory for at least `totalBytes`, keeping what was gathered so far. */
  #room(totalBytes: number): Uint8Array {
    const old = this.#memory;
    if (old !== null && totalBytes <= old.byteLength) return old;
    let next: Uint8Array<ArrayBuffer>;
    const wantedBytes = Math.max(totalBytes, this.#declaredBytes);
    if (wantedBytes <= GATHERED_BYTES) {
      next = this.#context.scratch.borrow();
    } else {
      // A declared length is allocated at once: pages that never get a byte cost no memory. Else grow by doubling.
      const doubledBytes = this.#declaredBytes >= 0 ? wantedBytes : 2 * wantedBytes;
      next = new Uint8Array(Math.min(doubledBytes, this.#context.maxBodyBytes));
    }
    if (old !== null) {
      next.set(old.subarray(0, this.#receivedBytes));
      this.#giveBackMemory();
    }
    this.#memory = next;
    this.#borrowed = wantedBytes <= GATHERED_BYTES;
    return next;
  }

  #giveBackMemory(): void {
    if (this.#borrowed && this.#memory !== null) this.#context.scratch.giveBack(this.#memory);
    this.#borrowed = false;
    this.#memory = null;
  }

  #submitCopied(bytes: Uint8Array): void {
    this.#submitted();
    this.#context.intake.submit(this, bytes);
  }

  #submitted(): void {
    this.#state = 'submitted';
    this.#context.counters.add('request_bytes', this.#receivedBytes);
    this.#context.counters.observe('body_size_bytes', this.#receivedBytes);
  }

  #drainThen(verdict: Admission, isLast: boolean): void {
    this.#release();
    this.#verdict = verdict;
    this.#state = 'draining';
    this.#drain(0, isLast);
  }

  /** Reads on, keeping nothing, until the body ends or has gone on for too long. */
  #drain(chunkBytes: number, isLast: boolean): void {
    this.#drainedBytes += chunkBytes;
    const close = this.#drainedBytes > DRAINED_BYTES;
    if ((isLast || close) && this.#verdict !== null) this.#finish(this.#verdict, close);
  }

  #release(): void {
    this.#giveBackMemory();
    if (this.#chargedBytes > 0) this.#context.budget.give(this, this.#chargedBytes);
    this.#chargedBytes = 0;
  }

  #abandon(): void {
    this.#response = null;
    // What the intake has in its hands stays charged until it settles.
    if (this.#state === 'submitted' || this.#state === 'over') return;
    this.#state = 'over';
    this.#release();
    this.#context.finished();
  }

  #finish(admission: Admission, close = false): void {
    this.#state = 'over';
    this.#release();
    this.#count(admission);
    const response = this.#response;
    this.#response = null;
    if (response !== null) {
      const draining = this.#context.readiness.phase === 'draining';
      sendReply(response, replyTo(admission, this.encoding), {
        requestId: this.#requestId,
        origin: this.#origin,
        close: close || draining,
      });
    }
    this.#context.finished();
  }

  #count(admission: Admission): void {
    const { counters, readiness, log } = this.#context;
    switch (admission.kind) {
      case 'accepted':
        readiness.noteAccepted();
        counters.add('spans_accepted', admission.acceptedCount);
        counters.observe('ack_seconds', (performance.now() - this.#startedMs) / SECOND_MS);
        if (admission.rejectedCount > 0) {
          counters.add('spans_invalid', admission.rejectedCount);
          const { rejectedCount, message } = admission;
          log.warn({ requestId: this.#requestId, rejectedCount, reason: message }, 'spans rejected');
        }
        return;
      case 'refused':
        counters.add('requests_refused');
        counters.add(`refused_${admission.code}`);
        log.warn({ requestId: this.#requestId, code: admission.code, reason: admission.message }, 'request refused');
        return;
      case 'busy':
        readiness.noteBusy();
        counters.add('requests_busy');
        counters.add(`busy_${admission.code}`);
        log.warn({ requestId: this.#requestId, code: admission.code, reason: admission.message }, 'request put off');
        return;
    }
  }

  #tooLarge(): Admission {
    const message = `the body exceeds MAX_BODY_BYTES (${this.#context.maxBodyBytes})`;
    return { kind: 'refused', code: 'body-too-large', message };
  }

  #noRoom(): Admission {
    const message = 'too many bytes are waiting to be decoded';
    return { kind: 'busy', code: 'in-flight-limit', message, retryAfterMs: BUSY_RETRY_MS };
  }
}
