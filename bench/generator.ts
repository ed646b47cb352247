/**
 * The load generator, a process of its own, driven by messages from its parent. It must cost little beside the service
 * it measures: bodies are encoded once, only the ids are overwritten for each request, and the sockets are plain TCP.
 *
 * Traces run over from one request into the next, so a connection sends a chain of requests to its end before it begins
 * another, also when the load has ended. A request that is refused for now (503, 429, a broken connection) is sent again,
 * the same bytes, until it is acknowledged.
 */
import { connect, type Socket } from 'node:net';

import { buildChain, writeIds, type Chain, type ChainSettings, type Template } from './chain.ts';
import { quantile } from './report.ts';

export interface LoadSettings extends ChainSettings {
  readonly connectionCount: number;
  /** Identifies this phase in the spans' ids; not zero, unique while the sink lives. */
  readonly phase: number;
  readonly durationMs: number;
  /** Open loop at this rate; null: closed loop, every connection sends as soon as it was answered. */
  readonly spansPerSec: number | null;
}

export interface LoadResult {
  readonly sentSpanCount: number;
  readonly ackedSpanCount: number;
  readonly ackedRequestCount: number;
  readonly bodyBytes: number;
  /** Refused for now and sent again. */
  readonly refusedCount: number;
  readonly brokenConnectionCount: number;
  /** Answers that a resend cannot mend; those spans are not acknowledged. */
  readonly failedCount: number;
  /** Acknowledged before the load ended, by the second. */
  readonly spansPerSec: number;
  /** From the scheduled start (open loop) or from sending (closed loop) to the answer, resends included. */
  readonly latencyMs: { readonly p50: number; readonly p99: number; readonly p999: number; readonly max: number };
  /** Open loop: how late requests left, at the 99th percentile, for want of a free connection or of CPU here. */
  readonly lateP99Ms: number;
}

export type GeneratorMessage = { kind: 'result'; result: LoadResult } | { kind: 'failed'; message: string };

/** How long a refused request waits before it is sent again: short, to find the maximum, whatever Retry-After says. */
const RESEND_MS = 25;
/** Chains in flight are completed after the load has ended, but not for ever. */
const COMPLETION_MS = 30_000;

interface Tally {
  sentSpanCount: number;
  ackedSpanCount: number;
  ackedInTimeSpanCount: number;
  ackedRequestCount: number;
  bodyBytes: number;
  refusedCount: number;
  brokenConnectionCount: number;
  failedCount: number;
  readonly latenciesMs: number[];
  readonly lateMs: number[];
}

/** One keep-alive connection with one request in flight at most. */
class Connection {
  busy = false;
  private readonly requests: readonly { template: Template; bytes: Buffer }[];
  private readonly load: Load;
  private step = 0;
  private firstNumber = 0;
  private scheduledMs = 0;
  private socket: Socket | null = null;
  private received = '';
  private closed = false;
  private resend: NodeJS.Timeout | undefined;

  constructor(load: Load) {
    this.load = load;
    // Own copies: the bytes of a request must not change while the kernel has not taken them all.
    this.requests = load.chain.templates.map((template) => ({ template, bytes: Buffer.from(template.bytes) }));
  }

  get midChain(): boolean {
    return this.step !== 0;
  }

  /** Sends the next request of the chain; `scheduledMs` is where its latency starts, infinite if it does not count. */
  send(scheduledMs: number): void {
    const { tally, settings } = this.load;
    this.busy = true;
    this.scheduledMs = scheduledMs;
    if (this.step === 0) this.firstNumber = this.load.takeNumbers();
    const { template, bytes } = this.current();
    writeIds(template, bytes, settings.encoding, settings.phase, this.firstNumber);
    tally.sentSpanCount += template.spanCount;
    tally.bodyBytes += template.bodyBytes;
    this.transmit();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.resend);
    this.socket?.destroy();
  }

  private current(): { template: Template; bytes: Buffer } {
    const request = this.requests[this.step];
    if (request === undefined) throw new RangeError(`step ${this.step} of ${this.requests.length}`);
    return request;
  }

  private readonly transmit = (): void => {
    if (this.closed) return;
    this.resend = undefined;
    this.received = '';
    if (this.socket === null || this.socket.destroyed) this.socket = this.open();
    this.socket.write(this.current().bytes);
  };

  private open(): Socket {
    const url = new URL(this.load.settings.url);
    const socket = connect(Number(url.port || 80), url.hostname).setNoDelay();
    socket.on('data', (chunk: Buffer) => {
      this.received += chunk.toString('latin1');
      const status = completeStatus(this.received);
      if (status !== null && this.busy && this.resend === undefined) this.answered(status);
    });
    socket.on('error', () => undefined); // `close` follows and counts it
    socket.on('close', () => {
      if (this.closed || socket !== this.socket) return;
      this.socket = null;
      if (!this.busy) return;
      this.load.tally.brokenConnectionCount++;
      this.resendLater();
    });
    return socket;
  }

  /** Once, also when a refusal is followed by the end of its connection. */
  private resendLater(): void {
    this.resend ??= setTimeout(this.transmit, RESEND_MS);
  }

  private answered(status: number): void {
    const { tally, endMs } = this.load;
    if (status === 503 || status === 429) {
      tally.refusedCount++;
      this.resendLater();
      return;
    }
    if (status >= 200 && status <= 299) {
      const { spanCount } = this.current().template;
      const nowMs = performance.now();
      tally.ackedRequestCount++;
      tally.ackedSpanCount += spanCount;
      if (nowMs <= endMs) tally.ackedInTimeSpanCount += spanCount;
      if (this.scheduledMs <= endMs) tally.latenciesMs.push(nowMs - this.scheduledMs);
    } else tally.failedCount++;
    this.busy = false;
    this.step = (this.step + 1) % this.requests.length;
    this.load.freed(this);
  }
}

