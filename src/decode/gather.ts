/**
 * The task that is being gathered on the main thread: bodies are copied into its slab, or added with their own buffers,
 * until a thread has time for it.
 */
import type { IntakeBody } from '../core/intake.ts';
import type { Trial } from './quarantine.ts';
import { BODY_ALIGN_BYTES, Descriptors, MAX_TASK_BODIES, SLAB_HEADER_BYTES, type DecodeTask } from './task.ts';

const NO_TEXT = -1;

export class GatheredTask {
  /** Who waits, in the order of the descriptors. */
  readonly bodies: IntakeBody[] = [];
  readonly serial: number;
  readonly slab: ArrayBuffer;
  readonly buffers: ArrayBuffer[] = [];
  readonly #descriptors: Descriptors;
  readonly #bytes: Uint8Array;
  readonly #texts: string[] = [];
  readonly #indexOfText = new Map<string, number>();
  /** Sum of the bodies. */
  bodyBytes = 0;
  /** What this task counts against the pool's limit. */
  heldBytes = 0;
  /** Set once everybody has been told, so that nobody is told twice. */
  settled = false;
  /** The suspect that travels alone in it. */
  trial: Trial | null = null;
  #position = SLAB_HEADER_BYTES;

  constructor(serial: number, slab: ArrayBuffer) {
    this.serial = serial;
    this.slab = slab;
    this.#descriptors = new Descriptors(slab);
    this.#bytes = new Uint8Array(slab);
  }

  get isFull(): boolean {
    return this.bodies.length === MAX_TASK_BODIES;
  }

  /** Room for a body to be copied. */
  fits(lengthBytes: number): boolean {
    return this.#position + lengthBytes <= this.#bytes.length;
  }

  addCopied(body: IntakeBody, bytes: Uint8Array): void {
    const offset = this.#position;
    this.#bytes.set(bytes, offset);
    this.#position = (offset + bytes.length + BODY_ALIGN_BYTES - 1) & -BODY_ALIGN_BYTES;
    this.#add(body, offset, false, bytes.length);
  }

  addOwned(body: IntakeBody, buffer: ArrayBuffer, lengthBytes: number): void {
    this.#add(body, this.buffers.length, true, lengthBytes);
    this.buffers.push(buffer);
  }

  message(): DecodeTask {
    const { serial, slab, buffers } = this;
    return { serial, slab, bodyCount: this.bodies.length, texts: this.#texts, buffers };
  }

  #add(body: IntakeBody, place: number, hasBuffer: boolean, lengthBytes: number): void {
    this.#descriptors.write(
      this.bodies.length,
      place,
      hasBuffer,
      lengthBytes,
      body.encoding,
      body.coding,
      this.#textIndex(body.apiKey),
      body.project === null ? NO_TEXT : this.#textIndex(body.project),
      body.receivedUs,
      body.sourceNumber,
    );
    this.bodies.push(body);
    this.bodyBytes += lengthBytes;
  }

  #textIndex(text: string): number {
    let index = this.#indexOfText.get(text);
    if (index === undefined) {
      index = this.#texts.length;
      this.#texts.push(text);
      this.#indexOfText.set(text, index);
    }
    return index;
  }
}
