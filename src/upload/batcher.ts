/**
 * Runs in, sealed batches out: one open batch a tenant, written as the request body that it will be.
 *
 * A batch is sealed at `batchSize` runs, before the run that would carry it beyond `maxBufferBytes` (a larger single run
 * travels alone), `flushIntervalMs` after its first run, or early when too many or too large batches are open. Sealing
 * compresses on this thread and gives the plain buffer back for the next batch. Nothing here waits or refuses: how much
 * may come in is the shipper's decision.
 */
import type { Counters } from '../core/counters.ts';
import type { Clock } from '../core/lifecycle.ts';
import type { RecordView } from '../core/recordview.ts';
import type { RunSink, Tenant } from '../core/run.ts';
import { KiB, MiB } from '../core/units.ts';
import type { Batch } from './batch.ts';
import type { Codec } from './compress.ts';
import type { UploadLimits } from './limits.ts';
import { MultipartWriter } from './multipart.ts';

export interface BatcherSettings {
  readonly maxBufferBytes: number;
  readonly flushIntervalMs: number;
  /** Open batches at a time. */
  readonly tenantCount: number;
  /** Whether batches know the requests that their runs came with. */
  readonly followSources: boolean;
}

interface OpenBatch {
  readonly tenant: Tenant;
  buffer: Buffer;
  usedBytes: number;
  runCount: number;
  runStarts: number[];
  readonly runSources: number[] | null;
  readonly firstRunMs: number;
}

const FIRST_BUFFER_BYTES = 64 * KiB;
/** Plain buffers kept for the next batches: so many, and so many times a full one together. */
const SPARE_COUNT = 4;
const SPARE_BUFFERS = 2;
/** Memory of all open batches together, in full buffers, but no less than so many bytes; then the oldest leaves early. */
const OPEN_BUFFERS = 4;
const MIN_OPEN_BYTES = 8 * MiB;

export class Batcher implements RunSink {
  readonly #settings: BatcherSettings;
  readonly #limits: UploadLimits;
  readonly #codec: Codec;
  readonly #accept: (batch: Batch) => void;
  readonly #counters: Counters;
  readonly #clock: Clock;
  readonly #maxOpenBytes: number;
  readonly #multipart = new MultipartWriter();
  /** In the order of their first runs. */
  readonly #open = new Map<Tenant, OpenBatch>();
  /** Runs in open batches. */
  openRunCount = 0;
  #last: OpenBatch | null = null;
  #allocatedBytes = 0;
  readonly #spares: Buffer[] = [];

  /** `accept` gets every sealed batch, also from within `put`. */
  constructor(
    settings: BatcherSettings,
    limits: UploadLimits,
    codec: Codec,
    accept: (batch: Batch) => void,
    counters: Counters,
    clock: Clock,
  ) {
    this.#settings = settings;
    this.#maxOpenBytes = Math.max(MIN_OPEN_BYTES, OPEN_BUFFERS * settings.maxBufferBytes);
    this.#limits = limits;
    this.#codec = codec;
    this.#accept = accept;
    this.#counters = counters;
    this.#clock = clock;
  }

  /** Memory of open batches. */
  get openBytes(): number {
    return this.#allocatedBytes;
  }

