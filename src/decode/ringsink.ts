/**
 * Where a decode thread's records go: into the ring of their trace's shard, or, when larger than a ring takes, into the
 * reply. One body at a time, between `begin` and `commit` or `rollback`. Full: publish what is there, so that the reader
 * can free it, wait for it a while, then refuse; a shard that was waited for in vain is not waited for again before its
 * reader has moved.
 */
import type { Counters } from '../core/counters.ts';
import { RecordOffset, shardOf, type RecordSink } from '../core/record.ts';
import type { RingWriter } from '../ring/writer.ts';
import type { DecodeThreadSettings, OversizeRecord } from './task.ts';

export class RingSink implements RecordSink {
  readonly #writer: RingWriter;
  readonly #counters: Counters;
  readonly #settings: DecodeThreadSettings;
  readonly #shardCount: number;
  /** The shard's `progress` when it was waited for in vain; null otherwise. */
  readonly #stuckAt: (number | null)[];
  #stuckCount = 0;
  /** Since the last publish. */
  #recordCount = 0;
  #recordBytes = 0;
  /** Of this body, forced out by a full ring. */
  #publishedCount = 0;
  #waitedMs = 0;
  /** Of the whole task. */
  #oversize: OversizeRecord[] = [];
  #oversizeBytes = 0;
  /** When this body began. */
  #oversizeCountBefore = 0;
  #oversizeBytesBefore = 0;

  /** The last `put` said no for want of room. */
  refused = false;
  /** The last `put` said no because this body alone brings more oversize records than one reply may carry. */
  tooLarge = false;

  constructor(writer: RingWriter, counters: Counters, settings: DecodeThreadSettings) {
    this.#writer = writer;
    this.#counters = counters;
    this.#settings = settings;
    this.#shardCount = settings.rings.shardCount;
    this.#stuckAt = Array.from({ length: this.#shardCount }, () => null);
  }

  begin(): void {
    this.refused = false;
    this.tooLarge = false;
    this.#waitedMs = 0;
    this.#publishedCount = 0;
    this.#oversizeCountBefore = this.#oversize.length;
    this.#oversizeBytesBefore = this.#oversizeBytes;
  }

  put(bytes: Uint8Array, offset: number, lengthBytes: number): boolean {
    const shard = shardOf(bytes, offset + RecordOffset.TraceId, this.#shardCount);
    if (lengthBytes > this.#writer.maxRecordBytes) return this.#putOversize(shard, bytes, offset, lengthBytes);
    if (!this.#writer.offer(shard, bytes, offset, lengthBytes)) {
      if (!this.#waitForSpace(shard, lengthBytes) || !this.#writer.offer(shard, bytes, offset, lengthBytes)) {
        this.refused = true;
        return false;
      }
    }
    this.#recordCount++;
    this.#recordBytes += lengthBytes;
    return true;
  }

  commit(): void {
    this.#publish();
    this.#counters.add('oversize_records', this.#oversize.length - this.#oversizeCountBefore);
  }

  /** What a full ring has forced out before stays published: sent again, it is a duplicate, which does no harm. */
  rollback(): void {
    this.#writer.discard();
    const oversizeCount = this.#oversize.length - this.#oversizeCountBefore;
    if (this.refused) this.#counters.add('spans_put_off', this.#publishedCount + this.#recordCount + oversizeCount);
    if (this.#publishedCount > 0) this.#counters.add('records_unacknowledged', this.#publishedCount);
    this.#recordCount = 0;
    this.#recordBytes = 0;
    this.#oversize.length = this.#oversizeCountBefore;
    this.#oversizeBytes = this.#oversizeBytesBefore;
  }

  /** The oversize records of the task, which are the caller's from here on. */
  takeOversize(): OversizeRecord[] {
    const taken = this.#oversize;
    this.#oversize = [];
    this.#oversizeBytes = 0;
    return taken;
  }

  /** Whether decoding a body of this size is wasted work: its records take about as much as the body. */
  isHopeless(bodyBytes: number): boolean {
    if (this.#stuckCount === 0) return false;
    let freeBytes = 0;
    let stuckCount = 0;
    for (let shard = 0; shard < this.#shardCount; shard++) {
      if (this.#isStuck(shard)) stuckCount++;
      freeBytes += this.#writer.freeBytes(shard);
    }
    return stuckCount === this.#shardCount || (stuckCount > 0 && bodyBytes > freeBytes);
  }

  #publish(): void {
    this.#writer.publish();
    this.#counters.add('records_written', this.#recordCount);
    this.#counters.add('record_bytes', this.#recordBytes);
    this.#publishedCount += this.#recordCount;
    this.#recordCount = 0;
    this.#recordBytes = 0;
  }

  #waitForSpace(shard: number, lengthBytes: number): boolean {
    if (this.#isStuck(shard)) return false;
    this.#publish();
    this.#counters.add('ring_full_waits');
    const leftMs = Math.min(this.#settings.ringWaitMs, this.#settings.bodyWaitMs - this.#waitedMs);
    const startMs = performance.now();
    const hasSpace = leftMs > 0 && this.#writer.waitForSpace(shard, lengthBytes, leftMs);
    this.#waitedMs += performance.now() - startMs;
    if (!hasSpace) {
      this.#stuckAt[shard] = this.#writer.progress(shard);
      this.#stuckCount++;
    }
    return hasSpace;
  }

  #isStuck(shard: number): boolean {
    const stuckAt = this.#stuckAt[shard] ?? null;
    if (stuckAt === null) return false;
    if (this.#writer.progress(shard) === stuckAt) return true;
    this.#stuckAt[shard] = null;
    this.#stuckCount--;
    return false;
  }

  #putOversize(shard: number, bytes: Uint8Array, offset: number, lengthBytes: number): boolean {
    if (this.#oversizeBytes + lengthBytes > this.#settings.maxOversizeBytes) {
      const ownBytes = this.#oversizeBytes - this.#oversizeBytesBefore + lengthBytes;
      if (ownBytes > this.#settings.maxOversizeBytes) this.tooLarge = true;
      else this.refused = true;
      return false;
    }
    const record = new ArrayBuffer(lengthBytes);
    new Uint8Array(record).set(bytes.subarray(offset, offset + lengthBytes));
    this.#oversize.push({ shard, record });
    this.#oversizeBytes += lengthBytes;
    return true;
  }
}
