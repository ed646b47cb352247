/** The proxy under test: a process that is started, stopped, frozen and killed, always on the same port and folders. */
import { spawn, type ChildProcess } from 'node:child_process';
import { createWriteStream, type WriteStream } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export interface ProxySettings {
  readonly backendUrl: string;
  readonly dataFolder: string;
  readonly logFile: string;
  readonly environment: Readonly<Record<string, string>>;
}

export interface ProxyProcess {
  readonly url: string;
  /** Whether the process that was started last has been ready; before, SIGTERM may simply end it. */
  readonly wasReady: boolean;
  /** Null while it does not run. */
  readonly pid: number | null;
  start(): void;
  /** Resolves when `/ready` says 200, or rejects after so long. */
  ready(withinMs: number): Promise<void>;
  signal(name: NodeJS.Signals): void;
  /** How it ended: exit code, or the name of a signal. */
  ended(): Promise<number | string>;
  /** Ends that nobody asked for and nothing excuses. A new process was started each time. */
  readonly crashes: readonly string[];
  close(): void;
}

const START_PAUSE_MS = 50;
const RESTART_MS = 500;
const READY_MARK = '"msg":"ready"';

export interface ProxyLinks {
  /** Whether a process may end by itself just now: one cannot start on a full disk. */
  readonly isExcused: () => boolean;
  readonly say: (line: string) => void;
}

export async function createProxy(settings: ProxySettings, links: ProxyLinks): Promise<ProxyProcess> {
  const port = await freePort();
  const log: WriteStream = createWriteStream(settings.logFile, { flags: 'a' });
  const url = `http://127.0.0.1:${port}`;
  const crashes: string[] = [];
  let child: ChildProcess | null = null;
  let ending: Promise<number | string> = Promise.resolve(0);
  let isWanted = false;
  let wasReady = false;

  const ready = async (withinMs: number): Promise<void> => {
    const endMs = performance.now() + withinMs;
    let last = 'no answer';
    while (performance.now() < endMs) {
      try {
        const response = await fetch(`${url}/ready`, { signal: AbortSignal.timeout(2000) });
        last = `${response.status} ${await response.text()}`;
        if (response.status === 200) return;
      } catch (error) {
        last = String(error);
      }
      await sleep(START_PAUSE_MS);
    }
    throw new Error(`the proxy was not ready within ${withinMs} ms: ${last}`);
  };
  const start = (): void => {
    const program = fileURLToPath(new URL('../../src/start.js', import.meta.url));
    isWanted = true;
    const started = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', program], {
      env: {
        PATH: process.env['PATH'],
        HOST: '127.0.0.1',
        HTTP_PORT: String(port),
        SERVICE_ENDPOINT: settings.backendUrl,
        DATA_DIR: settings.dataFolder,
        DEPLOYMENT_API: 'off',
        ...settings.environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    wasReady = false;
    started.stdout.on('data', (chunk) => {
      if (child === started && String(chunk).includes(READY_MARK)) wasReady = true;
    });
    started.stdout.pipe(log, { end: false });
    started.stderr.pipe(log, { end: false });
    child = started;
    ending = once(started, 'exit').then(([code, signal]: (number | string | null)[]) => {
      if (child === started) child = null;
      if (isWanted) restart(String(code ?? signal));
      return code ?? signal ?? 0;
    });
  };
  /** As whoever looks after a service does. */
  const restart = (end: string): void => {
    links.say(`the proxy ended by itself with ${end}`);
    if (!links.isExcused()) crashes.push(`ended by itself with ${end}`);
    setTimeout(() => isWanted && child === null && start(), RESTART_MS);
  };
  return {
    url,
    get pid() {
      return child?.pid ?? null;
    },
    start,
    get wasReady() {
      return wasReady;
    },
    ready,
    signal: (name) => {
      if (name === 'SIGKILL' || name === 'SIGTERM') isWanted = false;
      child?.kill(name);
    },
    ended: () => ending,
    crashes,
    close: () => {
      isWanted = false;
      child?.kill('SIGKILL');
      log.end();
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
