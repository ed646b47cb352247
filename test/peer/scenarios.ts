/** What both servers are asked, one conversation after the other. Each notes what it saw; ids and times are no part of it. */
import { randomUUID } from 'node:crypto';
import { readEvents } from '../event-stream.ts';

export interface Notes {
  /** Asks and notes the answer: its status, what kind it is, the headers that clients read, and its body. */
  ask(method: string, path: string, body?: unknown): Promise<unknown>;
  /** The same for an answer in events. */
  stream(path: string, body: object): Promise<void>;
}

export interface Scenario {
  name: string;
  run(notes: Notes): Promise<void>;
}

const HELLO = { messages: [{ role: 'user', content: 'hi' }] };
const STEPS = { assistant_id: 'steps', input: { name: 'a', stepMs: 0 } };

async function newThread(notes: Notes, body: object = {}): Promise<string> {
  return ((await notes.ask('POST', '/threads', body)) as { thread_id: string }).thread_id;
}

function streamed(mode: string): Scenario {
  return {
    name: `stream ${mode}`,
    run: async (notes) => {
      const thread = await newThread(notes);
      const stream_mode = mode.split(',');
      await notes.stream(`/threads/${thread}/runs/stream`, { ...STEPS, stream_mode });
    },
  };
}

export const SCENARIOS: readonly Scenario[] = [
  { name: 'a new thread', run: async (notes) => void (await newThread(notes, { metadata: { team: 'ops' } })) },
  {
    name: 'a thread that exists',
    run: async (notes) => {
      const thread_id = await newThread(notes);
      await notes.ask('POST', '/threads', { thread_id });
      await notes.ask('POST', '/threads', { thread_id, if_exists: 'do_nothing' });
    },
  },
  {
    name: 'wait on a thread, then its state, its history and itself',
    run: async (notes) => {
      const thread = await newThread(notes);
      await notes.ask('POST', `/threads/${thread}/runs/wait`, { assistant_id: 'echo', input: HELLO });
      for (const what of ['', '/state', '/history', '/runs']) await notes.ask('GET', `/threads/${thread}${what}`);
      await notes.ask('POST', `/threads/${thread}/history`, { limit: 2 });
    },
  },
  {
    name: 'a stateless wait',
    run: async (notes) => void (await notes.ask('POST', '/runs/wait', { assistant_id: 'echo', input: HELLO })),
  },
  ...[
    'values',
    'updates',
    'values,updates',
    'tasks',
    'checkpoints',
    'debug',
    'events',
    'messages',
    'messages-tuple',
  ].map(streamed),
  {
    name: 'a stateless stream',
    run: async (notes) => notes.stream('/runs/stream', { ...STEPS, stream_mode: ['updates'] }),
  },
  {
    name: 'a stream with subgraphs',
    run: async (notes) => {
      const thread = await newThread(notes);
      const body = { assistant_id: 'nested', input: { topic: 'ice' }, stream_mode: ['updates'] };
      await notes.stream(`/threads/${thread}/runs/stream`, { ...body, stream_subgraphs: true });
    },
  },
  {
    name: 'an interrupt, its state, and its resumption',
    run: async (notes) => {
      const thread = await newThread(notes);
      const body = { assistant_id: 'approval', stream_mode: ['values', 'updates'] };
      await notes.stream(`/threads/${thread}/runs/stream`, { ...body, input: { topic: 'ice' } });
      await notes.ask('GET', `/threads/${thread}/state`);
      await notes.ask('GET', `/threads/${thread}`);
      await notes.stream(`/threads/${thread}/runs/stream`, { ...body, command: { resume: 'yes' } });
      await notes.ask('GET', `/threads/${thread}/state`);
    },
  },
  {
    name: 'a wait that ends in an interrupt',
    run: async (notes) => {
      const thread = await newThread(notes);
      await notes.ask('POST', `/threads/${thread}/runs/wait`, { assistant_id: 'approval', input: { topic: 'ice' } });
    },
  },
  {
    name: 'interrupt_before, then on from there',
    run: async (notes) => {
      const thread = await newThread(notes);
      const stream_mode = ['values', 'updates'];
      await notes.stream(`/threads/${thread}/runs/stream`, { ...STEPS, interrupt_before: ['two'], stream_mode });
      await notes.ask('GET', `/threads/${thread}/state`);
      await notes.stream(`/threads/${thread}/runs/stream`, { assistant_id: 'steps', input: null, stream_mode });
    },
  },
  {
    name: 'a graph that fails, streamed',
    run: async (notes) => {
      const thread = await newThread(notes);
      await notes.stream(`/threads/${thread}/runs/stream`, { assistant_id: 'misbehave', input: { how: 'fail' } });
    },
  },
  {
    name: 'a graph that fails, waited for',
    run: async (notes) => {
      const thread = await newThread(notes);
      await notes.ask('POST', `/threads/${thread}/runs/wait`, { assistant_id: 'misbehave', input: { how: 'fail' } });
    },
  },
  {
    name: 'a state update as a node',
    run: async (notes) => {
      const thread = await newThread(notes);
      await notes.ask('POST', `/threads/${thread}/runs/wait`, STEPS);
      await notes.ask('POST', `/threads/${thread}/state`, { values: { done: ['by hand'] }, as_node: 'two' });
      await notes.ask('GET', `/threads/${thread}/state`);
    },
  },
  {
    name: 'a run that is created, joined, read and deleted',
    run: async (notes) => {
      const thread = await newThread(notes);
      const created = (await notes.ask('POST', `/threads/${thread}/runs`, STEPS)) as { run_id: string };
      const path = `/threads/${thread}/runs/${created.run_id}`;
      await notes.ask('GET', `${path}/join`);
      await notes.ask('GET', path);
      await notes.ask('DELETE', path);
    },
  },
  {
    name: 'a second run with reject',
    run: async (notes) => {
      const thread = await newThread(notes);
      const slow = { ...STEPS, input: { name: 'a', stepMs: 2000 } };
      await notes.ask('POST', `/threads/${thread}/runs`, slow);
      await notes.ask('POST', `/threads/${thread}/runs`, { ...STEPS, multitask_strategy: 'reject' });
    },
  },
  {
    name: 'cancel, waited for',
    run: async (notes) => {
      const thread = await newThread(notes);
      const slow = { ...STEPS, input: { name: 'a', stepMs: 20_000 } };
      const created = (await notes.ask('POST', `/threads/${thread}/runs`, slow)) as { run_id: string };
      await notes.ask('POST', `/threads/${thread}/runs/${created.run_id}/cancel?wait=1`);
      await notes.ask('GET', `/threads/${thread}/runs/${created.run_id}`);
    },
  },
  {
    name: 'threads: patch, search, count, copy, delete',
    run: async (notes) => {
      const mark = randomUUID();
      const thread = await newThread(notes, { metadata: { mark } });
      await notes.ask('PATCH', `/threads/${thread}`, { metadata: { more: 1 } });
      await notes.ask('POST', '/threads/search', { metadata: { mark } });
      await notes.ask('POST', '/threads/count', { metadata: { mark } });
      await notes.ask('POST', `/threads/${thread}/copy`);
      await notes.ask('DELETE', `/threads/${thread}`);
    },
  },
  {
    name: 'assistants: get, search, count, graph, schemas, subgraphs',
    run: async (notes) => {
      await notes.ask('GET', '/assistants/echo');
      await notes.ask('POST', '/assistants/search', { graph_id: 'echo', metadata: { created_by: 'system' } });
      await notes.ask('POST', '/assistants/count', { graph_id: 'nested', metadata: { created_by: 'system' } });
      for (const what of ['graph', 'graph?xray=true', 'subgraphs'])
        await notes.ask('GET', `/assistants/nested/${what}`);
    },
  },
  {
    name: 'assistants: create, patch, versions, latest, delete',
    run: async (notes) => {
      const body = { graph_id: 'echo', name: 'Parrot', metadata: { team: 'ops' } };
      const created = (await notes.ask('POST', '/assistants', body)) as { assistant_id: string };
      const path = `/assistants/${created.assistant_id}`;
      await notes.ask('PATCH', path, { name: 'Parrot II', metadata: { more: 1 } });
      await notes.ask('POST', `${path}/versions`, {});
      await notes.ask('POST', `${path}/latest`, { version: 1 });
      await notes.ask('DELETE', path);
      await notes.ask('GET', path);
    },
  },
  {
    name: 'the store',
    run: async (notes) => {
      const namespace = ['peer', randomUUID()];
      await notes.ask('PUT', '/store/items', { namespace, key: 'k', value: { lang: 'fr' } });
      await notes.ask('GET', `/store/items?key=k&namespace=${namespace.join('.')}`);
      await notes.ask('GET', `/store/items?key=none&namespace=${namespace.join('.')}`);
      await notes.ask('POST', '/store/items/search', { namespace_prefix: namespace });
      await notes.ask('POST', '/store/namespaces', { prefix: namespace });
      await notes.ask('DELETE', '/store/items', { namespace, key: 'k' });
    },
  },
  {
    name: 'what does not exist',
    run: async (notes) => {
      const thread = await newThread(notes);
      await notes.ask('POST', `/threads/${thread}/runs`, { assistant_id: 'nobody', input: {} });
      await notes.ask('GET', `/threads/${randomUUID()}`);
      await notes.ask('GET', `/threads/${thread}/runs/${randomUUID()}`);
    },
  },
  {
    name: 'a run on a thread that does not exist',
    run: async (notes) => {
      await notes.ask('POST', `/threads/${randomUUID()}/runs`, STEPS);
      await notes.ask('POST', `/threads/${randomUUID()}/runs/wait`, { ...STEPS, if_not_exists: 'create' });
    },
  },
  {
    name: 'malformed requests',
    run: async (notes) => {
      await notes.ask('GET', '/threads/not-a-uuid');
      await notes.ask('POST', '/threads/search', { limit: 0 });
    },
  },
];

