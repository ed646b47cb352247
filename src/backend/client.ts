/** A typed client of the backend: its queries (api.ts), its uploads, its scripted faults. For tests, demo, console. */
import { randomUUID } from 'node:crypto';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { SECOND_MS } from '../core/units.ts';
import type {
  FaultRule,
  FaultState,
  Page,
  Project,
  RunDetail,
  RunSummary,
  Stats,
  TraceDetail,
  TraceEvent,
  TraceNode,
  TraceRun,
  TraceSummary,
  UploadNote,
} from './api.ts';
import { type FormPart, jsonPart, writeMultipart } from './form.ts';
import { DOCUMENT_FIELDS } from './record.ts';

/** Parameters as api.ts lists them; a list repeats the parameter. */
export type Query = Readonly<Record<string, string | number | readonly string[] | undefined>>;

export type BackendEvent =
  { readonly kind: 'ready' } | { readonly kind: 'reset' } | { readonly kind: 'traces'; readonly data: TraceEvent };

export interface UploadOptions {
  readonly key?: string;
  readonly coding?: 'zstd' | 'gzip' | '';
  readonly boundary?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface UploadAnswer {
  readonly status: number;
  readonly text: string;
  readonly headers: Headers;
}

export interface BackendClient {
  readonly url: string;
  runs(query?: Query): Promise<Page<RunSummary>>;
  /** All pages. */
  allRuns(query?: Query): Promise<RunSummary[]>;
  /** Null: there is none. */
  run(id: string, tenant?: string): Promise<RunDetail | null>;
  traces(query?: Query): Promise<Page<TraceSummary>>;
  trace(id: string, tenant?: string): Promise<(TraceDetail & { readonly runs: readonly TraceRun[] }) | null>;
  tree(id: string, tenant?: string): Promise<(TraceDetail & { readonly roots: readonly TraceNode[] }) | null>;
  projects(tenant?: string): Promise<readonly Project[]>;
  stats(query?: Query): Promise<Stats>;
  uploads(): Promise<readonly UploadNote[]>;
  /** Live until `signal` is aborted or the backend stops. */
  events(signal: AbortSignal, query?: Query): AsyncGenerator<BackendEvent, void>;
  /**
   * Resolves as soon as the traces that pass the filter hold `runCount` runs. Rejects after `timeoutMs`, and says how
   * many there were. Waits for events, asks again after each.
   */
  waitForRuns(runCount: number, options?: { query?: Query; timeoutMs?: number; signal?: AbortSignal }): Promise<Stats>;
  addFault(rule: FaultRule): Promise<readonly FaultState[]>;
  faults(): Promise<readonly FaultState[]>;
  clearFaults(): Promise<void>;
  /** Posts parts as they are, or bytes that are meant to be a form. */
  upload(parts: readonly FormPart[] | Uint8Array, options?: UploadOptions): Promise<UploadAnswer>;
  /** Posts runs as records; their documents go into parts of their own. */
  uploadRuns(
    runs: readonly Readonly<Record<string, unknown>>[],
    options?: UploadOptions & { op?: 'post' | 'patch' },
  ): Promise<UploadAnswer>;
}

const WAIT_MS = 60 * SECOND_MS;
const MAX_PAGE = 1000;

export function createBackendClient(backendUrl: string): BackendClient {
  const url = backendUrl.replace(/\/+$/, '');

  const get = async (path: string, query: Query = {}): Promise<unknown> => {
    const response = await fetch(`${url}${path}${queryString(query)}`);
    const text = await response.text();
    if (response.status === 404) return null;
    if (!response.ok) throw new Error(`GET ${path}: ${response.status} ${text}`);
    return JSON.parse(text);
  };
  const ofTenant = (tenant: string | undefined): Query => (tenant === undefined ? {} : { tenant });
  const segment = encodeURIComponent;

  const changeFaults = async (method: string, rule?: FaultRule): Promise<readonly FaultState[]> => {
    const body = rule === undefined ? {} : { body: JSON.stringify(rule) };
    const response = await fetch(`${url}/api/faults`, { method, ...body });
    if (!response.ok) throw new Error(`${method} /api/faults: ${response.status} ${await response.text()}`);
    return ((await response.json()) as { items: FaultState[] }).items;
  };

  const client: BackendClient = {
    url,
    runs: async (query) => (await get('/api/runs', query)) as Page<RunSummary>,
    allRuns: async (query = {}) => {
      const all: RunSummary[] = [];
      for (let cursor: string | null = ''; cursor !== null;) {
        const page: Page<RunSummary> = await client.runs({ limit: MAX_PAGE, ...query, cursor });
        all.push(...page.items);
        cursor = page.next_cursor;
      }
      return all;
    },
    run: async (id, tenant) => (await get(`/api/runs/${segment(id)}`, ofTenant(tenant))) as RunDetail | null,
    traces: async (query) => (await get('/api/traces', query)) as Page<TraceSummary>,
    trace: async (id, tenant) =>
      (await get(`/api/traces/${segment(id)}`, { ...ofTenant(tenant), format: 'flat' })) as
        (TraceDetail & { runs: TraceRun[] }) | null,
    tree: async (id, tenant) =>
      (await get(`/api/traces/${segment(id)}`, { ...ofTenant(tenant), format: 'tree' })) as
        (TraceDetail & { roots: TraceNode[] }) | null,
    projects: async (tenant) => ((await get('/api/projects', ofTenant(tenant))) as { items: Project[] }).items,
    stats: async (query) => (await get('/api/stats', query)) as Stats,
    uploads: async () => ((await get('/api/uploads')) as { items: UploadNote[] }).items,
    events: (signal, query) => readEvents(`${url}/api/events${queryString(query ?? {})}`, signal),
    waitForRuns: (runCount, options) => waitForRuns(client, runCount, options),
    addFault: (rule) => changeFaults('POST', rule),
    faults: () => changeFaults('GET'),
    clearFaults: async () => void (await changeFaults('DELETE')),
    upload: async (parts, { key = 'test-key', coding = '', boundary, headers } = {}) => {
      const mark = boundary ?? `form-${randomUUID()}`;
      const form = parts instanceof Uint8Array ? parts : writeMultipart(parts, mark);
      const body = coding === 'zstd' ? zstdCompressSync(form) : coding === 'gzip' ? gzipSync(form) : form;
      const response = await fetch(`${url}/runs/multipart`, {
        method: 'POST',
        headers: {
          'Content-Type': `multipart/form-data; boundary=${mark}`,
          'X-API-Key': key,
          ...(coding === '' ? {} : { 'Content-Encoding': coding }),
          ...headers,
        },
        body: Buffer.from(body.buffer as ArrayBuffer, body.byteOffset, body.byteLength),
      });
      return { status: response.status, text: await response.text(), headers: response.headers };
    },
    uploadRuns: (runs, { op = 'post', ...options } = {}) =>
      client.upload(
        runs.flatMap((run) => partsOf(op, run)),
        options,
      ),
  };
  return client;
}

/** The parts of one run, as uploaders split it. */
export function partsOf(op: 'post' | 'patch', run: Readonly<Record<string, unknown>>): FormPart[] {
  const record = { ...run };
  const name = `${op}.${String(run['id'])}`;
  const documents: FormPart[] = [];
  for (const field of DOCUMENT_FIELDS) {
    if (record[field] !== undefined && record[field] !== null)
      documents.push(jsonPart(`${name}.${field}`, record[field]));
    delete record[field];
  }
  return [jsonPart(name, record), ...documents];
}

function queryString(query: Query): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined) continue;
    for (const each of typeof value === 'object' ? value : [String(value)]) params.append(name, each);
  }
  const text = params.toString();
  return text === '' ? '' : `?${text}`;
}