/** One phase of load, from its first request to the completion of its last chain. */
class Load {
  readonly tally: Tally = {
    sentSpanCount: 0,
    ackedSpanCount: 0,
    ackedInTimeSpanCount: 0,
    ackedRequestCount: 0,
    bodyBytes: 0,
    refusedCount: 0,
    brokenConnectionCount: 0,
    failedCount: 0,
    latenciesMs: [],
    lateMs: [],
  };
  readonly settings: LoadSettings;
  readonly chain: Chain;
  readonly endMs: number;
  private readonly intervalMs: number;
  /** Open loop: when the next request is due. */
  private dueMs: number;
  private readonly connections: readonly Connection[];
  private readonly idle: Connection[] = [];
  /** When requests were due that have not been sent, from `overdueHead` on. */
  private readonly overdueMs: number[] = [];
  private overdueHead = 0;
  private nextNumber = 1;
  private ended = false;
  private finish: () => void = () => undefined;

  constructor(settings: LoadSettings) {
    this.settings = settings;
    this.chain = buildChain(settings);
    this.connections = Array.from({ length: settings.connectionCount }, () => new Connection(this));
    this.intervalMs = (settings.spansPerRequest / (settings.spansPerSec ?? Number.NaN)) * 1000;
    this.dueMs = performance.now();
    this.endMs = this.dueMs + settings.durationMs;
  }

  async run(): Promise<LoadResult> {
    const { spansPerSec, durationMs } = this.settings;
    const finished = new Promise<void>((resolve) => (this.finish = resolve));
    for (const connection of this.connections) this.freed(connection);
    if (spansPerSec !== null) this.tick();
    let completion: NodeJS.Timeout | undefined;
    setTimeout(() => {
      if (spansPerSec !== null) this.sendDue();
      this.ended = true;
      completion = setTimeout(this.finish, COMPLETION_MS);
      // From here on connections go on by themselves, so none may be left in the idle list.
      for (const connection of this.idle.splice(0)) this.freed(connection);
    }, durationMs);
    await finished;
    clearTimeout(completion);
    for (const connection of this.connections) connection.close();
    return this.result();
  }

  takeNumbers(): number {
    const firstNumber = this.nextNumber;
    this.nextNumber += this.chain.spanCount;
    return firstNumber;
  }

  /** What a connection does once it is free. Requests that were due are sent even after the end: they count as late. */
  freed(connection: Connection): void {
    if (this.overdueHead < this.overdueMs.length) this.sendOverdue(connection);
    else if (this.ended) {
      if (connection.midChain) connection.send(Number.POSITIVE_INFINITY);
      else if (this.connections.every(({ busy, midChain }) => !busy && !midChain)) this.finish();
    } else if (this.settings.spansPerSec === null) connection.send(performance.now());
    else this.idle.push(connection);
  }

  private sendOverdue(connection: Connection): void {
    const dueMs = this.overdueMs[this.overdueHead++] ?? 0;
    this.tally.lateMs.push(performance.now() - dueMs);
    connection.send(dueMs);
  }

  private readonly tick = (): void => {
    if (this.ended) return;
    this.sendDue();
    setTimeout(this.tick, 1);
  };

  /** Open loop: sends what is due by now, as far as connections are free. */
  private sendDue(): void {
    const limitMs = Math.min(performance.now(), this.endMs);
    for (; this.dueMs <= limitMs; this.dueMs += this.intervalMs) this.overdueMs.push(this.dueMs);
    while (this.overdueHead < this.overdueMs.length) {
      const connection = this.idle.shift();
      if (connection === undefined) break;
      this.sendOverdue(connection);
    }
  }

  private result(): LoadResult {
    const { latenciesMs, lateMs, ackedInTimeSpanCount, ...counts } = this.tally;
    return {
      ...counts,
      spansPerSec: (ackedInTimeSpanCount / this.settings.durationMs) * 1000,
      latencyMs: {
        p50: quantile(latenciesMs, 0.5),
        p99: quantile(latenciesMs, 0.99),
        p999: quantile(latenciesMs, 0.999),
        max: latenciesMs.reduce((max, ms) => Math.max(max, ms), 0),
      },
      lateP99Ms: lateMs.length === 0 ? 0 : quantile(lateMs, 0.99),
    };
  }
}

/** The status of a complete HTTP/1.1 response, or null while some of it is missing. */
function completeStatus(text: string): number | null {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const head = text.slice(0, headEnd);
  const status = Number(head.slice(9, 12));
  const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
  if (length !== undefined) return text.length >= headEnd + 4 + Number(length) ? status : null;
  if (/\r\ntransfer-encoding: *chunked/i.test(head)) {
    return text.indexOf('0\r\n\r\n', headEnd + 4) === text.length - 5 ? status : null;
  }
  return status;
}

process.on('message', (settings: LoadSettings) => {
  const reply = (message: GeneratorMessage): void => void process.send?.(message);
  Promise.resolve()
    .then(() => new Load(settings).run())
    .then(
      (result) => reply({ kind: 'result', result }),
      (error: unknown) => reply({ kind: 'failed', message: String(error) }),
    );
});
process.on('disconnect', () => process.exit());
