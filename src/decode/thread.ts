/**
 * The inside of a decode thread. In: a task with many request bodies. Out: records in the rings, and a reply with one
 * outcome a body, posted only after every accepted body's records are published. It owns its slot of the rings, nothing
 * else between two tasks. Full: waits a little, then answers busy for that body. Stop: it is ended from outside between
 * tasks, or in the midst of one; whatever was not published then never existed.
 */
import { move, transferableSymbol, valueSymbol } from 'piscina';
import { openCounterTable, type Counters } from '../core/counters.ts';
import { Fault, type Admission } from '../core/outcome.ts';
import { SECOND_MS } from '../core/units.ts';
import { claimSlot } from '../ring/slots.ts';
import { openRingWriter } from '../ring/writer.ts';
import type { Decoder, DecoderSettings } from './decoder.ts';
import { Hand } from './hands.ts';
import { createInflater, type Inflater } from './inflate.ts';
import { RingSink } from './ringsink.ts';
import {
  counterRow,
  Descriptors,
  HELLO,
  OutcomeCode,
  type DecodeReply,
  type DecodeTask,
  type DecodeThreadSettings,
} from './task.ts';

/** Short: a reader that stands still usually does so for a backend's sake, and clients wait at most 10 s in all. */
const RETRY_AFTER_MS = SECOND_MS;
/** API keys kept as bytes; beyond that all are forgotten. */
const MAX_KEYS = 1000;

const RINGS_FULL: Admission = {
  kind: 'busy',
  code: 'rings-full',
  message: 'the pipeline is full',
  retryAfterMs: RETRY_AFTER_MS,
};

/**
 * What the worker file exports for the pool to call. The thread gets ready with its first task, not when its file is
 * loaded: a thread that cannot (a converter that does not load) then says why, and tries again with the next task.
 */
export function createTaskHandler(
  settings: DecodeThreadSettings,
  threadId: number,
  openDecoder: (settings: DecoderSettings) => Decoder | Promise<Decoder>,
): (message: DecodeTask | typeof HELLO) => unknown {
  let thread: DecodeThread | null = null;
  let opening: Promise<DecodeThread> | null = null;
  const open = async (): Promise<DecodeThread> => {
    const decoder = await openDecoder(settings.decoder);
    return new DecodeThread(settings, claimSlot(settings.rings, threadId), decoder);
  };
  return async (message) => {
    if (thread === null) {
      opening ??= open();
      try {
        thread = await opening;
      } finally {
        opening = null;
      }
    }
    if (message === HELLO) return threadId;
    try {
      const reply = thread.run(message);
      return move({
        get [transferableSymbol]() {
          return [reply.slab, ...reply.oversize.map((entry) => entry.record)];
        },
        get [valueSymbol]() {
          return reply;
        },
      });
    } catch (error) {
      // A broken invariant. Told to the pool as an error, it would cost this task and leave the thread at work; thrown
      // where nobody catches it, it ends the thread, and the pool answers for all that the thread had in its hands.
      queueMicrotask(() => {
        throw error;
      });
      return new Promise(() => undefined);
    }
  };
}

export class DecodeThread {
  readonly #settings: DecodeThreadSettings;
  readonly #counters: Counters;
  readonly #decoder: Decoder;
  readonly #inflater: Inflater = createInflater();
  readonly #sink: RingSink;
  readonly #hand: Hand;
  readonly #keys = new Map<string, Uint8Array>();
  readonly #encoder = new TextEncoder();

  constructor(settings: DecodeThreadSettings, slot: number, decoder: Decoder) {
    this.#settings = settings;
    this.#decoder = decoder;
    this.#counters = openCounterTable(settings.counters).row(counterRow(settings.rings.shardCount, slot));
    this.#hand = new Hand(settings.hands, slot);
    this.#sink = new RingSink(openRingWriter(settings.rings, slot), this.#counters, settings);
  }

  run(task: DecodeTask): DecodeReply {
    const startedMs = performance.now();
    const descriptors = new Descriptors(task.slab);
    const reply: DecodeReply = { slab: task.slab, notes: [], oversize: [], defects: [], converterFailure: null };
    for (let index = 0; index < task.bodyCount; index++) {
      const admission = this.#runBody(task, descriptors, index, reply);
      if (admission.kind === 'accepted' && admission.message === '') {
        descriptors.answer(index, OutcomeCode.Accepted, admission.acceptedCount, admission.rejectedCount);
      } else {
        descriptors.answer(index, OutcomeCode.Noted, 0, 0);
        reply.notes.push({ index, admission });
      }
    }
    reply.oversize = this.#sink.takeOversize();
    this.#counters.add('decode_tasks');
    this.#counters.add('decode_bodies', task.bodyCount);
    this.#counters.observe('decode_task_seconds', (performance.now() - startedMs) / SECOND_MS);
    return reply;
  }