  /** When {@link flushDue} should be called next; infinity when nothing is open. */
  get nextFlushMs(): number {
    for (const open of this.#open.values()) return open.firstRunMs + this.#settings.flushIntervalMs;
    return Number.POSITIVE_INFINITY;
  }

  put(tenant: Tenant, record: RecordView, order: Buffer, orderBytes: number, endUs: number): void {
    record.readParts();
    let open = this.#last?.tenant === tenant ? this.#last : this.#openFor(tenant);
    this.#reserve(open, this.#multipart.boundBytes(record, orderBytes) + this.#multipart.closing.length);
    const start = open.usedBytes;
    const end = this.#multipart.write(open.buffer, start, record, order, orderBytes, endUs);
    const maxBytes = this.#limits.maxBatchBytes - this.#multipart.closing.length;
    if (end > maxBytes && open.runCount > 0) open = this.#moveRun(open, start, end);
    else open.usedBytes = end;
    open.runStarts.push(open.runCount === 0 ? 0 : start);
    open.runSources?.push(record.source);
    open.runCount++;
    this.openRunCount++;
    this.#counters.add('runs_batched');
    if (open.runCount >= this.#limits.maxNewBatchRuns || open.usedBytes >= maxBytes) {
      this.#close(open);
      this.#counters.add('batches_sealed_full');
    } else if (this.#allocatedBytes > this.#maxOpenBytes) this.#closeOldest();
  }

  /** Seals the batches whose time has come. */
  flushDue(nowMs: number): void {
    for (const open of this.#open.values()) {
      if (open.firstRunMs + this.#settings.flushIntervalMs > nowMs) return;
      this.#close(open);
      this.#counters.add('batches_sealed_late');
    }
  }

  flush(): void {
    for (const open of this.#open.values()) this.#close(open);
  }

  #openFor(tenant: Tenant): OpenBatch {
    let open = this.#open.get(tenant);
    if (open === undefined) {
      if (this.#open.size >= this.#settings.tenantCount) this.#closeOldest();
      const buffer = this.#spares.pop() ?? Buffer.allocUnsafeSlow(FIRST_BUFFER_BYTES);
      this.#allocatedBytes += buffer.length;
      open = {
        tenant,
        buffer,
        usedBytes: 0,
        runCount: 0,
        runStarts: [],
        runSources: this.#settings.followSources ? [] : null,
        firstRunMs: this.#clock.nowMs(),
      };
      this.#open.set(tenant, open);
    }
    this.#last = open;
    return open;
  }

  /** The run just written behind the others is too much: the others leave, it begins the next batch. */
  #moveRun(full: OpenBatch, start: number, end: number): OpenBatch {
    this.#open.delete(full.tenant);
    const next = this.#openFor(full.tenant);
    this.#reserve(next, end - start + this.#multipart.closing.length);
    full.buffer.copy(next.buffer, 0, start, end);
    next.usedBytes = end - start;
    this.#seal(full);
    this.#counters.add('batches_sealed_full');
    return next;
  }

  #reserve(open: OpenBatch, moreBytes: number): void {
    const neededBytes = open.usedBytes + moreBytes;
    if (neededBytes <= open.buffer.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(neededBytes, 2 * open.buffer.length));
    open.buffer.copy(larger, 0, 0, open.usedBytes);
    this.#allocatedBytes += larger.length - open.buffer.length;
    open.buffer = larger;
  }

  #closeOldest(): void {
    for (const open of this.#open.values()) {
      this.#close(open);
      return;
    }
  }

  #close(open: OpenBatch): void {
    this.#open.delete(open.tenant);
    if (this.#last === open) this.#last = null;
    this.#seal(open);
  }

  #seal(open: OpenBatch): void {
    const runStarts = Uint32Array.from([...open.runStarts, open.usedBytes]);
    const plainBytes = open.usedBytes + this.#multipart.closing.copy(open.buffer, open.usedBytes);
    const { coding } = this.#limits;
    const body = this.#codec.encode(open.buffer.subarray(0, plainBytes), coding);
    this.#allocatedBytes -= open.buffer.length;
    this.#keepSpare(open.buffer);
    this.#counters.add('batches_sealed');
    this.#counters.add('batch_bytes', plainBytes);
    this.#counters.add('batch_compressed_bytes', body.length);
    this.#counters.observe('batch_size_bytes', plainBytes);
    const { tenant, runCount } = open;
    this.openRunCount -= runCount;
    this.#counters.observe('batch_runs', runCount);
    const { boundary } = this.#multipart;
    const runSources = open.runSources === null ? null : Uint32Array.from(open.runSources);
    this.#accept({ tenant, boundary, coding, body, plainBytes, runCount, runStarts, runSources });
  }

  #keepSpare(buffer: Buffer): void {
    const spareBytes = this.#spares.reduce((sum, spare) => sum + spare.length, 0);
    const fits = spareBytes + buffer.length <= SPARE_BUFFERS * this.#settings.maxBufferBytes;
    if (fits && this.#spares.length < SPARE_COUNT) this.#spares.push(buffer);
  }
}
