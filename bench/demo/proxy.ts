/** The proxy that the demo talks to: one that runs already, or one of its own, which it stops again. */
import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export interface DemoProxy {
  readonly url: string;
  /** Of the embedded backend's queries; null when they cannot be reached. */
  readonly backendUrl: string | null;
  readonly own: boolean;
  stop(): Promise<void>;
}

/** Where `npm run dev` has its embedded backend unless told otherwise. */
const USUAL_BACKEND = 'http://127.0.0.1:4319';
const PROBE_MS = 1500;
const START_MS = 60_000;
const STOP_MS = 12_000;

/** `given`: a proxy that must answer. Null: the usual one if it answers, else one of our own. */
export async function findProxy(given: string | null, givenBackend: string | null): Promise<DemoProxy> {
  const url = (given ?? 'http://127.0.0.1:4318').replace(/\/+$/, '');
  const answer = await probe(`${url}/ready`);
  if (answer === null && given !== null) throw new Error(`no collector answers at ${url}`);
  if (answer !== 200) {
    if (given !== null) throw new Error(`${url}/ready says ${answer}: the collector is not ready`);
    // Something else may have the port, or the collector there is on its way up or down.
    return startProxy();
  }
  return { url, backendUrl: await findBackend(url, givenBackend), own: false, stop: async () => undefined };
}

async function findBackend(url: string, given: string | null): Promise<string | null> {
  for (const candidate of given === null ? [url, USUAL_BACKEND] : [given]) {
    if ((await probe(`${candidate}/api/stats`)) === 200) return candidate;
  }
  return null;
}

/** The status, or null when nobody answers. */
async function probe(url: string): Promise<number | null> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(PROBE_MS) });
    await response.body?.cancel();
    return response.status;
  } catch {
    return null;
  }
}

export async function startProxy(): Promise<DemoProxy> {
  const folder = await mkdtemp(join(tmpdir(), 'collector-demo-'));
  const program = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program, 'dev'], {
    env: { ...process.env, HTTP_PORT: '0', HOST: '127.0.0.1', EMBEDDED_PORT: '0', DATA_DIR: folder, LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lastLines: string[] = [];
  const remember = (line: string): void => {
    lastLines.push(line);
    if (lastLines.length > 20) lastLines.shift();
  };
  createInterface({ input: child.stderr }).on('line', remember);
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const cut = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    await exited;
    clearTimeout(cut);
    await rm(folder, { recursive: true, force: true });
  };
  const ready = new Promise<{ port: number; endpoint: string }>((resolve) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      remember(line);
      const entry = readLine(line);
      if (entry !== null) resolve(entry);
    });
  });
  const failed = Promise.race([
    exited.then(() => 'it ended'),
    new Promise<string>((resolve) => setTimeout(resolve, START_MS, 'it took too long').unref()),
  ]).then((reason) => {
    throw new Error(`the collector did not start: ${reason}\n${lastLines.join('\n')}`);
  });
  try {
    const { port, endpoint } = await Promise.race([ready, failed]);
    return { url: `http://127.0.0.1:${port}`, backendUrl: endpoint, own: true, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** The log line that says where the service listens and where its uploads go. */
function readLine(line: string): { port: number; endpoint: string } | null {
  if (!line.startsWith('{')) return null;
  try {
    const entry = JSON.parse(line) as { msg?: unknown; port?: unknown; endpoint?: unknown };
    const { port, endpoint } = entry;
    return entry.msg === 'ready' && typeof port === 'number' && typeof endpoint === 'string'
      ? { port, endpoint }
      : null;
  } catch {
    return null;
  }
}
