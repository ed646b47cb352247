/** The program as an operator starts it: a process of its own, in a folder of its own, with nothing in its environment. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const start = fileURLToPath(new URL('../src/start.js', import.meta.url));

const folders = mkdtempSync(join(tmpdir(), 'proxy-'));
process.once('exit', () => rmSync(folders, { recursive: true, force: true }));

/** Gone with this process. */
export function newFolder(): string {
  return mkdtempSync(join(folders, 'data-'));
}

const running: Program[] = [];

/** Ends all that run: after every test. */
export async function killAll(): Promise<void> {
  for (const program of running.splice(0)) {
    program.process.kill('SIGKILL');
    await program.exited;
  }
}

export interface Program {
  readonly process: ChildProcessWithoutNullStreams;
  readonly output: () => string;
  readonly errors: () => string;
  /** Resolves with the exit code. */
  readonly exited: Promise<number | null>;
  /** Resolves when standard output matches; rejects when the process ends first. */
  seen(pattern: RegExp): Promise<RegExpExecArray>;
}

/** Started with no environment but the path and what is given; without a DATA_DIR, in a folder of its own. */
export function run(words: readonly string[], environment: Record<string, string> = {}): Program {
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', start, ...words], {
    env: {
      PATH: process.env['PATH'],
      HOST: '127.0.0.1',
      HTTP_PORT: '0',
      EMBEDDED_PORT: '0',
      DATA_DIR: environment['DATA_DIR'] ?? newFolder(),
      ...environment,
    },
  });
  let [output, errors] = ['', ''];
  const listeners = new Set<() => void>();
  const tell = (): void => listeners.forEach((listener) => listener());
  child.stdout.on('data', (chunk) => {
    output += String(chunk);
    tell();
  });
  child.stderr.on('data', (chunk) => (errors += String(chunk)));
  /** All that it said is here: its end alone may come before that. */
  let isOver = false;
  const exited = once(child, 'close').then(([code]) => {
    isOver = true;
    tell();
    return code as number | null;
  });
  const program: Program = {
    process: child,
    output: () => output,
    errors: () => errors,
    exited,
    seen: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(output);
          if (match !== null) resolve(match);
          else if (isOver) reject(new Error(`ended without ${pattern}\n${output}\n${errors}`));
          else return;
          listeners.delete(look);
        };
        listeners.add(look);
        look();
      }),
  };
  running.push(program);
  return program;
}

/** Its address, once it is ready. */
export async function ready(program: Program): Promise<string> {
  const [, port] = await program.seen(/"port":(\d+),.*"msg":"ready"/);
  return `http://127.0.0.1:${port}`;
}

/** The last log line, as a value. */
export function lastLine(program: Program): Record<string, unknown> {
  return JSON.parse(program.output().trim().split('\n').at(-1) ?? '');
}