  #runBody(task: DecodeTask, descriptors: Descriptors, index: number, reply: DecodeReply): Admission {
    const ownBuffer = descriptors.hasBuffer(index) ? task.buffers[descriptors.place(index)] : undefined;
    const body =
      ownBuffer === undefined
        ? Buffer.from(task.slab, descriptors.place(index), descriptors.lengthBytes(index))
        : Buffer.from(ownBuffer, 0, descriptors.lengthBytes(index));
    this.#sink.begin();
    this.#hand.take(task.serial, body);
    try {
      const admission = this.#decode(task, descriptors, index, body, reply);
      if (admission.kind === 'accepted') this.#sink.commit();
      else this.#sink.rollback();
      this.#hand.drop();
      return admission;
    } catch (error) {
      this.#sink.rollback();
      if (error instanceof Fault) throw error; // with the body in hand: the thread dies of it
      this.#hand.drop();
      reply.defects.push(error instanceof Error ? (error.stack ?? error.message) : String(error));
      return { kind: 'refused', code: 'internal', message: 'internal error while decoding' };
    } finally {
      if (ownBuffer !== undefined) free(ownBuffer);
    }
  }

  #decode(task: DecodeTask, descriptors: Descriptors, index: number, body: Buffer, reply: DecodeReply): Admission {
    if (this.#sink.isHopeless(body.length)) return RINGS_FULL;
    const { maxBodyBytes } = this.#settings;
    let source = body;
    const coding = descriptors.coding(index);
    if (coding !== 'identity') {
      const inflated = this.#inflater.inflate(coding, body, maxBodyBytes);
      if (inflated.kind === 'malformed') {
        return { kind: 'refused', code: 'malformed', message: `body is not valid ${coding}: ${inflated.message}` };
      }
      if (inflated.kind === 'too-large') return tooLarge(`body is larger than ${maxBodyBytes} bytes, decompressed`);
      source = inflated.bytes;
    }
    if (source.length > maxBodyBytes) return tooLarge(`body is larger than ${maxBodyBytes} bytes`);
    this.#counters.add('decode_bytes', source.length);
    const outcome = this.#decoder.decode(
      {
        source,
        encoding: descriptors.encoding(index),
        apiKey: this.#keyBytes(text(task, descriptors.keyText(index))),
        project: descriptors.projectText(index) < 0 ? null : text(task, descriptors.projectText(index)),
        receivedUs: descriptors.receivedUs(index),
        sourceNumber: descriptors.sourceNumber(index),
      },
      this.#sink,
    );
    if (this.#sink.tooLarge) return tooLarge('a span of this body is too large');
    // Whatever the decoder made of the refusal: a record is missing.
    if (this.#sink.refused || outcome.kind === 'full') return RINGS_FULL;
    if (outcome.kind === 'malformed') return { kind: 'refused', code: 'malformed', message: outcome.message };
    const { acceptedCount, rejectedCount, message, converterFailure } = outcome;
    reply.converterFailure ??= converterFailure ?? null;
    return { kind: 'accepted', acceptedCount, rejectedCount, message };
  }

  #keyBytes(key: string): Uint8Array {
    let bytes = this.#keys.get(key);
    if (bytes === undefined) {
      if (this.#keys.size >= MAX_KEYS) this.#keys.clear();
      bytes = this.#encoder.encode(key);
      this.#keys.set(key, bytes);
    }
    return bytes;
  }
}

function text(task: DecodeTask, index: number): string {
  const found = task.texts[index];
  if (found === undefined) throw new Fault(`text ${index} of ${task.texts.length}`);
  return found;
}

function tooLarge(message: string): Admission {
  return { kind: 'refused', code: 'body-too-large', message };
}

/** Gives a large body's memory back now instead of at the next garbage collection: one may be 200 MB. */
function free(buffer: ArrayBuffer): void {
  (buffer as ArrayBuffer & { transfer(newByteLength: number): ArrayBuffer }).transfer(0);
}
