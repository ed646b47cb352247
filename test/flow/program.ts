/** The proxy as a process of its own, for tests that kill it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const start = fileURLToPath(new URL('../../src/start.js', import.meta.url));

export interface Program {
  readonly child: ChildProcess;
  readonly port: number;
  /** Resolves with exit code or signal. */
  readonly exited: Promise<number | string | null>;
  /** What it logged, one object a line. */
  readonly lines: Record<string, unknown>[];
  kill(signal: NodeJS.Signals): Promise<number | string | null>;
}

/** Resolves when it is ready; rejects with what it said when it ends before. */
export async function startProgram(environment: Record<string, string>, command: string[] = []): Promise<Program> {
  const words = [...command, process.execPath, '--disable-warning=ExperimentalWarning', start];
  const child = spawn(words[0] ?? '', words.slice(1), {
    env: {
      PATH: process.env['PATH'],
      HOST: '127.0.0.1',
      HTTP_PORT: '0',
      SERVICE_API_KEY: 'configured-key',
      DEPLOYMENT_API: 'off',
      FLUSH_INTERVAL_MS: '20',
      RETRY_BACKOFF_MS: '5',
      ...environment,
    },
  });
  const lines: Program['lines'] = [];
  let errors = '';
  child.stderr.on('data', (chunk) => (errors += String(chunk)));
  const exited = once(child, 'close').then(([code, signal]) => (code ?? signal) as number | string | null);
  const port = await new Promise<number>((resolve, reject) => {
    createInterface(child.stdout).on('line', (line) => {
      const fields = JSON.parse(line) as Record<string, unknown>;
      lines.push(fields);
      if (fields['msg'] === 'ready') resolve(Number(fields['port']));
    });
    void exited.then((code) => reject(new Error(`ended with ${code}: ${errors}\n${JSON.stringify(lines)}`)));
  });
  return {
    child,
    port,
    exited,
    lines,
    kill: (signal) => {
      child.kill(signal);
      return exited;
    },
  };
}

/**
 * A port that nobody else uses, also while the program is away: from below the range that the system takes for outgoing
 * connections, where a client that tries again and again would sooner or later connect to itself.
 */
export async function fixedPort(): Promise<number> {
  for (;;) {
    const port = 10_240 + randomInt(22_000);
    const server = createServer();
    server.listen(port, '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false,
    );
    server.close();
    if (isFree) return port;
  }
}