const READ_HEADERS = ['content-type', 'content-location', 'x-pagination-total', 'x-pagination-next'];

export function createNotes(url: string, note: (line: string) => void): Notes {
  const send = (method: string, path: string, body?: unknown): Promise<Response> =>
    fetch(url + path, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(60_000),
    });
  const noteHead = (response: Response): void => {
    note(`status ${response.status}`);
    for (const name of READ_HEADERS) {
      const value = response.headers.get(name);
      if (value !== null) note(`${name}: ${value.toLowerCase().replace(/; ?charset=utf-8$/, '')}`);
    }
  };
  return {
    ask: async (method, path, body) => {
      note(`> ${method} ${path}`);
      const response = await send(method, path, body);
      noteHead(response);
      const text = await response.text();
      try {
        const value: unknown = JSON.parse(text);
        noteValue(note, '', value);
        return value;
      } catch {
        note(text.trim() === '' ? 'no body' : 'a body that is no JSON');
        return null;
      }
    },
    stream: async (path, body) => {
      note(`> POST ${path}`);
      const response = await send('POST', path, body);
      noteHead(response);
      for (const { event, data } of await readEvents(response)) {
        note(`event ${event}`);
        noteValue(note, '', data);
      }
    },
  };
}

/** One line for each leaf, so that a difference is named by its path. */
function noteValue(note: (line: string) => void, path: string, value: unknown): void {
  if (typeof value !== 'object' || value === null) return note(`${path} = ${JSON.stringify(value)}`);
  const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length === 0) note(`${path} = ${Array.isArray(value) ? '[]' : '{}'}`);
  for (const [key, entry] of entries) noteValue(note, `${path}.${key}`, entry);
}
