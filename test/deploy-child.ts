/** A deployment in a process of its own, from the side of the test that stops or kills it. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StoreLocation } from '../src/deploy/store/location.ts';

export interface DeploymentChild {
  readonly url: string;
  /** As an operator would; resolves when the process is gone. */
  stop(): Promise<void>;
  /** With SIGKILL; resolves when the process is gone, at once when it already was. */
  kill(): Promise<void>;
}

export async function startChild(folder: string, location: StoreLocation): Promise<DeploymentChild> {
  const child = fork(join(import.meta.dirname, 'deploy-process.ts'), [folder], {
    stdio: 'inherit',
    // The server runs as it is shipped: without the test runner's loader.
    execArgv: ['--disable-warning=ExperimentalWarning'],
    // Not an argument: a database's password would be in the list of processes.
    env: { ...process.env, STORE_LOCATION: JSON.stringify(location) },
  });
  const gone = once(child, 'exit');
  const isGone = (): boolean => child.exitCode !== null || child.signalCode !== null;
  const [message] = (await Promise.race([
    once(child, 'message'),
    gone.then(([code]) => Promise.reject(new Error(`the deployment ended at its start: ${String(code)}`))),
  ])) as [{ url: string }];
  return {
    url: message.url,
    stop: async () => {
      child.send('stop');
      await gone;
    },
    kill: async () => {
      if (isGone()) return;
      child.kill('SIGKILL');
      await gone;
    },
  };
}

/** The lines that the steps of its graphs have written, as soon as there are so many. */
export async function journalOf(file: string, lineCount: number): Promise<string[]> {
  for (const deadline = Date.now() + 60_000; ;) {
    const lines = (await readFile(file, 'utf8').catch(() => '')).trim().split('\n');
    if (lines.length >= lineCount && lines[0] !== '') return lines;
    assert.ok(Date.now() < deadline, `${file} has ${lines.length} lines`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
