/** The program in a process of its own, for attacks on it: what it answers, holds, counts and logs is seen from outside. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { REQUEST_OVERHEAD_BYTES } from '../../src/accept/budget.ts';
import { scrape, type Scrape } from '../metrics.ts';

export interface Program {
  readonly port: number;
  /** Of `/v1/traces`. */
  readonly url: string;
  readonly pid: number;
  /** Null while it runs. */
  readonly exitCode: number | null;
  output(): string;
  metrics(): Promise<Scrape>;
  /** Largest resident memory since the start or the last `forgetPeak`, bytes. Linux only. */
  peakBytes(): number;
  forgetPeak(): void;
  /** Resolves when the metrics say so; looked at again and again. */
  until(enough: (seen: Scrape) => boolean): Promise<Scrape>;
  /** Resolves when no request body is held any more. */
  idle(): Promise<void>;
  /** SIGTERM, and the exit code. */
  stop(): Promise<number | null>;
}

export interface ProgramOptions {
  /** Of open files and sockets together. */
  readonly descriptorLimit?: number;
  readonly words?: readonly string[];
}

const start = fileURLToPath(new URL('../../src/start.js', import.meta.url));
const LOOK_MS = 25;
const STATUS_UNIT_BYTES = 1024;

/** Quick flushes and retries; everything else as it ships. */
export async function startProgram(
  environment: Record<string, string>,
  options: ProgramOptions = {},
): Promise<Program> {
  const folder = await mkdtemp(join(tmpdir(), 'hostile-'));
  const words = ['--disable-warning=ExperimentalWarning', start, ...(options.words ?? [])];
  const limit = options.descriptorLimit === undefined ? '' : `ulimit -n ${options.descriptorLimit} && `;
  const child = spawn('sh', ['-c', `${limit}exec "$0" "$@"`, process.execPath, ...words], {
    env: {
      PATH: process.env['PATH'],
      HOST: '127.0.0.1',
      HTTP_PORT: '0',
      EMBEDDED_PORT: '0',
      SERVICE_API_KEY: 'configured-key',
      FLUSH_INTERVAL_MS: '20',
      RETRY_BACKOFF_MS: '5',
      DATA_DIR: folder,
      ...environment,
    },
  });
  let output = '';
  let seen: () => void = () => undefined;
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      output += String(chunk);
      seen();
    });
  }
  const exited = once(child, 'close').then(async ([code]) => {
    seen();
    await rm(folder, { recursive: true, force: true });
    return code as number | null;
  });
  const port = await new Promise<number>((resolve, reject) => {
    seen = () => {
      const [, found, shown] = /"port":(\d+),.*"msg":"ready"|http:\/\/localhost:(\d+)\/v1\/traces/.exec(output) ?? [];
      if ((found ?? shown) !== undefined) resolve(Number(found ?? shown));
      else if (child.exitCode !== null) reject(new Error(`ended before it was ready\n${output}`));
    };
  });
  const pid = child.pid ?? 0;
  const metrics = (): Promise<Scrape> => scrape(`http://127.0.0.1:${port}/metrics`);
  const until = async (enough: (seen: Scrape) => boolean): Promise<Scrape> => {
    for (;;) {
      const now = await metrics();
      if (enough(now)) return now;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  };
  return {
    port,
    url: `http://127.0.0.1:${port}/v1/traces`,
    pid,
    get exitCode() {
      return child.exitCode;
    },
    output: () => output,
    metrics,
    peakBytes: () => {
      const [, kilobytes] = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
      return Number(kilobytes) * STATUS_UNIT_BYTES;
    },
    forgetPeak: () => writeFileSync(`/proc/${pid}/clear_refs`, '5'),
    until,
    idle: async () => {
      // The question itself is a request.
      await until(({ sum }) => sum('collector_proxy_admitted_bytes') <= REQUEST_OVERHEAD_BYTES);
    },
    stop: () => {
      child.kill('SIGTERM');
      return exited;
    },
  };
}
