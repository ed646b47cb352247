/** The deployment API on a port of its own, for attacks on it: what it answers, counts and logs is at hand. */
import type { CounterName } from '../../src/core/counters.ts';
import type { Log } from '../../src/core/log.ts';
import { OPERATIONS } from '../../src/deploy/openapi.ts';
import { startServer, type ServerOptions, type TestServer } from '../deploy-server.ts';

export interface Answer {
  status: number;
  headers: Headers;
  text: string;
  json: unknown;
  /** Of a refusal; empty for anything else. */
  detail: string;
}

export interface ApiServer extends TestServer {
  readonly port: number;
  /** A body that is no text is sent as JSON. */
  ask(method: string, path: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  /** The id of a new thread. */
  thread(body?: object): Promise<string>;
  counted(name: CounterName): number;
  /** Everything that was logged, as text. */
  logged(): string;
}

export async function startApi(options: ServerOptions): Promise<ApiServer> {
  const counts = new Map<CounterName, number>();
  const lines: string[] = [];
  const line = (fields: object, message: string): void => {
    lines.push(
      JSON.stringify({ ...fields, message }, (_, value: unknown) =>
        value instanceof Error ? { stack: value.stack, ...value, cause: value.cause } : value,
      ),
    );
  };
  const log: Log = { debug: line, info: line, warn: line, error: line, child: () => log };
  const server = await startServer({
    ...options,
    settings: {
      log,
      counters: {
        add: (name, amount = 1) => void counts.set(name, (counts.get(name) ?? 0) + amount),
        observe: () => undefined,
      },
      ...options.settings,
    },
  });
  const ask: ApiServer['ask'] = async (method, path, body, headers = {}) => {
    const response = await fetch(server.url + path, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type') === 'application/json' && text !== '';
    const json: unknown = isJson ? JSON.parse(text) : null;
    const detail = (json as { detail?: unknown } | null)?.detail;
    return {
      status: response.status,
      headers: response.headers,
      text,
      json,
      detail: typeof detail === 'string' ? detail : '',
    };
  };
  return {
    ...server,
    port: Number(new URL(server.url).port),
    ask,
    thread: async (body = {}) => {
      const { json } = await ask('POST', '/threads', body);
      return (json as { thread_id: string }).thread_id;
    },
    counted: (name) => counts.get(name) ?? 0,
    logged: () => lines.join('\n'),
  };
}

/** Looks again and again until it holds; for conditions that come by themselves. */
export async function until(holds: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (const deadlineMs = performance.now() + PATIENCE_MS; !(await holds());) {
    if (performance.now() > deadlineMs) throw new Error(`it never came: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

const PATIENCE_MS = 120_000;
const LOOK_MS = 10;

export interface PlacedOperation {
  method: string;
  pattern: string;
  path: string;
  takesBody: boolean;
}

/** Every operation of the API, its parameters filled in. */
export function operations(params: Readonly<Record<string, string>>): PlacedOperation[] {
  return OPERATIONS.map(({ method, pattern, body }) => ({
    method,
    pattern,
    path: pattern.replace(/:(\w+)\*?/g, (_, name: string) => params[name] ?? 'x'),
    takesBody: body !== undefined,
  }));
}
