/**
 * The hand-over from the acceptor to the decode pool. The acceptor owns sockets and a body until it is complete; then
 * the intake owns the bytes and owes exactly one call of `settle`, whatever happens (also when a thread dies).
 */
import type { Admission } from './outcome.ts';

export type BodyEncoding = 'protobuf' | 'json';
export type BodyCoding = 'identity' | 'gzip' | 'deflate' | 'zstd';

/** One request body and who waits for its fate. The acceptor makes one object a request and hands it over. */
export interface IntakeBody {
  readonly encoding: BodyEncoding;
  readonly coding: BodyCoding;
  /** Never empty. */
  readonly apiKey: string;
  /** From the header, else SERVICE_PROJECT; null: the span's attribute, then `default`, decides. */
  readonly project: string | null;
  readonly receivedUs: number;
  /** In durable mode a number that its records carry, so that it can be told when they are settled; else 0. */
  readonly sourceNumber: number;
  /** Told exactly once, never from within `submit`. */
  settle(admission: Admission): void;
}

export interface Intake {
  /** Takes a whole body by copying it (into the task that is being gathered): `bytes` is valid only during the call. */
  submit(body: IntakeBody, bytes: Uint8Array): void;
  /** Takes a whole body without copying it: the buffer, whose first `lengthBytes` count, is given away (transferred). */
  submitOwned(body: IntakeBody, buffer: ArrayBuffer, lengthBytes: number): void;
}
