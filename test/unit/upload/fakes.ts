/** A clock that stands still until told otherwise, and a backend that answers as scripted. */
import type { Clock } from '../../../src/core/lifecycle.ts';
import type { Tenant } from '../../../src/core/run.ts';
import { sliceBatch } from '../../../src/upload/batch.ts';
import type { Batch } from '../../../src/upload/batch.ts';
import type { Answer, Backend } from '../../../src/upload/client.ts';
import { createCodec } from '../../../src/upload/compress.ts';

export class FakeClock implements Clock {
  #nowMs = 1_000_000;
  #sleepers: { atMs: number; wake: () => void }[] = [];

  nowMs(): number {
    return this.#nowMs;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted === true) return resolve();
      const sleeper = { atMs: this.#nowMs + ms, wake: resolve };
      this.#sleepers.push(sleeper);
      const cancel = (): void => {
        this.#sleepers = this.#sleepers.filter((other) => other !== sleeper);
        resolve();
      };
      signal?.addEventListener('abort', cancel, { once: true });
    });
  }

  /** Lets time pass, waking sleepers at their moments. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await settle();
    for (;;) {
      const [next] = this.#sleepers.filter((sleeper) => sleeper.atMs <= endMs).sort((a, b) => a.atMs - b.atMs);
      if (next === undefined) break;
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      this.#sleepers = this.#sleepers.filter((other) => other !== next);
      next.wake();
      await settle();
    }
    this.#nowMs = endMs;
  }
}

/** Lets everything run that does not wait for the clock. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
}

export function answered(status: number, more: { retryAfterMs?: number; text?: string } = {}): Answer {
  return { kind: 'answered', status, retryAfterMs: more.retryAfterMs ?? null, text: more.text ?? '' };
}

export const DELIVERED = answered(202);
export const RESET: Answer = { kind: 'failed', sent: true, reason: 'ECONNRESET' };
export const UNREACHABLE: Answer = { kind: 'failed', sent: false, reason: 'ECONNREFUSED' };

export interface Upload {
  readonly atMs: number;
  readonly tenant: number;
  /** Names of the runs, see {@link makeBatch}. */
  readonly runs: readonly string[];
  readonly batch: Batch;
}

export const codec = createCodec(1);

type Script = (upload: Upload, count: number) => Answer | Promise<Answer>;

export class ScriptedBackend implements Backend {
  readonly uploads: Upload[] = [];
  script: Script;
  inFlight = 0;
  maxInFlight = 0;
  readonly #clock: Clock;

  constructor(clock: Clock, script: Script = () => DELIVERED) {
    this.#clock = clock;
    this.script = script;
  }

  async upload(batch: Batch, signal: AbortSignal): Promise<Answer> {
    const plain = codec.decode(batch.body, batch.coding, batch.plainBytes).toString('utf8');
    const runs = [...plain.matchAll(/name="post\.([^".]+)"/g)].map((match) => match[1] ?? '');
    const upload = { atMs: this.#clock.nowMs(), tenant: batch.tenant.number, runs, batch };
    this.uploads.push(upload);
    this.maxInFlight = Math.max(this.maxInFlight, ++this.inFlight);
    const cut = new Promise<Answer>((resolve) => {
      signal.addEventListener('abort', () => resolve({ kind: 'failed', sent: true, reason: 'AbortError' }), {
        once: true,
      });
    });
    const answer = await Promise.race([this.script(upload, this.uploads.length), cut]);
    this.inFlight--;
    return answer;
  }

  info(): Promise<null> {
    return Promise.resolve(null);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

export function makeTenant(number: number): Tenant {
  return { number, apiKey: `key-${number}` };
}

/** Runs by name, each with a payload of so many bytes. */
export function makeBatch(tenant: Tenant, runs: readonly string[], payloadBytes = 10): Batch {
  let plain = '';
  const starts: number[] = [];
  for (const run of runs) {
    starts.push(plain.length);
    const body = JSON.stringify({ id: run, pad: 'x'.repeat(payloadBytes) });
    plain += `--B\r\nContent-Disposition: form-data; name="post.${run}"\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}\r\n`;
  }
  starts.push(plain.length);
  const whole = Buffer.from(`${plain}--B--\r\n`);
  const batch: Batch = {
    tenant,
    boundary: 'B',
    coding: 'identity',
    body: whole,
    plainBytes: whole.length,
    runCount: runs.length,
    runStarts: Uint32Array.from(starts),
    runSources: null,
  };
  return sliceBatch(batch, whole, 0, runs.length, codec, 'zstd');
}
