/**
 * Bodies that are written and flushed together. Gathered on the main thread while the group before is on its way; small
 * bodies are copied, large ones travel in their own buffers.
 */
import type { Admission } from '../core/outcome.ts';
import { Fault } from '../core/outcome.ts';
import type { BodyCoding, BodyEncoding, IntakeBody } from '../core/intake.ts';
import { KiB } from '../core/units.ts';
import { writeFrameHead } from './frame.ts';
import type { Chunk } from './message.ts';
import type { Segment } from './segment.ts';

/** A body between its arrival and its answer. What decodes it tells this one what came of it. */
export class Entry implements IntakeBody {
  readonly encoding: BodyEncoding;
  readonly coding: BodyCoding;
  readonly apiKey: string;
  readonly project: string | null;
  readonly receivedUs: number;
  readonly sourceNumber: number;
  readonly segment: Segment;
  readonly index: number;
  /** The segment's id when it was gathered: once it has another one, records of this number are not counted any more. */
  readonly id: number;
  /** On disk. */
  committed = false;
  /** What came of decoding it; null before. */
  admission: Admission | null = null;
  readonly #body: IntakeBody;
  readonly #decoded: (entry: Entry, admission: Admission) => void;
  #answered = false;

  constructor(
    body: IntakeBody,
    segment: Segment,
    index: number,
    decoded: (entry: Entry, admission: Admission) => void,
  ) {
    this.encoding = body.encoding;
    this.coding = body.coding;
    this.apiKey = body.apiKey;
    this.project = body.project;
    this.receivedUs = body.receivedUs;
    this.sourceNumber = segment.sourceOf(index);
    this.segment = segment;
    this.index = index;
    this.id = segment.id;
    this.#body = body;
    this.#decoded = decoded;
  }

  get answered(): boolean {
    return this.#answered;
  }

  settle(admission: Admission): void {
    this.#decoded(this, admission);
  }

  /** Tells whoever sent it; the first answer counts. */
  answer(admission: Admission): void {
    if (this.#answered) return;
    this.#answered = true;
    this.#body.settle(admission);
  }
}

export const CHUNK_BYTES = 256 * KiB;

interface OpenChunk {
  frames: ArrayBuffer;
  usedBytes: number;
  body: ArrayBuffer | null;
  bodyBytes: number;
}

export class Group {
  readonly number: number;
  readonly segment: Segment;
  readonly entries: Entry[] = [];
  readonly chunks: Chunk[] = [];
  /** Whose bodies travel in their own buffers, and in which chunk. They are decoded after they were written. */
  readonly larges: { readonly entry: Entry; readonly chunk: number }[] = [];
  /** Called when it has been written, or given up. */
  readonly onOver: (() => void)[] = [];
  readonly #takeBuffer: () => ArrayBuffer;
  #open: OpenChunk | null = null;
  #view: Buffer = Buffer.alloc(0);

  /** `takeBuffer` gives buffers of {@link CHUNK_BYTES}. */
  constructor(number: number, segment: Segment, takeBuffer: () => ArrayBuffer) {
    this.number = number;
    this.segment = segment;
    this.#takeBuffer = takeBuffer;
  }

  addCopied(entry: Entry, headBytes: number, bytes: Uint8Array): void {
    const chunk = this.#chunkFor(headBytes + bytes.length);
    const at = writeFrameHead(this.#view, chunk.usedBytes, entry, entry.index, bytes.length);
    this.#view.set(bytes, at);
    chunk.usedBytes = at + bytes.length;
    this.entries.push(entry);
  }

  /** The buffer is the journal's until the group is written. */
  addOwned(entry: Entry, headBytes: number, buffer: ArrayBuffer, lengthBytes: number): void {
    const chunk = this.#chunkFor(headBytes);
    chunk.usedBytes = writeFrameHead(this.#view, chunk.usedBytes, entry, entry.index, lengthBytes);
    chunk.body = buffer;
    chunk.bodyBytes = lengthBytes;
    this.#open = null;
    this.entries.push(entry);
    this.larges.push({ entry, chunk: this.chunks.length - 1 });
  }

  #chunkFor(neededBytes: number): OpenChunk {
    if (this.#open !== null && this.#open.usedBytes + neededBytes <= this.#view.length) return this.#open;
    const frames = this.#takeBuffer();
    if (neededBytes > frames.byteLength) throw new Fault(`a frame of ${neededBytes} bytes in a chunk`);
    this.#view = Buffer.from(frames);
    this.#open = { frames, usedBytes: 0, body: null, bodyBytes: 0 };
    this.chunks.push(this.#open);
    return this.#open;
  }
}