async function waitForRuns(
  client: BackendClient,
  runCount: number,
  { query, timeoutMs = WAIT_MS, signal }: { query?: Query; timeoutMs?: number; signal?: AbortSignal } = {},
): Promise<Stats> {
  const done = new AbortController();
  const limits = [done.signal, AbortSignal.timeout(timeoutMs), ...(signal === undefined ? [] : [signal])];
  try {
    for await (const _event of client.events(AbortSignal.any(limits))) {
      const stats = await client.stats(query);
      if (stats.run_count >= runCount) return stats;
    }
  } finally {
    done.abort();
  }
  // The last event may have been cut off by the time limit.
  const stats = await client.stats(query);
  if (stats.run_count >= runCount) return stats;
  throw new Error(`${stats.run_count} of ${runCount} runs arrived within ${timeoutMs} ms`);
}

/** Ends without an error when the signal is aborted or the stream ends. */
async function* readEvents(url: string, signal: AbortSignal): AsyncGenerator<BackendEvent, void> {
  const own = new AbortController();
  const either = AbortSignal.any([signal, own.signal]);
  try {
    const response = await fetch(url, { signal: either });
    if (!response.ok || response.body === null) throw new Error(`GET ${url}: ${response.status}`);
    let text = '';
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const messages = (text + chunk).split('\n\n');
      text = messages.pop() ?? '';
      for (const message of messages) {
        const event = parseEvent(message);
        if (event !== null) yield event;
      }
    }
  } catch (error) {
    if (!either.aborted) throw error;
  } finally {
    own.abort();
  }
}

function parseEvent(message: string): BackendEvent | null {
  const lines = message.split('\n');
  const kind = lines.find((line) => line.startsWith('event: '))?.slice('event: '.length);
  const data = lines.find((line) => line.startsWith('data: '))?.slice('data: '.length);
  if (kind === 'traces' && data !== undefined) return { kind, data: JSON.parse(data) as TraceEvent };
  return kind === 'ready' || kind === 'reset' ? { kind } : null;
}
